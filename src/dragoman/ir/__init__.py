"""The intermediate format: frozen, JSON-serialisable values. Imports nothing of ours but the error types."""

from dragoman.ir.completions import Completion, Failure, FailureKind, Finish, FinishReason, Usage
from dragoman.ir.messages import Message, Role
from dragoman.ir.parts import (
    AnyPart,
    Audio,
    Cache,
    Citation,
    Document,
    Image,
    Media,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    ResultKind,
    ServerToolCall,
    ServerToolResult,
    Signature,
    Text,
    ToolCall,
    ToolResult,
)
from dragoman.ir.requests import (
    AnyTool,
    CustomTool,
    ProviderTool,
    ReasoningSettings,
    Request,
    StructuredOutput,
    ToolChoice,
    ToolDefinition,
)
from dragoman.ir.values import Metadata, Value

VERSION = "1"
"""Version of the intermediate format, in its JSON Schema and in stored values."""

__all__ = [
    "VERSION",
    "AnyPart",
    "AnyTool",
    "Audio",
    "Cache",
    "Citation",
    "Completion",
    "CustomTool",
    "Document",
    "Failure",
    "FailureKind",
    "Finish",
    "FinishReason",
    "Image",
    "Media",
    "Message",
    "Metadata",
    "Opaque",
    "Part",
    "ProviderTool",
    "Reasoning",
    "ReasoningSettings",
    "Refusal",
    "Request",
    "ResultKind",
    "Role",
    "ServerToolCall",
    "ServerToolResult",
    "Signature",
    "StructuredOutput",
    "Text",
    "ToolCall",
    "ToolChoice",
    "ToolDefinition",
    "ToolResult",
    "Usage",
    "Value",
]
