"""Lines of a chat stream. Unknown keys are skipped: these objects are read but never written."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Raw, Struct, UnsetType


class WholeFunction(Struct, gc=False):
    name: str = ""
    arguments: Raw | UnsetType = UNSET


class WholeCall(Struct, gc=False):
    function: WholeFunction
    id: str | None = None
    signature: Raw | UnsetType = UNSET


class Delta(Struct, gc=False):
    content: str | None = None
    thinking: str | None = None
    tool_calls: list[WholeCall] | None = None
    images: list[str] | None = None
    signatures: Raw | UnsetType = UNSET


class Chunk(Struct, gc=False):
    message: Delta | None = None
    done: bool | None = None
    logprobs: Any = None
    error: Raw | UnsetType = UNSET


class Opening(Struct, gc=False):
    """The fields of the first line about the whole answer."""

    model: str | None = None
    created_at: Raw | UnsetType = UNSET
    id: str | None = None


class Closing(Struct, gc=False):
    """The fields of the last line about the whole answer."""

    done_reason: str | None = None
    prompt_eval_count: int | None = None
    eval_count: int | None = None
    created_at: Raw | UnsetType = UNSET
    total_duration: Raw | UnsetType = UNSET
    load_duration: Raw | UnsetType = UNSET
    prompt_eval_duration: Raw | UnsetType = UNSET
    eval_duration: Raw | UnsetType = UNSET
