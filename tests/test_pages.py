"""docs/tools.md and docs/coming-from.md: their programs run as printed, their links lead somewhere."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from dragoman.sim.server import Simulator
from tests.support.promises import promise

DOCS = Path(__file__).parents[1] / "docs"
PAGES = ("tools.md", "coming-from.md")
_BLOCK = re.compile(r"```(\w*)\n(.*?)```", re.DOTALL)


def blocks(page: str) -> list[tuple[str, str]]:
    """(language, text) of every fenced block."""
    return _BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))


@promise("front:pages-run")
@pytest.mark.parametrize("page", PAGES)
def test_the_programs_of_the_page_run_and_print_what_it_says(
    page: str, dragoman_sim: Simulator, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for vendor in ("ANTHROPIC", "GEMINI"):
        monkeypatch.setenv(f"{vendor}_BASE_URL", f"{dragoman_sim.url}/{vendor.lower()}")
        monkeypatch.setenv(f"{vendor}_API_KEY", "sk-test")
    monkeypatch.delenv("GOOGLE_GEMINI_BASE_URL", raising=False)
    printed = ""
    for language, text in blocks(page):
        if language == "python":
            exec(compile(text, page, "exec"), {"__name__": "page"})  # noqa: S102 - each program stands alone
            printed = capsys.readouterr().out
        elif language == "text":
            assert printed == text


@promise("front:pages-run")
def test_a_library_that_people_come_from_has_a_section_with_a_port() -> None:
    text = (DOCS / "coming-from.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))
    named = ("modular-prompt", "agent-sdk", "multi_llm_chat", "litellm", "any-llm", "llm-rosetta", "LangChain")
    assert set(named) <= set(sections)
    assert [name for name in named if "```python" not in sections[name]] == []


@promise("front:pages-run")
def test_the_page_of_the_four_types_shows_each_conversion_table() -> None:
    section = (DOCS / "tools.md").read_text(encoding="utf-8").partition("## How they are written in each format")[2]
    section = section.partition("\n## ")[0]
    tables = re.findall(r"^\*\*(\w+)\.\*\*\n\n((?:^\|.*\n)+)", section, re.MULTILINE)
    assert [name for name, _ in tables] == ["Definitions", "Choice", "Calls", "Results"]
    for name, table in tables:
        for vendor in ("OpenAI Chat", "Anthropic", "Gemini"):
            assert f"| {vendor}" in table, (name, vendor)


@promise("front:pages-run")
def test_the_code_of_other_libraries_is_python_too() -> None:
    programs = [text for language, text in blocks("coming-from.md") if language == "py"]
    assert len(programs) == 4
    for program in programs:
        ast.parse(program)


@promise("front:pages-run")
@pytest.mark.parametrize("page", PAGES)
def test_every_link_of_the_page_leads_somewhere(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    headings = {heading.lower().replace(" ", "-") for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)}
    for target in re.findall(r"\]\(([^)]+)\)", text):
        path, _, section = target.partition("#")
        assert not path or (DOCS / path).exists(), target
        assert path or section in headings, target
