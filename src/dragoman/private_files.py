"""Files and folders that only their owner may read, for databases, logs and histories."""

from __future__ import annotations

import os
from pathlib import Path

_FILE = 0o600
_FOLDER = 0o700


def create_private_folder(folder: Path) -> None:
    """Creates the folder and missing parents, private to their owner. Existing folders are not changed."""
    missing = [folder, *folder.parents]
    for one in reversed([one for one in missing if not one.exists()]):
        one.mkdir(mode=_FOLDER, exist_ok=True)


def create_private_file(file: Path) -> None:
    """Creates an empty file private to its owner, unless it exists. Raises `OSError`.

    SQLite's files next to a database (`-wal`, `-shm`, `-journal`) get the mode of the database.
    """
    os.close(os.open(file, os.O_RDWR | os.O_CREAT, _FILE))
