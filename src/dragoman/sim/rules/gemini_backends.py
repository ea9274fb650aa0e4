"""Differences between the developer API and Vertex AI, as data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

BackendName: TypeAlias = Literal["gemini", "vertex"]

_SCHEMA_KEYWORDS = frozenset(
    {
        "type",
        "format",
        "title",
        "description",
        "nullable",
        "default",
        "example",
        "enum",
        "items",
        "minItems",
        "maxItems",
        "properties",
        "required",
        "minProperties",
        "maxProperties",
        "minimum",
        "maximum",
        "minLength",
        "maxLength",
        "pattern",
        "anyOf",
        "propertyOrdering",
    }
)


@dataclass(frozen=True, slots=True)
class Backend:
    name: BackendName
    # Fields of the other backend, by message: unknown here.
    foreign_fields: Mapping[str, frozenset[str]]
    schema_keywords: frozenset[str]
    # URIs that the service does not fetch.
    foreign_files: re.Pattern[str]
    # 64 in the proto of the developer API and in live error texts, 128 in the documentation of Vertex.
    longest_function_name: int
    role_required: bool
    # Since Gemini 3, functionResponse parts share their Content with nothing else.
    # (2.5 took media and text beside them: recordings deded1676b7f, c900c606eafc, 341f7f79a27d.)
    results_stand_alone: bool
    # Before Gemini 3, the responses to one step may be spread over adjacent contents (bbe7012cc6ea, 4fcd3d93d8ec).
    old_models_gather_results: bool
    # A model content may have no parts, as answers cut off by MAX_TOKENS come (d6411279b59e, a953631ed8b5).
    silent_model_passes: bool
    any_of_stands_alone: bool
    empty_tool_refused: bool
    # Mixing built-in tools with functions asks for `includeServerSideToolInvocations`.
    mixing_needs_flag: bool
    # API versions that have no `id` on calls and responses.
    versions_without_ids: frozenset[str] = frozenset()


_VERTEX_ONLY = {
    "Request": frozenset({"modelArmorConfig", "outputConfig"}),
    "FunctionCall": frozenset({"partialArgs", "willContinue"}),
    "FunctionCallingConfig": frozenset({"streamFunctionCallArguments"}),
    "SafetySetting": frozenset({"method"}),
    "Tool": frozenset({"retrieval", "enterpriseWebSearch", "parallelAiSearch", "exaAiSearch"}),
    "GoogleSearch": frozenset({"excludeDomains", "blockingConfidence"}),
    "GoogleMaps": frozenset({"groundingTypes"}),
    "GenerationConfig": frozenset({"audioTimestamp", "routingConfig", "modelConfig", "responseFormat"}),
    "ImageConfig": frozenset({"personGeneration", "prominentPeople", "imageOutputOptions"}),
}
_DEVELOPER_ONLY = {
    "Request": frozenset({"serviceTier", "store"}),
    "Part": frozenset({"toolCall", "toolResponse", "partMetadata"}),
    "FunctionResponse": frozenset({"willContinue"}),
    "FunctionResponsePart": frozenset({"mediaProcessing"}),
    "ToolConfig": frozenset({"includeServerSideToolInvocations"}),
    "Tool": frozenset({"fileSearch", "mcpServers"}),
    "GoogleSearch": frozenset({"timeRangeFilter"}),
    "GenerationConfig": frozenset({"enableEnhancedCivicAnswers"}),
}

GEMINI = Backend(
    name="gemini",
    foreign_fields=_VERTEX_ONLY,
    # `additionalProperties: false` is what the vendor's SDK sends through.
    schema_keywords=_SCHEMA_KEYWORDS | {"additionalProperties"},
    foreign_files=re.compile(r"gs://"),
    longest_function_name=64,
    role_required=False,
    results_stand_alone=False,
    old_models_gather_results=True,
    silent_model_passes=True,
    any_of_stands_alone=False,
    empty_tool_refused=False,
    mixing_needs_flag=True,
)
VERTEX = Backend(
    name="vertex",
    foreign_fields=_DEVELOPER_ONLY,
    schema_keywords=_SCHEMA_KEYWORDS | {"additionalProperties", "ref", "defs"},
    foreign_files=re.compile(r"https://generativelanguage\.googleapis\.com/"),
    longest_function_name=128,
    role_required=True,
    results_stand_alone=True,
    old_models_gather_results=False,
    silent_model_passes=False,
    any_of_stands_alone=True,
    empty_tool_refused=True,
    mixing_needs_flag=False,
    versions_without_ids=frozenset({"v1"}),
)
BACKENDS: Mapping[BackendName, Backend] = {"gemini": GEMINI, "vertex": VERTEX}
