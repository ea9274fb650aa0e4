"""Answers in record formats: one message of the assistant, with what the format says about it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

import dragoman
from dragoman import ir
from dragoman.errors import DecodeError
from tests import strategies
from tests.support.calls import all_calls
from tests.support.cases import each
from tests.support.formats import FORMATS, complaints
from tests.support.promises import promise
from tests.support.records import RECORDS, agent_sdk, modular_prompt, multi_llm_chat, universal
from tests.support.trees import difference, plain

pytestmark = promise("law:1-identity")

_USAGE = st.fixed_dictionaries(
    {"model": st.just("m"), "input_tokens": strategies.COUNTS, "output_tokens": strategies.COUNTS},
    optional={
        "input_cached_tokens": st.none() | st.just(1),
        "input_cache_creation_tokens": st.just(2),
        "input_image_tokens": st.just(0),
        "total_tokens": strategies.COUNTS,
        "x_cost": st.just(0.5),
    },
)


def _has_text(record: dict[str, Any]) -> bool:
    return record.get("role") == "assistant"


def _query_result(record: dict[str, Any], reason: str | None) -> dict[str, Any]:
    kept = {key: value for key, value in record.items() if key != "role"}
    counts = {"promptTokens": 1, "completionTokens": 2, "x": 1}
    return kept if reason is None else {**kept, "finishReason": reason, "usage": counts}


def _has_no_results(entry: dict[str, Any]) -> bool:
    content = entry.get("content")
    parts = content if isinstance(content, list) else []
    kinds = [part.get("type") for part in parts if isinstance(part, dict)]
    return "tool_result" not in kinds and entry["role"] not in {"user", "tool", "system"}


ANSWERS: dict[str, SearchStrategy[Any]] = {
    "universal": universal().filter(_has_text),
    "modular-prompt": st.builds(
        _query_result, modular_prompt().filter(_has_text), st.sampled_from(("stop", "tool_calls", "odd", None))
    ),
    "agent-sdk": st.fixed_dictionaries(
        {"messages": st.lists(agent_sdk().filter(lambda r: r["role"] in {"assistant", "reasoning"}), max_size=2)},
        optional={"usage": _USAGE, "stop_reason": st.sampled_from(("end_turn", "tool_use", "odd")), "x": st.just(1)},
    ),
    "multi-llm-chat": multi_llm_chat().filter(_has_no_results),
}


@given(data=st.data())
@each("name", RECORDS)
def test_answers_come_back_as_they_were(name: str, data: st.DataObject) -> None:
    body = data.draw(ANSWERS[name])
    completion = dragoman.decode_response(json.dumps(body), name)
    assert difference(body, plain(dragoman.encode_response(completion, name).json())) is None


@given(completion=strategies.COMPLETIONS, target=st.sampled_from(FORMATS))
@each("source", RECORDS)
def test_answers_satisfy_the_clients_of_every_api(source: str, completion: ir.Completion, target: str) -> None:
    body = dragoman.encode_response(completion, source).json()
    assert complaints(dragoman.translate_response(body, source=source, target=target), target) == ()


@given(completion=strategies.COMPLETIONS)
@each("store", RECORDS)
def test_answers_of_apis_keep_their_words_and_calls(store: str, completion: ir.Completion) -> None:
    stored = dragoman.encode_response(completion, store)
    there = dragoman.decode_response(stored.json(), store)
    # A record with a word for how the answer ended keeps all calls; one without keeps only those that may be run.
    calls = all_calls(completion) if store in {"agent-sdk", "modular-prompt"} else completion.tool_calls
    assert [(call.id, call.name) for call in all_calls(there)] == [(call.id, call.name) for call in calls]
    assert {call.id for call in there.tool_calls} <= {call.id for call in completion.tool_calls}
    assert completion.text in there.text or stored.losses


@pytest.mark.parametrize("name", ["universal", "multi-llm-chat"])
@pytest.mark.parametrize("role", ["user", "tool", "system"])
def test_only_a_model_answers(name: str, role: str) -> None:
    with pytest.raises(DecodeError, match=r"at \$\.role"):
        dragoman.decode_response({"role": role, "content": "x"}, name)


@pytest.mark.parametrize("name", RECORDS)
def test_bodies_that_are_not_answers(name: str) -> None:
    for body in (b"", b"[]", b"5", b"{"):
        with pytest.raises(DecodeError):
            dragoman.decode_response(body, name)
