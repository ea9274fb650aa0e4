"""docs/chat.md: its program runs, and what it names exists."""

import argparse
import re
from pathlib import Path

from dragoman.chat.participants import DEFAULTS
from dragoman.chat.terminal.commands import COMMANDS
from dragoman.cli import chat
from tests.support.promises import promise

TEXT = (Path(__file__).parents[2] / "docs" / "chat.md").read_text(encoding="utf-8")


@promise("chat:chat-documented")
def test_the_program_in_the_guide_runs() -> None:
    (program,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    exec(compile(program, "docs/chat.md", "exec"), {"__name__": "guide"})  # noqa: S102 - that is the test


@promise("chat:chat-documented")
def test_every_command_option_and_name_of_the_guide_exists_and_none_is_missing() -> None:
    plain = TEXT.replace("\\|", "|")
    for name, command in COMMANDS.items():
        assert name in plain
        assert command.usage in plain or not command.words, command.usage
    parser = argparse.ArgumentParser()
    chat.add_arguments(parser)
    known = {option for action in parser._actions for option in action.option_strings}  # noqa: SLF001
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", TEXT)) <= known
    assert all(f"`{name}`" in TEXT for name in DEFAULTS)


@promise("chat:chat-documented")
def test_pictures_and_links_lead_somewhere() -> None:
    docs = Path(__file__).parents[2] / "docs"
    for target in re.findall(r"\]\(([^)#]+)", TEXT):
        assert (docs / target).is_file(), target
