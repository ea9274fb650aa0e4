"""Law 2 for record formats: what a history cannot hold is reported, and so is what does not cross from one."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman
from dragoman import ir
from dragoman.errors import EncodeError
from tests import strategies
from tests.laws.test_law_02_nothing_vanishes import assert_well_told, encode_if_possible, silent_fields
from tests.support.cases import each
from tests.support.formats import FORMATS
from tests.support.promises import promise
from tests.support.records import RECORDS, SAMPLES, histories
from tests.support.trees import covers, variants

pytestmark = promise("law:2-nothing-vanishes")


@given(request=strategies.REQUESTS)
@each("target", RECORDS)
def test_every_field_of_a_request_matters_or_is_reported(target: str, request: ir.Request) -> None:
    request = msgspec.json.decode(msgspec.json.encode(request), type=ir.Request)  # no two places share one value
    whole = dragoman.encode_request(request, target)
    assert silent_fields(request, whole, lambda variant: encode_if_possible(variant, target)) == []


@given(completion=strategies.COMPLETIONS)
@each("target", RECORDS)
def test_every_field_of_an_answer_matters_or_is_reported(target: str, completion: ir.Completion) -> None:
    whole = dragoman.encode_response(completion, target)
    assert silent_fields(completion, whole, lambda variant: dragoman.encode_response(variant, target)) == []


@given(data=st.data())
@each("source", RECORDS)
def test_losses_point_into_the_stored_history(source: str, data: st.DataObject) -> None:
    body = msgspec.json.encode(data.draw(histories(source)))
    target = data.draw(st.sampled_from([name for name in (*FORMATS, *RECORDS) if name != source]))
    try:
        encoded = dragoman.translate_request(body, source=source, target=target)
    except EncodeError:
        return
    assert_well_told(encoded.losses, body)


@given(data=st.data(), request=strategies.ANY_REQUESTS)
@each("source", RECORDS)
def test_losses_point_into_a_history_that_was_encoded_from_a_request(
    source: str, data: st.DataObject, request: ir.Request
) -> None:
    target = data.draw(st.sampled_from([name for name in (*FORMATS, *RECORDS) if name != source]))
    try:
        body = dragoman.encode_request(request, source).json()
        encoded = dragoman.translate_request(body, source=source, target=target)
    except EncodeError:
        return
    assert_well_told(encoded.losses, body)


@given(data=st.data(), completion=strategies.COMPLETIONS)
@each("source", RECORDS)
def test_losses_point_into_the_stored_answer(source: str, data: st.DataObject, completion: ir.Completion) -> None:
    target = data.draw(st.sampled_from([name for name in (*FORMATS, *RECORDS) if name != source]))
    body = dragoman.encode_response(completion, source).json()
    assert_well_told(dragoman.translate_response(body, source=source, target=target).losses, body)


@pytest.mark.parametrize("name", RECORDS)
def test_an_unknown_key_is_reported_wherever_it_is(name: str) -> None:
    silent = []
    for sample in SAMPLES[name]:
        for path, body in variants(sample, lambda found: {**found, "x_unknown": "kept-as-it-is"}):
            for target in FORMATS:
                encoded = _translated(body, name, target)
                if encoded is None or b"kept-as-it-is" in encoded.json():
                    continue
                if not any(covers(loss.path, f"{path}.x_unknown") for loss in encoded.losses):
                    silent.append(f"{path} -> {target}: {[loss.path for loss in encoded.losses]}")
    assert silent == []


def _translated(body: Any, source: str, target: str) -> dragoman.Encoded | None:
    try:
        return dragoman.translate_request(body, source=source, target=target)
    except EncodeError:  # the new key made nonsense of a schema
        return None
