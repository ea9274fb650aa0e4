"""Shared by the codecs of stored conversations: builds one message by message, and records the source of each piece.

Half of these formats have no call ids, so calls get ids by position, and results find their call by id, by name or by
order. A call without a result is kept without one: in training data the call itself is often what is to be learned.
"""

from __future__ import annotations

import ast
import math
import re
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET, Raw, structs
from msgspec.structs import force_setattr

from dragoman.codecs.datasets.known_keys import keys
from dragoman.codecs.ids import invent_id
from dragoman.codecs.media import data_url, split_data_url
from dragoman.codecs.memo import ToolLists
from dragoman.codecs.part_handlers import name_of_part
from dragoman.codecs.reasoning_tags import join_thinking, split_thinking
from dragoman.codecs.settings import SETTING_NAMES
from dragoman.errors import DecodeError
from dragoman.ir import (
    AnyPart,
    Audio,
    Document,
    Image,
    Message,
    Reasoning,
    Request,
    Text,
    ToolCall,
    ToolDefinition,
    ToolResult,
)
from dragoman.ir.messages import Role
from dragoman.ir.notes import Spelling
from dragoman.ir.parts import ContentBlock
from dragoman.ir.values import compact_text, encode_json, exact_object, parse_json, read_arguments, to_raw
from dragoman.losses import KEY, JsonPaths, LossLog, PathLookup, Remark, Remarks, remarks_on

Json: TypeAlias = Any
Piece: TypeAlias = tuple[AnyPart, str]
"""A part, and its JSON path in the record."""

Places: TypeAlias = Sequence[str | list[str]]
"""For each message or item of a body, its path in the log from which the body was built; or the paths of its blocks."""

OTHER_BRANCHES = "other branches", "a conversation is one path of the tree: the one that the application showed"
"""What is lost of a tree of messages, and why."""
NOT_STORED = "stored conversations of this format have no settings"
_DEFAULT_VALUES = {"parallel_tool_calls": True, "stream": False, "candidates": 1}


Unstored: TypeAlias = Mapping[type[Any], tuple[str, ...]]
"""Kind of a part or tool -> its fields that a record has no place for."""

UNSTORED_WORDS: Unstored = {
    Text: ("cache", "citations", "signature"),
    ToolCall: ("cache", "signature"),
    ToolResult: ("cache",),
}
UNSTORED_IMAGES: Unstored = {Image: ("cache", "detail", "signature")}
UNSTORED_MEDIA: Unstored = {
    **UNSTORED_IMAGES,
    Document: ("cache", "cite", "context", "signature", "title"),
    Audio: ("cache", "signature", "transcript"),
}
UNSTORED_TOOLS: Unstored = {ToolDefinition: ("cache", "strict")}


def report_unstored(request: Request, unstored: Unstored, log: LossLog) -> None:
    """Report the fields that the parts and tools of a request have and a record has no place for."""
    for message in request.messages:
        content = message.content_held
        if type(content) is str:
            continue
        for part in content:
            _report_fields(part, unstored, log)
            for piece in part.parts if type(part) is ToolResult else ():
                _report_fields(piece, unstored, log)
    for tool in request.tools:
        _report_fields(tool, unstored, log)


def _report_fields(node: Any, unstored: Unstored, log: LossLog) -> None:
    for field in unstored.get(type(node), ()):
        if getattr(node, field) not in (None, ()):
            log.drop(node, field, field, "a record of this format has no place for it")


class Pairing:
    """Finds the call that a result answers: by id, by the name of its tool, or by order.

    Names and order refer to the calls of one round. A call after a result begins a new one, and so does a turn of the
    user: a result after that does not answer a call that was left unanswered before.
    """

    def __init__(self) -> None:
        self._open: dict[str, str] = {}
        """Ids of all open calls, with the names of their tools."""
        self._older: dict[str, deque[str]] = {}
        """The open calls of earlier rounds, by name."""
        self._round: OrderedDict[str, None] = OrderedDict()
        self._names: dict[str, deque[str]] = {}
        self._is_answered = False
        self._choices: list[tuple[str, str | None]] = []
        """Calls of this round that were chosen among several, with the name that they were chosen by."""
        self._guessed: list[str] = []

    def call(self, key: str, tool: str) -> None:
        if self._is_answered:
            self.end_round()
        self._open[key], self._round[key] = tool, None
        self._names.setdefault(tool, deque()).append(key)

    def by_id(self, key: str) -> str | None:
        return self._close(key) if key in self._open else None

    def by_name(self, name: str) -> str | None:
        """Return the first open call of this tool: of this round, or of an earlier one."""
        waiting = self._waiting(self._names, name)
        if waiting:
            self._choices += [(waiting[0], name)] if len(waiting) > 1 else []
            return self._close(waiting[0])
        waiting = self._waiting(self._older, name)
        return self._close(waiting[0]) if waiting else None

    def by_order(self) -> str | None:
        """Return the first open call of this round; of an earlier one if all of this round are answered."""
        key = next(iter(self._round), None)
        if key is not None:
            self._choices += [(key, None)] if len(self._round) > 1 else []
            return self._close(key)
        key = next(iter(self._open), None)
        return None if key is None else self._close(key)

    def end_round(self) -> None:
        if self._choices and self._round:  # fewer results than calls: any of them may be the unanswered one
            names = {self._open[key] for key in self._round}
            self._guessed += [key for key, name in self._choices if name is None or name in names]
        for key in self._round:
            self._older.setdefault(self._open[key], deque()).append(key)
        self._round, self._names, self._choices, self._is_answered = OrderedDict(), {}, [], False

    def guessed(self) -> list[str]:
        """Return the calls whose results were paired with them although they may answer another one."""
        self.end_round()
        return self._guessed

    def _waiting(self, names: dict[str, deque[str]], name: str) -> deque[str] | None:
        waiting = names.get(name)
        while waiting and waiting[0] not in self._open:
            waiting.popleft()
        return waiting

    def _close(self, key: str) -> str:
        self._is_answered = True
        del self._open[key]
        self._round.pop(key, None)
        return key


def _content(parts: Sequence[AnyPart]) -> str | tuple[AnyPart, ...]:
    """Return the content of a message: a text alone as text, because many trainers and servers read no lists."""
    first = parts[0]
    if len(parts) == 1 and type(first) is Text and first == Text(first.text):
        return first.text
    return tuple(parts)


class Conversation:
    """Builds the conversation of one record: its messages, in order, with their JSON paths."""

    def __init__(self, name: str, tools: Sequence[ToolDefinition] = ()) -> None:
        self._name = name
        self._tools = tuple(tools)
        self._schemas = {tool.name: tool.parameters for tool in tools}
        self._messages: list[Message] = []
        self._places: list[tuple[str, list[str]]] = []
        self._calls: dict[str, str] = {}
        self._pairing = Pairing()
        self._aliases: dict[str, str] = {}
        self._left_out: dict[str, Remark] = {}

    @property
    def calls(self) -> Mapping[str, str]:
        """Ids of the calls so far, with the names of their tools."""
        return self._calls

    def add(self, role: Role, pieces: Iterable[Piece], place: str, *, name: str | None = None) -> None:
        """Add a message, unless it has no parts. Consecutive results are merged into one message."""
        buffered = list(pieces)
        if not buffered:
            return
        if role in {"user", "system"}:
            self._pairing.end_round()
        parts, places = [part for part, _ in buffered], [where for _, where in buffered]
        if role == "tool" and self._messages and self._messages[-1].role == "tool":
            before = self._messages.pop()
            held_before = self._places.pop()
            parts, places, place = [*before.parts, *parts], [*held_before[1], *places], held_before[0]
        self._messages.append(Message(role, _content(parts), name))
        self._places.append((place, places))

    def leave_out(self, what: str, why: str) -> None:
        """Report content of the record that no message can hold, once for each kind."""
        self._left_out.setdefault(what, (None, what, "dropped", why))

    def call(self, name: Json, arguments: Json, call_id: Json = None) -> ToolCall:
        """Return a call from what the format has: arguments as an object or as text, with or without an id."""
        given = call_id if isinstance(call_id, str) and call_id else None
        # Some sets use one constant id for every call; in a conversation ids are unique.
        key = invent_id(self._name, len(self._calls)) if given is None or given in self._calls else given
        if given is not None:
            self._aliases[given] = key
        tool = text_of(name)
        if isinstance(arguments, dict):
            arguments = without_padding(arguments, self._schemas.get(tool))
        self._calls[key] = tool
        self._pairing.call(key, tool)
        return make_call(key, tool, arguments, invented=key != given, family=self._name)

    def result(self, value: Json, *, call_id: Json = None, name: Json = None, is_error: bool = False) -> ToolResult:
        """Return a result for the call with this id, else for the first open call: of this tool, or of any."""
        key, tool = self._answered(call_id, name)
        if is_error:
            return ToolResult(key, tool, "error", value)
        if isinstance(value, str):
            return ToolResult(key, tool, "text", value)
        return ToolResult(key, tool, "data", value)

    def parts_result(self, parts: Sequence[ContentBlock], *, call_id: Json = None, name: Json = None) -> ToolResult:
        key, tool = self._answered(call_id, name)
        return ToolResult(key, tool, "multimodal", parts=tuple(parts))

    def _answered(self, call_id: Json, name: Json) -> tuple[str, str]:
        """Return id and tool of the call that a result answers, which is then no longer open."""
        given = call_id if isinstance(call_id, str) and call_id else None
        found = None
        if given is not None:
            found = self._pairing.by_id(self._aliases.get(given, given))
        if found is None and isinstance(name, str):
            found = self._pairing.by_name(name)
        if found is None and given is None:
            found = self._pairing.by_order()
        if found is not None:
            return found, self._calls[found]
        key = given or invent_id(f"{self._name} result", len(self._messages))
        return key, text_of(name) or self._calls.get(key, "")

    def finish(
        self, *, model: Json = None, tools: Sequence[ToolDefinition] = (), metadata: dict[str, Raw] | None = None
    ) -> Request:
        """Return the conversation as a request that keeps the JSON paths of its messages."""
        request = Request(
            model if isinstance(model, str) else None,
            tuple(self._messages),
            tuple(tools) or self._tools,
            metadata={self._name: metadata} if metadata else None,
            origin=self._name,
        )
        force_setattr(request, "_places", self._places)
        if self._left_out:
            add_remarks(request, self._name, self._left_out.values())
        guessed = self._pairing.guessed()
        if guessed:
            results = {part.tool_call_id: part for message in self._messages for part in message.tool_results}
            add_remarks(request, self._name, [(results[key], _PAIR, "invented", _GUESSED) for key in guessed])
        return request


def add_remarks(
    request: Request, name: str, remarks: Iterable[Remark] = (), *, everywhere: Iterable[Remark] = ()
) -> None:
    """Attach remarks on a record to its request; they become losses when it is encoded in another format.

    Those in `everywhere` become losses in its own format too.
    """
    known = remarks_on(request) or Remarks(name, ())
    found = Remarks(name, (*known.found, *remarks), (*known.everywhere, *everywhere))
    force_setattr(request, "_remarks", found)


_PAIR = "which call this result answers"
_GUESSED = "there are fewer results than calls, and no ids: they were paired in order"


# ── reading ──


def dataset_paths(root: Request) -> PathLookup:
    """Return a lookup of the JSON path, in the record, of the message or part that a loss is about."""
    places: list[tuple[str, list[str]]] = getattr(root, "_places", [])

    keys = {key for notes in (root.metadata or {}).values() for key in notes}

    def lookup(message_index: int | None, part_index: int | None, field: str) -> str:
        if message_index is None or message_index >= len(places):
            key = field.removeprefix(KEY)
            return f"$.{key}" if message_index is None and part_index is None and key in keys else "$"
        place, parts = places[message_index]
        return parts[part_index] if part_index is not None and part_index < len(parts) else place

    return lookup


_ITEM = re.compile(r"\$\.\w+\[(\d+)\]")
_BLOCK = re.compile(r"\.content\[(\d+)\]")


def paths_by_line(inner: JsonPaths) -> JsonPaths:
    """Return the paths in a log whose lines were read as a body of an API; `inner` gives the paths in that body."""

    def paths(root: Request) -> PathLookup:
        lookup = inner(root)
        places: Places = getattr(root, "_places", [])

        def in_log(message_index: int | None, part_index: int | None, field: str) -> str:
            return _in_log(lookup(message_index, part_index, field), places)

        return in_log

    return paths


def _in_log(path: str, places: Places) -> str:
    """Return the path in the log for a path in the body that was built from it."""
    item = _ITEM.match(path)
    place = places[int(item[1])] if item and int(item[1]) < len(places) else "$"
    if item is None or place == "$":
        return "$"
    if isinstance(place, str):
        return place + path[item.end() :]
    block = _BLOCK.match(path, item.end())
    if block is None or int(block[1]) >= len(place):
        return place[0].partition(".")[0]
    return place[int(block[1])] + path[block.end() :]


def decode_placed(
    name: str, decode: Callable[[bytes], Request], body: Json, places: Places, model: str | None = None
) -> Request:
    """Decode the messages of a body that was built from a log; all paths, those of errors too, are paths in the log.

    The body was not written for the API: it has no token limit, and its last calls may have no results. So the origin
    of the request is the log's format, and an encoder for the same API adds what the API requires.
    """
    try:
        decoded = decode(encode_json(body))
    except DecodeError as error:
        path = _in_log(error.path, places)
        raise type(error)(path=path, expected=error.expected, got=error.got, source=name) from error
    request = Request(model, decoded.messages, metadata=None, origin=name)
    force_setattr(request, "_places", places)
    return request


def refuse(name: str, path: str, expected: str, found: Json) -> DecodeError:
    """Return an error about a record, which names the type of the value, never its contents."""
    kinds = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return DecodeError(path=path, expected=expected, got=kinds.get(type(found), "a number"), source=name)


def items(value: Json, name: str, path: str) -> list[Mapping[str, Json]]:
    """Return the objects of a list; raises an error for anything else."""
    if not isinstance(value, list):
        raise refuse(name, path, "an array", value)
    for index, item in enumerate(value):
        if not isinstance(item, dict):
            raise refuse(name, f"{path}[{index}]", "an object", item)
    return value


def text_of(value: Json) -> str:
    """Return the value if it is a string, else an empty string."""
    return value if isinstance(value, str) else ""


def mappings(value: Json) -> list[Mapping[str, Json]]:
    """Return the objects of a list; empty if the value is not a list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


_TAGS = "~think"
"""Note: reasoning with its tags, exactly as it was in the text: trainers learn these characters."""


def split_tagged(name: str, content: str) -> tuple[Reasoning | None, str]:
    """Return the reasoning between tags at the start of a text, and the rest; empty tags stay text."""
    thought, text = split_thinking(content)
    if not thought:
        return None, content
    return Reasoning(thought, metadata={name: {_TAGS: to_raw(content[: len(content) - len(text)])}}), text


def tagged_as_read(part: Reasoning) -> str | None:
    """Return the reasoning with its tags, as it stood in a text; None if it did not."""
    notes = (found for found in (part.metadata or {}).values() if _TAGS in found)
    return next((str(parse_json(to_raw(found[_TAGS]))) for found in notes), None)


def join_tagged(thoughts: Sequence[Reasoning], text: str) -> str:
    """Return the text with its reasoning between tags before it, as it was read."""
    held = [tagged_as_read(part) or join_thinking(part.text, "") for part in thoughts if part.text]
    return "".join([*held, text]) if len(held) == 1 else join_thinking("".join(part.text for part in thoughts), text)


_DEPTH = "~depth"
"""Note: how many times the arguments of a call were written as JSON text; an object is written 0 times."""
_DEEPEST = 8


TOOL_KEYS = structs.replace(
    keys("type name description parameters input_schema", function=keys("name description parameters input_schema")),
    as_text=True,
)
"""What `read_tools` reads."""
CALL_KEYS = structs.replace(keys("name arguments"), as_text=True)
"""What is read of a call that stands alone, or in a list."""


def make_call(call_id: str, name: str, arguments: Json, *, invented: bool = False, family: str = "") -> ToolCall:
    """Return a call whose arguments may be an object, JSON text, or JSON text in JSON text (a set converted twice)."""
    if not isinstance(arguments, str):
        return ToolCall(call_id, name, to_raw({} if arguments is None else arguments), invented_id=invented)
    depth, text = 1, arguments
    parsed = read_arguments(text)
    while parsed is UNSET and depth < _DEEPEST and (inner := _unquote(text)) is not None:
        depth, text = depth + 1, inner
        parsed = exact_object(text) or UNSET
    if parsed is UNSET:
        return ToolCall(call_id, name, arguments_text=arguments, invented_id=invented)
    notes = Spelling({family: {_DEPTH: to_raw(depth)}}) if family else None
    return ToolCall(call_id, name, parsed, text, invented_id=invented, metadata=notes)


def _unquote(text: str) -> str | None:
    if text[:1] != '"':
        return None
    try:
        inner = parse_json(text)
    except Exception:  # noqa: BLE001 - any text may come here; text that is not JSON stays text
        return None
    return inner if isinstance(inner, str) else None


def read_tools(value: Json) -> tuple[ToolDefinition, ...]:
    """Return function definitions: wrapped or bare, as a list or as JSON text of one; "" and "[]" mean no tools.

    The rows of a set often have the same tools: a list that was read before is not read again.
    """
    raw = encode_json(value) if isinstance(value, list) else text_of(value).strip().encode()
    return _tool_lists.read(Raw(raw)) if raw else ()


def _read_tool_list(raw: Raw) -> tuple[ToolDefinition, ...]:
    value = parse_json(raw)
    if isinstance(value, list):  # some sets have a list of JSON texts
        value = [
            parse_json(entry) if isinstance(entry, str) and entry.lstrip()[:1] == "{" else entry for entry in value
        ]
    tools = []
    for entry in mappings(value):
        function = entry.get("function") if isinstance(entry.get("function"), dict) else entry
        if isinstance(function, dict) and isinstance(function.get("name"), str):
            parameters = function.get("parameters", function.get("input_schema"))
            description = function.get("description")
            tools.append(
                ToolDefinition(
                    function["name"],
                    description if isinstance(description, str) else None,
                    to_raw(json_schema(parameters)) if isinstance(parameters, dict) else None,
                )
            )
    return tuple(tools)


_tool_lists = ToolLists(_read_tool_list)


_TOOLS = "~tools"
"""Note: how a record without tools spelled that. Chat templates render an empty list and no list differently."""


def no_tools_note(data: Mapping[str, Json], tools: Sequence[ToolDefinition]) -> dict[str, Raw]:
    """Return the note of a record that has the key `tools` and no tools in it."""
    return {_TOOLS: to_raw(data["tools"])} if "tools" in data and not tools else {}


def no_tools_key(request: Request, name: str) -> dict[str, Json]:
    """Return the key `tools` of a record that had it without tools."""
    found = (request.metadata or {}).get(name, {}).get(_TOOLS)
    return {} if found is None or request.tools else {"tools": found}


def without_padding(value: Json, schema: Json) -> Json:
    """Return arguments without the nulls that Arrow adds: those of keys that the tool's schema lacks or forbids null.

    A table has one set of keys for all rows, so a call has the keys of all calls. Without a schema nothing is removed.
    """
    if isinstance(value, list):
        inner = schema.get("items") if isinstance(schema, dict) else None
        return [without_padding(item, inner) for item in value] if isinstance(inner, dict) else value
    if not isinstance(value, dict) or not isinstance(schema, dict):
        return value
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return value
    is_open = bool(schema.get("additionalProperties"))
    return {
        key: without_padding(item, properties.get(key))
        for key, item in value.items()
        if item is not None or (_takes_null(properties[key]) if key in properties else is_open)
    }


def _takes_null(schema: Json) -> bool:
    """Return whether null is a value of this schema; one that says nothing about types takes everything."""
    if not isinstance(schema, dict):
        return True
    if "enum" in schema:
        return isinstance(schema["enum"], list) and None in schema["enum"]
    choices = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(choices, list):
        return any(map(_takes_null, choices))
    kind = schema.get("type")
    return kind is None or kind == "null" or (isinstance(kind, list) and "null" in kind) or bool(schema.get("nullable"))


_PYTHON_TYPES = {
    "dict": "object", "str": "string", "int": "integer", "float": "number", "bool": "boolean", "list": "array",
    "tuple": "array", "set": "array", "any": None,
}  # fmt: skip
_PYTHON_TYPE = re.compile(r"(?:Optional\[)?(?P<name>\w+)(?:\[(?P<items>\w+)(?:, *\w+)?\])?\]?(?:, *optional)?")


def _json_type(words: str) -> dict[str, Json]:
    """Return the type for a Python type name (`str`, `List[int]`, `str, optional`); other names unchanged."""
    found = _PYTHON_TYPE.fullmatch(words)
    name = found["name"].lower() if found else ""
    if found is None or name not in _PYTHON_TYPES:
        return {"type": words}
    kind = _PYTHON_TYPES[name]
    if kind is None:
        return {}
    return {"type": kind, **({"items": _json_type(found["items"])} if kind == "array" and found["items"] else {})}


def json_schema(schema: Json) -> Json:
    """Return a schema, whose types may be Python's (`dict`, `str`), as JSON Schema."""
    if isinstance(schema, list):
        return [json_schema(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    found: dict[str, Json] = {}
    for key, value in schema.items():
        if key == "type" and isinstance(value, str):
            found |= {name: known for name, known in _json_type(value).items() if name not in found}
        else:
            found[key] = json_schema(value)
    return found


def media(kind: str | None, url: Json) -> AnyPart:
    """Return a file part from its media type, which may be a family such as `image/*`, and URL (maybe a data URL)."""
    address = text_of(url)
    split = split_data_url(address)
    media_type = split[0] if split else kind
    make: type[Image | Audio | Document] = Document
    if (media_type or "image/").startswith("image/"):
        make = Image
    elif (media_type or "").startswith("audio/"):
        make = Audio
    if split:
        return make(media_type, split[1])
    return make(None if media_type is None or media_type.endswith("/*") else media_type, url=address)


IMAGES = "~images"
"""Note: the list of images beside a conversation with placeholders."""


class Placeholders:
    """The list `images` of a record, whose images stand where the conversation has placeholders, in order."""

    def __init__(self, name: str, images: Json) -> None:
        self._name = name
        self._images = images if isinstance(images, list) else None
        self._used = 0

    def __bool__(self) -> bool:
        return self._images is not None

    def next(self) -> AnyPart | None:
        """Return the image of the next placeholder; None if the list has no more, or none that can be read."""
        images, index = self._images or (), self._used
        self._used += 1
        address = _image_address(images[index]) if index < len(images) else ""
        return media("image/*", address) if address else None

    def note(self) -> dict[str, Raw]:
        """Return the list as a note, or as a key if there is no placeholder.

        Raises an error if there are more or fewer placeholders than images.
        """
        if self._images is None:
            return {}
        if not self._used:  # no placeholder: it is not known where the images belong
            return {"images": to_raw(self._images)}
        if self._used != len(self._images):
            expected = f"as many images as placeholders ({self._used})"
            raise DecodeError(path="$.images", expected=expected, got=f"{len(self._images)}", source=self._name)
        return {IMAGES: to_raw(self._images)}


def _image_address(image: Json) -> str:
    """Return the address of an image: a path, a URL, or (of `datasets`) an object with a path."""
    return text_of(image.get("path") or image.get("url")) if isinstance(image, dict) else text_of(image)


def noted_images(request: Request, name: str) -> Json:
    """Return the list of images that a record of this format had, if the request still has these images."""
    found = (request.metadata or {}).get(name, {}).get(IMAGES)
    images = [part.url for message in request.messages for part in message.parts if isinstance(part, Image)]
    listed = None if found is None else parse_json(to_raw(found))
    return listed if listed is not None and images == [_image_address(image) for image in listed] else None


def left_over(record: Mapping[str, Json], known: Iterable[str]) -> dict[str, Raw]:
    """Return the keys of a record that are not part of the conversation, to be kept with it."""
    names = set(known)
    return {key: to_raw(value) for key, value in record.items() if key not in names}


# ── writing ──


def report_settings(request: Request, log: LossLog, kept: Iterable[str] = ()) -> None:
    """Report a loss for each setting that a stored conversation does not have."""
    for name, what in SETTING_NAMES.items():
        if name in {"model", *kept}:
            continue
        value = getattr(request, name)
        if value not in (None, (), _DEFAULT_VALUES.get(name)):
            log.drop(request, name, what, NOT_STORED)


def own_keys(request: Request, name: str) -> dict[str, Json]:
    """Return the keys that a record of this format had beside the conversation."""
    return {key: value for key, value in (request.metadata or {}).get(name, {}).items() if not key.startswith("~")}


def write_tools(request: Request, log: LossLog, *, bare: bool = False) -> list[Json]:
    """Return function definitions; other tools are dropped, as these files cannot store them."""
    tools = []
    for tool in request.tools:
        if not isinstance(tool, ToolDefinition):
            log.drop(tool, "", f"tool {getattr(tool, 'name', '')!r}", "only functions are stored in this format")
            continue
        function: dict[str, Json] = {"name": tool.name}
        if tool.description is not None:
            function["description"] = tool.description
        definition: Any = tool  # what was read as a schema may be any JSON
        parameters = definition.parameters
        function["parameters"] = {"type": "object", "properties": {}} if parameters is None else parameters
        tools.append(function if bare else {"type": "function", "function": function})
    return tools


def result_text(result: ToolResult, log: LossLog) -> str:
    """Return a result as text; media are dropped."""
    if result.kind == "multimodal" or result.parts:
        texts = [part.text for part in result.parts if isinstance(part, Text)]
        for part in result.parts:
            if not isinstance(part, Text):
                log.drop(part, "", "media in a tool result", "results are text in this format")
        return "\n".join(texts)
    if result.kind == "error" and isinstance(result.value, str):
        return result.value
    return result.value if result.kind == "text" else compact_text(result.value)


def result_value(result: ToolResult, log: LossLog) -> Json:
    """Return a result as JSON: data unchanged, everything else as text."""
    return result.value if result.kind == "data" else result_text(result, log)


def arguments_value(call: ToolCall, family: str, *, prefers_text: bool = False) -> Json:
    """Return the arguments as this family wrote them: as an object, or as its JSON text, encoded once or several times.

    Arguments of other families are an object if possible, else the text that the model wrote.
    """
    text = call.arguments_text
    if call.arguments_held is UNSET:
        return text
    depth = ((call.metadata or {}).get(family) or {}).get(_DEPTH)
    held: Any = call  # arguments that were read may be any JSON
    value: Json = text if prefers_text and text is not None else held.arguments
    if depth is not None and text is not None:
        value = text
        for _ in range(int(parse_json(to_raw(depth))) - 1):
            value = compact_text(value)
    return value


def file_url(part: Image | Audio | Document) -> str | None:
    """Return the address of a file, as a data URL if its bytes are given."""
    if part.data is not None:
        return data_url(part.media_type or "application/octet-stream", part.data)
    return part.url


def drop_part(part: AnyPart, log: LossLog) -> None:
    """Report a loss for a part that has no counterpart."""
    log.drop(part, "", name_of_part(part), "this format has no place for it")


def parse_literal(text: str) -> Json:
    """Parse JSON, or JSON values as Python prints them, as older rows have them. Returns None for anything else."""
    try:
        return parse_json(text)
    except (msgspec.DecodeError, UnicodeError):
        pass
    try:
        return _json_value(ast.literal_eval(text))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def _json_value(value: object) -> Json:
    """Return a Python literal as a JSON value. Raises `ValueError` if it has none: bytes, a set, a complex number."""
    if isinstance(value, list | tuple):
        return [_json_value(item) for item in value]
    if isinstance(value, dict):
        return {_json_text(key): _json_value(item) for key, item in value.items()}
    if isinstance(value, str):
        return _json_text(value)
    if value is None or isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise ValueError(f"{type(value).__name__} has no JSON value")


def _json_text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{type(value).__name__} cannot be a key of a JSON object")  # noqa: TRY004 - as for any other text
    value.encode()  # a lone surrogate raises UnicodeEncodeError, which is a ValueError
    return value
