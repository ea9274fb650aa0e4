"""Record formats in detection and on the command line."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman
from dragoman.batch.provider_files import BATCH_FILES
from dragoman.cli import main
from dragoman.detection import Detected
from tests.support.bodies import REQUESTS, RESPONSES, Sample
from tests.support.cases import each
from tests.support.records import RECORDS, SAMPLES, histories

SEVERAL: list[Any] = [
    [{"role": "user", "content": "hi"}],
    [{"id": "c", "name": "f", "arguments": {}}],
    [],
    [[]],
    [5],
    {"messages": 5},
    {"role": "assistant", "content": "hi"},
]


@pytest.mark.parametrize("name", RECORDS)
def test_samples_are_recognised(name: str) -> None:
    for sample in SAMPLES[name]:
        assert dragoman.detect(sample) == Detected(name, "request")


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ({"role": "assistant", "tool_calls": [{"id": "c", "name": "f", "arguments": {}}]}, "universal"),
        ({"role": "gemini", "content": "hi"}, "multi-llm-chat"),
        ({"role": "assistant", "content": [{"type": "text", "content": "hi"}]}, "multi-llm-chat"),
        ({"content": "hi", "finishReason": "stop"}, "modular-prompt"),
        (
            {"messages": [{"role": "assistant", "content": "hi"}], "usage": {"model": "m", "input_tokens": 1}},
            "agent-sdk",
        ),
    ],
)
def test_answers_are_recognised(body: Any, name: str) -> None:
    assert dragoman.detect(body) == Detected(name, "response")


@pytest.mark.parametrize("body", SEVERAL, ids=json.dumps)
def test_ambiguous_bodies_are_not_detected(body: Any) -> None:
    found = dragoman.detect(body)
    assert found is None or found.format not in RECORDS


@each("sample", [*REQUESTS, *RESPONSES], ids=str)
def test_bodies_of_apis_are_not_detected_as_records(sample: Sample) -> None:
    found = dragoman.detect(sample.body)
    assert found is None or found.format not in RECORDS


@given(data=st.data())
@each("name", RECORDS)
def test_detection_never_fails(name: str, data: st.DataObject) -> None:
    found = dragoman.detect(data.draw(histories(name)))
    assert found is None or found.kind in {"request", "response"}


@pytest.mark.parametrize("name", RECORDS)
def test_convert_reads_and_writes_them(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored, sent, back = tmp_path / "stored.json", tmp_path / "sent.json", tmp_path / "back.json"
    stored.write_text(json.dumps(SAMPLES[name][0], indent=2), encoding="utf-8")
    assert main(["convert", str(stored), "--to", "openai-chat", "--model", "gpt-4.1", "-o", str(sent)]) == 0
    assert json.loads(sent.read_text(encoding="utf-8"))["model"] == "gpt-4.1"
    assert main(["convert", str(sent), "--to", name, "-o", str(back)]) == 0
    there = dragoman.decode_request(back.read_bytes(), name)
    assert there.messages[-1].text == "Thanks"
    capsys.readouterr()


@pytest.mark.parametrize("name", RECORDS)
def test_inspect_shows_them(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored = tmp_path / "stored.json"
    stored.write_text(json.dumps(SAMPLES[name][0]), encoding="utf-8")
    assert main(["inspect", str(stored)]) == 0
    shown = capsys.readouterr().out
    assert name in shown
    assert "get_weather" in shown


def test_formats_lists_them_last(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["formats"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert [row.split()[0] for row in rows[-len(RECORDS) :]] == list(RECORDS)
    assert all("(stored histories)" in row for row in rows[-len(RECORDS) :])
    known = {*dragoman.formats(None), *dragoman.formats("dataset"), *BATCH_FILES}
    assert {row.split()[0] for row in rows[1:]} == known


def test_a_stream_is_not_a_history(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded = tmp_path / "answer.sse"
    recorded.write_text('data: {"choices":[{"index":0,"delta":{"content":"hi"}}]}\n\n', encoding="utf-8")
    assert main(["convert", str(recorded), "--stream", "--from", "openai-chat", "--to", "universal"]) != 0
    assert "it has no streams" in capsys.readouterr().err
