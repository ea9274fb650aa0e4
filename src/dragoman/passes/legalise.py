"""Makes any conversation legal for its target: a sequence of pure passes, of which only the needed ones run.

What a conversation contains is known as traits (ir/traits.py). Each pass names the traits that call for it, given the
target's profile; most requests have none of them and are returned as they are.

Order matters: pairing comes before names and turns, because they rely on results that directly follow their calls, and
because it fills in names of results; turns come last, when nothing else moves messages. A pass that moves or drops
messages can create a trait that a later pass handles, so once such a pass has run, all later ones about turns run too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple, TypeAlias

from dragoman.ir import Request
from dragoman.ir.traits import (
    ADJACENT_ASSISTANT,
    BLANK_TEXT,
    CALLS_WITHOUT_TOOLS,
    EMPTY_MESSAGE,
    FIRST_ASSISTANT,
    LAST_ASSISTANT,
    LATE_SYSTEM,
    MISPLACED_PART,
    NAMED_SPEAKER,
    NO_MESSAGES,
    ODD_ID,
    ODD_NAME,
    ODD_SETTING,
    ONLY_SYSTEM,
    PRIVATE_CONTENT,
    PRIVATE_SETTING,
    SAME_TOOL_NAMES,
    UNANSWERED_END,
    UNKNOWN_PART,
    UNPAIRED,
    VENDOR_TOOL,
    traits_of,
)
from dragoman.losses import LossLog
from dragoman.passes.names import alias_names
from dragoman.passes.pairing import answer_last_calls, pair_results
from dragoman.passes.private import report_private_content, report_private_settings, report_speakers
from dragoman.passes.provider_tools import cross_provider_tools
from dragoman.passes.survey import survey
from dragoman.passes.turns import (
    check_places,
    declare_called_tools,
    distinct_tools,
    drop_blank_text,
    ensure_turns,
    hoist_system,
    legal_settings,
    merge_model_turns,
    show_readable_blocks,
)
from dragoman.profile import NEVER, Profile

Pass: TypeAlias = Callable[[Request, Profile, LossLog], Request]


class Step(NamedTuple):
    """A pass, the traits that call for it given a target's profile, and whether it moves or drops messages."""

    run: Pass
    needed_by: Callable[[Profile], int]
    moves: bool = False


def _always(bits: int) -> Callable[[Profile], int]:
    return lambda _profile: bits


def _blank_traits(profile: Profile) -> int:
    return EMPTY_MESSAGE if profile.blank_text else EMPTY_MESSAGE | BLANK_TEXT


def _turn_traits(profile: Profile) -> int:
    bits = NO_MESSAGES
    if profile.system == "field":
        bits |= ONLY_SYSTEM
    if profile.first_turn_user:
        bits |= FIRST_ASSISTANT
    if profile.final_assistant != "any" or profile.no_prefill_models is not NEVER:
        bits |= LAST_ASSISTANT
    return bits


STEPS: tuple[Step, ...] = (
    Step(check_places, _always(MISPLACED_PART | NO_MESSAGES)),
    Step(report_private_settings, _always(PRIVATE_SETTING)),
    Step(report_private_content, _always(PRIVATE_CONTENT)),
    Step(show_readable_blocks, _always(UNKNOWN_PART)),
    Step(report_speakers, lambda profile: 0 if profile.message_names else NAMED_SPEAKER),
    Step(cross_provider_tools, _always(VENDOR_TOOL)),
    Step(distinct_tools, _always(SAME_TOOL_NAMES)),
    Step(pair_results, _always(UNPAIRED | ODD_ID), moves=True),
    Step(answer_last_calls, lambda profile: 0 if profile.unanswered_calls else UNANSWERED_END),
    Step(alias_names, _always(ODD_NAME)),
    Step(declare_called_tools, lambda profile: CALLS_WITHOUT_TOOLS if profile.tools_with_calls else 0),
    Step(legal_settings, _always(ODD_SETTING)),
    Step(drop_blank_text, _blank_traits, moves=True),
    Step(hoist_system, lambda profile: LATE_SYSTEM if profile.system == "field" else 0, moves=True),
    Step(merge_model_turns, lambda profile: ADJACENT_ASSISTANT if profile.merge_model_turns else 0, moves=True),
    Step(ensure_turns, _turn_traits, moves=True),
)


def legalise(request: Request, profile: Profile, log: LossLog) -> Request:
    """Returns the same request if it is legal. Requests from the target's own family are not changed."""
    if request.origin == profile.family and not profile.legalises_own_family:
        # A caller may have added named messages to a request that was decoded from the target's format.
        return request if traits_of(request) is not None else report_speakers(request, profile, log)
    bits, calls, names = traits_of(request) or survey(request)
    target = _TARGETS.get(profile) or _new_target(profile)
    if calls:
        bits |= target.call_traits(calls, has_tools=bool(request.tools))
    if request.tools:
        bits |= target.tool_traits(request, names)
    elif request.tool_choice is not None or request.parallel_tool_calls is not None:
        bits |= ODD_SETTING
    if request.stop or request.candidates is not None:
        bits |= target.setting_traits(request)
    return target.run(request, bits, log) if bits & target.mask else request


class _Target:
    """The steps of one profile. Caches accepted ids and names, because agents resend their history."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self._steps = tuple((step.run, step.needed_by(profile), step.moves) for step in STEPS)
        self.mask = 0
        for _, bits, _ in self._steps:
            self.mask |= bits
        self._plans: dict[int, tuple[Pass, ...]] = {}
        self._good_ids: set[str] = set()
        self._good_names: set[str] = set()

    def run(self, request: Request, bits: int, log: LossLog) -> Request:
        needed = bits & self.mask
        plan = self._plans.get(needed) or self._plan(needed)
        for run in plan:
            request = run(request, self.profile, log)
        return request

    def _plan(self, bits: int) -> tuple[Pass, ...]:
        """The passes for these traits, in order; cached, because most requests have the same few traits."""
        moved = False
        plan = []
        for run, needed_by, moves in self._steps:
            if bits & needed_by or (moved and moves):
                plan.append(run)
                moved = moved or moves
        if len(self._plans) >= _MOST_TARGETS:
            self._plans.clear()
        self._plans[bits] = tuple(plan)
        return self._plans[bits]

    # Traits that depend on what this target accepts.

    def call_traits(self, calls: Mapping[str, str], *, has_tools: bool) -> int:
        bits = 0 if has_tools else CALLS_WITHOUT_TOOLS
        if (
            self.profile.call_id is not None
            and not self._good_ids.issuperset(calls)
            and not _accepts(calls, self.profile.call_id, self._good_ids)
        ):
            bits |= ODD_ID
        if not self._good_names.issuperset(calls.values()) and not self._accepts_names(calls.values()):
            bits |= ODD_NAME
        return bits

    def tool_traits(self, request: Request, names: AbstractSet[str]) -> int:
        bits = 0
        if not self._good_names.issuperset(names) and not self._accepts_names(names):
            bits |= ODD_NAME
        if len(names) < len(request.tools):
            bits |= SAME_TOOL_NAMES
        choice = request.tool_choice
        if choice is not None and choice.names:
            if not names >= set(choice.names):
                bits |= ODD_SETTING | ODD_NAME
            elif choice.mode == "none":
                bits |= ODD_SETTING
        return bits

    def setting_traits(self, request: Request) -> int:
        profile, stop, candidates = self.profile, request.stop, request.candidates
        if candidates is not None and candidates < 1:
            return ODD_SETTING
        too_many = profile.stop_limit is not None and len(stop) > profile.stop_limit
        return ODD_SETTING if too_many or (stop and not profile.blank_stop) else 0

    def _accepts_names(self, names: Iterable[str]) -> bool:
        return _accepts(names, self.profile.tool_name, self._good_names)


_MOST_REMEMBERED = 8192
_LONGEST_REMEMBERED = 128


def _accepts(texts: Iterable[str], pattern: re.Pattern[str] | None, memory: set[str]) -> bool:
    """Whether all match the pattern; short matches are cached."""
    for text in texts:
        if pattern is not None and pattern.fullmatch(text) is None:
            return False
        if len(text) <= _LONGEST_REMEMBERED:
            if len(memory) >= _MOST_REMEMBERED:
                memory.clear()
            memory.add(text)
    return True


_TARGETS: dict[Profile, _Target] = {}
_MOST_TARGETS = 256


def _new_target(profile: Profile) -> _Target:
    if len(_TARGETS) >= _MOST_TARGETS:
        _TARGETS.clear()
    target = _TARGETS[profile] = _Target(profile)
    return target
