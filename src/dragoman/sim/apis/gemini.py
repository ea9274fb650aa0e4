"""Gemini's `generateContent`, `streamGenerateContent` and `countTokens`, on the developer API and on Vertex AI."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from dragoman.sim import signatures, tokens
from dragoman.sim.apis import google
from dragoman.sim.apis.reading import without_empty
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
from dragoman.sim.exchange import Answered, Api, Problem, Refused, Streamed, json_reply, refusal_for, route
from dragoman.sim.request_context import RequestContext
from dragoman.sim.rules import gemini as rules
from dragoman.sim.rules.common import number_at, object_at, objects_at, text_at, texts_at
from dragoman.sim.rules.common import read as read_shape
from dragoman.sim.rules.gemini_backends import BackendName
from dragoman.sim.rules.gemini_request import generation_of, role_of
from dragoman.sim.rules.gemini_shapes import DIALECT

_FINISH: Mapping[Finish, str] = {
    "stop": "STOP",
    "stop_sequence": "STOP",
    "length": "MAX_TOKENS",
    "calls": "STOP",
    "refusal": "SAFETY",
}
_MEDIA = ("inlineData", "fileData")
# Accepted instead of a signature, for calls that were not made by Gemini.
_DUMMIES = (b"skip_thought_signature_validator", b"context_engineering_is_the_way_to_go")


# --- reading ------------------------------------------------------------------------------------------------------


def read(body: JsonObject, model: str) -> Prompt:
    """`body` has canonical keys: camelCase and snake_case were unified before."""
    settings = object_at(body, "generationConfig")
    calling = object_at(body, "toolConfig", "functionCallingConfig")
    limit = number_at(settings, "maxOutputTokens")
    system = _text(objects_at(body, "systemInstruction", "parts"))
    turns = [Turn("system", system)] if system else []
    turns.extend(_turn(content) for content in objects_at(body, "contents"))
    return Prompt(
        model=model,
        turns=tuple(turns),
        tools=tuple(_tools(body)),
        choice=_choice(calling),
        schema=_schema(settings),
        any_json=text_at(settings, "responseMimeType") == "application/json",
        stop=tuple(texts_at(settings, "stopSequences")),
        max_tokens=int(limit) if limit else None,
        seed=int(number_at(settings, "seed")),
        thinks=is_thinking(model, object_at(settings, "thinkingConfig")),
    )


def _text(parts: Sequence[JsonObject]) -> str:
    return "\n".join(text_at(part, "text") for part in parts if part.get("thought") is not True and part.get("text"))


def _turn(content: JsonObject) -> Turn:
    parts = objects_at(content, "parts")
    if role_of(content) == "model":
        calls = (object_at(part, "functionCall") for part in parts if "functionCall" in part)
        made = tuple(Call(text_at(call, "id"), text_at(call, "name"), object_at(call, "args")) for call in calls)
        return Turn("assistant", _text(parts), calls=made)
    results = tuple(_result(object_at(part, "functionResponse")) for part in parts if "functionResponse" in part)
    media = tuple(_kind(object_at(part, member)) for part in parts for member in _MEDIA if member in part)
    return Turn("user", _text(parts), results=results, media=media)


def _kind(medium: JsonObject) -> str:
    kind = text_at(medium, "mimeType").partition("/")[0]
    return kind if kind in ("image", "audio", "video") else "document"


def _result(response: JsonObject) -> Result:
    value = object_at(response, "response")
    media = len(objects_at(response, "parts"))
    name = text_at(response, "name")
    if "error" in value:
        return Result(name, text_of(value["error"]), failed=True, media=media, call_id=text_at(response, "id"))
    return Result(name, text_of(value.get("output", value)), media=media, call_id=text_at(response, "id"))


def text_of(value: object) -> str:
    return value if isinstance(value, str) else compact(value)


def _tools(body: JsonObject) -> Iterator[Tool]:
    for tool in objects_at(body, "tools"):
        for spec in objects_at(tool, "functionDeclarations"):
            schema = object_at(spec, "parametersJsonSchema") or object_at(spec, "parameters")
            yield Tool(text_at(spec, "name"), text_at(spec, "description"), schema)


def _choice(calling: JsonObject) -> Choice:
    names = frozenset(texts_at(calling, "allowedFunctionNames")) or None
    match text_at(calling, "mode").upper():
        case "NONE":
            return Choice(may=False)
        case "ANY":
            return Choice(must=True, names=names)
        case "VALIDATED":
            return Choice(names=names)
    return Choice()


def _schema(settings: JsonObject) -> JsonObject | None:
    for key in ("responseJsonSchema", "responseSchema"):
        if isinstance(settings.get(key), Mapping):
            return object_at(settings, key)
    formats = [object_at(one, "text") for one in objects_at(settings, "responseFormat")]
    return next((object_at(one, "schema") for one in formats if "schema" in one), None)


def is_thinking(model: str, config: JsonObject) -> bool:
    generation = generation_of(model) or (3, 0)
    if generation < (2, 5) or (generation < (3, 0) and "thinkingBudget" in config and not config["thinkingBudget"]):
        return False
    return generation >= (3, 0) or "flash-lite" not in model or bool(config)


# --- thought signatures -------------------------------------------------------------------------------------------


def _numbers_alike(value: object) -> object:
    """Arguments are a Struct: 1 and 1.0 are the same number."""
    if isinstance(value, Mapping):
        return {key: _numbers_alike(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_numbers_alike(item) for item in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def signed_content(part: JsonObject) -> str:
    """A signature belongs to the part it came on."""
    call = object_at(part, "functionCall")
    return f"{text_at(call, 'name')} {compact(_numbers_alike(object_at(call, 'args')))}" if call else "no call"


def is_dummy(signature: str) -> bool:
    return signature.encode() in _DUMMIES or signatures.decode_base64(signature) in _DUMMIES


def check_signatures(body: JsonObject) -> None:
    for content in objects_at(body, "contents"):
        for part in objects_at(content, "parts"):
            signature = text_at(part, "thoughtSignature")
            if not signature or is_dummy(signature):
                continue
            if not signatures.is_signature_text(signature, "gemini", signed_content(part)):
                raise Refused(Problem("invalid", "Corrupted thought signature."))


# --- writing ------------------------------------------------------------------------------------------------------


def usage_of(answer: Answer) -> dict[str, object]:
    counts = answer.counts
    visible = counts.output - counts.thought
    usage = without_empty(
        {
            "promptTokenCount": counts.input,
            "candidatesTokenCount": visible,
            "thoughtsTokenCount": counts.thought,
            "totalTokenCount": counts.input + counts.output,
            "cachedContentTokenCount": counts.read,
        }
    )
    return {**usage, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": counts.input}]}


class Writer:
    def __init__(self, context: RequestContext, body: JsonObject, model: str) -> None:
        self.context = context
        self.model = model
        self.vertex = context.api == "vertex"
        self.generation = generation_of(model) or (3, 0)
        settings = object_at(body, "generationConfig", "thinkingConfig")
        self.shows_thoughts = settings.get("includeThoughts") is True
        # Vertex's v1 has no ids on calls; models before Gemini 3 never sent ids.
        version = context.exchange.params.get("version")
        self.has_ids = self.generation >= (3, 0) and not (self.vertex and version == "v1")
        self.declares = any(objects_at(tool, "functionDeclarations") for tool in objects_at(body, "tools"))
        calling = object_at(body, "toolConfig", "functionCallingConfig")
        self.streams_arguments = calling.get("streamFunctionCallArguments") is True

    @property
    def _tail(self) -> dict[str, object]:
        tail: dict[str, object] = {"modelVersion": self.model, "responseId": self.context.exchange.mark("id")[:22]}
        return {**tail, "createTime": "2026-11-15T12:00:00Z"} if self.vertex else tail

    def _parts(self, answer: Answer) -> list[dict[str, object]]:
        written = [self._part(part, index) for index, part in enumerate(answer.parts) if self._visible(part)]
        return self._sign_parts(answer, written)

    def _visible(self, part: Part) -> bool:
        """Thoughts are shown on request. Calls whose arguments were cut off cannot be written as an object."""
        return self.shows_thoughts if isinstance(part, ThoughtPart) else not isinstance(part, CallPart) or part.complete

    def _part(self, part: Part, index: int) -> dict[str, object]:
        match part:
            case ThoughtPart():
                return {"text": part.text, "thought": True}
            case TextPart():
                return {"text": part.text}
            case CallPart():
                identifier = {"id": self.context.exchange.mark("call", index)[:8]} if self.has_ids else {}
                return {"functionCall": {**identifier, "name": part.name, "args": part.arguments}}

    def _sign_parts(self, answer: Answer, parts: list[dict[str, object]]) -> list[dict[str, object]]:
        """Gemini 3 signs the first call, or the last part when there is none; 2.5 the first part, given functions."""
        if not answer.thoughts or not parts:
            return parts
        calls = [index for index, part in enumerate(parts) if "functionCall" in part]
        if self.generation >= (3, 0):
            place = calls[0] if calls else len(parts) - 1
        elif self.declares:
            place = next((index for index, part in enumerate(parts) if "thought" not in part), 0)
        else:
            return parts
        if "thought" in parts[place]:
            return parts
        signature = signatures.make_signature(
            "gemini", self.context.exchange.mark("seal"), signed_content(parts[place])
        )
        signed = {**parts[place], "thoughtSignature": base64.b64encode(signature).decode()}
        return [*parts[:place], signed, *parts[place + 1 :]]

    def _candidate(self, parts: list[dict[str, object]], index: int, **more: object) -> dict[str, object]:
        content = {"role": "model", "parts": parts} if parts else {"role": "model"}
        numbered = {} if self.vertex else {"index": index}
        return {"content": content, **more, **numbered}

    def whole(self, answers: list[Answer]) -> JsonObject:
        candidates = []
        for index, answer in enumerate(answers):
            more: dict[str, object] = {"finishReason": answer.word or _FINISH[answer.finish]}
            if answer.finish == "calls" and not self.vertex:
                more["finishMessage"] = "Model generated function call(s)."
            candidates.append(self._candidate(self._parts(answer), index, **more))
        return {"candidates": candidates, "usageMetadata": usage_of(answers[0]), **self._tail}

    def chunks(self, answer: Answer) -> Iterator[JsonObject]:
        last: list[dict[str, object]] = [{"text": ""}]
        for part in self._parts(answer):
            signature = part.get("thoughtSignature")
            for piece in self._pieces(part):
                yield self._chunk([piece], answer)
            if signature is not None and "functionCall" not in part:
                # The signature of a text is sent on an empty part after it, with the finish reason.
                last = [{"text": "", "thoughtSignature": signature}]
        yield self._chunk(last, answer, finishReason=answer.word or _FINISH[answer.finish])

    def _chunk(self, parts: list[dict[str, object]], answer: Answer, **more: object) -> JsonObject:
        return {"candidates": [self._candidate(parts, 0, **more)], "usageMetadata": usage_of(answer), **self._tail}

    def _pieces(self, part: dict[str, object]) -> Iterator[dict[str, object]]:
        if "functionCall" not in part:
            thought = {"thought": True} if "thought" in part else {}
            yield from ({"text": piece, **thought} for piece in self.context.chunks(text_at(part, "text")))
        elif self.streams_arguments and self.vertex:
            yield from _partial_calls(part)
        else:
            yield part


def _partial_calls(part: JsonObject) -> Iterator[dict[str, object]]:
    """Vertex's streamed arguments: a name, then leaves by JSON path, then an empty call as the end."""
    call = object_at(part, "functionCall")
    signature = {"thoughtSignature": part["thoughtSignature"]} if "thoughtSignature" in part else {}
    identity = {key: value for key, value in call.items() if key != "args"}
    leaves = list(_leaves(call.get("args"), "$"))
    if not leaves:
        yield {"functionCall": identity, **signature}
        return
    yield {"functionCall": {**identity, "willContinue": True}, **signature}
    for path, value in leaves:
        for piece in _leaf_pieces(path, value):
            yield {"functionCall": {"partialArgs": [piece], "willContinue": True}}
    yield {"functionCall": {}}


def _leaves(value: object, path: str) -> Iterator[tuple[str, object]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            step = f".{key}" if re.fullmatch(r"[A-Za-z_]\w*", key) else f"['{key}']"
            yield from _leaves(item, path + step)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _leaves(item, f"{path}[{index}]")
    else:
        yield path, value


def _leaf_pieces(path: str, value: object) -> Iterator[JsonObject]:
    match value:
        case str():
            middle = len(value) // 2
            yield {"jsonPath": path, "stringValue": value[:middle], "willContinue": True}
            yield {"jsonPath": path, "stringValue": value[middle:], "willContinue": True}
            yield {"jsonPath": path, "stringValue": ""}
        case bool():
            yield {"jsonPath": path, "boolValue": value}
        case None:
            yield {"jsonPath": path, "nullValue": "NULL_VALUE"}
        case _:
            yield {"jsonPath": path, "numberValue": value}


# --- serving ------------------------------------------------------------------------------------------------------


def _backend(context: RequestContext) -> BackendName:
    return "vertex" if context.api == "vertex" else "gemini"


def _canonical(body: JsonObject, backend: BackendName) -> JsonObject:
    """The body with one spelling of each key, as the rules read it."""
    value, _ = read_shape(rules.SHAPES[backend], DIALECT, body)
    return value if isinstance(value, Mapping) else {}


def _check(context: RequestContext, body: JsonObject, method: str) -> JsonObject:
    model, version = context.exchange.params["model"], context.exchange.params["version"]
    if violations := rules.check_request(body, model=model, version=version, backend=_backend(context)):
        raise refusal_for(violations)
    canonical = _canonical(body, _backend(context))
    if not context.any_signature:
        check_signatures(canonical)
    google.check_model(context, model, method)
    return canonical


def generate(context: RequestContext) -> Answered:
    body = _check(context, context.exchange.json(), "generateContent")
    model = context.exchange.params["model"]
    number = int(number_at(body, "generationConfig", "candidateCount")) or 1
    answers = context.answer_cached(read(body, model), number)
    return json_reply(Writer(context, body, model).whole(answers))


def stream(context: RequestContext) -> Answered:
    body = _check(context, context.exchange.json(), "streamGenerateContent")
    model = context.exchange.params["model"]
    answer = context.answer_cached(read(body, model))[0]
    chunks = Writer(context, body, model).chunks(answer)
    if context.exchange.query.get("alt") == "sse":
        events = (b"data: " + msgspec.json.encode(chunk) + b"\r\n\r\n" for chunk in chunks)
        return Streamed(events, "text/event-stream", failure=google.failure_event)
    return Streamed(_array(chunks), "application/json; charset=UTF-8", garbage=b",{", failure=_array_failure)


def _array(chunks: Iterator[JsonObject]) -> Iterator[bytes]:
    for index, chunk in enumerate(chunks):
        yield (b",\r\n" if index else b"[") + msgspec.json.encode(chunk)
    yield b"]"


def _array_failure(problem: Problem) -> bytes:
    return b",\r\n" + msgspec.json.encode(google.error_of(problem)[1]) + b"]"


def count(context: RequestContext) -> Answered:
    body = context.exchange.json()
    model = context.exchange.params["model"]
    wrapped = body.get("generateContentRequest", body.get("generate_content_request"))
    inner = {key: value for key, value in (wrapped if isinstance(wrapped, Mapping) else body).items() if key != "model"}
    total = tokens.count_prompt(read(_check(context, inner, "countTokens"), model))
    return json_reply({"totalTokens": total, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": total}]})


_OPERATIONS: Mapping[str, Callable[[RequestContext], Answered]] = {
    "generateContent": generate,
    "streamGenerateContent": stream,
    "countTokens": count,
}
_MODEL = r"(?P<model>[^/:]+)"
_DEVELOPER = r"/(?P<version>v1|v1beta|v1alpha)"
_VERTEX = r"/(?P<version>v1|v1beta1)(?:/projects/[^/]+/locations/[^/]+)?/publishers/google"

GEMINI = Api(
    name="gemini",
    routes=(
        *(route("POST", rf"{_DEVELOPER}/models/{_MODEL}:{name}", run) for name, run in _OPERATIONS.items()),
        route("GET", rf"{_DEVELOPER}/models", google.list_models),
        route("GET", rf"{_DEVELOPER}/models/{_MODEL}", google.show_model),
    ),
    authenticate=google.authenticate_by_key,
    refusal=google.refusal,
    max_body=google.MAX_BODY,
    context_window=google.CONTEXT_WINDOW,
)
VERTEX = Api(
    name="vertex",
    routes=(
        *(route("POST", rf"{_VERTEX}/models/{_MODEL}:{name}", run) for name, run in _OPERATIONS.items()),
        route("GET", rf"{_VERTEX}/models", google.list_models),
        route("GET", rf"{_VERTEX}/models/{_MODEL}", google.show_model),
    ),
    authenticate=google.authenticate_by_token,
    refusal=google.refusal,
    max_body=google.MAX_BODY,
    context_window=google.CONTEXT_WINDOW,
)
