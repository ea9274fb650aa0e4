"""Typed output within a run: the tool that takes the answer, validators, and values while they come in."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from dragoman.agent.setup import Validator
from dragoman.agent.tools import BadArguments, Tool, ToolContext
from dragoman.drivers.typed_output import TOOL_NAME, BadOutput, Output

_STEP = 16
_SHARE = 20
"""A partial value is read after each 16 further characters, or each further twentieth of a long text: linear cost."""
_OPENING = {"{": "}", "[": "]"}


class Accepted(Struct, frozen=True):
    """What the output tool returns: the value of the run."""

    value: Any


def output_tool(output: Output[Any], validators: Sequence[Validator]) -> Tool:
    """The tool whose arguments are the answer."""

    def decode(given: Any) -> dict[str, Any]:
        try:
            return {"value": output.decode(given)}
        except BadOutput as error:
            raise BadArguments(str(error)) from None

    async def run(arguments: dict[str, Any], _context: ToolContext) -> Accepted:
        return Accepted(await validated(arguments["value"], validators))

    return Tool(definition=output.definition, run=run, decode=decode, read_only=True, ends_run=True, keeps_output=False)


async def validated(value: Any, validators: Sequence[Validator]) -> Any:
    for validator in validators:
        value = validator(value)
        if inspect.isawaitable(value):
            value = await value
    return value


def is_output_tool(name: str) -> bool:
    return name == TOOL_NAME


# ── values while they come in ─────────────────────────────────────────────────────────────────────────────────


class PartialReader:
    """Reads values of the output type from the beginning of a JSON text. Incomplete last elements are left out."""

    def __init__(self, output: Output[Any]) -> None:
        self._output = output
        self._pieces: list[str] = []
        self._length = 0
        self._next = 1
        self._last: Any = UNSET

    def feed(self, piece: str) -> Any | UnsetType:
        """The value so far, if it is one and differs from the one before; else UNSET."""
        self._pieces.append(piece)
        self._length += len(piece)
        if self._length < self._next:
            return UNSET
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
    """The text closed so that it may be JSON: as far as it goes, then without its last, unfinished elements."""
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
    whole = text[start : len(text) - escaped] + '"' if in_string else text[start:]
    return [
        whole + "".join(reversed(closers)),
        *(text[start:place] + "".join(reversed(closers[:depth])) for place, depth in reversed(cuts[-most:])),
    ]
