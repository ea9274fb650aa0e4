"""Atomic output: written completely or not at all.

Output is published when the command has succeeded. A file is written under a temporary name next to it and then
renamed; stdout is buffered in memory, and beyond `SPOOL_BYTES` on disk. So a bad line in the middle of a large input
leaves nothing half-written, and memory stays bounded.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
from pathlib import Path
from tempfile import SpooledTemporaryFile
from types import TracebackType
from typing import IO, BinaryIO, Self, cast

from dragoman.cli.problems import CommandError, system_reason

SPOOL_BYTES = 64 << 20


class Output:
    """Output of a command. `commit` publishes it; leaving the block without `commit` discards it."""

    def __init__(self, name: str | None) -> None:
        self._path = None if name is None or name == "-" else Path(name)
        self._temporary: Path | None = None
        try:
            self._waiting = self._open()
        except OSError as error:
            raise CommandError(f"cannot write {name}: {system_reason(error)}") from error

    def _open(self) -> IO[bytes]:
        if self._path is None:
            return spool()
        if self._path.is_dir():
            raise CommandError(f"cannot write {self._path}: it is a directory")
        if self._path.exists() and not self._path.is_file():
            # Write to a device or pipe directly: renaming would replace it by a file.
            self._path.open("wb").close()
            return spool()
        self._path = self._path.resolve()  # keep symbolic links
        self._temporary = self._path.with_name(f".{self._path.name}.{os.getpid()}.part")
        return self._temporary.open("xb")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._waiting.close()
        if self._temporary is not None:
            self._temporary.unlink(missing_ok=True)

    def write(self, data: bytes) -> None:
        try:
            self._waiting.write(data)
        except OSError as error:
            raise CommandError(f"cannot write {self._path or 'stdout'}: {system_reason(error)}") from error

    def commit(self) -> None:
        if self._path is None:
            pour(self._waiting, sys.stdout.buffer)
            return
        try:
            if self._temporary is None:
                with self._path.open("wb") as device:
                    pour(self._waiting, device)
            else:
                self._rename(self._temporary, self._path)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise CommandError(f"cannot write {self._path}: {system_reason(error)}") from error

    def _rename(self, temporary: Path, path: Path) -> None:
        self._waiting.close()
        if path.exists():
            temporary.chmod(stat.S_IMODE(path.stat().st_mode))
        temporary.replace(path)


def spool() -> IO[bytes]:
    """Temporary storage: in memory up to `SPOOL_BYTES`, then on disk."""
    return cast("IO[bytes]", SpooledTemporaryFile(max_size=SPOOL_BYTES))


def pour(waiting: IO[bytes], stream: BinaryIO | IO[bytes]) -> None:
    waiting.seek(0)
    shutil.copyfileobj(waiting, stream)
    stream.flush()
