"""The typed objects of Bedrock Converse, and the service's error messages for violations.

Messages come from three sources: the service's validation of constraints, its JSON reader, and, for what botocore
never sends (unknown keys, unions with more than one member), botocore. `code` is the exception's name.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass

from dragoman.sim.rules.common import (
    ANYTHING,
    BOOLEAN,
    COUNT,
    NUMBER,
    OBJECT,
    TEXT,
    Array,
    Dialect,
    Fault,
    Map,
    Number,
    Path,
    Reader,
    Shape,
    Struct,
    Violation,
    bad_answer,
    bracket_path,
    choice,
    json_path,
    json_type,
    quote,
    struct,
)

VALIDATION = "ValidationException"
SERIALIZATION = "SerializationException"


def member_path(path: Path) -> str:
    """`messages.1.member.content`: the service counts from one and calls an element `member`."""
    steps = (f"{step + 1}.member" if isinstance(step, int) else step for step in path)
    return ".".join(steps)


# Messages of the service's JSON reader for a value of the wrong type.
_STARTS = {
    "array": "Start of list found where not expected",
    "object": "Start of structure or map found where not expected.",
}
_WANTED_STARTS = {"array": "Expected list or null", "object": "Expected structure or null"}
_TOKENS = {"boolean": "TRUE_VALUE", "integer": "NUMBER_VALUE", "number": "NUMBER_VALUE", "string": "STRING_VALUE"}
_TARGETS = {"string": "a String", "integer": "an Integer", "number": "a Float", "boolean": "a Boolean"}


def wrong_type_message(got: object, expected: str) -> str:
    found = json_type(got)
    if found in _STARTS:
        return _STARTS[found]
    if expected in _WANTED_STARTS:
        return _WANTED_STARTS[expected]
    token = "FALSE_VALUE" if got is False else _TOKENS.get(found, "VALUE")
    return f"{token} can not be converted to {_TARGETS.get(expected, expected)}"


@dataclass(frozen=True, slots=True)
class AwsDialect(Dialect):
    def violation(
        self, fault: Fault, path: Path, *, got: object = "", expected: str = "", limit: object = ""
    ) -> Violation:
        if fault in (Fault.WRONG_TYPE, Fault.NULL):
            return Violation(json_path(path), wrong_type_message(got, expected), SERIALIZATION, self.status)
        if fault is Fault.NOT_ONE_OF:
            expected = expected.replace("'", "")
        if fault is Fault.UNKNOWN_KEY:
            place = bracket_path(path[:-1]) or "input"
            return Violation(json_path(path), f'Unknown parameter in {place}: "{path[-1]}"', VALIDATION, self.status)
        return Dialect.violation(self, fault, path, got=got, expected=expected, limit=limit)


def _constraint(value: str, reason: str) -> tuple[str, str]:
    template = f"1 validation error detected: {value} at '{{where}}' failed to satisfy constraint: Member must {reason}"
    return template, VALIDATION


DIALECT = AwsDialect(
    spell=member_path,
    type_names={},
    null_is_absent=True,
    wording={
        Fault.MISSING: _constraint("Value null", "not be null"),
        Fault.NOT_ONE_OF: _constraint("Value '{got}'", "satisfy enum value set: [{expected}]"),
        Fault.TOO_SMALL: _constraint("Value '{got}'", "have value greater than or equal to {limit}"),
        Fault.TOO_LARGE: _constraint("Value '{got}'", "have value less than or equal to {limit}"),
        Fault.TOO_SHORT: _constraint("Value '{got}'", "have length greater than or equal to {limit}"),
        Fault.TOO_LONG: _constraint("Value '{got}'", "have length less than or equal to {limit}"),
        Fault.TOO_FEW: _constraint("Value", "have length greater than or equal to {limit}"),
        Fault.TOO_MANY: _constraint("Value", "have length less than or equal to {limit}"),
        Fault.PATTERN: _constraint("Value '{got}'", "satisfy regular expression pattern: {expected}"),
    },
)


@dataclass(frozen=True, slots=True)
class Bounded:
    """Text with limits; the service quotes it, not its length."""

    at_least: int = 0
    at_most: int | None = None
    pattern: str | None = None

    def read(self, reader: Reader, path: Path, value: object) -> object:
        if not isinstance(value, str):
            reader.wrong_type(path, value, "string")
        elif len(value) < self.at_least:
            reader.fault(Fault.TOO_SHORT, path, got=value, limit=self.at_least)
        elif self.at_most is not None and len(value) > self.at_most:
            reader.fault(Fault.TOO_LONG, path, got=value, limit=self.at_most)
        elif self.pattern is not None and not re.fullmatch(self.pattern, value):
            reader.fault(Fault.PATTERN, path, got=value, expected=self.pattern)
        return value


@dataclass(frozen=True, slots=True)
class Blob:
    """Bytes, as base64 in JSON."""

    at_least: int = 0

    def read(self, reader: Reader, path: Path, value: object) -> object:
        if not isinstance(value, str):
            reader.wrong_type(path, value, "string")
            return value
        try:
            data = base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            reader.violations.append(_violation(reader, path, f"expected base64, got '{quote(value)}'"))
            return value
        if len(data) < self.at_least:
            reader.fault(Fault.TOO_SHORT, path, got="", limit=self.at_least)
        return value


@dataclass(frozen=True, slots=True)
class Union:
    """An object with exactly one of its members."""

    members: Mapping[str, Shape]
    # New members appear in responses without notice.
    unknown_members_pass: bool = False

    def read(self, reader: Reader, path: Path, value: object) -> object:
        if not isinstance(value, Mapping):
            reader.wrong_type(path, value, "object")
            return value
        set_members = [name for name, item in value.items() if item is not None]
        unknown = [name for name in set_members if name not in self.members]
        if unknown and not self.unknown_members_pass:
            for name in unknown:
                reader.fault(Fault.UNKNOWN_KEY, (*path, name))
        elif len(set_members) != 1:
            reader.violations.append(self._not_one(reader, path))
        return {
            name: self.members[name].read(reader, (*path, name), value[name])
            for name in set_members
            if name in self.members
        }

    def _not_one(self, reader: Reader, path: Path) -> Violation:
        message = (
            f"Invalid number of parameters set for tagged union structure {bracket_path(path)}. "
            f"Can only set one of the following keys: {', '.join(self.members)}."
        )
        return _violation(reader, path, message)


def _violation(reader: Reader, path: Path, message: str) -> Violation:
    """Requests and responses share shapes, but are reported with different statuses."""
    if reader.dialect is DIALECT:
        return Violation(json_path(path), message, VALIDATION)
    return bad_answer(path, message)


# --- content blocks -----------------------------------------------------------------------------------------------

TOOL_NAME = Bounded(1, 64, "[a-zA-Z0-9_-]+")
TOOL_USE_ID = Bounded(1, 64, "[a-zA-Z0-9_.:-]+")
NON_EMPTY = Bounded(1)

_S3 = struct(
    required={"uri": Bounded(1, 1024, r"s3://[a-z0-9][\.\-a-z0-9]{1,61}[a-z0-9](/.*)?")},
    optional={"bucketOwner": Bounded(pattern="[0-9]{12}")},
)
_BYTES_OR_S3 = Union({"bytes": Blob(1), "s3Location": _S3})
_ERROR = struct(optional={"message": TEXT})
_CITATIONS_ON = struct(required={"enabled": BOOLEAN})
_TEXTS = Array(Union({"text": TEXT}))

IMAGE = struct(
    required={"format": choice("png", "jpeg", "gif", "webp"), "source": _BYTES_OR_S3}, optional={"error": _ERROR}
)
DOCUMENT = struct(
    required={
        "name": Bounded(1, 200),
        "source": Union({"bytes": Blob(1), "s3Location": _S3, "text": TEXT, "content": _TEXTS}),
    },
    optional={
        "format": choice("pdf", "csv", "doc", "docx", "xls", "xlsx", "html", "txt", "md"),
        "context": TEXT,
        "citations": _CITATIONS_ON,
    },
)
VIDEO = struct(
    required={
        "format": choice("mkv", "mov", "mp4", "webm", "flv", "mpeg", "mpg", "wmv", "three_gp"),
        "source": _BYTES_OR_S3,
    }
)
_AUDIO_FORMATS = (
    "mp3",
    "opus",
    "wav",
    "aac",
    "flac",
    "mp4",
    "ogg",
    "mkv",
    "mka",
    "x-aac",
    "m4a",
    "mpeg",
    "mpga",
    "pcm",
)
AUDIO = struct(required={"format": choice(*_AUDIO_FORMATS, "webm"), "source": _BYTES_OR_S3}, optional={"error": _ERROR})
SEARCH_RESULT = struct(
    required={"source": TEXT, "title": TEXT, "content": Array(struct(required={"text": TEXT}))},
    optional={"citations": _CITATIONS_ON},
)
# `input` is free JSON here; a rule asks for an object. The enum of `type` names only server_tool_use, yet live answers
# say tool_use as well, and it may be sent back (2 recordings, e.g. b61c46808113).
TOOL_USE = struct(
    required={"toolUseId": TOOL_USE_ID, "name": TOOL_NAME, "input": ANYTHING},
    optional={"type": choice("server_tool_use", "tool_use")},
)
TOOL_RESULT = struct(
    required={
        "toolUseId": TOOL_USE_ID,
        "content": Array(
            Union(
                {
                    "json": ANYTHING,
                    "text": TEXT,
                    "image": IMAGE,
                    "document": DOCUMENT,
                    "video": VIDEO,
                    "searchResult": SEARCH_RESULT,
                }
            )
        ),
    },
    optional={"status": choice("success", "error"), "type": TEXT},
)
GUARD_CONTENT = Union(
    {
        "text": struct(
            required={"text": TEXT},
            optional={"qualifiers": Array(choice("grounding_source", "query", "guard_content"))},
        ),
        "image": struct(required={"format": choice("png", "jpeg"), "source": Union({"bytes": Blob(1)})}),
    }
)
CACHE_POINT = struct(required={"type": choice("default")}, optional={"ttl": choice("5m", "1h")})
REASONING = Union(
    {"reasoningText": struct(required={"text": TEXT}, optional={"signature": TEXT}), "redactedContent": Blob()}
)
_PLACE: dict[str, Shape] = {"start": COUNT, "end": COUNT}
_IN_DOCUMENT = struct(optional={"documentIndex": COUNT, **_PLACE})
_LOCATION = Union(
    {
        "web": struct(optional={"url": TEXT, "domain": TEXT}),
        "documentChar": _IN_DOCUMENT,
        "documentPage": _IN_DOCUMENT,
        "documentChunk": _IN_DOCUMENT,
        "searchResultLocation": struct(optional={"searchResultIndex": COUNT, **_PLACE}),
    }
)
CITATIONS = struct(
    optional={
        "content": _TEXTS,
        "citations": Array(
            struct(optional={"title": TEXT, "source": TEXT, "sourceContent": _TEXTS, "location": _LOCATION})
        ),
    }
)
_TOOL_CHANGE = struct(
    required={
        "tool": struct(
            optional={"type": Bounded(1, 64), "name": Bounded(1, 128), "serverName": Bounded(1, 128)},
        )
    }
)

BLOCKS: dict[str, Shape] = {
    "text": TEXT,
    "image": IMAGE,
    "document": DOCUMENT,
    "video": VIDEO,
    "audio": AUDIO,
    "toolUse": TOOL_USE,
    "toolResult": TOOL_RESULT,
    "guardContent": GUARD_CONTENT,
    "cachePoint": CACHE_POINT,
    "reasoningContent": REASONING,
    "citationsContent": CITATIONS,
    "searchResult": SEARCH_RESULT,
    "toolAddition": _TOOL_CHANGE,
    "toolRemoval": _TOOL_CHANGE,
}
MESSAGE = struct(required={"role": choice("user", "assistant", "system"), "content": Array(Union(BLOCKS))})

# --- the request --------------------------------------------------------------------------------------------------

_TOOL = Union(
    {
        "toolSpec": struct(
            required={"name": TOOL_NAME, "inputSchema": Union({"json": ANYTHING})},
            optional={"description": NON_EMPTY, "strict": BOOLEAN},
        ),
        "systemTool": struct(required={"name": TOOL_NAME}),
        "cachePoint": CACHE_POINT,
    }
)
_METADATA_PATTERN = r"[a-zA-Z0-9\s:_@$#=/+,-.]{0,256}"
_JSON_SCHEMA = struct(required={"schema": TEXT}, optional={"name": TEXT, "description": TEXT})

REQUEST: Struct = struct(
    optional={
        "messages": Array(MESSAGE),
        "system": Array(Union({"text": NON_EMPTY, "guardContent": GUARD_CONTENT, "cachePoint": CACHE_POINT})),
        "inferenceConfig": struct(
            optional={
                "maxTokens": Number(at_least=1, whole=True),
                "temperature": Number(at_least=0, at_most=1),
                "topP": Number(at_least=0, at_most=1),
                "stopSequences": Array(NON_EMPTY, at_most=2500),
            }
        ),
        "toolConfig": struct(
            required={"tools": Array(_TOOL, at_least=1)},
            optional={
                "toolChoice": Union(
                    {"auto": struct(), "any": struct(), "tool": struct(required={"name": TOOL_NAME})},
                )
            },
        ),
        "guardrailConfig": struct(
            optional={
                "guardrailIdentifier": Bounded(
                    0,
                    2048,
                    "(|([a-z0-9]+)|(arn:aws(-[^:]+)?:bedrock:[a-z0-9-]{1,20}:[0-9]{12}:guardrail/[a-z0-9]+))",
                ),
                "guardrailVersion": Bounded(pattern="(|([1-9][0-9]{0,7})|(DRAFT))"),
                "trace": choice("enabled", "disabled", "enabled_full"),
                # Of ConverseStream only.
                "streamProcessingMode": choice("sync", "async"),
            }
        ),
        "additionalModelRequestFields": ANYTHING,
        "additionalModelResponseFieldPaths": Array(Bounded(1, 256), at_most=10),
        "promptVariables": Map(Union({"text": TEXT})),
        "requestMetadata": Map(Bounded(0, 256, _METADATA_PATTERN), at_most=16),
        "performanceConfig": struct(optional={"latency": choice("standard", "optimized")}),
        "serviceTier": struct(required={"type": choice("priority", "default", "flex", "reserved")}),
        "outputConfig": struct(
            optional={
                "textFormat": struct(
                    required={"type": choice("json_schema"), "structure": Union({"jsonSchema": _JSON_SCHEMA})}
                ),
                "effort": Bounded(0, 16),
            }
        ),
        # It belongs in the URL; in the body it was ignored (4 recordings, e.g. 9c157f25b66c).
        "modelId": TEXT,
    },
)

# --- the response -------------------------------------------------------------------------------------------------

STOP_REASONS = (
    "end_turn",
    "tool_use",
    "max_tokens",
    "stop_sequence",
    "guardrail_intervened",
    "content_filtered",
    "malformed_model_output",
    "malformed_tool_use",
    "model_context_window_exceeded",
)
_ANSWER_BLOCKS: dict[str, Shape] = {
    "text": TEXT,
    "toolUse": struct(required={"toolUseId": NON_EMPTY, "name": NON_EMPTY, "input": ANYTHING}, optional={"type": TEXT}),
    "toolResult": struct(required={"toolUseId": NON_EMPTY, "content": Array(OBJECT)}),
    "reasoningContent": Union({**REASONING.members}, unknown_members_pass=True),
    "citationsContent": CITATIONS,
    "image": IMAGE,
    "audio": AUDIO,
}
USAGE = struct(
    required={"inputTokens": COUNT, "outputTokens": COUNT, "totalTokens": COUNT},
    optional={
        "cacheReadInputTokens": COUNT,
        "cacheWriteInputTokens": COUNT,
        "cacheDetails": Array(struct(required={"ttl": TEXT, "inputTokens": COUNT})),
    },
)
RESPONSE = struct(
    required={
        "output": struct(
            required={
                "message": struct(
                    required={
                        "role": choice("assistant"),
                        "content": Array(Union(_ANSWER_BLOCKS, unknown_members_pass=True)),
                    }
                )
            }
        ),
        "stopReason": choice(*STOP_REASONS),
        "usage": USAGE,
        "metrics": struct(required={"latencyMs": NUMBER}),
    },
    nullable={"additionalModelResponseFields": OBJECT, "trace": OBJECT},
)
