"""Fits a request to a server that speaks this format: before encoding, removes what the server would refuse.

Each restricting flag of a `ChatProfile` has one step here. OpenAI itself accepts everything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar

from msgspec import UNSET, Raw, structs

from dragoman.codecs import cache_control
from dragoman.codecs.arguments import arguments_as_object
from dragoman.codecs.cache_breakpoints import BREAKPOINT
from dragoman.codecs.common_losses import drop_signature
from dragoman.codecs.media import document_text
from dragoman.codecs.openai_chat import foreign_signatures
from dragoman.codecs.openai_chat.profile import ChatProfile
from dragoman.codecs.openai_chat.tools import SHAPE
from dragoman.codecs.search_results import search_as_text
from dragoman.codecs.shared_tools import parameters_of_custom
from dragoman.ir import (
    AnyPart,
    AnyTool,
    Audio,
    CustomTool,
    Document,
    Image,
    Message,
    Reasoning,
    Request,
    SearchResult,
    StructuredOutput,
    Text,
    ToolCall,
    ToolDefinition,
    ToolResult,
)
from dragoman.ir.notes import MODELLED
from dragoman.ir.values import Metadata, Value, encode_json, note
from dragoman.losses import LossLog

FAMILY = "openai"

N = TypeVar("N", bound=Value)

_Parts: TypeAlias = tuple[AnyPart, ...]


def fit(request: Request, profile: ChatProfile, log: LossLog, keys: Mapping[str, str]) -> Request:
    """Return the request as this server accepts it; the same object if nothing changes.

    `keys` maps the fields of settings that not every server has to their wire keys.
    """
    if not profile.legalises_own_family:
        return request
    changes: dict[str, Any] = _settings(request, profile, log, keys)
    tools = tuple(_tool(tool, profile, log) for tool in request.tools)
    if any(new is not old for new, old in zip(tools, request.tools, strict=True)):
        changes["tools"] = tools
    has_schemas = profile.no_output_schema_models.search(request.model or "") is None
    if request.output is not None and request.output.kind == "schema" and not has_schemas:
        log.degrade(request, "output", "schema of the answer", "this server takes JSON mode only")
        changes["output"] = StructuredOutput("json")
    if profile.known_keys is not None:
        changes["metadata"] = _drop_unknown_keys(request, profile.known_keys, log)
    messages = tuple(_message(message, profile, log) for message in request.messages)
    if any(new is not old for new, old in zip(messages, request.messages, strict=True)):
        changes["messages"] = messages
    return log.replace(request, **changes)


_ANYWAY = {"store": False, "obfuscation": False}
"""Values that match what a server without the setting does anyway."""


def _source_field(name: str, changes: Mapping[str, Any]) -> str:
    """Return the field in which the source gave a setting."""
    return "safety_identifier" if name == "user" and "safety_identifier" in changes else name


def _absent(request: Request, name: str) -> Any:
    return () if type(getattr(request, name)) is tuple else None


def _settings(request: Request, profile: ChatProfile, log: LossLog, keys: Mapping[str, str]) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    known = profile.known_keys
    unknown = [] if known is None else [name for name, key in keys.items() if key not in known]
    for name in unknown:
        if getattr(request, name) not in (None, ()):
            log.drop(request, name, name.replace("_", " "), _UNKNOWN)
            changes[name] = _absent(request, name)
    # Other vendors' servers know the end user under the older name.
    if request.safety_identifier is not None and request.user is None and request.origin != FAMILY:
        moved = structs.replace(request, user=request.safety_identifier, safety_identifier=None)
        changes = {"user": moved.user, "safety_identifier": None}
        log.replaced(moved, request)
        request = moved
    for name in profile.refuses:
        if getattr(request, name) not in (None, (), _ANYWAY.get(name)):
            log.drop(request, _source_field(name, changes), name.replace("_", " "), "this server takes no such setting")
            changes[name] = _absent(request, name)
    return changes


def _tool(tool: AnyTool, profile: ChatProfile, log: LossLog) -> AnyTool:
    if type(tool) is CustomTool and not profile.custom_tools:
        return _function(tool, log)
    if type(tool) is ToolDefinition and note(tool.metadata, FAMILY, SHAPE) is not UNSET:
        notes = {key: value for key, value in (tool.metadata or {})[FAMILY].items() if key != SHAPE}
        tool = log.replace(tool, metadata={**(tool.metadata or {}), FAMILY: notes})
    return tool if profile.known_keys is None else _without_unknown_keys(tool, log)


def _function(tool: CustomTool, log: LossLog) -> ToolDefinition:
    function = ToolDefinition(tool.name, tool.description, parameters_of_custom(tool, log))
    log.replaced(function, tool)
    return function


def _drop_unknown_keys(request: Request, known: frozenset[str], log: LossLog) -> Metadata | None:
    if request.metadata is None:
        return None
    kept = {}
    for key, value in request.metadata.get(FAMILY, {}).items():
        if key.startswith("~") or key in known:
            kept[key] = value
        else:
            log.drop(request, key, key, _UNKNOWN)
    return {**request.metadata, FAMILY: kept}


# ── messages ──────────────────────────────────────────────────────────────────────────────────────────────────


def _message(message: Message, profile: ChatProfile, log: LossLog) -> Message:
    metadata, content = message.metadata, message.content_held
    fitted: str | _Parts = content
    if type(content) is tuple:
        parts = tuple(kept for part in content for kept in _part(part, profile, log))
        fitted = _join_texts(parts, log) if profile.text_only and message.role in {"user", "system"} else parts
        same = len(parts) == len(content) and all(new is old for new, old in zip(parts, content, strict=True))
        fitted = content if same and fitted == parts else fitted
    if metadata is not None and FAMILY in metadata:
        metadata = {**metadata, FAMILY: _keys(message, metadata[FAMILY], profile, log)}
        metadata = message.metadata if metadata == message.metadata else metadata
    if fitted is content and metadata is message.metadata:
        return message
    changed = Message(message.role, fitted, message.name, metadata)
    log.replaced(changed, message)
    return changed


def _keys(message: Message, notes: Mapping[str, Any], profile: ChatProfile, log: LossLog) -> dict[str, Any]:
    kept = {}
    for key, value in notes.items():
        if key == "~role" and not profile.developer:
            continue
        if profile.known_keys is not None and key != "prefix":
            if key.startswith(MODELLED):
                continue  # what the parts say, again
            if not key.startswith("~"):
                log.drop(message, key, key, _UNKNOWN)
                continue
        kept[key] = value
    return kept


_UNKNOWN = "this server refuses keys it does not know"
_OF_THE_PART = frozenset(
    {cache_control.NOTED, cache_control.OF_THE_MESSAGE, BREAKPOINT, MODELLED + foreign_signatures.EXTRA_CONTENT}
)
"""Notes: how a cache mark or a signature was written."""
_OF_A_CALL = "index"
"""A key of calls that every server knows, because streams have it."""


def _without_unknown_keys(node: N, log: LossLog) -> N:
    """Return a part or tool without the keys of other servers. Mark and signature stay: the encoder reports them."""
    notes = (getattr(node, "metadata", None) or {}).get(FAMILY)
    if not notes:
        return node
    kept: dict[str, Any] = {}
    for key, value in notes.items():
        if key.startswith("~") or key == _OF_A_CALL:
            kept |= {} if key in _OF_THE_PART else {key: value}
        else:
            log.drop(node, key, key, _UNKNOWN)
    if len(kept) == len(notes):
        return node
    return log.replace(node, metadata={**node.metadata, FAMILY: kept})  # type: ignore[attr-defined]


def _join_texts(parts: _Parts, log: LossLog) -> str | _Parts:
    """Join parts to one string if all are text: content is a string on this server."""
    if not parts or any(type(part) is not Text for part in parts):
        return parts
    texts = [part for part in parts if isinstance(part, Text)]
    for part in texts:
        if part.cache is not None and cache_control.OF_THE_MESSAGE not in (part.metadata or {}).get(FAMILY, {}):
            log.drop(part, "cache", "cache mark", "prompts are cached automatically by this server")
        if part.citations:
            log.drop(part, "citations", "citations", "this server accepts none in requests")
        if part.signature is not None:
            drop_signature(part, part.signature, log)
    return "".join(part.text for part in texts)


def _part(part: AnyPart, profile: ChatProfile, log: LossLog) -> _Parts:
    if profile.known_keys is not None:
        part = _without_unknown_keys(part, log)
    step = _STEPS.get(type(part))
    return (part,) if step is None else step(part, profile, log)


def _call(call: ToolCall, profile: ChatProfile, log: LossLog) -> _Parts:
    fitted = call
    if call.custom and not profile.custom_tools:
        fitted = structs.replace(call, custom=False, arguments_text=None)
    elif profile.parsed_arguments and (call.arguments_held is UNSET or not call.arguments_text):
        # 400 for a history whose arguments are not JSON; the wrapper is undone when the call comes back.
        fitted = structs.replace(call, arguments=arguments_as_object(call), arguments_text=None)
        if call.arguments_held is UNSET:
            log.degrade(call, "arguments", "arguments that are not a JSON object", "wrapped: this server parses them")
    if fitted is not call:
        log.replaced(fitted, call)
    return (fitted,)


def _reasoning(part: Reasoning, profile: ChatProfile, log: LossLog) -> _Parts:
    """Send reasoning back under this server's key if it requires it; drop reasoning in other servers' spelling."""
    notes = (part.metadata or {}).get(FAMILY, {})
    spelled = note(part.metadata, FAMILY, "~key")
    if "~thinking" in notes or (
        profile.known_keys is None
        and (not notes.keys().isdisjoint(("~detail", "~block", "~opaque")) or spelled == profile.reasoning_key)
    ):
        return (part,)
    if profile.returns_reasoning and part.text:
        if part.signature is not None:
            drop_signature(part, part.signature, log)
        returned = log.replace(
            part, signature=None, metadata={FAMILY: {"~key": Raw(encode_json(profile.reasoning_key))}}
        )
        return (returned,)
    if notes:
        log.drop(part, "", "reasoning", "this server does not take it back")
        return ()
    return (part,)


def _image(image: Image, profile: ChatProfile, log: LossLog) -> _Parts:
    if profile.text_only:
        return _media(image, profile, log)
    if not profile.fetches_images and image.url is not None and not image.url.startswith("data:"):
        log.drop(image, "url", "image by URL", "this server fetches no images")
        return ()
    return (image,)


def _media(part: AnyPart, profile: ChatProfile, log: LossLog) -> _Parts:
    if not profile.text_only:
        return (part,)
    if isinstance(part, Document) and part.text is not None:
        return (Text(document_text(part, log)),)
    log.drop(part, "", type(part).__name__.lower(), "this server takes text only")
    return ()


def _search_result(part: SearchResult, profile: ChatProfile, log: LossLog) -> _Parts:
    return (search_as_text(part, log),) if profile.text_only else (part,)


def _result(result: ToolResult, profile: ChatProfile, log: LossLog) -> _Parts:
    pieces: Any = tuple(kept for piece in result.parts for kept in _part(piece, profile, log))
    joined = _join_texts(pieces, log) if profile.text_only and result.kind == "multimodal" else pieces
    if joined is pieces and len(pieces) == len(result.parts):
        return (result,)
    if isinstance(joined, str):
        fitted = structs.replace(result, kind="text", value=joined, parts=())
    else:
        fitted = structs.replace(result, parts=pieces)
    log.replaced(fitted, result)
    return (fitted,)


_STEPS: dict[type, Callable[[Any, ChatProfile, LossLog], _Parts]] = {
    ToolCall: _call,
    Reasoning: _reasoning,
    Image: _image,
    Audio: _media,
    Document: _media,
    ToolResult: _result,
    SearchResult: _search_result,
}
