"""Evaluation: a file of cases, run by agents with several models, scored with confidence intervals.

A case is a prompt and what is expected of the run: words in the answer, a value, calls of tools. A file is JSON Lines,
or TOML with `[[case]]` tables.
"""

from __future__ import annotations

import asyncio
import random
import re
import statistics
import time
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from dragoman.agent.agent import Agent
from dragoman.agent.testing import assert_calls
from dragoman.drivers.typed_output import FENCE
from dragoman.errors import DragomanError, InvalidValue

_Z = 1.959964
"""Quantile of the normal distribution for 95 %."""
_RESAMPLES = 1_000


class Case(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One thing that a run has to get right."""

    prompt: str
    name: str = ""
    contains: tuple[str, ...] | str = ()
    """Words that the answer must contain, in upper or lower case."""
    lacks: tuple[str, ...] | str = ()
    """Words that the answer must not contain."""
    matches: str = ""
    """A regular expression that must be found in the answer."""
    equals: Any | UnsetType = UNSET
    """The expected answer; if this is not a text, the answer is parsed as JSON."""
    calls: tuple[str, ...] | None = None
    """The tools that must be called, in this order."""


class Outcome(Struct, frozen=True, kw_only=True):
    """The outcome of one run of one case."""

    case: str
    passed: bool
    problem: str = ""
    seconds: float
    cost: Decimal | None
    input_tokens: int
    output_tokens: int


class Interval(Struct, frozen=True):
    """A value and its 95 % confidence interval."""

    value: float
    low: float
    high: float


class Score(Struct, frozen=True, kw_only=True):
    """The outcomes of one model."""

    model: str
    outcomes: tuple[Outcome, ...]

    @property
    def passed(self) -> int:
        return sum(one.passed for one in self.outcomes)

    @property
    def pass_rate(self) -> Interval:
        return wilson(self.passed, len(self.outcomes))

    @property
    def seconds(self) -> Interval:
        return median_interval([one.seconds for one in self.outcomes])

    @property
    def cost(self) -> Decimal | None:
        """The cost of all cases; None if a price is not known."""
        costs = [one.cost for one in self.outcomes]
        return None if any(one is None for one in costs) else sum((one or Decimal(0) for one in costs), Decimal(0))


def read_cases(path: str | Path) -> list[Case]:
    """Return the cases of a file. Raises `InvalidValue` with the place of a mistake."""
    file = Path(path)
    data = file.read_bytes()
    try:
        if file.suffix == ".toml":
            found = msgspec.toml.decode(data, type=_File).case
        else:
            found = [msgspec.json.decode(line, type=Case) for line in data.splitlines() if line.strip()]
    except (msgspec.MsgspecError, UnicodeDecodeError, ValueError) as error:
        expected = "a case on each line, or [[case]] tables in TOML"
        raise InvalidValue(path=str(path), expected=expected, found=str(error)) from None
    for case in found:
        _check_pattern(case, str(path))
    if not found:
        raise InvalidValue(path=str(path), expected="at least one case", found="none")
    return found


def _check_pattern(case: Case, path: str) -> None:
    try:
        re.compile(case.matches)
    except re.error as error:
        raise InvalidValue(path=path, expected="a regular expression", found=f"{case.matches!r}: {error}") from None


class _File(Struct, forbid_unknown_fields=True):
    case: list[Case]


async def evaluate(
    cases: Sequence[Case], make: Callable[[], Agent[Any]], *, model: str, repeat: int = 1, concurrency: int = 4
) -> Score:
    """Run every case with its own agent, several at the same time; outcomes are in the order of the cases."""
    slots = asyncio.Semaphore(max(1, concurrency))

    async def one(case: Case) -> Outcome:
        async with slots:
            return await run_case(case, make())

    found = await asyncio.gather(*(one(case) for case in cases for _ in range(repeat)))
    return Score(model=model, outcomes=tuple(found))


async def run_case(case: Case, agent: Agent[Any]) -> Outcome:
    started = time.monotonic()
    try:
        result = await agent.run(case.prompt)
    except DragomanError as error:
        seconds, problem = time.monotonic() - started, f"{type(error).__name__}: {error}"
        name = case.name or case.prompt[:40]
        return Outcome(
            case=name, passed=False, problem=problem, seconds=seconds, cost=None, input_tokens=0, output_tokens=0
        )
    seconds = time.monotonic() - started
    problem = problem_with(case, result.text, agent)
    return Outcome(
        case=case.name or case.prompt[:40],
        passed=not problem,
        problem=problem,
        seconds=seconds,
        cost=result.cost,
        input_tokens=result.usage.input,
        output_tokens=result.usage.output,
    )


def problem_with(case: Case, text: str, agent: Agent[Any] | None = None) -> str:
    """Describe what is wrong with an answer; empty if it is right."""
    folded = text.casefold()
    missing = [word for word in _words(case.contains) if word.casefold() not in folded]
    if missing:
        return f"does not contain {missing[0]!r}: {text[:200]!r}"
    present = [word for word in _words(case.lacks) if word.casefold() in folded]
    if present:
        return f"contains {present[0]!r}"
    if case.matches and re.search(case.matches, text) is None:
        return f"does not match {case.matches!r}: {text[:200]!r}"
    if case.equals is not UNSET and not _equals(text, case.equals):
        return f"is not {case.equals!r}: {text[:200]!r}"
    if case.calls is not None and agent is not None:
        try:
            assert_calls(agent, *case.calls)
        except AssertionError as error:
            return " ".join(str(error).split())
    return ""


def _words(given: tuple[str, ...] | str) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else given


def _equals(text: str, wanted: Any) -> bool:
    if isinstance(wanted, str):
        return text.strip() == wanted.strip()
    fenced = FENCE.fullmatch(text)
    try:
        found: Any = msgspec.json.decode(fenced[1] if fenced else text)
    except msgspec.DecodeError:
        return False
    return bool(found == wanted)


# ── confidence ────────────────────────────────────────────────────────────────────────────────────────────────


def wilson(passed: int, count: int) -> Interval:
    """Return Wilson's score interval of a share: valid also for few cases, and for all or none."""
    if count == 0:
        return Interval(0.0, 0.0, 1.0)
    share = passed / count
    spread = _Z**2 / count
    centre = (share + spread / 2) / (1 + spread)
    half = _Z * ((share * (1 - share) + spread / 4) / count) ** 0.5 / (1 + spread)
    return Interval(share, max(0.0, centre - half), min(1.0, centre + half))


def median_interval(values: Sequence[float]) -> Interval:
    """Return the median and its bootstrap interval; the same values give the same interval."""
    if not values:
        return Interval(0.0, 0.0, 0.0)
    draw = random.Random(0)  # noqa: S311 - resampling, no secret
    medians = sorted(statistics.median(draw.choices(values, k=len(values))) for _ in range(_RESAMPLES))
    low, high = int(_RESAMPLES * 0.025), min(int(_RESAMPLES * 0.975), _RESAMPLES - 1)
    return Interval(statistics.median(values), medians[low], medians[high])
