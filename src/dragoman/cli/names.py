"""Names of formats as people type them."""

from __future__ import annotations

from dragoman.cli.problems import CommandError
from dragoman.codecs.registry import formats

AUTO = "auto"
ALL = "all"


def source_format(name: str) -> str | None:
    """The format to read, or None for `auto`."""
    return None if name == AUTO else known_format(name, (AUTO, *formats(None), *formats("dataset")))


def target_formats(name: str) -> tuple[str, ...]:
    """The formats to write; `all` stands for every one that an API speaks."""
    return formats() if name == ALL else (known_format(name, (ALL, *formats(None), *formats("dataset"))),)


def known_format(name: str, allowed: tuple[str, ...]) -> str:
    if name in allowed:
        return name
    raise CommandError(f"unknown format {name!r}{_suggestion(name, allowed)} (known: {', '.join(allowed)})")


def _suggestion(name: str, allowed: tuple[str, ...]) -> str:
    from difflib import get_close_matches

    plain = name.lower().replace("_", "-")
    begun = [known for known in allowed if plain and known.startswith(plain)]
    close = begun or get_close_matches(plain, allowed, n=1, cutoff=0.5)
    return f": did you mean {close[0]!r}?" if close else ""
