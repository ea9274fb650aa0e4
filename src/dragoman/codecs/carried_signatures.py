"""A signature of another family as one JSON value, for APIs whose clients send back unknown keys."""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct

from dragoman.ir import Signature
from dragoman.ir.notes import MODELLED, Extra
from dragoman.ir.values import encode_json

SIGNATURE = "signature"
"""The key, on a call or on a block."""


class CarriedSignature(Struct, frozen=True, omit_defaults=True):
    family: str
    data: str
    id: str | None = None
    redacted: bool = False


_carried = msgspec.json.Decoder(CarriedSignature).decode


def read_carried(raw: Raw) -> CarriedSignature | None:
    """Return the signature in the value, if dragoman wrote it and it is not empty."""
    try:
        carried = _carried(raw)
    except msgspec.DecodeError:
        return None
    return carried if carried.data else None


def signature_in(raw: Raw) -> Signature | None:
    carried = read_carried(raw)
    return None if carried is None else Signature(carried.family, carried.data, carried.id)


def read_signature(extra: Extra) -> Signature | None:
    """Return the signature among an object's further keys; its spelling stays as a note."""
    raw = extra.get(SIGNATURE)
    signature = None if raw is None else signature_in(raw)
    if signature is not None:
        extra[MODELLED + SIGNATURE] = extra.pop(SIGNATURE)
    return signature


def write_signature(signature: Signature, *, redacted: bool = False) -> Raw:
    return Raw(encode_json(CarriedSignature(signature.family, signature.data, signature.id, redacted)))
