"""What each Claude model accepts, as data. Unknown models are not checked by model rules."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto


class Sampling(Enum):
    """What `temperature`, `top_p` and `top_k` may say, under the API version that still has them."""

    FREE = auto()
    # Not `temperature` and `top_p` together.
    ONE_OF_TWO = auto()
    # Nothing but the default.
    FIXED = auto()
    # Nothing but the default, one at a time, and no `top_k`.
    FIXED_ONE_AT_A_TIME = auto()


ALL_EFFORTS = frozenset({"low", "medium", "high", "xhigh", "max"})


@dataclass(frozen=True, slots=True)
class Limits:
    thinking: frozenset[str]
    forced_choice: bool = True
    prefill: bool = True
    sampling: Sampling = Sampling.FREE
    # `role: "system"` inside `messages`; None: not documented for this model.
    system_messages: bool | None = False
    efforts: frozenset[str] = ALL_EFFORTS
    efforts_without_thinking: frozenset[str] = ALL_EFFORTS


_MANUAL = frozenset({"enabled", "disabled"})
_ADAPTIVE = frozenset({"adaptive"})
_SWITCHABLE = frozenset({"adaptive", "disabled"})
_UP_TO_HIGH = frozenset({"low", "medium", "high"})

_CLAUDE_3 = Limits(thinking=frozenset({"disabled"}))
_CLAUDE_4 = Limits(thinking=_MANUAL)
_CLAUDE_4_5 = Limits(thinking=_MANUAL, sampling=Sampling.ONE_OF_TWO)
_CLAUDE_4_6 = Limits(
    thinking=frozenset({"adaptive", "enabled", "disabled"}), prefill=False, efforts=_UP_TO_HIGH | {"max"}
)
_OPUS_4_7 = Limits(thinking=_SWITCHABLE, prefill=False, sampling=Sampling.FIXED)
_OPUS_4_8 = Limits(thinking=_SWITCHABLE, prefill=False, sampling=Sampling.FIXED, system_messages=True)
_SONNET_5 = _OPUS_4_7
_OPUS_5 = Limits(
    thinking=_SWITCHABLE,
    prefill=False,
    sampling=Sampling.FIXED,
    system_messages=True,
    efforts_without_thinking=_UP_TO_HIGH,
)
_ADAPTIVE_5 = Limits(thinking=_ADAPTIVE, prefill=False, sampling=Sampling.FIXED, system_messages=True)
_ADAPTIVE_5_1 = Limits(
    thinking=_ADAPTIVE, forced_choice=False, prefill=False, sampling=Sampling.FIXED, system_messages=True
)
_SONNET_5_5 = Limits(
    thinking=frozenset({"adaptive", "between_tools"}),
    forced_choice=False,
    prefill=False,
    sampling=Sampling.FIXED,
    system_messages=True,
    efforts_without_thinking=_UP_TO_HIGH,
)
_HAIKU_5_5 = Limits(thinking=_SWITCHABLE, prefill=False, sampling=Sampling.FIXED_ONE_AT_A_TIME, system_messages=None)
_MYTHOS_PREVIEW = Limits(
    thinking=frozenset({"adaptive", "enabled"}),
    forced_choice=False,
    prefill=False,
    sampling=Sampling.FIXED,
    system_messages=None,
)

# (family, major, minor) -> limits. A date after the name is not a minor version.
_MODELS: dict[tuple[str, int, int], Limits] = {
    **{(family, 3, minor): _CLAUDE_3 for family in ("opus", "sonnet", "haiku") for minor in (0, 5)},
    ("sonnet", 3, 7): _CLAUDE_4,
    **{("opus", 4, minor): _CLAUDE_4 for minor in (0, 1)},
    ("sonnet", 4, 0): _CLAUDE_4,
    **{(family, 4, 5): _CLAUDE_4_5 for family in ("opus", "sonnet", "haiku")},
    **{(family, 4, 6): _CLAUDE_4_6 for family in ("opus", "sonnet")},
    ("opus", 4, 7): _OPUS_4_7,
    ("opus", 4, 8): _OPUS_4_8,
    ("sonnet", 5, 0): _SONNET_5,
    ("opus", 5, 0): _OPUS_5,
    **{(family, 5, 0): _ADAPTIVE_5 for family in ("fable", "mythos")},
    **{(family, 5, minor): _ADAPTIVE_5_1 for family in ("fable", "mythos") for minor in (1, 2)},
    ("opus", 5, 5): _ADAPTIVE_5_1,
    ("sonnet", 5, 5): _SONNET_5_5,
    ("haiku", 5, 5): _HAIKU_5_5,
}

_NEW_NAME = re.compile(r"claude-(opus|sonnet|haiku|fable|mythos)-(\d)(?:[-.](\d{1,2}))?(?!\d)")
_OLD_NAME = re.compile(r"claude-(3)(?:[-.](\d))?-(opus|sonnet|haiku)")


def limits_of(model: str) -> Limits | None:
    if "mythos-preview" in model:
        return _MYTHOS_PREVIEW
    if new := _NEW_NAME.search(model):
        return _MODELS.get((new[1], int(new[2]), int(new[3] or 0)))
    if old := _OLD_NAME.search(model):
        return _MODELS.get((old[3], int(old[1]), int(old[2] or 0)))
    return None
