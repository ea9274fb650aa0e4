"""Runs coding agents as users run them in scripts: a shell runs what `--print-env` prints, then the agent's command.

The simulated model asks for a shell command; the agent runs it and sends the result; only then does the model answer
with `WORD`. HOME is a separate folder, telemetry is off, and the proxy variables name a port where nothing listens, so
that connections to any other host are refused immediately.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

SOURCE = Path(__file__).parents[2] / "src"
RESULT = "rig-42"
WORD = f"the answer is {RESULT}, done"
QUESTION = "Use the shell to compute 40+2 and tell me"
PATIENCE = 240
LOOPBACK_ONLY = {
    **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:9"),
    **dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost"),
}


@dataclass(frozen=True, kw_only=True)
class Agent:
    recipe: str
    program: str
    """Pattern of the program in `node_modules`; the first match is used."""
    command: tuple[str, ...]
    tool: str
    """The agent's tool that runs a shell command, given in `argument`."""
    argument: str
    format: str
    """The API that it uses."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables besides those of the recipe: no telemetry, no prompts for confirmation."""


AGENTS: Mapping[str, Agent] = {
    "claude": Agent(
        recipe="claude-code",
        program="@anthropic-ai/claude-code-*/claude",
        command=("claude", "-p", QUESTION, "--allowedTools", "Bash", "--output-format", "json", "--max-turns", "4"),
        tool="Bash",
        argument="command",
        format="anthropic-messages",
        environment={
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_ERROR_REPORTING": "1",
        },
    ),
    "codex": Agent(
        recipe="codex",
        program=".bin/codex",
        command=(
            *("codex", "exec", "--skip-git-repo-check", "--json", "--dangerously-bypass-approvals-and-sandbox"),
            *("-c", "analytics.enabled=false", "-c", "check_for_update_on_startup=false", QUESTION),
        ),
        tool="exec_command",
        argument="cmd",
        format="openai-responses",
    ),
    "gemini": Agent(
        recipe="gemini-cli",
        program=".bin/gemini",
        command=("gemini", "--yolo", "-p", QUESTION, "--output-format", "json"),
        tool="run_shell_command",
        argument="command",
        format="gemini",
        environment={"GEMINI_CLI_TRUST_WORKSPACE": "true", "GEMINI_TELEMETRY_ENABLED": "false"},
    ),
    "opencode": Agent(
        recipe="opencode",
        program="opencode-*/bin/opencode",
        command=("opencode", "run", "--format", "json", QUESTION),
        tool="bash",
        argument="command",
        format="anthropic-messages",
        environment={
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
            "OPENCODE_PERMISSION": '{"bash": "allow"}',
        },
    ),
}


def turns(agents: Iterable[Agent] = AGENTS.values()) -> list[dict[str, object]]:
    """A script for the simulated model: a fixed text after a result, otherwise a call of the agent's own tool.

    Some agents first ask for a title, without tools: those requests get a text.
    """
    calls = [
        {
            "when": {"tool": agent.tool},
            "times": 0,
            "reasoning": "I should look.",
            "text": "I look.",
            "calls": [{"name": agent.tool, "arguments": {agent.argument: "seq -f rig-%g 42 42"}}],
        }
        for agent in agents
    ]
    return [{"when": {"says": RESULT}, "times": 0, "text": WORD}, *calls, {"times": 0, "text": "A title"}]


def printed(client: str, url: str, model: str) -> str:
    """Return what `dragoman serve --print-env` prints for a gateway at this address."""
    command = [sys.executable, "-m", "dragoman", "serve", "--port", str(urlsplit(url).port), "--print-env", client]
    completed = subprocess.run(  # noqa: S603 - our own
        [*command, "--model", model], env={**os.environ, "PYTHONPATH": str(SOURCE)}, capture_output=True, check=True
    )
    return completed.stdout.decode()


@dataclass(frozen=True)
class Ended:
    good: bool
    stdout: str
    stderr: str = ""

    @property
    def output(self) -> str:
        return self.stdout + self.stderr


def in_shell(lines: str, command: Iterable[str], *, home: Path, path: Path, environment: Mapping[str, str]) -> Ended:
    """Run the printed lines unchanged, in a shell that stops at the first error, and then the command."""
    work = home / "work"
    work.mkdir(exist_ok=True)
    given = {"PATH": f"{path}:{os.environ['PATH']}", "HOME": str(home), "TERM": "dumb", **LOOPBACK_ONLY, **environment}
    script = f"set -eu\n{lines}\n{shlex.join(command)}\n"
    try:
        ended = subprocess.run(  # noqa: S603
            ["bash", "-c", script], env=given, cwd=work, stdin=subprocess.DEVNULL, capture_output=True,  # noqa: S607
            timeout=PATIENCE, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        return Ended(
            good=False, stdout=f"nothing within {PATIENCE} s\n{_text(error.stdout)}", stderr=_text(error.stderr)
        )
    return Ended(good=ended.returncode == 0, stdout=_text(ended.stdout), stderr=_text(ended.stderr))


def _text(raw: bytes | None) -> str:
    return (raw or b"").decode(errors="replace")


def run(agent: Agent, program: Path, *, url: str, model: str, home: Path) -> Ended:
    """Run the agent. The result is good if the agent exits without an error and its output contains `WORD`."""
    shortcuts = home / "bin"
    shortcuts.mkdir(parents=True)
    (shortcuts / agent.command[0]).symlink_to(program.resolve())
    lines = printed(agent.recipe, url, model)
    ended = in_shell(lines, agent.command, home=home, path=shortcuts, environment=agent.environment)
    return replace(ended, good=ended.good and WORD in ended.stdout)
