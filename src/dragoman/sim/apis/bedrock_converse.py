"""Bedrock: `POST /model/{id}/converse` and `/converse-stream`."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import msgspec

from dragoman.sim import caching, catalogue, signatures, tokens
from dragoman.sim.apis import anthropic_thinking as thinking
from dragoman.sim.apis import event_stream
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
from dragoman.sim.rules import bedrock_converse as rules
from dragoman.sim.rules.common import number_at, object_at, objects_at, text_at, texts_at

NAME = "bedrock-converse"
MAX_BODY = 20 << 20
CONTEXT_WINDOW = 200_000
# Padding that hides the length of the content.
PADDING = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

# kind -> status, exception, message
_USUAL: Mapping[Kind, tuple[int, str, str]] = {
    "invalid": (400, "ValidationException", "The request is invalid."),
    "bad_json": (400, "SerializationException", "The request body is not valid JSON."),
    "authentication": (403, "MissingAuthenticationTokenException", "Missing Authentication Token"),
    "wrong_key": (403, "UnrecognizedClientException", "The security token included in the request is invalid."),
    "permission": (403, "AccessDeniedException", "You don't have access to the model with the specified model ID."),
    "no_model": (400, "ValidationException", "The provided model identifier is invalid."),
    "no_route": (404, "UnknownOperationException", "The requested operation is not recognized."),
    "method": (405, "UnknownOperationException", "The requested operation is not recognized."),
    "too_large": (413, "RequestEntityTooLargeException", "Request body is too large."),
    "too_long": (400, "ValidationException", "Input is too long for requested model."),
    "conflict": (409, "ConflictException", "Conflict."),
    "rate_limit": (429, "ThrottlingException", "Too many requests, please wait before trying again."),
    "quota": (400, "ServiceQuotaExceededException", "Your request exceeds the service quota for your account."),
    "timeout": (408, "ModelTimeoutException", "The request took too long to process."),
    "server": (500, "InternalServerException", "An internal server error occurred. Retry your request."),
    "unavailable": (503, "ServiceUnavailableException", "The service isn't currently available. Try again later."),
    "overloaded": (503, "ServiceUnavailableException", "Bedrock is unable to process your request."),
}
_STREAM_EXCEPTIONS: Mapping[Kind, str] = {
    "invalid": "validationException",
    "rate_limit": "throttlingException",
    "unavailable": "serviceUnavailableException",
    "overloaded": "serviceUnavailableException",
    "timeout": "modelStreamErrorException",
}
_FINISH: Mapping[Finish, str] = {
    "stop": "end_turn",
    "stop_sequence": "stop_sequence",
    "length": "max_tokens",
    "calls": "tool_use",
    "refusal": "content_filtered",
}
_MEDIA = ("image", "document", "video", "audio")
_SIGNED = re.compile(r"AWS4-HMAC-SHA256 Credential=([^/,\s]+)/")


# --- keys and errors ----------------------------------------------------------------------------------------------


def authenticate(exchange: Exchange, keys: frozenset[str]) -> Problem | None:
    """Accepts a bearer key, or a SigV4 signature, of which only the access key is checked."""
    signed = _SIGNED.match(exchange.headers.get("authorization", ""))
    key = signed[1] if signed else exchange.bearer
    if not key:
        return Problem("authentication")
    return Problem("wrong_key") if keys and key not in keys else None


def headers_of(exchange: Exchange) -> dict[str, str]:
    mark = exchange.mark("request")
    return {"x-amzn-requestid": "-".join((mark[:8], mark[8:12], mark[12:16], mark[16:20], mark[20:32]))}


def refusal(problem: Problem, exchange: Exchange) -> Reply:
    status, name, message = _USUAL[problem.kind]
    headers = {**headers_of(exchange), "x-amzn-errortype": name}
    if problem.retry_after is not None:
        headers["retry-after"] = str(max(1, round(problem.retry_after)))
    return json_reply({"message": problem.message or message}, status=problem.status or status, headers=headers)


def failure_frame(problem: Problem) -> bytes:
    message = {"message": problem.message or _USUAL[problem.kind][2]}
    name = _STREAM_EXCEPTIONS.get(problem.kind, "internalServerException")
    return event_stream.exception(name, msgspec.json.encode(message))


# --- reading ------------------------------------------------------------------------------------------------------


def read(body: JsonObject, model: str) -> Prompt:
    names: dict[str, str] = {}
    limits = object_at(body, "inferenceConfig")
    limit = number_at(limits, "maxTokens")
    system = "\n".join(text_at(block, "text") for block in objects_at(body, "system") if "text" in block)
    turns = [Turn("system", system)] if system else []
    turns.extend(_turn(message, names) for message in objects_at(body, "messages"))
    return Prompt(
        model=model,
        turns=tuple(turns),
        tools=tuple(_tools(body)),
        choice=_choice(object_at(body, "toolConfig", "toolChoice")),
        schema=_schema(body),
        stop=tuple(texts_at(limits, "stopSequences")),
        max_tokens=int(limit) if limit else None,
        thinks=text_at(body, "additionalModelRequestFields", "thinking", "type") in ("enabled", "adaptive"),
        narrates="anthropic" in model,
    )


def _turn(message: JsonObject, names: dict[str, str]) -> Turn:
    blocks = objects_at(message, "content")
    text = "\n".join(text_at(block, "text") for block in blocks if "text" in block)
    match text_at(message, "role"):
        case "assistant":
            uses = (object_at(block, "toolUse") for block in blocks if "toolUse" in block)
            calls = tuple(Call(text_at(use, "toolUseId"), text_at(use, "name"), use.get("input")) for use in uses)
            names.update({call.id: call.name for call in calls})
            return Turn("assistant", text, calls=calls)
        case "system":
            return Turn("system", text)
    results = tuple(_result(object_at(block, "toolResult"), names) for block in blocks if "toolResult" in block)
    media = tuple(kind for block in blocks for kind in _MEDIA if kind in block)
    return Turn("user", text, results=results, media=media)


def _result(result: JsonObject, names: Mapping[str, str]) -> Result:
    blocks = objects_at(result, "content")
    texts = [
        text_at(block, "text") if "text" in block else compact(block["json"])
        for block in blocks
        if "text" in block or "json" in block
    ]
    media = sum(1 for block in blocks for kind in _MEDIA if kind in block)
    call_id = text_at(result, "toolUseId")
    failed = result.get("status") == "error"
    return Result(names.get(call_id, "the tool"), "\n".join(texts), failed=failed, media=media, call_id=call_id)


def _tools(body: JsonObject) -> Iterator[Tool]:
    for tool in objects_at(body, "toolConfig", "tools"):
        if spec := object_at(tool, "toolSpec"):
            schema = object_at(spec, "inputSchema", "json")
            yield Tool(text_at(spec, "name"), text_at(spec, "description"), schema)


def _choice(choice: JsonObject) -> Choice:
    if "any" in choice:
        return Choice(must=True)
    if "tool" in choice:
        return Choice(must=True, names=frozenset({text_at(choice, "tool", "name")}))
    return Choice()


def _schema(body: JsonObject) -> JsonObject | None:
    """The schema, which is JSON in a string."""
    written = text_at(body, "outputConfig", "textFormat", "structure", "jsonSchema", "schema")
    try:
        schema = json.loads(written) if written else None
    except ValueError:
        return None
    return schema if isinstance(schema, dict) else None


# --- signatures and caches ----------------------------------------------------------------------------------------


def check_signatures(body: JsonObject) -> None:
    for index, message in enumerate(objects_at(body, "messages")):
        for position, block in enumerate(objects_at(message, "content")):
            text = object_at(block, "reasoningContent", "reasoningText")
            signature = text_at(text, "signature")
            if not signature or thinking.is_signed(text_at(text, "text"), signature):
                continue
            complaint = f"messages.{index}.content.{position}: Invalid `signature` in `thinking` block"
            raise Refused(Problem("invalid", f"The model returned the following errors: {complaint}"))


def _prefixes(body: JsonObject, model: str) -> Iterator[tuple[str, int]]:
    """A cache point marks everything before it."""
    before = [model]
    size = 0
    lists = (objects_at(body, "toolConfig", "tools"), objects_at(body, "system"))
    messages = (objects_at(message, "content") for message in objects_at(body, "messages"))
    for blocks in (*lists, *messages):
        for block in blocks:
            if "cachePoint" in block:
                yield base64.b64encode(signatures.make_signature("cache", "", "".join(before))).decode(), size
            else:
                before.append(compact(block))
                size += tokens.count(before[-1])


def _with_cache_usage(context: RequestContext, body: JsonObject, model: str, answer: Answer) -> Answer:
    read_tokens, written = caching.count_marked(context.memory, _prefixes(body, model))
    total = max(answer.counts.input, read_tokens + written + 1)
    return replace(answer, counts=replace(answer.counts, input=total, read=read_tokens, written=written))


# --- writing ------------------------------------------------------------------------------------------------------


def usage_of(answer: Answer) -> JsonObject:
    counts = answer.counts
    usage: dict[str, object] = {
        "inputTokens": counts.input - counts.read - counts.written,
        "outputTokens": counts.output,
        "totalTokens": counts.input + counts.output,
        "cacheReadInputTokens": counts.read,
        "cacheWriteInputTokens": counts.written,
    }
    if counts.written:
        usage["cacheDetails"] = [{"ttl": "5m", "inputTokens": counts.written}]
    return usage


class Writer:
    def __init__(self, context: RequestContext, body: JsonObject) -> None:
        self.context = context
        self.paths = texts_at(body, "additionalModelResponseFieldPaths")

    def _block(self, part: Part, index: int) -> JsonObject:
        match part:
            case ThoughtPart():
                signature = thinking.sign(self.context.exchange.mark(index), part.text, shown=True)
                return {"reasoningContent": {"reasoningText": {"text": part.text, "signature": signature}}}
            case TextPart():
                return {"text": part.text}
            case CallPart():
                arguments = part.arguments if part.complete else {}
                return {"toolUse": {"toolUseId": self._id(index), "name": part.name, "input": arguments}}

    def _id(self, index: int) -> str:
        return f"tooluse_{self.context.exchange.mark('call', index)[:22]}"

    def _stop_fields(self, answer: Answer) -> dict[str, object]:
        ending: dict[str, object] = {"stopReason": answer.word or _FINISH[answer.finish]}
        if "/stop_sequence" in self.paths:
            ending["additionalModelResponseFields"] = {"stop_sequence": answer.stop_sequence}
        return ending

    def whole(self, answer: Answer) -> JsonObject:
        content = [self._block(part, index) for index, part in enumerate(answer.parts)]
        message = {"role": "assistant", "content": content}
        numbers = {"usage": usage_of(answer), "metrics": {"latencyMs": 1}}
        return {"output": {"message": message}, **self._stop_fields(answer), **numbers}

    def frames(self, answer: Answer) -> Iterator[bytes]:
        yield _frame("messageStart", {"role": "assistant"})
        for index, part in enumerate(answer.parts):
            if isinstance(part, CallPart):
                start = {"toolUse": {"toolUseId": self._id(index), "name": part.name}}
                yield _frame("contentBlockStart", {"contentBlockIndex": index, "start": start})
            for delta in self._deltas(part, index):
                yield _frame("contentBlockDelta", {"contentBlockIndex": index, "delta": delta})
            yield _frame("contentBlockStop", {"contentBlockIndex": index})
        yield _frame("messageStop", self._stop_fields(answer))
        yield _frame("metadata", {"usage": usage_of(answer), "metrics": {"latencyMs": 1}})

    def _deltas(self, part: Part, index: int) -> Iterator[JsonObject]:
        """Text and reasoning blocks have no start: their first delta opens them."""
        pieces: Sequence[str] = self.context.chunks(part.text)
        match part:
            case ThoughtPart():
                reasoning = object_at(self._block(part, index), "reasoningContent", "reasoningText")
                yield from ({"reasoningContent": {"text": piece}} for piece in pieces)
                yield {"reasoningContent": {"signature": reasoning["signature"]}}
            case TextPart():
                yield from ({"text": piece} for piece in pieces)
            case CallPart():
                yield from ({"toolUse": {"input": piece}} for piece in pieces)


def _frame(kind: str, payload: JsonObject) -> bytes:
    length = 10 + len(str(payload)) % 40
    return event_stream.event(kind, msgspec.json.encode({**payload, "p": PADDING[:length]}))


# --- serving ------------------------------------------------------------------------------------------------------


def _check(context: RequestContext) -> tuple[JsonObject, str]:
    body, model = context.exchange.json(), context.exchange.params["model"]
    if violations := rules.check_request(body, model=model):
        raise refusal_for(violations)
    if not context.any_signature:
        check_signatures(body)
    if not context.any_model and not catalogue.exists("bedrock", model):
        raise Refused(Problem("no_model"))
    return body, model


def converse(context: RequestContext) -> Answered:
    body, model = _check(context)
    answer = _with_cache_usage(context, body, model, context.answer(read(body, model)))
    return json_reply(Writer(context, body).whole(answer), headers=headers_of(context.exchange))


def converse_stream(context: RequestContext) -> Answered:
    body, model = _check(context)
    answer = _with_cache_usage(context, body, model, context.answer(read(body, model)))
    frames = Writer(context, body).frames(answer)
    garbage = event_stream.broken_event("contentBlockDelta")
    headers = headers_of(context.exchange)
    return Streamed(frames, event_stream.CONTENT_TYPE, headers, garbage=garbage, failure=failure_frame)


def count(context: RequestContext) -> Answered:
    body, model = context.exchange.json(), context.exchange.params["model"]
    total = tokens.count_prompt(read(object_at(body, "input", "converse"), model))
    return json_reply({"inputTokens": total}, headers=headers_of(context.exchange))


API = Api(
    name=NAME,
    routes=(
        route("POST", r"/model/(?P<model>[^/]+)/converse", converse),
        route("POST", r"/model/(?P<model>[^/]+)/converse-stream", converse_stream),
        route("POST", r"/model/(?P<model>[^/]+)/count-tokens", count),
    ),
    authenticate=authenticate,
    refusal=refusal,
    max_body=MAX_BODY,
    context_window=CONTEXT_WINDOW,
)
