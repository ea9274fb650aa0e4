"""The examples of docs/agent.md are run, and print what stands below them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.sim.server import Simulator
from tests.cli.command import environment
from tests.support.promises import promise

PAGE = Path(__file__).parents[2] / "docs" / "agent.md"
TEXT = PAGE.read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```\n\nprints\n\n```text\n(.*?)```", TEXT, re.DOTALL)


@promise("agent:documented")
@pytest.mark.parametrize(("program", "printed"), EXAMPLES, ids=range(1, len(EXAMPLES) + 1))
def test_the_examples_run(program: str, printed: str, dragoman_sim: Simulator) -> None:
    variables = {
        **environment(),
        "ANTHROPIC_BASE_URL": f"{dragoman_sim.url}/anthropic",
        "OPENAI_BASE_URL": f"{dragoman_sim.url}/openai/v1",
        "ANTHROPIC_API_KEY": "sk-test",
        "OPENAI_API_KEY": "sk-test",
    }
    ended = subprocess.run(  # noqa: S603
        [sys.executable, "-c", program], env=variables, capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.stderr, ended.stdout) == ("", printed)


@promise("agent:documented")
def test_all_programs_of_the_page_are_run() -> None:
    assert TEXT.count("```python") == len(EXAMPLES) > 7
