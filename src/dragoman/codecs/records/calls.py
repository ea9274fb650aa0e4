"""Calls in records: flat {id, name, arguments: object} or nested {id, type, function: {name, arguments: text}}."""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec import UNSET, Raw, UnsetType

from dragoman.codecs.arguments import (
    EMPTY_OBJECT,
    arguments_as_object,
    arguments_as_text,
    read_arguments,
    unwrap_arguments,
)
from dragoman.codecs.reading import as_json, keep, spliced
from dragoman.codecs.records.pairing import Pairing
from dragoman.codecs.records.reading import TRUE, spelled_id
from dragoman.codecs.records.signatures import put_signature, take_signature
from dragoman.codecs.wire_values import Wire
from dragoman.errors import DecodeError
from dragoman.ir import ToolCall
from dragoman.ir.notes import Extra, inner_extra
from dragoman.ir.values import parse_json
from dragoman.losses import LossLog


class Function(Wire, frozen=True):
    name: str
    arguments: Raw | UnsetType = UNSET


class CallRecord(Wire, frozen=True):
    """A call in either shape; the key `function` distinguishes them."""

    id: str | None | UnsetType = UNSET
    name: str | UnsetType = UNSET
    arguments: Raw | UnsetType = UNSET
    type: str | UnsetType = UNSET
    function: Function | UnsetType = UNSET


class CallStyle(NamedTuple):
    """How one format writes its calls."""

    family: str
    bag: str
    """The key for opaque vendor data."""
    nested: bool = False
    id: str = "id"


def decode_call(wire: CallRecord, style: CallStyle, pairing: Pairing, place: str) -> ToolCall:
    function = wire.function
    nested = function is not UNSET
    notes: Extra = {} if wire.extra is UNSET else dict(wire.extra)
    if nested != style.nested:
        notes["~nested"] = as_json(nested)
    if function is not UNSET:
        if wire.type is UNSET:
            notes["~untyped"] = TRUE
        name, arguments = function.name, function.arguments
        for key, beside in (("name", wire.name), ("arguments", wire.arguments)):
            if beside is not UNSET:
                notes[key] = as_json(beside)
        notes.update((keep(style.family, UNSET, function=function.extra) or {style.family: {}})[style.family])
    elif wire.name is not UNSET:
        if wire.type is not UNSET:
            notes["~raw:type"] = as_json(wire.type)
        name, arguments = wire.name, wire.arguments
    else:
        raise DecodeError(path=place, expected="a call with name or function", got="neither", source=style.family)
    held, text = read_given(arguments, notes, place, style.family, as_text=nested)
    call_id, invented = pairing.call(wire.id, name, place, notes)
    signature = take_signature(notes, style.bag)
    metadata = {style.family: notes} if notes else None
    return ToolCall(call_id, name, held, text, invented_id=invented, signature=signature, metadata=metadata)


def read_given(
    arguments: Raw | UnsetType, notes: Extra, place: str, source: str, *, as_text: bool
) -> tuple[Raw | UnsetType, str | None]:
    """Return (arguments, exact text). Notes if they are an object or text where the shape has the other by default."""
    if arguments is UNSET or bytes(arguments) == b"null":
        notes["~arguments"] = as_json("absent" if arguments is UNSET else "null")
        return EMPTY_OBJECT, None
    first = bytes(arguments)[:1]
    if first == b"{":
        if as_text:
            notes["~arguments"] = as_json("object")
        return unwrap_arguments(arguments)
    if first != b'"':
        got = type(parse_json(arguments)).__name__
        raise DecodeError(path=f"{place}.arguments", expected="object or JSON text", got=got, source=source)
    if not as_text:
        notes["~arguments"] = as_json("text")
    text: str = parse_json(arguments)
    return read_arguments(text), text


def spelled_arguments(call: ToolCall, notes: Extra, *, as_text: bool) -> Any:
    given = notes.get("~arguments")
    word = None if given is None else parse_json(given)
    if word in {"absent", "null"}:
        return UNSET if word == "absent" else None
    as_text = as_text if word is None else word == "text"
    return arguments_as_text(call, native=True) if as_text and not call.custom else arguments_as_object(call)


def encode_call(call: ToolCall, style: CallStyle, log: LossLog) -> Raw:
    notes: Extra = (call.metadata or {}).get(style.family, {})
    nested = style.nested != ("~nested" in notes)
    fields: dict[str, Any] = {}
    call_id = spelled_id(call.id, notes)
    if call_id is not UNSET:
        fields[style.id] = call_id
    arguments = spelled_arguments(call, notes, as_text=nested)
    described: dict[str, Any] = {"name": call.name}
    if arguments is not UNSET:
        described["arguments"] = arguments
    if nested:
        if "~untyped" not in notes:
            fields["type"] = "function"
        fields["function"] = spliced(as_json(described), inner_extra(notes, "function") or {})
    else:
        fields |= described
    put_signature(fields, call.signature, style.bag, notes)
    report_call(call, log)
    return spliced(as_json(fields), notes)


def report_call(call: ToolCall, log: LossLog) -> None:
    """Report what no record has a key for."""
    if call.cache is not None:
        log.drop(call, "cache", "cache mark", "a stored call has none")
    if call.custom:
        log.degrade(call, "", f"call of the custom tool {call.name!r}", "stored with its text as the argument `input`")
    if call.incomplete:
        log.drop(call, "incomplete", "the mark of a call that was cut", "a stored call has none")
