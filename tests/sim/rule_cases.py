"""A row of the tables in test_rules_*.py: a body that breaks one rule, where it breaks it, and what the server says."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from dragoman.sim.rules import Violation

SHAPE = "shape"


@dataclass(frozen=True, slots=True)
class Case:
    rule: str
    body: dict[str, Any]
    path: str
    words: str
    # What travels beside the body: model, version, backend.
    beside: dict[str, Any] = field(default_factory=dict)


def rows(cases: Sequence[Case]) -> list[Any]:
    return [pytest.param(case, id=f"{case.rule}-{number}") for number, case in enumerate(cases)]


def breaks_one_rule(case: Case, check: Callable[..., tuple[Violation, ...]]) -> None:
    violations = check(case.body, **case.beside)
    assert [violation.path for violation in violations] == [case.path], violations
    assert case.words in violations[0].message


def rules_without_case(rules: Iterable[Callable[..., object]], cases: Sequence[Case]) -> set[str]:
    return {rule.__name__ for rule in rules} - {case.rule for case in cases}
