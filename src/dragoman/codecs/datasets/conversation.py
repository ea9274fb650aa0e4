"""Shared by the codecs of stored conversations: builds one message by message, and records the source of each piece.

Half of these formats have no call ids, so calls get ids by position, and results find their call by id, by name or by
order. A call without a result is kept without one: in training data the call itself is often what is to be learned.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import UNSET, Raw, Struct
from msgspec.structs import force_setattr

from dragoman.codecs.encoded import Encoded
from dragoman.codecs.ids import invent_id
from dragoman.codecs.media import data_url, split_data_url
from dragoman.codecs.part_handlers import PartHandlers
from dragoman.codecs.settings import SETTING_NAMES
from dragoman.errors import DecodeError, EncodeError
from dragoman.ir import (
    AnyPart,
    Audio,
    Document,
    Image,
    Message,
    Request,
    Text,
    ToolCall,
    ToolDefinition,
    ToolResult,
)
from dragoman.ir.messages import Role
from dragoman.ir.parts import ContentBlock, arguments_held
from dragoman.ir.values import compact_text, encode_json, exact_object, parse_json, read_arguments, to_raw
from dragoman.losses import LossLog, PathLookup

Json: TypeAlias = Any
Piece: TypeAlias = tuple[AnyPart, str]
"""A part, and its JSON path in the record."""

NOT_STORED = "stored conversations of this format have no settings"
_UNSAID = {"parallel_tool_calls": True, "stream": False, "candidates": 1}


class Dataset(Struct, frozen=True):
    """One format of stored conversations: how to recognise, read and write its records.

    `write` is None for logs and benchmarks, which are read-only.
    """

    name: str
    is_record: Callable[[Json], bool]
    read: Callable[[Json], Request]
    write: Callable[[Request, LossLog], Json] | None = None
    is_session: bool = False
    """Whether a whole file is one conversation: its lines, as a list, are the record."""

    def decode_request(self, body: bytes) -> Request:
        data = parse_json(body)
        if self.write is None and not self.is_record(data):
            raise refuse(self.name, "$", f"a record of {self.name}", data)
        return self.read(data)

    def encode_request(self, request: Request, log: LossLog) -> Encoded:
        if self.write is None:
            raise EncodeError(path="$", reason="this format is read, not written", target=self.name)
        return Encoded(encode_json(self.write(request, log)))


class Conversation:
    """Collects the messages of one record, in order, with their JSON paths."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._messages: list[Message] = []
        self._places: list[tuple[str, list[str]]] = []
        self._calls: dict[str, str] = {}
        self._open: OrderedDict[str, str] = OrderedDict()
        self._by_name: dict[str, deque[str]] = {}
        self._aliases: dict[str, str] = {}

    @property
    def calls(self) -> Mapping[str, str]:
        """Ids of the calls so far, with the names of their tools."""
        return self._calls

    def add(self, role: Role, pieces: Iterable[Piece], place: str, *, name: str | None = None) -> None:
        """Add a message, unless it has no parts. Consecutive results are merged into one message."""
        buffered = list(pieces)
        if not buffered:
            return
        parts, places = [part for part, _ in buffered], [where for _, where in buffered]
        if role == "tool" and self._messages and self._messages[-1].role == "tool":
            before = self._messages.pop()
            held_before = self._places.pop()
            parts, places, place = [*before.parts, *parts], [*held_before[1], *places], held_before[0]
        self._messages.append(Message(role, tuple(parts), name))
        self._places.append((place, places))

    def call(self, name: Json, arguments: Json, call_id: Json = None) -> ToolCall:
        """Return a call from what the format has: arguments as an object or as text, with or without an id."""
        given = call_id if isinstance(call_id, str) and call_id else None
        # Some sets use one constant id for every call; in a conversation ids are unique.
        key = invent_id(self._name, len(self._calls)) if given is None or given in self._calls else given
        if given is not None:
            self._aliases[given] = key
        tool = text_of(name)
        self._calls[key] = self._open[key] = tool
        self._by_name.setdefault(tool, deque()).append(key)
        return make_call(key, tool, arguments, invented=key != given)

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
        if given is not None and (alias := self._aliases.get(given, given)) in self._open:
            return alias, self._open.pop(alias)
        key = self._first_of(name) if isinstance(name, str) else None
        if key is None and given is None and self._open:
            key = next(iter(self._open))
        if key is not None:
            return key, self._open.pop(key)
        key = given or invent_id(f"{self._name} result", len(self._messages))
        return key, text_of(name) or self._calls.get(key, "")

    def _first_of(self, name: str) -> str | None:
        """Return the first open call of this tool."""
        waiting = self._by_name.get(name)
        while waiting and waiting[0] not in self._open:
            waiting.popleft()
        return waiting[0] if waiting else None

    def finish(
        self, *, model: Json = None, tools: Sequence[ToolDefinition] = (), metadata: dict[str, Raw] | None = None
    ) -> Request:
        """Return the conversation as a request that keeps the JSON paths of its messages."""
        request = Request(
            model if isinstance(model, str) else None,
            tuple(self._messages),
            tuple(tools),
            metadata={self._name: metadata} if metadata else None,
            origin=self._name,
        )
        force_setattr(request, "_places", self._places)
        return request


# ── reading ──


def dataset_paths(root: Request) -> PathLookup:
    """Return a lookup of the JSON path, in the record, of the message or part that a loss is about."""
    places: list[tuple[str, list[str]]] = getattr(root, "_places", [])

    def lookup(message_index: int | None, part_index: int | None, _field: str) -> str:
        if message_index is None or message_index >= len(places):
            return "$"
        place, parts = places[message_index]
        return parts[part_index] if part_index is not None and part_index < len(parts) else place

    return lookup


def refuse(name: str, path: str, expected: str, found: Json) -> DecodeError:
    """Return an error about a record, which names the type of the value, never its contents."""
    kinds = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return DecodeError(path=path, expected=expected, got=kinds.get(type(found), "a number"), source=name)


def items(value: Json, name: str, path: str) -> list[Mapping[str, Json]]:
    """Return the objects of a list; raises an error for anything else."""
    if not isinstance(value, list):
        raise refuse(name, path, "an array", value)
    for index, item in enumerate(value):
        if not isinstance(item, Mapping):
            raise refuse(name, f"{path}[{index}]", "an object", item)
    return value


def text_of(value: Json) -> str:
    """Return the value if it is a string, else an empty string."""
    return value if isinstance(value, str) else ""


def mappings(value: Json) -> list[Mapping[str, Json]]:
    """Return the objects of a list; empty if the value is not a list."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def make_call(call_id: str, name: str, arguments: Json, *, invented: bool = False) -> ToolCall:
    """Return a call whose arguments may be an object, JSON text, or JSON text in JSON text (a set converted twice)."""
    if isinstance(arguments, str):
        parsed = read_arguments(arguments)
        if parsed is UNSET:
            inner = _unquoted(arguments)
            parsed = read_arguments(inner) if inner is not None else UNSET
        return ToolCall(call_id, name, parsed, arguments, invented_id=invented)
    return ToolCall(call_id, name, to_raw({} if arguments is None else arguments), invented_id=invented)


def _unquoted(text: str) -> str | None:
    if text[:1] != '"':
        return None
    try:
        inner = parse_json(text)
    except Exception:  # noqa: BLE001 - any text may come here; text that is not JSON stays text
        return None
    return inner if isinstance(inner, str) and exact_object(inner) is not None else None


def read_tools(value: Json) -> list[ToolDefinition]:
    """Return function definitions: wrapped or bare, as a list or as JSON text of one; "" and "[]" mean no tools."""
    if isinstance(value, str):
        value = parse_json(value) if value.strip() else []
    tools = []
    for entry in mappings(value):
        function = entry.get("function") if isinstance(entry.get("function"), Mapping) else entry
        if isinstance(function, Mapping) and isinstance(function.get("name"), str):
            parameters = function.get("parameters", function.get("input_schema"))
            description = function.get("description")
            tools.append(
                ToolDefinition(
                    function["name"],
                    description if isinstance(description, str) else None,
                    to_raw(json_schema(parameters)) if isinstance(parameters, Mapping) else None,
                )
            )
    return tools


_PYTHON_TYPES = {
    "dict": "object", "str": "string", "int": "integer", "float": "number", "bool": "boolean", "list": "array",
    "tuple": "array", "any": None,
}  # fmt: skip


def json_schema(schema: Json) -> Json:
    """Return a schema, whose types may be Python's (`dict`, `str`), as JSON Schema."""
    if isinstance(schema, list):
        return [json_schema(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    found: dict[str, Json] = {}
    for key, value in schema.items():
        if key == "type" and isinstance(value, str) and value in _PYTHON_TYPES:
            if _PYTHON_TYPES[value] is not None:
                found[key] = _PYTHON_TYPES[value]
        else:
            found[key] = json_schema(value)
    return found


def media(kind: str | None, url: Json) -> AnyPart:
    """Return a file part from its media type and URL (possibly a data URL)."""
    address = text_of(url)
    split = split_data_url(address)
    media_type = split[0] if split else kind
    make: type[Image | Audio | Document] = Document
    if (media_type or "image/").startswith("image/"):
        make = Image
    elif (media_type or "").startswith("audio/"):
        make = Audio
    return make(media_type, split[1]) if split else make(media_type, url=address)


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
        if value not in (None, (), _UNSAID.get(name)):
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
        function["parameters"] = {"type": "object", "properties": {}} if tool.parameters is None else tool.parameters
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


def arguments_value(call: ToolCall) -> Json:
    """Return the arguments as an object if possible, else the text that the model wrote."""
    return call.arguments_text if arguments_held(call) is UNSET else call.arguments


def file_url(part: Image | Audio | Document) -> str | None:
    """Return the address of a file, as a data URL if its bytes are given."""
    if part.data is not None:
        return data_url(part.media_type or "application/octet-stream", part.data)
    return part.url


PART_NAMES: dict[type[AnyPart], str] = PartHandlers(
    text="text", reasoning="reasoning", refusal="refusal", image="image", document="document", audio="audio",
    tool_call="tool call", tool_result="tool result", server_tool_call="tool call of the provider",
    server_tool_result="tool result of the provider", search_result="search result", opaque="block of another vendor",
).by_type()  # fmt: skip


def drop_part(part: AnyPart, log: LossLog, why: str = "this format has no place for it") -> None:
    """Report a loss for a part that has no counterpart."""
    log.drop(part, "", PART_NAMES[type(part)], why)
