"""Wraps values of a format in a request body, and maps paths in that body back to paths in the value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw

from dragoman.codecs.layout import Envelope, Layout
from dragoman.codecs.reading import body_bytes, check_text
from dragoman.errors import DecodeError
from dragoman.ir import Request
from dragoman.ir.values import encode_json
from dragoman.single_values.values import WireInputs
from dragoman.translate import decode_request

_read_object = msgspec.json.Decoder(dict[str, Raw]).decode
_read_list = msgspec.json.Decoder(list[Raw]).decode


class Item(NamedTuple):
    """One JSON value of the input: its path there, its exact bytes, and its keys (none for other values)."""

    path: str
    raw: Raw
    keys: Mapping[str, Raw]


class Wrapped(NamedTuple):
    """A request body around the input, and the position of each piece in it."""

    body: bytes
    places: tuple[tuple[str, str], ...]
    """(path in the body, path in the input), the longest first."""


def read_bytes(value: WireInputs, source: str) -> bytes:
    """The input as JSON bytes."""
    data = body_bytes(value, source)
    check_text(data, source)
    return data


def read_items(data: bytes, source: str, expected: str) -> tuple[Item, ...]:
    """The input as a list of objects: a single object is a list of one."""
    try:
        is_list = data.lstrip()[:1] == b"["
        items = [("$", Raw(data))]
        if is_list:
            items = [(f"$[{index}]", raw) for index, raw in enumerate(_read_list(data))]
        return tuple(Item(path, raw, _keys(raw, path, source, expected)) for path, raw in items)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise DecodeError(path="$", expected="JSON", got=str(error), source=source) from error


def _keys(raw: Raw, path: str, source: str, expected: str) -> Mapping[str, Raw]:
    try:
        return _read_object(raw)
    except msgspec.ValidationError as error:
        got = str(error).partition("got ")[2] or str(error)
        raise DecodeError(path=path, expected=expected, got=got.strip("`"), source=source) from error


def in_envelope(item: Item, envelope: Envelope | None) -> tuple[Raw, str]:
    """The item in its outer object, and the path from there to the item."""
    if envelope is None or envelope.inner not in item.keys or any(key in item.keys for key in envelope.seen):
        return item.raw, ""
    return Raw(encode_json({**dict(envelope.beside), envelope.key: item.raw})), f".{envelope.key}"


def wrap_messages(
    items: Sequence[Item],
    layout: Layout,
    *,
    holder: tuple[str, str] | None,
    envelope: Envelope | None,
    before: Sequence[Raw] = (),
) -> Wrapped:
    """A body with these messages. Items that are not messages are put into a message of `holder` (role, key)."""
    messages: list[Raw] = list(before)
    pending: list[Raw] = []
    places: list[tuple[str, str]] = []
    for item in items:
        if holder is None or any(sign in item.keys for sign in layout.message_signs):
            _close(messages, pending, holder)
            places.append((f"$.{layout.messages}[{len(messages)}]", item.path))
            messages.append(item.raw if holder is not None else in_envelope(item, envelope)[0])
        else:
            raw, within = in_envelope(item, envelope)
            places.append((f"$.{layout.messages}[{len(messages)}].{holder[1]}[{len(pending)}]{within}", item.path))
            pending.append(raw)
    _close(messages, pending, holder)
    return Wrapped(encode_json({layout.messages: messages}), _longest_first(places))


def _close(messages: list[Raw], pending: list[Raw], holder: tuple[str, str] | None) -> None:
    if pending and holder is not None:
        messages.append(Raw(encode_json({"role": holder[0], holder[1]: pending})))
        pending.clear()


def wrap_tools(items: Sequence[Item], layout: Layout) -> Wrapped:
    tools: list[Raw] = []
    places: list[tuple[str, str]] = []
    path = "$." + ".".join(layout.tools)
    for item in items:
        raw, within = in_envelope(item, layout.tool_envelope)
        if layout.declarations is not None and "name" in item.keys:
            raw, within = Raw(encode_json({layout.declarations: [item.raw]})), f".{layout.declarations}[0]"
        places.append((f"{path}[{len(tools)}]{within}", item.path))
        tools.append(raw)
    return Wrapped(_with_member(layout, layout.tools, tools), _longest_first(places))


def wrap_choice(raw: Raw, keys: Mapping[str, Raw], layout: Layout) -> Wrapped:
    outer, within = in_envelope(Item("$", raw, keys), layout.choice_envelope if keys else None)
    path = "$." + ".".join(layout.tool_choice)
    return Wrapped(_with_member(layout, layout.tool_choice, outer), ((path + within, "$"),))


def _with_member(layout: Layout, path: Sequence[str], value: Any) -> bytes:
    """A body without messages, with this member."""
    for key in reversed(path):
        value = {key: value}
    return encode_json({layout.messages: [], **value})


def _longest_first(places: list[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(places, key=lambda place: len(place[0]), reverse=True))


def read_wrapped(wrapped: Wrapped, source: str) -> Request:
    """The body as its codec reads it. Errors name paths in the input."""
    try:
        return decode_request(wrapped.body, source)
    except DecodeError as error:
        path = _path_in_input(error.path, wrapped.places)
        raise type(error)(path=path, expected=error.expected, got=error.got, source=error.source) from error


def _path_in_input(path: str, places: Sequence[tuple[str, str]]) -> str:
    for wrapped, given in places:
        if path == wrapped or path.startswith((f"{wrapped}.", f"{wrapped}[")):
            return given + path.removeprefix(wrapped)
    return path
