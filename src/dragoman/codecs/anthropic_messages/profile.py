"""What Messages accepts, and what each Claude model does: the tables of the wire notes, as data."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from dragoman.profile import Profile

PATH = "/v1/messages"
NEWEST_VERSION = "2026-10-21"
SAMPLING_VERSION = "2023-06-01"
"""2026-10-21 refuses temperature, top_p and top_k, whatever they say."""

PROFILE = Profile(
    name="anthropic-messages",
    family="anthropic",
    system="field",
    inline_system_models=re.compile(r"(?:fable|mythos|opus)-[5-9](?!\d)|opus-4[-.]8(?!\d)|sonnet-5[-.]5(?!\d)"),
    final_assistant="trimmed",
    no_prefill_models=re.compile(
        r"(?:opus|sonnet|haiku)-4[-.][6-9](?!\d)|(?:opus|sonnet|haiku|fable|mythos)-[5-9](?!\d)|mythos-preview"
    ),
    blank_text=False,
    call_id=re.compile(r"[a-zA-Z0-9_-]+"),
    # The documents say 64; the server's own message has said 128 since mid-2025.
    tool_name=re.compile(r"[a-zA-Z0-9_-]{1,128}"),
    blank_stop=False,
    cache_marks=4,
    no_forced_choice_models=re.compile(r"(?:fable|mythos)-5[-.][12](?!\d)|(?:opus|sonnet)-5[-.]5(?!\d)|mythos-preview"),
)

Sampling = Literal["free", "one of two", "default", "default, one of two"]

ALL_EFFORTS = ("low", "medium", "high", "xhigh", "max")
"""In rising order."""


class ModelLimits(Struct, frozen=True, kw_only=True):
    """What one model takes. The defaults fit a model we do not know: nothing is held back from it."""

    thinking: frozenset[str] = frozenset({"enabled", "adaptive", "disabled"})
    """What `thinking.type` may say."""
    thinks_unasked: bool = False
    """Whether leaving `thinking` out means that the model thinks."""
    efforts: tuple[str, ...] = ALL_EFFORTS
    """What `output_config.effort` may say; nothing for models that know budgets only."""
    efforts_without_thinking: tuple[str, ...] = ALL_EFFORTS
    sampling: Sampling = "free"
    """free; not temperature and top_p together; only the default values (other ones are refused)."""
    invented_max_tokens: int = 8192
    """`max_tokens` for a request that does not say; within what the model can write."""


_UP_TO_HIGH = ALL_EFFORTS[:3]

UNKNOWN_MODEL = ModelLimits()
_CLAUDE_3 = ModelLimits(thinking=frozenset(), efforts=(), invented_max_tokens=4096)
_CLAUDE_3_5 = replace(_CLAUDE_3, invented_max_tokens=8192)
_CLAUDE_4 = ModelLimits(thinking=frozenset({"enabled", "disabled"}), efforts=())
_CLAUDE_4_5 = replace(_CLAUDE_4, sampling="one of two")
_CLAUDE_4_6 = ModelLimits(efforts=("low", "medium", "high", "max"))
_OPUS_4_7 = ModelLimits(thinking=frozenset({"adaptive", "disabled"}), sampling="default")
_SONNET_5 = replace(_OPUS_4_7, thinks_unasked=True)
_OPUS_5 = replace(_SONNET_5, efforts_without_thinking=_UP_TO_HIGH)
_ALWAYS_THINKING = replace(_SONNET_5, thinking=frozenset({"adaptive"}))
_SONNET_5_5 = replace(
    _SONNET_5, thinking=frozenset({"adaptive", "between_tools"}), efforts_without_thinking=_UP_TO_HIGH
)
_HAIKU_5_5 = replace(_SONNET_5, sampling="default, one of two")
_MYTHOS_PREVIEW = replace(_SONNET_5, thinking=frozenset({"adaptive", "enabled"}))

# The first row that matches counts. A date after the name is no minor version.
_MODELS: tuple[tuple[re.Pattern[str], ModelLimits], ...] = tuple(
    (re.compile(pattern), limits)
    for pattern, limits in (
        (r"mythos-preview", _MYTHOS_PREVIEW),
        (r"(?:fable|mythos)-5", _ALWAYS_THINKING),
        (r"opus-5[-.]5(?!\d)", _ALWAYS_THINKING),
        (r"sonnet-5[-.]5(?!\d)", _SONNET_5_5),
        (r"haiku-5[-.]5(?!\d)", _HAIKU_5_5),
        (r"opus-5(?!\d)", _OPUS_5),
        (r"sonnet-5(?!\d)", _SONNET_5),
        (r"opus-4[-.][78](?!\d)", _OPUS_4_7),
        (r"(?:opus|sonnet)-4[-.]6(?!\d)", _CLAUDE_4_6),
        (r"(?:opus|sonnet|haiku)-4[-.]5(?!\d)", _CLAUDE_4_5),
        (r"(?:opus|sonnet)-4(?:[-.@][01]?(?!\d)|[-@]\d{8}|$)|claude-3[-.]7", _CLAUDE_4),
        (r"claude-3[-.]5", _CLAUDE_3_5),
        (r"claude-(?:3|2|v2|instant)(?!\d)", _CLAUDE_3),
    )
)


@lru_cache(maxsize=256)
def limits_of(model: str | None) -> ModelLimits:
    """By the name of the model in any spelling: with vendor prefix, region, date or version suffix."""
    return next((limits for pattern, limits in _MODELS if pattern.search(model or "")), UNKNOWN_MODEL)
