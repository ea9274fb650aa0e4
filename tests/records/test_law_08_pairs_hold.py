"""Law 8 for record formats: missing ids of old data are invented on reading, and every result has its call."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman
from dragoman import ir
from dragoman.codecs.ids import is_invented
from dragoman.errors import EncodeError
from tests import strategies
from tests.laws.test_law_08_pairs_hold import assert_paired
from tests.support.cases import each
from tests.support.formats import FORMATS
from tests.support.promises import promise
from tests.support.records import RECORDS, histories
from tests.support.trees import plain

pytestmark = promise("law:8-pairs-hold")


@given(request=strategies.ANY_REQUESTS)
@each("target", RECORDS)
def test_what_is_stored_is_paired(target: str, request: ir.Request) -> None:
    try:
        body = dragoman.encode_request(request, target).json()
    except EncodeError:
        return
    assert_paired(dragoman.decode_request(body, target).messages)


@given(data=st.data())
@each("source", RECORDS)
def test_what_leaves_the_store_is_paired(source: str, data: st.DataObject) -> None:
    body = data.draw(histories(source))
    target = data.draw(st.sampled_from([name for name in (*FORMATS, *RECORDS) if name != source]))
    try:
        sent = dragoman.translate_request(body, source=source, target=target).json()
    except EncodeError:
        return
    assert_paired(dragoman.decode_request(sent, target).messages)


# Two calls of one tool and one of another, without a single id; the results come in the order of the calls.
CALLS = [("f", 1), ("f", 2), ("g", 3)]
WITHOUT_IDS: dict[str, list[dict[str, Any]]] = {
    "universal": [
        {"role": "assistant", "content": None, "tool_calls": [{"name": n, "arguments": {"n": i}} for n, i in CALLS]},
        *({"name": name, "result": str(number), "is_error": False} for name, number in CALLS),
    ],
    "modular-prompt": [
        *({"name": name, "arguments": {"n": number}} for name, number in CALLS),
        *({"role": "tool", "name": name, "kind": "text", "value": str(number)} for name, number in CALLS),
    ],
    "agent-sdk": [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"type": "function", "function": {"name": name, "arguments": f'{{"n":{number}}}'}}
                for name, number in CALLS
            ],
        },
        *({"role": "tool", "tool_name": name, "content": str(number)} for name, number in CALLS),
    ],
    "multi-llm-chat": [
        {"role": "gemini", "content": [{"type": "tool_call", "name": n, "arguments": {"n": i}} for n, i in CALLS]},
        {"role": "tool", "content": [{"type": "tool_result", "name": n, "content": str(i)} for n, i in CALLS]},
    ],
}


@pytest.mark.parametrize("name", RECORDS)
def test_missing_ids_are_invented_the_same_way_every_time(name: str) -> None:
    request = dragoman.decode_request(WITHOUT_IDS[name], name)
    calls = [call for message in request.messages for call in message.tool_calls]
    results = [result for message in request.messages for result in message.tool_results]
    assert [(call.name, call.arguments["n"]) for call in calls] == CALLS
    assert [result.tool_call_id for result in results] == [call.id for call in calls]
    assert [result.value for result in results] == ["1", "2", "3"]
    assert all(call.invented_id and is_invented(call.id) for call in calls)
    assert len({call.id for call in calls}) == 3
    assert dragoman.decode_request(WITHOUT_IDS[name], name) == request
    listed = dragoman.decode_request({"messages": WITHOUT_IDS[name]}, name)
    assert [call.id for message in listed.messages for call in message.tool_calls] == [call.id for call in calls]
    assert plain(dragoman.encode_request(request, name).json()) == WITHOUT_IDS[name]


@pytest.mark.parametrize("name", RECORDS)
def test_results_without_ids_may_come_in_another_order(name: str) -> None:
    body = WITHOUT_IDS[name]
    turned = (
        [body[0], {**body[1], "content": body[1]["content"][::-1]}]
        if name == "multi-llm-chat"
        else [*body[:-3], *body[:-4:-1]]
    )
    request = dragoman.decode_request(turned, name)
    calls = {call.id: call.name for message in request.messages for call in message.tool_calls}
    results = [result for message in request.messages for result in message.tool_results]
    assert [calls[result.tool_call_id] for result in results] == [result.name for result in results]


def test_old_loops_answered_a_call_without_id_by_the_name_of_its_tool() -> None:
    body = [
        {"role": "gemini", "content": [{"type": "tool_call", "content": {"name": "f", "arguments": {}}}]},
        {"role": "tool", "content": [{"type": "tool_result", "name": "f", "content": "x", "tool_call_id": "f"}]},
        {"role": "gemini", "content": [{"type": "tool_call", "content": {"name": "g", "arguments": {}}}]},
        {"role": "tool", "content": [{"type": "tool_result", "name": "g", "content": "y", "tool_call_id": "unknown"}]},
    ]
    request = dragoman.decode_request(body, "multi-llm-chat")
    for calling, answering in ((0, 1), (2, 3)):
        (call,), (result,) = request.messages[calling].tool_calls, request.messages[answering].tool_results
        assert result.tool_call_id == call.id
    assert plain(dragoman.encode_request(request, "multi-llm-chat").json()) == body
