"""Everything that the pages name exists: files, targets of the Makefile, commands and their options."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import dragoman
from dragoman.cli.main import COMMANDS, Parser
from tests.support.promises import promise

ROOT = Path(__file__).parents[1]
# Replaced decisions describe code that was removed, and the changelog describes older versions.
HISTORY = frozenset({"CHANGELOG.md", "docs/decisions/0007-fast-path.md", "docs/decisions/0013-gateway-server.md"})
# Files of a user's own project or made by tools, and those of the invented format of docs/adding-a-format.md.
OF_READERS = frozenset(
    {"agent.py", "check.py", "poetry.lock", "tool.py", "tools.py", "uv.lock", "weather.py", "web/node_modules"}
)
MADE_UP = "postcard/"
FOLDERS = "benchmarks|compiling|deploy|docs|examples|scripts|src|tests|web"

_SPAN = re.compile(r"`([^`\n]+)`")
_FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
_FILE = re.compile(rf"(?<![\w./-])((?:[\w.-]+/)*[\w-]+\.(?:py|ts|css|h|lock)\b|(?:{FOLDERS})/[\w./-]*\w)(?![\w*<{{])")
_TARGET = re.compile(r"\bmake ([a-z][a-z-]*)")
_COMMAND = re.compile(r"(?:^\s*(?:\$ )?(?:[A-Z_]+=\S+ )*|[;&|(] ?)dragoman ([a-z][a-z-]*)\b([^\n;&|#]*)")
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
_PROGRAM = re.compile(r"python (?:(?P<file>[\w/]+\.py)|-m (?P<module>tests[\w.]+))")


@cache
def pages() -> dict[str, str]:
    listed = [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / name / "README.md" for name in ("benchmarks", "deploy", "examples")),
    ]
    names = {path.relative_to(ROOT).as_posix(): path for path in listed}
    return {name: path.read_text(encoding="utf-8") for name, path in sorted(names.items()) if name not in HISTORY}


def code_of(text: str) -> Iterator[str]:
    """Lines of code blocks with commands, and inline code."""
    for language, block in _FENCE.findall(text):
        if language in {"", "console", "sh", "bash", "text"}:
            yield from block.splitlines()
    yield from _SPAN.findall(_FENCE.sub("", text))


@cache
def names_of_files() -> frozenset[str]:
    folders = [ROOT / name for name in FOLDERS.split("|")]
    found = [path for folder in folders for path in folder.rglob("*.*") if "node_modules" not in path.parts]
    return frozenset(path.name for path in (*found, *ROOT.glob("*.*")))


def exists(name: str, page: str) -> bool:
    """Whether the file exists: from the root, beside the page or in the package; a bare name may be anywhere."""
    places = (ROOT, (ROOT / page).parent, ROOT / "src" / "dragoman", ROOT / "src")
    return any((place / name).exists() for place in places) or ("/" not in name and name in names_of_files())


@promise("front:pages-are-true")
def test_every_file_that_a_page_names_exists() -> None:
    wrong = [
        f"{page}: {name}"
        for page, text in pages().items()
        for code in code_of(text)
        for name in _FILE.findall(code)
        if not name.startswith(MADE_UP) and name not in OF_READERS and not exists(name, page)
    ]
    assert wrong == []


@promise("front:pages-are-true")
def test_every_target_that_a_page_names_is_in_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z][a-z-]*):", makefile, re.MULTILINE))
    named = {
        (page, target) for page, text in pages().items() for code in code_of(text) for target in _TARGET.findall(code)
    }
    assert sorted((page, target) for page, target in named if target not in targets) == []
    assert {"run", "test", "docs"} <= {target for _, target in named}
    helped = set(re.findall(r'echo "make ([a-z][a-z-]*)', makefile))
    assert helped <= targets


@cache
def options_of(command: str) -> frozenset[str]:
    parser = Parser(prog="dragoman", allow_abbrev=False)
    COMMANDS[command].add_arguments(parser)
    return frozenset(_options(parser))


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:  # noqa: SLF001 - argparse has no public list of them
        yield from action.option_strings
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for inner in action.choices.values():
                yield from _options(inner)


@promise("front:pages-are-true")
def test_every_command_that_a_page_shows_exists_and_has_its_options() -> None:
    wrong, seen = [], 0
    for page, text in pages().items():
        for code in code_of(text):
            for command, rest in _COMMAND.findall(code):
                if command not in COMMANDS:
                    wrong.append(f"{page}: dragoman {command}")
                    continue
                seen += 1
                wrong += [
                    f"{page}: dragoman {command} {o}" for o in _OPTION.findall(rest) if o not in options_of(command)
                ]
    assert wrong == []
    assert seen > len(COMMANDS)


def _program(code: str) -> Path | None:
    """The program of ours that a line starts, directly or through a target of the Makefile."""
    found, made = _PROGRAM.search(code), _TARGET.search(code)
    if found is None and made is not None:
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
        recipe = re.search(rf"^{made[1]}:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
        found = None if recipe is None else _PROGRAM.search(recipe[1].replace("$(PY)", "python"))
    if found is None or found["file"] in OF_READERS:
        return None
    return ROOT / (found["file"] or found["module"].replace(".", "/") + ".py")


@promise("front:pages-are-true")
def test_every_option_that_a_page_names_exists() -> None:
    programs = [
        *(ROOT / "scripts").glob("*.py"),
        *(ROOT / "benchmarks").glob("*.py"),
        ROOT / "tests" / "fuzz" / "run.py",
    ]
    everywhere = {option for command in COMMANDS for option in options_of(command)}
    everywhere |= {option for path in programs for option in _declared(path)}
    wrong = []
    for page, text in pages().items():
        for code in code_of(text):
            program = _program(code)
            if program is None and not code.startswith("--"):
                continue  # of another program, or checked with its command
            known = everywhere if program is None else _declared(program)
            wrong += [f"{page}: {option}" for option in _OPTION.findall(code) if option not in known]
    assert wrong == []


@cache
def _declared(program: Path) -> frozenset[str]:
    """The options of a program, which may be written as `f"--{name}"` beside a list of names."""
    text = program.read_text(encoding="utf-8")
    names = re.findall(r'"([a-z]+)"', text) if 'f"--{' in text else []
    return frozenset([*re.findall(r'"(--[a-z][a-z-]*)"', text), *(f"--{name}" for name in names)])


_NAMED_IN_CODE = re.compile(r"(?<![\w./\"'-])((?:[\w-]+/)+[\w-]+\.(?:py|md|h)|[\w-]+\.py)(?![\w\"'])")


@promise("front:pages-are-true")
def test_every_file_that_a_comment_or_docstring_names_exists() -> None:
    wrong = []
    for folder in ("benchmarks", "compiling", "examples", "scripts", "src"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            page = path.relative_to(ROOT).as_posix()
            names = set(_NAMED_IN_CODE.findall(path.read_text(encoding="utf-8")))
            wrong += [f"{page}: {name}" for name in names - OF_READERS if not exists(name, page)]
    assert wrong == []


@promise("front:pages-are-true")
def test_the_page_of_the_gateway_has_a_name_for_every_format() -> None:
    table = re.search(
        r"FORMATS[^{]*\{(.*?)\}", (ROOT / "web/src/live/display.ts").read_text(encoding="utf-8"), re.DOTALL
    )
    assert table is not None
    assert set(re.findall(r'^ *"?([a-z-]+)"?: ', table[1], re.MULTILINE)) == set(dragoman.formats())
