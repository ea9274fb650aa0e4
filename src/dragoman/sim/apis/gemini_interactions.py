"""Gemini's Interactions API: create, get, cancel, delete, and resumable streams."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from dragoman.sim import signatures
from dragoman.sim.apis import gemini, google
from dragoman.sim.apis.reading import merge_turns
from dragoman.sim.conversation_view import (
    Answer,
    Call,
    CallPart,
    Choice,
    Finish,
    JsonObject,
    Prompt,
    Result,
    TextPart,
    ThoughtPart,
    Tool,
    Turn,
    compact,
)
from dragoman.sim.exchange import Answered, Api, Problem, Refused, Reply, Streamed, json_reply, refusal_for, route
from dragoman.sim.request_context import RequestContext
from dragoman.sim.rules import gemini_interactions as rules
from dragoman.sim.rules.common import number_at, object_at, objects_at, text_at, texts_at

NAME = "gemini-interactions"
_STATUS: Mapping[Finish, str] = {
    "stop": "completed",
    "stop_sequence": "completed",
    "length": "incomplete",
    "calls": "requires_action",
    "refusal": "incomplete",
}
_TIME = "2026-11-15T12:00:00Z"
_NOT_FOUND = "Interaction not found."
Steps = list[JsonObject]

# --- reading ------------------------------------------------------------------------------------------------------


_READ_STEPS = frozenset({"user_input", "model_output", "function_call", "function_result"})


def read(body: JsonObject, steps: Sequence[JsonObject]) -> Prompt:
    config = object_at(body, "generation_config")
    system = text_at(body, "system_instruction")
    turns = [Turn("system", system)] if system else []
    limit = number_at(config, "max_output_tokens")
    form = next((one for one in _formats(body) if one.get("type") == "text"), {})
    return Prompt(
        model=text_at(body, "model") or text_at(body, "agent"),
        turns=merge_turns([*turns, *(_turn(step) for step in steps if step.get("type") in _READ_STEPS)]),
        tools=tuple(
            Tool(text_at(tool, "name"), text_at(tool, "description"), object_at(tool, "parameters"))
            for tool in objects_at(body, "tools")
            if tool.get("type") == "function"
        ),
        choice=_choice(config),
        schema=object_at(form, "schema") or None,
        any_json=text_at(form, "mime_type") == "application/json",
        stop=tuple(texts_at(config, "stop_sequences")),
        max_tokens=int(limit) if limit else None,
        seed=int(number_at(config, "seed")),
        thinks=gemini.is_thinking(text_at(body, "model"), {}),
    )


def _formats(body: JsonObject) -> Sequence[JsonObject]:
    form = body.get("response_format")
    return [form] if isinstance(form, Mapping) else objects_at(body, "response_format")


def _turn(step: JsonObject) -> Turn:
    contents = objects_at(step, "content")
    text = "\n".join(text_at(content, "text") for content in contents if content.get("type") == "text")
    match step.get("type"):
        case "model_output":
            return Turn("assistant", text)
        case "function_call":
            call = Call(text_at(step, "id"), text_at(step, "name"), object_at(step, "arguments"))
            return Turn("assistant", calls=(call,))
        case "function_result":
            return Turn("user", results=(_result(step),))
    return Turn("user", text, media=tuple(str(one.get("type")) for one in contents if one.get("type") != "text"))


def _result(step: JsonObject) -> Result:
    value = step.get("result")
    media = 0
    if isinstance(value, list):
        media = sum(one.get("type") != "text" for one in objects_at(step, "result"))
        value = "\n".join(text_at(one, "text") for one in objects_at(step, "result") if one.get("type") == "text")
    words = value if isinstance(value, str) else compact(value)
    failed = step.get("is_error") is True
    return Result(text_at(step, "name"), words, failed=failed, media=media, call_id=text_at(step, "call_id"))


def _choice(config: JsonObject) -> Choice:
    allowed = object_at(config, "tool_choice", "allowed_tools")
    names = frozenset(texts_at(allowed, "tools")) or None
    word = text_at(allowed, "mode") or text_at(config, "tool_choice")
    return Choice(may=word != "none", must=word == "any", names=names)


# --- signatures ---------------------------------------------------------------------------------------------------


def _signed_content(step: JsonObject | None) -> str:
    """A thought signs the step that follows it."""
    if step is None or step.get("type") != "function_call":
        return gemini.signed_content({})
    return gemini.signed_content(
        {"functionCall": {"name": text_at(step, "name"), "args": object_at(step, "arguments")}}
    )


def check_signatures(steps: Sequence[JsonObject]) -> None:
    for index, step in enumerate(steps):
        signature = text_at(step, "signature")
        if step.get("type") != "thought" or not signature or gemini.is_dummy(signature):
            continue
        following = steps[index + 1] if index + 1 < len(steps) else None
        if not signatures.is_signature_text(signature, "gemini", _signed_content(following)):
            raise Refused(Problem("invalid", "Corrupted thought signature."))


# --- writing ------------------------------------------------------------------------------------------------------


def usage_of(answer: Answer) -> JsonObject:
    """Zeros are written out; the output excludes thoughts."""
    counts = answer.counts
    return {
        "total_input_tokens": counts.input,
        "input_tokens_by_modality": [{"modality": "text", "tokens": counts.input}],
        "total_cached_tokens": counts.read,
        "total_output_tokens": counts.output - counts.thought,
        "total_tool_use_tokens": 0,
        "total_thought_tokens": counts.thought,
        "total_tokens": counts.input + counts.output,
    }


class Writer:
    def __init__(self, context: RequestContext, body: JsonObject) -> None:
        self.context = context
        self.body = body
        self.stores = body.get("store") is not False
        self.shows_thoughts = text_at(body, "generation_config", "thinking_summaries") == "auto"

    @property
    def id(self) -> str:
        return f"v1_{self.context.exchange.mark('interaction')[:40]}" if self.stores else ""

    def steps(self, answer: Answer) -> Steps:
        written: Steps = []
        for index, part in enumerate(answer.parts):
            if isinstance(part, TextPart):
                written.append({"type": "model_output", "content": [{"type": "text", "text": part.text}]})
            elif isinstance(part, CallPart) and part.complete:
                call = {"id": self.context.exchange.mark("call", index)[:8], "name": part.name}
                written.append({"type": "function_call", **call, "arguments": part.arguments})
        thoughts = [part.text for part in answer.parts if isinstance(part, ThoughtPart)]
        if not thoughts:
            return written
        signature = signatures.make_signature(
            "gemini", self.context.exchange.mark("seal"), _signed_content(written[0] if written else None)
        )
        thought: dict[str, object] = {"type": "thought", "signature": base64.b64encode(signature).decode()}
        if self.shows_thoughts:
            thought["summary"] = [{"type": "text", "text": text} for text in thoughts]
        return [thought, *written]

    def whole(self, answer: Answer) -> dict[str, object]:
        identity = {"id": self.id} if self.stores else {}
        who = {key: self.body[key] for key in ("model", "agent") if key in self.body}
        previous = text_at(self.body, "previous_interaction_id")
        return {
            **identity,
            "object": "interaction",
            "status": answer.word or _STATUS[answer.finish],
            **who,
            "created": _TIME,
            "updated": _TIME,
            "service_tier": "standard",
            "steps": self.steps(answer),
            "usage": usage_of(answer),
            **({"previous_interaction_id": previous} if previous else {}),
        }


def events_of(context: RequestContext, whole: JsonObject, *, numbered: bool) -> Iterator[bytes]:
    """The stream of an interaction. Events have ids if the stream can be resumed."""
    count = 0

    def event(kind: str, **fields: object) -> bytes:
        nonlocal count
        count += 1
        identity = {"event_id": f"evt_{count}"} if numbered else {}
        data = msgspec.json.encode({**fields, "event_type": kind, **identity})
        return b"event: " + kind.encode() + b"\ndata: " + data + b"\n\n"

    identity = text_at(whole, "id")
    who = {key: whole[key] for key in ("model", "agent") if key in whole}
    yield event(
        "interaction.created",
        interaction={"id": identity, "status": "in_progress", "object": "interaction", **who},
    )
    yield event("interaction.status_update", interaction_id=identity, status="in_progress")
    for index, step in enumerate(objects_at(whole, "steps")):
        if step.get("type") == "user_input":
            continue
        yield event("step.start", index=index, step=_skeleton(step))
        for delta in _deltas(context, step):
            yield event("step.delta", index=index, delta=delta)
        yield event("step.stop", index=index)
    ended = {key: value for key, value in whole.items() if key != "steps"}
    yield event("interaction.completed", interaction={**ended, "id": identity})
    yield b"event: done\ndata: [DONE]\n\n"


def _skeleton(step: JsonObject) -> JsonObject:
    if step.get("type") != "function_call":
        return {"type": step["type"]}
    return {"id": step["id"], "signature": "", "type": "function_call", "name": step["name"], "arguments": {}}


def _deltas(context: RequestContext, step: JsonObject) -> Iterator[JsonObject]:
    match step.get("type"):
        case "thought":
            for content in objects_at(step, "summary"):
                for piece in context.chunks(text_at(content, "text")):
                    yield {"content": {"text": piece, "type": "text"}, "type": "thought_summary"}
            yield {"signature": step["signature"], "type": "thought_signature"}
        case "model_output":
            for content in objects_at(step, "content"):
                yield from ({"text": piece, "type": "text"} for piece in context.chunks(text_at(content, "text")))
        case "function_call":
            for piece in context.chunks(compact(step["arguments"])):
                yield {"arguments": piece, "type": "arguments_delta"}


def failure(problem: Problem) -> bytes:
    status, body = google.error_of(problem)
    error = object_at(body, "error")
    code = "invalid_request" if status == google.BAD_REQUEST else text_at(error, "status").lower()
    data = {"error": {"code": code, "message": text_at(error, "message")}, "event_type": "error"}
    return b"event: error\ndata: " + msgspec.json.encode(data) + b"\n\n"


# --- serving ------------------------------------------------------------------------------------------------------


def _check(context: RequestContext, body: JsonObject) -> Steps:
    """Checks the request; returns the whole timeline."""
    if violations := rules.check_request(body):
        raise refusal_for(violations)
    steps: Steps = [step for _, step in rules.steps_of(body)]
    previous = text_at(body, "previous_interaction_id")
    if previous:
        stored = context.memory.responses.get(previous)
        if stored is None:
            raise Refused(Problem("invalid", _NOT_FOUND, 404))
        steps = [*objects_at(stored, "timeline"), *steps]
        alone = {key: value for key, value in body.items() if key != "previous_interaction_id"}
        if violations := rules.check_request({**alone, "input": steps}):
            raise refusal_for(violations)
    if not context.any_signature:
        check_signatures(steps)
    if "model" in body:
        google.check_model(context, text_at(body, "model"), "createInteraction")
    return steps


def create(context: RequestContext) -> Answered:
    body = context.exchange.json()
    steps = _check(context, body)
    answer = context.answer_cached(read(body, steps))[0]
    writer = Writer(context, body)
    whole = writer.whole(answer)
    background = body.get("background") is True
    if writer.stores:
        stored: dict[str, object] = {"interaction": whole, "timeline": [*steps, *objects_at(whole, "steps")]}
        context.memory.store(writer.id, {**stored, "running": background and not body.get("stream")})
    if body.get("stream"):
        return Streamed(events_of(context, whole, numbered=background), "text/event-stream", failure=failure)
    if background:
        started = {key: value for key, value in whole.items() if key not in ("steps", "usage")}
        return json_reply({**started, "status": "in_progress"})
    return json_reply(whole)


def _find_interaction(context: RequestContext) -> JsonObject:
    stored = context.memory.responses.get(context.exchange.params["id"])
    if stored is None or "interaction" not in stored:
        raise Refused(Problem("invalid", _NOT_FOUND, 404))
    return stored


def retrieve(context: RequestContext) -> Answered:
    """The whole timeline, including user inputs. Background runs are finished when they are retrieved."""
    stored = _find_interaction(context)
    context.memory.store(context.exchange.params["id"], {**stored, "running": False})
    if context.exchange.query.get("stream") == "true":
        return _resume(context, object_at(stored, "interaction"))
    return json_reply({**object_at(stored, "interaction"), "steps": stored["timeline"]})


def _resume(context: RequestContext, whole: JsonObject) -> Answered:
    last = context.exchange.query.get("last_event_id", "")
    events = list(events_of(context, whole, numbered=True))
    if last:
        mark = b'"event_id":"' + last.encode() + b'"'
        seen = next((index for index, event in enumerate(events) if mark in event), None)
        if seen is None:
            raise Refused(Problem("invalid", "Invalid last_event_id."))
        events = events[seen + 1 :]
    return Streamed(iter(events), "text/event-stream", failure=failure)


def cancel(context: RequestContext) -> Answered:
    stored = _find_interaction(context)
    whole = dict(object_at(stored, "interaction"))
    if stored.get("running") is True:
        whole = {**whole, "status": "cancelled", "steps": []}
        context.memory.store(context.exchange.params["id"], {**stored, "interaction": whole, "running": False})
    return json_reply(whole)


def delete(context: RequestContext) -> Answered:
    _find_interaction(context)
    del context.memory.responses[context.exchange.params["id"]]
    return Reply(200, b"{}", "application/json; charset=UTF-8")


_DEVELOPER = r"/v1(?:beta|alpha)?/interactions"
_VERTEX = r"/v1(?:beta1)?/projects/[^/]+/locations/[^/]+/interactions"
_ID = r"/(?P<id>v1_\w+)"


def _api(name: str, root: str, *, by_token: bool) -> Api:
    return Api(
        name=name,
        routes=(
            route("POST", root, create),
            route("GET", rf"{root}{_ID}", retrieve),
            route("POST", rf"{root}{_ID}/cancel", cancel),
            route("DELETE", rf"{root}{_ID}", delete),
        ),
        authenticate=google.authenticate_by_token if by_token else google.authenticate_by_key,
        refusal=google.refusal,
        max_body=google.MAX_BODY,
        context_window=google.CONTEXT_WINDOW,
    )


API = _api(NAME, _DEVELOPER, by_token=False)
VERTEX = _api("vertex-interactions", _VERTEX, by_token=True)
