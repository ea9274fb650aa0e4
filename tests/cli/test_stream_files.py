"""`dragoman convert --stream` reads streams of every format, however they were saved."""

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import dragoman
from dragoman import ir
from dragoman.cli.main import main
from dragoman.codecs.registry import folder_of
from dragoman.codecs.stream_limits import Limits
from tests.support.formats import FORMATS
from tests.support.promises import promise

pytestmark = promise("core:small-things")

EVENTS: list[ir.AnyEvent] = [
    ir.StreamStart(id="id_1", model="m"),
    ir.PartStart(0, ir.Text("")),
    ir.PartDelta(0, "Hello"),
    ir.PartDelta(0, " world"),
    ir.PartEnd(0),
    ir.UsageUpdate(ir.Usage(input=3, output=2)),
    ir.Finished(ir.Finish("stop")),
]


def payloads(format: str) -> tuple[bytes, list[Any]]:
    """A stream on the wire, and its events as JSON values."""
    encoder = dragoman.StreamEncoder(format)
    data = encoder.encode(EVENTS) + encoder.close()
    framing = import_module(f"dragoman.codecs.{folder_of(format)}.stream").PayloadDecoder.framing(Limits())
    found = [*framing.feed(data), *framing.close()]
    return data, [json.loads(payload) for payload in found if payload != b"[DONE]"]


@pytest.mark.parametrize("saved", ["wire", "lines", "array", "pretty array"])
@pytest.mark.parametrize("source", FORMATS)
def test_streams_of_every_format_are_read(
    source: str, saved: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, events = payloads(source)
    content = {
        "wire": data,
        "lines": "".join(json.dumps(event) + "\n" for event in events).encode(),
        "array": json.dumps(events).encode(),
        "pretty array": json.dumps(events, indent=2).encode(),
    }[saved]
    file, out = tmp_path / "stream", tmp_path / "out"
    file.write_bytes(content)
    target = "anthropic-messages" if source == "openai-chat" else "openai-chat"
    code = main(["convert", "--stream", "--from", source, "--to", target, "-o", str(out), str(file)])
    assert code == 0, capsys.readouterr().err
    decoder = dragoman.StreamDecoder(target)
    assert dragoman.accumulate([*decoder.feed(out.read_bytes()), *decoder.close()]).text == "Hello world"
