"""Ollama: `/api/chat`, its models, and the part of OpenAI's API that it serves under `/v1`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import msgspec

from dragoman.sim import catalogue
from dragoman.sim.apis import openai, openai_chat
from dragoman.sim.apis.reading import merge_turns, parse_arguments, read_result, read_tool
from dragoman.sim.catalogue import LocalModel
from dragoman.sim.conversation_view import (
    Answer,
    Call,
    CallPart,
    Choice,
    JsonObject,
    Part,
    Prompt,
    TextPart,
    ThoughtPart,
    Turn,
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
from dragoman.sim.rules import ollama_chat as rules
from dragoman.sim.rules.common import number_at, object_at, objects_at, text_at, texts_at

NAME = "ollama-chat"
VERSION = "0.33.1"
MAX_BODY = 256 << 20
CREATED_AT = "2026-11-15T12:00:00.000000Z"
# Nanoseconds per token of a moderately fast machine.
PER_TOKEN = 10_000_000
LOAD = 50_000_000

# kind -> status, message
_USUAL: Mapping[Kind, tuple[int, str]] = {
    "invalid": (400, "invalid request"),
    "bad_json": (400, "invalid JSON"),
    "authentication": (401, "unauthorized"),
    "wrong_key": (401, "unauthorized"),
    "permission": (403, "forbidden"),
    "no_model": (404, "model not found"),
    "no_route": (404, "404 page not found"),
    "method": (405, "405 method not allowed"),
    "too_large": (400, "http: request body too large"),
    "too_long": (400, "input length exceeds the context length"),
    "conflict": (409, "conflict"),
    "rate_limit": (429, "too many requests"),
    "quota": (429, "you have reached your usage limit"),
    "timeout": (504, "timed out waiting for the model runner"),
    "server": (500, "model runner has unexpectedly stopped"),
    "unavailable": (503, "server busy, please try again. maximum pending requests exceeded"),
    "overloaded": (503, "server busy, please try again. maximum pending requests exceeded"),
}


def authenticate(exchange: Exchange, keys: frozenset[str]) -> Problem | None:
    """A local server needs no key. If keys are configured (as in Ollama's cloud), it needs a bearer token."""
    if not keys or exchange.bearer in keys:
        return None
    return Problem("authentication" if not exchange.bearer else "wrong_key")


def refusal(problem: Problem, exchange: Exchange) -> Reply:
    status, message = _USUAL[problem.kind]
    status, message = problem.status or status, problem.message or message
    if problem.kind in ("no_route", "method"):
        return Reply(status, message.encode(), "text/plain")
    headers = {} if problem.retry_after is None else {"retry-after": str(max(1, round(problem.retry_after)))}
    if exchange.path.startswith("/v1/"):
        kind = "invalid_request_error" if status < 500 else "api_error"  # noqa: PLR2004
        error = {"message": message, "type": kind, "param": None, "code": None}
        return json_reply({"error": error}, status=status, headers=headers)
    return json_reply({"error": message}, status=status, headers=headers)


def failure_line(problem: Problem) -> bytes:
    return msgspec.json.encode({"error": problem.message or _USUAL[problem.kind][1]}) + b"\n"


# --- reading ------------------------------------------------------------------------------------------------------


def _fold_keys(value: JsonObject) -> dict[str, object]:
    """Go matches keys case-insensitively."""
    return {key.lower(): item for key, item in value.items()}


def read(body: JsonObject, model: LocalModel) -> Prompt:
    options = object_at(body, "options")
    limit = int(number_at(options, "num_predict"))
    form = body.get("format")
    return Prompt(
        model=text_at(body, "model"),
        turns=merge_turns(_turns(objects_at(body, "messages"))),
        tools=tuple(read_tool(object_at(tool, "function")) for tool in objects_at(body, "tools")),
        schema=form if isinstance(form, Mapping) else None,
        any_json=form == "json",
        stop=tuple(texts_at(options, "stop")),
        max_tokens=limit if limit > 0 else None,
        seed=int(number_at(options, "seed")),
        thinks="thinking" in model.capabilities and (body.get("think") is not False or model.family == "gptoss"),
    )


def _turns(messages: Sequence[JsonObject]) -> Iterator[Turn]:
    """Results pair by id, by name, or else by order."""
    open_calls: list[Call] = []
    for message in messages:
        role = text_at(message, "role").lower()
        text = text_at(message, "content")
        if role == "tool":
            call = _find_answered_call(message, open_calls)
            name = text_at(message, "tool_name") or (call.name if call else "the tool")
            yield Turn("user", results=(read_result(name, text, call_id=call.id if call else ""),))
        elif role == "assistant":
            open_calls = [_call(call) for call in objects_at(message, "tool_calls")]
            yield Turn("assistant", text, calls=tuple(open_calls))
        else:
            images = ("image",) * len(texts_at(message, "images"))
            yield Turn("system" if role == "system" else "user", text, media=images)


def _call(call: JsonObject) -> Call:
    function = object_at(call, "function")
    return Call(text_at(call, "id"), text_at(function, "name"), object_at(function, "arguments"))


def _find_answered_call(message: JsonObject, open_calls: list[Call]) -> Call | None:
    identifier, name = text_at(message, "tool_call_id"), text_at(message, "tool_name")
    fitting = [call for call in open_calls if call.id and call.id == identifier]
    fitting = fitting or [call for call in open_calls if call.name == name] or open_calls[:1]
    if not fitting:
        return None
    open_calls.remove(fitting[0])
    return fitting[0]


# --- writing ------------------------------------------------------------------------------------------------------


class Writer:
    def __init__(self, context: RequestContext, body: JsonObject) -> None:
        self.context = context
        self.model = text_at(body, "model")

    def line(self, message: JsonObject, **more: object) -> dict[str, object]:
        full_message = {"role": "assistant", "content": "", **message}
        return {"model": self.model, "created_at": CREATED_AT, "message": full_message, "done": False, **more}

    def _final_members(self, answer: Answer) -> dict[str, object]:
        counts = answer.counts
        evaluated, generated = counts.input * PER_TOKEN // 10, counts.output * PER_TOKEN
        metrics = {
            "total_duration": LOAD + evaluated + generated,
            "load_duration": LOAD,
            "prompt_eval_count": counts.input,
            "prompt_eval_duration": evaluated,
            "eval_count": counts.output,
            "eval_duration": generated,
        }
        reason = answer.word or ("length" if answer.finish == "length" else "stop")
        return {"done": True, "done_reason": reason, **{name: value for name, value in metrics.items() if value}}

    def _calls(self, answer: Answer) -> list[JsonObject]:
        complete = [call for call in answer.calls if call.complete]
        return [self._call(call, index) for index, call in enumerate(complete)]

    def _call(self, call: CallPart, index: int) -> JsonObject:
        function = {"index": index, "name": call.name, "arguments": call.arguments}
        return {"id": f"call_{self.context.exchange.mark('call', index)[:8]}", "function": function}

    def whole(self, answer: Answer) -> JsonObject:
        message: dict[str, object] = {"content": answer.text}
        if answer.thoughts:
            message["thinking"] = "".join(thought.text for thought in answer.thoughts)
        if calls := self._calls(answer):
            message["tool_calls"] = calls
        return self.line(message, **self._final_members(answer))

    def lines(self, answer: Answer) -> Iterator[bytes]:
        for message in self._messages(answer):
            yield msgspec.json.encode(self.line(message)) + b"\n"
        yield msgspec.json.encode(self.line({}, **self._final_members(answer))) + b"\n"

    def _messages(self, answer: Answer) -> Iterator[JsonObject]:
        for part in answer.parts:
            yield from self._pieces(part)
        # Calls are complete, one per line, before the last line.
        yield from ({"tool_calls": [call]} for call in self._calls(answer))

    def _pieces(self, part: Part) -> Iterator[JsonObject]:
        match part:
            case ThoughtPart():
                yield from ({"thinking": piece} for piece in self.context.chunks(part.text))
            case TextPart():
                yield from ({"content": piece} for piece in self.context.chunks(part.text))


# --- serving ------------------------------------------------------------------------------------------------------


def _find_model(context: RequestContext, name: str) -> LocalModel:
    model = catalogue.local_model(name)
    if model is None and context.any_model:
        return replace(catalogue.LOCAL_MODELS[0], name=name)
    if model is None:
        raise Refused(Problem("no_model", f"model '{name}' not found"))
    return model


def _check_capabilities(body: JsonObject, model: LocalModel) -> None:
    if objects_at(body, "tools") and "tools" not in model.capabilities:
        raise Refused(Problem("invalid", f"registry.ollama.ai/library/{model.name} does not support tools"))
    if body.get("think") not in (None, False) and "thinking" not in model.capabilities:
        raise Refused(Problem("invalid", f'"{text_at(body, "model")}" does not support thinking'))


def chat(context: RequestContext) -> Answered:
    raw = context.exchange.json()
    if violations := rules.check_request(raw):
        raise refusal_for(violations)
    body = _fold_keys(raw)
    model = _find_model(context, text_at(body, "model"))
    _check_capabilities(body, model)
    writer = Writer(context, body)
    if not objects_at(body, "messages"):
        return json_reply(writer.line({}, done=True, done_reason="unload" if body.get("keep_alive") == 0 else "load"))
    answer = context.answer(read(body, model))
    if body.get("stream") is False:
        return json_reply(writer.whole(answer))
    garbage = b'{"unfinished": \n'
    return Streamed(writer.lines(answer), "application/x-ndjson", garbage=garbage, failure=failure_line)


def _describe_model(model: LocalModel) -> dict[str, object]:
    details = {
        "parent_model": "",
        "format": "gguf",
        "family": model.family,
        "families": [model.family],
        "parameter_size": model.size,
        "quantization_level": "Q4_K_M",
    }
    return {
        "name": model.name,
        "model": model.name,
        "modified_at": CREATED_AT,
        "size": 2_000_000_000,
        "digest": hashlib.sha256(model.name.encode()).hexdigest(),
        "details": details,
    }


def list_tags(_context: RequestContext) -> Answered:
    return json_reply({"models": [_describe_model(model) for model in catalogue.LOCAL_MODELS]})


def show(context: RequestContext) -> Answered:
    body = _fold_keys(context.exchange.json())
    name = text_at(body, "model") or text_at(body, "name")
    if not name:
        raise Refused(Problem("invalid", "model is required"))
    model = _find_model(context, name)
    described = _describe_model(model)
    return json_reply(
        {
            "modelfile": f"FROM {model.name}\n",
            "parameters": "",
            "template": "{{ .Prompt }}",
            "details": described["details"],
            "model_info": {"general.architecture": model.family, f"{model.family}.context_length": 40_960},
            "capabilities": sorted(model.capabilities),
            "modified_at": CREATED_AT,
        }
    )


def version(_context: RequestContext) -> Answered:
    return json_reply({"version": VERSION})


# --- OpenAI's API as served by Ollama -----------------------------------------------------------------------------


def _check_compatible(body: JsonObject) -> None:
    """Checks what this layer refuses; unknown keys and several known ones are ignored."""
    if not objects_at(body, "messages"):
        raise Refused(Problem("invalid", "[] is too short - 'messages'"))
    for message in objects_at(body, "messages"):
        if message.get("content") is None and not objects_at(message, "tool_calls"):
            raise Refused(Problem("invalid", "invalid message content type: <nil>"))
        for part in objects_at(message, "content"):
            if text_at(part, "image_url", "url").startswith("http"):
                raise Refused(Problem("invalid", "invalid image input"))
        for call in objects_at(message, "tool_calls"):
            if not isinstance(parse_arguments(text_at(call, "function", "arguments")), dict):
                raise Refused(Problem("invalid", "invalid tool call arguments"))


class CompatibleWriter(openai_chat.Writer):
    """Thinking is named `reasoning`, calls are not split, and ids are as short as Ollama's."""

    @property
    def _head(self) -> dict[str, object]:
        return {**super()._head, "id": f"chatcmpl-{int(self.context.exchange.mark('id')[:8], 16) % 999}"}

    @property
    def _tail(self) -> dict[str, object]:
        return {"system_fingerprint": "fp_ollama"}

    def _choice(self, answer: Answer, index: int) -> JsonObject:
        choice = super()._choice(answer, index)
        message = {key: value for key, value in object_at(choice, "message").items() if key in ("role", "tool_calls")}
        if answer.thoughts:
            message["reasoning"] = "".join(thought.text for thought in answer.thoughts)
        choice_fields = {"index": index, "message": {"content": answer.text, **message}}
        return {**choice_fields, "finish_reason": choice["finish_reason"]}

    def _deltas(self, answer: Answer, choice: int) -> Iterator[JsonObject]:
        for thought in answer.thoughts:
            for piece in self.context.chunks(thought.text):
                yield {"role": "assistant", "content": "", "reasoning": piece}
        for piece in self.context.chunks(answer.text):
            yield {"role": "assistant", "content": piece}
        for number, call in enumerate(answer.calls):
            function = {"name": call.name, "arguments": call.text}
            call_fields = {
                "id": self.call_id(choice, number),
                "index": number,
                "type": "function",
                "function": function,
            }
            yield {"role": "assistant", "content": "", "tool_calls": [call_fields]}


def complete(context: RequestContext) -> Answered:
    body = context.exchange.json()
    _check_compatible(body)
    model = _find_model(context, text_at(body, "model"))
    _check_capabilities({key: value for key, value in body.items() if key != "think"}, model)
    thinks = "thinking" in model.capabilities and text_at(body, "reasoning_effort") != "none"
    limit = int(number_at(body, "max_tokens"))
    prompt = replace(openai_chat.read(body), choice=Choice(), thinks=thinks, max_tokens=limit or None)
    answer = context.answer(prompt)
    writer = CompatibleWriter(context, {**body, "stream_options": {**object_at(body, "stream_options"), **_CLEAR}})
    if body.get("stream"):
        return Streamed(writer.events([answer]), "text/event-stream", failure=openai.failure_event)
    return json_reply(writer.whole([answer]))


_CLEAR: JsonObject = {"include_obfuscation": False}


def list_compatible(_context: RequestContext) -> Answered:
    models = [
        {"id": model.name, "object": "model", "created": openai.CREATED, "owned_by": "library"}
        for model in catalogue.LOCAL_MODELS
    ]
    return json_reply({"object": "list", "data": models})


API = Api(
    name=NAME,
    routes=(
        route("POST", r"/api/chat", chat),
        route("GET", r"/api/tags", list_tags),
        route("POST", r"/api/show", show),
        route("GET", r"/api/version", version),
        route("POST", r"/v1/chat/completions", complete),
        route("GET", r"/v1/models", list_compatible),
    ),
    authenticate=authenticate,
    refusal=refusal,
    max_body=MAX_BODY,
    context_window=None,
)
