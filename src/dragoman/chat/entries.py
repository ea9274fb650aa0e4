"""Conversations with several models: entries in their stored form, as frozen values.

The content of an entry is a list of parts of multi-llm-chat (`text`, `tool_call`, `tool_result`, `reasoning`; further
`image` and `document`, see `media`). Entries have further fields for what that format lacks: the owner of a tool entry,
how an answer ended, when it was written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias
from uuid import uuid4

import msgspec
from msgspec import Struct

from dragoman.chat.history import INVALID, content_to_text, normalize_entry
from dragoman.chat.payloads import call_of
from dragoman.codecs.records.pairing import Pairing

SCHEMA_VERSION = 3
"""Version 2 was the earlier program's; 3 adds owners, statuses, ids and turns, all optional."""

Part: TypeAlias = dict[str, Any]
Status: TypeAlias = Literal["ok", "error", "refused", "empty", "stopped", "cut", "interrupted"]
"""How an answer ended: cut by the token limit, stopped by the user, interrupted because the program died."""
OTHERS = frozenset({"user", "tool", "system"})
"""Roles that do not name a model."""


_MENTIONS = re.compile(r"^(?:@[A-Za-z0-9_.-]+[,:]?\s*)+(?=\S)")


def new_id() -> str:
    return uuid4().hex[:12]


class Entry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One entry. `answer` and `turn` are ids: entries of one answer belong together, and answers to a turn."""

    role: str
    content: list[Part] = []
    id: str = msgspec.field(default_factory=new_id)
    turn: str = ""
    """The id of the user's entry that this one belongs to; its own for the user's entry itself."""
    answer: str = ""
    owner: str = ""
    """The model whose tool results these are."""
    model: str = ""
    """The provider/model that answered as this role."""
    status: Status = "ok"
    error: str = ""
    """Error message for the user."""
    replaced: bool = False
    """Another answer replaced this one: models no longer see it, the user still does."""
    time: str = ""
    usage: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    """Unknown keys of the stored entry."""

    @property
    def speaker(self) -> str:
        """The model that this entry belongs to; empty for user and system entries."""
        return self.owner if self.role == "tool" else "" if self.role in OTHERS else self.role

    @property
    def text(self) -> str:
        return content_to_text(self.content)


class Conversation(Struct, frozen=True, kw_only=True):
    id: str = msgspec.field(default_factory=new_id)
    name: str = ""
    system_prompt: str = ""
    entries: tuple[Entry, ...] = ()
    created: str = ""
    updated: str = ""
    revision: int = 0
    """Incremented by the store. Optimistic lock: a save must name the revision it read."""
    settings: dict[str, Any] = {}
    extra: dict[str, Any] = {}

    @property
    def title(self) -> str:
        """The name, or the first words."""
        first_text = next((entry.text for entry in self.entries if entry.role == "user" and entry.text), "")
        return self.name or _MENTIONS.sub("", " ".join(first_text.split()))[:60].strip() or "New conversation"

    @property
    def models(self) -> tuple[str, ...]:
        """Models that have answered, in order of their first answer."""
        return tuple(dict.fromkeys(entry.speaker for entry in self.entries if entry.speaker))


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


# ── stored form ───────────────────────────────────────────────────────────────────────────────────────────────

_OWN = frozenset(Entry.__struct_fields__) - {"extra"}
_DOCUMENT = frozenset({"display_name", "system_prompt", "turns", "metadata", "settings", "history", "messages"})


class Unreadable(ValueError):
    """The file is not a saved conversation."""


def to_document(conversation: Conversation) -> dict[str, Any]:
    """The conversation as a document for a file or database."""
    return {
        **conversation.extra,
        "display_name": conversation.name,
        "system_prompt": conversation.system_prompt,
        "turns": [entry_document(entry) for entry in conversation.entries],
        "settings": conversation.settings,
        "metadata": {
            "schema_version": SCHEMA_VERSION,
            "id": conversation.id,
            "created_at": conversation.created,
            "updated_at": conversation.updated,
            "revision": conversation.revision,
        },
    }


def entry_document(entry: Entry) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.to_builtins(entry)
    extra = document.pop("extra", {})
    return {**extra, "role": entry.role, "content": entry.content, **document}


def read_conversation(document: Any, *, name: str = "") -> Conversation:
    """Reads a stored document of this program or an earlier one: an object, or a bare list of entries."""
    given = {"turns": document} if isinstance(document, list) else document
    if not isinstance(given, Mapping):
        raise Unreadable(f"expected a conversation (an object or a list), got {type(document).__name__}")
    turns = next((given[key] for key in ("turns", "history", "messages") if key in given), None)
    if not isinstance(turns, list):
        raise Unreadable("expected a list of entries under 'turns', 'history' or 'messages'")
    found = given.get("metadata")
    metadata: Mapping[str, Any] = found if isinstance(found, Mapping) else {}
    revision, settings = metadata.get("revision"), given.get("settings")
    return Conversation(
        id=str(metadata.get("id") or new_id()),
        name=str(given.get("display_name") or name),
        system_prompt=str(given.get("system_prompt") or ""),
        entries=read_entries(turns),
        created=str(metadata.get("created_at") or ""),
        updated=str(metadata.get("updated_at") or ""),
        revision=revision if isinstance(revision, int) else 0,
        settings=dict(settings) if isinstance(settings, Mapping) else {},
        extra={key: value for key, value in given.items() if key not in _DOCUMENT},
    )


def read_entries(turns: Iterable[Any]) -> tuple[Entry, ...]:
    """Reads entries and fills in missing ids, owners and turns; every call and result gets its id."""
    pairing = Pairing()
    owners: dict[str, str] = {}
    entries: list[Entry] = []
    turn = speaker = ""
    for index, raw in enumerate(turns):
        entry = _read_entry(normalize_entry(raw))
        entry = msgspec.structs.replace(entry, content=_pair_parts(entry, index, pairing, owners))
        speaker = entry.role if entry.role not in OTHERS else speaker
        if entry.role == "tool" and not entry.owner:
            known = (owners.get(str(part.get("tool_call_id"))) for part in entry.content)
            entry = msgspec.structs.replace(entry, owner=next((one for one in known if one), speaker))
        if entry.role == "user":
            turn = entry.turn or entry.id
        entries.append(entry if entry.turn else msgspec.structs.replace(entry, turn=turn))
    return tuple(entries)


def _read_entry(raw: Mapping[str, Any]) -> Entry:
    role = raw.get("role")
    known = {key: raw[key] for key in _OWN if key in raw}
    extra = {key: value for key, value in raw.items() if key not in _OWN and key != INVALID}
    given = {**known, "role": role if isinstance(role, str) and role else "system", "content": raw["content"]}
    if raw.get(INVALID):
        given |= {"status": "error", "error": "this entry of the file could not be read"}
    try:
        entry = msgspec.convert(given, Entry)
    except msgspec.ValidationError:  # keys we know, with values of other types
        entry = Entry(role=given["role"], content=raw["content"])
        extra = {key: value for key, value in raw.items() if key not in {"role", "content"}}
    return msgspec.structs.replace(entry, extra=extra) if extra else entry


def _pair_parts(entry: Entry, index: int, pairing: Pairing, owners: dict[str, str]) -> list[Part]:
    parts: list[Part] = []
    for place, part in enumerate(entry.content):
        kind = part.get("type")
        if kind == "tool_call":
            parts.append(_pair_call(part, entry.role, f"[{index}].content[{place}]", pairing, owners))
        elif kind == "tool_result":
            call_id, name = pairing.result(_string_at(part, "tool_call_id"), _string_at(part, "name"), {})
            parts.append({**part, "name": name, "tool_call_id": call_id})
        else:
            parts.append(part)
    return parts


def _pair_call(part: Part, role: str, seed: str, pairing: Pairing, owners: dict[str, str]) -> Part:
    call = call_of(part)
    call_id, _ = pairing.call(_string_at(call, "tool_call_id"), _string_at(call, "name") or "", seed, {})
    owners[call_id] = role
    outside = {} if call is not part else {"type", "content"}
    inner = {key: value for key, value in call.items() if key not in outside}
    return {"type": "tool_call", "content": {**inner, "name": call.get("name") or "", "tool_call_id": call_id}}


def _string_at(data: Mapping[str, Any], key: str) -> str | None:
    value = data.get(key)
    return value if isinstance(value, str) and value else None
