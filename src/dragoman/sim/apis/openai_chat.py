"""OpenAI Chat Completions: `POST /v1/chat/completions`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain

import msgspec

from dragoman.sim import catalogue, tokens
from dragoman.sim.apis import openai
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
    Tool,
    Turn,
)
from dragoman.sim.exchange import Answered, Api, Problem, Refused, Streamed, json_reply, refusal_for, route
from dragoman.sim.request_context import RequestContext
from dragoman.sim.rules import openai_chat as rules
from dragoman.sim.rules.common import number_at, object_at, objects_at, text_at, texts_at
from dragoman.sim.rules.openai_request import traits_of

NAME = "openai-chat"

_MEDIA = {"image_url": "image", "input_audio": "audio", "file": "document"}
_FINISH: Mapping[Finish, str] = {
    "stop": "stop",
    "stop_sequence": "stop",
    "length": "length",
    "calls": "tool_calls",
    "refusal": "stop",
}


# --- reading ------------------------------------------------------------------------------------------------------


def text_of(content: object) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(text_at(part, "text") or text_at(part, "refusal") for part in objects_at({"c": content}, "c"))


def read(body: JsonObject) -> Prompt:
    names: dict[str, str] = {}
    tools = (*_tools(body), *map(read_tool, objects_at(body, "functions")))
    limit = number_at(body, "max_completion_tokens") or number_at(body, "max_tokens")
    stop = body.get("stop")
    return Prompt(
        model=text_at(body, "model"),
        turns=merge_turns(_turn(message, names) for message in objects_at(body, "messages")),
        tools=tools,
        choice=_choice(body.get("tool_choice", body.get("function_call"))),
        parallel=body.get("parallel_tool_calls") is not False and not objects_at(body, "functions"),
        schema=_schema(body),
        any_json=text_at(body, "response_format", "type") == "json_object",
        stop=(stop,) if isinstance(stop, str) else tuple(texts_at(body, "stop")),
        max_tokens=int(limit) if limit else None,
        seed=int(number_at(body, "seed")),
        thinks=is_thinking(text_at(body, "model"), text_at(body, "reasoning_effort")),
    )


def is_thinking(model: str, effort: str) -> bool:
    traits = traits_of(model)
    if traits is None or not traits.reasons:
        return False
    return effort != "none" if effort else not traits.reasons_unless_asked_not_to


def _turn(message: JsonObject, names: dict[str, str]) -> Turn:
    role = text_at(message, "role")
    text = text_of(message.get("content"))
    if role in ("tool", "function"):
        call_id = text_at(message, "tool_call_id")
        name = names.get(call_id, text_at(message, "name")) or "the tool"
        return Turn("user", results=(read_result(name, text, call_id=call_id),))
    if role == "assistant":
        calls = tuple(_call(call) for call in objects_at(message, "tool_calls"))
        names.update({call.id: call.name for call in calls})
        if "function_call" in message:
            calls += (_call({"function": message["function_call"]}),)
        return Turn("assistant", text, calls=calls)
    kinds = (text_at(part, "type") for part in objects_at(message, "content"))
    media = tuple(_MEDIA[kind] for kind in kinds if kind in _MEDIA)
    return Turn("user" if role == "user" else "system", text, media=media)


def _call(call: JsonObject) -> Call:
    function, custom = object_at(call, "function"), object_at(call, "custom")
    if custom:
        return Call(text_at(call, "id"), text_at(custom, "name"), text_at(custom, "input"))
    return Call(text_at(call, "id"), text_at(function, "name"), parse_arguments(text_at(function, "arguments")))


def _tools(body: JsonObject) -> Iterator[Tool]:
    for tool in objects_at(body, "tools"):
        free = tool.get("type") == "custom"
        spec = object_at(tool, "custom" if free else "function")
        yield read_tool(spec, free_text=free)


def _choice(choice: object) -> Choice:
    match choice:
        case "none":
            return Choice(may=False)
        case "required":
            return Choice(must=True)
        case {"type": "allowed_tools"}:
            allowed = object_at(choice, "allowed_tools")
            names = [text_at(tool, text_at(tool, "type"), "name") for tool in objects_at(allowed, "tools")]
            return Choice(must=allowed.get("mode") == "required", names=frozenset(names))
        case {"type": str(kind)}:
            return Choice(must=True, names=frozenset({text_at(choice, kind, "name")}))
        case {"name": str(name)}:
            return Choice(must=True, names=frozenset({name}))
    return Choice()


def _schema(body: JsonObject) -> JsonObject | None:
    if text_at(body, "response_format", "type") != "json_schema":
        return None
    return object_at(body, "response_format", "json_schema", "schema")


# --- writing ------------------------------------------------------------------------------------------------------


def usage_of(answers: list[Answer]) -> JsonObject:
    counts = answers[0].counts
    output = sum(answer.counts.output for answer in answers)
    return {
        "prompt_tokens": counts.input,
        "completion_tokens": output,
        "total_tokens": counts.input + output,
        "prompt_tokens_details": {"cached_tokens": counts.read, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": sum(answer.counts.thought for answer in answers),
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def _with_id(call: CallPart, identifier: str) -> dict[str, object]:
    if call.free_text:
        return {"id": identifier, "type": "custom", "custom": {"name": call.name, "input": call.text}}
    return {"id": identifier, "type": "function", "function": {"name": call.name, "arguments": call.text}}


def _logprobs(text: str) -> list[JsonObject]:
    return [
        {"token": piece, "logprob": -0.01, "bytes": list(piece.encode()), "top_logprobs": []}
        for piece in tokens.pieces(text)
    ]


class Writer:
    """Writes answers to one request, whole or in chunks."""

    def __init__(self, context: RequestContext, body: JsonObject) -> None:
        self.context = context
        self.body = body
        self.legacy = bool(objects_at(body, "functions"))
        options = object_at(body, "stream_options")
        self.tells_usage = options.get("include_usage") is True
        self.obfuscates = options.get("include_obfuscation") is not False

    @property
    def _head(self) -> dict[str, object]:
        return {
            "id": f"chatcmpl-{self.context.exchange.mark('id')[:29]}",
            "object": "chat.completion",
            "created": self.context.now,
            "model": text_at(self.body, "model"),
        }

    @property
    def _tail(self) -> dict[str, object]:
        return {"service_tier": "default", "system_fingerprint": "fp_dragomansim"}

    def call_id(self, choice: int, index: int) -> str:
        return f"call_{self.context.exchange.mark('call', choice, index)[:24]}"

    def _finish(self, answer: Answer) -> str:
        usual = "function_call" if self.legacy and answer.finish == "calls" else _FINISH[answer.finish]
        return answer.word or usual

    # whole

    def whole(self, answers: list[Answer]) -> JsonObject:
        choices = [self._choice(answer, index) for index, answer in enumerate(answers)]
        return {**self._head, "choices": choices, "usage": usage_of(answers), **self._tail}

    def _choice(self, answer: Answer, index: int) -> JsonObject:
        refused = answer.finish == "refusal"
        text = answer.text or None
        message: dict[str, object] = {
            "role": "assistant",
            "content": None if refused else text if answer.calls else answer.text,
            "refusal": answer.text if refused else None,
            "annotations": [],
        }
        if answer.calls and self.legacy:
            message["function_call"] = {"name": answer.calls[0].name, "arguments": answer.calls[0].text}
        elif answer.calls:
            calls = enumerate(answer.calls)
            message["tool_calls"] = [_with_id(call, self.call_id(index, number)) for number, call in calls]
        logprobs = {"content": _logprobs(answer.text), "refusal": None} if self.body.get("logprobs") else None
        return {"index": index, "message": message, "logprobs": logprobs, "finish_reason": self._finish(answer)}

    # streamed

    def events(self, answers: list[Answer]) -> Iterator[bytes]:
        for index, answer in enumerate(answers):
            for delta in self._deltas(answer, index):
                yield self._chunk([self._delta(index, delta)])
            yield self._chunk([self._delta(index, {}, self._finish(answer))])
        if self.tells_usage:
            yield self._chunk([], usage_of(answers))
        yield b"data: [DONE]\n\n"

    def _delta(self, index: int, delta: JsonObject, finish: str | None = None) -> JsonObject:
        text = text_at(delta, "content")
        logprobs = {"content": _logprobs(text), "refusal": None} if self.body.get("logprobs") and text else None
        return {"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": finish}

    def _chunk(self, choices: list[JsonObject], usage: JsonObject | None = None) -> bytes:
        chunk = {**self._head, "object": "chat.completion.chunk", **self._tail, "choices": choices}
        if self.tells_usage:
            chunk["usage"] = usage
        if self.obfuscates:
            chunk["obfuscation"] = self.context.exchange.mark(len(str(choices)))[:8]
        return b"data: " + msgspec.json.encode(chunk) + b"\n\n"

    def _deltas(self, answer: Answer, choice: int) -> Iterator[JsonObject]:
        field = "refusal" if answer.finish == "refusal" else "content"
        fragments = self._call_fragments(answer, choice)
        opening: dict[str, object] = {"role": "assistant", "content": None if answer.calls else "", "refusal": None}
        # With a single call and no text, the role and the first fragment are in one chunk.
        if len(answer.calls) == 1 and not answer.text and not self.legacy:
            opening |= next(fragments)
        yield opening
        content = chain.from_iterable(
            self.context.chunks(part.text) for part in answer.parts if isinstance(part, TextPart)
        )
        yield from ({field: piece} for piece in content)
        yield from fragments

    def _call_fragments(self, answer: Answer, choice: int) -> Iterator[JsonObject]:
        for number, call in enumerate(answer.calls):
            if self.legacy:
                yield {"function_call": {"name": call.name, "arguments": ""}}
                yield from ({"function_call": {"arguments": piece}} for piece in self.context.chunks(call.text))
                return
            identified = _with_id(CallPart(call.name, {}, "", free_text=call.free_text), self.call_id(choice, number))
            yield {"tool_calls": [{"index": number, **identified}]}
            for piece in self.context.chunks(call.text):
                yield {"tool_calls": [_fragment(number, piece, free_text=call.free_text)]}


def _fragment(index: int, piece: str, *, free_text: bool) -> JsonObject:
    if free_text:
        return {"index": index, "id": None, "type": None, "function": None, "custom": {"input": piece}}
    return {"index": index, "function": {"arguments": piece}}


# --- serving ------------------------------------------------------------------------------------------------------


def complete(context: RequestContext) -> Answered:
    body = context.exchange.json()
    if violations := rules.check_request(body):
        raise refusal_for(violations)
    model = text_at(body, "model")
    if not context.any_model and not catalogue.exists("openai", model):
        message = f"The model `{model}` does not exist or you do not have access to it."
        raise Refused(Problem("no_model", message))
    return answer_request(context, body)


def answer_request(context: RequestContext, body: JsonObject) -> Answered:
    answers = context.answer_cached(read(body), int(number_at(body, "n")) or 1)
    writer = Writer(context, body)
    headers = openai.headers_of(context.exchange)
    if body.get("stream"):
        kind = "text/event-stream; charset=utf-8"
        return Streamed(writer.events(answers), kind, headers, failure=openai.failure_event)
    return json_reply(writer.whole(answers), headers=headers)


API = Api(
    name=NAME,
    routes=(
        route("POST", r"/v1/chat/completions", complete),
        route("GET", r"/v1/models", openai.list_models),
        route("GET", r"/v1/models/(?P<model>.+)", openai.show_model),
    ),
    authenticate=openai.authenticate,
    refusal=openai.refusal,
    max_body=openai.MAX_BODY,
    context_window=openai.CONTEXT_WINDOW,
)
