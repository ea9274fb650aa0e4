"""`dragoman run`, as its users run it: a process, its streams and its exit codes, against the simulators."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from dragoman.agent import Agent, SessionStore
from dragoman.agent.history_repair import is_whole
from dragoman.cli.problems import CommandError
from dragoman.cli.rendering import PlainRenderer, renderer_of
from dragoman.cli.toolfile import load_tools
from dragoman.errors import NotConfigured
from dragoman.sim.server import Simulator
from tests.cli.command import COMMAND, environment
from tests.support.promises import promise
from tests.support.waiting import PATIENCE

SERVER = Path(__file__).parent / "fixtures" / "mcp_server.py"
TOOLS = '''
import time
import dragoman

@dragoman.tool(read_only=True)
def look(place: str) -> str:
    """Look."""
    return "\\n".join(f"{number} in {place}" for number in range(20))

@dragoman.tool
def write(text: str) -> str:
    """Write."""
    with open("written", "a") as file:
        file.write(text)
    return "written"

@dragoman.tool(read_only=True)
def sleep() -> str:
    """Sleep."""
    time.sleep(30)
    return "rested"

def helper() -> None: ...
'''


def calls(*names: tuple[str, dict[str, Any]], text: str = "") -> dict[str, Any]:
    turn: dict[str, Any] = {"calls": [{"name": name, "arguments": arguments} for name, arguments in names]}
    return {**turn, "text": text} if text else turn


LOOK = ("look", {"place": "the attic"})
WRITE = ("write", {"text": "hello"})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tools.py").write_text(TOOLS)
    return tmp_path


def arguments_of(simulator: Simulator, *more: str, tools: str = "tools.py") -> list[str]:
    model = ["-m", "anthropic/claude-sonnet-4-6", "--base-url", f"{simulator.url}/anthropic"]
    return [*COMMAND, "run", *model, *(["--tools", tools] if tools else []), *more]


def variables(folder: Path) -> dict[str, str]:
    return {**environment(XDG_DATA_HOME=str(folder / "data"), TERM="xterm"), "COLUMNS": "100"}


def ran(
    folder: Path, simulator: Simulator, *more: str, stdin: str = "", tools: str = "tools.py"
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603
        arguments_of(simulator, *more, tools=tools),
        input=stdin,
        capture_output=True,
        text=True,
        cwd=folder,
        env=variables(folder),
        timeout=60,
        check=False,
    )


@promise("agent:command")
def test_the_answer_goes_to_stdout_and_all_else_to_stderr(folder: Path, dragoman_sim: Simulator) -> None:
    dragoman_sim.play(calls(LOOK, text="Let me see."), {"text": "Nothing there."})
    ended = ran(folder, dragoman_sim, "Look", "around")
    assert (ended.returncode, ended.stdout) == (0, "Nothing there.\n")
    lines = ended.stderr.splitlines()
    assert lines[:3] == ["Let me see.", '-> look {"place":"the attic"}', "   0 in the attic"]
    assert "   … 12 more lines (--expand shows them)" in lines
    assert lines[-1].startswith("anthropic/claude-sonnet-4-6: ")
    assert lines[-1].endswith(" out")
    assert "Look around" in str(dragoman_sim.requests[0].json)


@promise("agent:command")
def test_the_task_may_come_from_a_pipe_and_outputs_be_shown_whole(folder: Path, dragoman_sim: Simulator) -> None:
    dragoman_sim.play(calls(LOOK), {"text": "Fine."})
    ended = ran(folder, dragoman_sim, "--expand", "--system", "Be brief.", stdin="Look around\n")
    assert ended.stdout == "Fine.\n"
    assert "   19 in the attic" in ended.stderr
    assert "Be brief." in str(dragoman_sim.requests[0].json)


@promise("agent:command")
def test_nothing_takes_over_the_terminal(folder: Path, dragoman_sim: Simulator) -> None:
    (folder / "evil.py").write_text('def evil() -> str:\n    "Evil."\n    return "\\x1b]0;owned\\x07\\x9b2J\\tend"\n')
    dragoman_sim.play(calls(("evil", {}), text="\x1b[2Jgone"), {"text": "\x1b[31mred"})
    ended = ran(folder, dragoman_sim, "--approve", "all", "Go", tools="evil.py")
    assert ended.stderr.splitlines()[:3] == ["\ufffd[2Jgone", "-> evil {}", "   \ufffd]0;owned\ufffd\ufffd2J\tend"]
    assert ended.stdout == "\x1b[31mred\n"  # a pipe gets what was said
    dragoman_sim.play(calls(("evil", {}), text="\x1b[2Jgone"), {"text": "Done."})
    terminal = Terminal(arguments_of(dragoman_sim, "--approve", "all", "Go", tools="evil.py"), folder)
    terminal.until("tokens in")
    assert terminal.ended() == (0, "Done.\n")
    assert "\ufffd]0;owned" in terminal.seen
    assert "\x1b]0;owned" not in terminal.seen


@promise("agent:command-json")
def test_json_lines_and_nothing_else_on_stdout(folder: Path, dragoman_sim: Simulator) -> None:
    dragoman_sim.play(calls(LOOK, text="Let me see."), {"text": "Nothing there."})
    ended = ran(folder, dragoman_sim, "--json", "Look")
    events = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [event["type"] for event in events] == [
        "text",
        "usage",
        "step_start",
        "tool_call",
        "tool_result",
        "step_complete",
        "usage",
        "final",
    ]
    assert ended.stderr == ""
    assert ended.returncode == 0


@promise("agent:command-session")
def test_a_session_goes_on(folder: Path, dragoman_sim: Simulator) -> None:
    dragoman_sim.play(calls(LOOK), {"text": "Nothing."}, {"text": "Still nothing."})
    assert ran(folder, dragoman_sim, "--session", "attic", "Look").stdout == "Nothing.\n"
    assert ran(folder, dragoman_sim, "--session", "attic", "And now?").stdout == "Still nothing.\n"
    body: Any = dragoman_sim.requests[-1].json
    assert len(body["messages"]) == 5
    with SessionStore(folder / "data" / "dragoman" / "sessions") as store:
        assert [(row.name, row.last_user_message) for row in store.list()] == [("attic", "And now?")]
    assert ran(folder, dragoman_sim, "--session", "../x", "Hi").returncode == 2


@promise("agent:command-approve")
@pytest.mark.parametrize(
    ("approve", "words"), [("all", "written"), ("none", "not permitted"), ("ask", "no terminal to ask at")]
)
def test_approval_without_an_interactive_user(folder: Path, dragoman_sim: Simulator, approve: str, words: str) -> None:
    dragoman_sim.play(calls(WRITE, LOOK), {"text": "Done."})
    ended = ran(folder, dragoman_sim, "--approve", approve, "Write")
    assert words in ended.stderr
    assert "0 in the attic" in ended.stderr  # what changes nothing is always run
    assert (folder / "written").exists() is (approve == "all")
    assert ended.returncode == (5 if approve == "ask" else 0)  # what was asked for did not happen
    assert ("To allow it: --approve all" in ended.stderr) is (approve == "ask")


class Terminal:
    """A process whose input and error stream are a terminal."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self._main, side = pty.openpty()
        self.process = subprocess.Popen(  # noqa: S603
            command,
            stdin=side,
            stderr=side,
            stdout=subprocess.PIPE,
            cwd=folder,
            env=variables(folder),
            start_new_session=True,
        )
        os.close(side)
        self.seen = ""

    def until(self, words: str, seconds: float = 20) -> None:
        end = time.monotonic() + seconds
        while words not in self.seen:
            assert time.monotonic() < end, f"{words!r} did not come; there was: {self.seen}"
            if select.select([self._main], [], [], 0.1)[0]:
                try:
                    self.seen += os.read(self._main, 65536).decode("utf-8", "replace")
                except OSError:  # Linux: the other side is closed
                    break

    def type(self, words: str) -> None:
        os.write(self._main, words.encode())

    def ended(self) -> tuple[int, str]:
        answer, _ = self.process.communicate(timeout=PATIENCE)
        os.close(self._main)
        return self.process.returncode, answer.decode()


@promise("agent:command-approve", "agent:command")
@pytest.mark.parametrize(
    ("answer", "code", "is_written"), [("y\n", 0, True), ("n\n", 0, False), ("what\nno\n", 0, False), ("s\n", 5, False)]
)
def test_the_user_is_asked(folder: Path, dragoman_sim: Simulator, answer: str, code: int, is_written: bool) -> None:  # noqa: FBT001
    dragoman_sim.play(calls(WRITE), {"text": "**Done.**"})
    terminal = Terminal(arguments_of(dragoman_sim, "Write"), folder)
    terminal.until('run write {"text":"hello"}? [y]es, [n]o, [s]top: ')
    terminal.type(answer)
    returned, output = terminal.ended()
    assert returned == code
    assert (folder / "written").exists() is is_written
    assert output == ("**Done.**\n" if code == 0 else "Stopped: write was not permitted (the user said stop).\n")


@promise("agent:command")
def test_panels_in_a_terminal(folder: Path, dragoman_sim: Simulator) -> None:
    dragoman_sim.play(calls(LOOK, text="Let me see [bold]."), {"text": "Nothing there."})
    terminal = Terminal(arguments_of(dragoman_sim, "Look"), folder)
    terminal.until("tokens in")
    assert terminal.ended() == (0, "Nothing there.\n")
    assert "╭" in terminal.seen
    assert "look" in terminal.seen
    assert "… 12 more lines" in terminal.seen
    assert "Let me see [bold]." in terminal.seen


@promise("agent:command")
def test_plain_lines_where_rich_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich", None)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with renderer_of(as_json=False, expand=False) as renderer:
        assert isinstance(renderer, PlainRenderer)


@promise("agent:command-end", "agent:cancel")
def test_ctrl_c_cancels_in_order(folder: Path, dragoman_sim: Simulator) -> None:
    dragoman_sim.play(calls(("sleep", {})), {"text": "Better."})
    process = subprocess.Popen(  # noqa: S603
        arguments_of(dragoman_sim, "--json", "--session", "nap", "Sleep"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        cwd=folder,
        env=variables(folder),
    )
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(json.loads(line)["type"])
        if lines[-1] == "tool_call":
            time.sleep(0.2)
            process.send_signal(signal.SIGINT)
            break
    rest, problems = process.communicate(timeout=PATIENCE)
    lines += [json.loads(line)["type"] for line in rest.splitlines()]
    assert lines == ["usage", "step_start", "tool_call", "tool_result", "step_complete"]
    assert (process.returncode, problems) == (130, "")
    with SessionStore(folder / "data" / "dragoman" / "sessions") as store:
        assert is_whole(store.resume("nap").messages)
    assert ran(folder, dragoman_sim, "--session", "nap", "Again").stdout == "Better.\n"


@promise("agent:command-end")
def test_exit_codes(folder: Path, dragoman_sim: Simulator) -> None:
    dragoman_sim.play({"status": 400, "message": "no"})
    failed = ran(folder, dragoman_sim, "Hello")
    assert (failed.returncode, failed.stdout) == (4, "")
    assert failed.stderr.startswith("dragoman: anthropic: ")
    dragoman_sim.play(calls(LOOK), {"text": "Half done."})
    assert ran(folder, dragoman_sim, "--max-turns", "1", "Look").returncode == 5
    rows: list[tuple[list[str], str, str]] = [
        ([], "", "the task is empty"),
        (["--tools", "missing.py", "Hi"], "", "cannot read missing.py: no such file"),
        (["--tools", "no_such_module", "Hi"], "", "ModuleNotFoundError"),
        (["--mcp", "missing.json", "Hi"], "", "cannot read missing.json"),
        (["--approve", "perhaps", "Hi"], "", "invalid choice"),
    ]
    for more, stdin, words in rows:
        ended = ran(folder, dragoman_sim, *more, stdin=stdin)
        assert (ended.returncode, words in ended.stderr, ended.stderr.count("\n")) == (2, True, 1), ended.stderr


@promise("agent:command", "agent:mcp-json")
def test_tools_of_an_mcp_server(folder: Path, dragoman_sim: Simulator) -> None:
    entry = {"command": sys.executable, "args": [str(SERVER)]}
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"tests": entry}}))
    dragoman_sim.play(calls(("add", {"a": 2, "b": 3})), {"text": "Five."})
    ended = ran(folder, dragoman_sim, "--mcp", "mcp.json", "2+3?", tools="")
    assert (ended.returncode, ended.stdout) == (0, "Five.\n")
    assert '-> add {"a":2,"b":3}\n   {"result":5}\n' in ended.stderr


@promise("agent:command")
def test_tools_of_a_file_or_module(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [one.name for one in load_tools(str(folder / "tools.py"))] == ["look", "write", "sleep"]
    (folder / "plain_tools.py").write_text(
        "import os\ndef one(a: int) -> int:\n    return a\ndef _two() -> None: ...\n"
    )
    monkeypatch.syspath_prepend(str(folder))
    assert [one.name for one in load_tools("plain_tools")] == ["one"]
    (folder / "listed.py").write_text("def a() -> None: ...\ndef b() -> None: ...\nTOOLS = [b]\n")
    assert [one.name for one in load_tools(str(folder / "listed.py"))] == ["b"]
    for text, words in (
        ("x = 1", "has no tools"),
        ("def f(*a): ...", "cannot be passed by name"),
        ("1/0", "ZeroDivision"),
    ):
        (folder / "bad.py").write_text(text)
        with pytest.raises(CommandError, match=words):
            load_tools(str(folder / "bad.py"))


@promise("seed:002-front-door")
def test_an_agent_takes_the_name_of_a_model_as_run_does(
    dragoman_sim: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test-1234567890abcdef")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", dragoman_sim.url + "/anthropic")
    with Agent("anthropic/claude-sonnet-4-6") as agent:
        assert agent.driver.name == "anthropic/claude-sonnet-4-6"
        assert agent.run_sync("Say hello.").text
    with pytest.raises(NotConfigured):
        Agent("nonsense/model")
