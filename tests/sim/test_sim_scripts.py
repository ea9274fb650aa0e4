"""Scripts: what the model says instead, in every API and from every kind of file."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman.sim.conversation_view import Call, Prompt, Tool, Turn
from dragoman.sim.script import ScriptedTurn, ScriptPlayer, load_script, read_script
from dragoman.sim.server import Simulator
from tests.sim.wire import DOORS, ask

EVERY = pytest.mark.parametrize("api", DOORS)
YAML = """
turns:
  - when: {api: "openai-*", says: weather}
    text: One moment.
    calls:
      - {name: get_weather, arguments: {city: Paris}}
  - error: overloaded
    retry_after: 1.5
afterwards: error
"""
JSON = """
{"turns": [
  {"when": {"api": "openai-*", "says": "weather"}, "text": "One moment.",
   "calls": [{"name": "get_weather", "arguments": {"city": "Paris"}}]},
  {"error": "overloaded", "retry_after": 1.5}],
 "afterwards": "error"}
"""
TOML = """
afterwards = "error"
[[turns]]
when = {api = "openai-*", says = "weather"}
text = "One moment."
calls = [{name = "get_weather", arguments = {city = "Paris"}}]
[[turns]]
error = "overloaded"
retry_after = 1.5
"""


def prompt_of(text: str = "hi", model: str = "m") -> Prompt:
    return Prompt(model, (Turn("user", text),))


@EVERY
def test_turns_are_used_in_order_and_then_the_model_answers(dragoman_sim: Simulator, api: str) -> None:
    door = DOORS[api]
    dragoman_sim.play({"text": "First."}, {"text": "Second."})
    texts = [door.text_of(ask(dragoman_sim, door, door.ask("Say: third")).json) for _ in range(3)]
    assert texts == ["First.", "Second.", "third"]


@EVERY
def test_a_scripted_stream_has_the_pieces_that_were_asked_for(dragoman_sim: Simulator, api: str) -> None:
    door = DOORS[api]
    dragoman_sim.play({"text": "abcdefghij", "chunk": 4, "reasoning": "hm"})
    body = ask(dragoman_sim, door, door.ask("hi"), stream=True).body
    assert all(f'"{piece}"'.encode() in body for piece in ("abcd", "efgh", "ij"))


@EVERY
def test_a_scripted_call_and_its_finish(dragoman_sim: Simulator, api: str) -> None:
    door = DOORS[api]
    dragoman_sim.play({"calls": [{"name": "anything", "arguments": {"a": [1, {"b": None}]}}]})
    answer = ask(dragoman_sim, door, door.ask_with_tool("hi"))
    assert answer.status == 200
    assert "anything" in answer.body.decode()


@EVERY
def test_a_scripted_refusal_of_the_model(dragoman_sim: Simulator, api: str) -> None:
    door = DOORS[api]
    for stream in (False, True):
        dragoman_sim.play({"text": "I would rather not.", "finish": "refusal", "chunk": 50})
        answer = ask(dragoman_sim, door, door.ask("hi"), stream=stream)
        assert answer.status == 200
        assert "rather" in answer.body.decode("utf-8", "replace")


def test_errors_cuts_and_counts(dragoman_sim: Simulator) -> None:
    door = DOORS["openai-chat"]
    dragoman_sim.play(
        {"status": 503, "message": "back soon"},
        {"text": "x", "usage": {"input": 1000, "output": 50, "thought": 7}},
        {"text": "always", "times": 0},
    )
    refused = ask(dragoman_sim, door, door.ask("hi"))
    assert (refused.status, door.message_of(refused.json)) == (503, "back soon")
    usage = ask(dragoman_sim, door, door.ask("hi")).json["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (1000, 50, 1050)
    assert usage["completion_tokens_details"]["reasoning_tokens"] == 7
    assert [door.text_of(ask(dragoman_sim, door, door.ask("hi")).json) for _ in range(3)] == ["always"] * 3


def test_arguments_that_do_not_parse(dragoman_sim: Simulator) -> None:
    door = DOORS["openai-chat"]
    dragoman_sim.play({"calls": [{"name": "get_weather", "text": '{"city": "Par'}]})
    message = ask(dragoman_sim, door, door.ask_with_tool("hi")).json["choices"][0]["message"]
    assert message["tool_calls"][0]["function"]["arguments"] == '{"city": "Par'


def test_conditions_choose_the_turn() -> None:
    script = read_script(
        [
            {"when": {"api": "gemini"}, "text": "a"},
            {"when": {"model": "gpt-*", "says": "WEATHER"}, "text": "b"},
            {"when": {"rounds": 1}, "text": "c"},
            {"when": {"tool": "get_*"}, "text": "d"},
        ]
    )
    prompter = ScriptPlayer(script)
    called = Prompt("m", (Turn("user", "hi"), Turn("assistant", calls=(Call("1", "f"),)), Turn("user", "x")))

    def answer_text(api: str, question: Prompt) -> str | None:
        turn = prompter.next(api, question)
        return turn.text if turn else None

    assert answer_text("ollama-chat", prompt_of()) is None
    assert answer_text("openai-chat", prompt_of("the weather?", "gpt-4o")) == "b"
    assert answer_text("ollama-chat", called) == "c"
    assert answer_text("ollama-chat", replace(prompt_of(), tools=(Tool("set_x"), Tool("get_x")))) == "d"
    assert prompter.left == 1
    assert answer_text("gemini", prompt_of()) == "a"
    assert prompter.left == 0


@pytest.mark.parametrize(("name", "text"), [("a.yaml", YAML), ("a.yml", YAML), ("a.json", JSON), ("a.toml", TOML)])
def test_files_of_every_kind(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    script = load_script(tmp_path / name)
    assert script.afterwards == "error"
    assert script.turns[0].calls[0].arguments == {"city": "Paris"}
    assert script.turns[1] == ScriptedTurn(error="overloaded", retry_after=1.5)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.json", '{"turns": [{"txt": "x"}]}', "txt"),
        ("a.json", '{"turns": [', "truncated"),
        ("a.yaml", "turns: [", "a.yaml"),
        ("a.toml", "turns = ", "a.toml"),
        ("a.ini", "", "a script is .json, .toml, .yaml or .yml"),
    ],
)
def test_a_bad_file_is_explained(tmp_path: Path, name: str, text: str, words: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=words):
        load_script(tmp_path / name)


def test_an_exhausted_script_may_be_an_error(dragoman_sim: Simulator) -> None:
    door = DOORS["anthropic-messages"]
    dragoman_sim.service.play({"turns": [{"text": "once"}], "afterwards": "error"})
    assert [ask(dragoman_sim, door, door.ask("hi")).status for _ in range(2)] == [200, 500]


@pytest.mark.dragoman_script([{"text": "from the marker"}])
def test_a_marker_brings_a_script(dragoman_sim: Simulator) -> None:
    door = DOORS["openai-responses"]
    assert door.text_of(ask(dragoman_sim, door, door.ask("hi")).json) == "from the marker"


def test_the_next_test_starts_afresh(dragoman_sim: Simulator) -> None:
    assert dragoman_sim.requests == []
    assert dragoman_sim.service.prompter.left == 0


def test_an_invalid_turn_is_reported_at_once(dragoman_sim: Simulator) -> None:
    turn: Any = {"calls": [{"nam": "f"}]}
    with pytest.raises(msgspec.ValidationError, match="nam"):
        dragoman_sim.play(turn)
    assert json.loads("{}") == {}


# How each API names the finish reason; Responses only has the status of an incomplete answer.
WORDS: dict[str, Any] = {
    "openai-chat": lambda body: body["choices"][0]["finish_reason"],
    "azure-openai": lambda body: body["choices"][0]["finish_reason"],
    "openai-responses": lambda body: body["incomplete_details"]["reason"],
    "anthropic-messages": lambda body: body["stop_reason"],
    "anthropic-vertex": lambda body: body["stop_reason"],
    "gemini": lambda body: body["candidates"][0]["finishReason"],
    "vertex": lambda body: body["candidates"][0]["finishReason"],
    "ollama-chat": lambda body: body["done_reason"],
    "cohere-chat": lambda body: body["finish_reason"],
    "gemini-interactions": lambda body: body["status"],
    "vertex-interactions": lambda body: body["status"],
    "bedrock-converse": lambda body: body["stopReason"],
}


@EVERY
def test_an_unknown_finish_reason(dragoman_sim: Simulator, api: str) -> None:
    door = DOORS[api]
    dragoman_sim.play({"text": "So", "finish_word": "tired", "times": 2})
    assert WORDS[api](ask(dragoman_sim, door, door.ask("hi")).json) == "tired"
    assert b'"tired"' in ask(dragoman_sim, door, door.ask("hi"), stream=True).body
