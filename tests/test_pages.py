"""The pages of docs/: each program runs alone and prints what the page says, and no link is broken."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.sim.server import Simulator
from tests.support.promises import promise

DOCS = Path(__file__).parents[1] / "docs"
PAGES = ("tools.md", "coming-from.md")
RUN_ELSEWHERE = {
    "adding-a-format.md": "testing/test_adding_a_format.py",  # its blocks are the files of one package
    "agent.md": "agent/test_documentation.py",
    "bulk.md": "batch/test_documentation.py",
    "gateway.md": "gateway/test_documentation.py",  # clients of a gateway that is running
    **dict.fromkeys(("index.md", "quickstart.md", "formats.md", "faq.md"), "test_site.py"),
    "simulators.md": "test_pages.py",  # a file of tests, below
}
_BLOCK = re.compile(r"```(\w*)\n(.*?)```", re.DOTALL)


def blocks(page: str) -> list[tuple[str, str]]:
    """(language, text) of every fenced block."""
    return _BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))


def pages_with_programs() -> list[str]:
    return sorted(
        path.name for path in DOCS.glob("*.md") if any(language == "python" for language, _ in blocks(path.name))
    )


@promise("front:pages-run")
@pytest.mark.parametrize("page", [page for page in pages_with_programs() if page not in RUN_ELSEWHERE])
def test_each_program_of_the_page_runs_alone_and_prints_what_it_says(
    page: str, dragoman_sim: Simulator, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for vendor, path in (("ANTHROPIC", "anthropic"), ("GEMINI", "gemini"), ("OPENAI", "openai/v1")):
        monkeypatch.setenv(f"{vendor}_BASE_URL", f"{dragoman_sim.url}/{path}")
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
def test_the_programs_of_every_other_page_are_run_by_a_test_that_names_it() -> None:
    assert set(RUN_ELSEWHERE) <= set(pages_with_programs())
    for page, test in RUN_ELSEWHERE.items():
        assert f'"{page}"' in (DOCS.parent / "tests" / test).read_text(encoding="utf-8"), page


@promise("front:pages-run")
def test_the_tests_on_the_page_of_simulators_pass(tmp_path: Path) -> None:
    (program,) = (text for language, text in blocks("simulators.md") if language == "python")
    (tmp_path / "test_printed.py").write_text(program, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_printed.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)  # noqa: S603
    assert "2 passed" in done.stdout, done.stdout + done.stderr


@promise("front:pages-run")
def test_every_library_to_migrate_from_has_a_section_with_ported_code() -> None:
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
def test_the_code_of_other_libraries_is_valid_python() -> None:
    programs = [text for language, text in blocks("coming-from.md") if language == "py"]
    assert len(programs) == 4
    for program in programs:
        ast.parse(program)


@promise("front:pages-run")
@pytest.mark.parametrize("page", PAGES)
def test_no_link_of_the_page_is_broken(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    headings = {heading.lower().replace(" ", "-") for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)}
    for target in re.findall(r"\]\(([^)]+)\)", text):
        path, _, section = target.partition("#")
        assert not path or (DOCS / path).exists(), target
        assert path or section in headings, target
