import io
import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from dragoman.cli import main
from dragoman.inspection.bodies import describe_completion, describe_failure, describe_request
from dragoman.inspection.tree import Node, render
from dragoman.ir import (
    Audio,
    Cache,
    Citation,
    Completion,
    CustomTool,
    Document,
    Failure,
    Finish,
    Image,
    Message,
    Opaque,
    ProviderTool,
    Reasoning,
    ReasoningSettings,
    Refusal,
    Request,
    ServerToolCall,
    ServerToolResult,
    Signature,
    StructuredOutput,
    Text,
    ToolCall,
    ToolChoice,
    ToolDefinition,
    ToolResult,
    Usage,
)
from dragoman.terminal import Terminal, columns, shorten, terminal_of, visible
from tests.cli.command import PLAIN

PIPE = Terminal(width=200, colour=False, lines=False)
SCHEMA = {"type": "object", "properties": {"location": {}, "unit": {}}, "required": ["location"]}


def shown(node: Node, terminal: Terminal = PIPE) -> str:
    return "\n".join(render(node, terminal))


def request_with(*messages: Message, **fields: Any) -> str:
    return shown(describe_request(Request("m", messages, **fields), "openai-chat"))


def line_with(text: str, word: str) -> str:
    (found,) = [line for line in text.splitlines() if word in line]
    return found.lstrip("|`- ")


# ── what is in it ─────────────────────────────────────────────────────────────────────────────────────────────


def test_calls_are_paired_with_their_results() -> None:
    text = request_with(
        Message("user", "weather?"),
        Message("assistant", (ToolCall("c1", "get_weather", {"location": "Tokyo"}), ToolCall("c2", "search", {}))),
        Message("tool", (ToolResult("c1", "get_weather", "data", {"temp": 22}),)),
        Message("tool", (ToolResult("c9", "search", "text", "lost"),)),
    )
    assert line_with(text, "call get_weather") == 'call get_weather {"location":"Tokyo"}  c1 → answered in [2]'
    assert line_with(text, "call search") == "call search {}  c2  no result"
    assert line_with(text, "result get_weather") == 'result get_weather, data {"temp":22}  c1 ← called in [1]'
    assert line_with(text, "result search") == 'result search, text "lost"  c9  no such call'


def test_a_second_result_for_a_call_is_marked() -> None:
    result = ToolResult("c", "f", "text", "x")
    text = request_with(Message("assistant", (ToolCall("c", "f", {}),)), Message("tool", (result, result)))
    assert text.count("one of 2 results") == 2


def test_calls_of_an_answer_wait_for_their_results() -> None:
    completion = Completion((Message("assistant", (ToolCall("c", "f", {}),)),), Finish("tool_calls", "tool_use"))
    text = shown(describe_completion(completion, "anthropic-messages"))
    assert "no result" not in text
    assert line_with(text, "finish") == "finish tool_calls  reported as tool_use"


def test_broken_calls_are_marked() -> None:
    call = ToolCall("c", "f", arguments_text='{"a": ', incomplete=True)
    text = request_with(Message("assistant", (call,)), Message("tool", (ToolResult("c", "f", "error", "cut"),)))
    assert line_with(text, "call f").endswith("arguments are not a JSON object, cut off")
    assert line_with(text, "error f") == 'error f "cut"  c ← called in [0]'


PARTS = (
    (Text("hi\nthere", cache=Cache("1h")), 'text "hi⏎there"  cache mark 1h'),
    (Text("hi", signature=Signature("google", "x")), 'text "hi"  signed by google'),
    (Text("hi", metadata={"openai": {"a": 1, "~b": 2}}), 'text "hi"  openai only: a'),
    (Reasoning("hm", Signature("anthropic", "x")), 'reasoning "hm"  signed by anthropic'),
    (Reasoning("", Signature("anthropic", "x"), redacted=True), 'redacted reasoning ""  signed by anthropic'),
    (Refusal("no"), 'refusal "no"'),
    (Image(media_type="image/png", data="A" * 4000, detail="low"), "image image/png, 3.0 kB, detail low"),
    (Image(media_type="image/png", data="AAA="), "image image/png, 2 bytes"),
    (Image(url="https://x.example/i.png"), "image https://x.example/i.png"),
    (Document(media_type="application/pdf", file_id="file_1"), "document application/pdf, file file_1"),
    (Document(text="é", title="T"), 'document 2 bytes, "T"'),
    (Audio(media_type="audio/wav", data="A" * 4_000_000), "audio audio/wav, 3.0 MB"),
    (ServerToolCall("s", "search", "anthropic", {"q": 1}), 'server call search {"q":1}  s, run by anthropic'),
    (ServerToolResult("s", "search", "anthropic", {"q": 1}), 'server result search {"q":1}  s, from anthropic'),
    (Opaque("openai", "future", {"x": 1}), 'block future {"x":1}  only openai understands it'),
)


@pytest.mark.parametrize(("part", "expected"), PARTS, ids=[expected.split()[0] for _, expected in PARTS])
def test_parts(part: Any, expected: str) -> None:
    assert request_with(Message("user", (part,))).splitlines()[-1].lstrip("|`- ") == expected


def test_what_is_too_deep_to_print_is_still_shown() -> None:
    call = ToolCall("c", "f", Raw(b'{"a":' + b"[" * 200_000 + b"]" * 200_000 + b"}"))
    assert "call f (nested too deeply to show)" in request_with(Message("assistant", (call,)))


def test_citations_and_parts_of_results_hang_below() -> None:
    text = request_with(
        Message("assistant", (Text("x", (Citation(url="https://x.example"),)), ToolCall("c", "f", {}))),
        Message("tool", (ToolResult("c", "f", "multimodal", parts=(Text("seen"), Image(url="u"))),)),
    )
    assert line_with(text, "cites") == "cites https://x.example"
    assert line_with(text, "seen") == 'text "seen"'


def test_settings_tools_and_private_keys() -> None:
    text = request_with(
        Message("user", "hi"),
        tools=(
            ToolDefinition("get_weather", "Weather now", SCHEMA, strict=True),
            ToolDefinition("ping"),
            CustomTool("python", "Runs code"),
            ProviderTool("search", "google", {"googleSearch": {}}),
        ),
        tool_choice=ToolChoice("required", ("ping",)),
        temperature=0.5,
        stop=("END",),
        parallel_tool_calls=False,
        reasoning=ReasoningSettings("on", "high", 1000, visible=False),
        output=StructuredOutput("schema", SCHEMA, "answer", strict=True),
        metadata={"openai": {"service_tier": "flex", "~max_tokens": True}},
    )
    assert line_with(text, "get_weather") == "get_weather(location, unit?) Weather now  strict"
    assert line_with(text, "ping()") == "ping()"
    assert line_with(text, "python") == "python(free text) Runs code  custom"
    assert line_with(text, "google") == "search  run or defined by google"
    assert line_with(text, "tool_choice") == "tool_choice required: ping"
    assert line_with(text, "temperature") == "temperature 0.5"
    assert line_with(text, "stop") == 'stop ["END"]'
    assert line_with(text, "parallel") == "parallel_tool_calls false"
    assert line_with(text, "reasoning") == "reasoning on, effort high, at most 1000 tokens, hidden"
    assert line_with(text, "output") == "output JSON Schema answer(location, unit?), strict"
    assert line_with(text, "service_tier") == 'service_tier "flex"'
    assert "~" not in text


def test_an_answer_with_usage_and_candidates() -> None:
    completion = Completion(
        (Message("assistant", "a"), Message("assistant", ())),
        Finish("stop", "stop"),
        Usage(10, 5, cached=4, reasoning=2, total=15),
        model="m",
        finishes=(Finish("stop", "stop"), Finish("length", "MAX_TOKENS")),
    )
    text = shown(describe_completion(completion, "gemini"))
    assert text.splitlines()[0] == "gemini response model m"
    assert line_with(text, "usage") == "usage input 10 (cached 4), output 5 (reasoning 2), total 15"
    assert line_with(text, "MAX_TOKENS") == "finish length  reported as MAX_TOKENS"
    assert line_with(text, "empty") == "empty"


def test_an_error() -> None:
    text = shown(describe_failure(Failure("rate_limit", "slow down", 429, retry_after=1.5, details=[1]), "gemini"))
    assert text.splitlines()[0] == "gemini error slow down"
    assert line_with(text, "retry_after") == "retry_after 1.5"
    assert line_with(text, "details") == "details [1]"


# ── the command ───────────────────────────────────────────────────────────────────────────────────────────────


def test_a_body_is_named_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in.json").write_text(json.dumps(PLAIN))
    assert main(["inspect", str(tmp_path / "in.json")]) == 0
    assert capsys.readouterr().out == ('openai-chat request model m, 1 message\n`- [0] user\n   `- text "hi"\n')


def test_lines_are_trees_one_after_the_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "later"}}
    (tmp_path / "in.jsonl").write_text(f"{json.dumps(PLAIN)}\n\n{json.dumps(error)}\n")
    assert main(["inspect", str(tmp_path / "in.jsonl")]) == 0
    first, second = capsys.readouterr().out.split("\n\n")
    assert first.startswith("line 1: openai-chat request")
    assert second.startswith("line 3: anthropic-messages error later")


def test_long_texts_are_shortened_unless_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    (tmp_path / "in.json").write_text(json.dumps({"messages": [{"role": "user", "content": "word " * 500}]}))
    assert main(["inspect", str(tmp_path / "in.json")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) == 60
    assert lines[-1].endswith("…")
    assert main(["inspect", "--full", str(tmp_path / "in.json")]) == 0
    assert "word " * 500 in capsys.readouterr().out


def test_what_was_asked_for_is_believed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in.json").write_text(json.dumps({**PLAIN, "max_tokens": 9}))
    assert main(["inspect", str(tmp_path / "in.json"), "--from", "anthropic-messages"]) == 0
    assert capsys.readouterr().out.startswith("anthropic-messages request")


# ── the terminal ──────────────────────────────────────────────────────────────────────────────────────────────


class Screen(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def test_lines_and_colours_only_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    on_screen, in_pipe = terminal_of(Screen()), terminal_of(io.StringIO())
    assert (on_screen.colour, on_screen.lines) == (True, True)
    assert (in_pipe.colour, in_pipe.lines) == (False, False)
    tree = Node("root", style="bold", children=[Node("a"), Node("b", children=[Node("c")])])
    assert shown(tree, in_pipe) == "root\n|- a\n`- b\n   `- c"
    assert "└─" in shown(tree, on_screen)
    assert "\x1b[1mroot\x1b[0m" in shown(tree, on_screen)


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_colours_can_be_turned_off(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    assert not terminal_of(Screen()).colour
    assert terminal_of(Screen()).lines


def test_no_box_drawing_where_it_cannot_be_encoded() -> None:
    screen = Screen()
    screen.encoding = "latin-1"
    assert not terminal_of(screen).lines


def test_nothing_in_a_body_can_command_the_terminal() -> None:
    text = request_with(Message("user", "\x1b[2Jgone\x07\u202e\x9b31m"))
    assert "gone" in text
    assert all(line.isprintable() for line in text.splitlines())


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("short", 5, "short"),
        ("longer", 5, "long…"),
        ("天気予報", 8, "天気予報"),
        ("天気予報", 7, "天気予…"),
        ("", 3, ""),
    ],
)
def test_shortened_by_columns(text: str, width: int, expected: str) -> None:
    assert shorten(text, width) == expected
    assert columns(shorten(text, width)) <= width


def test_visible_keeps_the_length() -> None:
    assert visible("a\tb\nc\x00") == "a b⏎c�"


def test_a_huge_text_is_not_read_to_show_a_line() -> None:
    text = shown(describe_request(Request("m", (Message("user", "x" * 50_000_000),)), "openai-chat"))
    assert len(text) < 1000


def test_colours_tell_roles_apart_where_they_are_wanted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "body.json"
    file.write_text(json.dumps({"messages": [{"role": "system", "content": "a"}, {"role": "user", "content": "b"}]}))
    assert main(["inspect", str(file), "--from", "openai-chat"]) == 0
    assert "\x1b[" not in capsys.readouterr().out
    assert main(["inspect", str(file), "--from", "openai-chat", "--color", "always"]) == 0
    coloured = capsys.readouterr().out
    assert "\x1b[33m[0] system\x1b[0m" in coloured
    assert "\x1b[36m[1] user\x1b[0m" in coloured
    assert main(["inspect", str(file), "--color", "sometimes"]) == 2
    assert "'sometimes'" in capsys.readouterr().err
