"""Lines of a chat stream. Unknown keys are forbidden, and kept with the answer (codecs/unknown_keys.py).

Members of the type `Raw` that the decoder does not read are documented: they repeat what an earlier line or the order
of the lines says.
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Raw, Struct, UnsetType


class WholeFunction(Struct, gc=False, forbid_unknown_fields=True):
    name: str = ""
    arguments: Raw | UnsetType = UNSET
    index: Raw | UnsetType = UNSET


class WholeCall(Struct, gc=False, forbid_unknown_fields=True):
    function: WholeFunction
    id: str | None = None
    signature: Raw | UnsetType = UNSET


class Delta(Struct, gc=False, forbid_unknown_fields=True):
    role: Raw | UnsetType = UNSET
    content: str | None = None
    thinking: str | None = None
    tool_calls: list[WholeCall] | None = None
    images: list[str] | None = None
    signatures: Raw | UnsetType = UNSET


class Chunk(Struct, gc=False, forbid_unknown_fields=True):
    message: Delta | None = None
    done: bool | None = None
    logprobs: Any = None
    error: Raw | UnsetType = UNSET
    # About the whole answer: read in the first line.
    model: str | None = None
    created_at: Raw | UnsetType = UNSET
    id: str | None = None
    # The same, read in the last line.
    done_reason: str | None = None
    prompt_eval_count: int | None = None
    eval_count: int | None = None
    total_duration: Raw | UnsetType = UNSET
    load_duration: Raw | UnsetType = UNSET
    prompt_eval_duration: Raw | UnsetType = UNSET
    eval_duration: Raw | UnsetType = UNSET
