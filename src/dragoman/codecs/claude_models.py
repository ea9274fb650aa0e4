"""Claude, behind any API: what each model accepts, and other families' settings in its terms.

Anthropic's own API and Bedrock serve the same models, which refuse the same things.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Literal

from msgspec import UNSET, Struct
from msgspec.structs import replace

from dragoman.catalogue import shipped
from dragoman.codecs.reading import WireValue
from dragoman.losses import LossLog

FAMILY = "anthropic"
"""The family that signs Claude's thinking."""

NO_OUTPUT_SCHEMA = re.compile(r"claude-(?:instant|[23])|(?:sonnet|opus)-4(?:-0|[-@]2025|-v1|$)")
"""Models before `output_config.format`: it came with opus 4.1 and sonnet 4.5."""
NO_PREFILL = re.compile(
    r"(?:opus|sonnet|haiku)-4[-.][6-9](?!\d)|(?:opus|sonnet|haiku|fable|mythos)-[5-9](?!\d)|mythos-preview"
)
"""Models that refuse a conversation ending with the assistant."""

NO_FORCED_CHOICE = re.compile(r"(?:fable|mythos)-5[-.][12](?!\d)|(?:opus|sonnet)-5[-.]5(?!\d)|mythos-preview")
"""Models that refuse a tool choice that forces a call."""

Sampling = Literal["free", "one of two", "default", "default, one of two"]

ALL_EFFORTS = ("low", "medium", "high", "xhigh", "max")
"""In rising order."""


class ModelLimits(Struct, frozen=True, kw_only=True):
    """What one model accepts. The defaults are for an unknown model: nothing is withheld from it."""

    thinking: frozenset[str] = frozenset({"enabled", "adaptive", "disabled"})
    """The accepted values of `thinking.type`."""
    thinks_unasked: bool = False
    """Whether the model thinks if `thinking` is not sent."""
    efforts: tuple[str, ...] = ALL_EFFORTS
    """The accepted values of `output_config.effort`; none for models that take only budgets."""
    efforts_without_thinking: tuple[str, ...] = ALL_EFFORTS
    sampling: Sampling = "free"
    """free: any; one of two: not temperature and top_p together; default: other values are refused."""
    most_tokens: int | None = None
    """The longest answer, including thinking, according to the catalogue."""

    @property
    def invented_max_tokens(self) -> int:
        """The `max_tokens` for a request without it."""
        return self.most_tokens or TAKEN_BY_ALL


TAKEN_BY_ALL = 8192
"""The number of tokens that every model since Claude 3.5 can write."""
_UP_TO_HIGH = ALL_EFFORTS[:3]

UNKNOWN_MODEL = ModelLimits()
_CLAUDE_3 = ModelLimits(thinking=frozenset(), efforts=())
_CLAUDE_4 = ModelLimits(thinking=frozenset({"enabled", "disabled"}), efforts=())
_CLAUDE_4_5 = replace(_CLAUDE_4, sampling="one of two")
_CLAUDE_4_6 = ModelLimits(efforts=("low", "medium", "high", "max"))
_OPUS_4_7 = ModelLimits(thinking=frozenset({"adaptive", "disabled"}), sampling="default")
_SONNET_5 = replace(_OPUS_4_7, thinks_unasked=True)
_OPUS_5 = replace(_SONNET_5, efforts_without_thinking=_UP_TO_HIGH)
_ALWAYS_THINKING = replace(_SONNET_5, thinking=frozenset({"adaptive"}))
_SONNET_5_5 = replace(
    _SONNET_5,
    thinking=frozenset({"adaptive", "between_tools"}),
    efforts_without_thinking=_UP_TO_HIGH,
)
_HAIKU_5_5 = replace(_SONNET_5, sampling="default, one of two")
_MYTHOS_PREVIEW = replace(_SONNET_5, thinking=frozenset({"adaptive", "enabled"}))

# The first matching row counts. A date after the name is not a minor version.
_MODELS: tuple[tuple[re.Pattern[str], ModelLimits], ...] = tuple(
    (re.compile(pattern), limits)
    for pattern, limits in (
        (r"mythos-preview", _MYTHOS_PREVIEW),
        (r"mythos-5", _ALWAYS_THINKING),
        (r"fable-5", _ALWAYS_THINKING),
        (r"opus-5[-.]5(?!\d)", _ALWAYS_THINKING),
        (r"sonnet-5[-.]5(?!\d)", _SONNET_5_5),
        (r"haiku-5[-.]5(?!\d)", _HAIKU_5_5),
        (r"opus-5(?!\d)", _OPUS_5),
        (r"sonnet-5(?!\d)", _SONNET_5),
        (r"opus-4[-.][78](?!\d)", _OPUS_4_7),
        (r"(?:opus|sonnet)-4[-.]6(?!\d)", _CLAUDE_4_6),
        (r"(?:opus|sonnet|haiku)-4[-.]5(?!\d)", _CLAUDE_4_5),
        (r"opus-4(?:[-.@][01]?(?!\d)|[-@]\d{8}|$)|claude-4-opus", _CLAUDE_4),
        (r"sonnet-4(?:[-.@][01]?(?!\d)|[-@]\d{8}|$)|claude-3[-.]7", _CLAUDE_4),
        (r"claude-3[-.]5", _CLAUDE_3),
        (r"claude-(?:3|2|v2|instant)(?!\d)", _CLAUDE_3),
    )
)


@lru_cache(maxsize=256)
def limits_of(model: str | None) -> ModelLimits:
    """Return the limits of a model, named in any spelling: with vendor prefix, region, date or version suffix."""
    limits = next((limits for pattern, limits in _MODELS if pattern.search(model or "")), UNKNOWN_MODEL)
    # The shipped rows only: encoding must not depend on files of the machine (law 4).
    row = shipped().lookup("anthropic", model or "")
    return limits if row is None else replace(limits, most_tokens=row.output_limit)


class ThinkingConfig(Struct, omit_defaults=True):
    """`thinking`, read from its exact bytes, which are kept too."""

    type: str | None = None
    budget_tokens: int | None = None
    display: str | None = None


# ── cache marks ───────────────────────────────────────────────────────────────────────────────────────────────

CACHE_LIFETIMES = frozenset({"5m", "1h"})


def fit_marks(marked: list[Any], most: int, short: WireValue, log: LossLog, *, used: int = 0) -> dict[int, WireValue]:
    """Return what replaces marks that cannot be sent as they are, by the id of their node.

    Each mark covers everything before it, so the last ones are worth most. A mark of an hour may not follow one of five
    minutes (`short`). `used`: how many of the `most` marks the request has elsewhere.
    """
    plan: dict[int, WireValue] = {}
    first = max(len(marked) - (most - used), 0)
    for node in marked[:first]:
        plan[id(node)] = UNSET
        log.drop(node, "cache", "cache mark", f"this API takes at most {most} in one request")
    short_seen = False
    for node in marked[first:]:
        ttl = node.cache.ttl
        if ttl not in {None, *CACHE_LIFETIMES} or (ttl == "1h" and short_seen):
            plan[id(node)] = short
            why = "it follows a mark of 5m" if ttl == "1h" else "this API has only 5m and 1h"
            log.degrade(node, "cache.ttl", f"cache lifetime {ttl!r}", f"sent as 5m: {why}")
        short_seen = short_seen or ttl != "1h"
    return plan
