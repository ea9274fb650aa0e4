"""`dragoman inspect` and `convert` read every format of stored conversations, as `batch` does."""

import json
from pathlib import Path

import pytest

from dragoman.cli import main
from dragoman.codecs.datasets.catalogue import is_session
from tests.datasets.public_shapes import CLAUDE_CODE
from tests.datasets.stories import STORIES
from tests.support.promises import promise


@promise("batch:datasets")
@pytest.mark.parametrize("name", STORIES)
def test_the_commands_detect_the_format(name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    record = STORIES[name]
    is_lines = is_session(name) and isinstance(record, list)
    path = tmp_path / ("one.jsonl" if is_lines else "one.json")
    path.write_text("\n".join(map(json.dumps, record)) if is_lines else json.dumps(record), "utf-8")
    assert main(["inspect", str(path)]) == 0
    assert name in capfd.readouterr().out
    assert main(["convert", str(path), "--to", "openai-chat"]) == 0
    assert "Oslo" in json.dumps(json.loads(capfd.readouterr().out)["messages"])


@promise("batch:datasets", "law:2-nothing-vanishes")
def test_a_session_with_damaged_lines_is_read(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A program that was killed leaves part of a line, and the next run appends to it."""
    first, *lines = (json.dumps(line) for line in CLAUDE_CODE)
    path = tmp_path / "session.jsonl"
    path.write_text("\n".join([first, '{"type":"us', *lines, '{"type":"assistant","message":{']), "utf-8")
    assert main(["convert", str(path), "--to", "openai-chat", "--report"]) == 0
    shown = capfd.readouterr()
    assert "Oslo" in shown.out
    assert "$[1].unreadable" in shown.err
