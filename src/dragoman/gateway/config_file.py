"""Which configuration file a command reads: `serve`, `ask`, `run`, `chat`, `keys` and `usage` find the same one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from dragoman.drivers.key_store import config_folder

NAME = "dragoman.toml"


class ConfigFile(Struct, frozen=True):
    path: Path | None = None
    """None: there is no file, and the defaults hold."""
    is_trusted: bool = True
    """False for a file that merely lies in the current folder: it may be part of a foreign project."""


def find_config_file(given: Path | None = None, environment: Mapping[str, str] = os.environ) -> ConfigFile:
    """The file that was named, `$DRAGOMAN_CONFIG`, `dragoman.toml` of this folder, or that of the user."""
    named = given or (Path(environment["DRAGOMAN_CONFIG"]) if environment.get("DRAGOMAN_CONFIG") else None)
    if named is not None:
        return ConfigFile(named)
    if Path(NAME).is_file():
        return ConfigFile(Path(NAME), is_trusted=False)
    own = config_folder(environment) / NAME
    return ConfigFile(own) if own.is_file() else ConfigFile()
