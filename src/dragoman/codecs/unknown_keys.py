"""Unknown keys in the events of a stream.

The structs of events forbid unknown keys, so the usual event is decoded once, at full speed. If the decoder refuses an
event because of such a key, all of them are taken out, and the rest is decoded as before. The decoder of the stream
keeps the keys with the answer: most events do not begin or end a part, so there is no other node for them.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from dragoman.codecs.reading import fields_of, plan_of, struct_of
from dragoman.ir.notes import Extra
from dragoman.ir.values import encode_json

_entries = msgspec.json.Decoder(dict[str, Raw]).decode
_items = msgspec.json.Decoder(list[Raw]).decode

_REFUSAL = "Object contains unknown field"


def has_unknown_key(error: Exception) -> bool:
    """Whether the decoder refused a payload because of a key that a struct does not have."""
    return isinstance(error, msgspec.ValidationError) and str(error).startswith(_REFUSAL)


def take_unknown_keys(payload: bytes, kind: Any, extra: Extra, apart: frozenset[type] = frozenset()) -> bytes:
    """Move the keys that the structs of `kind` forbid to `extra`, without nulls; return the payload without them.

    Objects of `apart`, and those whose structs have `extra` themselves, stay as they are: the codec reads their keys.
    """
    return bytes(_take(Raw(payload), kind, extra, apart))


def _take(raw: Raw, kind: Any, extra: Extra, apart: frozenset[type]) -> Raw:
    plan = plan_of(kind)
    first = bytes(raw).lstrip()[:1]
    if first == b"[" and plan.item is not None:
        return Raw(encode_json([_take(item, plan.item, extra, apart) for item in _items(raw)]))
    if first != b"{" or not (plan.structs or plan.tagged):
        return raw
    entries = _entries(raw)
    found = struct_of(entries, plan)
    if found is None or found in apart or "extra" in found.__struct_fields__:
        return raw
    known = {}
    fields, tag = fields_of(found), found.__struct_config__.tag_field
    for key, value in entries.items():
        if key in fields:
            known[key] = _take(value, fields[key], extra, apart)
        elif key == tag or not found.__struct_config__.forbid_unknown_fields:
            known[key] = value
        elif bytes(value) != b"null":
            extra[key] = Raw(bytes(value))  # a copy: the view would keep the whole payload alive
    return Raw(encode_json(known))
