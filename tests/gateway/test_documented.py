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

TEXT = (Path(__file__).parents[2] / "docs" / "gateway.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


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
@pytest.mark.parametrize("program", blocks("python"), ids=["openai", "anthropic", "google"])
def test_the_programs_run(gateway: RunningGateway, program: str) -> None:
    for provider, format in (
        ("anthropic/", "anthropic-messages"),
        ("gemini/", "gemini"),
        ("openai/", "openai-responses"),
    ):
        program = program.replace(f'"{provider}', f'"as-{format}/')
    names: dict[str, Any] = {}
    exec(program.replace("http://127.0.0.1:8787", gateway.url), names)  # noqa: S102 - our own documentation
    names["client"].close()
    assert "Hello" in str(names["answer"])


@promise("gateway:documented")
def test_the_commands_are_understood() -> None:
    lines = [line[2:] for block in blocks("console") for line in block.splitlines() if line.startswith("$ dragoman")]
    for line in lines:
        build_parser().parse_args(shlex.split(line)[1:])
    assert len(lines) >= 5
    assert set(re.findall(r"--print-env (\w[\w-]*)", TEXT)) <= {*RECIPES, "list", "CLIENT"}
