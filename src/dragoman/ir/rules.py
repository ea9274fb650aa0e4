"""Rules of single classes, beyond the types of their fields.

`PREPARE` converts the spellings that users choose to the form that decoders produce, before the fields are checked;
`FIELDS` are checks of single fields that accept more than their annotation; `CONFIRM` checks, afterwards, fields that
must agree with each other.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any, Final, get_args

from msgspec import UNSET, Raw, Struct

from dragoman.ir.checks import (
    NOTHING,
    Check,
    Found,
    Given,
    check_items,
    check_object,
    check_string,
    check_values,
    construct,
    join_alternatives,
    refuse,
    refuse_type,
    within,
)
from dragoman.ir.completions import Completion
from dragoman.ir.messages import Message
from dragoman.ir.parts import (
    PLAIN_SIGNATURES,
    AnyPart,
    Audio,
    ContentBlock,
    Document,
    Image,
    Media,
    Part,
    Reasoning,
    Signature,
    Text,
    ToolCall,
    ToolResult,
)
from dragoman.ir.requests import (
    AnyTool,
    Choice,
    CustomTool,
    ProviderTool,
    Request,
    StructuredOutput,
    ToolChoice,
    ToolDefinition,
)
from dragoman.ir.values import parse_json, read_arguments

_BLOCKS: Final = get_args(ContentBlock)

# ── parts ─────────────────────────────────────────────────────────────────────────────────────────────────────

_SIGNED: Final = {name: family for family, name in PLAIN_SIGNATURES.items()} | {"thought_signature": "google"}
"""Names of a signature in flat metadata; Google's SDK for Python writes the second."""


def _take_signature(given: Given, kind: str) -> None:
    """Moves a Gemini signature given as `metadata={"thoughtSignature": …}` to the part's signature."""
    metadata = given.get("metadata")
    if not isinstance(metadata, Mapping):
        return
    spelled = next((name for name in _SIGNED if name in metadata), None)
    if spelled is None:
        return
    path, data = f"{kind}.metadata[{spelled!r}]", metadata[spelled]
    if isinstance(data, bytes):
        data = b64encode(data).decode()  # Google's SDK reads the field as bytes
    signature = Signature(_SIGNED[spelled], check_string(data, path))
    other = given.get("signature")
    if other is not None and other != signature:
        refuse(path, "the same signature as in the field signature", data)
    given["signature"] = signature
    given["metadata"] = {key: entry for key, entry in metadata.items() if key not in _SIGNED} or None


def _prepare_call(given: Given) -> None:
    _take_signature(given, "ToolCall")
    text = given.get("arguments_text")
    if "arguments" in given:
        arguments = given["arguments"]
        if isinstance(arguments, str):
            refuse_type(
                "ToolCall.arguments",
                "a mapping",
                arguments,
                "give JSON text as arguments_text, which is kept exactly and parsed; or parse it with json.loads",
            )
        if arguments is not UNSET:
            check_object(arguments, "ToolCall.arguments")
    elif isinstance(text, str):
        given["arguments"] = {"input": text} if given.get("custom") is True else read_arguments(text)
    else:
        refuse_type("ToolCall.arguments", "a mapping", NOTHING, "a call without arguments has {}")


def _confirm_call(given: Given) -> None:
    _refuse_empty(given, "ToolCall", "id", "name")
    arguments, text = given["arguments"], given.get("arguments_text")
    if text is None or arguments is UNSET:
        return
    parsed = {"input": text} if given.get("custom") else _parse_held(read_arguments(text))
    if _parse_held(arguments) != parsed:
        refuse("ToolCall.arguments_text", "the JSON text of arguments", text, "leave one of the two out")


def _parse_held(value: Any) -> Any:
    return parse_json(value) if type(value) is Raw else value


def _refuse_empty(given: Given, kind: str, *names: str) -> None:
    for name in names:
        if not given[name]:
            refuse(f"{kind}.{name}", "a string that is not empty", given[name])


def read_block(value: Any, path: str) -> Any:
    """One content block: a value of its class, a bare string for a `Text`, or a mapping of the fields of one."""
    return Text(check_string(value, path)) if isinstance(value, str) else _check_block(value, path)


_check_block = check_values(_BLOCKS)
_read_blocks = check_items(read_block, "a content block (Text, Image, Document, Audio)")


def _prepare_result(given: Given) -> None:
    """Moves the content blocks of a multimodal result from `value` to `parts`, where decoders keep them."""
    kind, value = given.get("kind"), given.get("value")
    shows_blocks = isinstance(value, list | tuple) and any(isinstance(item, Part) for item in value)
    if kind == "multimodal" or (kind == "error" and shows_blocks):
        if value is None:
            given.pop("value", None)
        elif given.get("parts"):
            refuse("ToolResult.parts", "nothing beside value", given["parts"], "give the content blocks once")
        else:
            given["parts"] = _read_blocks(value, "ToolResult.value")
            del given["value"]
    elif shows_blocks or isinstance(value, Part):
        refuse_type("ToolResult.value", f"a value of kind {kind!r}", value, 'content blocks are of kind "multimodal"')


def _confirm_result(given: Given) -> None:
    _refuse_empty(given, "ToolResult", "tool_call_id", "name")
    _RESULTS[given["kind"]](given)


def _confirm_text(given: Given) -> None:
    value = _parse_held(given.get("value"))
    if not isinstance(value, str):
        found = value if "value" in given else NOTHING
        refuse_type("ToolResult.value", 'a string, because kind is "text"', found, 'other JSON is of kind "data"')
    if type(given["value"]) is not Raw:
        given["value"] = check_string(value, "ToolResult.value")
    _refuse_parts(given)


def _confirm_data(given: Given) -> None:
    if "value" not in given:
        refuse_type("ToolResult.value", "JSON", NOTHING, "give None for null")
    _refuse_parts(given)


def _confirm_error(given: Given) -> None:
    if given.get("parts"):
        if given.get("value") is not None:
            refuse("ToolResult.parts", "nothing beside value", given["parts"], "give one of the two")
    elif given.get("value") is None:
        refuse_type("ToolResult.value", "the error as a string", None if "value" in given else NOTHING)


def _confirm_multimodal(given: Given) -> None:
    if not given.get("parts"):
        refuse("ToolResult.value", "a list of content blocks", given.get("parts", ()))


def _refuse_parts(given: Given) -> None:
    if given.get("parts"):
        kind = given["kind"]
        refuse("ToolResult.parts", f'nothing, because kind is "{kind}"', given["parts"], 'use kind "multimodal"')


_RESULTS: Final[dict[str, Callable[[Given], None]]] = {
    "text": _confirm_text,
    "data": _confirm_data,
    "error": _confirm_error,
    "multimodal": _confirm_multimodal,
}

_SOURCES: Final = ("data", "url", "file_id")


def _prepare_media(kind: type[Media]) -> Callable[[Given], None]:
    def prepare(given: Given) -> None:
        _take_signature(given, kind.__name__)
        data = given.get("data")
        if isinstance(data, bytes | bytearray):
            given["data"] = b64encode(data).decode()
        elif isinstance(data, str) and data.startswith("data:"):
            refuse(f"{kind.__name__}.data", "bytes or base64", data, "a data: URL belongs in url")

    return prepare


def _confirm_media(kind: type[Media]) -> Callable[[Given], None]:
    sources = (*_SOURCES, "text") if kind is Document else _SOURCES
    expected = f"exactly one of {join_alternatives(sources)}"

    def confirm(given: Given) -> None:
        found = [name for name in sources if given.get(name) is not None]
        if len(found) != 1:
            # `Image("cat.png")`: the one argument without a name is the media type.
            hint = f"write {kind.__name__}(url=...) or (data=...)" if given.get("media_type") and not found else ""
            refuse_type(kind.__name__, expected, Found(" and ".join(found) or "none of them"), hint)

    return confirm


def _prepare_signed(kind: type[Struct]) -> Callable[[Given], None]:
    return lambda given: _take_signature(given, kind.__name__)


# ── messages ──────────────────────────────────────────────────────────────────────────────────────────────────

_check_part = check_values(get_args(AnyPart))


def _read_part(value: Any, path: str) -> Any:
    return Text(check_string(value, path)) if isinstance(value, str) else _check_part(value, path)


_read_parts = check_items(_read_part, "a part (Text, Image, ToolCall, …) or a string")


def _check_content(value: Any, path: str) -> Any:
    """Keeps a bare string as a string, because wires distinguish the two."""
    if isinstance(value, str):
        return check_string(value, path)
    return (value,) if isinstance(value, Part) else _read_parts(value, path)


def _confirm_message(given: Given) -> None:
    role, parts = given["role"], given["parts"]
    if role == "tool" and (type(parts) is str or any(type(part) is not ToolResult for part in parts)):
        refuse_type("Message.parts", 'ToolResult parts only, because role is "tool"', _odd_part(parts))
    if type(parts) is str:
        return
    for index, part in enumerate(parts):
        if type(part) is ToolResult and role != "tool":
            refuse_type(f"Message.parts[{index}]", f'no ToolResult, because role is "{role}"', part, 'use role "tool"')
        if type(part) is ToolCall and role != "assistant":
            refuse_type(
                f"Message.parts[{index}]", f'no ToolCall, because role is "{role}"', part, 'use role "assistant"'
            )


def _odd_part(parts: Any) -> Any:
    return parts if type(parts) is str else next(part for part in parts if type(part) is not ToolResult)


_check_message = check_values((Message,))


def _read_message(value: Any, path: str) -> Any:
    """A `Message`, or a mapping of its fields, where `content` is a usual name for `parts`."""
    if isinstance(value, Mapping) and "content" in value and "parts" not in value:
        value = {"parts" if key == "content" else key: entry for key, entry in value.items()}
    return _check_message(value, path)


# ── tools ─────────────────────────────────────────────────────────────────────────────────────────────────────

_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def _confirm_definition(given: Given) -> None:
    if _NAME.fullmatch(given["name"]) is None:
        refuse("ToolDefinition.name", "1 to 64 letters, digits, underscores and hyphens", given["name"])


def _confirm_named(kind: type[Struct]) -> Callable[[Given], None]:
    return lambda given: _refuse_empty(given, kind.__name__, "name")


def _confirm_provider_tool(given: Given) -> None:
    _refuse_empty(given, "ProviderTool", "name")
    if given.get("definition") is not None:
        if given.get("origin") is None:
            refuse("ProviderTool.origin", "the family of the definition", None)
    elif given.get("kind") is None and not given.get("functions"):
        refuse("ProviderTool", "a `definition` with its `origin`, or a `kind` of tool that vendors share", NOTHING)


_check_tool = check_values(get_args(AnyTool))


def _read_tool(value: Any, path: str) -> Any:
    """A tool, or a mapping of its fields. Without a `type`, and inside `function`, it is a `ToolDefinition`."""
    if not isinstance(value, Mapping) or value.get("type", "function") != "function":
        return _check_tool(value, path)
    fields = {key: entry for key, entry in value.items() if key != "type"}
    inner = fields.get("function")
    if isinstance(inner, Mapping) and len(fields) == 1:
        return within(f"{path}.function", lambda: construct(ToolDefinition, (), dict(inner)))
    return within(path, lambda: construct(ToolDefinition, (), fields))


_MODES: Final = ("auto", "none", "required")
_CHOICES: Final = '"auto", "none", "required", the name of a tool, {"name": …} or a list of names'


def read_choice(choice: Choice, path: str = "ToolChoice") -> ToolChoice:
    """Reads every form of `Choice`; a tool named like a mode cannot be forced."""
    if isinstance(choice, ToolChoice):
        return choice
    if isinstance(choice, str):
        return within(path, lambda: construct(ToolChoice, (choice,), {}) if choice in _MODES else _force((choice,)))
    if isinstance(choice, list | tuple):
        return within(path, lambda: _force(tuple(choice)))
    if not isinstance(choice, Mapping):
        refuse_type(path, _CHOICES, choice)
    if "mode" in choice:
        return within(path, lambda: construct(ToolChoice, (), dict(choice)))
    named = choice
    if choice.get("type") == "function" and isinstance(choice.get("function"), Mapping):
        named = choice["function"]
    if set(named) - {"type"} != {"name"} or named.get("type", "function") != "function":
        refuse(path, _CHOICES, choice)
    return within(path, lambda: _force((named["name"],)))


def _force(names: tuple[Any, ...]) -> ToolChoice:
    if not names:
        refuse("ToolChoice.names", "at least one name", names)
    return construct(ToolChoice, ("required", names), {})


def _prepare_choice(given: Given) -> None:
    mode = given.get("mode")
    if isinstance(mode, str) and mode not in _MODES:
        refuse(
            "ToolChoice.mode",
            join_alternatives(tuple(f'"{word}"' for word in _MODES)),
            mode,
            "ToolChoice.of(name) forces a tool",
        )


def _confirm_choice(given: Given) -> None:
    names = given.get("names", ())
    for index, name in enumerate(names):
        if not name or name in _MODES:
            refuse(f"ToolChoice.names[{index}]", f"a tool's name other than {join_alternatives(_MODES)}", name)
    if names and given["mode"] == "none":
        refuse("ToolChoice.names", 'nothing, because mode is "none"', names)


def _confirm_output(given: Given) -> None:
    if given["kind"] == "schema" and given.get("schema") is None:
        refuse_type("StructuredOutput.schema", 'a JSON Schema, because kind is "schema"', NOTHING)


# ── the tables ────────────────────────────────────────────────────────────────────────────────────────────────

_MEDIA: Final = (Image, Document, Audio)

PREPARE: Final[dict[type[Struct], Callable[[Given], None]]] = {
    ToolCall: _prepare_call,
    ToolResult: _prepare_result,
    ToolChoice: _prepare_choice,
    **{kind: _prepare_media(kind) for kind in _MEDIA},
    **{kind: _prepare_signed(kind) for kind in (Text, Reasoning)},
}
CONFIRM: Final[dict[type[Struct], Callable[[Given], None]]] = {
    ToolCall: _confirm_call,
    ToolResult: _confirm_result,
    ToolDefinition: _confirm_definition,
    ToolChoice: _confirm_choice,
    StructuredOutput: _confirm_output,
    Message: _confirm_message,
    **{kind: _confirm_media(kind) for kind in _MEDIA},
    CustomTool: _confirm_named(CustomTool),
    ProviderTool: _confirm_provider_tool,
}


def _read_optional_choice(value: Any, path: str) -> Any:
    return None if value is None else read_choice(value, path)


def _check_arguments(value: Any, path: str) -> Any:
    return UNSET if value is UNSET else check_object(value, path)


FIELDS: Final[dict[tuple[type[Struct], str], Check]] = {
    (ToolCall, "arguments"): _check_arguments,
    (ToolResult, "parts"): _read_blocks,
    (Message, "parts"): _check_content,
    (Request, "messages"): check_items(_read_message, "a Message"),
    (Request, "tools"): check_items(_read_tool, "a ToolDefinition, CustomTool or ProviderTool"),
    (Request, "tool_choice"): _read_optional_choice,
    (Completion, "messages"): check_items(_read_message, "a Message"),
}
