"""Opaque vendor data in records: a bag beside the call or text (`raw_context`, `provider_meta`, `metadata`).

A record is a store, not a vendor: it keeps signatures of any family, together with the family's name. The earlier
systems wrote Gemini's own spelling, {"thoughtSignature": …}; all others are {"signature": {"family", "data"}}.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Raw

from dragoman.ir import Signature
from dragoman.ir.notes import MODELLED, WITHIN, Extra
from dragoman.ir.values import encode_json, parse_json

_GOOGLE = "google"
_GOOGLE_KEYS = ("thoughtSignature", "thought_signature")


def take_signature(extra: Extra, bag: str) -> Signature | None:
    """Return the signature in a record's bag. The bag is written back unchanged; its other keys stay private."""
    raw = extra.get(bag)
    value = None if raw is None else parse_json(raw)
    if raw is None or not isinstance(value, Mapping):
        return None
    found = signature_in(value)
    if found is None:
        return None
    key, signature = found
    del extra[bag]
    extra[MODELLED + bag] = raw
    others = {name: Raw(encode_json(inner)) for name, inner in value.items() if name != key}
    if others:
        extra[WITHIN + bag] = Raw(encode_json(others))
    return signature


def signature_in(bag: Mapping[str, Any]) -> tuple[str, Signature] | None:
    """Return the key that holds a signature, and the signature."""
    for key in _GOOGLE_KEYS:
        if _says(bag.get(key)):
            return key, Signature(_GOOGLE, bag[key])
    inner = bag.get(_GOOGLE)
    if isinstance(inner, Mapping):
        for key in _GOOGLE_KEYS:
            if _says(inner.get(key)) and len(inner) == 1:
                return _GOOGLE, Signature(_GOOGLE, inner[key])
    signed = bag.get("signature")
    if isinstance(signed, Mapping) and signed.keys() <= {"family", "data", "id"}:
        family, data, item = signed.get("family"), signed.get("data"), signed.get("id")
        if _says(family) and isinstance(data, str) and (item is None or isinstance(item, str)):
            return "signature", Signature(str(family), data, item)
    return None


def _says(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def bag_of(signature: Signature) -> dict[str, Any]:
    """Return the bag that is written for a signature."""
    if signature.family == _GOOGLE and signature.id is None and signature.data:
        return {_GOOGLE_KEYS[0]: signature.data}
    signed = {"family": signature.family, "data": signature.data}
    return {"signature": signed if signature.id is None else {**signed, "id": signature.id}}


def put_signature(fields: dict[str, Any], signature: Signature | None, bag: str, notes: Extra) -> None:
    """Write the bag, unless the record's own is written back with its notes."""
    if signature is not None and MODELLED + bag not in notes:
        fields[bag] = bag_of(signature)
