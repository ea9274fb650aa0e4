"""Where the earlier program kept its conversations, and how it wrote them."""

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
    """Its folders of this user, if there are any: within `base`, or where it kept them by default.

    It wrote `_` for whatever else was in a name, so that two users may share such a folder; those are left alone.
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
    """JSON of a file. The earlier program wrote in the encoding of its system, which was not always UTF-8."""
    body = path.read_bytes()
    try:
        return json.loads(body)
    except UnicodeDecodeError:
        for encoding in (locale.getpreferredencoding(do_setlocale=False), "cp932"):
            with suppress(UnicodeDecodeError, LookupError):
                return json.loads(body.decode(encoding))
        raise
