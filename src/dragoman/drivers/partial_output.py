"""Values of an output type while they come in: read from the beginning of a JSON text."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from dragoman.drivers.typed_output import TOOL_NAME, BadOutput, Output, OutputMode
from dragoman.ir import AnyEvent, PartDelta, PartEnd, PartStart, Text, ToolCall

_STEP = 16
_SHARE = 20
"""A partial value is read after each 16 further characters, or each further twentieth of a long text: linear cost."""
_OPENING = {"{": "}", "[": "]"}


class PartialValues:
    """Follows the events of an answer and returns each new value of its text, or of the call of the output tool."""

    def __init__(self, output: Output[Any], mode: OutputMode) -> None:
        self._output = output
        self._in_call = mode == "tool"
        self._readers: dict[int, PartialReader] = {}

    def feed(self, event: AnyEvent) -> Any | UnsetType:
        """The value so far, if this event changed it; else UNSET."""
        if isinstance(event, PartEnd):
            reader = self._readers.get(event.index)
            return UNSET if reader is None else reader.finish()
        if isinstance(event, PartStart):
            text = self._on_start(event)
        elif isinstance(event, PartDelta):
            text = event.text
        else:
            return UNSET
        reader = self._readers.get(event.index) if text else None
        return UNSET if reader is None else reader.feed(text)

    def _on_start(self, event: PartStart) -> str:
        part = event.part
        has_output = part.name == TOOL_NAME if isinstance(part, ToolCall) else isinstance(part, Text)
        if event.candidate or not has_output or isinstance(part, ToolCall) != self._in_call:
            return ""
        self._readers[event.index] = PartialReader(self._output)
        return part.text if isinstance(part, Text) else ""


class PartialReader:
    """Reads values of the output type from the beginning of a JSON text. Incomplete last elements are left out."""

    def __init__(self, output: Output[Any]) -> None:
        self._output = output
        self._pieces: list[str] = []
        self._length = 0
        self._next = 1
        self._last: Any = UNSET

    def feed(self, piece: str) -> Any | UnsetType:
        """The value so far; UNSET if the text is not a value yet, or if the value has not changed."""
        self._pieces.append(piece)
        self._length += len(piece)
        return UNSET if self._length < self._next else self._read()

    def finish(self) -> Any | UnsetType:
        """The value at the end of the text; UNSET if it has not changed."""
        return self._read()

    def _read(self) -> Any | UnsetType:
        text = "".join(self._pieces)
        self._pieces = [text]
        self._next = self._length + max(_STEP, self._length // _SHARE)
        found = self._value(text)
        if isinstance(found, UnsetType) or found == self._last:
            return UNSET
        self._last = found
        return found

    def _value(self, text: str) -> Any | UnsetType:
        for candidate in completions(text):
            try:
                return self._output.decode(msgspec.json.decode(candidate))
            except (msgspec.DecodeError, BadOutput, RecursionError):
                continue
        return UNSET


def completions(text: str, most: int = 4) -> list[str]:
    """Ways to close the text so that it may be JSON: first all of it, then without its last, unfinished elements."""
    start = next((place for place, letter in enumerate(text) if letter in _OPENING), None)
    if start is None:
        return []
    closers: list[str] = []
    cuts: list[tuple[int, int]] = []
    """Where the text may be cut, and how many closers are then needed."""
    in_string = escaped = False
    for place in range(start, len(text)):
        letter = text[place]
        if in_string:
            in_string = escaped or letter != '"'
            escaped = not escaped and letter == "\\"
        elif letter == '"':
            in_string = True
        elif letter in _OPENING:
            closers.append(_OPENING[letter])
            cuts.append((place + 1, len(closers)))
        elif letter == ",":
            cuts.append((place, len(closers)))
        elif letter in "}]" and closers:
            closers.pop()
            if not closers:
                return [text[start : place + 1]]
            while cuts and cuts[-1][1] > len(closers):
                cuts.pop()
    text_so_far = text[start : len(text) - escaped] + '"' if in_string else text[start:]
    return [
        text_so_far + "".join(reversed(closers)),
        *(text[start:place] + "".join(reversed(closers[:depth])) for place, depth in reversed(cuts[-most:])),
    ]
