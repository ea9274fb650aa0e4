"""The page that adds a format is right: its code is run as it stands there."""

import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from msgspec import structs

import dragoman
from dragoman import ir
from dragoman.codecs.registry import Codec
from dragoman.losses import LossLog
from dragoman.passes.legalise import legalise
from dragoman.testing import CodecFailed, check_codec
from tests.cli.command import environment

PAGE = Path(__file__).parents[2] / "docs" / "adding-a-format.md"
BLOCK = re.compile(r"```python\n# (?P<path>\S+)\n(?P<code>.*?)```", re.DOTALL)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the page, where it says they are."""
    folder = tmp_path_factory.mktemp("house")
    for block in BLOCK.finditer(PAGE.read_text(encoding="utf-8")):
        path = folder / block["path"]
        path.parent.mkdir(exist_ok=True)
        path.write_text(block["code"], encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def postcard(house: Path) -> Iterator[ModuleType]:
    sys.path.insert(0, str(house))
    yield importlib.import_module("postcard")
    sys.path.remove(str(house))


def test_the_page_runs_as_printed(house: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "check.py"], cwd=house, env=environment(), capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.startswith("postcard: 0 findings")


def test_a_conversation_crosses_to_the_new_format(postcard: ModuleType) -> None:
    chat = {
        "model": "gpt-4.1",
        "messages": [{"role": "user", "content": "Hi"}],
        "seed": 7,
    }
    log = LossLog()
    request = legalise(dragoman.decode_request(chat, "openai-chat"), postcard.PROFILE, log)
    encoded = postcard.CODEC.encode_request(request, log)
    assert encoded.body == {"lines": [{"who": "user", "text": "Hi"}], "to": "gpt-4.1"}
    assert [entry[1] for entry in log.entries] == ["seed"]


def test_the_finding_the_page_shows_is_the_one_there_is(postcard: ModuleType) -> None:
    """A codec that forgets to tell the rest."""
    honest: Codec = postcard.CODEC

    def forgetful(request: ir.Request, _log: LossLog) -> dragoman.Encoded:
        return honest.encode_request(request, LossLog())

    report = check_codec(structs.replace(honest, encode_request=forgetful))
    shown = re.search(r"```text\n(.*)\n```", PAGE.read_text(encoding="utf-8"))
    assert shown is not None
    assert shown[1] in map(str, report.findings)
    with pytest.raises(CodecFailed, match="lost without a report"):
        report.raise_if_failed()
