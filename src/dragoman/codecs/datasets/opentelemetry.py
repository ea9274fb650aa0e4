"""Messages of OpenTelemetry's GenAI conventions: roles, and parts with a type.

A record is a list of messages, or the attributes of a span (whose values are JSON text). The key of a result is
`response` now and was `result` in the first schema; both are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec
from msgspec import structs

from dragoman.codecs.datasets.conversation import (
    TOOL_KEYS,
    UNSTORED_MEDIA,
    UNSTORED_TOOLS,
    UNSTORED_WORDS,
    Conversation,
    Json,
    Piece,
    add_remarks,
    arguments_value,
    drop_part,
    items,
    mappings,
    media,
    read_tools,
    refuse,
    report_settings,
    result_value,
    text_of,
    write_tools,
)
from dragoman.codecs.datasets.dataset import Dataset
from dragoman.codecs.datasets.known_keys import Keys, all_keys, keys, kinds_of
from dragoman.codecs.datasets.unread_keys import step_into, unread_keys
from dragoman.ir import AnyPart, Audio, Document, Image, Reasoning, Refusal, Request, Text, ToolCall, ToolResult
from dragoman.ir.messages import Role
from dragoman.ir.values import compact_text, parse_json
from dragoman.losses import LossLog

NAME = "opentelemetry"
_INPUT, _OUTPUT = "gen_ai.input.messages", "gen_ai.output.messages"
_SYSTEM, _TOOLS, _MODEL = "gen_ai.system_instructions", "gen_ai.tool.definitions", "gen_ai.request.model"
_ROLES: dict[str, Role] = {"system": "system", "user": "user", "assistant": "assistant", "tool": "tool"}
_MODALITIES = {"image": "image/*", "audio": "audio/*", "video": "video/*"}


def is_record(data: Json) -> bool:
    """Return whether these are attributes of the conventions, or messages whose parts have a type and content."""
    attributes = _attributes(data)
    if attributes is not None:
        return _INPUT in attributes or _OUTPUT in attributes
    messages = mappings(data)
    return (
        bool(messages)
        and all(
            "role" in message
            and isinstance(message.get("parts"), list)
            and all(
                text_of(part.get("type")) in _PARTS | _OF_PROVIDER and "text" not in part
                for part in mappings(message["parts"])
            )
            for message in messages
        )
        and any(message["parts"] for message in messages)
    )


_PARTS = frozenset({"text", "reasoning", "thinking", "tool_call", "tool_call_response", "blob", "uri", "file"})
_OF_PROVIDER = frozenset({"server_tool_call", "server_tool_call_response"})


def _attributes(data: Json) -> Mapping[str, Json] | None:
    if not isinstance(data, dict):
        return None
    inner = data.get("attributes")
    if isinstance(inner, list):  # OTLP as JSON: a list of keys and typed values
        return _nest_attributes(
            {text_of(entry.get("key")): _otlp_value(entry.get("value")) for entry in mappings(inner)}
        )
    if isinstance(inner, dict):
        return _nest_attributes({key: value for _, key, value in _flatten(inner, "$.attributes")})
    return _nest_attributes({key.removeprefix(_COLUMN): value for _, key, value in _flatten(data, "$")})


_COLUMN = "attributes."
"""Before the name of an attribute in a table of spans, as Phoenix exports it."""


def _flatten(attributes: Mapping[str, Json], root: str) -> Iterator[tuple[str, str, Json]]:
    """Yield path, name and value of each attribute; those of OpenInference may be objects and lists, as in Phoenix."""
    for key, value in attributes.items():
        if key.removeprefix(_COLUMN).partition(".")[0] == "llm":
            yield from _leaves(value, step_into(root, key), key)
        else:
            yield step_into(root, key), key, value


def _leaves(value: Json, path: str, name: str) -> Iterator[tuple[str, str, Json]]:
    inner: Iterator[tuple[str | int, Json]] | None = None
    if isinstance(value, dict) and value and not name.endswith(_WHOLE_VALUES):
        inner = iter(value.items())
    elif isinstance(value, list) and mappings(value):
        inner = iter(enumerate(value))
    if inner is None:
        yield path, name, value
        return
    for key, one in inner:
        yield from _leaves(one, step_into(path, key), f"{name}.{key}")


_WHOLE_VALUES = ("arguments", "parameters", "json_schema", "content")


def _otlp_value(value: Json) -> Json:
    return next(iter(value.values()), None) if isinstance(value, dict) else value


_FLAT = re.compile(
    r"(?:gen_ai\.(?P<gen_ai>prompt|completion)|llm\.(?P<llm>input|output)_messages)\.(?P<index>\d{1,9})\.(?:message\.)?(?P<field>.+)"
)
_FLAT_CALL = re.compile(r"tool_calls\.(?P<index>\d{1,9})\.(?:tool_call\.)?(?:function\.)?(?P<field>id|name|arguments)")
_FLAT_TOOL = re.compile(
    r"llm\.(?:request\.functions|tools)\.(?P<index>\d{1,9})\.(?:tool\.)?(?P<field>name|description|parameters|json_schema)"
)


def _nest_attributes(attributes: Mapping[str, Json]) -> Mapping[str, Json]:
    """Return attributes with lists of messages, if they are flat: OpenLLMetry and OpenInference number their fields."""
    flat: dict[str, dict[int, dict[str, Json]]] = {_INPUT: {}, _OUTPUT: {}, _TOOLS: {}}
    for key, value in attributes.items():
        if (found := _FLAT.fullmatch(key)) is not None:
            side = _OUTPUT if found["gen_ai"] == "completion" or found["llm"] == "output" else _INPUT
            flat[side].setdefault(int(found["index"]), {})[found["field"]] = value
        elif (found := _FLAT_TOOL.fullmatch(key)) is not None:
            schema = _parse_parameters(value, found["field"])
            field = found["field"].replace("json_schema", "parameters")
            whole = schema if found["field"] == "json_schema" and isinstance(schema, dict) else {field: schema}
            flat[_TOOLS].setdefault(int(found["index"]), {}).update(whole)
    if not flat[_INPUT] and not flat[_OUTPUT]:
        return attributes
    lists = {
        key: [_from_fields(fields[index]) for index in sorted(fields)] for key, fields in flat.items() if key != _TOOLS
    }
    tools = [flat[_TOOLS][index] for index in sorted(flat[_TOOLS])]
    model = attributes.get(_MODEL, attributes.get("llm.model_name"))
    return {_MODEL: model, **{key: value for key, value in lists.items() if value}, _TOOLS: tools}


def _parse_parameters(value: Json, field: str) -> Json:
    """Return the parameters of a tool, or all of it, which are JSON text; text that was cut stays as it is."""
    if field not in {"parameters", "json_schema"} or not isinstance(value, str):
        return value
    try:
        return parse_json(value)
    except (msgspec.DecodeError, UnicodeError):
        return value


def _from_fields(fields: Mapping[str, Json]) -> dict[str, Json]:
    """Return one message of these conventions from the fields of a numbered one."""
    calls: dict[int, dict[str, Json]] = {}
    for key, value in fields.items():
        if (found := _FLAT_CALL.fullmatch(key)) is not None:
            calls.setdefault(int(found["index"]), {})[found["field"]] = value
    role, content = text_of(fields.get("role")), fields.get("content")
    parts: list[Json] = [{"type": "tool_call", **calls[index]} for index in sorted(calls)]
    if role == "tool":
        parts = [{"type": "tool_call_response", "id": fields.get("tool_call_id"), "response": content}]
    elif text_of(content):
        parts.insert(0, {"type": "text", "content": content})
    return {"role": role, "parts": parts}


def read(data: Json) -> Request:
    conversation = Conversation(NAME)
    attributes = _attributes(data)
    if attributes is None:
        _add_messages(conversation, data, "$")
        return conversation.finish()
    _require_whole(attributes.get(_TOOLS), "$.attributes" if "attributes" in data else "$")
    system, place = _json(attributes, _SYSTEM, data), _place_of(_SYSTEM, data)
    if system:
        parts = [(Text(text_of(part.get("content"))), place) for part in mappings(system)]
        conversation.add("system", parts, place)
    for key in (_INPUT, _OUTPUT):
        if key in attributes:
            _add_messages(conversation, _json(attributes, key, data), _place_of(key, data))
    request = conversation.finish(model=attributes.get(_MODEL), tools=read_tools(_json(attributes, _TOOLS, data)))
    add_remarks(request, NAME, everywhere=[(path, key, "dropped", _NOT_CONTENT) for path, key in _unread_keys(data)])
    return request


def _require_whole(tools: Json, root: str) -> None:
    for tool in mappings(tools):
        if isinstance(cut := tool.get("parameters"), str):
            raise refuse(NAME, root, _WHOLE, cut)


_WHOLE = "JSON; tracers cut long attributes"
_NOT_CONTENT = "it is not part of the conversation"
_READ = frozenset({_INPUT, _OUTPUT, _SYSTEM, _TOOLS, _MODEL, "llm.model_name"})
_READ_FIELDS = frozenset({"role", "content", "tool_call_id"})


def _unread_keys(data: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    """Yield path and name of each attribute, and of each key of a span, that is not read."""
    given = data.get("attributes")
    if isinstance(given, list):
        found = [
            (f"$.attributes[{index}]", text_of(entry.get("key")), _otlp_value(entry.get("value")))
            for index, entry in enumerate(mappings(given))
        ]
    else:
        found = [*_flatten(given, "$.attributes")] if isinstance(given, dict) else [*_flatten(data, "$")]
    for path, column, value in found:
        key = column.removeprefix(_COLUMN)
        if not _is_read(key):
            yield path, key
        elif key.endswith("json_schema"):
            tool = _parse_parameters(value, "json_schema")
            yield from ((path + inner[1:], name) for inner, name, _ in unread_keys(tool, TOOL_KEYS))
    if isinstance(given, list | dict):
        yield from ((step_into("$", key), key) for key in data if key != "attributes")


def _is_read(key: str) -> bool:
    found = _FLAT.fullmatch(key)
    if found is not None:
        return found["field"] in _READ_FIELDS or _FLAT_CALL.fullmatch(found["field"]) is not None
    return key in _READ or _FLAT_TOOL.fullmatch(key) is not None


def _place_of(key: str, data: Mapping[str, Json]) -> str:
    """Return the path of an attribute. Of numbered fields, which are read as lists, it is the path that a list has."""
    given = data.get("attributes")
    if not isinstance(given, list):
        return step_into("$" if given is None else "$.attributes", key)
    for index, entry in enumerate(mappings(given)):
        if entry.get("key") == key:
            value = entry.get("value")
            kind = next(iter(value), "") if isinstance(value, dict) else ""
            return f"$.attributes[{index}].value" + (f".{kind}" if kind else "")
    return "$.attributes"


def _json(attributes: Mapping[str, Json], key: str, data: Mapping[str, Json]) -> Json:
    """Parse an attribute: attributes of spans hold JSON as text, often truncated."""
    value = attributes.get(key)
    if not isinstance(value, str):
        return value
    try:
        return parse_json(value)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise refuse(NAME, _place_of(key, data), _WHOLE, value) from error


def _add_messages(conversation: Conversation, messages: Json, place: str) -> None:
    for index, message in enumerate(items(messages, NAME, place)):
        where = f"{place}[{index}]"
        role = _ROLES.get(text_of(message.get("role")), "user")
        written: list[Piece] = []
        results: list[Piece] = []
        for number, part in enumerate(items(message.get("parts"), NAME, f"{where}.parts")):
            made = _part(conversation, part, f"{where}.parts[{number}]")
            if made is None:
                continue
            (results if isinstance(made, ToolResult) else written).append((made, f"{where}.parts[{number}]"))
        conversation.add("tool", results, where)
        conversation.add("user" if role == "tool" else role, written, where)


def _part(conversation: Conversation, part: Mapping[str, Json], place: str) -> AnyPart | None:
    """Return a part; None if no message can hold it, which is reported."""
    kind = text_of(part.get("type"))
    if (lost := _unread_part(part, kind)) is not None:
        conversation.leave_out(*lost)
        return None
    if kind == "text" and isinstance(part.get("content"), str):
        return Text(part["content"])
    if kind in {"reasoning", "thinking"} and isinstance(part.get("content"), str):
        return Reasoning(part["content"])
    if kind == "tool_call":
        return conversation.call(part.get("name"), part.get("arguments"), part.get("id"))
    if kind == "tool_call_response":
        value = part["response"] if "response" in part else part.get("result")
        return conversation.result(value, call_id=part.get("id"), name=part.get("name"))
    if kind == "blob":
        mime = text_of(part.get("mime_type")) or _MODALITIES.get(
            text_of(part.get("modality")), "application/octet-stream"
        )
        return media(mime, f"data:{mime};base64,{text_of(part.get('content'))}")
    if kind in {"uri", "file"} and isinstance(part.get("uri"), str):
        return media(text_of(part.get("mime_type")) or _MODALITIES.get(text_of(part.get("modality"))), part["uri"])
    raise refuse(NAME, place, "a part with its content (privacy settings may have left it out)", part.get("content"))


def _unread_part(part: Mapping[str, Json], kind: str) -> tuple[str, str] | None:
    """Return what is lost of a part that no message can hold, and why; None for other parts."""
    if kind in _OF_PROVIDER:
        return "tools that the provider ran", "only that provider takes their calls back"
    if kind == "file" and isinstance(part.get("file_id"), str):
        return "files by id", "only the provider that stores them can read them"
    if kind and kind not in _PARTS:
        return f"parts of the kind {kind!r}", "content of this kind is not read"
    return None


def write(request: Request, log: LossLog) -> Json:
    report_settings(request, log)
    messages: list[Json] = []
    system: list[Json] = []
    for index, message in enumerate(request.messages):
        parts = [one for part in message.parts if (one := _write_part(part, log)) is not None]
        if message.role == "system" and index == 0:
            system = parts
        elif parts:
            messages.append({"role": message.role, "parts": parts})
    record: dict[str, Json] = {} if request.model is None else {_MODEL: request.model}
    if system:
        record[_SYSTEM] = compact_text(system)
    tools = write_tools(request, log)
    if tools:
        record[_TOOLS] = compact_text(tools)
    return {**record, _INPUT: compact_text(messages)}


def _write_part(part: AnyPart, log: LossLog) -> Json | None:
    if isinstance(part, Text | Refusal):
        return {"type": "text", "content": part.text}
    if isinstance(part, Reasoning):
        if part.signature is not None:
            log.drop(part, "signature", "signature", "traces do not keep signatures")
        return {"type": "reasoning", "content": part.text} if part.text else None
    if isinstance(part, ToolCall):
        return {"type": "tool_call", "id": part.id, "name": part.name, "arguments": arguments_value(part, NAME)}
    if isinstance(part, ToolResult):
        if part.is_error:
            log.degrade(part, "kind", "that the tool failed", "results have no error flag in this format")
        return {"type": "tool_call_response", "id": part.tool_call_id, "response": result_value(part, log)}
    if isinstance(part, Image | Audio | Document):
        modality = {Image: "image", Audio: "audio"}.get(type(part), "file")
        mime = {"mime_type": part.media_type} if part.media_type else {}
        if part.data is not None:
            return {"type": "blob", "modality": modality, **mime, "content": part.data}
        if part.url is not None:
            return {"type": "uri", "modality": modality, **mime, "uri": part.url}
    drop_part(part, log)
    return None


_PART_KEYS = kinds_of(
    "type",
    {
        "text reasoning thinking": keys("content"),
        "tool_call": keys("id name arguments"),
        "tool_call_response": keys("id name response result"),
        "blob": keys("mime_type modality content"),
        "uri file": keys("mime_type modality uri file_id"),
    },
    keys(),
)
_MESSAGE = structs.replace(keys("role", parts=_PART_KEYS), as_text=True)
_ATTRIBUTES = {_INPUT: _MESSAGE, _OUTPUT: _MESSAGE, _TOOLS: TOOL_KEYS}
_VALUE = keys("stringValue boolValue intValue doubleValue bytesValue arrayValue kvlistValue")
_TYPED = {name: keys(value=Keys(_VALUE.names, (("stringValue", kind),))) for name, kind in _ATTRIBUTES.items()}
_VALUES = structs.replace(all_keys(**_ATTRIBUTES), items=kinds_of("key", _TYPED, keys(value=_VALUE)))
_SPAN = all_keys(attributes=_VALUES, **_ATTRIBUTES)
_KEYS = kinds_of("role", {"system user assistant tool": _MESSAGE}, _SPAN)
DATASET = Dataset(
    NAME, is_record, read, write, keys=_KEYS, unstored={**UNSTORED_WORDS, **UNSTORED_MEDIA, **UNSTORED_TOOLS}
)
