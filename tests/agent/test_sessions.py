"""Sessions: written down as they go, resumed after whatever happened."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman.agent import (
    Account,
    Agent,
    Clock,
    Compaction,
    FinalEvent,
    Output,
    SessionStore,
    UnknownSession,
    tool,
)
from dragoman.agent.history_repair import heal, is_whole
from dragoman.agent.sessions import default_folder, remove_unfinished_line
from dragoman.drivers import Scripted, ScriptedDriver
from dragoman.ir import Image, Message, Reasoning, Signature, Text, ToolCall, ToolResult, Usage
from dragoman.passes.pairing import NO_RESULT
from tests.support.agents import results_in, run, run_events, story_of, types
from tests.support.promises import promise

ROOT = Path(__file__).parents[2]


@tool
def add(a: int) -> int:
    """Add one."""
    return a + 1


ADD = ("add", {"a": 1})


def agent_in(store: SessionStore, name: str, script: list[Any], **options: Any) -> Agent:
    return Agent(
        ScriptedDriver(script), session=store.open(name), tools=[add], clock=Clock(lambda: 1.0, lambda: 2.0), **options
    )


@promise("agent:session", "agent:session-usage")
def test_a_session_goes_on_where_it_ended(tmp_path: Path) -> None:
    with SessionStore(tmp_path) as store:
        agent = agent_in(store, "trip", [Scripted(calls=[ADD, ADD], usage=Usage(5, 1)), "Two."])
        agent.run_sync([Text("One more?"), Image("image/png", data="aGk=")])
        before = agent.history
    with SessionStore(tmp_path) as store:
        again = agent_in(store, "trip", [Scripted(text="Still two.", usage=Usage(7, 2))])
        assert again.history == before
        assert again.run_sync("Sure?").text == "Still two."
        driver = again.driver
        assert isinstance(driver, ScriptedDriver)
        assert driver.requests[0].messages == (*before, Message("user", "Sure?"))
        assert store.resume("trip").usage == {"scripted/test": Account(2, Usage(12, 3))}


@promise("agent:session")
def test_what_a_provider_wants_back_survives(tmp_path: Path) -> None:
    call = ToolCall("c1", "add", msgspec.Raw(b'{"a": 1.0}'), signature=Signature("gemini", "s1"), invented_id=True)
    signed = Message("assistant", (Reasoning("hm", Signature("anthropic", "s2")), Text("So."), call))
    with SessionStore(tmp_path) as store:
        session = store.open("one")
        session.rewrite([Message("user", "Hi"), signed, Message("tool", (ToolResult("c1", "add", "data", 2),))])
        assert session.messages[1] == signed
        assert msgspec.json.encode(session.messages[1]) == msgspec.json.encode(signed)  # 1.0 stays 1.0


@promise("agent:session")
def test_the_log_has_every_event_in_order_and_the_messages_of_the_user(tmp_path: Path) -> None:
    with SessionStore(tmp_path) as store:
        agent = agent_in(store, "log", [Scripted(text="Hm.", calls=[ADD]), "Two."], deltas=True)
        story = run_events(agent, "One more?")
        lines = store.open("log").log()
        events = [msgspec.to_builtins(line.event) for line in lines if line.event is not None]
        assert events == [event for event in story if not event["type"].endswith("_delta")]
        assert [line.message.text for line in lines if line.message is not None] == ["One more?"]
        assert [line.seq for line in lines] == [*range(1, len(lines) + 1)]
        assert [line.event for line in store.open("log").log(last=1)] == [FinalEvent("Two.")]
    raw = (tmp_path / "log.jsonl").read_bytes()
    assert msgspec.json.decode(raw.splitlines()[0]) == {
        "session": "log",
        "version": 1,
        "created": pytest.approx(time.time() * 1000, abs=60_000),
    }
    with SessionStore(tmp_path) as store:
        agent_in(store, "log", ["Three."]).run_sync("More")
    assert (tmp_path / "log.jsonl").read_bytes().startswith(raw)  # only ever appended to


@promise("agent:session")
def test_sessions_are_listed_newest_first(tmp_path: Path) -> None:
    ticks = iter(range(100))
    with SessionStore(tmp_path, clock=Clock(lambda: float(next(ticks)))) as store:
        for name in ("first", "second"):
            agent_in(store, name, ["Hello.", "Bye."], on_stop=None).run_sync(f"Hi from {name}")
        agent_in(store, "first", ["Yes."]).run_sync("Again")
        rows = store.list()
        assert [(row.name, row.messages, row.last_user_message) for row in rows] == [
            ("first", 4, "Again"),
            ("second", 2, "Hi from second"),
        ]
        assert rows[0].created < rows[1].created < rows[0].updated
        store.delete("first")
        assert [row.name for row in store.list()] == ["second"]
        assert store.open("first").messages == []
        with pytest.raises(UnknownSession, match="no session 'third'"):
            store.resume("third")


@promise("agent:session")
@pytest.mark.parametrize("name", ["", "../up", "a/b", ".hidden", "x" * 101, "a b"])
def test_names_are_names_of_files(tmp_path: Path, name: str) -> None:
    with SessionStore(tmp_path) as store, pytest.raises(ValueError, match="not a valid session name"):
        store.open(name)


@promise("agent:session")
def test_where_sessions_are_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "dragoman" / "sessions"
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_folder() == tmp_path / ".local" / "share" / "dragoman" / "sessions"


@promise("agent:session", "agent:compaction-retained")
def test_a_compacted_history_is_what_is_resumed(tmp_path: Path) -> None:
    with SessionStore(tmp_path) as store:
        agent = agent_in(
            store, "long", ["a", "b", "<retain>key</retain><summary>s</summary>"], compaction=Compaction(keep_turns=1)
        )
        agent.run_sync("1")
        agent.run_sync("2")
        assert run(agent.compact())
        again = agent_in(store, "long", ["c", "<summary>t</summary>"], compaction=Compaction(keep_turns=1))
        assert again.history == agent.history
        again.run_sync("3")
        assert run(again.compact())
        assert "key" in again.history[0].text


@promise("agent:session")
def test_several_agents_in_several_threads_share_a_store(tmp_path: Path) -> None:
    def work(name: str) -> None:
        agent = agent_in(store, name, [*[Scripted(calls=[ADD, ADD], usage=Usage(1, 1))] * 20, "Done."])
        asyncio.run(agent.run("Go"))

    with SessionStore(tmp_path) as store:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, "abcd"))
        assert {row.name: row.messages for row in store.list()} == dict.fromkeys("abcd", 1 + 20 * 3 + 1)
        assert store.resume("a").usage == {"scripted/test": Account(20, Usage(20, 20))}


@promise("agent:session", "agent:return-kinds")
def test_what_cannot_be_written_does_not_stop_a_run(tmp_path: Path) -> None:
    @tool
    def names(how: str) -> Any:
        """Give the name of a file that is not UTF-8."""
        name = os.fsdecode(b"caf\xe9")
        if how == "error":
            raise OSError(name)
        return {"text": name, "parts": [Text(name)], "output": Output("error", name)}[how]

    calls = [("names", {"how": how}) for how in ("text", "parts", "output", "error")]
    with SessionStore(tmp_path) as store:
        agent = Agent(ScriptedDriver([Scripted(calls=calls), "Done."]), tools=[names], session=store.open("odd"))
        assert agent.run_sync("Go").text == "Done."
        texts = [str(row[2]) for row in results_in(agent.history)]
        assert all("caf?" in text for text in texts)
        assert store.resume("odd").messages == list(agent.history)


# ── crashes ───────────────────────────────────────────────────────────────────────────────────────────────────


@promise("agent:session-crash")
@pytest.mark.parametrize("torn", [b'{"seq":9,"ti', b'{"seq":9}garbage', b"\xff\xfe", b"x" * 200_000])
def test_a_torn_last_line_is_healed(tmp_path: Path, torn: bytes) -> None:
    with SessionStore(tmp_path) as store:
        agent_in(store, "torn", ["Hello."]).run_sync("Hi")
    path = tmp_path / "torn.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + torn)
    with SessionStore(tmp_path) as store:
        agent_in(store, "torn", ["Bye."]).run_sync("Ciao")
        assert [line.seq for line in store.open("torn").log()] == [1, 2, 3, 4]
    assert path.read_bytes().startswith(whole + b'{"seq":3,')
    assert remove_unfinished_line(path) == 0
    assert remove_unfinished_line(tmp_path / "missing") == 0


@promise("agent:session-crash")
def test_unreadable_lines_are_skipped(tmp_path: Path) -> None:
    with SessionStore(tmp_path) as store:
        agent_in(store, "odd", ["Hello."]).run_sync("Hi")
        with (tmp_path / "odd.jsonl").open("ab") as file:
            file.write(b'not json\n{"seq":3,"time":1,"event":{"type":"of_a_later_version"}}\n')
        assert [line.seq for line in store.open("odd").log()] == [1, 2]


@promise("agent:session-crash", "agent:no-open-calls")
def test_calls_left_open_are_answered_on_load(tmp_path: Path) -> None:
    with SessionStore(tmp_path) as store:
        session = store.open("open")
        session.append(Message("user", "Go"))
        session.append(Message("assistant", (ToolCall("c1", "add", {"a": 1}), ToolCall("c2", "add", {"a": 2}))))
        session.append(Message("tool", (ToolResult("c1", "add", "data", 2),)))  # then the lights went out
        agent = agent_in(store, "open", ["Fine."])
        assert is_whole(agent.history)
        assert [one.value for one in agent.history[2].tool_results] == [2, NO_RESULT]
        assert agent.run_sync("And?").text == "Fine."
        assert store.open("open").messages == list(agent.history)


@promise("agent:session-crash")
def test_healing_drops_results_without_calls_and_changes_nothing_else() -> None:
    whole = [
        Message("user", "a"),
        Message("assistant", (ToolCall("c", "t", {}),)),
        Message("tool", (ToolResult("c", "t", "text", "x"),)),
    ]
    assert heal(whole) == whole
    orphan = Message("tool", (ToolResult("lost", "t", "text", "x"),))
    assert heal([orphan, *whole, orphan]) == whole
    assert heal(heal([whole[1], whole[0]])) == heal([whole[1], whole[0]])


KILLED = """
import os, signal, sys, time
from dragoman.agent import Agent, SessionStore, tool
from dragoman.drivers import Scripted, ScriptedDriver

@tool
def add(a: int) -> int:
    "Add one."
    with open(sys.argv[2], "a") as file:
        file.write(f"{a}\\n")
    return a + 1

@tool
def crash() -> None:
    "Crash."
    time.sleep(0.3)
    os.kill(os.getpid(), signal.SIGKILL)

parallel = sys.argv[3] == "parallel"
calls = [("add", {"a": 2}), ("crash", {})]
script = [Scripted(calls=[("add", {"a": 1})]), Scripted(calls=calls[::-1] if parallel else calls)]
store = SessionStore(sys.argv[1])
agent = Agent(ScriptedDriver(script), tools=[add, crash], session=store.open("run"), parallel=parallel)
agent.run_sync("Count")
"""


@promise("agent:session-crash")
@pytest.mark.parametrize(("way", "results"), [("one by one", [2, 3, NO_RESULT]), ("parallel", [2, NO_RESULT, 3])])
def test_a_run_that_was_killed_goes_on_and_nothing_that_was_done_is_forgotten(
    tmp_path: Path, way: str, results: list[Any]
) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    killed = subprocess.run(  # noqa: S603
        [sys.executable, "-c", KILLED, str(tmp_path), str(tmp_path / "done"), way],
        env=environment,
        check=False,
        timeout=60,
    )
    assert killed.returncode == -signal.SIGKILL
    assert (tmp_path / "done").read_text().split() == ["1", "2"]
    with SessionStore(tmp_path) as store:
        agent = agent_in(store, "run", ["Both were added."])
        assert is_whole(agent.history)
        assert [one.value for message in agent.history for one in message.tool_results] == results
        assert run(story_of(agent.run_stream())) == [{"type": "final", "content": "Both were added."}]
        events = [line.event for line in store.open("run").log() if line.event is not None]
        assert types([msgspec.to_builtins(event) for event in events]).count("step_start") == 3
