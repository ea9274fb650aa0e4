"""Checks docs/gateway.md and the README: the configuration is valid, the commands exist, and the programs run unchanged
against a gateway that was just started without keys, as by `make run`."""

import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli.main import build_parser
from dragoman.gateway.config import read_config
from dragoman.gateway.recipes import RECIPES
from dragoman.gateway.routing import Router
from tests.gateway.test_command import served
from tests.support.promises import promise

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "gateway.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str, text: str = TEXT) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


PROGRAMS = [one for one in blocks("python") + blocks("python", README) if "127.0.0.1:8787" in one]


@promise("gateway:documented")
def test_the_documented_configuration_is_valid() -> None:
    text, *others = blocks("toml")
    for other in others:
        read_config(other)
    keys = {"GATEWAY_KEY": "a", "KEY_ONE": "b", "KEY_TWO": "c", "INHOUSE_KEY": "d", "GEMINI_API_KEY": "e"}
    router = Router(read_config(text), keys, chance=lambda: 0.0)
    names = [
        f"{one.upstream.name}/{one.model}" for one in router.plan("claude-opus-5-5", "anthropic-messages").candidates
    ]
    assert set(names[:2]) == {"anthropic#1/claude-sonnet-5", "anthropic#2/claude-sonnet-5"}
    assert names[2:] == ["inhouse/large", "gemini/gemini-3.8-flash"]


ADDRESS = "http://127.0.0.1:8787"


@pytest.fixture(scope="module")
def first_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A gateway at the address that the documentation names, or at another one if the port is in use."""
    with ExitStack() as stack:
        try:
            url, _ = stack.enter_context(served("--port", "8787", cwd=tmp_path_factory.mktemp("run")))
        except AssertionError:
            url, _ = stack.enter_context(served(cwd=tmp_path_factory.mktemp("run")))
        yield url


@promise("gateway:documented", "gateway:no-config")
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_documented_programs_run(first_run: str, program: str, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    exec(program.replace(ADDRESS, first_run), names)  # noqa: S102 - our own documentation
    names["client"].close()
    assert capsys.readouterr().out == "Hello! How can I help?\n"


@promise("gateway:documented", "gateway:no-config")
def test_the_documented_curl_command_runs(first_run: str) -> None:
    (command,) = [block[2:] for block in blocks("console") if block.startswith("$ curl")]
    script = ["bash", "-c", f"{command.replace(ADDRESS, first_run).strip()} --silent --fail"]
    completed = subprocess.run(script, capture_output=True, check=True)  # noqa: S603 - our own documentation
    assert json.loads(completed.stdout)["choices"][0]["message"]["content"]


def test_programs_for_three_sdks_are_documented() -> None:
    assert len(PROGRAMS) == 4


@promise("gateway:documented")
def test_the_documented_commands_exist() -> None:
    console = "\n".join(blocks("console"))
    lines = re.findall(r"^\$ (dragoman .*)$|\$\((dragoman [^)]*)\)", console, re.MULTILINE)
    for line in map("".join, lines):
        build_parser().parse_args(shlex.split(line)[1:])
    assert len(lines) >= 5
    assert set(re.findall(r"--print-env (\w[\w-]*)", TEXT + README)) <= {*RECIPES, "list", "CLIENT"}


@promise("gateway:documented")
def test_every_recipe_is_documented() -> None:
    assert re.findall(r"^\| [^|]+ \| `(\w[\w-]+)` \| .+ \|$", TEXT, re.MULTILINE) == list(RECIPES)
