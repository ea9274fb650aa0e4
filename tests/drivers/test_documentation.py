"""What docs/providers.md says about providers is what the table says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from dragoman import errors
from dragoman.drivers.base import Settings
from dragoman.drivers.providers import PROVIDERS
from dragoman.sim.server import Simulator

ROW = re.compile(r"^\| \[([\w-]+)\]\(#([\w-]+)\) \| ([\w-]+) \| (.*?) \| (.*?) \|$", re.MULTILINE)
TEXT = (Path(__file__).parents[2] / "docs" / "providers.md").read_text(encoding="utf-8")


def test_every_provider_has_a_row_with_its_format_its_keys_and_its_section() -> None:
    rows = {row[0]: row for row in ROW.findall(TEXT)}
    assert list(rows) == list(PROVIDERS)
    headings = {re.sub(r"\s", "-", heading.lower()) for heading in re.findall(r"^## (.+)$", TEXT, re.MULTILINE)}
    for name, provider in PROVIDERS.items():
        _, section, format_name, keys, address = rows[name]
        assert section in headings
        assert format_name == provider.format
        assert set(re.findall(r"`([A-Z_]+)`", keys)) == set(provider.key_environment)
        assert set(re.findall(r"`([A-Z_]+)`", address)) <= set(provider.base_url_environment)


@pytest.mark.parametrize("name", sorted(Settings.__annotations__))
def test_every_setting_is_named(name: str) -> None:
    assert f"`{name}`" in TEXT


def test_every_error_is_named() -> None:
    kinds: list[type[errors.ProviderError]] = [errors.ProviderError, *errors.ProviderError.__subclasses__()]
    for kind in kinds:
        assert re.search(rf"`(?:dragoman\.)?{kind.__name__}`", TEXT), kind


def test_the_examples_run(
    dragoman_sim: Simulator, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "any")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", dragoman_sim.url + "/anthropic")
    monkeypatch.setenv("OPENAI_API_KEY", "any")
    monkeypatch.setenv("OPENAI_BASE_URL", dragoman_sim.url + "/openai/v1")
    query, embeddings = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    exec(compile(query, "docs/providers.md", "exec"), {"__name__": "example"})  # noqa: S102 - our own document
    assert "18 degrees" in capsys.readouterr().out
    assert [recorded.status for recorded in dragoman_sim.requests] == [200, 200, 200]
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(embeddings, "docs/providers.md", "exec"), names)  # noqa: S102 - our own document
    assert [len(vector) for vector in names["result"].vectors] == [256, 256]
