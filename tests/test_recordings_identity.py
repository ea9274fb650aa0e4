"""Laws 1, 3 and 10 on recorded traffic: what clients really send, and what services really answer.

Every recorded body is decoded and encoded to the same JSON; every request that a service accepted crosses to every
other format, and the rules of the target accept it. tests/accepted_differences.py lists the exceptions.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pytest

import dragoman
from dragoman.codecs.failures import exceeds_context
from dragoman.errors import DragomanError, EncodeError
from tests.accepted_differences import ILLEGAL, NOT_DECODED, ODD_ANSWERS, REFUSED, Accepted
from tests.support.endings import unfair
from tests.support.formats import FAMILY, FORMATS, MODELS, refusals
from tests.support.promises import promise
from tests.support.recordings import FORMAT_OF, Record, shares
from tests.support.trees import difference, plain

GOOGLE = {"gemini", "vertex"}
Recordings = Callable[[str], Iterator[Record]]
_MODEL_IN_PATH = re.compile(r"/models/([^:/]+)")


def others(source: str) -> list[str]:
    """Targets of a crossing. Google's two services are one family, between which bodies pass unchanged (decision 4)."""
    return [target for target in FORMATS if target != source and not {source, target} <= GOOGLE]


def bodies(record: Record) -> Iterator[tuple[str, dict[str, Any]]]:
    if record.request is not None:
        yield "request", record.request
    if isinstance(record.response, dict):
        yield "response" if record.status < 400 else "error", record.response


def returned(kind: str, body: dict[str, Any], name: str) -> dragoman.Encoded:
    data = json.dumps(body).encode()
    if kind == "request":
        return dragoman.encode_request(dragoman.decode_request(data, name), name)
    if kind == "response":
        return dragoman.encode_response(dragoman.decode_response(data, name), name)
    return dragoman.encode_error(dragoman.decode_error(data, name), name)


def expect(found: Mapping[str, str], accepted: Iterable[Accepted]) -> None:
    """Fails for every difference that is not listed."""
    listed = {row.id for row in accepted}
    assert {id: what for id, what in found.items() if id not in listed} == {}


def stale(ids: set[str], found: Mapping[str, str], accepted: Iterable[Accepted]) -> set[str]:
    """Fails for every row whose record was examined and no longer differs."""
    return {row.id for row in accepted if row.id in ids and row.id not in found}


@promise("law:1-identity", "law:10-bad-input-good-words", "report:37", "report:52")
@pytest.mark.parametrize("file", FORMAT_OF)
def test_recorded_bodies_come_back_as_they_were(file: str, recordings: Recordings) -> None:
    seen, faults, ids = 0, dict[str, str](), set[str]()
    for record in recordings(file):
        ids.add(record.id)
        for kind, body in bodies(record):
            seen += 1
            try:
                again = returned(kind, body, FORMAT_OF[file])
            except DragomanError as error:
                faults[record.id] = str(error)
                continue
            found = difference(body, plain(again.json()))
            if found or again.losses:
                faults[record.id] = f"{kind} {found} {again.losses}"
    assert seen
    assert len(faults) / seen < 0.01
    expect(faults, NOT_DECODED)
    assert stale(ids, faults, NOT_DECODED) == set()


def model_for(record: Record, source: str, target: str) -> str:
    """The recorded model within a family; for another vendor an ordinary model of its own."""
    named = _MODEL_IN_PATH.search(record.endpoint)
    return named[1] if named is not None and FAMILY[source] == FAMILY[target] else MODELS[target]


@promise("law:3-legality")
@pytest.mark.parametrize("file", FORMAT_OF)
def test_recorded_requests_cross_legally(file: str, recordings: Recordings) -> None:
    source = FORMAT_OF[file]
    unreadable = {row.id for row in NOT_DECODED}
    refused, illegal = dict[str, str](), dict[str, str]()
    for record, target in shares(recordings(file), others(source)):
        if record.request is None or record.status != 200 or record.id in unreadable:
            continue
        model = model_for(record, source, target)
        try:
            encoded = dragoman.translate_request(record.request, source=source, target=target, model=model)
        except EncodeError as error:
            refused[record.id] = f"to {target}: {error}"
            continue
        verdict = refusals(encoded, target, model=model)
        if verdict:
            illegal[record.id] = f"to {target}: {verdict[0]}"
    expect(refused, REFUSED)
    expect(illegal, ILLEGAL)


@promise("law:3-legality", "law:9-usage-adds-up")
@pytest.mark.parametrize("file", FORMAT_OF)
def test_recorded_answers_are_valid_for_clients_of_other_formats(file: str, recordings: Recordings) -> None:
    source = FORMAT_OF[file]
    unreadable = {row.id for row in NOT_DECODED}
    odd: dict[str, str] = {}
    for record, target in shares(recordings(file), others(source)):
        if not isinstance(record.response, dict) or record.status != 200 or record.id in unreadable:
            continue
        encoded = dragoman.translate_response(record.response, source=source, target=target)
        verdict = unfair(encoded, target, dragoman.decode_response(record.response, source))
        if verdict:
            odd[record.id] = f"to {target}: {verdict[0]}"
    expect(odd, ODD_ANSWERS)


TOO_LONG = {
    "anthropic-messages": "prompt is too long",
    "bedrock-converse": "Input is too long for requested model",
}
"""The words by which clients of an API recognise that the context is exceeded."""


@promise("law:10-bad-input-good-words")
@pytest.mark.parametrize("file", FORMAT_OF)
def test_recorded_errors_cross_with_their_words_and_class_of_status(file: str, recordings: Recordings) -> None:
    """The words of every recorded error reach every other format, under a status of the same class."""
    for record in recordings(file):
        if record.status < 400 or not isinstance(record.response, dict):
            continue
        failure = dragoman.decode_error(record.response, FORMAT_OF[file], status=record.status)
        assert failure.status == record.status
        assert failure.message
        for target in FORMATS:
            again = dragoman.encode_error(failure, target)
            assert again.status // 100 == record.status // 100
            message = dragoman.decode_error(again.json(), target, status=again.status).message
            known = TOO_LONG.get(target) if exceeds_context(failure) else None
            assert message in {failure.message, f"{known}: {failure.message}"}
