"""Which documented fields the wire structs do not model, by a walk over the vendors' SDK types and ours side by side.

A field that a struct does not model still arrives at its own family (it is lifted), but slowly, and no other vendor can
get it. Where ours keeps a value whole (`Raw`, a mapping), everything inside it is covered.
"""

import inspect
import re
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, reduce
from importlib import import_module
from operator import or_
from types import UnionType
from typing import Annotated, Any, Literal, NotRequired, Required, Union, get_args, get_origin

import botocore.session  # type: ignore[import-untyped]
import cohere
import ollama._types as ollama_types
import openai
from anthropic.types import beta
from botocore.model import Shape  # type: ignore[import-untyped]
from cohere.v2.client import V2Client as CohereClient
from google.genai import types as google
from google.genai._gaos.types import interactions
from msgspec import Raw, Struct
from openai.types import chat, responses
from pydantic import BaseModel
from typing_extensions import TypeAliasType, TypedDict, is_typeddict

from dragoman.codecs.wire_values import UNKNOWN

_WRAPPERS = (Required, NotRequired, typing.Required, typing.NotRequired, Annotated)
_TAGS = ("type", "role")
_HEADERS = frozenset({"betas"})  # Anthropic's parameters name a header too


Seen = dict[tuple[int, int], tuple[Any, Any]]
"""Pairs that were compared, by identity; kept alive, so that no other object gets their ids."""


def gaps(sdk: Any, ours: Any, path: str = "$") -> list[str]:
    """The paths, in the SDK's names, that our type does not model."""
    return sorted(set(_gaps(sdk, ours, path, {})))


def _gaps(sdk: Any, ours: Any, path: str, seen: Seen) -> Iterator[str]:
    if (id(sdk), id(ours)) in seen or _is_kept_whole(ours):
        return
    seen[id(sdk), id(ours)] = (sdk, ours)
    our_members, sdk_members = list(_members(ours)), list(_members(sdk))
    our_items = [item for member in our_members if (item := _item(member)) is not None]
    structs = [member for member in our_members if isinstance(member, type) and issubclass(member, Struct)]
    for member in sdk_members:
        item = _item(member)
        fields = _fields(member)
        if item is not None and our_items:
            yield from _gaps(item, reduce(or_, our_items), f"{path}[]", seen)
        elif fields is not None and structs:
            yield from _object_gaps(fields, structs, path, seen)


def _object_gaps(fields: Mapping[str, Any], structs: Sequence[type[Struct]], path: str, seen: Seen) -> Iterator[str]:
    tagged = [struct for struct in structs if struct.__struct_config__.tag is not None]
    tag_field = (tagged[0].__struct_config__.tag_field or "type") if tagged else ""
    names = _literals(fields.get(tag_field)) if tagged else ()
    if not names:
        yield from _field_gaps(fields, _counterpart(fields, structs), f"{path}{_kind(fields)}", seen)
    for name in names:
        match = next((struct for struct in tagged if struct.__struct_config__.tag == name), None)
        if match is None:
            yield f"{path}[{tag_field}={name}]"
        else:
            yield from _field_gaps(fields, {**_our_fields(match), tag_field: str}, f"{path}[{tag_field}={name}]", seen)


def _counterpart(fields: Mapping[str, Any], structs: Sequence[type[Struct]]) -> dict[str, Any]:
    """What ours has for an SDK type without a tag: the nearest struct, or all members of a tagged union together."""
    plain = [_our_fields(struct) for struct in structs if struct.__struct_config__.tag is None]
    if plain:
        return max(plain, key=lambda known: len(known.keys() & fields.keys()))
    merged = {struct.__struct_config__.tag_field or "type": str for struct in structs}
    return {**merged, **{name: kind for struct in structs for name, kind in _our_fields(struct).items()}}


def _kind(fields: Mapping[str, Any]) -> str:
    """Which member of a union this is, where one of ours stands for several of the SDK's."""
    for tag in _TAGS:
        names = _literals(fields.get(tag))
        if names:
            return f"[{tag}={names[0]}]"
    return ""


def _field_gaps(fields: Mapping[str, Any], known: Mapping[str, Any], path: str, seen: Seen) -> Iterator[str]:
    for name, kind in fields.items():
        if name not in known:
            yield f"{path}.{name}"
        else:
            yield from _gaps(kind, known[name], f"{path}.{name}", seen)


@cache
def _our_fields(struct: type[Struct]) -> dict[str, Any]:
    hints = typing.get_type_hints(struct)
    names = zip(struct.__struct_fields__, struct.__struct_encode_fields__, strict=True)
    return {encoded: hints[name] for name, encoded in names if name != "extra"}


def _is_kept_whole(ours: Any) -> bool:
    """Raw and mappings carry whatever the vendor documents."""
    return any(member in {Raw, Any, object, dict} or get_origin(member) in {dict, Mapping} for member in _members(ours))


def _members(kind: Any) -> Iterator[Any]:
    if isinstance(kind, TypeAliasType):
        yield from _members(kind.__value__)
    elif get_origin(kind) in _WRAPPERS:
        yield from _members(get_args(kind)[0])
    elif get_origin(kind) in {Union, UnionType}:
        for member in get_args(kind):
            yield from _members(member)
    elif not _is_unknown(kind):
        yield kind


def _is_unknown(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Struct) and kind.__struct_config__.tag == UNKNOWN


def _item(kind: Any) -> Any:
    if isinstance(kind, Shape):
        return kind.member if kind.type_name == "list" else None
    origin = get_origin(kind)
    is_sequence = isinstance(origin, type) and issubclass(origin, Iterable) and not issubclass(origin, Mapping)
    return get_args(kind)[0] if is_sequence and get_args(kind) else None


def _fields(kind: Any) -> dict[str, Any] | None:
    """The wire names of an SDK type's fields; None for other types."""
    if isinstance(kind, Shape):
        return _service_fields(kind)
    if is_typeddict(kind):
        return {name: hint for name, hint in _hints(kind).items() if name not in _HEADERS}
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return {(field.alias or name): field.annotation for name, field in kind.model_fields.items()}
    return None


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind, include_extras=True)


def _service_fields(shape: Any) -> dict[str, Any] | None:
    if shape.type_name != "structure":
        return None
    members: dict[str, Any] = shape.members
    return {name: member for name, member in members.items() if member.serialization.get("location") != "uri"}


def _literals(hint: Any) -> tuple[str, ...]:
    if hint is None or isinstance(hint, Shape):
        return ()
    return tuple(
        value for member in _members(hint) if get_origin(member) is Literal for value in get_args(member) if value
    )


# ── roots ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _wire(folder: str, name: str) -> Any:
    return getattr(import_module(f"dragoman.codecs.{folder}.wire"), name)


def _converse(name: str) -> Any:
    """`input` or `output` of Bedrock's Converse, from the service model that boto3 ships."""
    service = botocore.session.get_session().get_service_model("bedrock-runtime")
    return getattr(service.operation_model("Converse"), f"{name}_shape")


def _genai_keys(function: str, target: str) -> Any:
    """A type with the keys that google-genai's writer puts into `parent_object` (the body) or `to_object`.

    Its own configuration type mixes both levels, so the writer is the list.
    """
    source = inspect.getsource(getattr(import_module("google.genai.models"), function))
    names = re.findall(rf"setv\(\s*{target},\s*\[['\"](\w+)['\"]", source)
    return TypedDict(f"{function}_{target}", dict.fromkeys(sorted(set(names)), Any))  # type: ignore[operator]


def _items(union: Any) -> Any:
    """The items of Responses that are read as structs; those of every other type are kept whole."""
    read = import_module("dragoman.codecs.openai_responses.messages").ITEM_TYPES
    kinds = [(member, _literals((_fields(member) or {}).get("type"))) for member in _members(union)]
    return Union[tuple(member for member, types in kinds if not types or set(types) & read)]  # noqa: UP007


def _cohere_request() -> Any:
    """The keyword arguments of the client's method are the keys of a body; `stream` is set by which method it is."""
    names = inspect.signature(CohereClient.chat).parameters
    hints = typing.get_type_hints(CohereClient.chat)
    return TypedDict("ChatRequest", {name: hints[name] for name in names if name not in {"self", "request_options"}})  # type: ignore[operator]


ROOTS: Mapping[str, Callable[[], tuple[Any, Any]]] = {
    "openai-chat request": lambda: (
        chat.completion_create_params.CompletionCreateParamsBase,
        _wire("openai_chat", "ChatBody"),
    ),
    "openai-chat tool": lambda: (chat.ChatCompletionToolUnionParam, _wire("openai_chat", "AnyTool")),
    "openai-chat response": lambda: (chat.ChatCompletion, _wire("openai_chat", "ChatAnswer")),
    "openai-chat usage": lambda: (openai.types.CompletionUsage, _wire("openai_chat", "UsageWire")),
    "openai-responses request": lambda: (
        responses.response_create_params.ResponseCreateParamsBase,
        _wire("openai_responses", "ResponsesBody"),
    ),
    "openai-responses input item": lambda: (
        _items(responses.ResponseInputItemParam),
        _wire("openai_responses", "Item"),
    ),
    "openai-responses tool": lambda: (responses.ToolParam, _wire("openai_responses", "ProviderToolWire")),
    "openai-responses response": lambda: (responses.Response, _wire("openai_responses", "ResponsesAnswer")),
    "openai-responses output item": lambda: (_items(responses.ResponseOutputItem), _wire("openai_responses", "Item")),
    "openai-responses usage": lambda: (responses.ResponseUsage, _wire("openai_responses", "UsageWire")),
    "anthropic-messages request": lambda: (
        beta.message_create_params.MessageCreateParamsBase,
        _wire("anthropic_messages", "MessagesBody"),
    ),
    "anthropic-messages tool": lambda: (beta.BetaToolUnionParam, _wire("anthropic_messages", "ToolWire")),
    "anthropic-messages response": lambda: (beta.BetaMessage, _wire("anthropic_messages", "MessageResponse")),
    "anthropic-messages usage": lambda: (beta.BetaUsage, _wire("anthropic_messages", "UsageWire")),
    "gemini request": lambda: (
        _genai_keys("_GenerateContentConfig_to_mldev", "parent_object"),
        _wire("gemini", "GenerateContentBody"),
    ),
    "vertex request": lambda: (
        _genai_keys("_GenerateContentConfig_to_vertex", "parent_object"),
        _wire("gemini", "GenerateContentBody"),
    ),
    "gemini generation config": lambda: (google.GenerationConfig, _wire("gemini", "GenerationConfigBody")),
    "gemini content": lambda: (google.Content, _wire("gemini", "ContentBody")),
    "gemini tool": lambda: (google.Tool, _wire("gemini", "ToolObject")),
    "gemini tool config": lambda: (google.ToolConfig, _wire("gemini", "ToolConfig")),
    "gemini response": lambda: (google.GenerateContentResponse, _wire("gemini", "GenerateContentResponseBody")),
    "bedrock-converse request": lambda: (_converse("input"), _wire("bedrock_converse", "ConverseBody")),
    "bedrock-converse tool": lambda: (
        _converse("input").members["toolConfig"].members["tools"].member,
        _wire("bedrock_converse", "ToolWire"),
    ),
    "bedrock-converse response": lambda: (_converse("output"), _wire("bedrock_converse", "ConverseResponse")),
    "gemini-interactions request": lambda: (
        interactions.CreateModelInteraction | interactions.CreateAgentInteraction,
        _wire("gemini_interactions", "InteractionBody"),
    ),
    "gemini-interactions tool": lambda: (interactions.Tool, _wire("gemini_interactions", "ProviderToolWire")),
    "gemini-interactions response": lambda: (interactions.Interaction, _wire("gemini_interactions", "Interaction")),
    "ollama-chat request": lambda: (ollama_types.ChatRequest, _wire("ollama_chat", "ChatBody")),
    "ollama-chat response": lambda: (ollama_types.ChatResponse, _wire("ollama_chat", "ChatResponse")),
    "cohere-chat message": lambda: (cohere.AssistantMessage, _wire("cohere_chat", "AssistantMessage")),
    "cohere-chat request": lambda: (_cohere_request(), _wire("cohere_chat", "ChatBody")),
    "cohere-chat tool": lambda: (cohere.ToolV2, _wire("cohere_chat", "FunctionTool")),
    "cohere-chat response": lambda: (cohere.V2ChatResponse, _wire("cohere_chat", "ChatResponse")),
}
"""What is compared: a vendor's type and the struct that reads the same bodies. Both are looked up when asked for."""


def root_gaps(root: str) -> list[str]:
    return gaps(*ROOTS[root]())
