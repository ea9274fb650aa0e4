"""Reasoning, for which modular-prompt has no field: it waits in the `metadata` of its message until it goes back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Raw

from dragoman.codecs.records.reading import as_json
from dragoman.codecs.records.signatures import bag_of, signature_in
from dragoman.ir import Reasoning
from dragoman.ir.notes import MODELLED, WITHIN, Extra
from dragoman.ir.values import encode_json, parse_json

BAG = "metadata"
_KEY = "reasoning"
_FIELDS = frozenset({"text", "redacted", "signature", "thoughtSignature"})


def take_reasoning(extra: Extra) -> tuple[Reasoning, ...]:
    """The reasoning in a message's metadata; it goes back as it is, and the other keys stay private."""
    held = extra.get(BAG)
    bag = None if held is None else parse_json(held)
    entries = bag.get(_KEY) if isinstance(bag, Mapping) else None
    if held is None or not isinstance(bag, Mapping) or not isinstance(entries, list) or not entries:
        return ()
    found = [_reasoning(entry) for entry in entries]
    if None in found:
        return ()
    del extra[BAG]
    extra[MODELLED + BAG] = held
    others = {key: Raw(encode_json(value)) for key, value in bag.items() if key != _KEY}
    if others:
        extra[WITHIN + BAG] = Raw(encode_json(others))
    return tuple(part for part in found if part is not None)


def _reasoning(entry: Any) -> Reasoning | None:
    if not isinstance(entry, Mapping) or not entry.keys() <= _FIELDS:
        return None
    text, redacted = entry.get("text", ""), entry.get("redacted", False)
    if not isinstance(text, str) or not isinstance(redacted, bool):
        return None
    signed = signature_in(entry)
    if signed is None and entry.keys() & {"signature", "thoughtSignature"}:
        return None
    return Reasoning(text, None if signed is None else signed[1], redacted)


def put_reasoning(fields: Extra, parts: Sequence[Reasoning]) -> None:
    """Writes the reasoning of a message, unless its own metadata goes back."""
    if parts and MODELLED + BAG not in fields:
        entries = []
        for part in parts:
            entry: dict[str, Any] = {"text": part.text}
            if part.redacted:
                entry["redacted"] = True
            entries.append(entry if part.signature is None else entry | bag_of(part.signature))
        fields[BAG] = as_json({_KEY: entries})
