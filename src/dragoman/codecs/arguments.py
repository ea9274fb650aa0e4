"""Conversion between argument text and argument objects, for all formats."""

from __future__ import annotations

from msgspec import UNSET, Raw, UnsetType, structs

from dragoman.errors import DecodeError
from dragoman.ir import AnyPart, FinishReason, ToolCall
from dragoman.ir.values import EMPTY_OBJECT, compact_text, encode_json, exact_json, read_arguments, to_raw
from dragoman.losses import LossLog

__all__ = [
    "EMPTY_OBJECT",
    "UNPARSED_KEY",
    "arguments_as_object",
    "arguments_as_text",
    "cut_short",
    "opening_arguments",
    "read_arguments",
    "read_object",
    "report_unparsed",
    "unwrap_arguments",
    "unwrap_fragment",
]

_LINE_BREAK, _BACKSLASH = b"\n\\"
_NOTHING = ("", "null")

UNPARSED_KEY = "unparsed_arguments"
"""Object formats carry text that is not a JSON object as {"unparsed_arguments": text}; it comes back as text."""
_WRAPPER = f'{{"{UNPARSED_KEY}":'


def arguments_as_text(call: ToolCall, *, native: bool = False) -> str:
    """Return the arguments for formats with JSON text: the exact text if there was one, else the object as spelled.

    Some servers write no arguments as `null` or as no text at all. Only their own format (`native`) gets that back:
    clients of others parse the text, and expect an object.
    """
    text = call.arguments_text
    if text is not None and not call.custom:
        is_usual = native or text[:1] == "{" or call.incomplete or call.arguments_held is UNSET
        return text if is_usual or text.strip() not in _NOTHING else "{}"
    arguments = call.arguments_held
    if type(arguments) is Raw:
        data = bytes(arguments)
        # Searching for a single byte is much faster than searching for a string.
        if _LINE_BREAK in data or (_BACKSLASH in data and b"\\u" in data):
            return compact_text(arguments)
        return data.decode()
    return "" if arguments is UNSET else compact_text(arguments)


def opening_arguments(call: ToolCall) -> str:
    """Return the arguments that a stream writes when the call begins; empty if they follow as fragments."""
    text = call.arguments_text
    if text == "" or call.custom:
        return text or ""
    return arguments_as_text(call) if call.parsed or text else ""


def arguments_as_object(call: ToolCall) -> Raw:
    """Return the arguments for formats with an object: the exact one, or a reversible wrapper of unparsable text."""
    arguments = call.arguments_held
    if arguments is UNSET:
        return Raw(encode_json({UNPARSED_KEY: call.arguments_text or ""}))
    return to_raw(arguments)


def report_unparsed(call: ToolCall, log: LossLog) -> None:
    """Report arguments that are not a JSON object: object formats get them in a wrapper, which the model sees."""
    log.degrade(
        call,
        "arguments",
        "arguments that are not a JSON object",
        f"wrapped as {UNPARSED_KEY}: this API requires an object",
    )


def cut_short(parts: tuple[AnyPart, ...], reason: FinishReason | None) -> tuple[AnyPart, ...]:
    """Mark the last part as incomplete if it is a call inside which the answer reached its token limit."""
    last = parts[-1] if parts and reason == "length" else None
    if type(last) is not ToolCall or last.parsed:
        return parts
    return (*parts[:-1], structs.replace(last, incomplete=True))


def unwrap_arguments(raw: Raw) -> tuple[Raw | UnsetType, str | None]:
    """Undo `arguments_as_object`; return (arguments, exact text)."""
    data = bytes(raw)
    if data.startswith(b'{"unparsed_arguments":'):
        value = ToolCall("", "", raw).arguments
        if len(value) == 1 and isinstance(value[UNPARSED_KEY], str):
            return UNSET, value[UNPARSED_KEY]
    return raw, None


def read_object(raw: Raw, path: str, source: str) -> tuple[Raw | UnsetType, str | None]:
    """Apply `unwrap_arguments` to a value that must be an object."""
    if bytes(memoryview(raw)[:1]) != b"{":
        got = bytes(raw)[:40].decode("utf-8", "replace")
        raise DecodeError(path=path, expected="object", got=got, source=source)
    return unwrap_arguments(raw)


def unwrap_fragment(text: str) -> str:
    """Undo the wrapper in a stream, where it comes complete in the first fragment of its call."""
    if text.startswith(_WRAPPER):
        parsed = exact_json(text)
        inner = None if parsed is None else unwrap_arguments(parsed)[1]
        return text if inner is None else inner
    return text
