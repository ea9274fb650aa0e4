"""Law 3 by construction: every number that a request can set, below, at and beyond the limits of each API.

What is sent is accepted by the API's rules, and what is not sent, or sent as something else, would be refused by them:
a limit of ours is neither wider nor narrower than the API's. The simulators judge; they know nothing of the codecs.
"""

import copy
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

import dragoman
from dragoman import ir
from tests.support.cases import each
from tests.support.formats import FORMATS, MODELS, VARIED_MODELS, refusals
from tests.support.promises import promise

Path = tuple[str | int, ...]

_COUNTS = (1, 2, 3, 5, 8, 9, 19, 20, 21, 100, 499, 500, 501, 1024, 2**31 - 1, 2**31, 2**63 - 1, 2**63, 2**64 - 1, 2**64)
_SHARES = (-2.01, -2.0, -1.0, -0.01, 0.0, 0.005, 0.01, 0.02, 0.5, 0.98, 0.99, 0.995, 1.0, 1.01, 1.5, 2.0, 2.01, 3.0)
VALUES: dict[str, tuple[Any, ...]] = {
    "max_output_tokens": _COUNTS,
    "temperature": _SHARES,
    "top_p": tuple(value for value in _SHARES if 0 <= value <= 1),
    "top_k": (0, *_COUNTS),
    "presence_penalty": _SHARES,
    "frequency_penalty": _SHARES,
    "seed": (-1, 0, *_COUNTS),
    "candidates": (1, 2, 3, 8, 9, 128),
    "stop": tuple(tuple(f"end {number}" for number in range(count)) for count in range(1, 20)),
}
# (format, field): what the simulator does not judge.
NOT_JUDGED = {("cohere-chat", "top_p"): "documented as 0.01 to 0.99, and the simulator judges 0 to 1"}


def encoded(name: str, field: str, value: Any) -> dragoman.Encoded:
    settings = {"max_output_tokens": 2048, field: value}
    return dragoman.encode_request(ir.Request(MODELS[name], (ir.Message("user", "hi"),), **settings), name)


def differing(left: Any, right: Any, path: Path = ()) -> Iterator[Path]:
    if isinstance(left, dict) and isinstance(right, dict) and left.keys() == right.keys():
        for key in left:
            yield from differing(left[key], right[key], (*path, key))
    elif left != right:
        yield path


def place_of(name: str, field: str, sent: list[Any]) -> Path | None:
    """Where the value stands in a body: where the bodies of two values differ."""
    if len(sent) < 2:
        return None
    found = list(differing(encoded(name, field, sent[0]).body, encoded(name, field, sent[-1]).body))
    return found[0] if len(found) == 1 and found[0] else None


def put(body: Any, path: Path, value: Any) -> Any:
    changed = copy.deepcopy(body)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = list(value) if isinstance(value, tuple) else value
    return changed


@cache
def taken_by(name: str, field: str) -> frozenset[Any]:
    """Values that are sent as they are and accepted."""
    tried = {value: encoded(name, field, value) for value in VALUES[field]}
    return frozenset(
        value
        for value, found in tried.items()
        if not is_changed(found, field) and not refusals(found, name, model=MODELS[name])
    )


def is_changed(found: dragoman.Encoded, field: str) -> bool:
    return any(loss.path.startswith(f"$.{field}") for loss in found.losses)


@promise("law:3-legality")
@each("field", VALUES)
@each("name", FORMATS)
def test_what_another_api_takes_is_made_legal(name: str, field: str) -> None:
    """What no API takes is left to the API to refuse. Ollama takes every number."""
    meant = frozenset[Any]().union(*(taken_by(other, field) for other in FORMATS if other != "ollama-chat"))
    found = {value: refusals(encoded(name, field, value), name, model=MODELS[name]) for value in meant}
    assert {value: refused for value, refused in found.items() if refused} == {}


@promise("law:2-nothing-vanishes")
@each("field", VALUES)
@each("name", FORMATS)
def test_what_is_not_sent_would_be_refused(name: str, field: str) -> None:
    sent = [value for value in VALUES[field] if value in taken_by(name, field)]
    place = place_of(name, field, sent)
    if place is None or (name, field) in NOT_JUDGED:
        return
    legal = encoded(name, field, sent[0])
    changed = [value for value in VALUES[field] if is_changed(encoded(name, field, value), field)]
    bodies = {value: _With(legal, put(legal.body, place, value)) for value in changed}
    assert [value for value, one in bodies.items() if not refusals(one, name, model=MODELS[name])] == []  # type: ignore[arg-type]


class _With:
    """Another body with the headers of an encoded request."""

    def __init__(self, like: dragoman.Encoded, body: Any) -> None:
        self.headers, self.body = like.headers, body


# ── thinking ──────────────────────────────────────────────────────────────────────────────────────────────────

_THINKING: dict[str, tuple[Any, ...]] = {
    "effort": ("minimal", "low", "medium", "high", "xhigh", "max", "a_new_word"),
    "budget_tokens": (1, 127, 128, 512, 1023, 1024, 2048, 2049, 8192, 8193, 24576, 24577, 31999, 63999),
}


@promise("law:2-nothing-vanishes")
@each(("name", "model"), [(name, model) for name, models in VARIED_MODELS.items() for model in models])
def test_thinking_is_asked_for_as_it_was_or_the_change_is_reported(name: str, model: str) -> None:
    silent = []
    for field, values in _THINKING.items():
        for value in values:
            asked = ir.ReasoningSettings("on" if field == "budget_tokens" else None, **{field: value})
            request = ir.Request(model, (ir.Message("user", "hi"),), reasoning=asked, max_output_tokens=64000)
            found = dragoman.encode_request(request, name)
            arrived = dragoman.decode_request(found.body, name).reasoning
            reported = any(loss.path.startswith("$.reasoning") for loss in found.losses)
            if (arrived is None or getattr(arrived, field) != value) and not reported:
                silent.append((asked, arrived))
    assert silent == []


@promise("law:2-nothing-vanishes")
@pytest.mark.parametrize(
    ("budget", "effort"),
    [(1, "low"), (2048, "low"), (2049, "medium"), (8192, "medium"), (8193, "high"), (60000, "high")],
)
@pytest.mark.parametrize("name", ["openai-chat", "openai-responses"])
def test_a_budget_becomes_the_effort_nearest_to_it(name: str, budget: int, effort: str) -> None:
    asked = ir.ReasoningSettings("on", budget_tokens=budget)
    request = ir.Request("gpt-5.1", (ir.Message("user", "hi"),), reasoning=asked)
    sent = dragoman.decode_request(dragoman.encode_request(request, name).body, name).reasoning
    assert sent is not None
    assert sent.effort == effort
