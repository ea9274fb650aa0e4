"""The messages of `generateContent` (proto3 JSON), and the service's error messages for violations."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from dragoman.sim.rules.common import (
    ANSWER,
    ANYTHING,
    BOOLEAN,
    COUNT,
    INTEGER,
    NUMBER,
    OBJECT,
    TEXT,
    TEXTS,
    Array,
    ByType,
    Choice,
    Dialect,
    Fault,
    Map,
    Number,
    Path,
    Shape,
    Struct,
    Text,
    bracket_path,
    choice,
    struct,
)
from dragoman.sim.rules.gemini_backends import Backend

INVALID_ARGUMENT = "INVALID_ARGUMENT"


def camel(name: str) -> str:
    return re.sub(r"_([a-z0-9])", lambda match: match[1].upper(), name)


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


def google_path(path: Path) -> str:
    """`contents[1].parts[0].function_call`: the service names its proto fields, not the JSON keys."""
    steps = tuple(snake(step) if isinstance(step, str) else step for step in path)
    return bracket_path(steps) or "request"


DIALECT = Dialect(
    spell=google_path,
    known_as=camel,
    enum_known_as=str.upper,
    null_is_absent=True,
    lone_item_is_array=True,
    enum_may_be_number=True,
    type_names={
        "string": "TYPE_STRING",
        "integer": "TYPE_INT32",
        "number": "TYPE_DOUBLE",
        "boolean": "TYPE_BOOL",
        "array": "TYPE_LIST",
        "object": "TYPE_MESSAGE",
    },
    wording={
        fault: (template, INVALID_ARGUMENT)
        for fault, template in {
            Fault.UNKNOWN_KEY: (
                "Invalid JSON payload received. Unknown name \"{name}\" at '{parent}': Cannot find field."
            ),
            Fault.MISSING: "* GenerateContentRequest.{where}: {name} is not specified",
            Fault.NULL: "Invalid value at '{where}' ({expected}), null",
            Fault.WRONG_TYPE: "Invalid value at '{where}' ({expected}), {got}",
            Fault.NOT_ONE_OF: "Invalid value at '{where}' (TYPE_ENUM), \"{got}\"",
            Fault.UNKNOWN_TAG: "Invalid value at '{where}' (TYPE_ENUM), \"{got}\"",
            Fault.TOO_SMALL: "* GenerateContentRequest.{where}: {name} must be at least {limit}, but got {got}.",
            Fault.TOO_LARGE: "* GenerateContentRequest.{where}: {name} must be at most {limit}, but got {got}.",
            Fault.TOO_SHORT: "* GenerateContentRequest.{where}: {name} must not be empty.",
            Fault.TOO_LONG: "* GenerateContentRequest.{where}: {name} must have at most {limit} characters.",
            Fault.TOO_FEW: "* GenerateContentRequest.{where}: {name} is not specified",
            Fault.TOO_MANY: "* GenerateContentRequest.{where}: at most {limit} entries are allowed, but got {got}.",
            Fault.PATTERN: "Invalid value at '{where}', \"{got}\" does not match {expected}",
        }.items()
    },
)


def enum(prefix: str, *values: str) -> Choice:
    return Choice((f"{prefix}_UNSPECIFIED", *values))


# Standard or URL-safe alphabet, padded or not.
BYTES = Text(pattern=r"^[A-Za-z0-9+/_-]*={0,2}$")
POSITIVE = Number(at_least=1, whole=True)
INT64 = Number(whole=True, may_be_text=True)
DURATION = Text(pattern=r"^-?\d+(\.\d+)?s$")

PART_DATA = (
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
)

_BLOB: dict[str, Shape] = {"mimeType": TEXT, "data": BYTES, "displayName": TEXT}
_FILE: dict[str, Shape] = {"fileUri": TEXT, "mimeType": TEXT, "displayName": TEXT}
_LANGUAGE = enum("LANGUAGE", "PYTHON")
_OUTCOME = enum("OUTCOME", "OUTCOME_OK", "OUTCOME_FAILED", "OUTCOME_DEADLINE_EXCEEDED")
_TOOL_TYPE = enum(
    "TOOL_TYPE",
    "GOOGLE_SEARCH_WEB",
    "GOOGLE_SEARCH_IMAGE",
    "URL_CONTEXT",
    "GOOGLE_MAPS",
    "FILE_SEARCH",
    "MEDIA_PROCESSING",
)
_MEDIA_RESOLUTION = enum("MEDIA_RESOLUTION", "MEDIA_RESOLUTION_LOW", "MEDIA_RESOLUTION_MEDIUM", "MEDIA_RESOLUTION_HIGH")
_MEDIA_PROCESSING = enum("MEDIA_PROCESSING", "STATIC", "AGENTIC")
_CATEGORIES = tuple(
    f"HARM_CATEGORY_{name}"
    for name in (
        "HARASSMENT",
        "HATE_SPEECH",
        "SEXUALLY_EXPLICIT",
        "DANGEROUS_CONTENT",
        "CIVIC_INTEGRITY",
        "JAILBREAK",
        "IMAGE_HATE",
        "IMAGE_DANGEROUS_CONTENT",
        "IMAGE_HARASSMENT",
        "IMAGE_SEXUALLY_EXPLICIT",
    )
)
_THRESHOLDS = ("BLOCK_LOW_AND_ABOVE", "BLOCK_MEDIUM_AND_ABOVE", "BLOCK_ONLY_HIGH", "BLOCK_NONE", "OFF")
_PENALTY = Number(at_least=-2, at_most=2)


@dataclass(frozen=True, slots=True)
class Messages:
    """Builds the messages of one backend: all fields but those that only the other one has."""

    backend: Backend

    @property
    def function_name(self) -> Text:
        return Text(pattern=r"^[A-Za-z_][A-Za-z0-9_.:-]*$", at_least=1, at_most=self.backend.longest_function_name)

    def message(self, name: str, fields: Mapping[str, Shape], *required: str) -> Struct:
        foreign = self.backend.foreign_fields.get(name, frozenset())
        own = {field: shape for field, shape in fields.items() if field not in foreign}
        return Struct(own, frozenset(required))

    def content(self) -> Struct:
        return self.message("Content", {"role": TEXT, "parts": Array(self.part())})

    def part(self) -> Struct:
        blob = self.message("Blob", _BLOB, "mimeType", "data")
        file = self.message("FileData", _FILE, "fileUri")
        return self.message(
            "Part",
            {
                "text": TEXT,
                "inlineData": blob,
                "fileData": file,
                "functionCall": self.function_call(),
                "functionResponse": self.function_response(blob, file),
                "executableCode": self.message(
                    "ExecutableCode", {"language": _LANGUAGE, "code": TEXT, "id": TEXT}, "language", "code"
                ),
                "codeExecutionResult": self.message(
                    "CodeExecutionResult", {"outcome": _OUTCOME, "output": TEXT, "id": TEXT}, "outcome"
                ),
                "toolCall": self.message("ToolCall", {"id": TEXT, "toolType": _TOOL_TYPE, "args": OBJECT}, "toolType"),
                "toolResponse": self.message(
                    "ToolResponse", {"id": TEXT, "toolType": _TOOL_TYPE, "response": OBJECT}, "toolType"
                ),
                "thought": BOOLEAN,
                "thoughtSignature": BYTES,
                "videoMetadata": struct(
                    optional={
                        "startOffset": DURATION,
                        "endOffset": DURATION,
                        "fps": Number(at_least=0, at_most=24),
                    }
                ),
                "mediaResolution": struct(
                    optional={
                        "level": Choice((*_MEDIA_RESOLUTION.values, "MEDIA_RESOLUTION_ULTRA_HIGH")),
                        "numTokens": INTEGER,
                    }
                ),
                "mediaProcessing": _MEDIA_PROCESSING,
                "partMetadata": OBJECT,
                "speechMetadata": struct(optional={"speaker": TEXT, "style": TEXT}),
                "audioTranscription": ANYTHING,
            },
        )

    def function_call(self) -> Struct:
        fields: dict[str, Shape] = {
            "id": TEXT,
            "name": self.function_name,
            "args": OBJECT,
            "partialArgs": Array(OBJECT),
            "willContinue": BOOLEAN,
        }
        return self.message("FunctionCall", fields, "name")

    def function_response(self, blob: Struct, file: Struct) -> Struct:
        part = self.message(
            "FunctionResponsePart", {"inlineData": blob, "fileData": file, "mediaProcessing": _MEDIA_PROCESSING}
        )
        return self.message(
            "FunctionResponse",
            {
                "id": TEXT,
                "name": self.function_name,
                # Documented as required, and always to be sent; an absent one was let through (e4b2628377ed).
                "response": OBJECT,
                "parts": Array(part),
                "willContinue": BOOLEAN,
                "scheduling": enum("SCHEDULING", "SILENT", "WHEN_IDLE", "INTERRUPT"),
            },
            "name",
        )

    def tool(self) -> Struct:
        declaration = self.message(
            "FunctionDeclaration",
            {
                "name": self.function_name,
                "description": TEXT,
                # Typed schemas have their own rules: they nest deeper than a shape should.
                "parameters": OBJECT,
                "parametersJsonSchema": ANYTHING,
                "response": OBJECT,
                "responseJsonSchema": ANYTHING,
                "behavior": enum("UNSPECIFIED", "BLOCKING", "NON_BLOCKING"),
            },
            "name",
        )
        return self.message(
            "Tool",
            {
                "functionDeclarations": Array(declaration, at_most=512),
                "googleSearch": self.google_search(),
                "googleSearchRetrieval": struct(
                    optional={"dynamicRetrievalConfig": struct(optional={"mode": TEXT, "dynamicThreshold": NUMBER})}
                ),
                "codeExecution": struct(),
                "urlContext": struct(),
                "googleMaps": self.message(
                    "GoogleMaps", {"enableWidget": BOOLEAN, "authConfig": OBJECT, "groundingTypes": OBJECT}
                ),
                "computerUse": struct(
                    optional={
                        "environment": enum(
                            "ENVIRONMENT", "ENVIRONMENT_BROWSER", "ENVIRONMENT_MOBILE", "ENVIRONMENT_DESKTOP"
                        ),
                        "excludedPredefinedFunctions": TEXTS,
                        "enablePromptInjectionDetection": BOOLEAN,
                        "disabledSafetyPolicies": Array(ANYTHING),
                    }
                ),
                "fileSearch": struct(
                    required={"fileSearchStoreNames": TEXTS}, optional={"topK": INTEGER, "metadataFilter": TEXT}
                ),
                "mcpServers": Array(struct(optional={"name": TEXT, "streamableHttpTransport": _TRANSPORT})),
                "retrieval": OBJECT,
                "enterpriseWebSearch": OBJECT,
                "parallelAiSearch": OBJECT,
                "exaAiSearch": OBJECT,
            },
        )

    def google_search(self) -> Struct:
        return self.message(
            "GoogleSearch",
            {
                "searchTypes": struct(optional={"webSearch": OBJECT, "imageSearch": OBJECT}),
                "timeRangeFilter": struct(optional={"startTime": TEXT, "endTime": TEXT}),
                "excludeDomains": TEXTS,
                "blockingConfidence": ANYTHING,
            },
        )

    def tool_config(self) -> Struct:
        calling = self.message(
            "FunctionCallingConfig",
            {
                "mode": enum("MODE", "AUTO", "ANY", "NONE", "VALIDATED"),
                "allowedFunctionNames": TEXTS,
                "streamFunctionCallArguments": BOOLEAN,
            },
        )
        return self.message(
            "ToolConfig",
            {
                "functionCallingConfig": calling,
                "retrievalConfig": struct(
                    optional={
                        "latLng": struct(optional={"latitude": NUMBER, "longitude": NUMBER}),
                        "languageCode": TEXT,
                    }
                ),
                "includeServerSideToolInvocations": BOOLEAN,
            },
        )

    def safety_setting(self) -> Struct:
        return self.message(
            "SafetySetting",
            {
                "category": enum("HARM_CATEGORY", *_CATEGORIES),
                "threshold": enum("HARM_BLOCK_THRESHOLD", *_THRESHOLDS),
                "method": enum("HARM_BLOCK_METHOD", "SEVERITY", "PROBABILITY"),
            },
            "category",
            "threshold",
        )

    def generation_config(self) -> Struct:
        image = {"aspectRatio": TEXT, "imageSize": TEXT, "personGeneration": TEXT, "prominentPeople": TEXT}
        return self.message(
            "GenerationConfig",
            {
                "temperature": Number(at_least=0, at_most=2),
                "topP": NUMBER,
                "topK": NUMBER,
                "candidateCount": POSITIVE,
                "maxOutputTokens": POSITIVE,
                "stopSequences": Array(TEXT, at_most=5),
                "seed": INTEGER,
                "presencePenalty": _PENALTY,
                "frequencyPenalty": _PENALTY,
                "responseLogprobs": BOOLEAN,
                "logprobs": Number(at_least=0, at_most=20, whole=True),
                "responseMimeType": choice_of_text("text/plain", "application/json", "text/x.enum"),
                "responseSchema": OBJECT,
                "responseJsonSchema": ANYTHING,
                "responseFormat": Array(OBJECT),
                "responseModalities": Array(enum("MODALITY", "TEXT", "IMAGE", "AUDIO", "VIDEO")),
                "thinkingConfig": _THINKING,
                "mediaResolution": _MEDIA_RESOLUTION,
                "speechConfig": _SPEECH,
                "imageConfig": self.message("ImageConfig", {**image, "imageOutputOptions": OBJECT}),
                "audioTimestamp": BOOLEAN,
                "routingConfig": OBJECT,
                "modelConfig": OBJECT,
                "enableEnhancedCivicAnswers": BOOLEAN,
                "audioTranscriptionConfig": OBJECT,
                "translationConfig": OBJECT,
            },
        )

    def request(self) -> Struct:
        content = self.content()
        return self.message(
            "Request",
            {
                "model": TEXT,
                "contents": Array(content, at_least=1),
                "systemInstruction": content,
                "tools": Array(self.tool()),
                "toolConfig": self.tool_config(),
                "safetySettings": Array(self.safety_setting()),
                "generationConfig": self.generation_config(),
                "cachedContent": TEXT,
                "labels": Map(Text(pattern=r"^[a-z0-9_-]{0,63}$")),
                "serviceTier": enum("SERVICE_TIER", "FLEX", "STANDARD", "PRIORITY"),
                "store": BOOLEAN,
                "continuationToken": BYTES,
                "modelArmorConfig": struct(optional={"promptTemplateName": TEXT, "responseTemplateName": TEXT}),
                "outputConfig": struct(optional={"outputUriPrefix": TEXT}),
            },
            "contents",
        )


def choice_of_text(*values: str) -> Text:
    """A string that the service compares itself: no enum, so no liberties with its case."""
    return Text(pattern="^(" + "|".join(re.escape(value) for value in values) + ")$")


_TRANSPORT = struct(
    optional={
        "url": TEXT,
        "headers": Map(TEXT),
        "timeout": DURATION,
        "sseReadTimeout": DURATION,
        "terminateOnClose": BOOLEAN,
    }
)
_THINKING = struct(
    optional={
        "includeThoughts": BOOLEAN,
        "thinkingBudget": Number(at_least=-1, whole=True),
        "thinkingLevel": enum("THINKING_LEVEL", "MINIMAL", "LOW", "MEDIUM", "HIGH", "XHIGH"),
    }
)
_VOICE = struct(optional={"prebuiltVoiceConfig": struct(optional={"voiceName": TEXT})})
_SPEECH = struct(
    optional={
        "voiceConfig": _VOICE,
        "languageCode": TEXT,
        "multiSpeakerVoiceConfig": struct(
            optional={
                "speakerVoiceConfigs": Array(struct(optional={"speaker": TEXT, "voiceConfig": _VOICE})),
            }
        ),
    }
)

# --- the response -------------------------------------------------------------------------------------------------

# Missing keys mean zero, false or empty; a client that asks for it gets enums as numbers.
ANSWER_DIALECT: Dialect = replace(ANSWER, null_is_absent=True, enum_may_be_number=True)

FINISH_REASONS = enum(
    "FINISH_REASON",
    "STOP",
    "MAX_TOKENS",
    "SAFETY",
    "RECITATION",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
    "MODEL_ARMOR",
    "LANGUAGE",
    "OTHER",
    "IMAGE_OTHER",
    "NO_IMAGE",
    "MALFORMED_RESPONSE",
    "MALFORMED_FUNCTION_CALL",
    "UNEXPECTED_TOOL_CALL",
    "TOO_MANY_TOOL_CALLS",
    "MISSING_THOUGHT_SIGNATURE",
    "ESCALATION",
    "PUP_LIMITED_DISABLED",
    "CONTINUATION",
)
BLOCK_REASONS = enum(
    "BLOCK_REASON",
    "SAFETY",
    "OTHER",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "IMAGE_SAFETY",
    "MODEL_ARMOR",
    "JAILBREAK",
)
_ANSWER_PART = struct(
    optional={
        "text": TEXT,
        "inlineData": struct(required={"mimeType": TEXT, "data": BYTES}),
        "fileData": struct(required={"fileUri": TEXT}),
        "functionCall": struct(optional={"id": TEXT, "name": TEXT, "args": OBJECT, "partialArgs": Array(OBJECT)}),
        "executableCode": struct(optional={"language": _LANGUAGE, "code": TEXT, "id": TEXT}),
        "codeExecutionResult": struct(optional={"outcome": _OUTCOME, "output": TEXT, "id": TEXT}),
        "toolCall": struct(optional={"id": TEXT, "toolType": TEXT, "args": OBJECT}),
        "toolResponse": struct(optional={"id": TEXT, "toolType": TEXT, "response": OBJECT}),
        "thought": BOOLEAN,
        "thoughtSignature": BYTES,
    }
)
_DETAILS = Array(struct(optional={"modality": ByType({"string": TEXT, "integer": INTEGER}), "tokenCount": COUNT}))
USAGE_COUNTS = (
    "promptTokenCount",
    "candidatesTokenCount",
    "thoughtsTokenCount",
    "toolUsePromptTokenCount",
    "cachedContentTokenCount",
    "totalTokenCount",
)
USAGE_DETAILS = (
    "promptTokensDetails",
    "cacheTokensDetails",
    "candidatesTokensDetails",
    "toolUsePromptTokensDetails",
)
RESPONSE = struct(
    optional={
        "candidates": Array(
            struct(
                optional={
                    "content": struct(optional={"role": choice("model"), "parts": Array(_ANSWER_PART)}),
                    "finishReason": FINISH_REASONS,
                    "finishMessage": TEXT,
                    "index": COUNT,
                    "safetyRatings": Array(OBJECT),
                    "citationMetadata": OBJECT,
                    "groundingMetadata": OBJECT,
                    "urlContextMetadata": OBJECT,
                    "avgLogprobs": ANYTHING,
                    "logprobsResult": OBJECT,
                    "tokenCount": COUNT,
                    "continuationToken": BYTES,
                }
            )
        ),
        "promptFeedback": struct(optional={"blockReason": BLOCK_REASONS, "blockReasonMessage": TEXT}),
        "usageMetadata": struct(
            optional={**dict.fromkeys(USAGE_COUNTS, COUNT), **dict.fromkeys(USAGE_DETAILS, _DETAILS)}
        ),
        "modelVersion": TEXT,
        "responseId": TEXT,
        "createTime": TEXT,
    }
)
