"""Cohere: `POST /v2/chat`, and the models it has under `/v1/models`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from dragoman.sim import catalogue
from dragoman.sim.apis.reading import merge_turns, parse_arguments, read_result, read_tool
from dragoman.sim.conversation_view import (
    Answer,
    Call,
    CallPart,
    Choice,
    Finish,
    JsonObject,
    Prompt,
    TextPart,
    ThoughtPart,
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
from dragoman.sim.rules import cohere_chat as rules
from dragoman.sim.rules.common import number_at, object_at, objects_at, text_at, texts_at

NAME = "cohere-chat"
MAX_BODY = 32 << 20
CONTEXT_WINDOW = 288_000
# Tokens that the service adds to every prompt.
PREAMBLE = 496

# kind -> status, message
_USUAL: Mapping[Kind, tuple[int, str]] = {
    "invalid": (400, "invalid request"),
    "bad_json": (400, "invalid json syntax: the body could not be read"),
    "authentication": (401, "no api key supplied"),
    "wrong_key": (401, "invalid api token"),
    "permission": (403, "you do not have permission to do this"),
    "no_model": (
        404,
        "model not found, make sure the correct model ID was used and that you have access to the model.",
    ),
    "no_route": (404, "not found"),
    "method": (405, "method not allowed"),
    "too_large": (413, "the request body is too large"),
    "too_long": (400, "too many tokens: size limit exceeded. The limit for this model is {limit} tokens, got {got}."),
    "conflict": (409, "conflict"),
    "rate_limit": (429, "You are using a Trial key, which is limited to 20 API calls / minute."),
    "quota": (402, "Please add or update your payment method to continue."),
    "timeout": (504, "the request timed out"),
    "server": (500, "internal server error"),
    "unavailable": (503, "the service is temporarily unavailable"),
    "overloaded": (503, "the service is overloaded"),
}
_FINISH: Mapping[Finish, str] = {
    "stop": "COMPLETE",
    "stop_sequence": "STOP_SEQUENCE",
    "length": "MAX_TOKENS",
    "calls": "TOOL_CALL",
    # A declined answer is an ordinary answer.
    "refusal": "COMPLETE",
}


def authenticate(exchange: Exchange, keys: frozenset[str]) -> Problem | None:
    if not exchange.bearer:
        return Problem("authentication")
    return Problem("wrong_key") if keys and exchange.bearer not in keys else None


def refusal(problem: Problem, exchange: Exchange) -> Reply:
    status, message = _USUAL[problem.kind]
    body: dict[str, object] = {
        "id": _uuid(exchange.mark("error")),
        "message": problem.message or message.format(**problem.numbers),
    }
    if problem.kind == "too_long":
        body["error_type"] = "TOO_MANY_TOKENS"
    headers = {} if problem.retry_after is None else {"retry-after": str(max(1, round(problem.retry_after)))}
    return json_reply(body, status=problem.status or status, headers=headers)


def _uuid(mark: str) -> str:
    return f"{mark[:8]}-{mark[8:12]}-4{mark[13:16]}-8{mark[17:20]}-{mark[20:32]}"


# --- reading ------------------------------------------------------------------------------------------------------


def _text_of(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = objects_at({"content": content}, "content")
    return "\n".join(text for part in parts if (text := text_at(part, "text") or _document_text(part)))


def _document_text(part: JsonObject) -> str:
    data = object_at(part, "document").get("data")
    return "" if data is None else data if isinstance(data, str) else compact(data)


def read(body: JsonObject) -> Prompt:
    limit = number_at(body, "max_tokens")
    form = object_at(body, "response_format")
    schema = form.get("json_schema")
    model = text_at(body, "model")
    return Prompt(
        model=model,
        turns=merge_turns(_turns(objects_at(body, "messages"))),
        tools=tuple(read_tool(object_at(tool, "function")) for tool in objects_at(body, "tools")),
        choice=Choice(may=body.get("tool_choice") != "NONE", must=body.get("tool_choice") == "REQUIRED"),
        schema=schema if isinstance(schema, Mapping) else None,
        any_json=text_at(form, "type") == "json_object",
        stop=tuple(texts_at(body, "stop_sequences")),
        max_tokens=int(limit) if limit else None,
        seed=int(number_at(body, "seed")),
        thinks=_is_reasoning(body, model),
        narrates=not _is_reasoning(body, model),
    )


def _is_reasoning(body: JsonObject, model: str) -> bool:
    return rules.REASONS.match(model) is not None and text_at(body, "thinking", "type") != "disabled"


def _turns(messages: Sequence[JsonObject]) -> Iterator[Turn]:
    names: dict[str, str] = {}
    for message in messages:
        role, text = text_at(message, "role"), _text_of(message.get("content"))
        if role == "tool":
            call_id = text_at(message, "tool_call_id")
            yield Turn("user", results=(read_result(names.get(call_id, "the tool"), text, call_id=call_id),))
        elif role == "assistant":
            calls = tuple(_call(call) for call in objects_at(message, "tool_calls"))
            names.update({call.id: call.name for call in calls})
            yield Turn("assistant", text or text_at(message, "tool_plan"), calls=calls)
        else:
            media = tuple("image" for part in objects_at(message, "content") if part.get("type") == "image_url")
            yield Turn("system" if role == "system" else "user", text, media=media)


def _call(call: JsonObject) -> Call:
    function = object_at(call, "function")
    return Call(text_at(call, "id"), text_at(function, "name"), parse_arguments(text_at(function, "arguments") or "{}"))


# --- writing ------------------------------------------------------------------------------------------------------


class Writer:
    def __init__(self, context: RequestContext) -> None:
        self.context = context
        self.id = _uuid(context.exchange.mark("id"))

    def _usage(self, answer: Answer) -> JsonObject:
        counts = answer.counts
        tokens: dict[str, object] = {"input_tokens": counts.input + PREAMBLE, "output_tokens": counts.output}
        if answer.thoughts:
            tokens["reasoning_tokens"] = counts.thought
        return {
            "billed_units": {"input_tokens": counts.input, "output_tokens": counts.output},
            "tokens": tokens,
            "cached_tokens": counts.read,
        }

    def _finish(self, answer: Answer) -> str:
        return answer.word or _FINISH[answer.finish]

    def _call(self, call: CallPart, index: int, arguments: str) -> dict[str, object]:
        identifier = f"{call.name}_{self.context.exchange.mark('call', index)[:12]}"
        return {"id": identifier, "type": "function", "function": {"name": call.name, "arguments": arguments}}

    def _plan(self, answer: Answer) -> str:
        """Text before calls is the plan, not content."""
        return answer.text if answer.calls else ""

    def _blocks(self, answer: Answer) -> list[tuple[str, str]]:
        kinds = {ThoughtPart: "thinking", TextPart: "text"}
        blocks = [(kinds[type(part)], part.text) for part in answer.parts if isinstance(part, ThoughtPart | TextPart)]
        return [block for block in blocks if not (answer.calls and block[0] == "text")]

    # whole

    def whole(self, answer: Answer) -> JsonObject:
        message: dict[str, object] = {"role": "assistant"}
        if blocks := self._blocks(answer):
            message["content"] = [{"type": kind, kind: text} for kind, text in blocks]
        if plan := self._plan(answer):
            message["tool_plan"] = plan
        if answer.calls:
            calls = enumerate(answer.calls)
            message["tool_calls"] = [self._call(call, index, call.text) for index, call in calls]
        return {
            "id": self.id,
            "message": message,
            "finish_reason": self._finish(answer),
            "usage": self._usage(answer),
        }

    # streamed

    def events(self, answer: Answer) -> Iterator[bytes]:
        start = {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []}
        yield _event("message-start", id=self.id, delta={"message": start})
        for index, (kind, text) in enumerate(self._blocks(answer)):
            yield _content_event("content-start", index, content={"type": kind, kind: ""})
            for piece in self.context.chunks(text):
                yield _content_event("content-delta", index, content={kind: piece})
            yield _event("content-end", index=index)
        for piece in self.context.chunks(self._plan(answer)):
            yield _event("tool-plan-delta", delta={"message": {"tool_plan": piece}})
        for index, call in enumerate(answer.calls):
            yield from self._stream_call(call, index)
        yield _event("message-end", delta={"finish_reason": self._finish(answer), "usage": self._usage(answer)})
        yield b"data: [DONE]\n\n"

    def _stream_call(self, call: CallPart, index: int) -> Iterator[bytes]:
        yield _content_event("tool-call-start", index, tool_calls=self._call(call, index, ""))
        # A call without arguments has no fragment at all.
        for piece in self.context.chunks("" if call.text == "{}" else call.text):
            yield _content_event("tool-call-delta", index, tool_calls={"function": {"arguments": piece}})
        if call.complete:
            yield _event("tool-call-end", index=index)


def _event(kind: str, **fields: object) -> bytes:
    return f"event: {kind}\ndata: ".encode() + msgspec.json.encode({"type": kind, **fields}) + b"\n\n"


def _content_event(kind: str, index: int, **fields: object) -> bytes:
    return _event(kind, index=index, delta={"message": fields})


def failure_event(problem: Problem) -> bytes:
    """There is no error event: the last event of the message has the error."""
    message = problem.message or _USUAL[problem.kind][1].format(**problem.numbers)
    word = "TIMEOUT" if problem.kind == "timeout" else "ERROR"
    return _event("message-end", delta={"finish_reason": word, "error": message}) + b"data: [DONE]\n\n"


# --- serving ------------------------------------------------------------------------------------------------------


def chat(context: RequestContext) -> Answered:
    body = context.exchange.json()
    if violations := rules.check_request(body):
        raise refusal_for(violations)
    model = text_at(body, "model")
    if not context.any_model and not catalogue.exists("cohere", model):
        usual = _USUAL["no_model"][1]
        raise Refused(Problem("no_model", usual.replace("model not", f"model '{model}' not", 1)))
    writer = Writer(context)
    answer = context.answer_cached(read(body))[0]
    if body.get("stream"):
        return Streamed(writer.events(answer), "text/event-stream", failure=failure_event)
    return json_reply(writer.whole(answer))


def _describe_model(name: str) -> JsonObject:
    return {
        "name": name,
        "is_deprecated": False,
        "endpoints": ["chat"],
        "default_endpoints": [],
        "finetuned": False,
        "context_length": CONTEXT_WINDOW,
        "tokenizer_url": "",
        "features": ["tools", "json_mode"],
    }


def list_models(_context: RequestContext) -> Answered:
    return json_reply({"models": [_describe_model(name) for name in catalogue.LISTED["cohere"]]})


def show_model(context: RequestContext) -> Answered:
    name = context.exchange.params["model"]
    if not context.any_model and not catalogue.exists("cohere", name):
        raise Refused(Problem("no_model"))
    return json_reply(_describe_model(name))


API = Api(
    name=NAME,
    routes=(
        route("POST", r"/v2/chat", chat),
        route("GET", r"/v1/models", list_models),
        route("GET", r"/v1/models/(?P<model>.+)", show_model),
    ),
    authenticate=authenticate,
    refusal=refusal,
    max_body=MAX_BODY,
    context_window=CONTEXT_WINDOW,
)
