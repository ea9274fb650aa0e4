"""What there is to say of each feature, read from a value of the intermediate format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TypeVar

from msgspec import Raw

from dragoman.codecs.shared_tools import hosted_text
from dragoman.fidelity.cases import Heard
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
from dragoman.ir.parts import arguments_held
from dragoman.ir.values import compact_text, exact_json, parse_json

VALIDATED = "VALIDATED"
"""What Gemini calls a choice whose calls must follow their schemas."""

P = TypeVar("P", bound=AnyPart)


class Said(Protocol):
    """Requests, completions and streams alike."""

    @property
    def messages(self) -> tuple[Message, ...]: ...


def parts(said: Said, kind: type[P]) -> Iterator[P]:
    return (part for message in said.messages for part in message.parts if isinstance(part, kind))


def _of_the_assistant(said: Said) -> Iterator[AnyPart]:
    return (part for message in said.messages if message.role == "assistant" for part in message.parts)


# ── calls ─────────────────────────────────────────────────────────────────────────────────────────────────────


def calls(said: Said) -> object:
    return [(call.name, call.arguments if call.parsed else call.arguments_text) for call in parts(said, ToolCall)]


def calls_and_results(said: Said) -> object:
    """Every call with the place of its answer among the answers."""
    answered = [result.tool_call_id for result in parts(said, ToolResult)]
    places = [answered.index(call.id) if call.id in answered else None for call in parts(said, ToolCall)]
    return calls(said), places


def call_ids(said: Said) -> object:
    invented = [call.id for call in parts(said, ToolCall) if call.invented_id]
    ids = [call.id for call in parts(said, ToolCall)] + [result.tool_call_id for result in parts(said, ToolResult)]
    return [None if id in invented else id for id in ids]


def argument_text(said: Said) -> object:
    """The arguments to the letter: order of keys, spelling of numbers and strings. Blanks between them say nothing."""
    texts = (exact_json(_spelled(call)) for call in parts(said, ToolCall))
    return [compact_text(text) if text is not None else None for text in texts]


def _spelled(call: ToolCall) -> str:
    if call.arguments_text is not None:
        return call.arguments_text
    held = arguments_held(call)
    return bytes(held).decode() if type(held) is Raw else compact_text(held)


def unparsed(said: Said) -> object:
    return [(call.parsed, call.arguments_text) for call in parts(said, ToolCall)]


def custom_calls(said: Said) -> object:
    return [(call.name, call.custom, call.arguments_text) for call in parts(said, ToolCall)]


def server_calls(said: Said) -> object:
    """What was run, and what came of it: the first page, or the first text."""
    return [_of_server_part(part) for part in _server_parts(said)]


def _of_server_part(part: ServerToolCall | ServerToolResult) -> object:
    if isinstance(part, ServerToolCall):
        return part.kind, (part.input or {}).get("query") or (part.input or {}).get("code")
    return part.kind, [source.url for source in part.sources], _texts(part.parts)


def hosted_words(said: Said) -> object:
    """Whether a model can read what was run and what came of it."""
    hosted = [hosted_text(part) or "" for part in _server_parts(said)]
    told = "\n".join([message.text for message in said.messages] + hosted)
    return [word in told for word in ("rain", "https://example.org", "print(6*7)", "42")]


def _server_parts(said: Said) -> Iterator[ServerToolCall | ServerToolResult]:
    both = (ServerToolCall, ServerToolResult)
    return (part for message in said.messages for part in message.parts if isinstance(part, both))


# ── results ───────────────────────────────────────────────────────────────────────────────────────────────────


def result_texts(said: Said) -> object:
    """Where a result must be an object, any one key may hold the text."""
    return [(result.is_error, _only(result.value)) for result in parts(said, ToolResult)]


def _only(value: Any) -> Any:
    return next(iter(value.values())) if isinstance(value, dict) and len(value) == 1 else value


def result_values(said: Said) -> object:
    return [_value(result) for result in parts(said, ToolResult)]


def _value(result: ToolResult) -> object:
    """The value, also where it travels as JSON text."""
    exact = exact_json(result.value) if isinstance(result.value, str) else None
    return result.value if exact is None else parse_json(exact)


def result_errors(said: Said) -> object:
    return [(result.is_error, result.value or _texts(result.parts)) for result in parts(said, ToolResult)]


def result_parts(said: Said) -> object:
    return [[_shown(part) for part in result.parts] for result in parts(said, ToolResult)]


def _texts(inner: tuple[Any, ...]) -> str:
    return "".join(part.text for part in inner if isinstance(part, Text))


def _shown(part: Any) -> object:
    return part.text if isinstance(part, Text) else medium(part)


# ── content ───────────────────────────────────────────────────────────────────────────────────────────────────


def medium(part: Media) -> object:
    return type(part).__name__, part.media_type, part.data, part.url, getattr(part, "text", None)


def media(said: Said) -> object:
    return [medium(part) for message in said.messages for part in message.parts if isinstance(part, Media)]


def image_urls(said: Said) -> object:
    """A type beside an address is a courtesy."""
    return [part.url for message in said.messages for part in message.parts if isinstance(part, Media)]


def attribute(kind: type[Any], name: str) -> Callable[[Said], object]:
    """The fact that is one field of the parts of a kind."""

    def read(said: Said) -> object:
        found = (part for message in said.messages for part in message.parts if isinstance(part, kind))
        return [getattr(part, name) for part in found]

    return read


def conversation(said: Said) -> object:
    """Who said what, in order."""
    return [(message.role, message.text) for message in said.messages]


def story(said: Said) -> object:
    """What the assistant said and did, in order; neighbouring texts are one."""
    return _story(_of_the_assistant(said))


def story_with_results(asked: Request) -> object:
    """The same, and where results stand in it: what a model did before it read a result, it did not do after it."""
    return _story(
        part
        for message in asked.messages
        for part in message.parts
        if message.role == "assistant" or isinstance(part, ToolResult)
    )


def _story(parts: Iterable[AnyPart]) -> list[tuple[str, object]]:
    told: list[tuple[str, object]] = []
    for part in parts:
        kind, content = _told(part)
        if kind == "ToolResult" and told and told[-1][0] == kind:
            continue
        if kind in {"Text", "Reasoning"} and told and told[-1][0] == kind:
            told[-1] = (kind, f"{told[-1][1]}{content}")
        elif content != "":
            told.append((kind, content))
    return told


def _told(part: AnyPart) -> tuple[str, object]:
    match part:
        case Text() | Reasoning() | Refusal():
            return type(part).__name__, part.text
        case ToolCall():
            return "ToolCall", (part.name, part.arguments if part.parsed else part.arguments_text)
    return type(part).__name__, None


def names(said: Said) -> object:
    return [message.name for message in said.messages]


def reasoning(said: Said) -> object:
    return [part.text for part in parts(said, Reasoning)]


def signatures(said: Said) -> object:
    """What is owed back, each with the part it stands on."""
    signed = ((part, getattr(part, "signature", None)) for part in _of_the_assistant(said))
    return [(_told(part)[0], signature.data) for part, signature in signed if signature is not None]


def redacted(said: Said) -> object:
    return [(part.redacted, part.signature and part.signature.data) for part in parts(said, Reasoning)]


def refusals(said: Said) -> object:
    return [part.text for part in parts(said, Refusal)]


def cited(said: Said) -> object:
    return [[(cited.url, cited.title) for cited in part.citations] for part in parts(said, Text)]


def cache_marks(said: Said) -> object:
    return [
        (index, getattr(part, "cache", None))
        for index, message in enumerate(said.messages)
        for part in message.parts
        if getattr(part, "cache", None) is not None
    ]


# ── requests ──────────────────────────────────────────────────────────────────────────────────────────────────


def search_results(said: Said) -> object:
    """Source, title and texts of every search result."""
    return [(one.source, one.title, one.texts) for one in parts(said, SearchResult)]


def end_user(asked: Request) -> object:
    """Whose request it is: some APIs have one field for both uses."""
    return asked.safety_identifier or asked.user


def setting(name: str) -> Callable[[Request], object]:
    """The fact that is one field of the request."""
    return lambda request: getattr(request, name)


def tool_names(request: Request) -> object:
    return [tool.name for tool in request.tools], [call.name for call in parts(request, ToolCall)]


def strictness(request: Request) -> object:
    """Of each tool; or of all of them, where the choice is held to the schemas."""
    held = VALIDATED in compact_text((request.tool_choice and request.tool_choice.metadata) or {})
    return [tool.strict or held for tool in request.tools if isinstance(tool, ToolDefinition)]


def parameters(request: Request) -> object:
    return [tool.parameters for tool in request.tools if isinstance(tool, ToolDefinition)]


def resolved_parameters(request: Request) -> object:
    """With what a reference refers to in its place: said once or twice, it is the same."""
    return [_resolved(tool.parameters, tool.parameters) for tool in request.tools if isinstance(tool, ToolDefinition)]


def _resolved(schema: Any, root: Any) -> Any:
    if isinstance(schema, list):
        return [_resolved(inner, root) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    if isinstance(schema.get("$ref"), str):
        return _resolved(root["$defs"][schema["$ref"].rpartition("/")[2]], root)
    return {key: _resolved(inner, root) for key, inner in schema.items() if key != "$defs"}


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
    """How often the one hosted tool of a request may run, wherever the API says it."""
    uses = [tool.max_uses for tool in request.tools if isinstance(tool, ProviderTool)]
    return [request.max_tool_calls if one is None else one for one in uses]


def deferred_tools(request: Request) -> object:
    return [(tool.name, tool.deferred) for tool in request.tools if isinstance(tool, ToolDefinition)]


def choice(request: Request) -> object:
    chosen = request.tool_choice or ToolChoice("auto")
    return chosen.mode, sorted(chosen.names)


def output(request: Request) -> object:
    asked = request.output
    return None if asked is None else (asked.kind, asked.schema)


def effort(request: Request) -> object:
    return request.reasoning.effort if request.reasoning is not None else None


def budget(request: Request) -> object:
    return request.reasoning.budget_tokens if request.reasoning is not None else None


def reasoning_mode(request: Request) -> object:
    return request.reasoning.mode if request.reasoning is not None else None


def private(*keys: str) -> Callable[[Request | Completion], object]:
    """The fact that is said under keys only one family knows."""

    def read(said: Request | Completion) -> object:
        held = [entries[key] for entries in (said.metadata or {}).values() for key in keys if key in entries]
        return [parse_json(value) if type(value) is Raw else value for value in held]

    return read


# ── answers ───────────────────────────────────────────────────────────────────────────────────────────────────


def finish(answer: Completion | Heard) -> object:
    return answer.finish.reason if answer.finish is not None else None


def stop_sequence(answer: Completion | Heard) -> object:
    return answer.finish.stop_sequence if answer.finish is not None else None


def usage(*counted: str) -> Callable[[Completion | Heard], object]:
    """The fact that is some of the counts; none and zero are the same, and a total that is missing is the sum."""
    return lambda answer: [_count(answer.usage, name) for name in counted] if answer.usage is not None else None


def _count(counts: Usage, name: str) -> int:
    counted: int | None = getattr(counts, name)
    return counts.input + counts.output if name == "total" and counted is None else counted or 0


def logprobs(answer: Completion | Heard) -> object:
    """Of every token: its text, how likely it was, and which others were likely."""
    return [
        (one.candidate, token.token, token.logprob, [(top.token, top.logprob) for top in token.top_logprobs])
        for one in answer.logprobs
        for token in one.tokens
    ]


def candidates(answer: Completion | Heard) -> object:
    return [message.text for message in answer.messages]


def identity(answer: Completion) -> object:
    """An id may get a prefix where the API demands one; it is the same behind it."""
    return (answer.id or "").removeprefix("msg_"), answer.model


def failure(heard: Heard) -> object:
    return (heard.failure.kind, heard.failure.message) if heard.failure is not None else None


def failed(heard: Heard) -> object:
    """That it failed, and which calls a client could mistake for complete."""
    whole = [call.id for call in parts(heard, ToolCall) if not call.incomplete]
    return heard.failure is not None, whole
