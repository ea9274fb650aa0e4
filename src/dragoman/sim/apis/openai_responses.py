"""OpenAI Responses: `POST /v1/responses`, stateless, chained by `previous_response_id`, or in a conversation."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from dragoman.sim import catalogue, signatures, tokens
from dragoman.sim.apis import openai
from dragoman.sim.apis.openai_chat import is_thinking
from dragoman.sim.apis.reading import merge_turns, parse_arguments, read_result, read_tool
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
from dragoman.sim.exchange import Answered, Api, Problem, Refused, Streamed, json_reply, refusal_for, route
from dragoman.sim.request_context import RequestContext
from dragoman.sim.rules import openai_responses as rules
from dragoman.sim.rules.common import number_at, object_at, objects_at, text_at, texts_at

NAME = "openai-responses"

_MEDIA = {"input_image": "image", "input_file": "document", "input_audio": "audio"}
_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
# Prefix of real ones: version and time of a Fernet token.
_ENVELOPE = "gAAAAAAA"
_OUTPUTS = ("function_call_output", "custom_tool_call_output")
# Request fields that the response repeats, with their defaults.
_ECHO: Mapping[str, object] = {
    "background": False,
    "frequency_penalty": 0.0,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "presence_penalty": 0.0,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "safety_identifier": None,
    "store": True,
    "temperature": 1.0,
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
    "user": None,
}


# --- reading ------------------------------------------------------------------------------------------------------


def items_of(body: JsonObject) -> list[JsonObject]:
    """The input as items: a string is one user message."""
    given = body.get("input")
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": given}]}]
    return list(objects_at(body, "input"))


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = objects_at({"c": content}, "c")
    return "\n".join(text for part in parts if (text := text_at(part, "text") or text_at(part, "refusal")))


def _media(content: object) -> tuple[str, ...]:
    kinds = (text_at(part, "type") for part in objects_at({"c": content}, "c"))
    return tuple(_MEDIA[kind] for kind in kinds if kind in _MEDIA)


def read(body: JsonObject, items: Sequence[JsonObject]) -> Prompt:
    names: dict[str, str] = {}
    instructions = text_at(body, "instructions")
    turns = [Turn("system", instructions)] if instructions else []
    turns.extend(turn for item in items if (turn := _turn(item, names)) is not None)
    described = object_at(body, "text", "format")
    limit = number_at(body, "max_output_tokens")
    return Prompt(
        model=text_at(body, "model"),
        turns=merge_turns(turns),
        tools=tuple(read_tool(tool, free_text=tool.get("type") == "custom") for tool, _ in _callable_tools(body)),
        choice=_choice(body.get("tool_choice")),
        parallel=body.get("parallel_tool_calls") is not False,
        schema=object_at(described, "schema") if described.get("type") == "json_schema" else None,
        any_json=described.get("type") == "json_object",
        max_tokens=int(limit) if limit else None,
        thinks=is_thinking(text_at(body, "model"), text_at(body, "reasoning", "effort")),
    )


def _turn(item: JsonObject, names: dict[str, str]) -> Turn | None:
    kind = text_at(item, "type") or "message"
    call_id = text_at(item, "call_id")
    if kind == "message":
        role = text_at(item, "role")
        text = _text(item.get("content"))
        if role == "assistant":
            return Turn("assistant", text)
        return Turn("user" if role == "user" else "system", text, media=_media(item.get("content")))
    if kind in _CALLS:
        names[call_id] = text_at(item, "name")
        written = text_at(item, _CALLS[kind])
        arguments = parse_arguments(written) if kind == "function_call" else written
        return Turn("assistant", calls=(Call(call_id, names[call_id], arguments),))
    if kind in _OUTPUTS:
        output = item.get("output")
        result = read_result(names.get(call_id, "the tool"), _text(output), call_id=call_id, media=len(_media(output)))
        return Turn("user", results=(result,))
    return None


def _callable_tools(body: JsonObject) -> Iterator[tuple[JsonObject, str]]:
    """Tools that the client runs, each with its namespace."""
    for tool in objects_at(body, "tools"):
        if tool.get("type") == "namespace":
            yield from ((member, text_at(tool, "name")) for member in objects_at(tool, "tools"))
        elif tool.get("type") in ("function", "custom"):
            yield tool, ""


def _choice(choice: object) -> Choice:
    match choice:
        case "none":
            return Choice(may=False)
        case "required":
            return Choice(must=True)
        case {"type": "allowed_tools"}:
            names = frozenset(text_at(tool, "name") for tool in objects_at(choice, "tools"))
            return Choice(must=text_at(choice, "mode") == "required", names=names)
        case {"type": "function" | "custom", "name": str(name)}:
            return Choice(must=True, names=frozenset({name}))
    return Choice()


# --- what is stored -----------------------------------------------------------------------------------------------


def _with_history(context: RequestContext, body: JsonObject) -> list[JsonObject]:
    """All items of the conversation: stored ones, then the input."""
    items = [_dereference(context, item) for item in items_of(body)]
    previous = body.get("previous_response_id")
    if isinstance(previous, str):
        stored = context.memory.responses.get(previous)
        if stored is None:
            message = f"Previous response with id '{previous}' not found."
            raise Refused(Problem("invalid", message, 400, "previous_response_id", "previous_response_not_found"))
        return [*objects_at(stored, "items"), *items]
    if conversation := _conversation_id(body):
        stored = context.memory.responses.get(conversation)
        if stored is None:
            raise Refused(Problem("invalid", f"Conversation with id '{conversation}' not found.", 404))
        return [*objects_at(stored, "items"), *items]
    return items


def _conversation_id(body: JsonObject) -> str:
    conversation = body.get("conversation")
    return conversation if isinstance(conversation, str) else text_at(conversation, "id")


def _dereference(context: RequestContext, item: JsonObject) -> JsonObject:
    if item.get("type") != "item_reference" and ("type" in item or "role" in item):
        return item
    wanted = text_at(item, "id")
    for stored in context.memory.responses.values():
        for known in objects_at(stored, "items"):
            if known.get("id") == wanted:
                return known
    raise Refused(Problem("invalid", f"Item with id '{wanted}' not found.", 404, "input"))


def _store(context: RequestContext, body: JsonObject, items: Sequence[JsonObject], response: JsonObject) -> None:
    all_items = [*items, *objects_at(response, "output")]
    if body.get("store") is not False:
        stored = {"response": response, "items": all_items, "input": list(items)}
        context.memory.store(text_at(response, "id"), stored)
    if conversation := _conversation_id(body):
        context.memory.store(conversation, {"items": all_items})


# --- writing ------------------------------------------------------------------------------------------------------


def usage_of(answer: Answer) -> JsonObject:
    counts = answer.counts
    return {
        "input_tokens": counts.input,
        "input_tokens_details": {"cached_tokens": counts.read, "cache_write_tokens": 0},
        "output_tokens": counts.output,
        "output_tokens_details": {"reasoning_tokens": counts.thought},
        "total_tokens": counts.input + counts.output,
    }


class Writer:
    def __init__(self, context: RequestContext, body: JsonObject) -> None:
        self.context = context
        self.body = body
        self.encrypts_reasoning = body.get("store") is False or "reasoning.encrypted_content" in texts_at(
            body, "include"
        )
        self.summarises = text_at(body, "reasoning", "summary") != ""
        self.namespaces = {text_at(tool, "name"): space for tool, space in _callable_tools(body) if space}
        self.obfuscates = object_at(body, "stream_options").get("include_obfuscation") is not False
        self.sequence = 0

    # the object

    def response(self, answer: Answer | None) -> dict[str, object]:
        """The whole response; without an answer, the response in progress."""
        cut = answer is not None and (answer.finish == "length" or answer.word is not None)
        reason = (answer.word if answer else None) or "max_output_tokens"
        echo = {key: usual if (value := self.body.get(key)) is None else value for key, usual in _ECHO.items()}
        echo["tools"] = [_repeat_tool(tool) for tool in objects_at(self.body, "tools")]
        form = object_at(self.body, "text", "format") or {"type": "text"}
        if form.get("type") == "json_schema":
            form = {"description": None, "strict": False, **form}
        reasoning = {"effort": None, "summary": None, **object_at(self.body, "reasoning")}
        return {
            "id": f"resp_{self.context.exchange.mark('id')[:48]}",
            "object": "response",
            "created_at": self.context.now,
            "completed_at": None if answer is None or cut else self.context.now,
            "status": "in_progress" if answer is None else "incomplete" if cut else "completed",
            "error": None,
            "incomplete_details": {"reason": reason} if cut else None,
            "model": text_at(self.body, "model"),
            "output": [] if answer is None else self.items(answer),
            "reasoning": reasoning,
            "service_tier": "auto" if answer is None else "default",
            "text": {"format": form, "verbosity": text_at(self.body, "text", "verbosity") or "medium"},
            "usage": None if answer is None else usage_of(answer),
            **echo,
        }

    def items(self, answer: Answer) -> list[dict[str, object]]:
        return [self._item(answer, index) for index in range(len(answer.parts))]

    def _id(self, prefix: str, index: int) -> str:
        return f"{prefix}_{self.context.exchange.mark(prefix, index)[:48]}"

    def _item(self, answer: Answer, index: int) -> dict[str, object]:
        part = answer.parts[index]
        last = answer.finish == "length" and index == len(answer.parts) - 1
        status = "incomplete" if last else "completed"
        match part:
            case ThoughtPart():
                return self._reasoning(part, index)
            case TextPart():
                fields = (
                    {"type": "refusal", "refusal": part.text}
                    if answer.finish == "refusal"
                    else {"type": "output_text", "text": part.text, "annotations": [], "logprobs": []}
                )
                item = {"id": self._id("msg", index), "type": "message", "status": status, "role": "assistant"}
                return {**item, "content": [fields]}
            case CallPart():
                return self._call(part, index, status)

    def _reasoning(self, thought: ThoughtPart, index: int) -> dict[str, object]:
        identifier = self._id("rs", index)
        summary = [{"type": "summary_text", "text": thought.text}] if self.summarises else []
        item: dict[str, object] = {"id": identifier, "type": "reasoning", "summary": summary}
        if self.encrypts_reasoning:
            encrypted = base64.urlsafe_b64encode(signatures.make_signature("openai", identifier, "")).decode()
            item["encrypted_content"] = _ENVELOPE + encrypted
        return item

    def _call(self, call: CallPart, index: int, status: str) -> dict[str, object]:
        call_id = f"call_{self.context.exchange.mark('call', index)[:24]}"
        named: dict[str, object] = {"status": status, "call_id": call_id, "name": call.name}
        if call.name in self.namespaces:
            named["namespace"] = self.namespaces[call.name]
        if call.free_text:
            return {"id": self._id("ctc", index), "type": "custom_tool_call", **named, "input": call.text}
        return {"id": self._id("fc", index), "type": "function_call", **named, "arguments": call.text}

    # the stream

    def events(self, answer: Answer, whole: JsonObject) -> Iterator[bytes]:
        for name in ("response.created", "response.in_progress"):
            yield self._event(name, response=self.response(None))
        for index, part in enumerate(answer.parts):
            item = self._item(answer, index)
            yield self._event("response.output_item.added", output_index=index, item=_announce_item(item))
            yield from self._part_events(part, item, index)
            yield self._event("response.output_item.done", output_index=index, item=item)
        yield self._event(f"response.{whole['status']}", response=whole)

    def _event(self, name: str, **data: object) -> bytes:
        event = {"type": name, "sequence_number": self.sequence, **data}
        self.sequence += 1
        return b"event: " + name.encode() + b"\ndata: " + msgspec.json.encode(event) + b"\n\n"

    def _delta(self, name: str, delta: str, **data: object) -> bytes:
        hidden = {"obfuscation": self.context.exchange.mark(self.sequence)[:8]} if self.obfuscates else {}
        return self._event(name, **data, delta=delta, **hidden)

    def _part_events(self, part: Part, item: JsonObject, index: int) -> Iterator[bytes]:
        place: dict[str, object] = {"item_id": item["id"], "output_index": index}
        match part:
            case ThoughtPart():
                yield from self._summary(item, place)
            case TextPart():
                yield from self._text_events(objects_at(item, "content")[0], place)
            case CallPart():
                kind = "custom_tool_call_input" if part.free_text else "function_call_arguments"
                for piece in self.context.chunks(part.text):
                    yield self._delta(f"response.{kind}.delta", piece, **place)
                done = {"input" if part.free_text else "arguments": part.text}
                yield self._event(f"response.{kind}.done", **place, **done)

    def _summary(self, item: JsonObject, place: dict[str, object]) -> Iterator[bytes]:
        for number, part in enumerate(objects_at(item, "summary")):
            where = {**place, "summary_index": number}
            text = text_at(part, "text")
            yield self._event("response.reasoning_summary_part.added", **where, part={**part, "text": ""})
            for piece in self.context.chunks(text):
                yield self._delta("response.reasoning_summary_text.delta", piece, **where)
            yield self._event("response.reasoning_summary_text.done", **where, text=text)
            yield self._event("response.reasoning_summary_part.done", **where, part=part)

    def _text_events(self, part: JsonObject, place: dict[str, object]) -> Iterator[bytes]:
        where = {**place, "content_index": 0}
        key = "refusal" if part["type"] == "refusal" else "text"
        name = "response.refusal" if key == "refusal" else "response.output_text"
        more: dict[str, object] = {} if key == "refusal" else {"logprobs": []}
        yield self._event("response.content_part.added", **where, part={**part, key: ""})
        for piece in self.context.chunks(text_at(part, key)):
            yield self._delta(f"{name}.delta", piece, **where, **more)
        yield self._event(f"{name}.done", **where, **{key: part[key]}, **more)
        yield self._event("response.content_part.done", **where, part=part)

    def failure(self, problem: Problem) -> bytes:
        """An error event with a nested error, then the failed response."""
        _, error = openai.error_of(problem)
        code = error["code"] or "server_error"
        failed = {**self.response(None), "status": "failed", "error": {"code": code, "message": error["message"]}}
        return self._event("error", error=error) + self._event("response.failed", response=failed)


def _repeat_tool(tool: JsonObject) -> JsonObject:
    """Functions are strict by default; credentials are not repeated."""
    if tool.get("type") == "function":
        return {"description": None, "strict": True, **tool}
    return {key: value for key, value in tool.items() if key not in ("authorization", "headers")}


def _announce_item(item: JsonObject) -> dict[str, object]:
    """An item as announced in the stream: still empty."""
    empty: JsonObject = {"content": [], "summary": [], "arguments": "", "input": "", "status": "in_progress"}
    return {**item, **{key: value for key, value in empty.items() if key in item}}


# --- serving ------------------------------------------------------------------------------------------------------


def _check(context: RequestContext, body: JsonObject) -> list[JsonObject]:
    """Checks the request; returns the items of the whole conversation."""
    if violations := rules.check_request(body):
        raise refusal_for(violations)
    items = _with_history(context, body)
    # Requests that refer to stored items are checked together with them.
    alone = {key: value for key, value in body.items() if key not in ("previous_response_id", "conversation")}
    if items and len(items) != len(items_of(body)) and (violations := rules.check_request({**alone, "input": items})):
        raise refusal_for(violations)
    for item in () if context.any_signature else items:
        _check_signature(item)
    model = text_at(body, "model")
    if not context.any_model and not catalogue.exists("openai", model):
        message = f"The requested model '{model}' does not exist."
        raise Refused(Problem("no_model", message, 400, "model"))
    return items


def _check_signature(item: JsonObject) -> None:
    encrypted = item.get("encrypted_content")
    if item.get("type") != "reasoning" or not isinstance(encrypted, str):
        return
    if not encrypted.startswith(_ENVELOPE) or not signatures.is_signature_text(
        encrypted.removeprefix(_ENVELOPE), "openai", ""
    ):
        message = f"The encrypted content for item {text_at(item, 'id')} could not be verified."
        raise Refused(Problem("invalid", message, 400, code="invalid_encrypted_content"))


def create(context: RequestContext) -> Answered:
    body = context.exchange.json()
    items = _check(context, body)
    answer = context.answer_cached(read(body, items))[0]
    writer = Writer(context, body)
    response = writer.response(answer)
    _store(context, body, items, response)
    headers = openai.headers_of(context.exchange)
    if body.get("stream"):
        kind = "text/event-stream; charset=utf-8"
        return Streamed(writer.events(answer, response), kind, headers, failure=writer.failure)
    return json_reply(response, headers=headers)


def _as_parts(message: JsonObject) -> JsonObject:
    content = message.get("content")
    if isinstance(content, str):
        content = [{"type": "input_text", "text": content}]
    return {**message, "type": "message", "content": content}


def compact(context: RequestContext) -> Answered:
    """The user's messages, and one compaction item for the rest."""
    body = context.exchange.json()
    items = _check(context, body)
    answer = context.answer_cached(read(body, items))[0]
    encrypted = base64.urlsafe_b64encode(signatures.make_signature("openai", "compaction", "")).decode()
    identifier = f"cmp_{context.exchange.mark('cmp')[:48]}"
    retained = [
        {
            "id": f"msg_{context.exchange.mark('msg', index)[:48]}",
            "type": "message",
            "status": "completed",
            **_as_parts(item),
        }
        for index, item in enumerate(items)
        if item.get("role") == "user"
    ]
    compaction = {"id": identifier, "type": "compaction", "encrypted_content": _ENVELOPE + encrypted}
    compacted = {
        "id": f"resp_{context.exchange.mark('id')[:48]}",
        "object": "response.compaction",
        "created_at": context.now,
        "output": [*retained, compaction],
        "usage": usage_of(answer),
    }
    return json_reply(compacted, headers=openai.headers_of(context.exchange))


def count(context: RequestContext) -> Answered:
    body = context.exchange.json()
    total = tokens.count_prompt(read(body, _check(context, body)))
    return json_reply({"object": "response.input_tokens", "input_tokens": total})


def _find_response(context: RequestContext) -> JsonObject:
    identifier = context.exchange.params["id"]
    stored = context.memory.responses.get(identifier)
    if stored is None:
        raise Refused(Problem("invalid", f"Response with id '{identifier}' not found.", 404))
    return stored


def retrieve(context: RequestContext) -> Answered:
    return json_reply(_find_response(context)["response"], headers=openai.headers_of(context.exchange))


def delete(context: RequestContext) -> Answered:
    _find_response(context)
    del context.memory.responses[context.exchange.params["id"]]
    return json_reply({"id": context.exchange.params["id"], "object": "response.deleted", "deleted": True})


def list_input(context: RequestContext) -> Answered:
    items = objects_at(_find_response(context), "input")
    ids = [text_at(item, "id") for item in items] or [""]
    page = {"object": "list", "data": items, "first_id": ids[0], "last_id": ids[-1], "has_more": False}
    return json_reply(page, headers=openai.headers_of(context.exchange))


def converse(context: RequestContext) -> Answered:
    body = context.exchange.json() if context.exchange.body else {}
    identifier = f"conv_{context.exchange.mark('conversation', len(context.memory.responses))[:48]}"
    context.memory.store(identifier, {"items": list(objects_at(body, "items"))})
    metadata = object_at(body, "metadata")
    return json_reply({"id": identifier, "object": "conversation", "created_at": context.now, "metadata": metadata})


API = Api(
    name=NAME,
    routes=(
        route("POST", r"/v1/responses", create),
        # Azure's path.
        route("POST", r"/openai/responses", create),
        route("POST", r"/v1/responses/input_tokens", count),
        route("POST", r"/v1/responses/compact", compact),
        route("GET", r"/v1/responses/(?P<id>resp_\w+)", retrieve),
        route("DELETE", r"/v1/responses/(?P<id>resp_\w+)", delete),
        route("GET", r"/v1/responses/(?P<id>resp_\w+)/input_items", list_input),
        route("POST", r"/v1/conversations", converse),
    ),
    authenticate=openai.authenticate,
    refusal=openai.refusal,
    max_body=openai.MAX_BODY,
    context_window=openai.CONTEXT_WINDOW,
)
