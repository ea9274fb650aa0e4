"""Law 4. The same input gives the same bytes; an invented id follows from its position."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
from hypothesis import HealthCheck, given, settings

import dragoman
from dragoman import ir
from dragoman.codecs.ids import invent_id, is_invented
from dragoman.errors import EncodeError
from tests import strategies
from tests.support.bodies import REQUESTS, RESPONSES, Sample
from tests.support.cases import each
from tests.support.formats import FORMATS
from tests.support.promises import promise

pytestmark = promise("law:4-determinism")

ROOT = Path(__file__).parents[2]


def outcome(request: ir.Request, target: str) -> object:
    try:
        return dragoman.encode_request(request, target)
    except EncodeError as refused:
        return str(refused)


@given(request=strategies.ANY_REQUESTS)
def test_twice_the_same_request(request: ir.Request) -> None:
    for target in FORMATS:
        assert outcome(request, target) == outcome(request, target)


@given(completion=strategies.COMPLETIONS)
def test_twice_the_same_answer(completion: ir.Completion) -> None:
    for target in FORMATS:
        assert dragoman.encode_response(completion, target) == dragoman.encode_response(completion, target)


# What another process does with the values on its standard input: one request a line, every format, bytes and losses.
SCRIPT = """
import sys, hashlib, msgspec, dragoman
from dragoman import ir
from dragoman.errors import EncodeError
for line in sys.stdin.buffer:
    request = msgspec.json.decode(line, type=ir.Request)
    for target in sys.argv[1:]:
        try:
            told = repr(dragoman.encode_request(request, target))
        except EncodeError as refused:
            told = str(refused)
        print(hashlib.sha256(told.encode()).hexdigest())
"""


def in_another_process(lines: bytes, seed: str) -> list[bytes]:
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT / "src")}
    ran = subprocess.run(  # noqa: S603
        [sys.executable, "-c", SCRIPT, *FORMATS], input=lines, env=environment, capture_output=True, check=True
    )
    return ran.stdout.split()


def test_other_processes_with_other_hash_seeds_give_the_same_bytes() -> None:
    drawn: list[ir.Request] = []

    @settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow])
    @given(request=strategies.ANY_REQUESTS)
    def draw(request: ir.Request) -> None:
        drawn.append(request)

    draw()
    lines = b"".join(msgspec.json.encode(request) + b"\n" for request in drawn)
    first, second = in_another_process(lines, "1"), in_another_process(lines, "2")
    assert len(first) == len(drawn) * len(FORMATS)
    assert first == second


@promise("report:80", "report:47")
@each("sample", REQUESTS, ids=str)
def test_key_order_of_the_source_does_not_shuffle_the_target(sample: Sample) -> None:
    """Tools and schema keys leave in the order in which they came; the order of top-level keys is free."""
    turned = dict(reversed(sample.body.items()))
    for target in (name for name in FORMATS if name != sample.format):
        straight = dragoman.translate_request(sample.body, source=sample.format, target=target)
        assert dragoman.translate_request(turned, source=sample.format, target=target).json() == straight.json()


@promise("report:63")
@each("sample", RESPONSES, ids=str)
def test_ids_made_up_for_an_answer_are_the_same_every_time_and_never_twice(sample: Sample) -> None:
    first = dragoman.decode_response(sample.json(), sample.format)
    second = dragoman.decode_response(sample.json(), sample.format)
    ids = [call.id for call in first.tool_calls]
    assert ids == [call.id for call in second.tool_calls]
    assert len(set(ids)) == len(ids)
    assert all(ids)


@promise("report:63")
def test_made_up_ids_follow_from_their_place() -> None:
    assert invent_id("answer 1", 0) == invent_id("answer 1", 0)
    places = {invent_id(seed, index) for seed in ("answer 1", "answer 2", "é") for index in range(3)}
    assert len(places) == 9
    assert all(is_invented(place) for place in places)
    assert not is_invented("call_123")
