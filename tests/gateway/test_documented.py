"""docs/gateway.md is right: its configuration is read, its programs run, its commands are understood."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli.main import build_parser
from dragoman.gateway.config import read_config
from dragoman.gateway.recipes import RECIPES
from dragoman.gateway.routing import Router
from tests.gateway.running import RunningGateway
from tests.support.promises import promise

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "gateway.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str, text: str = TEXT) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


PROGRAMS = [one for one in blocks("python") + blocks("python", README) if "127.0.0.1:8787" in one]


@promise("gateway:documented")
def test_the_configuration_is_read() -> None:
    (text,) = blocks("toml")
    keys = {"GATEWAY_KEY": "a", "KEY_ONE": "b", "KEY_TWO": "c", "INHOUSE_KEY": "d", "GEMINI_API_KEY": "e"}
    router = Router(read_config(text), keys, chance=lambda: 0.0)
    names = [
        f"{one.upstream.name}/{one.model}" for one in router.plan("claude-opus-5-5", "anthropic-messages").candidates
    ]
    assert set(names[:2]) == {"anthropic#1/claude-sonnet-5", "anthropic#2/claude-sonnet-5"}
    assert names[2:] == ["inhouse/large", "gemini/gemini-3.8-flash"]


@promise("gateway:documented")
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_programs_run(gateway: RunningGateway, program: str) -> None:
    names: dict[str, Any] = {}
    exec(program.replace("http://127.0.0.1:8787", gateway.url), names)  # noqa: S102 - our own documentation
    names["client"].close()
    (record,) = gateway.requests(1)
    assert record["status"] == 200


def test_there_are_programs_for_three_sdks_in_both() -> None:
    assert len(PROGRAMS) == 6


@promise("gateway:documented")
def test_the_commands_are_understood() -> None:
    lines = [line[2:] for block in blocks("console") for line in block.splitlines() if line.startswith("$ dragoman")]
    for line in lines:
        build_parser().parse_args(shlex.split(line)[1:])
    assert len(lines) >= 5
    assert set(re.findall(r"--print-env (\w[\w-]*)", TEXT)) <= {*RECIPES, "list", "CLIENT"}
