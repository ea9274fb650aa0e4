"""Finds the configuration file, in the same way for `serve`, `ask`, `run`, `chat`, `keys` and `usage`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from dragoman.drivers.key_store import config_folder

NAME = "dragoman.toml"


class ConfigFile(Struct, frozen=True):
    path: Path | None = None
    """None if there is no file and the defaults apply."""
    is_trusted: bool = True
    """False for a file that was merely found in the current folder: it may belong to an untrusted project."""


def find_config_file(given: Path | None = None, environment: Mapping[str, str] = os.environ) -> ConfigFile:
    """Return the given file, `$DRAGOMAN_CONFIG`, `dragoman.toml` of this folder, or that of the user."""
    named = given or (Path(environment["DRAGOMAN_CONFIG"]) if environment.get("DRAGOMAN_CONFIG") else None)
    if named is not None:
        return ConfigFile(named)
    if Path(NAME).is_file():
        return ConfigFile(Path(NAME), is_trusted=False)
    own = config_folder(environment) / NAME
    return ConfigFile(own) if own.is_file() else ConfigFile()
