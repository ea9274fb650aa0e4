"""Law 1. A valid body, decoded and encoded to its own format, is the same body.

Here on bodies we made ourselves: from generated values, directly and by way of every other format. What the vendors'
services and clients really send is in tests/test_recordings_identity.py.
"""

import json
from collections.abc import Iterator
from typing import Any

from hypothesis import given

import dragoman
from dragoman import ir
from dragoman.errors import EncodeError
from tests import strategies
from tests.support.bodies import ERRORS, REQUESTS, RESPONSES, Sample
from tests.support.cases import each
from tests.support.formats import CROSSINGS, FORMATS
from tests.support.promises import promise
from tests.support.trees import difference, exact, plain, variants

pytestmark = promise("law:1-identity")

KINDS = {
    "request": (dragoman.decode_request, dragoman.encode_request),
    "response": (dragoman.decode_response, dragoman.encode_response),
    "error": (dragoman.decode_error, dragoman.encode_error),
}


def assert_identity(body: bytes, name: str, kind: str) -> None:
    decode, encode = KINDS[kind]
    again = encode(decode(body, name), name)  # type: ignore[operator]
    assert again.losses == ()
    assert difference(plain(body), plain(again.json())) is None


@given(request=strategies.ANY_REQUESTS)
@each("name", FORMATS)
def test_encoded_requests(name: str, request: ir.Request) -> None:
    try:
        body = dragoman.encode_request(request, name).json()
    except EncodeError:
        return
    assert_identity(body, name, "request")


@given(completion=strategies.COMPLETIONS)
@each("name", FORMATS)
def test_encoded_responses(name: str, completion: ir.Completion) -> None:
    assert_identity(dragoman.encode_response(completion, name).json(), name, "response")


@given(failure=strategies.FAILURES)
@each("name", FORMATS)
def test_encoded_errors(name: str, failure: ir.Failure) -> None:
    assert_identity(dragoman.encode_error(failure, name).json(), name, "error")


@given(request=strategies.REQUESTS)
@each(("source", "target"), CROSSINGS)
def test_requests_that_came_from_another_format(source: str, target: str, request: ir.Request) -> None:
    try:
        foreign = dragoman.encode_request(request, source).json()
        body = dragoman.translate_request(foreign, source=source, target=target).json()
    except EncodeError:
        return
    assert_identity(body, target, "request")


@given(completion=strategies.COMPLETIONS)
@each(("source", "target"), CROSSINGS)
def test_responses_that_came_from_another_format(source: str, target: str, completion: ir.Completion) -> None:
    foreign = dragoman.encode_response(completion, source).json()
    assert_identity(dragoman.translate_response(foreign, source=source, target=target).json(), target, "response")


@each("sample", REQUESTS, ids=str)
def test_sample_requests(sample: Sample) -> None:
    assert_identity(sample.json(), sample.format, "request")


@each("sample", RESPONSES, ids=str)
def test_sample_responses(sample: Sample) -> None:
    assert_identity(sample.json(), sample.format, "response")


@each("sample", ERRORS, ids=str)
def test_sample_errors(sample: Sample) -> None:
    assert_identity(sample.json(), sample.format, "error")


@promise("report:37")
@each("sample", REQUESTS, ids=str)
def test_free_json_keeps_every_byte_that_matters(sample: Sample) -> None:
    """Arguments, schemas, signed blocks and unknown keys keep number spelling, key order and repeated keys."""
    odd = b'{"z":1.0,"a":1e400,"z":123456789012345678901234567890,"n":{"b":[],"a":{}}}'
    body = sample.json()[:-1] + b',"x_unknown":' + odd + b"}"
    again = dragoman.encode_request(dragoman.decode_request(body, sample.format), sample.format).json()
    assert dict(exact(again))["x_unknown"] == exact(odd)


@each("sample", REQUESTS, ids=str)
def test_unknown_keys_and_nulls_stay_in_their_place_in_a_request(sample: Sample) -> None:
    for body in with_unknown_keys(sample.body):
        assert_identity(body, sample.format, "request")


@each("sample", RESPONSES, ids=str)
def test_unknown_keys_and_nulls_stay_in_their_place_in_an_answer(sample: Sample) -> None:
    for body in with_unknown_keys(sample.body):
        assert_identity(body, sample.format, "response")


@each("sample", ERRORS, ids=str)
def test_unknown_keys_and_nulls_stay_in_their_place_in_an_error(sample: Sample) -> None:
    for body in with_unknown_keys(sample.body):
        assert_identity(body, sample.format, "error")


def with_unknown_keys(body: dict[str, Any]) -> Iterator[bytes]:
    """The body once more for every object in it, with unknown keys there, one of them null."""
    for _, variant in variants(body, lambda found: {**found, "x_unknown": {"deep": [1.5, None]}, "x_null": None}):
        yield json.dumps(variant).encode()
