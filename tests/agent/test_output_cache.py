"""Long outputs: stored whole, cut in the context, read again."""

import time
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman
from dragoman.agent import MemoryStore, OutputCache, OutputRef, SqliteStore, Tool, is_trimmed, output_ref, tool
from dragoman.agent.graphemes import clip, is_boundary
from dragoman.agent.output_tools import ANSWER, LINE, read_lines
from dragoman.drivers import Scripted
from dragoman.ir import Image, Message, Request, Text, ToolResult
from tests.support.agents import agent_of, driver_of, final, result, results_in, run_events, step
from tests.support.promises import promise
from tests.support.waiting import PATIENCE

LINES = "".join(f"line {number}\n" for number in range(10_000))  # 98,890 bytes
PICTURE = Image("image/png", data="aGk=")


def giving(value: Any) -> Tool:
    @tool
    def give() -> Any:
        """Give."""
        return value

    return give


def kept(value: Any, **options: Any) -> ToolResult:
    """The result as the history has it."""
    agent = agent_of([Scripted(calls=[("give", {})]), "."], tools=[giving(value)], output_cache=OutputCache(**options))
    agent.run_sync("Go")
    return agent.history[2].tool_results[0]


@promise("agent:output-cut")
def test_long_output_is_cut_at_whole_lines_with_a_mark_that_names_the_reference() -> None:
    store = MemoryStore()
    one = kept(LINES, store=store)
    text, _, mark = one.value.rpartition("\n")
    assert LINES.startswith(text + "\n")
    assert 50 * 1024 - 12 < len(text.encode()) + 1 <= 50 * 1024
    shown = text.count("\n") + 1
    assert mark == (
        f'[output cut: {shown} of 10000 lines shown; the whole output has the reference "call_1": '
        "read it with tool_output_read or tool_output_grep]"
    )
    assert one.kind == "text"
    assert is_trimmed(one)
    assert output_ref(one) == OutputRef("call_1", 98_890, 10_000)
    assert store.load("call_1") == LINES


@promise("agent:output-cut")
def test_short_output_stays_as_it_is_and_is_stored_too() -> None:
    store = MemoryStore()
    one = kept("short", store=store)
    assert (one.value, is_trimmed(one), output_ref(one)) == ("short", False, OutputRef("call_1", 5, 1))
    assert store.load("call_1") == "short"
    long_line = "x" * 50 * 1024
    assert kept(long_line).value == long_line


@promise("agent:output-cut")
@pytest.mark.parametrize(
    ("value", "kind"), [({"rows": ["ü" * 100] * 900}, "text"), ("é" * 60_000, "text"), ("\ud800" * 20_000, "text")]
)
def test_data_and_single_lines_are_cut_between_characters(value: Any, kind: str) -> None:
    one = kept(value, limit=1000)
    assert one.kind == kind
    assert len(one.value.encode("utf-8", "surrogatepass")) < 1200
    assert "[output cut: 1 of 1 lines shown" in one.value


@promise("agent:output-cut")
def test_errors_are_cut_and_stay_errors() -> None:
    @tool
    def give() -> None:
        """Give."""
        raise ValueError(LINES)

    agent = agent_of([Scripted(calls=[("give", {})]), "."], tools=[give])
    agent.run_sync("Go")
    ((_, kind, value),) = results_in(agent.history)
    assert kind == "error"
    assert len(value) < 52_000


@promise("agent:output-cut")
def test_reference_and_mark_are_those_of_the_record_format_and_no_provider_sees_them() -> None:
    agent = agent_of([Scripted(calls=[("give", {})]), "."], tools=[giving(LINES)])
    agent.run_sync("Go")
    record = dragoman.encode_request(Request(None, agent.history), "agent-sdk").body["messages"][2]
    assert record["output_ref"] == {"id": "call_1", "byte_size": 98_890, "line_count": 10_000}
    assert record["trimmed"] is True
    for name in ("openai-chat", "anthropic-messages", "gemini", "ollama-chat"):
        encoded = dragoman.encode_request(Request("m", agent.history, max_output_tokens=9), name)
        assert b"output_ref" not in encoded.json()
        assert not [loss for loss in encoded.losses if "output_ref" in loss.what or "trimmed" in loss.what]


@promise("agent:output-parts")
def test_pictures_stay_and_their_text_is_stored() -> None:
    store = MemoryStore()
    one = kept([Text("see "), PICTURE], store=store)
    assert one.parts == (Text("see "), PICTURE)
    assert store.load("call_1") == "see [image]"
    cut = kept([Text(LINES), PICTURE, Text("after")], store=MemoryStore())
    assert cut.parts[1:] == (PICTURE, Text("after"))
    assert isinstance(cut.parts[0], Text)
    assert "output cut" in cut.parts[0].text


@promise("agent:output-budget")
def test_beyond_the_budget_the_oldest_outputs_become_placeholders() -> None:
    calls = [Scripted(calls=[("give", {})])] * 4
    agent = agent_of([*calls, "."], tools=[giving("x" * 1000)], output_cache=OutputCache(budget=2500))
    agent.run_sync("Go")
    values = [row[2] for row in results_in(agent.history)]
    place = '[output of 1 lines removed to save room; read it again with tool_output_read, reference "call_{}"]'
    assert values == [place.format(1), place.format(2), "x" * 1000, "x" * 1000]
    names = [tuple(one.name for one in request.tools) for request in driver_of(agent).requests]
    assert names[0] == ("give",)
    assert names[-1] == ("give", "tool_output_read", "tool_output_grep")


@promise("agent:output-budget")
def test_without_a_budget_nothing_is_replaced() -> None:
    agent = agent_of([*[Scripted(calls=[("give", {})])] * 4, "."], tools=[giving("x" * 40_000)])
    agent.run_sync("Go")
    assert [row[2] for row in results_in(agent.history)] == ["x" * 40_000] * 4


@promise("agent:output-tools", "agent:output-read", "agent:output-grep")
def test_the_reading_tools_are_offered_as_soon_as_there_is_something_to_read() -> None:
    calls: list[Any] = [
        Scripted(calls=[("give", {})]),
        Scripted(calls=[("tool_output_read", {"reference": "call_1", "offset": 9998})]),
        Scripted(calls=[("tool_output_grep", {"reference": "call_1", "pattern": "line 777", "limit": 2})]),
        "Found.",
    ]
    agent = agent_of(calls, tools=[giving(LINES)])
    story = run_events(agent)
    assert story[4:] == [
        *step(2, "call_2", "tool_output_read", {"reference": "call_1", "offset": 9998}),
        *result("call_2", "tool_output_read", "9998: line 9998\n9999: line 9999"),
        *step(3, "call_3", "tool_output_grep", {"reference": "call_1", "pattern": "line 777", "limit": 2}),
        *result(
            "call_3",
            "tool_output_grep",
            "777: line 777\n7770: line 7770\n[11 of 10000 lines match; the first 2 are shown]",
        ),
        *final("Found."),
    ]
    assert [len(request.tools) for request in driver_of(agent).requests] == [1, 3, 3, 3]


def read(text: str, name: str = "tool_output_read", **arguments: Any) -> str:
    """What one of the reading tools says about a stored output."""
    store = MemoryStore()
    store.save("out", text)
    cache = OutputCache(store, limit=1)
    trimmed = Message("tool", (ToolResult("c", "n", "text", metadata={"agent-sdk": {"trimmed": True}}),))
    cache.notice([trimmed])
    assert len(cache.tools) == 2
    script: list[Any] = [Scripted(calls=[(name, {"reference": "out", **arguments})]), "."]
    agent = agent_of(script, output_cache=cache)
    agent.run_sync("Go")
    ((_, kind, value),) = results_in(agent.history)
    assert kind == "text"
    return str(value)


@promise("agent:output-read")
def test_reading_by_lines() -> None:
    assert read("a\nb\nc\nd", offset=1, limit=2) == "1: b\n2: c\n[1 more lines: continue with offset 3]"
    assert read("a\nb") == "0: a\n1: b"


@promise("agent:output-read")
def test_long_lines_are_read_by_windows() -> None:
    line = "".join(chr(0x4E00 + number) for number in range(2500))
    first = read(line)
    assert first == f"0: {line[:LINE]} [1500 more characters: character_offset 1000]"
    assert read(line, character_offset=2000) == f"0: {line[2000:]}"


@promise("agent:output-read", "agent:output-tools")
def test_a_long_reading_is_bounded_and_says_how_to_go_on_and_is_not_cut_again() -> None:
    answer = read("\n".join(["x" * 900] * 1000), limit=1000)
    assert ANSWER - 1000 < len(answer) < ANSWER + 100
    assert "output cut" not in answer
    assert answer.endswith("more lines: continue with offset 54]")


@promise("agent:output-tools")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"reference": "lost"}, "no output is stored under 'lost'"),
        ({"offset": 7}, "the output has 2 lines: there is none at offset 7"),
    ],
)
def test_a_bad_reference_or_offset_is_a_message(arguments: dict[str, Any], words: str) -> None:
    assert words in read("a\nb", **arguments)
    assert "no output is stored" in read("a", "tool_output_grep", reference="lost", pattern="a")


@promise("agent:output-grep")
def test_searching_for_a_text_or_an_expression_with_context() -> None:
    text = "one\ntwo (2)\nthree\nfour\nfive (5)"
    grep = "tool_output_grep"
    assert read(text, grep, pattern="(") == "1: two (2)\n4: five (5)\n[2 of 5 lines match]"
    assert read(text, grep, pattern=r"\(\d\)$", regex=True) == "1: two (2)\n4: five (5)\n[2 of 5 lines match]"
    assert read(text, grep, pattern="three", context=1) == "1: two (2)\n2: three\n3: four\n[1 of 5 lines match]"
    assert read(text, grep, pattern="six") == "no line matches, of 5"
    assert read(text, grep, pattern="") == "the pattern is empty"
    assert "not a valid regular expression" in read(text, grep, pattern="(", regex=True)
    many = read("hit\n" * 200, grep, pattern="hit", limit=500)
    assert many.count(": hit") == 50
    assert many.endswith("[200 of 200 lines match; the first 50 are shown]")
    assert len(read("hit" * 100_000 + "\n" + "hit" * 100_000, grep, pattern="hit")) < 3000


@promise("agent:output-grep")
def test_an_expression_that_never_ends_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.agent.output_tools.SECONDS", 0.3)
    start = time.monotonic()
    answer = read("a" * 60 + "!", "tool_output_grep", pattern="(a+)+$", regex=True)
    assert answer == "the search took longer than 0.3 seconds; try a simpler pattern"
    assert time.monotonic() - start < PATIENCE


@promise("agent:output-stores")
def test_sqlite_keeps_outputs_beyond_the_program(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "outputs.sqlite")
    one = kept(LINES, store=store)
    store.save("odd", "a\ud800b\0c")
    store.close()
    again = SqliteStore(tmp_path / "outputs.sqlite")
    reference = output_ref(one)
    assert reference is not None
    assert again.load(reference.id) == LINES
    assert again.load("odd") == "a\ud800b\0c"
    assert again.load("lost") is None
    again.close()


@promise("agent:output-stores")
def test_references_of_equal_call_ids_do_not_overwrite_each_other() -> None:
    store = MemoryStore()
    references = []
    for text in ("one", "two"):
        reference = output_ref(kept(text, store=store))
        assert reference is not None
        references.append(reference.id)
    assert references == ["call_1", "call_1_2"]
    assert [store.load(one) for one in references] == ["one", "two"]


@promise("agent:output-stores")
def test_a_full_memory_drops_the_oldest() -> None:
    store = MemoryStore(capacity=10)
    for name in "abc":
        store.save(name, name * 4)
    assert [store.load(name) for name in "abc"] == [None, "bbbb", "cccc"]


class Broken:
    def __init__(self, *, blocks: bool) -> None:
        self.blocks = blocks

    def save(self, reference: str, text: str) -> None:  # noqa: ARG002
        raise OSError("disk full")

    def load(self, reference: str) -> str | None:  # noqa: ARG002
        raise OSError("disk gone")


@promise("agent:output-stores")
@pytest.mark.parametrize("blocks", [True, False])
def test_a_store_that_fails_never_breaks_the_run(blocks: bool) -> None:  # noqa: FBT001
    assert kept("short", store=Broken(blocks=blocks)).value == "short"
    one = kept(LINES, store=Broken(blocks=blocks))
    assert one.value.endswith("the rest could not be stored]")
    assert output_ref(one) is None


# ── graphemes ─────────────────────────────────────────────────────────────────────────────────────────────────

WHOLE = ["e\u0301", "👩‍👩‍👧", "🇯🇵", "👍🏽", "\r\n", "\u1112\u1161\u11ab", "☝️", "🏴\U000e0067\U000e007f"]


@promise("agent:output-read")
@pytest.mark.parametrize("character", WHOLE)
def test_no_character_falls_apart(character: str) -> None:
    text = f"a{character}{character}b"
    places = {index for index in range(len(text) + 1) if is_boundary(text, index)}
    assert places == {0, 1, 1 + len(character), 1 + 2 * len(character), len(text)}


@promise("agent:output-read")
@given(
    st.text(st.sampled_from([*"ab\u0301\u200d", "👍", "🏽", "🇯", "🇵"]), max_size=200),
    st.integers(0, 250),
    st.integers(1, 50),
)
def test_windows_go_on_and_reach_the_end(text: str, start: int, length: int) -> None:
    begin, end = clip(text, start, length)
    assert 0 <= begin <= end <= len(text)
    assert end - begin <= length + 64
    seen, place, turns = "", 0, 0
    while place < len(text) and turns < 500:
        left, right = clip(text, place, length)
        seen, place, turns = seen + text[left:right], right, turns + 1
    assert seen.endswith(text[-1:])
    assert len(seen) >= len(text)


@promise("agent:output-read")
@given(st.text(max_size=300), st.integers(0, 20), st.integers(0, 20))
def test_reading_never_fails(text: str, offset: int, limit: int) -> None:
    assert isinstance(read_lines(unicodedata.normalize("NFD", text), offset, limit), str)
