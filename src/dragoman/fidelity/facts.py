"""Facts about each feature, read from a value of the intermediate format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TypeVar

from msgspec import Raw

from dragoman.codecs.shared_tools import hosted_text
from dragoman.fidelity.cases import DecodedStream
from dragoman.ir import (
    AnyPart,
    Completion,
    Media,
    Message,
    ProviderTool,
    Reasoning,
    Refusal,
    Request,
    SearchResult,
    ServerToolCall,
    ServerToolResult,
    Text,
    ToolCall,
    ToolChoice,
    ToolDefinition,
    ToolResult,
    Usage,
)
from dragoman.ir.values import compact_text, exact_json, parse_json

VALIDATED = "VALIDATED"
"""What Gemini calls a choice whose calls must follow their schemas."""

P = TypeVar("P", bound=AnyPart)


class HasMessages(Protocol):
    """Requests, completions and streams alike."""

    @property
    def messages(self) -> tuple[Message, ...]: ...


def parts(exchange: HasMessages, kind: type[P]) -> Iterator[P]:
    return (part for message in exchange.messages for part in message.parts if isinstance(part, kind))


def _assistant_parts(exchange: HasMessages) -> Iterator[AnyPart]:
    return (part for message in exchange.messages if message.role == "assistant" for part in message.parts)


# ── calls ─────────────────────────────────────────────────────────────────────────────────────────────────────


def calls(exchange: HasMessages) -> object:
    return [(call.name, call.arguments if call.parsed else call.arguments_text) for call in parts(exchange, ToolCall)]


def calls_and_results(exchange: HasMessages) -> object:
    """Every call with the index of its result."""
    answered = [result.tool_call_id for result in parts(exchange, ToolResult)]
    places = [answered.index(call.id) if call.id in answered else None for call in parts(exchange, ToolCall)]
    return calls(exchange), places


def call_ids(exchange: HasMessages) -> object:
    invented = [call.id for call in parts(exchange, ToolCall) if call.invented_id]
    ids = [call.id for call in parts(exchange, ToolCall)] + [
        result.tool_call_id for result in parts(exchange, ToolResult)
    ]
    return [None if id in invented else id for id in ids]


def argument_text(exchange: HasMessages) -> object:
    """The exact arguments: order of keys, spelling of numbers and strings. White space between tokens is ignored."""
    texts = (exact_json(_exact_arguments(call)) for call in parts(exchange, ToolCall))
    return [compact_text(text) if text is not None else None for text in texts]


def _exact_arguments(call: ToolCall) -> str:
    if call.arguments_text is not None:
        return call.arguments_text
    arguments = call.arguments_held
    return bytes(arguments).decode() if type(arguments) is Raw else compact_text(arguments)


def unparsed_arguments(exchange: HasMessages) -> object:
    return [(call.parsed, call.arguments_text) for call in parts(exchange, ToolCall)]


def custom_calls(exchange: HasMessages) -> object:
    return [(call.name, call.custom, call.arguments_text) for call in parts(exchange, ToolCall)]


def server_calls(exchange: HasMessages) -> object:
    """What was run, and its result: the first page, or the first text."""
    return [_server_part_fact(part) for part in _server_parts(exchange)]


def _server_part_fact(part: ServerToolCall | ServerToolResult) -> object:
    if isinstance(part, ServerToolCall):
        return part.kind, (part.input or {}).get("query") or (part.input or {}).get("code")
    return part.kind, [source.url for source in part.sources], _texts(part.parts)


def hosted_words(exchange: HasMessages) -> object:
    """Whether a model can read what was run and its result."""
    hosted = [hosted_text(part) or "" for part in _server_parts(exchange)]
    text = "\n".join([message.text for message in exchange.messages] + hosted)
    return [word in text for word in ("rain", "https://example.org", "print(6*7)", "42")]


def _server_parts(exchange: HasMessages) -> Iterator[ServerToolCall | ServerToolResult]:
    both = (ServerToolCall, ServerToolResult)
    return (part for message in exchange.messages for part in message.parts if isinstance(part, both))


# ── results ───────────────────────────────────────────────────────────────────────────────────────────────────


def result_texts(exchange: HasMessages) -> object:
    """Texts of results; in a result that must be an object, any single key may hold the text."""
    return [(result.is_error, _only(result.value)) for result in parts(exchange, ToolResult)]


def _only(value: Any) -> Any:
    return next(iter(value.values())) if isinstance(value, dict) and len(value) == 1 else value


def result_values(exchange: HasMessages) -> object:
    return [_value(result) for result in parts(exchange, ToolResult)]


def _value(result: ToolResult) -> object:
    """The value, also if it is sent as JSON text."""
    exact = exact_json(result.value) if isinstance(result.value, str) else None
    return result.value if exact is None else parse_json(exact)


def result_errors(exchange: HasMessages) -> object:
    return [(result.is_error, result.value or _texts(result.parts)) for result in parts(exchange, ToolResult)]


def result_parts(exchange: HasMessages) -> object:
    return [[_text_or_medium(part) for part in result.parts] for result in parts(exchange, ToolResult)]


def _texts(inner: tuple[Any, ...]) -> str:
    return "".join(part.text for part in inner if isinstance(part, Text))


def _text_or_medium(part: Any) -> object:
    return part.text if isinstance(part, Text) else medium(part)


# ── content ───────────────────────────────────────────────────────────────────────────────────────────────────


def medium(part: Media) -> object:
    return type(part).__name__, part.media_type, part.data, part.url, getattr(part, "text", None)


def media(exchange: HasMessages) -> object:
    return [medium(part) for message in exchange.messages for part in message.parts if isinstance(part, Media)]


def image_urls(exchange: HasMessages) -> object:
    """URLs of images, without the optional media type."""
    return [part.url for message in exchange.messages for part in message.parts if isinstance(part, Media)]


def attribute(kind: type[Any], name: str) -> Callable[[HasMessages], object]:
    """The fact that is one field of the parts of a kind."""

    def read(exchange: HasMessages) -> object:
        found = (part for message in exchange.messages for part in message.parts if isinstance(part, kind))
        return [getattr(part, name) for part in found]

    return read


def conversation(exchange: HasMessages) -> object:
    """Roles and texts, in order."""
    return [(message.role, message.text) for message in exchange.messages]


def story(exchange: HasMessages) -> object:
    """What the assistant said and did, in order; neighbouring texts are one."""
    return _story(_assistant_parts(exchange))


def story_with_results(request: Request) -> object:
    """`story` with the results in it: what a model did before it read a result differs from what it did after."""
    return _story(
        part
        for message in request.messages
        for part in message.parts
        if message.role == "assistant" or isinstance(part, ToolResult)
    )


def _story(parts: Iterable[AnyPart]) -> list[tuple[str, object]]:
    pairs: list[tuple[str, object]] = []
    for part in parts:
        kind, content = _part_fact(part)
        if kind == "ToolResult" and pairs and pairs[-1][0] == kind:
            continue
        if kind in {"Text", "Reasoning"} and pairs and pairs[-1][0] == kind:
            pairs[-1] = (kind, f"{pairs[-1][1]}{content}")
        elif content != "":
            pairs.append((kind, content))
    return pairs


def _part_fact(part: AnyPart) -> tuple[str, object]:
    match part:
        case Text() | Reasoning() | Refusal():
            return type(part).__name__, part.text
        case ToolCall():
            return "ToolCall", (part.name, part.arguments if part.parsed else part.arguments_text)
    return type(part).__name__, None


def names(exchange: HasMessages) -> object:
    return [message.name for message in exchange.messages]


def reasoning(exchange: HasMessages) -> object:
    return [part.text for part in parts(exchange, Reasoning)]


def signatures(exchange: HasMessages) -> object:
    """Signatures that must be returned, each with its part."""
    signed = ((part, getattr(part, "signature", None)) for part in _assistant_parts(exchange))
    return [(_part_fact(part)[0], signature.data) for part, signature in signed if signature is not None]


def redacted_reasoning(exchange: HasMessages) -> object:
    return [(part.redacted, part.signature and part.signature.data) for part in parts(exchange, Reasoning)]


def refusals(exchange: HasMessages) -> object:
    return [part.text for part in parts(exchange, Refusal)]


def citations(exchange: HasMessages) -> object:
    return [[(cited.url, cited.title) for cited in part.citations] for part in parts(exchange, Text)]


def cache_marks(exchange: HasMessages) -> object:
    return [
        (index, getattr(part, "cache", None))
        for index, message in enumerate(exchange.messages)
        for part in message.parts
        if getattr(part, "cache", None) is not None
    ]


# ── requests ──────────────────────────────────────────────────────────────────────────────────────────────────


def search_results(exchange: HasMessages) -> object:
    """Source, title and texts of every search result."""
    return [(one.source, one.title, one.texts) for one in parts(exchange, SearchResult)]


def end_user(request: Request) -> object:
    """The end user: some APIs have one field for both uses."""
    return request.safety_identifier or request.user


def setting(name: str) -> Callable[[Request], object]:
    """The fact that is one field of the request."""
    return lambda request: getattr(request, name)


def tool_names(request: Request) -> object:
    return [tool.name for tool in request.tools], [call.name for call in parts(request, ToolCall)]


def strictness(request: Request) -> object:
    """Strictness of each tool; of all tools if the choice enforces the schemas."""
    is_validated = VALIDATED in compact_text((request.tool_choice and request.tool_choice.metadata) or {})
    return [tool.strict or is_validated for tool in request.tools if isinstance(tool, ToolDefinition)]


def parameters(request: Request) -> object:
    return [tool.parameters for tool in request.tools if isinstance(tool, ToolDefinition)]


def resolved_parameters(request: Request) -> object:
    """Parameters with references resolved, because inlining does not change the meaning."""
    return [_resolve(tool.parameters, tool.parameters) for tool in request.tools if isinstance(tool, ToolDefinition)]


def _resolve(schema: Any, root: Any) -> Any:
    if isinstance(schema, list):
        return [_resolve(inner, root) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    if isinstance(schema.get("$ref"), str):
        return _resolve(root["$defs"][schema["$ref"].rpartition("/")[2]], root)
    return {key: _resolve(inner, root) for key, inner in schema.items() if key != "$defs"}


def tools(request: Request) -> object:
    return [(type(tool).__name__, tool.name) for tool in request.tools]


def declared_names(request: Request) -> object:
    return [tool.name for tool in request.tools]


def hosted_tools(request: Request) -> object:
    return [
        (
            tool.kind,
            tool.allowed_domains,
            tool.blocked_domains,
            tool.location,
            tool.context_size,
            tool.stores,
            tool.server_url,
            tool.allowed_tools,
        )
        for tool in request.tools
        if isinstance(tool, ProviderTool)
    ]


def hosted_uses(request: Request) -> object:
    """How often the one hosted tool of a request may run, in any field."""
    uses = [tool.max_uses for tool in request.tools if isinstance(tool, ProviderTool)]
    return [request.max_tool_calls if one is None else one for one in uses]


def deferred_tools(request: Request) -> object:
    return [(tool.name, tool.deferred) for tool in request.tools if isinstance(tool, ToolDefinition)]


def choice(request: Request) -> object:
    chosen = request.tool_choice or ToolChoice("auto")
    return chosen.mode, sorted(chosen.names)


def output(request: Request) -> object:
    wanted = request.output
    return None if wanted is None else (wanted.kind, wanted.schema)


def effort(request: Request) -> object:
    return request.reasoning.effort if request.reasoning is not None else None


def budget(request: Request) -> object:
    return request.reasoning.budget_tokens if request.reasoning is not None else None


def reasoning_mode(request: Request) -> object:
    return request.reasoning.mode if request.reasoning is not None else None


def private(*keys: str) -> Callable[[Request | Completion], object]:
    """Returns a function that reads the values of keys that only one family knows."""

    def read(exchange: Request | Completion) -> object:
        values = [entries[key] for entries in (exchange.metadata or {}).values() for key in keys if key in entries]
        return [parse_json(value) if type(value) is Raw else value for value in values]

    return read


# ── answers ───────────────────────────────────────────────────────────────────────────────────────────────────


def finish(answer: Completion | DecodedStream) -> object:
    return answer.finish.reason if answer.finish is not None else None


def stop_sequence(answer: Completion | DecodedStream) -> object:
    return answer.finish.stop_sequence if answer.finish is not None else None


def usage(*counted: str) -> Callable[[Completion | DecodedStream], object]:
    """The fact that is some of the counts; none and zero are the same, and a total that is missing is the sum."""
    return lambda answer: [_count(answer.usage, name) for name in counted] if answer.usage is not None else None


def _count(counts: Usage, name: str) -> int:
    counted: int | None = getattr(counts, name)
    return counts.input + counts.output if name == "total" and counted is None else counted or 0


def logprobs(answer: Completion | DecodedStream) -> object:
    """Of every token: its text, how likely it was, and which others were likely."""
    return [
        (one.candidate, token.token, token.logprob, [(top.token, top.logprob) for top in token.top_logprobs])
        for one in answer.logprobs
        for token in one.tokens
    ]


def candidates(answer: Completion | DecodedStream) -> object:
    return [message.text for message in answer.messages]


def identity(answer: Completion) -> object:
    """Id and model; a prefix that the API requires is ignored."""
    return (answer.id or "").removeprefix("msg_"), answer.model


def failure(stream: DecodedStream) -> object:
    return (stream.failure.kind, stream.failure.message) if stream.failure is not None else None


def truncation(stream: DecodedStream) -> object:
    """Whether it failed, and which calls a client could mistake for complete."""
    complete = [call.id for call in parts(stream, ToolCall) if not call.incomplete]
    return stream.failure is not None, complete
