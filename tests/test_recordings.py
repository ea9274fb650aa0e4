import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.recordings import VARIABLE, Record, load, recordings_dir

EXCHANGE = {
    "id": "0123456789ab",
    "source": "owner/repository:cassette.yaml#1",
    "license": "MIT",
    "endpoint": "/v1/chat/completions",
    "request": {"model": "m", "messages": []},
    "status": 200,
    "stream": True,
    "response": None,
    "events": ["data: {}\n\n", "data: [DONE]\n\n"],
    "tags": ["streamed", "tools"],
}


def write(directory: Path, *lines: str) -> None:
    with gzip.open(directory / "openai-chat.jsonl.gz", "wt", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)


def test_a_record_is_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    write(tmp_path, json.dumps(EXCHANGE))
    (record,) = load("openai-chat")
    assert record == Record(
        id="0123456789ab",
        source="owner/repository:cassette.yaml#1",
        endpoint="/v1/chat/completions",
        request={"model": "m", "messages": []},
        status=200,
        stream=True,
        response=None,
        events=("data: {}\n\n", "data: [DONE]\n\n"),
        tags=frozenset({"streamed", "tools"}),
    )


def test_records_are_read_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    write(tmp_path, json.dumps(EXCHANGE), "not JSON")
    records = load("openai-chat")
    assert next(records).id == "0123456789ab"
    with pytest.raises(json.JSONDecodeError):
        next(records)


def test_a_chosen_directory_that_is_missing_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "nowhere"))
    with pytest.raises(NotADirectoryError, match="nowhere"):
        recordings_dir()


def test_the_recordings_beside_the_repository_are_found(recordings: Callable[[str], Iterator[Record]]) -> None:
    record = next(recordings("openai-chat"))
    assert record.endpoint.startswith("/")
    assert record.request is not None
