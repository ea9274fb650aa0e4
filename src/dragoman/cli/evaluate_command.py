"""The work behind `dragoman eval`."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from dragoman.agent import Agent, Limits, Tool
from dragoman.agent.evaluation import Case, Interval, Score, evaluate, read_cases
from dragoman.cli.problems import OK, UNFINISHED, CommandError, one_line, system_reason
from dragoman.cli.run_command import driver_for
from dragoman.cli.table import align_columns
from dragoman.cli.targets import settings_of
from dragoman.cli.toolfile import load_tools
from dragoman.drivers.remote import RemoteDriver
from dragoman.errors import InvalidValue

_HEAD = ("model", "passed", "95 %", "cost", "median time", "95 %")


def evaluate_models(arguments: argparse.Namespace) -> int:
    try:
        cases = read_cases(arguments.cases)
    except OSError as error:
        raise CommandError(f"cannot read {arguments.cases}: {system_reason(error)}") from None
    except InvalidValue as error:
        raise CommandError(str(error)) from None
    if arguments.repeat < 1 or arguments.concurrency < 1 or arguments.max_requests < 1:
        raise CommandError("--repeat, --concurrency and --max-requests must be at least 1")
    tools = load_tools(arguments.tools) if arguments.tools else []
    scores = asyncio.run(_evaluate(arguments, cases, tools))
    if arguments.json:
        for score in scores:
            print(msgspec.json.encode(_record(score)).decode())
    else:
        print("\n".join(_report(scores)))
    least = arguments.min_pass
    return UNFINISHED if least is not None and any(one.pass_rate.value < least for one in scores) else OK


async def _evaluate(arguments: argparse.Namespace, cases: Sequence[Case], tools: Sequence[Tool]) -> list[Score]:
    settings = settings_of(arguments)
    scores = []
    for model in arguments.model or [settings.model(None)]:
        driver = driver_for(arguments, settings, model)

        def make(driver: RemoteDriver = driver) -> Agent:
            limits = Limits(requests=arguments.max_requests)
            return Agent(driver, tools=tools, system_prompt=arguments.system, limits=limits)

        async with driver:
            score = await evaluate(cases, make, model=model, repeat=arguments.repeat, concurrency=arguments.concurrency)
        scores.append(score)
        if sys.stderr.isatty():
            print(f"{model}: {score.passed} of {len(score.outcomes)}", file=sys.stderr)
    return scores


def _report(scores: Sequence[Score]) -> Iterator[str]:
    rows = [_HEAD, *(_row(one) for one in scores)]
    yield from align_columns(rows)
    for score in scores:
        failed = [one for one in score.outcomes if not one.passed]
        if failed:
            yield ""
            yield f"failed with {score.model}:"
            yield from (f"  {one_line(one.case)}: {one_line(one.problem)}" for one in failed)


def _row(score: Score) -> tuple[str, ...]:
    cost = score.cost
    return (
        score.model,
        f"{score.passed}/{len(score.outcomes)} ({score.pass_rate.value:.0%})",
        f"{score.pass_rate.low:.0%} to {score.pass_rate.high:.0%}",
        "not known" if cost is None else f"${cost:.4f}",
        f"{score.seconds.value:.2f} s",
        f"{score.seconds.low:.2f} to {score.seconds.high:.2f} s",
    )


def _record(score: Score) -> dict[str, Any]:
    def interval(one: Interval) -> list[float]:
        return [one.low, one.high]

    return {
        "model": score.model,
        "cases": len(score.outcomes),
        "passed": score.passed,
        "pass_rate": score.pass_rate.value,
        "pass_rate_95": interval(score.pass_rate),
        "cost": score.cost,
        "seconds": score.seconds.value,
        "seconds_95": interval(score.seconds),
        "outcomes": score.outcomes,
    }
