"""Folders and files of the earlier program."""

from __future__ import annotations

import json
import locale
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

DRAFT = "_autosave.json"
_DRAFT_TYPE = "autosave_draft"
_FOLDER = Path("multi_llm_chat") / "chat_histories"
_ITS_NAMES = re.compile(r"[a-zA-Z0-9_-]+")


def earlier_folders(base: Path | None, user: str, environment: Mapping[str, str] | None = None) -> tuple[Path, ...]:
    """The earlier program's folders of this user: within `base`, or in its default location.

    It replaced special characters in names by `_`, so two users may share such a folder; those are skipped.
    """
    if _ITS_NAMES.fullmatch(user) is None:
        return ()
    known = os.environ if environment is None else environment
    bases = [base] if base is not None else _defaults(known)
    return tuple(folder for one in bases if (folder := one / user).is_dir())


def _defaults(environment: Mapping[str, str]) -> list[Path]:
    if environment.get("CHAT_HISTORY_DIR"):
        return [Path(environment["CHAT_HISTORY_DIR"])]
    if environment.get("XDG_DATA_HOME"):
        return [Path(environment["XDG_DATA_HOME"]) / _FOLDER]
    return [Path.home() / ".multi_llm_chat" / "chat_histories"]


def is_draft(path: Path, document: Any) -> bool:
    return path.name == DRAFT or (isinstance(document, Mapping) and document.get("type") == _DRAFT_TYPE)


def read_document(path: Path) -> Any:
    """Reads a JSON file. The earlier program used the encoding of the system, which was not always UTF-8."""
    body = path.read_bytes()
    try:
        return json.loads(body)
    except UnicodeDecodeError:
        for encoding in (locale.getpreferredencoding(do_setlocale=False), "cp932"):
            with suppress(UnicodeDecodeError, LookupError):
                return json.loads(body.decode(encoding))
        raise
