"""Reasoning messages: the provider's own item beside the text, which returns to that provider."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Raw

from dragoman.codecs.records.signatures import bag_of, signature_in
from dragoman.ir import Reasoning, Signature
from dragoman.ir.notes import MODELLED, WITHIN, Extra
from dragoman.ir.values import encode_json, parse_json

ITEM = "raw_item"
_REDACTED = "redacted"

# type of a provider's item -> family, key of what is owed back, key of its id, and what else the item may say
_ITEMS: dict[str, tuple[str, str, str | None, frozenset[str]]] = {
    "thinking": ("anthropic", "signature", None, frozenset({"thinking"})),
    "redacted_thinking": ("anthropic", "data", None, frozenset()),
    "reasoning": ("openai", "encrypted_content", "id", frozenset({"summary"})),
}


def read_item(held: Raw, text: str, notes: Extra) -> Reasoning:
    """Reasoning with what its provider wants back. The item goes back as it is; what we cannot read stays private."""
    item = parse_json(held)
    signature, redacted, known = _signed(item)
    if signature is None:
        notes[ITEM] = held
        return Reasoning(text)
    notes[MODELLED + ITEM] = held
    others = {key: Raw(encode_json(value)) for key, value in item.items() if key not in known}
    if others:
        notes[WITHIN + ITEM] = Raw(encode_json(others))
    return Reasoning(text, signature, redacted)


def _signed(item: Any) -> tuple[Signature | None, bool, frozenset[str]]:
    """(signature, whether it is all there is, keys that were read)."""
    if not isinstance(item, Mapping):
        return None, False, frozenset()
    found = signature_in(item)
    if found is not None:
        return found[1], item.get(_REDACTED) is True, frozenset({found[0], _REDACTED})
    kind = item.get("type")
    family, key, id_key, further = _ITEMS.get(kind if isinstance(kind, str) else "", ("", "", None, frozenset()))
    data = item.get(key)
    if not isinstance(data, str):
        return None, False, frozenset()
    item_id = item.get(id_key) if id_key is not None else None
    read = {"type", key} | further | ({id_key} if id_key is not None else set())
    redacted = kind == "redacted_thinking"
    return Signature(family, data, item_id if isinstance(item_id, str) else None), redacted, frozenset(read)


def item_of(part: Reasoning) -> dict[str, Any] | None:
    if part.signature is None:
        return {_REDACTED: True} if part.redacted else None
    item = bag_of(part.signature)
    return {**item, _REDACTED: True} if part.redacted else item
