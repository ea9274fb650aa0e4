"""docs/bulk.md: its commands and programs run as printed, from top to bottom."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import dragoman
from dragoman.batch.provider_files import BATCH_FILES
from dragoman.sim.server import Simulator
from tests.batch.conversations import ROOT
from tests.cli.command import COMMAND, environment
from tests.support.promises import promise

PAGE = (ROOT / "docs" / "bulk.md").read_text(encoding="utf-8")
BLOCKS: list[tuple[str, str]] = re.findall(r"```(\w*)\n(.*?)```", PAGE, re.DOTALL)


@promise("batch:page")
def test_the_commands_run_as_printed(dragoman_sim: Simulator, tmp_path: Path) -> None:
    surroundings = environment(ANTHROPIC_API_KEY="sk-test", ANTHROPIC_BASE_URL=f"{dragoman_sim.url}/anthropic")
    commands = [line for language, text in BLOCKS if language == "bash" for line in text.splitlines()]
    assert len(commands) == 14
    for command in commands:
        words = shlex.split(command.partition(" > ")[0])
        program = COMMAND if words[0] == "dragoman" else (sys.executable, str(ROOT / words[1]))
        words = [*program, *words[1 if words[0] == "dragoman" else 2 :]]
        done = subprocess.run(  # noqa: S603
            words, capture_output=True, cwd=tmp_path, env=surroundings, timeout=120, check=False
        )
        assert done.returncode == 0, (command, done.stderr)
        if " > " in command:
            (tmp_path / command.partition(" > ")[2]).write_bytes(done.stdout)
    assert len((tmp_path / "converted" / "rejects.jsonl").read_bytes().splitlines()) == 5
    counts = {
        name: len((tmp_path / name).read_bytes().splitlines())
        for name in ("finetuning.jsonl", "bedrock.jsonl", "answers.jsonl", "later.jsonl")
    }
    assert set(counts.values()) == {195}


@promise("batch:page")
def test_the_programs_print_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    printed = ""
    for language, text in BLOCKS:
        if language == "python":
            exec(compile(text, "bulk.md", "exec"), {})  # noqa: S102 - each program stands alone
            printed = capsys.readouterr().out
        elif language == "text" and printed:
            assert printed == text
            printed = ""


@promise("batch:page")
def test_every_format_is_on_the_page() -> None:
    assert [name for name in (*dragoman.formats("dataset"), *BATCH_FILES) if f"`{name}`" not in PAGE] == []
