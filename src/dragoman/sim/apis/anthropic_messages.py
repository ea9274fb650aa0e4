"""Anthropic Messages: `POST /v1/messages`, `/v1/messages/count_tokens`, `GET /v1/models`."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

import msgspec

from dragoman.sim import caching, catalogue, tokens
from dragoman.sim.apis import anthropic_betas, google
from dragoman.sim.apis import anthropic_thinking as thinking
from dragoman.sim.conversation_view import (
    Answer,
    Call,
    CallPart,
    Choice,
    Finish,
    JsonObject,
    Part,
    Prompt,
    Result,
    TextPart,
    ThoughtPart,
    Tool,
    Turn,
    compact,
)
from dragoman.sim.exchange import (
    Answered,
    Api,
    Exchange,
    Kind,
    Problem,
    Refused,
    Reply,
    Streamed,
    json_reply,
    refusal_for,
    route,
)
from dragoman.sim.request_context import RequestContext
from dragoman.sim.rules import anthropic_messages as rules
from dragoman.sim.rules.anthropic_messages_models import limits_of
from dragoman.sim.rules.common import number_at, object_at, objects_at, text_at, texts_at

NAME = "anthropic-messages"
MAX_BODY = 32 << 20
CONTEXT_WINDOW = 200_000

# kind -> status, type, message
_USUAL: Mapping[Kind, tuple[int, str, str]] = {
    "invalid": (400, "invalid_request_error", "Invalid request"),
    "bad_json": (400, "invalid_request_error", "The request body is not valid JSON"),
    "authentication": (401, "authentication_error", "x-api-key header is required"),
    "wrong_key": (401, "authentication_error", "invalid x-api-key"),
    "permission": (403, "permission_error", "Your API key does not have permission to use the specified resource."),
    "no_model": (404, "not_found_error", "Not Found"),
    "no_route": (404, "not_found_error", "Not Found"),
    "method": (405, "invalid_request_error", "Method Not Allowed"),
    "too_large": (413, "request_too_large", "Request exceeds the maximum size"),
    "too_long": (400, "invalid_request_error", "prompt is too long: {got} tokens > {limit} maximum"),
    "conflict": (409, "conflict_error", "Conflict"),
    "rate_limit": (429, "rate_limit_error", "This request would exceed your rate limit."),
    "quota": (402, "billing_error", "Your credit balance is too low to access the Anthropic API."),
    "timeout": (504, "timeout_error", "Request timed out"),
    "server": (500, "api_error", "Internal server error"),
    "unavailable": (503, "api_error", "Service temporarily unavailable"),
    "overloaded": (529, "overloaded_error", "Overloaded"),
}
_TYPE_OF_STATUS = {status: error_type for status, error_type, _ in _USUAL.values()}

_FINISH: Mapping[Finish, str] = {
    "stop": "end_turn",
    "stop_sequence": "stop_sequence",
    "length": "max_tokens",
    "calls": "tool_use",
    "refusal": "refusal",
}
# Thinking is on by default, and its text is withheld by default, in these models.
_THINKS_UNASKED = re.compile(r"claude-(?:(?:fable|mythos|opus|sonnet|haiku)-5|mythos-preview)")
_SHOWS_NO_THOUGHTS = re.compile(r"claude-(?:(?:fable|mythos|opus|sonnet|haiku)-5|mythos-preview|opus-4-[78])")


# --- keys, headers, errors ----------------------------------------------------------------------------------------


def authenticate(exchange: Exchange, keys: frozenset[str]) -> Problem | None:
    key = exchange.headers.get("x-api-key", "") or exchange.bearer
    if not key:
        return Problem("authentication")
    return Problem("wrong_key") if keys and key not in keys else None


def request_id(exchange: Exchange) -> str:
    return f"req_01{exchange.mark('request')[:22]}"


def headers_of(exchange: Exchange) -> dict[str, str]:
    limits = {
        f"anthropic-ratelimit-{kind}-{what}": value
        for kind in ("requests", "input-tokens", "output-tokens", "tokens")
        for what, value in (("limit", "400000"), ("remaining", "399000"), ("reset", "2026-11-15T00:01:00Z"))
    }
    identity = {"request-id": request_id(exchange), "anthropic-organization-id": "00000000-0000-4000-8000-000000000000"}
    return {**identity, **limits}


def error_of(problem: Problem) -> tuple[int, JsonObject]:
    status, error_type, message = _USUAL[problem.kind]
    if problem.status is not None and problem.status != status:
        status = problem.status
        error_type = _TYPE_OF_STATUS.get(status, "api_error" if status >= 500 else "invalid_request_error")  # noqa: PLR2004
    worded = problem.message or message.format(**problem.numbers)
    if problem.kind == "bad_json":
        worded = f"{message}: {problem.message}"
    return status, {"type": "error", "error": {"type": error_type, "message": worded}}


def refusal(problem: Problem, exchange: Exchange) -> Reply:
    status, body = error_of(problem)
    headers = headers_of(exchange)
    if problem.retry_after is not None:
        headers |= {"retry-after": str(max(1, round(problem.retry_after))), "x-should-retry": "true"}
    return json_reply({**body, "request_id": request_id(exchange)}, status=status, headers=headers)


def failure_event(problem: Problem) -> bytes:
    return _event({**error_of(problem)[1]})


def _event(data: JsonObject) -> bytes:
    return b"event: " + str(data["type"]).encode() + b"\ndata: " + msgspec.json.encode(data) + b"\n\n"


# --- reading ------------------------------------------------------------------------------------------------------


def read(body: JsonObject) -> Prompt:
    names: dict[str, str] = {}
    system = _text(body.get("system"))
    turns = [Turn("system", system)] if system else []
    turns.extend(_turn(message, names) for message in objects_at(body, "messages"))
    choice = object_at(body, "tool_choice")
    return Prompt(
        model=text_at(body, "model"),
        turns=tuple(turns),
        tools=tuple(_tools(body)),
        choice=_choice(choice),
        parallel=choice.get("disable_parallel_tool_use") is not True,
        schema=_schema(body),
        stop=tuple(texts_at(body, "stop_sequences")),
        max_tokens=int(number_at(body, "max_tokens")),
        thinks=_is_thinking(body),
        narrates=True,
    )


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(text_at(block, "text") for block in objects_at({"c": content}, "c") if block.get("type") == "text")


def _turn(message: JsonObject, names: dict[str, str]) -> Turn:
    blocks = objects_at(message, "content")
    calls = tuple(
        Call(text_at(block, "id"), text_at(block, "name"), block.get("input"))
        for block in blocks
        if block.get("type") == "tool_use"
    )
    names.update({call.id: call.name for call in calls})
    results = tuple(_result(block, names) for block in blocks if block.get("type") == "tool_result")
    media = tuple(kind for block in blocks if (kind := text_at(block, "type")) in ("image", "document"))
    role = text_at(message, "role")
    text = _text(message.get("content"))
    match role:
        case "assistant":
            return Turn("assistant", text, calls=calls)
        case "system":
            return Turn("system", text)
    return Turn("user", text, results=results, media=media)


def _result(block: JsonObject, names: Mapping[str, str]) -> Result:
    media = sum(1 for inner in objects_at(block, "content") if inner.get("type") in ("image", "document"))
    call_id = text_at(block, "tool_use_id")
    name, text = names.get(call_id, "the tool"), _text(block.get("content"))
    return Result(name, text, failed=block.get("is_error") is True, media=media, call_id=call_id)


def _tools(body: JsonObject) -> Iterator[Tool]:
    for tool in objects_at(body, "tools"):
        # The simulated model does not call tools that Anthropic runs.
        if tool.get("type") in (None, "custom"):
            yield Tool(text_at(tool, "name"), text_at(tool, "description"), object_at(tool, "input_schema"))


def _choice(choice: JsonObject) -> Choice:
    match text_at(choice, "type"):
        case "none":
            return Choice(may=False)
        case "any":
            return Choice(must=True)
        case "tool":
            return Choice(must=True, names=frozenset({text_at(choice, "name")}))
    return Choice()


def _schema(body: JsonObject) -> JsonObject | None:
    described = object_at(body, "output_config", "format") or object_at(body, "output_format")
    return object_at(described, "schema") if described else None


def _is_thinking(body: JsonObject) -> bool:
    forced = text_at(body, "tool_choice", "type") in ("any", "tool")
    kind = text_at(body, "thinking", "type")
    if kind == "between_tools":
        messages = objects_at(body, "messages")
        last_blocks = objects_at(messages[-1], "content") if messages else ()
        return any(block.get("type") == "tool_result" for block in last_blocks)
    unasked = not kind and _THINKS_UNASKED.match(text_at(body, "model")) is not None
    return kind in ("enabled", "adaptive") or (unasked and not forced)


def _shows_thoughts(body: JsonObject) -> bool:
    display = text_at(body, "thinking", "display")
    return display != "omitted" if display else not _SHOWS_NO_THOUGHTS.match(text_at(body, "model"))


# --- caching ------------------------------------------------------------------------------------------------------


def _blocks(body: JsonObject) -> Iterator[JsonObject]:
    """Everything that can have a cache marker, in the order of the cache."""
    yield from objects_at(body, "tools")
    yield from objects_at(body, "system")
    for message in objects_at(body, "messages"):
        blocks = objects_at(message, "content")
        yield from blocks or [{"type": "text", "text": _text(message.get("content"))}]


def _prefixes(body: JsonObject) -> Iterator[tuple[str, int]]:
    digest = hashlib.sha256(text_at(body, "model").encode())
    size = 0
    for block in _blocks(body):
        bare = compact({key: value for key, value in block.items() if key != "cache_control"})
        digest.update(bare.encode())
        size += tokens.count(bare)
        if block.get("cache_control"):
            yield digest.hexdigest(), size
    if body.get("cache_control"):
        yield digest.hexdigest(), size


def _with_cache_usage(context: RequestContext, body: JsonObject, answer: Answer) -> Answer:
    read, written = caching.count_marked(context.memory, _prefixes(body))
    total = max(answer.counts.input, read + written + 1)
    return replace(answer, counts=replace(answer.counts, input=total, read=read, written=written))


# --- writing ------------------------------------------------------------------------------------------------------


def usage_of(answer: Answer) -> dict[str, object]:
    counts = answer.counts
    return {
        "input_tokens": counts.input - counts.read - counts.written,
        "cache_creation_input_tokens": counts.written,
        "cache_read_input_tokens": counts.read,
        "cache_creation": {"ephemeral_5m_input_tokens": counts.written, "ephemeral_1h_input_tokens": 0},
        "output_tokens": counts.output,
        "output_tokens_details": {"thinking_tokens": counts.thought},
        "service_tier": "standard",
        "inference_geo": "global",
    }


def _stop_details(answer: Answer) -> JsonObject | None:
    if answer.finish != "refusal":
        return None
    return {"type": "refusal", "category": None, "explanation": answer.text or None}


class Writer:
    def __init__(self, context: RequestContext, body: JsonObject) -> None:
        self.context = context
        self.model = text_at(body, "model")
        self.shows = _shows_thoughts(body)
        bound = thinking.is_bound(self.model)
        self.prefix = thinking.prefix_of(body, len(objects_at(body, "messages"))) if bound else b""

    def message(self, answer: Answer) -> dict[str, object]:
        return {
            "id": f"msg_01{self.context.exchange.mark('id')[:22]}",
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": [self._block(part, index) for index, part in enumerate(answer.parts)],
            "stop_reason": answer.word or _FINISH[answer.finish],
            "stop_sequence": answer.stop_sequence,
            "stop_details": _stop_details(answer),
            "usage": usage_of(answer),
        }

    def _block(self, part: Part, index: int) -> JsonObject:
        match part:
            case ThoughtPart():
                nonce = self.context.exchange.mark("seal", index)
                signature = thinking.sign(nonce, part.text, shown=self.shows, prefix=self.prefix)
                return {"type": "thinking", "thinking": part.text if self.shows else "", "signature": signature}
            case TextPart():
                return {"type": "text", "text": part.text}
            case CallPart():
                identifier = f"toolu_01{self.context.exchange.mark('call', index)[:22]}"
                arguments = part.arguments if part.complete else {}
                return {"type": "tool_use", "id": identifier, "name": part.name, "input": arguments}

    def events(self, answer: Answer) -> Iterator[bytes]:
        message = self.message(answer)
        opened: JsonObject = {"content": [], "stop_reason": None, "stop_sequence": None, "stop_details": None}
        usage = {key: value for key, value in usage_of(answer).items() if key != "output_tokens_details"}
        started = {**message, **opened, "usage": {**usage, "output_tokens": 1}}
        yield _event({"type": "message_start", "message": started})
        for index, part in enumerate(answer.parts):
            yield from self._block_events(part, index)
            if index == 0:
                yield _event({"type": "ping"})
        ended = {key: message[key] for key in ("stop_reason", "stop_sequence", "stop_details")}
        counted = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens",
                   "output_tokens_details")  # fmt: skip
        totals = {key: value for key, value in usage_of(answer).items() if key in counted}
        yield _event({"type": "message_delta", "delta": ended, "usage": totals})
        yield _event({"type": "message_stop"})

    def _block_events(self, part: Part, index: int) -> Iterator[bytes]:
        block = self._block(part, index)
        empty = {"thinking": "", "signature": "", "text": "", "input": {}}
        start = {**block, **{key: value for key, value in empty.items() if key in block}}
        yield _event({"type": "content_block_start", "index": index, "content_block": start})
        for delta in self._deltas(part, block):
            yield _event({"type": "content_block_delta", "index": index, "delta": delta})
        yield _event({"type": "content_block_stop", "index": index})

    def _deltas(self, part: Part, block: JsonObject) -> Iterator[JsonObject]:
        pieces = self.context.chunks
        match part:
            case ThoughtPart():
                shown = pieces(text_at(block, "thinking"))
                yield from ({"type": "thinking_delta", "thinking": piece} for piece in shown)
                yield {"type": "signature_delta", "signature": block["signature"]}
            case TextPart():
                yield from ({"type": "text_delta", "text": piece} for piece in pieces(part.text))
            case CallPart():
                # The first fragment is empty; a call without arguments sends no other.
                text = "" if part.text == "{}" else part.text
                for piece in ("", *pieces(text)):
                    yield {"type": "input_json_delta", "partial_json": piece}


# --- serving ------------------------------------------------------------------------------------------------------


def _check(context: RequestContext, body: JsonObject, version: str) -> None:
    anthropic_betas.check(body, context.exchange.headers.get("anthropic-beta", ""))
    if violations := rules.check_request(body, version=version):
        raise refusal_for(violations)
    if not context.any_signature:
        thinking.check(body, new_account=context.binds_thinking)
    model = text_at(body, "model")
    if not context.any_model and not catalogue.exists("anthropic", model):
        raise Refused(Problem("no_model", f"model: {model}"))


def _version(context: RequestContext) -> str:
    version = context.exchange.headers.get("anthropic-version", "")
    if not version:
        raise Refused(Problem("invalid", "anthropic-version: header is required"))
    return version


def create(context: RequestContext) -> Answered:
    body = context.exchange.json()
    _check(context, body, _version(context))
    return _answer(context, body)


def _answer(context: RequestContext, body: JsonObject) -> Answered:
    answer = _with_cache_usage(context, body, context.answer(read(body)))
    writer = Writer(context, body)
    headers = headers_of(context.exchange)
    if body.get("stream"):
        kind = "text/event-stream; charset=utf-8"
        return Streamed(writer.events(answer), kind, headers, failure=failure_event)
    return json_reply(writer.message(answer), headers=headers)


def predict(context: RequestContext) -> Answered:
    """On Vertex AI the model is in the URL and the version in the body."""
    raw = context.exchange.json()
    version = text_at(raw, "anthropic_version")
    if not version:
        raise Refused(Problem("invalid", "anthropic_version: Field required"))
    if "model" in raw:
        raise Refused(Problem("invalid", "model: Extra inputs are not permitted"))
    inner = {key: value for key, value in raw.items() if key != "anthropic_version"}
    body = {**inner, "model": context.exchange.params["model"]}
    _check(context, body, version)
    streams = context.exchange.path.endswith(":streamRawPredict")
    return _answer(context, {**body, "stream": streams})


def count_tokens(context: RequestContext) -> Answered:
    body = context.exchange.json()
    if "max_tokens" in body:
        raise Refused(Problem("invalid", "max_tokens: Extra inputs are not permitted"))
    # The endpoint checks like a real request, except for max_tokens, which it does not have.
    limit = int(number_at(body, "thinking", "budget_tokens")) + 1
    _check(context, {**body, "max_tokens": limit}, _version(context))
    return json_reply({"input_tokens": tokens.count_prompt(read(body))}, headers=headers_of(context.exchange))


def _model(name: str) -> JsonObject:
    limits = limits_of(name)
    kinds = sorted(limits.thinking) if limits else []
    every = ("adaptive", "between_tools", "disabled", "enabled")
    types = {kind: {"supported": kind in kinds} for kind in every}
    return {
        "type": "model",
        "id": name,
        "display_name": name.replace("-", " ").title(),
        "created_at": "2026-01-01T00:00:00Z",
        "max_input_tokens": 200_000,
        "max_tokens": 64_000,
        "capabilities": {"thinking": {"supported": bool(kinds), "types": types}},
    }


def list_models(context: RequestContext) -> Answered:
    names = catalogue.LISTED["anthropic"]
    page = {"data": [_model(name) for name in names], "has_more": False, "first_id": names[0], "last_id": names[-1]}
    return json_reply(page, headers=headers_of(context.exchange))


def show_model(context: RequestContext) -> Answered:
    name = context.exchange.params["model"]
    if not context.any_model and not catalogue.exists("anthropic", name):
        raise Refused(Problem("no_model", f"model: {name}"))
    return json_reply(_model(name), headers=headers_of(context.exchange))


API = Api(
    name=NAME,
    routes=(
        route("POST", r"/v1/messages", create),
        route("POST", r"/v1/messages/count_tokens", count_tokens),
        route("GET", r"/v1/models", list_models),
        route("GET", r"/v1/models/(?P<model>[^/]+)", show_model),
    ),
    authenticate=authenticate,
    refusal=refusal,
    max_body=MAX_BODY,
    context_window=CONTEXT_WINDOW,
)

_ON_VERTEX = r"/v1(?:beta1)?/projects/[^/]+/locations/[^/]+/publishers/anthropic/models/(?P<model>[^/:]+)"

VERTEX = Api(
    name="anthropic-vertex",
    routes=(route("POST", rf"{_ON_VERTEX}:(?:rawPredict|streamRawPredict)", predict),),
    authenticate=google.authenticate_by_token,
    refusal=refusal,
    max_body=30 << 20,
    context_window=CONTEXT_WINDOW,
)
