"""`convert --stream` reads the events of every format as a JSON array and as JSON Lines."""

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli.main import main
from tests.codecs.test_every_ending import BODIES, TEXT
from tests.support import converse_streams
from tests.support.promises import promise

pytestmark = promise("core:small-things")

ENDED = {
    "openai-chat": "stop",
    "openai-responses": "max_output_tokens",
    "anthropic-messages": "end_turn",
    "gemini": "STOP",
    "bedrock-converse": "end_turn",
    "ollama-chat": "stop",
    "cohere-chat": "COMPLETE",
    "gemini-interactions": "completed",
}


def events_of(source: str) -> list[Any]:
    data = BODIES[source](ENDED[source], streamed=True)
    if source == "bedrock-converse":
        return [{name: payload} for name, payload in converse_streams.payloads(data)]
    lines = data.decode().replace("\r\n", "\n").splitlines()
    if source == "ollama-chat":
        return [json.loads(line) for line in lines]
    return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]


@pytest.mark.parametrize("named", [True, False], ids=["named", "recognised"])
@pytest.mark.parametrize("layout", ["array", "lines"])
@pytest.mark.parametrize("source", BODIES)
def test_events_as_json(source: str, layout: str, tmp_path: Path, *, named: bool) -> None:
    events = events_of(source)
    text = json.dumps(events) if layout == "array" else "".join(json.dumps(event) + "\n" for event in events)
    file, out = tmp_path / "in.json", tmp_path / "out.sse"
    file.write_text(text)
    target = "openai-chat" if source == "anthropic-messages" else "anthropic-messages"
    given = ["--from", source] if named else []
    assert main(["convert", "--stream", str(file), "--to", target, "-o", str(out), *given]) == 0
    assert TEXT.encode() in out.read_bytes()
