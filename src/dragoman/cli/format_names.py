"""Format names on the command line."""

from __future__ import annotations

from dragoman.cli.problems import CommandError, unknown
from dragoman.codecs.registry import formats
from dragoman.errors import FORMAT_OF_VENDOR

AUTO = "auto"
ALL = "all"


def source_format(name: str) -> str | None:
    """The format to read, or None for `auto`."""
    return None if name == AUTO else known_format(name, (AUTO, *formats(None), *formats("dataset")))


def target_formats(name: str) -> tuple[str, ...]:
    """The formats to write; `all` means every format of an API."""
    return formats() if name == ALL else (known_format(name, (ALL, *formats(None), *formats("dataset"))),)


def known_format(name: str, allowed: tuple[str, ...]) -> str:
    if name in allowed:
        return name
    raise CommandError(unknown("format", name, allowed, "dragoman formats lists them", meant=FORMAT_OF_VENDOR))
