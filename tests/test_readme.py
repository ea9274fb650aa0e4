"""The README: its programs run, its commands exist, and no link is broken."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from dragoman.cli.main import COMMANDS, build_parser
from dragoman.sim.server import Simulator

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
# Programs that ask a gateway are run in tests/gateway/test_documentation.py.
PROGRAMS = [one for one in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL) if "127.0.0.1:8787" not in one]
# A program and, where the page shows it, what it prints.
PRINTED = dict(re.findall(r"```python\n((?:(?!```).)*)```\n\n```text\n(.*?)```", TEXT, re.DOTALL))
COMMAND_LINES = [line for line in re.findall(r"^\$ (.*)$", TEXT, re.MULTILINE) if line.startswith("dragoman ")]


def test_the_readme_fits_on_a_few_screens() -> None:
    """It has what a new user needs first; everything else has a page in docs/."""
    assert len(TEXT.splitlines()) <= 180


def test_the_readme_names_the_four_types_and_shows_a_short_tool_loop() -> None:
    before, _, _ = TEXT.partition("```")
    assert [name for name in ("ToolDefinition", "ToolChoice", "ToolCall", "ToolResult") if name not in before] == []
    (program,) = (one for one in PROGRAMS if "while answer.tool_calls" in one)
    assert len(program.partition("\nwith ")[2].splitlines()) <= 10
    assert program in PRINTED


def test_the_programs_run_unchanged(
    dragoman_sim: Simulator, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", f"{dragoman_sim.url}/anthropic")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test")
    assert (len(PROGRAMS), len(PRINTED)) == (3, 2)
    for program in PROGRAMS:
        exec(compile(program, "README.md", "exec"), {"__name__": "README"})  # noqa: S102 - our own page
        printed = capsys.readouterr().out
        assert printed == PRINTED.get(program, printed)
        assert "Tokyo" in printed


@pytest.mark.parametrize("line", COMMAND_LINES)
def test_the_commands_are_valid(line: str) -> None:
    # `--report` alone means a table; `main` spells that out before argparse sees it.
    words = ["--report=table" if word == "--report" else word for word in shlex.split(line, comments=True)]
    build_parser().parse_args(words[1:])


def test_every_kind_of_user_finds_a_command() -> None:
    used = {line.split()[1] for line in COMMAND_LINES}
    assert used <= COMMANDS.keys()
    assert used >= {"ask", "serve", "chat", "convert", "batch", "sim", "inspect", "doctor"}


def test_no_link_is_broken() -> None:
    for target in re.findall(r"\]\(([^)]+)\)", TEXT):
        path, _, section = target.partition("#")
        path = path or "README.md"
        assert (ROOT / path).exists(), target
        headings = re.findall(r"^#+ (.+)$", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE) if section else []
        assert not section or section in {heading.lower().replace(" ", "-") for heading in headings}, target
