"""Long tool outputs: stored whole under a reference, cut in the context, read again piece by piece.

The reference and the mark travel as `output_ref` and `trimmed` of the agent-sdk record format; no provider sees them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import UNSET, Raw, Struct, structs

from dragoman.agent.graphemes import cut_before
from dragoman.agent.output_stores import MemoryStore, OutputStore
from dragoman.agent.output_tools import output_tools
from dragoman.agent.result_text import result_text
from dragoman.agent.threads import in_thread
from dragoman.agent.tools import Content, Tool
from dragoman.ir import Message, Text, ToolResult
from dragoman.ir.values import encode_json, note

FAMILY = "agent-sdk"
_REFERENCE = "~raw:output_ref"
_TRIMMED = "~raw:trimmed"
_UNSAFE = re.compile(r"[^a-zA-Z0-9_-]")
LIMIT = 50 * 1024
_CONTINUATION = range(0b1000_0000, 0b1100_0000)  # UTF-8: every byte of a character except its first


class OutputRef(Struct, frozen=True, omit_defaults=True):
    """Where a whole output is stored. Sizes that a record does not state stay absent."""

    id: str
    byte_size: int | None = None
    line_count: int | None = None


class UnknownOutput(LookupError):
    """The store has no output under this reference: never stored there, or evicted by newer ones."""


def output_ref(result: ToolResult) -> OutputRef | None:
    """Return where the whole output is stored."""
    reference = note(result.metadata, FAMILY, _REFERENCE)
    reference = note(result.metadata, FAMILY, "output_ref") if reference is UNSET else reference
    if not isinstance(reference, dict) or not isinstance(reference.get("id"), str):
        return None
    return OutputRef(reference["id"], reference.get("byte_size"), reference.get("line_count"))


def is_trimmed(result: ToolResult) -> bool:
    """Return whether the context has less than the whole output."""
    return True in (note(result.metadata, FAMILY, _TRIMMED), note(result.metadata, FAMILY, "trimmed"))


def expand_output(result: ToolResult, store: OutputStore) -> ToolResult:
    """Return the result with its whole output, through its `output_ref`; unchanged if it was not trimmed.

    Raises `UnknownOutput` if there is no reference, or nothing under it.
    """
    if not is_trimmed(result):
        return result
    reference = output_ref(result)
    text = None if reference is None else store.load(reference.id)
    if text is None:
        named = "no reference" if reference is None else f"reference {reference.id!r}"
        raise UnknownOutput(f"the output of call {result.tool_call_id!r} is trimmed, and {named} has the rest")
    own = {key: entry for key, entry in (result.metadata or {})[FAMILY].items() if key not in {_TRIMMED, "trimmed"}}
    expanded = structs.replace(result, metadata={**(result.metadata or {}), FAMILY: own})
    if result.parts:
        others = tuple(part for part in result.parts if not isinstance(part, Text))
        return structs.replace(expanded, parts=(Text(text), *others))
    return structs.replace(expanded, kind="error" if result.is_error else "text", value=text)


class OutputCache:
    """Stores outputs, and returns what goes into the context.

    `limit` bytes of each output stay in the context. `budget`, if given, limits all of them together: beyond it the
    oldest are replaced by placeholders. (Off by default, because it invalidates providers' prompt caches.)
    """

    def __init__(self, store: OutputStore | None = None, *, limit: int = LIMIT, budget: int | None = None) -> None:
        self._store: OutputStore = MemoryStore() if store is None else store
        self._limit = limit
        self._budget = budget
        self._tools = output_tools(self._store)
        self._offers = False

    def notice(self, messages: Iterable[Message]) -> None:
        """Look for trimmed outputs in a history that came from elsewhere."""
        self._offers = self._offers or any(is_trimmed(one) for message in messages for one in _results(message))

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The reading tools, as soon as there is something to read; from then on always."""
        return self._tools if self._offers else ()

    def expand(self, result: ToolResult) -> ToolResult:
        """Return the result with its whole output from the store (see `expand_output`)."""
        return expand_output(result, self._store)

    async def for_context(self, result: ToolResult) -> ToolResult:
        """Return the result as it enters the context. If the store fails, the rest is lost but the run continues."""
        text = result_text(result)
        reference = await self._try_to_save(result.tool_call_id, text)
        size = len(text.encode("utf-8", "surrogatepass"))
        cut = self._cut(result, text, reference) if size > self._limit else result
        self._offers = self._offers or (cut is not result and reference is not None)
        if reference is None:
            return cut
        return _with_reference(cut, OutputRef(reference, size, _lines(text)), trimmed=cut is not result)

    def within_budget(self, messages: Sequence[Message]) -> list[Message] | None:
        """Return the history with the oldest outputs replaced; None if all fit. The newest always stay."""
        if self._budget is None:
            return None
        places = [index for index, message in enumerate(messages) if _results(message)]
        sizes = {index: sum(map(_size, _results(messages[index]))) for index in places}
        excess = sum(sizes.values()) - self._budget
        changed = list(messages)
        for index in places[:-1]:
            if excess <= 0:
                break
            smaller = tuple(_placeholder(one) for one in changed[index].tool_results)
            excess -= sizes[index] - sum(map(_size, smaller))
            if smaller != changed[index].tool_results:
                changed[index] = structs.replace(changed[index], parts=smaller)
                self._offers = True
        return changed if any(new is not old for new, old in zip(changed, messages, strict=True)) else None

    async def _try_to_save(self, call_id: str, text: str) -> str | None:
        try:
            return await in_thread(self._save, call_id, text) if self._store.blocks else self._save(call_id, text)
        except Exception:  # noqa: BLE001 - the run continues, however the store fails
            return None

    def _save(self, call_id: str, text: str) -> str:
        reference = base = _UNSAFE.sub("_", call_id) or "output"
        repetition = 1
        while self._store.load(reference) is not None:
            repetition += 1
            reference = f"{base}_{repetition}"
        self._store.save(reference, text)
        return reference

    def _cut(self, result: ToolResult, text: str, reference: str | None) -> ToolResult:
        if result.parts:
            return _cut_parts(result, self._limit, reference)
        kind: Any = "error" if result.is_error else "text"
        return structs.replace(result, kind=kind, value=_cut_text(text, self._limit, reference))


def _results(message: Message) -> tuple[ToolResult, ...]:
    return message.tool_results if message.role == "tool" else ()


def _lines(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n")) if text else 0


def _size(result: ToolResult) -> int:
    """Return the bytes of the result's text, without building the text if possible."""
    value = result.value_held
    if type(value) is Raw and not result.parts:
        return len(memoryview(value))
    text = result_text(result)
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _cut_text(text: str, limit: int, reference: str | None) -> str:
    """Return whole lines up to the limit; a first line longer than that is cut between characters."""
    head = _first_bytes(text, limit)
    end = head.rfind("\n") + 1
    shown = head[:end] if end else head[: cut_before(text, len(head))]
    rest = (
        f'the whole output has the reference "{reference}": read it with tool_output_read or tool_output_grep'
        if reference is not None
        else "the rest could not be stored"
    )
    ending = "" if shown.endswith("\n") else "\n"
    return f"{shown}{ending}[output cut: {_lines(shown)} of {_lines(text)} lines shown; {rest}]"


def _first_bytes(text: str, limit: int) -> str:
    data = text.encode("utf-8", "surrogatepass")
    while 0 < limit < len(data) and data[limit] in _CONTINUATION:  # in the middle of a character
        limit -= 1
    return data[:limit].decode("utf-8", "surrogatepass")


def _cut_parts(result: ToolResult, limit: int, reference: str | None) -> ToolResult:
    """Keep pictures and files; texts share the limit in their order."""
    parts: list[Content] = []
    for part in result.parts:
        if not isinstance(part, Text):
            parts.append(part)
            continue
        size = len(part.text.encode("utf-8", "surrogatepass"))
        text = _cut_text(part.text, limit, reference) if size > limit else part.text
        parts.append(structs.replace(part, text=text) if len(text) < len(part.text) else part)
        limit = max(limit - size, 0)
    cut = tuple(parts)
    return structs.replace(result, parts=cut) if cut != result.parts else result


def _placeholder(result: ToolResult) -> ToolResult:
    reference = output_ref(result)
    if reference is None:
        return result
    lines = "" if reference.line_count is None else f" of {reference.line_count} lines"
    text = f'[output{lines} removed to save room; read it again with tool_output_read, reference "{reference.id}"]'
    if len(text) >= _size(result) and not result.parts:
        return result
    kind: Any = "error" if result.is_error else "text"
    return _with_reference(structs.replace(result, kind=kind, value=text, parts=()), reference, trimmed=True)


def _with_reference(result: ToolResult, reference: OutputRef, *, trimmed: bool) -> ToolResult:
    own = dict((result.metadata or {}).get(FAMILY, {}))
    own[_REFERENCE] = Raw(encode_json(reference))
    if trimmed:
        own[_TRIMMED] = Raw(b"true")
    return structs.replace(result, metadata={**(result.metadata or {}), FAMILY: own})
