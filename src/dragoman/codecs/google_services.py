"""Keys that only one of Google's two services has: the developer API or Vertex AI.

Both have the same format and sign as one family, so a request for one goes to the other as it came. But each refuses a
whole request because of one key that it does not have («Unknown name "store" at 'request': Cannot find field»). Such
keys are left out here, whatever service the request was written for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from msgspec import Raw, structs

from dragoman.codecs.google_signatures import GOOGLE
from dragoman.ir import Message, Opaque, ProviderTool, Request, ToolCall, ToolResult
from dragoman.ir.notes import MODELLED, RENAMED, WITHIN, Extra, family_notes, inner_extra
from dragoman.ir.traits import PRIVATE_CONTENT, VENDOR_TOOL, traits_of
from dragoman.ir.values import encode_json, parse_json
from dragoman.losses import LossLog, field_of_key

UnknownKeys: TypeAlias = Mapping[str, frozenset[str]]
"""Name of an object in Google's API reference -> its keys that a service does not have."""

UNKNOWN_TO_VERTEX: UnknownKeys = {
    "Request": frozenset({"store", "serviceTier"}),
    "GenerationConfig": frozenset({"enableEnhancedCivicAnswers"}),
    "ToolConfig": frozenset({"includeServerSideToolInvocations"}),
    "Tool": frozenset({"fileSearch", "mcpServers"}),
    "GoogleSearch": frozenset({"timeRangeFilter"}),
    "Part": frozenset({"toolCall", "toolResponse", "partMetadata"}),
    "FunctionResponse": frozenset({"willContinue"}),
    "FunctionResponsePart": frozenset({"mediaProcessing"}),
}
UNKNOWN_TO_DEVELOPER_API: UnknownKeys = {
    "Request": frozenset({"modelArmorConfig", "outputConfig"}),
    "GenerationConfig": frozenset(
        {"audioTimestamp", "routingConfig", "modelConfig", "modelSelectionConfig", "responseFormat"}
    ),
    "ImageConfig": frozenset({"personGeneration", "prominentPeople", "imageOutputOptions"}),
    "SafetySetting": frozenset({"method"}),
    "FunctionCallingConfig": frozenset({"streamFunctionCallArguments"}),
    "Tool": frozenset({"retrieval", "enterpriseWebSearch", "parallelAiSearch", "exaAiSearch"}),
    "GoogleSearch": frozenset({"blockingConfidence"}),
    "GoogleMaps": frozenset({"groundingTypes"}),
    "FunctionCall": frozenset({"partialArgs", "willContinue"}),
}

_WHY = "this service does not have it"


def without_unknown_keys(request: Request, unknown: UnknownKeys, log: LossLog) -> Request:
    """Return the request without the keys that the service would refuse, each reported."""
    if not _may_have_google_keys(request):
        return request
    keys = _Keys(unknown, log)
    changes: dict[str, Any] = {}
    notes = family_notes(GOOGLE, request.metadata)
    if notes and (kept := keys.kept_settings(request, notes)) is not notes:
        changes["metadata"] = {**(request.metadata or {}), GOOGLE: kept}
    choice = request.tool_choice
    if choice is not None and (config := family_notes(GOOGLE, choice.metadata)):
        kept = keys.kept(request, "tool_choice.", config, "FunctionCallingConfig")
        if kept is not config:
            changes["tool_choice"] = structs.replace(choice, metadata={**(choice.metadata or {}), GOOGLE: kept})
    if request.tools and _may_have(VENDOR_TOOL, request):
        tools = tuple([keys.kept_tool(tool) if type(tool) is ProviderTool else tool for tool in request.tools])
        if any(new is not old for new, old in zip(tools, request.tools, strict=True)):
            changes["tools"] = tools
    if request.origin == GOOGLE and _may_have(PRIVATE_CONTENT, request):
        messages = tuple([keys.kept_message(message) for message in request.messages])
        if any(new is not old for new, old in zip(messages, request.messages, strict=True)):
            changes["messages"] = messages
    return log.replace(request, **changes)


def _may_have_google_keys(request: Request) -> bool:
    metadata, choice = request.metadata, request.tool_choice
    return (
        request.origin == GOOGLE
        or (metadata is not None and GOOGLE in metadata)
        or (choice is not None and choice.metadata is not None)
        or (bool(request.tools) and _may_have(VENDOR_TOOL, request))
    )


def _may_have(trait: int, request: Request) -> bool:
    traits = traits_of(request)
    return traits is None or bool(traits[0] & trait)


def is_any_unknown(unknown: UnknownKeys, kind: str, keys: Iterable[str]) -> bool:
    """Whether one of these keys of such an object, in either spelling, is unknown."""
    names = unknown.get(kind)
    return names is not None and any(_camel_case(key) in names for key in keys)


def _camel_case(key: str) -> str:
    if "_" not in key:
        return key
    head, *rest = key.split("_")
    return head + "".join(word[:1].upper() + word[1:] for word in rest)


class _Keys:
    """Removes keys from metadata. Every method returns the same object if there is nothing to remove."""

    _unknown: UnknownKeys
    _log: LossLog

    def __init__(self, unknown: UnknownKeys, log: LossLog) -> None:
        self._unknown = unknown
        self._log = log

    def kept(self, node: Any, within: str, notes: Extra, kind: str) -> Extra:
        """Return the notes on an object of this kind; `within` is its path below the node."""
        names = self._unknown.get(kind)
        found = [] if names is None else [key for key in notes if _camel_case(key.removeprefix(MODELLED)) in names]
        if not found:
            return notes
        for key in found:
            if bytes(notes[key]) != b"null" and not key.startswith(MODELLED):
                self._log.drop(node, field_of_key(within, key), key, _WHY)
        gone = {*found, *(RENAMED + _camel_case(key) for key in found)}
        return {key: value for key, value in notes.items() if key not in gone}

    def _kept_within(self, node: Any, notes: Extra, name: str, kind: str) -> Extra:
        """Return the notes with those on an inner object without what is unknown there."""
        inner = inner_extra(notes, name)
        if inner is None:
            return notes
        kept = self.kept(node, f"{name}.", inner, kind)
        if name == "generationConfig":
            kept = self._kept_member(node, f"{name}.", kept, "imageConfig", "ImageConfig")
        if kept is inner:
            return notes
        others = {key: value for key, value in notes.items() if key != WITHIN + name}
        return {**others, WITHIN + name: Raw(encode_json(kept))} if kept else others

    def _kept_member(self, node: Any, within: str, notes: Extra, name: str, kind: str) -> Extra:
        """Return the notes with the object under the key `name` without what is unknown there."""
        key = next((key for key in notes if _camel_case(key) == name), None)
        value = parse_json(notes[key]) if key is not None and kind in self._unknown else None
        if key is None or not isinstance(value, dict):
            return notes
        kept = self._kept_entries(node, f"{within}{key}.", value, kind)
        return notes if kept is value else {**notes, key: Raw(encode_json(kept))}

    def _kept_entries(self, node: Any, within: str, entries: dict[str, Any], kind: str) -> dict[str, Any]:
        names = self._unknown.get(kind, frozenset())
        found = [key for key in entries if _camel_case(key) in names]
        for key in found:
            if entries[key] is not None:
                self._log.drop(node, within + key, key, _WHY)
        return {key: value for key, value in entries.items() if key not in found} if found else entries

    def kept_settings(self, request: Request, notes: Extra) -> Extra:
        """Return the notes on the request; the codec itself handles the keys that are settings."""
        kept = self.kept(request, "", notes, "Request")
        kept = self._kept_within(request, kept, "generationConfig", "GenerationConfig")
        kept = self._kept_within(request, kept, "toolConfig", "ToolConfig")
        return self._kept_safety(request, kept)

    def _kept_safety(self, request: Request, notes: Extra) -> Extra:
        names = self._unknown.get("SafetySetting")
        key = next((key for key in notes if _camel_case(key) == "safetySettings"), None)
        value = parse_json(notes[key]) if key is not None and names is not None else None
        if key is None or not isinstance(value, list):
            return notes
        entries = [
            self._kept_entries(request, f"{key}[{place}].", entry, "SafetySetting")
            if isinstance(entry, dict)
            else entry
            for place, entry in enumerate(value)
        ]
        is_same = all(new is old for new, old in zip(entries, value, strict=True))
        return notes if is_same else {**notes, key: Raw(encode_json(entries))}

    def kept_tool(self, tool: ProviderTool) -> ProviderTool:
        """Return the tool without options that are unknown; the codec leaves out a tool that is unknown as a whole."""
        kind = _camel_case(tool.name)[:1].upper() + _camel_case(tool.name)[1:]
        if tool.origin != GOOGLE or kind not in self._unknown or not tool.definition:
            return tool
        key, options = next(iter(tool.definition.items()))
        kept = self._kept_entries(tool, f"{key}.", options, kind) if isinstance(options, dict) else options
        if kept is options:
            return tool
        return self._log.replace(tool, definition={key: kept})

    def kept_message(self, message: Message) -> Message:
        content = message.content_held
        if type(content) is str:
            return message
        parts = [self._kept_part(part) for part in content]
        if all(new is old for new, old in zip(parts, content, strict=True)):
            return message
        return self._log.replace(message, parts=tuple([part for part in parts if part is not None]))

    def _kept_part(self, part: Any, kind: str = "Part") -> Any:
        """Return the part; None for one of which nothing can be sent."""
        if type(part) is Opaque:
            return self._kept_opaque(part, kind)
        changes: dict[str, Any] = {}
        notes = family_notes(GOOGLE, part.metadata)
        if notes:
            kept = self.kept(part, "", notes, kind)
            if type(part) is ToolCall:
                kept = self._kept_within(part, kept, "functionCall", "FunctionCall")
            elif type(part) is ToolResult:
                kept = self._kept_within(part, kept, "functionResponse", "FunctionResponse")
            if kept is not notes:
                changes["metadata"] = {**part.metadata, GOOGLE: kept}
        if type(part) is ToolResult and part.parts:
            pieces = [self._kept_part(piece, "FunctionResponsePart") for piece in part.parts]
            if any(new is not old for new, old in zip(pieces, part.parts, strict=True)):
                changes["parts"] = tuple([piece for piece in pieces if piece is not None])
        return self._log.replace(part, **changes)

    def _kept_opaque(self, part: Opaque, kind: str) -> Opaque | None:
        if part.origin != GOOGLE or not is_any_unknown(self._unknown, kind, part.block or ()):
            return part
        self._log.drop(part, "", part.kind, _WHY)
        return None
