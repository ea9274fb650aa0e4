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
EXAMPLES = re.findall(
    r"```python\n(.*?)```\n\nprints\n\n```text\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL
)
NAMES = ["weather", "rules", "typed", "limits", "instructions", "composition", "testing"]


@promise("agent:documented")
@pytest.mark.parametrize(
    ("program", "printed"),
    EXAMPLES,
    ids=["weather", "rules", "typed", "limits", "instructions", "composition", "testing"],
)
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
    assert len(EXAMPLES) == 7
    assert PAGE.read_text(encoding="utf-8").count("```python\n") == 7
