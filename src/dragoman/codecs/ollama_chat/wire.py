"""Ollama's /api/chat on the wire: every documented field.

Fields that we interpret are typed, other keys are exact JSON. Only future fields come as extras (codecs/reading.py).
"""

from __future__ import annotations

from typing import Any, ClassVar, TypeAlias

from msgspec import UNSET, Raw, Struct, UnsetType

from dragoman.codecs.wire_values import UNKNOWN, MaybeBool, MaybeInt, MaybeNumber, MaybeRaw, MaybeStr, Wire


class Function(Wire, frozen=True):
    name: str
    # An object by the specification; old servers omit it in calls without arguments.
    arguments: Raw | UnsetType = UNSET
    index: int | UnsetType = UNSET


class Call(Wire, frozen=True):
    function: Function
    id: str | UnsetType = UNSET
    type: str | UnsetType = UNSET


class ChatMessage(Wire, frozen=True, tag_field="role"):
    pass


class SystemMessage(ChatMessage, frozen=True, tag="system"):
    content: str | None | UnsetType = UNSET
    images: list[str] | UnsetType = UNSET


class UserMessage(ChatMessage, frozen=True, tag="user"):
    content: str | None | UnsetType = UNSET
    images: list[str] | UnsetType = UNSET


class AssistantMessage(ChatMessage, frozen=True, tag="assistant"):
    content: str | None | UnsetType = UNSET
    thinking: str | UnsetType = UNSET
    tool_calls: list[Call] | UnsetType = UNSET
    images: list[str] | UnsetType = UNSET


class ToolMessage(ChatMessage, frozen=True, tag="tool"):
    content: str | None | UnsetType = UNSET
    tool_name: str | UnsetType = UNSET
    tool_call_id: str | UnsetType = UNSET
    images: list[str] | UnsetType = UNSET


class UnknownMessage(ChatMessage, frozen=True, tag=UNKNOWN):
    raw: Raw


AnyMessage: TypeAlias = SystemMessage | UserMessage | AssistantMessage | ToolMessage | UnknownMessage


class FunctionDefinition(Wire, frozen=True):
    name: str
    description: str | UnsetType = UNSET
    parameters: Raw | UnsetType = UNSET


class Tool(Wire, frozen=True):
    type: str | UnsetType = UNSET
    function: FunctionDefinition | UnsetType = UNSET

    # The server takes `items`; some clients repeat the name.
    further: ClassVar = ("items", "name")


class Options(Wire, frozen=True, omit_defaults=True):
    """The sampler settings that we write, which the intermediate format has too."""

    # The server truncates fractions of whole numbers.
    num_predict: MaybeNumber = None
    temperature: MaybeNumber = None
    top_p: MaybeNumber = None
    top_k: MaybeNumber = None
    stop: list[str] | str | UnsetType = UNSET
    seed: MaybeNumber = None
    presence_penalty: MaybeNumber = None
    frequency_penalty: MaybeNumber = None


class OptionsBody(Options, frozen=True, omit_defaults=True):
    """`options` as read: further settings of the sampler, and those of the runner."""

    min_p: MaybeRaw = None
    typical_p: MaybeRaw = None
    repeat_last_n: MaybeRaw = None
    repeat_penalty: MaybeRaw = None
    penalize_newline: MaybeRaw = None
    mirostat: MaybeRaw = None
    mirostat_eta: MaybeRaw = None
    mirostat_tau: MaybeRaw = None
    tfs_z: MaybeRaw = None
    num_keep: MaybeRaw = None
    num_ctx: MaybeRaw = None
    num_batch: MaybeRaw = None
    num_gpu: MaybeRaw = None
    main_gpu: MaybeRaw = None
    num_thread: MaybeRaw = None
    numa: MaybeRaw = None
    low_vram: MaybeRaw = None
    f16_kv: MaybeRaw = None
    logits_all: MaybeRaw = None
    vocab_only: MaybeRaw = None
    use_mmap: MaybeRaw = None
    use_mlock: MaybeRaw = None
    embedding_only: MaybeRaw = None

    further: ClassVar = ("think",)  # of the request; LangChain and others put it here


PASSED_ON_OPTIONS = tuple(name for name in OptionsBody.__struct_fields__ if name not in Options.__struct_fields__)


class ChatRequest(Wire, frozen=True, omit_defaults=True):
    """A request as we write it."""

    model: MaybeStr = None
    messages: list[AnyMessage] | UnsetType = UNSET
    tools: Raw | UnsetType = UNSET
    stream: MaybeBool = None
    think: bool | str | UnsetType = UNSET
    format: Raw | UnsetType = UNSET
    options: Options | UnsetType = UNSET


class ChatBody(ChatRequest, frozen=True, omit_defaults=True):
    """A request as it is read."""

    options: OptionsBody | UnsetType = UNSET
    keep_alive: MaybeRaw = None
    truncate: MaybeRaw = None
    shift: MaybeRaw = None
    logprobs: MaybeRaw = None
    top_logprobs: MaybeRaw = None

    further: ClassVar = ("_debug_render_only", "schema", "temperature")


PASSED_ON = tuple(name for name in ChatBody.__struct_fields__ if name not in ChatRequest.__struct_fields__)
"""Keys that are sent back to this API unchanged, and to no other."""


class ChatResponse(Wire, frozen=True, omit_defaults=True):
    model: MaybeStr = None
    created_at: Raw | UnsetType = UNSET
    message: AssistantMessage | UnsetType = UNSET
    done: bool | UnsetType = UNSET
    done_reason: str | UnsetType = UNSET
    prompt_eval_count: MaybeInt = None
    eval_count: MaybeInt = None
    total_duration: Raw | UnsetType = UNSET
    load_duration: Raw | UnsetType = UNSET
    prompt_eval_duration: Raw | UnsetType = UNSET
    eval_duration: Raw | UnsetType = UNSET
    # No answer of Ollama has one; answers that we convert from other APIs keep theirs.
    id: MaybeStr = None
    logprobs: MaybeRaw = None


DURATIONS = ("total_duration", "load_duration", "prompt_eval_duration", "eval_duration")
"""Nanoseconds."""


class ErrorResponse(Wire, frozen=True):
    error: str


# ── what we write most, without the members that we never set ─────────────────────────────────────────────────


class TextOut(Struct, frozen=True, gc=False):
    role: str
    content: str


class ResultOut(Struct, frozen=True, gc=False):
    role: str
    tool_name: str
    content: Any
    tool_call_id: str | UnsetType = UNSET


# ── spelling ──────────────────────────────────────────────────────────────────────────────────────────────────


def _aliases() -> dict[str, str]:
    kinds: list[type[Wire]] = [*Wire.__subclasses__(), *ChatMessage.__subclasses__(), OptionsBody, ChatBody]
    own = [kind for kind in kinds if kind.__module__ == __name__]
    names = {name for kind in own for name in kind.__struct_fields__ if name != "extra"}
    return {spelled: name for name in names for spelled in (name.title(), name.capitalize(), name.upper())}


ALIASES = _aliases()
"""The server reads keys in any case; these are the usual spellings."""
