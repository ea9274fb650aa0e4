"""`dragoman inspect` and `convert` read every format of stored conversations, as `batch` does."""

import json
from pathlib import Path

import pytest

from dragoman.cli import main
from dragoman.codecs.datasets.catalogue import is_session
from tests.datasets.stories import STORIES
from tests.support.promises import promise


@promise("batch:datasets")
@pytest.mark.parametrize("name", STORIES)
def test_the_commands_know_the_format(name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    record = STORIES[name]
    is_lines = is_session(name) and isinstance(record, list)
    path = tmp_path / ("one.jsonl" if is_lines else "one.json")
    path.write_text("\n".join(map(json.dumps, record)) if is_lines else json.dumps(record), "utf-8")
    assert main(["inspect", str(path)]) == 0
    assert name in capfd.readouterr().out
    assert main(["convert", str(path), "--to", "openai-chat"]) == 0
    assert "Oslo" in json.dumps(json.loads(capfd.readouterr().out)["messages"])
