"""`dragoman chat` in a real terminal and through a pipe."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import tty
import urllib.request
from pathlib import Path

import pytest

from dragoman.chat.stores import FileStore
from dragoman.chat.terminal.commands import COMMANDS
from dragoman.chat.terminal.inputs import TerminalModes, completions
from dragoman.sim.server import Simulator
from dragoman.terminal import harmless
from tests.support.promises import promise
from tests.support.terminals import ROOT, Program, terminal
from tests.support.waiting import PATIENCE


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"CHAT_HISTORY_DIR": str(tmp_path), "CHAT_HISTORY_USER_ID": "me"}


def piped(text: str, environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    known = {**os.environ, **environment, "PYTHONPATH": str(ROOT / "src"), "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, "-m", "dragoman", "chat", *arguments]
    return subprocess.run(command, input=text, env=known, capture_output=True, text=True, check=False, timeout=60)  # noqa: S603


def ready(program: Program) -> None:
    program.wait("Help: /help")
    program.wait("> ")


# ── piped ─────────────────────────────────────────────────────────────────────────────────────────────────────

SESSION = """\
@all What is the weather in Paris?
/memo this is a memo
/system Be brief.
/model
/model default claude
/model helper local/none.gguf
/share on
/tools
/tokens
/copy 0
/history save Paris talk
/history list
/history search weather
/export openai-chat
/reset
/history load Paris talk
/history rename Paris again
/history new
/history delete Paris again
/history list
/help
/exit
"""


@promise("chat:terminal", "chat:terminal-commands", "chat:demo", "chat:model")
def test_a_whole_session_through_a_pipe(environment: dict[str, str]) -> None:
    done = piped(SESSION, environment, "--demo")
    assert (done.returncode, done.stderr) == (0, "")
    out = done.stdout
    assert out.count('-> get_weather {"city":"Paris"}') == 8  # four models, and once more when it is loaded
    assert out.count("<- get_weather Paris: 18 °C, light rain") == 8
    for words in (
        "(a memo: stored, and sent to no model)",
        "gemini (simulated): get_weather",
        "Be brief.",
        "without a mention: @claude",
        "@helper   local/none.gguf, 8,192 tokens",
        "shared between models: yes",
        "save_note    (asks before it runs)",
        "of 1,000,000 tokens",
        "saved as 'Paris talk'",
        '"messages"',
        "(nothing)",
    ):
        assert words in out, words
    for command in COMMANDS.values():
        assert command.usage in out


@promise("chat:terminal")
def test_errors_are_always_visible_and_decide_the_exit_code(environment: dict[str, str]) -> None:
    keyless = {**environment, "ANTHROPIC_API_KEY": ""}
    done = piped("@claude hello\n", keyless, "-m", "claude")
    assert done.returncode == 4
    assert "[claude: error]" in done.stdout
    assert "ANTHROPIC_API_KEY" in done.stdout
    with Simulator() as simulator:
        simulator.play({"error": "invalid", "message": "this model is out of order"})
        there = {**environment, "ANTHROPIC_API_KEY": "x", "ANTHROPIC_BASE_URL": simulator.url}
        done = piped("@claude hello\n", there, "-m", "claude")
    assert "this model is out of order" in done.stdout
    assert done.returncode == 4


@promise("chat:permissions", "chat:terminal")
def test_without_an_interactive_user_nothing_is_asked(environment: dict[str, str]) -> None:
    done = piped("@claude please save a note: milk\n", environment, "--demo")
    assert "claude wants to run save_note" in done.stdout
    assert "no interactive user to allow it" in done.stdout
    assert "!! save_note" in done.stdout


@promise("chat:prune", "chat:does-not-fit", "chat:terminal-errors")
def test_what_does_not_fit_is_reported(environment: dict[str, str]) -> None:
    small = {**environment, "CHAT_CONTEXT": "400"}
    talk = "".join(f"@claude {'word ' * 60}{number}\n" for number in range(4))
    done = piped(talk, small, "--demo")
    assert "claude: no room for the oldest turn, left out" in done.stdout
    assert done.returncode == 0
    done = piped(f"@claude {'word ' * 600}\n@all {'word ' * 600}\n", small, "--demo")
    assert done.returncode == 4
    assert done.stdout.count("claude takes 400 tokens, 360 of them for what is sent; this message needs") == 2
    assert done.stdout.count("[ollama: error] ollama takes 400 tokens") == 1


@promise("chat:terminal-commands")
def test_a_file_that_was_exported_is_loaded_and_options_are_held_to_what_there_is(
    environment: dict[str, str], tmp_path: Path
) -> None:
    target = tmp_path / "out.json"
    talk = f"@gemini hello\n@claude weather in Oslo?\n/export anthropic-messages @claude {target}\n"
    done = piped(f"{talk}/export gemini @nobody\n/quit\n", environment, "--demo")
    assert f"written to {target}" in done.stdout
    assert "nobody has not answered in this conversation" in done.stdout
    done = piped("/system\n/quit\n", environment, "--demo", "--load", str(target), "--system", "Be brief.")
    assert "claude -> get_weather" in done.stdout
    assert "claude <- get_weather Oslo: 7 °C" in done.stdout
    assert "Be brief." in done.stdout
    refused = piped("", environment, "-m", "claude", "--default", "nobody")
    assert (refused.returncode, "--default must be a model of this chat" in refused.stderr) == (2, True)


@promise("chat:store-sql", "chat:store-users")
def test_a_database_keeps_conversations_and_drafts_of_users_apart(environment: dict[str, str], tmp_path: Path) -> None:
    address = f"sqlite:{tmp_path / 'chat.sqlite'}"
    piped("a memo\n/history save Mine\n", environment, "-m", "claude", "--store", address)
    other = {**environment, "CHAT_HISTORY_USER_ID": "somebody/else"}
    assert "(nothing)" in piped("/history list\n", other, "-m", "claude", "--store", address).stdout
    assert "Mine" in piped("/history list\n", environment, "-m", "claude", "--store", address).stdout
    folders = {path.name for path in tmp_path.iterdir() if path.is_dir()}
    assert len(folders) == 2
    (tmp_path / "no-database").write_text("x" * 200)
    refused = piped("", environment, "-m", "claude", "--store", f"sqlite:{tmp_path / 'no-database'}")
    assert refused.returncode == 2
    assert "cannot keep conversations in sqlite:" in refused.stderr


MISTAKES = {
    "@clade hello": "There is no model named @clade: did you mean @claude?",
    "/memo": "nothing to store",
    "/model default nobody": "no model named nobody",
    "/share maybe": "use /share on or /share off",
    "/history rename x": "is not saved",
    "/history load": "give a name: /history load NAME",
    "/nonsense": "Unknown command: /nonsense",
    "/history load nothing": "no conversation named",
    "/history nonsense": "one of list",
    "/history save": "give it a name: /history save NAME",
    "/copy 9": "there are 0 answers",
    "/export nonsense": "is not a format",
    "/retry": "no answer to retry",
    "/tools": "no tools",
}


@promise("chat:terminal-commands")
def test_a_mistake_is_reported_and_the_chat_goes_on(environment: dict[str, str]) -> None:
    out = piped("\n".join(MISTAKES), environment, "-m", "claude").stdout
    places = [out.index(words) for words in MISTAKES.values()]
    assert places == sorted(places)


@promise("chat:terminal", "chat:legacy")
def test_an_old_file_is_shown_with_its_tools_in_their_place(environment: dict[str, str], tmp_path: Path) -> None:
    old = tmp_path / "old.json"
    turns = [
        {"role": "user", "content": "weather?"},
        {
            "role": "gemini",
            "content": [
                {"type": "text", "content": "Before."},
                {"type": "tool_call", "content": {"name": "weather", "arguments": {"city": "Oslo"}}},
                {"type": "text", "content": "After."},
            ],
        },
        {"role": "tool", "content": [{"type": "tool_result", "name": "weather", "content": "snow"}]},
    ]
    old.write_text(json.dumps({"display_name": "Old", "turns": turns}))
    out = piped("", environment, "-m", "claude", "--load", str(old)).stdout
    places = [out.index(words) for words in ("weather?", "Before.", "-> weather", "After.", "<- weather snow")]
    assert places == sorted(places)


# ── typed ─────────────────────────────────────────────────────────────────────────────────────────────────────


@promise("chat:terminal", "chat:terminal-columns", "chat:terminal-input")
def test_answers_stand_side_by_side_in_a_wide_terminal(environment: dict[str, str]) -> None:
    with terminal(["chat", "--demo"], environment, columns=150) as program:
        ready(program)
        program.type("@al\t")  # completed
        program.wait("@all ")
        program.type("weather in \\\nParis?\n")  # two lines
        shown = program.wait("> ")
        program.wait("says: Paris")
        lines = [line for line in shown.splitlines() if "gemini" in line and "ollama" in line]
        line = next(line for line in lines if line.count("simulated") == 4)  # each says so
        assert line.index("gemini") < line.index("chatgpt") < line.index("claude") < line.index("ollama")
        program.type("/history save wide\n")
        program.wait("saved as 'wide'")
        program.type("/exit\n")
        assert program.ended() == 0
    entries = FileStore(environment["CHAT_HISTORY_DIR"], "me (demo)").load("wide").entries
    assert entries[0].text == "@all weather in \nParis?"


@promise("chat:terminal-interrupt", "chat:stop")
def test_ctrl_c_stops_the_answer_and_not_the_program(environment: dict[str, str]) -> None:
    with Simulator() as simulator:
        simulator.play({"text": "one two three four five six " * 40, "chunk": 4, "stall": 20})
        there = {**environment, "ANTHROPIC_API_KEY": "x", "ANTHROPIC_BASE_URL": simulator.url}
        with terminal(["chat", "-m", "claude"], there) as program:
            ready(program)
            program.type("@claude count\n")
            program.wait("one two")
            program.type("\x03")
            program.wait("stopped")
            program.wait("> ")
            program.type("@claude 6 * 7\n")
            program.wait("42")
            program.type("/tokens\n")
            program.wait("of 1,000,000 tokens")
            program.type("half a line\x03")  # at the prompt it only clears the line
            program.wait("\n> ")
            program.type("/exit\n")
            program.wait("offered next time")
            assert program.ended() == 0


@promise("chat:terminal-draft", "chat:permissions")
def test_a_killed_program_offers_its_draft_and_tools_are_asked_about(environment: dict[str, str]) -> None:
    with terminal(["chat", "--demo"], environment) as program:
        ready(program)
        program.type("@claude please save a note: milk\n")
        program.wait("[y]es, [n]o, [a]lways?")
        program.type("y\n")
        program.wait("saved: ")
        program.wait("> ")
        os.kill(program.process, 9)
    with terminal(["chat", "--demo"], environment) as program:
        program.wait("left unsaved")
        program.type("y\n")
        program.wait("saved: ")
        program.type("/exit\n")
        assert program.ended() == 0


@promise("chat:terminal-input")
def test_what_can_be_completed() -> None:
    words = ["@gemini ", "@all ", "/history list", "/history load", "/help"]
    assert completions("@", "@", words) == ["@all ", "@gemini "]
    assert completions("/h", "/h", words) == ["/help ", "/history "]
    assert completions("/history ", "", words) == ["list ", "load "]
    assert completions("hello @", "@", words) == []


@promise("chat:terminal")
def test_nothing_a_model_says_steers_the_terminal() -> None:
    assert harmless("a\x1b[2Jb\x07\r\nc\td\x9b1m\u202ee\r") == "a�[2Jb�\nc\td�1m�e�"
    assert harmless("全角　空白 👩\u200d👧 é\xa0") == "全角　空白 👩\u200d👧 é\xa0"


@promise("chat:web", "chat:demo", "chat:web-keys")
def test_the_page_is_one_command_away(environment: dict[str, str]) -> None:
    known = {**os.environ, **environment, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", "dragoman", "chat", "--web", "--demo", "--port", "0"]
    with subprocess.Popen(command, env=known, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as served:  # noqa: S603
        assert served.stdout is not None
        url = served.stdout.readline().split()[0]
        with urllib.request.urlopen(f"{url}/_/api/chat/state", timeout=PATIENCE) as answer:  # noqa: S310 - our own address
            state = json.loads(answer.read())
        served.send_signal(signal.SIGINT)
        assert served.wait(PATIENCE) == 130
    assert [one["name"] for one in state["models"]] == ["gemini", "chatgpt", "claude", "ollama"]
    assert [one["name"] for one in state["tools"]] == ["get_weather", "save_note"]
    refused = piped("", environment, "--web", "--demo", "--host", "0.0.0.0")  # noqa: S104 - that is what is refused
    assert refused.returncode == 2
    assert "needs a password" in refused.stderr


@promise("chat:tools")
def test_tools_come_from_python_files_and_from_mcp_servers(environment: dict[str, str], tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text('def shout(text: str) -> str:\n    """Say it loudly."""\n    return text.upper()\n')
    server = ROOT / "tests" / "agent" / "fixtures" / "mcp_server.py"
    servers = tmp_path / "mcp.json"
    servers.write_text(json.dumps({"mcpServers": {"sums": {"command": sys.executable, "args": [str(server)]}}}))
    options = ("--demo", "--tools", str(own), "--mcp", str(servers), "--approve", "all")
    out = piped(
        '/tools\n@all call shout with {"text": "hey"}\n@claude call add with {"a": 2, "b": 3}\n', environment, *options
    )
    assert (out.returncode, out.stderr) == (0, "")
    assert "Say it loudly." in out.stdout
    assert out.stdout.count("<- shout HEY") == 4
    assert '<- add {"result":5}' in out.stdout


@promise("chat:terminal-interrupt")
def test_ctrl_d_between_an_answer_and_its_prompt_is_still_that_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel would keep it as the end of a line, and hand it to readline as a NUL."""
    keyboard, screen = pty.openpty()
    with os.fdopen(keyboard, "wb", buffering=0) as typed, os.fdopen(screen) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        modes = TerminalModes()
        usual = termios.tcgetattr(stdin)
        with modes.while_chatting():
            with modes.while_answering():
                pass
            typed.write(b"\x04\n")
            assert select.select([stdin], [], [], PATIENCE)[0]
            tty.setcbreak(stdin, termios.TCSADRAIN)  # as readline does: what is typed ahead stays
            assert select.select([stdin], [], [], PATIENCE)[0]
            assert os.read(stdin.fileno(), 9) == b"\x04\n"
        assert termios.tcgetattr(stdin) == usual
