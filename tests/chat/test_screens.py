"""What a person sees: `dragoman chat` in a real terminal, looked at through a terminal emulator."""

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from wcwidth import wcswidth

from dragoman.chat.stores import FileStore
from dragoman.chat.terminal.panels import recent
from dragoman.sim.server import Simulator
from tests.support.promises import promise
from tests.support.terminals import ROOT, Program, terminal

MODELS = {"ann": "claude-sonnet-5", "bob": "claude-opus-4-8"}
ONE = ["chat", "-m", f"ann=anthropic/{MODELS['ann']}"]
TWO = [*ONE, "-m", f"bob=anthropic/{MODELS['bob']}"]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"CHAT_HISTORY_DIR": str(tmp_path), "CHAT_HISTORY_USER_ID": "me", "ANTHROPIC_API_KEY": "x"}


@pytest.fixture
def simulator(environment: dict[str, str]) -> Iterator[Simulator]:
    with Simulator() as started:
        environment["ANTHROPIC_BASE_URL"] = started.url
        yield started


def ready(program: Program) -> None:
    program.wait("Help: /help")
    program.wait("> ")


def by(name: str, **turn: Any) -> dict[str, Any]:
    """A turn of the script for this model only."""
    return {"when": {"model": MODELS[name]}, **turn}


MARKDOWN = "# Plan\n\nSome **bold** words.\n\n- first\n- second\n\n```python\nprint('hi')\n```\n\nLast line."


@promise("chat:terminal-markdown")
def test_markdown_is_drawn_while_it_comes(environment: dict[str, str], simulator: Simulator) -> None:
    simulator.play({"text": MARKDOWN, "chunk": 6, "stall": 12})
    with terminal(ONE, environment) as program:
        ready(program)
        program.type("@ann plan\n")
        program.see("ann …", "bold", "• first")  # while the answer stands still in its middle
        assert "**" not in "\n".join(program.lines)
        assert not any("Last line." in line for line in program.lines)


@promise("chat:terminal-tools")
def test_calls_have_panels_with_arguments_and_results(environment: dict[str, str]) -> None:
    with terminal(["chat", "--demo"], environment) as program:
        ready(program)
        program.type("@claude weather in Paris?\n")
        lines = program.see("-> get_weather", '{"city":"Paris"}', "<- get_weather", "18 °C, light rain", "says:")
        places = [
            next(number for number, line in enumerate(lines) if words in line)
            for words in (
                "─ claude",
                "-> get_weather",
                '{"city"',
                "<- get_weather",
                "│ Paris: 18",
                "says:",
                "tokens ─╯",
            )
        ]
        assert places == sorted(places)


@promise("chat:gauge")
def test_every_answer_says_how_full_the_window_is(environment: dict[str, str], simulator: Simulator) -> None:
    simulator.play({"text": "Yes."})
    with terminal(ONE, environment) as program:
        ready(program)
        program.type("@ann hello\n")
        line = next(line for line in program.see("tokens ─╯") if "tokens" in line)
        assert re.search(r"~\d+ of 1,000,000 tokens ─╯$", line)


@promise("chat:terminal-columns")
@pytest.mark.parametrize(("columns", "side_by_side"), [(120, True), (60, False)])
def test_columns_where_there_is_room_and_frames_that_fit(
    columns: int,
    side_by_side: bool,  # noqa: FBT001
    environment: dict[str, str],
    simulator: Simulator,
) -> None:
    """Japanese, Korean and emoji take two columns a sign; every frame is straight all the same."""
    wide = "東京の天気は晴れ、気温は二十五度です。🎉 한국어도 정렬됩니다。全角　空白。" * 3
    simulator.play(by("ann", text=wide), by("bob", text="Plain words, " * 12))
    with terminal(TWO, environment, columns=columns) as program:
        ready(program)
        program.type("@all hello\n")
        lines = program.until(lambda lines: sum("tokens ─╯" in line for line in lines) == 2)
        assert any("─ ann" in line and "─ bob" in line for line in lines) == side_by_side
        framed = [line for line in lines if line.startswith(("╭", "│", "╰"))]
        assert len(framed) > 6
        left = columns // 2 - 1 if side_by_side else columns
        assert {wcswidth(re.split(r"(?<=[╮│╯])( |$)", line[1:])[0]) + 1 for line in framed} == {left}
        assert "…" not in "".join(lines)
        column = "".join(re.findall(r"[^\s│]", "".join(line[1:].partition("│")[0] for line in framed)))
        assert "".join(wide.split()) in column  # and nothing was cut away to make it fit


@promise("chat:terminal-resize")
def test_a_terminal_resized_during_an_answer_is_redrawn(environment: dict[str, str], simulator: Simulator) -> None:
    simulator.play({"text": "".join(f"word{number} " for number in range(100)), "chunk": 12, "drip": 0.002})
    with terminal(ONE, environment, columns=100, rows=24) as program:
        ready(program)
        program.type("@ann talk\n")
        program.wait("word9")
        for columns, rows in ((60, 20), (44, 12), (90, 30)):
            program.resize(columns, rows)
            program.read(0.2)
        program.see("word99", "tokens ─╯")
        framed = [line for line in program.lines if line.startswith(("│", "╰"))]
        assert {wcswidth(line) for line in framed} == {90}
        program.type("/exit\n")
        assert program.ended() == 0


WRONG: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "error": ({"error": "invalid", "message": "this model is out of order"}, ("out of order",)),
    "broken": ({"text": "Half an answer", "chunk": 4, "cut": 6}, ("Half an", "error]")),
    "refused": ({"text": "No.", "finish": "refusal"}, ("refused]", "declined")),
    "empty": ({"text": ""}, ("empty]", "no answer")),
    "cut": ({"text": "Long", "finish": "length"}, ("Long", "cut]")),
}


@promise("chat:terminal-resize")
def test_the_size_counts_at_once_also_while_a_model_is_silent(
    environment: dict[str, str], simulator: Simulator
) -> None:
    simulator.play({"text": "one two three", "chunk": 4, "stall": 5})
    with terminal(ONE, environment, columns=100) as program:
        ready(program)
        program.type("@ann talk\n")
        program.see("ann …", "one two")
        for columns, rows in ((60, 20), (44, 12), (90, 30)):
            program.resize(columns, rows)
            program.see("─ ann … " + "─" * (columns - 10) + "╮", "one two")
            assert sum("─ ann …" in line for line in program.lines) == 1
        program.type("\x03")
        program.see("[stopped]")
        program.type("/exit\n")
        assert program.ended() == 0


@promise("chat:terminal-errors", "chat:failures-stored")
@pytest.mark.parametrize("kind", ["xterm-256color", "dumb"])
def test_whatever_goes_wrong_is_on_the_screen(kind: str, environment: dict[str, str], simulator: Simulator) -> None:
    with terminal(ONE, {**environment, "TERM": kind}, rows=60) as program:
        ready(program)
        for name, (turn, words) in WRONG.items():
            simulator.play(turn)
            program.type(f"@ann {name}\n")
            for word in words:
                program.wait(word)
            program.wait("tokens")


@promise("chat:terminal-errors", "chat:all-failure")
def test_a_model_without_a_key_is_reported_at_the_start_and_does_not_stop_the_others(
    environment: dict[str, str], simulator: Simulator
) -> None:
    simulator.play({"text": "Fine."})
    keyless = {**environment, "OPENAI_API_KEY": ""}
    with terminal([*ONE, "-m", "chatgpt"], keyless) as program:
        program.see("@chatgpt cannot answer yet: no key for openai", "Without keys: dragoman chat --demo")
        program.type("@all hello\n")
        program.see("Fine.", "[error] no key for openai")


@promise("chat:terminal-errors")
def test_a_retry_is_announced_during_its_delay(environment: dict[str, str], simulator: Simulator) -> None:
    simulator.play({"error": "rate_limit", "retry_after": 2}, {"text": "At last."})
    with terminal(TWO, environment) as program:
        ready(program)
        program.type("@ann hello\n")
        program.wait("again in 2.0 s")
        program.see("At last.")
        assert not any("again in" in line for line in program.lines)


@promise("chat:terminal-plain")
def test_no_color_takes_the_colours_only(environment: dict[str, str], simulator: Simulator) -> None:
    simulator.play({"text": "Yes."}, {"text": "Yes."})
    for value, coloured in (("1", False), ("", True)):
        with terminal(ONE, {**environment, "NO_COLOR": value}) as program:
            ready(program)
            program.type("@ann hello\n")
            program.see("─ ann ─", "Yes.", "tokens ─╯")
            assert bool(program.colours()) == coloured
            program.type("/history new\n")
            program.see("Leave it?")
            program.type("y\n/exit\n")
            assert program.ended() == 0


@promise("chat:terminal-plain")
def test_a_dumb_terminal_gets_lines_and_no_codes(environment: dict[str, str], simulator: Simulator) -> None:
    simulator.play({"text": "Yes **indeed**.", "chunk": 3})
    with terminal(ONE, {**environment, "TERM": "dumb"}) as program:
        ready(program)
        program.type("@ann hello\n")
        program.see("ann: Yes **indeed**.", "of 1,000,000 tokens)")
        program.type("/help\n")
        program.see("/history list|save|load|new|rename|delete|search  saved conversations")
        assert "\x1b" not in program.written.replace("\x1b[?2004h", "").replace("\x1b[?2004l", "")


@promise("chat:terminal-input")
def test_a_pasted_text_is_one_message_and_blocks_and_names_are_completed(
    environment: dict[str, str], simulator: Simulator
) -> None:
    simulator.play({"text": "Seen.", "times": 0})
    with terminal(ONE, environment) as program:
        ready(program)
        program.type("\x1b[200~@ann line one\nline two\x1b[201~\n")
        program.see("Seen.")
        program.type('"""@ann a block\nof lines"""\n')
        program.wait("tokens ─╯")
        program.type("/hist\tsa\tmy talk\n")
        program.see("saved as 'my talk'")
        program.type("/history load my\t\n")
        program.see("line two", "of lines")
        program.type("\x1b[A\x1b[A\x01\x0b")  # what was typed before comes back; answers to questions are not in it
        program.type("/tok\t\n")
        program.see("░░")
    bodies: list[Any] = [request.json for request in simulator.requests]
    sent = [body["messages"][-1]["content"] for body in bodies]
    texts = [one if isinstance(one, str) else one[-1]["text"] for one in sent]
    assert texts == ["@ann line one\nline two", "@ann a block\nof lines"]


@promise("chat:permissions")
def test_an_answer_that_ends_while_another_asks_is_shown_after_the_question(
    environment: dict[str, str], simulator: Simulator, tmp_path: Path
) -> None:
    tools = tmp_path / "own.py"
    tools.write_text('def wipe(disk: str) -> str:\n    """Wipe a disk."""\n    return "wiped " + disk\n')
    simulator.play(
        by("ann", calls=[{"name": "wipe", "arguments": {"disk": "a"}}]),
        by("bob", text="Bob is done.", delay=0.5),
        by("ann", text="Ann is done."),
    )
    with terminal([*TWO, "--tools", str(tools)], environment, columns=140) as program:
        ready(program)
        program.type("@all go\n")
        program.see('ann wants to run wipe {"disk":"a"}. [y]es, [n]o, [a]lways?')
        program.type("what?\n")  # decides nothing
        program.wait("[a]lways?")
        program.type("y\n")
        lines = program.see("<- wipe", "wiped a", "Ann is done.", "Bob is done.", "tokens ─╯")
        assert any("─ ann" in line and "─ bob" in line for line in lines)


@promise("chat:permissions", "chat:tools")
def test_tools_of_mcp_servers_are_asked_about(
    environment: dict[str, str], simulator: Simulator, tmp_path: Path
) -> None:
    server = ROOT / "tests" / "agent" / "fixtures" / "mcp_server.py"
    servers = tmp_path / "mcp.json"
    servers.write_text(json.dumps({"mcpServers": {"sums": {"command": sys.executable, "args": [str(server)]}}}))
    call = {"calls": [{"name": "greet", "arguments": {"name": "Ann"}}]}
    simulator.play(call, {"text": "Not done."}, call, {"text": "Done."})
    with terminal([*ONE, "--mcp", str(servers)], environment) as program:
        ready(program)
        program.type("@ann greet\n")
        program.see("ann wants to run greet")
        program.type("n\n")
        program.see("!! greet", "Not done.")
        program.type("@ann greet again\n")
        program.wait("ann wants to run greet")
        program.type("y\n")
        program.see("<- greet", "Hello, Ann!", "Done.")


@promise("chat:terminal-interrupt")
def test_ctrl_c_also_stops_a_tool_that_hangs_and_what_was_typed_ahead_is_not_lost(
    environment: dict[str, str], simulator: Simulator, tmp_path: Path
) -> None:
    tools = tmp_path / "own.py"
    tools.write_text('import time\n\ndef hang() -> str:\n    """Hang."""\n    time.sleep(600)\n    return ""\n')
    simulator.play({"text": "Wait.", "calls": [{"name": "hang"}]}, {"text": "Still here."})
    with terminal([*ONE, "--tools", str(tools), "--approve", "all"], environment) as program:
        ready(program)
        program.type("@ann hang\n")
        program.see("ann …", "-> hang")
        program.type("@ann typed ah")  # not shown in the middle of the answer
        program.type("\x03")
        lines = program.see("[stopped]", "stopped by the user")
        assert sum("─ ann" in line for line in lines) == 1  # nothing is left of what was drawn before
        program.type("@ann and now?\x03\n")
        program.until(lambda lines: lines[-1:] == [""] and any(line == ">" for line in lines))
        program.type("@ann still there?\n")
        program.see("Still here.")
        program.type("\x04")  # and the program ends, though the tool does not
        assert program.ended() == 0


@promise("chat:terminal-interrupt")
def test_ctrl_d_typed_while_an_answer_is_written_ends_the_program_after_it(
    environment: dict[str, str], simulator: Simulator
) -> None:
    simulator.play({"text": "One. Two. Three.", "chunk": 4, "drip": 0.004})
    with terminal(ONE, environment) as program:
        ready(program)
        program.type("@ann go on\n")
        program.see("ann …")
        program.type("\x04")
        assert program.ended() == 0
        assert "Three." in program.screen


@promise("chat:crash", "chat:terminal-draft")
def test_killed_in_mid_answer_everything_that_was_shown_is_offered_again(
    environment: dict[str, str], simulator: Simulator
) -> None:
    simulator.play(by("ann", text="one two three four five", chunk=4, stall=6), by("bob", text="Bob was done."))
    with terminal(TWO, environment) as program:
        ready(program)
        program.type("@all go\n")
        lines = program.see("Bob was done.", "one two")
        seen = next(line for line in lines if "one two" in line).split("│")[1].strip()
        os.kill(program.process, 9)
    with terminal(TWO, environment) as program:
        program.see("left unsaved", "[t]hrow away")
        program.type("@all hello\n")  # typed ahead: no answer to the question, and nothing is thrown away
        program.wait("[t]hrow away")
        program.type("y\n")
        program.see("@all go", seen, "[interrupted]", "Bob was done.")
        program.type("/exit\n")
        assert program.ended() == 0
    with terminal(TWO, environment) as program:  # it is still there, until it is saved or thrown away
        program.see("left unsaved")
        program.type("t\n")
        program.wait("> ")
        program.type("/exit\n")
        assert program.ended() == 0
    with terminal(TWO, environment) as program:
        ready(program)
        assert "left unsaved" not in program.screen


@promise("chat:two-writers", "chat:terminal-commands")
def test_what_was_saved_elsewhere_is_not_overwritten_unasked(environment: dict[str, str], simulator: Simulator) -> None:
    simulator.play({"text": "Yes.", "times": 0})
    store = FileStore(environment["CHAT_HISTORY_DIR"], "me")
    with terminal(ONE, environment) as program:
        ready(program)
        program.type("@ann one\n")
        program.see("Yes.")
        program.type("/history save shared\n")
        program.see("saved as 'shared'")
        store.save(structs.replace(store.load("shared"), system_prompt="theirs"))
        program.type("@ann two\n")
        program.wait("tokens ─╯")
        program.type("/history save\n")
        program.see("changed elsewhere", "save a [c]opy")
        program.type("c\n")
        program.see("saved as 'shared (2)'")
        program.type("/exit\n")
        assert program.ended() == 0
    assert (store.load("shared").system_prompt, len(store.load("shared").entries)) == ("theirs", 2)
    assert len(store.load("shared (2)").entries) == 4


@promise("chat:legacy", "chat:terminal-tools")
def test_an_old_history_is_shown_with_its_tools_in_panels_in_their_place(
    environment: dict[str, str], tmp_path: Path
) -> None:
    call = {"type": "tool_call", "name": "weather", "arguments": {"city": "東京"}}
    result = {"type": "tool_result", "name": "weather", "content": "晴れ"}
    turns = [
        {"role": "user", "content": "@gemini 天気は"},
        {"role": "gemini", "content": [{"type": "text", "content": "Before."}, call, "After."]},
        {"role": "tool", "content": [{**result, "tool_call_id": "weather"}]},
        {"role": "gemini", "content": "It is **sunny**."},
    ]
    (tmp_path / "old.json").write_text(json.dumps({"display_name": "Old", "turns": turns}))
    with terminal([*ONE, "--load", str(tmp_path / "old.json")], environment) as program:
        lines = program.see(
            "天気は", "Before.", "─ -> weather", "東京", "After.", "─ <- weather", "晴れ", "It is sunny."
        )
        words = ("天気は", "Before.", "-> weather", '{"city":"東京"}', "After.", "<- weather", "│ 晴れ", "It is sunny.")
        places = [next(number for number, line in enumerate(lines) if word in line) for word in words]
        assert places == sorted(places)


@promise("chat:terminal-markdown")
def test_a_long_answer_is_drawn_from_a_paragraph_on_and_code_stays_code() -> None:
    assert recent("short") == "short"
    paragraphs = "\n\n".join(f"Paragraph {number} of many." for number in range(1000))
    kept = recent(paragraphs)
    assert len(kept) < 7_000
    assert kept.startswith("Paragraph ")
    assert kept.endswith("Paragraph 999 of many.")
    code = "```python\n" + "\n".join(f"x = {number}" for number in range(2000))
    assert recent(code).startswith("```\n")
    assert not recent(f"{code}\n```\n\n{paragraphs}").startswith("```")


@promise("chat:terminal-commands")
def test_an_answer_goes_into_the_clipboard_and_a_renamed_conversation_keeps_what_is_not_saved(
    environment: dict[str, str], simulator: Simulator
) -> None:
    simulator.play({"text": "First."}, {"text": "Second."})
    with terminal(ONE, {**environment, "PATH": "/nowhere"}) as program:
        ready(program)
        program.type("@ann one\n")
        program.see("First.")
        program.type("/history save a\n")
        program.see("saved as 'a'")
        program.type("@ann two\n")
        program.see("Second.")
        program.type("/history rename b\n")
        program.see("renamed to 'b'")
        program.type("/copy 0\n")
        program.see("copied 7 characters of ann, by the terminal")
        assert "\x1b]52;c;U2Vjb25kLg==\a" in program.written
        program.type("/quit\n")
        program.see("not saved: the draft will be offered next time")
        assert program.ended() == 0
