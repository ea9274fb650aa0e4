"""The README: its programs run, its commands exist, its links lead somewhere, its tables are complete."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
import shlex
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

import dragoman
from dragoman.cli.main import COMMANDS, build_parser
from dragoman.sim.server import Simulator

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
# Programs that ask a gateway are run in tests/gateway/test_documented.py.
PROGRAMS = [one for one in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL) if "127.0.0.1:8787" not in one]
# A program and, where the page shows it, what it prints.
PRINTED = dict(re.findall(r"```python\n((?:(?!```).)*)```\n\n```text\n(.*?)```", TEXT, re.DOTALL))
COMMAND_LINES = [line for line in re.findall(r"^\$ (.*)$", TEXT, re.MULTILINE) if line.startswith("dragoman ")]
# A Chat stream that calls a tool, cut where it should not matter.
UPSTREAM = (
    b'data: {"id":"c","model":"m","choices":[{"index":0,"delta":{"role":"assistant","con',
    b'tent":"Hello"}}]}\n\ndata: {"id":"c","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n',
    b"data: [DONE]\n\n",
)


def execute(program: str, names: dict[str, Any]) -> None:
    """Top-level `await` and all, as in a notebook."""
    code: CodeType = compile(program, "README.md", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)

    async def run() -> None:
        outcome = eval(code, names)  # noqa: S307 - our own page
        if inspect.isawaitable(outcome):
            await outcome

    asyncio.run(run())


def ask_my_agent(base_url: str) -> str:
    driver = dragoman.connect_sync("anthropic/claude-sonnet-5", base_url=base_url, api_key="k")
    try:
        return driver.query("Hello?").content
    finally:
        driver.close()


def test_it_starts_with_the_four_types_and_a_short_tool_loop() -> None:
    before, _, _ = TEXT.partition("```")
    assert [name for name in ("ToolDefinition", "ToolChoice", "ToolCall", "ToolResult") if name not in before] == []
    loop = PROGRAMS[0].partition("\nwith ")[2].splitlines()
    assert any("while answer.tool_calls" in line for line in loop)
    assert len(loop) <= 10
    assert PROGRAMS[0] in PRINTED


def test_the_programs_run_one_after_the_other(
    dragoman_sim: Simulator, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for vendor in ("ANTHROPIC", "GEMINI"):
        monkeypatch.setenv(f"{vendor}_BASE_URL", f"{dragoman_sim.url}/{vendor.lower()}")
        monkeypatch.setenv(f"{vendor}_API_KEY", "sk-test")
    monkeypatch.delenv("GOOGLE_GEMINI_BASE_URL", raising=False)
    sent: list[bytes] = []
    names: dict[str, Any] = {"upstream": UPSTREAM, "send": sent.append, "ask_my_agent": ask_my_agent}
    printed = []
    assert len(PRINTED) == 2
    for program in PROGRAMS:
        execute(program, names)
        printed.append(capsys.readouterr().out)
        assert printed[-1] == PRINTED.get(program, printed[-1])
    assert names["encoded"].path == "/v1/messages"
    assert b"message_stop" in b"".join(sent)
    assert names["translator"].completion.text == "Hello"
    assert [call.name for call in names["result"].tool_calls] == ["get_weather"]
    assert "18 degrees in Tokyo" in printed[-2]
    names["test_my_agent"](dragoman_sim)


@pytest.mark.parametrize("line", COMMAND_LINES)
def test_the_commands_are_understood(line: str) -> None:
    # `--report` alone means a table; `main` spells that out before argparse sees it.
    words = ["--report=table" if word == "--report" else word for word in shlex.split(line)]
    build_parser().parse_args(words[1:])


def test_every_format_and_every_command_people_start_with_is_named() -> None:
    assert all(f"`{name}`" in TEXT for name in dragoman.formats(None))
    used = {line.split()[1] for line in COMMAND_LINES}
    assert used <= COMMANDS.keys()
    assert used >= {"convert", "inspect", "ask", "doctor", "sim"}


def test_every_link_leads_somewhere() -> None:
    for target in re.findall(r"\]\(([^)]+)\)", TEXT):
        path, _, section = target.partition("#")
        assert (ROOT / path).exists(), target
        headings = re.findall(r"^#+ (.+)$", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE) if section else []
        assert not section or section in {heading.lower().replace(" ", "-") for heading in headings}, target
