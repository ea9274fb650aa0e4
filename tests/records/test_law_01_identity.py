"""Law 1 for record formats: a stored history, read and written, is the same history, however it was spelled."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import dragoman
from tests.support.cases import each
from tests.support.promises import promise
from tests.support.records import RECORDS, histories
from tests.support.trees import difference, plain

pytestmark = promise("law:1-identity")


@given(st.data())
@each("name", RECORDS)
def test_histories_come_back_as_they_were(name: str, data: st.DataObject) -> None:
    body = data.draw(histories(name))
    text = json.dumps(body, ensure_ascii=False)
    request = dragoman.decode_request(text, name)
    encoded = dragoman.encode_request(request, name)
    assert difference(body, plain(encoded.json())) is None
    assert encoded.losses == ()
    assert dragoman.encode_request(request, name).json() == encoded.json()


@given(st.data())
@each("name", RECORDS)
def test_a_python_value_is_read_like_its_json(name: str, data: st.DataObject) -> None:
    body: Any = data.draw(histories(name))
    of_value, of_text = dragoman.decode_request(body, name), dragoman.decode_request(json.dumps(body), name)
    assert plain(dragoman.encode_request(of_value, name).json()) == plain(dragoman.encode_request(of_text, name).json())
