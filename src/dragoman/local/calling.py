"""Tool calls for models whose template has no tools: described in the prompt, enforced by a grammar.

The request gets a schema for the whole answer, from which llama.cpp makes the grammar: one call, `{"name": ...,
"arguments": ...}`, or, unless a call was asked for, `{"answer": ...}`. The response is converted back to Chat
Completions. After a result, the model answers in plain text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from dragoman.drivers.transport import HttpResponse, transport_error

Json: TypeAlias = dict[str, Any]

_FOR_TOOLS = frozenset({"tools", "tool_choice", "parallel_tool_calls"})
_OPENING = "You can use functions:\n"
_CALL = '\n\nReply with JSON. To use a function: {"name": FUNCTION, "arguments": {...}}.'
_ANSWER = ' If no function helps: {"answer": TEXT}.'
_AFTER_RESULTS = "Answer the question in plain words, with what the function returned."


class PreparedRequest(Struct, frozen=True):
    body: Json
    calls: bool
    """Whether the answer follows the schema."""


# ── request ───────────────────────────────────────────────────────────────────────────────────────────────────


def prepare_request(body: Json) -> PreparedRequest:
    """The request without tools: their descriptions become text, and their calls a schema."""
    messages = list(_messages(body["messages"]))
    plain = {key: value for key, value in body.items() if key not in _FOR_TOOLS}
    tools, forced = _offered_functions(body)
    answered = body["messages"][-1]["role"] == "tool"
    if not tools or (answered and not forced):
        return PreparedRequest(
            {**plain, "messages": _with_system_text(messages, _AFTER_RESULTS) if answered else messages}, calls=False
        )
    if not forced and "response_format" in body:
        raise transport_error("invalid_request", "this model accepts tools or a schema of the answer, not both")
    words = _OPENING + "\n".join(map(_describe_function, tools)) + _CALL + ("" if forced else _ANSWER)
    schema = {"type": "json_schema", "json_schema": {"name": "reply", "schema": _schema(tools, forced=forced)}}
    return PreparedRequest(
        {**plain, "messages": _with_system_text(messages, words), "response_format": schema}, calls=True
    )


def _offered_functions(body: Json) -> tuple[list[Json], bool]:
    """The functions that may be called, and whether a call is required."""
    functions = [tool["function"] for tool in body.get("tools", ())]
    choice = body.get("tool_choice", "auto")
    if isinstance(choice, dict):
        return [one for one in functions if one["name"] == choice["function"]["name"]], True
    return ([] if choice == "none" else functions), choice == "required"


def _messages(messages: list[Json]) -> Iterator[Json]:
    names: dict[str, str] = {}
    for message in messages:
        if message["role"] == "tool":
            name = names.get(message["tool_call_id"], "the function")
            yield {"role": "user", "content": f"Result of {name}: {_text(message.get('content'))}"}
        elif message.get("tool_calls"):
            functions = [call["function"] for call in message["tool_calls"]]
            names |= {call["id"]: call["function"]["name"] for call in message["tool_calls"]}
            # As plain text: a model that sees JSON calls keeps writing JSON.
            calls = [f"I call {one['name']} with {one['arguments']}." for one in functions]
            text = _text(message.get("content"))
            yield {"role": "assistant", "content": "\n".join([text, *calls] if text else calls)}
        else:
            yield message


def _text(content: str | list[Json] | None) -> str:
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return content or ""


def _with_system_text(messages: list[Json], words: str) -> list[Json]:
    """Adds text to the system message: many templates accept only one, at the beginning."""
    first = messages[0]
    if first["role"] != "system":
        return [{"role": "system", "content": words}, *messages]
    return [{**first, "content": f"{_text(first['content'])}\n\n{words}"}, *messages[1:]]


def _describe_function(function: Json) -> str:
    properties = function.get("parameters", {}).get("properties", {})
    return f"- {function['name']}: {function.get('description', '')} {json.dumps(properties)}"


def _schema(functions: list[Json], *, forced: bool) -> Json:
    options = [
        _closed_object(name={"const": one["name"]}, arguments={"$ref": f"#/$defs/{place}"})
        for place, one in enumerate(functions)
    ]
    if not forced:
        options.append(_closed_object(answer={"type": "string"}))
    definitions = {
        str(place): _move_references(one.get("parameters") or {"type": "object"}, f"#/$defs/{place}")
        for place, one in enumerate(functions)
    }
    return {"$defs": definitions, "anyOf": options}


def _closed_object(**properties: Json) -> Json:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _move_references(schema: Any, place: str) -> Any:
    """The schema with references adjusted to its new position."""
    if isinstance(schema, list):
        return [_move_references(one, place) for one in schema]
    if not isinstance(schema, dict):
        return schema
    reference = schema.get("$ref")
    inner = {key: _move_references(value, place) for key, value in schema.items()}
    if isinstance(reference, str) and reference.startswith("#"):
        inner["$ref"] = place + reference[1:]
    return inner


# ── response ──────────────────────────────────────────────────────────────────────────────────────────────────

_CALL_BEGINS = re.compile(r'\s*\{\s*"name"\s*:\s*("(?:[^"\\]|\\.)*")\s*,\s*"arguments"\s*:\s*(?=\S)')
_ANSWER_BEGINS = re.compile(r'\s*\{\s*"answer"\s*:\s*"')
# The prefix that can be decoded already: an escape, or a surrogate pair, may be incomplete.
_STRING = re.compile(
    r'(?:[^"\\]|\\["\\/bfnrt]|\\u(?![dD][89abAB])[0-9a-fA-F]{4}|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})*'
)


class ReplyReader:
    """Converts the pieces of a reply to `delta`s of Chat Completions."""

    def __init__(self) -> None:
        self.called = False
        self._buffer = ""
        self._arguments = ""
        self._read: Callable[[str], Iterator[Json]] = self._begin

    def feed(self, piece: str, id: str) -> list[Json]:
        self._buffer += piece
        return list(self._read(id))

    def end(self) -> list[Json]:
        """The text that was held back, if the reply was cut before its closing brace."""
        if not self.called or not self._buffer or _is_json(self._arguments):
            return []
        return [_arguments(self._buffer)]

    def _begin(self, id: str) -> Iterator[Json]:
        if call := _CALL_BEGINS.match(self._buffer):
            self.called, self._read = True, self._in_call
            self._buffer = self._buffer[call.end() :]
            function = {"name": json.loads(call[1]), "arguments": ""}
            yield {"tool_calls": [{"index": 0, "id": f"call_{id}", "type": "function", "function": function}]}
            yield from self._in_call(id)
        elif answer := _ANSWER_BEGINS.match(self._buffer):
            self._read = self._in_answer
            self._buffer = self._buffer[answer.end() :]
            yield from self._in_answer(id)

    def _in_call(self, _id: str) -> Iterator[Json]:
        """Holds back the last brace, which may close the reply."""
        brace = self._buffer.rfind("}")
        sure = self._buffer if brace < 0 else self._buffer[:brace]
        self._buffer = self._buffer[len(sure) :]
        self._arguments += sure
        if sure:
            yield _arguments(sure)

    def _in_answer(self, _id: str) -> Iterator[Json]:
        read = _STRING.match(self._buffer)
        if read is not None and read[0]:
            self._buffer = self._buffer[read.end() :]
            yield {"content": json.loads(f'"{read[0]}"', strict=False)}


def _arguments(text: str) -> Json:
    return {"tool_calls": [{"index": 0, "function": {"arguments": text}}]}


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


class CallingResponse:
    """A response whose content follows the schema."""

    def __init__(self, response: HttpResponse, *, stream: bool) -> None:
        self._response = response
        self._stream = stream
        self._reader = ReplyReader()
        self._unread = b""
        self._ended = False

    @property
    def status(self) -> int:
        return self._response.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._response.headers

    async def chunk(self) -> bytes:
        """Does not read after the end: the connection may already serve another request."""
        while not self._ended:
            data = await self._response.chunk()
            self._ended = not data
            self._unread += data
            if read := self._lines() if self._stream else self._json_answer():
                return read
        return b""

    async def drain(self) -> None:
        await self._response.drain()

    def close(self) -> None:
        self._response.close()

    def _lines(self) -> bytes:
        *lines, rest = self._unread.split(b"\n")
        self._unread = rest
        return b"".join(self._event(line) + b"\n" for line in lines)

    def _event(self, line: bytes) -> bytes:
        """Converts a line with a choice to events; other lines pass unchanged."""
        if not line.startswith(b"data: {"):
            return line
        event: Json = msgspec.json.decode(line[len(b"data: ") :])
        if not event.get("choices"):
            return line
        return b"\n\n".join(b"data: " + msgspec.json.encode(one) for one in self._deltas_of(event)) or b":"

    def _deltas_of(self, event: Json) -> Iterator[Json]:
        choice: Json = event["choices"][0]
        delta: Json = choice["delta"]
        content = delta.pop("content", None) or ""
        finish = choice["finish_reason"]
        deltas = self._reader.feed(content, _bare(event["id"])) + (self._reader.end() if finish else [])
        for one in deltas:
            yield {**event, "choices": [{**choice, "delta": one, "finish_reason": None}]}
        if delta or finish:
            yield {**event, "choices": [{**choice, "delta": delta, "finish_reason": self._finish(finish)}]}

    def _json_answer(self) -> bytes:
        if not self._ended or not self._unread:
            return b""
        answer: Json = msgspec.json.decode(self._unread)
        choice: Json = answer["choices"][0]
        deltas = self._reader.feed(choice["message"]["content"] or "", _bare(answer["id"])) + self._reader.end()
        calls = [delta["tool_calls"][0] for delta in deltas if "tool_calls" in delta]
        message: Json = {**choice["message"], "content": "".join(delta.get("content", "") for delta in deltas)}
        if calls:
            arguments = "".join(call["function"]["arguments"] for call in calls)
            message["tool_calls"] = [{**calls[0], "function": {**calls[0]["function"], "arguments": arguments}}]
            message["content"] = None
        choice = {**choice, "message": message, "finish_reason": self._finish(choice["finish_reason"])}
        return msgspec.json.encode({**answer, "choices": [choice]})

    def _finish(self, reason: str | None) -> str | None:
        return "tool_calls" if self._reader.called and reason == "stop" else reason


def _bare(id: str) -> str:
    return id.rpartition("-")[2]
