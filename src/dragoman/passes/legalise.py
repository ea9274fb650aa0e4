"""Makes any conversation legal for its target: a row of pure passes, each told by the target's profile.

Order matters: pairing first, because every later pass may rely on results standing right behind their calls; names
after pairing, because it fills in names of results; turns last, when nothing moves any more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from dragoman.ir import Request
from dragoman.losses import LossLog
from dragoman.passes.names import alias_names
from dragoman.passes.pairing import pair_results
from dragoman.passes.places import check_places
from dragoman.passes.private import report_private
from dragoman.passes.survey import needs_passes
from dragoman.passes.turns import (
    declare_called_tools,
    distinct_tools,
    drop_blank_text,
    ensure_turns,
    hoist_system,
    legal_settings,
    merge_model_turns,
)
from dragoman.profile import Profile

Pass: TypeAlias = Callable[[Request, Profile, LossLog], Request]

PASSES: tuple[Pass, ...] = (
    check_places,
    report_private,
    distinct_tools,
    pair_results,
    alias_names,
    declare_called_tools,
    legal_settings,
    drop_blank_text,
    hoist_system,
    merge_model_turns,
    ensure_turns,
)


def legalise(request: Request, profile: Profile, log: LossLog) -> Request:
    """The same request when it is legal already. What came from the target's own family is its own business."""
    if request.origin == profile.family and not profile.legalises_own_family:
        return request
    if not needs_passes(request, profile):
        return request
    for change in PASSES:
        request = change(request, profile, log)
    return request
