"""Files on this machine, or in object storage (s3://, gs://, az://, memory://) through fsspec."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from dragoman.errors import NotConfigured
from dragoman.installation import install_command

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+://")


def is_remote(name: str) -> bool:
    """Return whether the name is an address that fsspec opens rather than a path on this machine."""
    return _SCHEME.match(name) is not None


def remote_file_system(name: str) -> tuple[Any, str]:
    """Return the file system that an address belongs to, and the path in it."""
    try:
        import fsspec  # noqa: PLC0415 - only for such addresses
    except ImportError as error:
        message = f"{name}: object storage needs fsspec: {install_command('batch')}"
        raise NotConfigured(message, missing="fsspec") from error
    try:
        files, path = fsspec.core.url_to_fs(name)
    except ImportError as error:  # each kind of storage needs its own package, which fsspec names
        raise NotConfigured(f"{name}: {error}", missing=str(error)) from error
    except ValueError as error:
        raise NotConfigured(f"{name}: fsspec has no such storage ({error})", missing="fsspec") from error
    return files, path


@contextmanager
def open_to_read(name: str) -> Iterator[IO[bytes]]:
    """Yield a file that is read."""
    if is_remote(name):
        files, path = remote_file_system(name)
        with files.open(path, "rb") as stream:
            yield stream
        return
    with open(name, "rb") as stream:  # noqa: PTH123
        yield stream
