"""Structure-aware mutation: JSON stays JSON, streams stay streams, until an operator breaks them on purpose.

Random bytes rarely get past a JSON parser. These operators change one value, key, element, event or number of a valid
body, so that most mutants reach the code behind the parser. A few break the text itself: bad UTF-8, a lone
surrogate, numbers that no machine type holds.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import msgspec

Container: TypeAlias = Any
_MARK = "@@raw:{}@@"
_MARKED = re.compile(rb'"@@raw:(\d+)@@"')

RAW: tuple[bytes, ...] = (
    b"1e999",
    b"-1e999",
    b"1e-999",
    b"1.0",
    b"-0",
    b"-0.0",
    b"9" * 40,
    b"9e999999999999999999999",
    b"9" * 5_000,
    b"0.1e1",
    b"NaN",
    b'"\\ud800"',
    b'"\\udc00x"',
    b'"\xff\xfe"',
    b'"\xed\xa0\x80"',
    b'"\\u0000"',
    b"[" * 60 + b"]" * 60,
    b'{"a":' * 60 + b"1" + b"}" * 60,
    b"[" * 1_500 + b"]" * 1_500,
    b'{"a":1,"a":2}',
    b"tru",
    b"",
)
"""JSON text (and what is almost JSON) that Python values cannot spell."""

VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    5,
    2**31,
    2**63,
    2**64,
    10**30,
    1.0,
    1.5,
    -1.5,
    1e308,
    "",
    " ",
    "1",
    "text",
    "\u0000",
    "é🦀",
    "user",
    "assistant",
    "tool",
    "system",
    "function",
    "auto",
    "null",
    "{}",
    '{"a":1}',
    "{",
    "data:image/png;base64,AAAA",
    "https://[",
    "x" * 300,
    [],
    [None],
    [[]],
    [{}],
    [1, "a", None],
    {},
    {"type": "text"},
    {"type": None},
    {"type": {}},
    {"type": "text", "text": "x"},
    {"type": "function", "function": {"name": "f", "arguments": "{}"}},
    {"": {}},
    {"~raw:x": 1, "~": 2, "~in:function": 3},
    {"$ref": "#"},
    {"$ref": "#/$defs/a"},
    *(_MARK.format(place) for place in range(len(RAW))),
)

KEYS = ("type", "id", "index", "name", "text", "content", "role", "extra", "unknown_key", "~in:function", "", "a" * 80)

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder(decimal_format="number").encode


def written(value: Any) -> bytes:
    """The JSON text of a mutated value; marks become the raw text they stand for."""
    data = _encode(value)
    return _MARKED.sub(lambda mark: RAW[int(mark[1])], data) if b"@@raw:" in data else data


def _fresh(value: Any) -> Any:
    """A copy, because operators change values in place."""
    return _decode(_encode(value)) if type(value) in (dict, list) else value


def slots(value: Any) -> list[tuple[Container, Any]]:
    """Every place within a JSON value, as its container and its key or index."""
    found: list[tuple[Container, Any]] = []
    waiting = [value] if type(value) in (dict, list) else []
    while waiting:
        holder = waiting.pop()
        entries = holder.items() if type(holder) is dict else enumerate(holder)
        for key, inner in entries:
            found.append((holder, key))
            if inner and (type(inner) is dict or type(inner) is list):
                waiting.append(inner)
    return found


# ── operators on one JSON value ───────────────────────────────────────────────────────────────────────────────

Operator: TypeAlias = Callable[[random.Random, list[tuple[Container, Any]], Sequence[Any]], None]


def _replace(chance: random.Random, places: list[tuple[Container, Any]], _others: Sequence[Any]) -> None:
    holder, key = chance.choice(places)
    holder[key] = _fresh(chance.choice(VALUES))


def _remove(chance: random.Random, places: list[tuple[Container, Any]], _others: Sequence[Any]) -> None:
    holder, key = chance.choice(places)
    del holder[key]


def _repeat(chance: random.Random, places: list[tuple[Container, Any]], _others: Sequence[Any]) -> None:
    holder, key = chance.choice(places)
    if type(holder) is list:
        holder.insert(key, holder[key])
    else:
        holder[key] = [holder[key], holder[key]]


def _wrap(chance: random.Random, places: list[tuple[Container, Any]], _others: Sequence[Any]) -> None:
    holder, key = chance.choice(places)
    holder[key] = [holder[key]] if chance.random() < 0.5 else {chance.choice(KEYS): holder[key]}


def _unwrap(chance: random.Random, places: list[tuple[Container, Any]], _others: Sequence[Any]) -> None:
    holder, key = chance.choice(places)
    inner = holder[key]
    if inner and type(inner) in (dict, list):
        holder[key] = chance.choice(list(inner.values() if type(inner) is dict else inner))


def _add_key(chance: random.Random, places: list[tuple[Container, Any]], others: Sequence[Any]) -> None:
    holder, _ = chance.choice(places)
    value = _fresh(chance.choice(VALUES))
    if type(holder) is dict:
        known = chance.choice(others) if others else None
        name = chance.choice(list(known)) if type(known) is dict and known else chance.choice(KEYS)
        holder[name] = value
    else:
        holder.append(value)


def _rename(chance: random.Random, places: list[tuple[Container, Any]], _others: Sequence[Any]) -> None:
    holder, key = chance.choice(places)
    if type(holder) is dict:
        holder[chance.choice((*KEYS, *holder))] = holder.pop(key)


def _swap(chance: random.Random, places: list[tuple[Container, Any]], _others: Sequence[Any]) -> None:
    (one, first), (other, second) = chance.choice(places), chance.choice(places)
    if one is other:  # within one container, so that no value comes to hold itself
        one[first], one[second] = one[second], one[first]


def _graft(chance: random.Random, places: list[tuple[Container, Any]], others: Sequence[Any]) -> None:
    """A value of another body in the place of one of this body."""
    holder, key = chance.choice(places)
    if others:
        strange = slots(chance.choice(others))
        if strange:
            other, place = chance.choice(strange)
            holder[key] = _fresh(other[place])


def _stringify(chance: random.Random, places: list[tuple[Container, Any]], _others: Sequence[Any]) -> None:
    holder, key = chance.choice(places)
    if not isinstance(holder[key], str):
        holder[key] = _encode(holder[key]).decode()


def _spoil_text(chance: random.Random, places: list[tuple[Container, Any]], _others: Sequence[Any]) -> None:
    texts = [(holder, key) for holder, key in places if type(holder[key]) is str]
    if texts:
        holder, key = chance.choice(texts)
        text = holder[key]
        cut = chance.randrange(len(text) + 1)
        holder[key] = text[:cut] + chance.choice(("", "\u0000", "é", '"', "\\", "{", "\r\n\r\n", "\u2028")) + text[cut:]


OPERATORS: tuple[Operator, ...] = (
    _replace,
    _replace,
    _replace,
    _remove,
    _remove,
    _repeat,
    _wrap,
    _unwrap,
    _add_key,
    _rename,
    _swap,
    _graft,
    _graft,
    _stringify,
    _spoil_text,
)


def mutate_value(value: Any, chance: random.Random, others: Sequence[Any] = ()) -> Any:
    """The value after one to eight operators, most often one or two; it is changed in place where it can be."""
    for _ in range(chance.choice((1, 1, 1, 2, 2, 3, 5, 8))):
        places = slots(value) if type(value) in (dict, list) else []
        if not places:
            return _fresh(chance.choice(VALUES))
        chance.choice(OPERATORS)(chance, places, others)
    return value


# ── operators on bytes ────────────────────────────────────────────────────────────────────────────────────────


def mutate_bytes(data: bytes, chance: random.Random) -> bytes:
    """The data cut, with a byte changed, a piece repeated or a piece removed."""
    if not data:
        return bytes([chance.randrange(256)])
    start = chance.randrange(len(data))
    end = min(len(data), start + chance.choice((1, 2, 8, 40)))
    return chance.choice(
        (
            data[:start],
            data[:start] + bytes([chance.randrange(256)]) + data[start + 1 :],
            data[:end] + data[start:end] + data[end:],
            data[:start] + data[end:],
            data[:start] + chance.choice((b"\xff", b"\x00", b'"', b"{", b"\n", b"\r", b"\\")) + data[start:],
        )
    )


def mutate_json(data: bytes, chance: random.Random, others: Sequence[Any] = ()) -> bytes:
    """One mutant of a JSON text."""
    if chance.random() < 0.06:
        return mutate_bytes(data, chance)
    try:
        value = _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return mutate_bytes(data, chance)
    return written(mutate_value(value, chance, others))


_PAYLOAD = re.compile(rb"(?P<lead>[^{]*)(?P<json>\{.*\})(?P<tail>[^}]*)", re.DOTALL)


def mutate_events(data: bytes, chance: random.Random, others: Sequence[Any] = (), *, separator: bytes) -> bytes:
    """One mutant of a stream: an event is changed, removed, repeated or moved, or the bytes themselves are broken."""
    if chance.random() < 0.06:
        return mutate_bytes(data, chance)
    events = data.split(separator)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        _change_event(events, chance, others)
    return separator.join(events)


def _change_event(events: list[bytes], chance: random.Random, others: Sequence[Any]) -> None:
    place = chance.randrange(len(events))
    choice = chance.random()
    if choice < 0.08 and len(events) > 1:
        del events[place]
    elif choice < 0.14:
        events.insert(place, events[place])
    elif choice < 0.20:
        other = chance.randrange(len(events))
        events[place], events[other] = events[other], events[place]
    else:
        events[place] = _PAYLOAD.sub(
            lambda found: found["lead"] + mutate_json(found["json"], chance, others) + found["tail"], events[place], 1
        )
