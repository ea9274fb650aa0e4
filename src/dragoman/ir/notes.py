"""Notes: entries in metadata that are not wire keys. They record how a body spelled a value.

Their keys start with `~` and are never sent under that name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec
from msgspec import Raw

Extra: TypeAlias = dict[str, Raw]

RENAMED = "~as:"
"""Note: this key was spelled otherwise (`~as:inlineData` -> "inline_data")."""

NAMED = "~named:"
"""Note: the source has this key under another name (`~named:speechConfig` -> "speech_config")."""

SINGLE = "~single:"
"""Note: this list was given as its single element."""

WITHIN = "~in:"
"""Note: the extras of an inner wire object that has no node of its own (`~in:function`)."""

MODELLED = "~raw:"
"""Note: the wire's own spelling of something that the node's fields also express (`~raw:annotations`)."""


CLIENT_ITEM = "~client_item"
"""Note, of any family, on a function that replaces a vendor's own tool: the client gets its calls as items of this
type, which can be written only when they are complete. A call of the function gets the notes of the function."""

FREE_TEXT = "~free_text"
"""Note, of any family, on a function that represents a custom tool: its one argument `input` is the text."""

ADDED = "~added"
"""Note, of any family, on a tool that was declared in the middle of the conversation: its place in the body."""

REFUSED = "~refused"
"""Note, of any family, on the finish of a streamed answer: the explanation of a refusal. If the answer ends with this
text, the text is the refusal; it was streamed as text before the wire marked it as a refusal."""

CORRECTED = "~corrected"
"""Note, of any family, on the end of a streamed part: the text with which the provider ended it, where that is another
than the one it had streamed. On the end of an answer: it repeats another text than that of a finished part."""

TOOL_REFERENCE = "tool_reference"
"""Key, of any family, on a text that is the name of a tool: the block that named it. Where the tool gets another name,
so does the text."""

CITED_PLACE = "~place"
"""Note, of any family, on a citation of a document or search result: [kind, its index, start, end]; a source may
follow."""

CODE_LANGUAGE = "~language"
"""Note, of any family, on a call that runs code: its language, if that is not Python."""

DATA_TEXT = "~data"
"""Note, of any family: this text is the JSON text of a value that was beside media.

Formats that take an object beside media send the value itself.
"""


SPELLINGS: set[str] = set()
"""Cache of keys that are only spelling notes: a conversation has the same few on every message."""
_MOST_SPELLINGS = 1024


def is_spelling(key: str) -> bool:
    """Whether a key of metadata is only a spelling note; if so, it is cached in `SPELLINGS`."""
    if key[:1] != "~" or key.startswith(WITHIN):
        return False
    if len(SPELLINGS) < _MOST_SPELLINGS:
        SPELLINGS.add(key)
    return True


class Spelling(dict[str, Extra]):
    """Metadata with only spelling notes, so that another family loses nothing with it."""


def has_note(metadata: Mapping[str, Mapping[str, Any]] | None, key: str) -> bool:
    """Whether any family has this note."""
    return metadata is not None and any(key in notes for notes in metadata.values())


def is_data_text(metadata: Mapping[str, Mapping[str, Any]] | None) -> bool:
    """Whether the text with this metadata is the JSON text of a value (see `DATA_TEXT`)."""
    return metadata is not None and any(DATA_TEXT in notes for notes in metadata.values())


def family_notes(family: str, metadata: Mapping[str, Extra] | None) -> Extra:
    """The metadata of a node that belongs to a family, notes included."""
    return {} if metadata is None else metadata.get(family, {})


def with_notes(family: str, metadata: Mapping[str, Extra] | None, notes: Extra) -> dict[str, Extra] | None:
    """The metadata with further notes of a family."""
    if not notes:
        return None if metadata is None else dict(metadata)
    return {**(metadata or {}), family: {**family_notes(family, metadata), **notes}}


_entries = msgspec.json.Decoder(Extra).decode


def inner_extra(extra: Mapping[str, Any], name: str) -> Extra | None:
    """The extras of an inner object, as `keep` stored them."""
    inner = extra.get(WITHIN + name)
    if inner is None:
        return None
    try:
        return _entries(inner)
    except msgspec.ValidationError:  # a wire key that happens to look like a note
        return None
