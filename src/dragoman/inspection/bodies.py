"""Describes values of the intermediate format as trees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import UNSET

from dragoman.codecs.settings import SETTING_NAMES
from dragoman.inspection.tree import Node
from dragoman.ir import (
    AnyPart,
    AnyTool,
    Audio,
    Cache,
    Citation,
    Completion,
    CustomTool,
    Document,
    Failure,
    Finish,
    Image,
    Media,
    Message,
    Metadata,
    Opaque,
    Reasoning,
    ReasoningSettings,
    Refusal,
    Request,
    SearchResult,
    ServerToolCall,
    ServerToolResult,
    Signature,
    StructuredOutput,
    Text,
    ToolCall,
    ToolDefinition,
    ToolResult,
    Usage,
)
from dragoman.ir.values import compact_text
from dragoman.terminal import Style

_SETTINGS = tuple(
    name for name in SETTING_NAMES if name not in {"model", "tool_choice", "reasoning", "output", "cache"}
)
"""Settings shown as `name: value`; the others have lines of their own."""


class Pairs:
    """Which calls have results and which results have calls, by id."""

    def __init__(self, messages: Iterable[Message], *, answer: bool) -> None:
        self._answer = answer
        self._calls: dict[str, int] = {}
        self._results: Counter[str] = Counter()
        self._answered_in: dict[str, int] = {}
        for index, message in enumerate(messages):
            for part in message.parts:
                if isinstance(part, ToolCall):
                    self._calls.setdefault(part.id, index)
                elif isinstance(part, ToolResult):
                    self._results[part.tool_call_id] += 1
                    self._answered_in.setdefault(part.tool_call_id, index)

    def call_notes(self, call: ToolCall) -> tuple[str, str]:
        """Remark and warning: calls of an answer have no results yet, calls of a history should have them."""
        if call.id in self._answered_in:
            return f"{call.id} → answered in [{self._answered_in[call.id]}]", ""
        return call.id, "" if self._answer else "no result"

    def result_notes(self, result: ToolResult) -> tuple[str, str]:
        identity = result.tool_call_id
        if identity not in self._calls:
            return identity, "no such call"
        times = self._results[identity]
        return f"{identity} ← called in [{self._calls[identity]}]", f"one of {times} results" if times > 1 else ""


# ── roots ─────────────────────────────────────────────────────────────────────────────────────────────────────


def describe_request(request: Request, format_name: str) -> Node:
    calls = sum(len(message.tool_calls) for message in request.messages)
    root = Node(
        f"{format_name} request",
        _join(
            f"model {request.model}" if request.model is not None else "no model named",
            _count(len(request.messages), "message"),
            _count(calls, "call") if calls else "",
            _count(len(request.tools), "tool") if request.tools else "",
        ),
        style="bold",
    )
    _add_settings(root, request)
    if request.tools:
        tools = root.add(Node("tools", style="cyan"))
        tools.children += map(_tool, request.tools)
    _add_messages(root, request.messages, Pairs(request.messages, answer=False))
    _add_metadata(root, request.metadata)
    return root


def describe_completion(completion: Completion, format_name: str) -> Node:
    root = Node(
        f"{format_name} response",
        _join(f"model {completion.model}" if completion.model is not None else "", completion.id or ""),
        style="bold",
    )
    pairs = Pairs(completion.messages, answer=True)
    finishes = completion.finishes or (completion.finish,)
    if len(completion.messages) > 1 and len(finishes) == len(completion.messages):
        for index, (message, finish) in enumerate(zip(completion.messages, finishes, strict=True)):
            candidate = root.add(Node(f"candidate {index}", style="cyan"))
            candidate.add(_message(index, message, pairs))
            candidate.children += describe_finish(finish)
    else:
        _add_messages(root, completion.messages, pairs)
        root.children += describe_finish(completion.finish)
    root.children += describe_usage(completion.usage)
    _add_metadata(root, completion.metadata)
    return root


def describe_failure(failure: Failure, format_name: str) -> Node:
    root = Node(f"{format_name} error", failure.message, style="bold")
    for name in ("kind", "status", "code", "raw_type", "parameter", "retry_after", "request_id"):
        value = getattr(failure, name)
        if value is not None:
            root.add(Node(name, str(value), style="cyan"))
    if failure.details is not None:
        root.add(Node("details", _json(failure.details), style="cyan"))
    _add_metadata(root, failure.metadata)
    return root


# ── settings and tools ────────────────────────────────────────────────────────────────────────────────────────


def _add_settings(root: Node, request: Request) -> None:
    settings = Node("settings", style="cyan")
    for name in _SETTINGS:
        value = getattr(request, name)
        if value is not None and value != ():
            settings.add(Node(name, _json(value)))
    choice = request.tool_choice
    if choice is not None:
        names = f": {', '.join(choice.names)}" if choice.names else ""
        settings.add(Node("tool_choice", choice.mode + names, _private(choice.metadata)))
    if request.reasoning is not None:
        settings.add(Node("reasoning", _reasoning_settings(request.reasoning), _private(request.reasoning.metadata)))
    if request.output is not None:
        settings.add(Node("output", _output(request.output), _private(request.output.metadata)))
    if request.cache is not None:
        settings.add(Node("cache", request.cache.ttl or "default lifetime"))
    if settings.children:
        root.add(settings)


def _reasoning_settings(settings: ReasoningSettings) -> str:
    return _join(
        settings.mode or "",
        f"effort {settings.effort}" if settings.effort is not None else "",
        f"at most {settings.budget_tokens} tokens" if settings.budget_tokens is not None else "",
        {True: "visible", False: "hidden", None: ""}[settings.visible],
    )


def _output(output: StructuredOutput) -> str:
    if output.kind == "json":
        return "any JSON object"
    return _join(
        f"JSON Schema {output.name or ''}".rstrip() + _parameters(output.schema), "strict" if output.strict else ""
    )


def _tool(tool: AnyTool) -> Node:
    if isinstance(tool, ToolDefinition):
        remark = _join("strict" if tool.strict else "", _cache_remark(tool.cache), _private(tool.metadata))
        return Node(tool.name + _parameters(tool.parameters), tool.description or "", remark)
    if isinstance(tool, CustomTool):
        return Node(f"{tool.name}(free text)", tool.description or "", _join("custom", _private(tool.metadata)))
    return Node(tool.name, remark=_join(f"run or defined by {tool.origin}", _cache_remark(tool.cache)))


def _parameters(schema: Any) -> str:
    """`(location, unit?)`: the properties of a JSON Schema, optional ones with a question mark."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict):
        return "()"
    required = schema.get("required")
    needed = required if isinstance(required, list) else []
    return f"({', '.join(name if name in needed else name + '?' for name in properties)})"


# ── messages and parts ────────────────────────────────────────────────────────────────────────────────────────


def _add_messages(root: Node, messages: Sequence[Message], pairs: Pairs) -> None:
    for index, message in enumerate(messages):
        root.add(_message(index, message, pairs))


_ROLES: Mapping[str, Style] = {"system": "yellow", "user": "cyan", "assistant": "blue", "tool": "green"}


def _message(index: int, message: Message, pairs: Pairs) -> Node:
    remark = _join(f"name {message.name}" if message.name is not None else "", _private(message.metadata))
    node = Node(f"[{index}] {message.role}", remark=remark, style=_ROLES.get(message.role, "cyan"))
    node.children += (_part(part, pairs) for part in message.parts)
    if not node.children:
        node.add(Node("empty", style="dim"))
    return node


def describe_part(part: AnyPart) -> Node:
    """A part of an answer by itself."""
    return _part(part, Pairs((), answer=True))


def _part(part: AnyPart, pairs: Pairs) -> Node:
    if isinstance(part, ToolCall):
        return _call(part, pairs)
    if isinstance(part, ToolResult):
        return _result(part, pairs)
    return _DESCRIBED[type(part)](part)


def _text(part: Text) -> Node:
    remark = _join(_signature_remark(part.signature), _cache_remark(part.cache), _private(part.metadata))
    node = Node("text", _quote(part.text), remark)
    node.children += map(_citation, part.citations)
    return node


def _citation(citation: Citation) -> Node:
    where = citation.url or citation.title or citation.cited_text or ""
    return Node("cites", where, _private(citation.metadata), style="dim")


def _reasoning(part: Reasoning) -> Node:
    remark = _join(_signature_remark(part.signature), _private(part.metadata))
    return Node("redacted reasoning" if part.redacted else "reasoning", _quote(part.text), remark, style="magenta")


def _refusal(part: Refusal) -> Node:
    return Node("refusal", _quote(part.text), _private(part.metadata), style="yellow")


def _media(part: Media) -> Node:
    name = {Image: "image", Document: "document", Audio: "audio"}.get(type(part), "media")
    remark = _join(_signature_remark(part.signature), _cache_remark(part.cache), _private(part.metadata))
    return Node(name, _join(part.media_type or "", _where(part), _media_details(part)), remark, style="blue")


def _where(part: Media) -> str:
    if part.data is not None:
        padding = part.data[-2:].count("=")
        return _bytes(max(len(part.data) * 3 // 4 - padding, 0))
    if part.url is not None:
        return part.url
    if part.file_id is not None:
        return f"file {part.file_id}"
    text = part.text if isinstance(part, Document) else None
    return _bytes(len(text.encode())) if text is not None else ""


def _media_details(part: Media) -> str:
    if isinstance(part, Image):
        return f"detail {part.detail}" if part.detail is not None else ""
    if isinstance(part, Document):
        return _quote(part.title) if part.title is not None else ""
    return _quote(part.transcript) if isinstance(part, Audio) and part.transcript is not None else ""


def _call(call: ToolCall, pairs: Pairs) -> Node:
    paired, unpaired = pairs.call_notes(call)
    remark = _join(
        paired,
        "id invented" if call.invented_id else "",
        "custom" if call.custom else "",
        _signature_remark(call.signature),
        _cache_remark(call.cache),
        _private(call.metadata),
    )
    broken = "" if call.parsed else "arguments are not a JSON object"
    warning = _join(unpaired, broken, "cut off" if call.incomplete else "")
    return Node(f"call {call.name}", _arguments(call), remark, warning, style="green")


def _arguments(call: ToolCall) -> str:
    arguments = call.arguments_held
    if call.custom or arguments is UNSET:
        return _quote(call.arguments_text or "")
    return _json(arguments)


def _result(result: ToolResult, pairs: Pairs) -> Node:
    paired, unpaired = pairs.result_notes(result)
    remark = _join(paired, _cache_remark(result.cache), _private(result.metadata))
    if result.is_error:
        node = Node(f"error {result.name}", "", remark, unpaired, style="red")
    else:
        node = Node(f"result {result.name}, {result.kind}", "", remark, unpaired, style="green")
    if result.parts:
        node.children += (_DESCRIBED[type(part)](part) for part in result.parts)
        return node
    value = result.value_held
    node.text = _quote(value) if isinstance(value, str) else _json(value)
    return node


def _server_call(part: ServerToolCall) -> Node:
    remark = _join(part.id, f"run by {part.origin}", _signature_remark(part.signature), _private(part.metadata))
    return Node(f"server call {part.name}", _json(part.block), remark, style="green")


def _server_result(part: ServerToolResult) -> Node:
    remark = _join(part.tool_call_id, f"from {part.origin}", _signature_remark(part.signature), _private(part.metadata))
    return Node(f"server result {part.name}", _json(part.block), remark, style="green")


def _search_result(part: SearchResult) -> Node:
    remark = _join(part.source, "to be cited" if part.cite else "")
    return Node(f"search result {part.title}", "\n".join(part.texts), remark)


def _opaque(part: Opaque) -> Node:
    remark = _join(f"only {part.origin} understands it", _signature_remark(part.signature))
    return Node(f"block {part.kind}", _json(part.block), remark, style="yellow")


_DESCRIBED: dict[type, Callable[[Any], Node]] = {
    Text: _text,
    Reasoning: _reasoning,
    Refusal: _refusal,
    Image: _media,
    Document: _media,
    Audio: _media,
    ServerToolCall: _server_call,
    ServerToolResult: _server_result,
    SearchResult: _search_result,
    Opaque: _opaque,
}


# ── how it ended ──────────────────────────────────────────────────────────────────────────────────────────────


def describe_finish(finish: Finish | None) -> Iterable[Node]:
    if finish is None:
        return
    stopped = f"at {finish.stop_sequence!r}" if finish.stop_sequence is not None else ""
    raw = f"reported as {finish.raw}" if finish.raw is not None and finish.raw != finish.reason else ""
    yield Node("finish", finish.reason, _join(raw, stopped, _private(finish.metadata)), style="cyan")


def describe_usage(usage: Usage | None) -> Iterable[Node]:
    if usage is None:
        return
    inside = _join(*(_tokens(usage, name) for name in ("cached", "cache_written")))
    written = _join(*(_tokens(usage, name) for name in ("reasoning", "image")))
    text = _join(
        f"input {usage.input}" + (f" ({inside})" if inside else ""),
        f"output {usage.output}" + (f" ({written})" if written else ""),
        _tokens(usage, "total"),
    )
    yield Node("usage", text, _private(usage.metadata), style="cyan")


def _tokens(usage: Usage, name: str) -> str:
    value = getattr(usage, name)
    return "" if value is None else f"{name.replace('_', ' ')} {value}"


# ── text ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _add_metadata(root: Node, metadata: Metadata | None) -> None:
    for family, entries in (metadata or {}).items():
        wire = {key: entry for key, entry in entries.items() if not key.startswith("~")}
        if not wire:
            continue
        node = root.add(Node(f"{family} only", style="yellow"))
        node.children += (Node(key, _json(entry)) for key, entry in wire.items())


def _private(metadata: Metadata | None) -> str:
    """Keys that only one family understands, without spelling notes."""
    named = [
        f"{family} only: {', '.join(keys)}"
        for family, entries in (metadata or {}).items()
        if (keys := [key for key in entries if not key.startswith("~")])
    ]
    return "; ".join(named)


def _signature_remark(signature: Signature | None) -> str:
    return "" if signature is None else f"signed by {signature.family or 'unknown'}"


def _cache_remark(cache: Cache | None) -> str:
    return "" if cache is None else f"cache mark {cache.ttl or ''}".rstrip()


def _json(value: Any) -> str:
    try:
        return compact_text(value)
    except RecursionError:  # it was carried without being parsed
        return "(nested too deeply to show)"


def _join(*words: str) -> str:
    return ", ".join(word for word in words if word)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _quote(text: str) -> str:
    return f'"{text}"' if text else '""'


_KILO = 1000


def _bytes(number: int) -> str:
    if number < _KILO:
        return f"{number} bytes"
    size = number / _KILO
    return f"{size:.1f} kB" if size < _KILO else f"{size / _KILO:.1f} MB"
