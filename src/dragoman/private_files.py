"""Files and folders that only their owner may read: databases, logs and histories hold what people wrote."""

from __future__ import annotations

import os
from pathlib import Path

_FILE = 0o600
_FOLDER = 0o700


def create_private_folder(folder: Path) -> None:
    """Make the folder and those above it that are missing, for their owner alone. Existing ones stay as they are."""
    missing = [folder, *folder.parents]
    for one in reversed([one for one in missing if not one.exists()]):
        one.mkdir(mode=_FOLDER, exist_ok=True)


def create_private_file(file: Path) -> None:
    """Make an empty file for its owner alone, unless it is there. Raises `OSError`.

    SQLite gives the files it puts beside a database (`-wal`, `-shm`, `-journal`) the mode of the database.
    """
    os.close(os.open(file, os.O_RDWR | os.O_CREAT, _FILE))
