"""From bytes to typed wire values, without losing what the types do not have.

Wire structs forbid unknown fields, so the ordinary body is decoded once, at full speed. A body that fails that first
decode is read with wider structs: documented keys that few bodies have, then variants of the structs that also accept
null, snake_case for camelCase and rare keys of other servers (codecs/loose_structs.py). What no struct documents (a
future key, a future block type) is *lifted*: it moves into the `extra` of its own object, and the rest is decoded as
before. Only a body that still does not fit is an error, and the error names the path.
"""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, Generic, TypeAlias, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, structs

from dragoman.codecs.loose_structs import LooseDecoder
from dragoman.codecs.sdk_objects import SdkObject, as_json_values
from dragoman.codecs.wire_values import EXTRA, UNKNOWN, Unmodelled, Wire
from dragoman.errors import DecodeError, LimitExceeded
from dragoman.ir.notes import MODELLED, RENAMED, SINGLE, WITHIN, Extra
from dragoman.ir.values import Metadata, encode_json

WireValue: TypeAlias = Any
"""A value that an encoder puts on the wire: a wire struct, or its exact bytes."""

MAX_BODY_BYTES = 256 << 20
"""Anthropic takes 32 MB, Gemini 20 MB inline; a stored conversation of 256 MB is a mistake or an attack."""

W = TypeVar("W")

_MOST_SINGLE_LIFTS = 3

_entries = msgspec.json.Decoder(dict[str, Raw]).decode
_items = msgspec.json.Decoder(list[Raw]).decode
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_ESCAPE = 6
"""Bytes of an escape such as \\ud83e."""
_MISSING = re.compile(r"Object missing required field `([^`]+)`")
_EXPECTED = re.compile(r"^Expected (?P<expected>.*), got (?P<got>.*)$", re.DOTALL)


class WireReader(Generic[W]):
    """Decodes one wire type.

    `wider` is a subclass of `kind` with keys that few bodies have, tried before anything is lifted. `aliases` maps
    other spellings of a key to the one the structs use; `untagged` is the type of an object without the tag that all
    structs of `kind` have; `lone_elements` reads an object as a list of one; `loose_numbers` reads 12.0 and "12" as 12.
    """

    def __init__(  # noqa: PLR0913 - options by name
        self,
        kind: type[W],
        source: str,
        *,
        wider: type[W] | None = None,
        aliases: Mapping[str, str] | None = None,
        untagged: type[W] | None = None,
        path: str = "$",
        lone_elements: bool = True,
        loose_numbers: bool = False,
    ) -> None:
        self._strict = msgspec.json.Decoder(kind)
        self._kind = kind if wider is None else wider
        self._widest = self._strict if wider is None else msgspec.json.Decoder(wider)
        self._source = source
        self._aliases = aliases or {}
        self._lift = _Lift(aliases or {}, lone_elements=lone_elements)
        self._loose = LooseDecoder(self._kind, aliases or {}, lone_elements=lone_elements)
        self._untagged = None if untagged is None else LooseDecoder(untagged, {}, lone_elements=False)
        self._path = path
        self._loose_numbers = msgspec.json.Decoder(kind, strict=False) if loose_numbers else None

    def read(self, body: bytes | Raw, path: str | None = None) -> W:
        """Decode a body; if it is a piece of one, `path` is the place that errors name."""
        if type(body) is bytes:  # a piece was checked with its whole body
            check_text(body, self._source)
        try:
            return self._strict.decode(body)
        except msgspec.ValidationError as error:
            if self._loose_numbers is not None:
                with suppress(msgspec.ValidationError):
                    return self._loose_numbers.decode(body)
            return self._read_wider(body, str(error), self._path if path is None else path)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise self._unreadable(error, body) from error

    def _read_wider(self, body: bytes | Raw, fault: str, path: str) -> W:
        """Try the wider struct, then the variants that accept nulls and other spellings; lift if neither fits."""
        loose = self._loose
        try:
            if self._untagged is not None and fault == _NO_TAG:
                loose = self._untagged
            elif self._widest is not self._strict and not loose.might_read(fault):
                try:
                    return self._widest.decode(body)
                except msgspec.ValidationError as error:
                    fault = str(error)
            if loose is self._untagged or loose.might_read(fault):
                try:
                    return loose.decode(body)
                except msgspec.ValidationError as error:
                    fault = str(error)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise self._unreadable(error, body) from error
        return self._read_lifted(body, fault, path)

    def _read_lifted(self, body: bytes | Raw, fault: str, path: str) -> W:
        """Lift the object that the decoder's message names, then the next one; after a few, the whole body at once.

        Most odd bodies have one or two odd objects. One with thousands must not be decoded thousands of times.
        """
        lifted = bytes(body)
        for _ in range(_MOST_SINGLE_LIFTS):
            try:
                found = self._lift.at(lifted, self._kind, _steps_to(fault))
                if found is None:
                    break
                lifted = found
                return self._widest.decode(lifted)
            except msgspec.ValidationError as error:
                fault = str(error)
            except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
                raise self._unreadable(error, body) from error
        try:
            return self._widest.decode(self._lift.value(body, self._kind))
        except msgspec.ValidationError as error:
            raise _misfit(_as_spelled(str(error), bytes(body), self._aliases), path, self._source) from error
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise self._unreadable(error, body) from error

    def _unreadable(self, error: Exception, body: bytes | Raw) -> DecodeError:
        return unreadable(error, bytes(body), self._source, self._path)


_NO_TAG = "Object missing required field `type`"


_STEP = re.compile(r"\.(?P<key>[^.\[\]]+)|\[(?P<index>\d+)\]")


def _split_fault(message: str) -> tuple[str, str]:
    """Split a decoder's message into its text and the path that it names."""
    what, found, path = message.rpartition(" - at `")
    return (what, path.removesuffix("`")) if found else (message, "$")


def _steps_to(fault: str) -> list[str | int]:
    """Return the path in a decoder's message as keys and indices; it ends early at a step without a name."""
    _, path = _split_fault(fault)
    steps: list[str | int] = []
    position = 1
    while (step := _STEP.match(path, position)) is not None:
        steps.append(step["key"] if step["index"] is None else int(step["index"]))
        position = step.end()
    return steps


def _as_spelled(fault: str, body: bytes, aliases: Mapping[str, str]) -> str:
    """Return the decoder's message with its path in the client's own body.

    Lifting gives keys their usual spelling and makes a list of a lone object, and the message names what it made.
    """
    what, path = _split_fault(fault)
    try:
        value = msgspec.json.decode(body)
    except MALFORMED:
        return fault
    spelled, position = "$", 1
    while (step := _STEP.match(path, position)) is not None:
        position = step.end()
        if step["index"] is not None:
            if isinstance(value, list):
                index = int(step["index"])
                value = value[index] if index < len(value) else None
                spelled += f"[{index}]"
            continue
        key = step["key"]
        if isinstance(value, dict):
            if key not in value:
                key = next((name for name in value if aliases.get(name) == key), key)
            value = value.get(key)
        spelled += f".{key}"
    return f"{what} - at `{spelled}{path[position:]}`"


def _lone_surrogate(data: bytes) -> re.Match[bytes] | None:
    """Find the first escape that is a lone surrogate. Only escapes are examined, not every byte."""
    waiting: re.Match[bytes] | None = None
    for found in _SURROGATE.finditer(data):
        before = found.start()
        while before and data[before - 1] == _BACKSLASH:
            before -= 1
        if (found.start() - before) % 2:  # an escaped backslash, then plain letters
            continue
        if waiting is not None and found.start() != waiting.start() + _ESCAPE:
            return waiting
        is_high = data[found.start() + 3] in b"89abAB"
        if is_high and waiting is not None:
            return waiting
        if not is_high and waiting is None:
            return found
        waiting = found if is_high else None
    return waiting


_BACKSLASH = ord("\\")


def check_text(data: bytes, source: str) -> None:
    """Raise an error for invalid UTF-8: the decoder does not check pieces that are passed on unparsed."""
    if not data.isascii():
        try:
            data.decode()
        except UnicodeDecodeError as error:
            raise DecodeError(path="$", expected="UTF-8 text", got=_faulty_text(error), source=source) from error


def _faulty_text(error: UnicodeError) -> str:
    """Return what is not UTF-8, without the words of Python's codecs."""
    if isinstance(error, UnicodeDecodeError):
        return f"the byte 0x{error.object[error.start]:02x} (byte {error.start})"
    return str(error)


MALFORMED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding a separate piece of a body raises if the piece does not follow its format."""


def unreadable(error: Exception, body: bytes, source: str, path: str = "$") -> DecodeError:
    """Return the typed error for a body that is not JSON."""
    if isinstance(error, RecursionError):
        return LimitExceeded(path=path, expected="JSON", got="nesting too deep to read", source=source)
    lone = None if isinstance(error, msgspec.ValidationError) else _lone_surrogate(body)
    if lone is not None:
        found = f"half of a surrogate pair, {lone[0].decode()}, at byte {lone.start()}"
        return DecodeError(path=path, expected="Unicode text", got=found, source=source)
    return DecodeError(path=path, expected="JSON", got=str(error), source=source)


def misread(error: Exception, source: str) -> DecodeError:
    """Return the typed error for a piece of a body that could not be read. Its path is within that piece."""
    if isinstance(error, RecursionError):
        return LimitExceeded(path="$", expected="JSON", got="nesting too deep to read", source=source)
    return _misfit(str(error), "$", source)


def _misfit(message: str, path: str, source: str) -> DecodeError:
    what, within = _split_fault(message)
    path += within.removeprefix("$")
    expected = _EXPECTED.match(what)
    if expected:
        return DecodeError(path=path, expected=expected["expected"], got=expected["got"], source=source)
    missing = _MISSING.fullmatch(what)
    if missing:
        got = "an object in which it is missing"
        return DecodeError(path=path, expected=f"the field `{missing[1]}`", got=got, source=source)
    return DecodeError(path=path, expected="a valid body", got=what, source=source)


_encode_any = msgspec.json.Encoder(enc_hook=as_json_values, decimal_format="number").encode

Body: TypeAlias = bytes | bytearray | memoryview | str | Mapping[str, Any] | list[Any] | SdkObject
"""A body as callers have it: JSON text, the parsed JSON, or an object of the vendor's SDK."""


def body_bytes(body: Body | Sequence[Any], source: str) -> bytes:
    """Return a body as bytes, from any form in which a caller may pass it.

    The reader of these bytes checks that they are text (`check_text`), so the usual body is scanned only once.
    """
    if type(body) is bytes and body[:1] == b"{" and len(body) <= MAX_BODY_BYTES:
        return body
    try:
        if isinstance(body, bytes):
            data = body
        elif isinstance(body, str):
            data = body.encode()
        elif isinstance(body, bytearray | memoryview):
            data = bytes(body)
        else:
            data = _encode_any(body)
        if len(data) > MAX_BODY_BYTES:
            raise LimitExceeded(
                path="$", expected=f"at most {MAX_BODY_BYTES} bytes", got=f"{len(data)} bytes", source=source
            )
        return data.removeprefix(b"\xef\xbb\xbf")
    except UnicodeError as error:
        raise DecodeError(path="$", expected="UTF-8 text", got=_faulty_text(error), source=source) from error
    except (TypeError, RecursionError, OverflowError) as error:
        raise DecodeError(path="$", expected="JSON values", got=str(error), source=source) from error


def fields_beyond(wider: type[Struct], narrower: type[Struct]) -> tuple[str, ...]:
    """Return the members of the struct for reading that the struct for writing does not have."""
    return tuple(name for name in wider.__struct_fields__ if name not in narrower.__struct_fields__)


def restore(value: Any) -> Any:
    """Return a wire value as it was written, with the extra keys of it and of the objects inside it."""
    if isinstance(value, list):
        return [restore(piece) for piece in value]
    if isinstance(value, Unmodelled):
        return value.raw
    if not isinstance(value, Wire):
        return value
    entries = [(name, getattr(value, name)) for name in value.__struct_fields__]
    inner = {name: restore(entry) for name, entry in entries if isinstance(entry, list | Wire)}
    return encode_with_extra(structs.replace(value, **inner) if inner else value)


def as_json(value: Any) -> Raw:
    return Raw(encode_json(value))


def encode_with_extra(wire: Wire) -> Raw:
    """Return a wire object with its own extra keys."""
    return spliced(wire, {} if wire.extra is UNSET else wire.extra)


def spliced(value: Struct | Raw, extra: Mapping[str, Any]) -> Raw:
    """Like `splice`, but return a `Raw` for use in a body."""
    return Raw(splice(value, extra))


def splice(value: Struct | Raw, extra: Mapping[str, Any]) -> bytes:
    """Encode the wire value with its extras: further keys, other spellings, lone elements.

    Notes of the codec itself (other keys that start with `~`) are not written.
    """
    if type(value) is Raw:
        body = bytes(value)
    else:
        if isinstance(value, Wire) and value.extra is not UNSET:
            value = structs.replace(value, extra=UNSET)
        body = encode_json(value)
    keys = {}
    is_respelled = False
    for key, entry in extra.items():
        # Few keys have the mark of a note, and searching for it is cheaper than slicing each.
        if "~" not in key or key[:1] != "~":
            keys[key] = entry
        elif key.startswith(MODELLED):
            keys[key.removeprefix(MODELLED)] = entry
        elif key.startswith((RENAMED, SINGLE)):
            is_respelled = True
    if is_respelled:
        body = _respell(body, extra)
    if not keys:
        return body
    tail = encode_json(keys)
    return tail if body == b"{}" else body[:-1] + b"," + tail[1:]


def _respell(body: bytes, extra: Mapping[str, Any]) -> bytes:
    """Return the object with the original spelling of its keys, and lone elements without their lists."""
    entries = {}
    for name, value in _entries(body).items():
        renamed = extra.get(RENAMED + name)
        key = msgspec.json.decode(renamed) if renamed is not None else name
        # A codec may write the only text in such a list as a string.
        items = _items(value) if SINGLE + name in extra and bytes(value)[:1] == b"[" else []
        entries[key] = items[0] if len(items) == 1 else value
    return encode_json(entries)


def keep(family: str, extra: Extra | UnsetType, **within: Extra | UnsetType) -> Metadata | None:
    """Return a node's metadata: its own extras, and those of inner objects that have no separate node."""
    kept: Extra = {} if extra is UNSET else dict(extra)
    for name, inner in within.items():
        if inner is not UNSET:
            kept[WITHIN + name] = Raw(encode_json(inner))
    return {family: kept} if kept else None


class _Lift:
    """Rewrites one body so that the strict decoder accepts it and nothing is lost."""

    def __init__(self, aliases: Mapping[str, str], *, lone_elements: bool) -> None:
        self._aliases = aliases
        self._lone_elements = lone_elements

    def value(self, raw: Raw | bytes, kind: Any) -> bytes:
        data = bytes(raw)
        plan = plan_of(kind)
        first = data.lstrip()[:1]
        if first == b"{" and (plan.structs or plan.tagged):
            return self._object(data, plan, _entries(data), deep=True)
        if plan.item is not None:
            if first == b"[":
                items = _items(data)
                return b"[" + b",".join(self.value(item, plan.item) for item in items) + b"]"
            if first == b"{" and self._lone_elements:
                # proto3 JSON allows a repeated field to be given as its single element, and so do some servers.
                return b"[" + self.value(data, plan.item) + b"]"
        return data

    def at(self, data: bytes, kind: Any, steps: list[str | int]) -> bytes | None:
        """Lift only the innermost object on this path, not what is inside it, and return the body.

        None if there is no such object, or it was lifted before.
        """
        plan = plan_of(kind)
        first = data.lstrip()[:1]
        if first == b"[" and plan.item is not None and steps and isinstance(steps[0], int):
            items = _items(data)
            further = steps[1:]
            inner = self.at(bytes(items[steps[0]]), plan.item, further)
            if inner is None:
                return None
            items[steps[0]] = Raw(inner)
            return encode_json(items)
        if first != b"{" or not (plan.structs or plan.tagged):
            return None
        entries = _entries(data)
        struct = struct_of(entries, plan)
        raw = entries.get(steps[0]) if steps and isinstance(steps[0], str) else None
        if struct is not None and raw is not None and steps[0] in fields_of(struct):
            inner = self.at(bytes(raw), fields_of(struct)[steps[0]], steps[1:])
            if inner is not None:
                entries[steps[0]] = Raw(inner)
                return encode_json(entries)
        return None if EXTRA in entries else self._object(data, plan, entries, deep=False)

    def _object(self, data: bytes, plan: _Plan, entries: dict[str, Raw], *, deep: bool) -> bytes:
        """Lift one object: keys that its struct lacks move to `extra`; `deep` also lifts what is inside it."""
        struct = struct_of(entries, plan)
        if struct is None:
            return encode_json({plan.tag_field: UNKNOWN, "raw": Raw(data)}) if plan.has_unknown else data
        known: dict[str, Raw] = {}
        extra: dict[str, Raw] = {}
        fields = fields_of(struct)
        for key, value in entries.items():
            if plan.tagged and key == plan.tag_field:
                known[key] = value
                continue
            name = key if key in fields else self._aliases.get(key, key)
            kind = fields.get(name)
            unwanted_null = kind is not None and bytes(value) == b"null" and not plan_of(kind).nullable
            if kind is None or name in known or unwanted_null:
                # A wire key that looks like one of our notes must not be read as one.
                extra[MODELLED + key if key.startswith("~") else key] = value
                continue
            if name != key:
                extra[RENAMED + name] = Raw(encode_json(key))
            known[name] = Raw(self._lift_member(name, value, kind, extra, deep=deep))
        if extra:
            known[EXTRA] = Raw(encode_json(extra))
        return encode_json(known)

    def _lift_member(self, name: str, raw: Raw, kind: Any, extra: dict[str, Raw], *, deep: bool) -> bytes:
        """Return the member's value for the decoder; note in `extra` if a lone element became a list."""
        lifted = self.value(raw, kind) if deep else self._as_list(bytes(raw), kind)
        if lifted[:1] == b"[" and bytes(raw).lstrip()[:1] == b"{":
            extra[SINGLE + name] = Raw(b"true")
        return lifted

    def _as_list(self, data: bytes, kind: Any) -> bytes:
        """Return a lone element as a list of one; anything else unchanged."""
        plan = plan_of(kind)
        is_element = self._lone_elements and plan.item is not None and not (plan.structs or plan.tagged)
        return b"[" + data + b"]" if is_element and data.lstrip()[:1] == b"{" else data


def struct_of(entries: Mapping[str, Raw], plan: _Plan) -> type[Struct] | None:
    """Return the struct that an object is read as; None for a tag that no struct has."""
    if not plan.tagged:
        return plan.structs
    tag = entries.get(plan.tag_field)
    if tag is None and len(plan.tagged) == 1:  # it can only be this struct, which is also decoded without a tag
        return next(iter(plan.tagged.values()))
    name = msgspec.json.decode(tag) if tag is not None else None
    return plan.tagged.get(name) if isinstance(name, str) else None


class _Plan:
    """What values a field's type allows, as far as lifting needs it."""

    __slots__ = ("has_unknown", "item", "nullable", "structs", "tag_field", "tagged")

    def __init__(self, kind: Any) -> None:
        members = get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)
        self.nullable = type(None) in members or Raw in members or Any in members
        self.item: Any = None
        self.structs: type[Struct] | None = None
        self.tagged: dict[str, type[Struct]] = {}
        self.tag_field = ""
        self.has_unknown = False
        for member in members:
            if get_origin(member) in (list, tuple):
                self.item = get_args(member)[0]
            elif isinstance(member, type) and issubclass(member, Struct):
                self._add_struct(member)

    def _add_struct(self, member: type[Struct]) -> None:
        config = member.__struct_config__
        if config.tag is None:
            self.structs = member
            return
        self.tag_field = config.tag_field or "type"
        if config.tag == UNKNOWN:
            self.has_unknown = True
        else:
            self.tagged[str(config.tag)] = member


@cache
def plan_of(kind: Any) -> _Plan:
    return _Plan(kind)


@cache
def fields_of(struct: type[Struct]) -> dict[str, Any]:
    hints = typing.get_type_hints(struct)
    return {
        encoded: hints[name]
        for name, encoded in zip(struct.__struct_fields__, struct.__struct_encode_fields__, strict=True)
        if name != "extra"
    }
