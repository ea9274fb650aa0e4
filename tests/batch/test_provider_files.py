"""Batch files of providers: any to any, requests and results, ids kept."""

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from dragoman.batch import (
    ConvertOptions,
    Job,
    JobError,
    JobOptions,
    Reject,
    RunOptions,
    convert,
    convert_lines,
    run_job,
)
from dragoman.batch.batch_file_converter import BatchFileConverter
from dragoman.batch.provider_files import BATCH_FILES, batch_file_of, read_id, written_id
from dragoman.detection import Detected
from dragoman.errors import LossRefused
from dragoman.translate import decode_request, decode_response, translate_request
from tests.support.cases import each
from tests.support.promises import promise

CHAT = {
    "model": "m",
    "messages": [{"role": "user", "content": "Weather in Oslo?"}],
    "tools": [
        {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}
    ],
    "temperature": 0.5,
}
ANSWER = {
    "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "3 degrees."}}],
    "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7},
}  # fmt: skip
NAMES = tuple(BATCH_FILES)
FOUND = ("openai-batch", "anthropic-batch", "gemini-batch", "vertex-batch", "bedrock-batch", "mistral-batch")
"""Those that are known by their keys; the others are copies of OpenAI's."""


def lines_of(name: str) -> bytes:
    """One request in this provider's batch file."""
    return convert_lines(
        json.dumps({"custom_id": "r-1", "method": "POST", "url": "/v1/chat/completions", "body": CHAT}).encode(),
        target=name,
    )


def request_in(line: dict[str, Any], name: str) -> Any:
    """The request in a line, in the intermediate format."""
    item = BATCH_FILES[name].read(BATCH_FILES[name], line)
    assert item.body is not None
    return decode_request(bytes(item.body), item.format)


@promise("batch:provider-files")
@each(("source", "target"), list(product(NAMES, NAMES)))
def test_requests_keep_their_id_and_say_the_same(source: str, target: str) -> None:
    written = convert_lines(lines_of(source), source=source, target=target)
    line = json.loads(written)
    item = BATCH_FILES[target].read(BATCH_FILES[target], line)
    assert (item.id, item.outcome) == ("r-1", "request")
    request = request_in(line, target)
    assert request.messages[-1].text == "Weather in Oslo?"
    assert [tool.name for tool in request.tools] == ["weather"]
    assert request.temperature == 0.5
    named = None if BATCH_FILES[target].one_model or BATCH_FILES[source].one_model else "m"
    assert request.model in {named, None}


@promise("batch:provider-files")
@pytest.mark.parametrize("name", FOUND)
def test_a_line_is_known_by_its_keys(name: str) -> None:
    line = json.loads(lines_of(name))
    found = batch_file_of(line)
    assert found is not None
    assert found.name == name
    assert batch_file_of(CHAT) is None


OUTCOMES: dict[str, dict[str, Any]] = {
    "succeeded": {"response": {"status_code": 200, "request_id": "q", "body": ANSWER}, "error": None},
    "errored": {
        "response": {
            "status_code": 429,
            "request_id": "q",
            "body": {"error": {"message": "slow down", "type": "rate_limit_error"}},
        },
        "error": None,
    },
    "expired": {"response": None, "error": {"code": "batch_expired", "message": "too late"}},
    "canceled": {"response": None, "error": {"code": "batch_cancelled", "message": "stopped"}},
}


@promise("batch:provider-files")
@each("outcome", OUTCOMES)
@each("target", NAMES)
def test_results_keep_their_outcome(outcome: str, target: str) -> None:
    result = {"id": "batch_req_1", "custom_id": "r-1", **OUTCOMES[outcome]}
    line = json.loads(convert_lines(json.dumps(result).encode(), target=target))
    item = BATCH_FILES[target].read(BATCH_FILES[target], line)
    assert item.id == "r-1"
    if outcome == "succeeded":
        assert item.outcome == "succeeded"
        assert item.body is not None
        completion = decode_response(bytes(item.body), item.format)
        assert completion.text == "3 degrees."
        assert completion.usage is not None
        assert (completion.usage.input, completion.usage.output) == (5, 2)
    elif target == "gemini-batch" and outcome == "canceled":
        assert item.outcome == "canceled"
    elif target in {"gemini-batch", "vertex-batch", "bedrock-batch"}:
        assert item.outcome == "errored", "these files say only that a request failed"
    else:
        assert item.outcome == outcome
    if outcome == "errored" and target != "vertex-batch":
        assert "slow down" in json.dumps(line)


@promise("batch:provider-files")
def test_results_to_bare_answers() -> None:
    """`--to` a wire format takes the bodies out; what never ran is a reject with its reason."""
    results = b"\n".join(
        json.dumps({"id": "b", "custom_id": name, **outcome}).encode() for name, outcome in OUTCOMES.items()
    )
    rejects: list[Reject] = []
    answers = convert_lines(results, target="anthropic-messages", on_reject=rejects.append).splitlines()
    assert [json.loads(answer)["type"] for answer in answers] == ["message", "error"]
    assert [reject.line for reject in rejects] == [3, 4]


@promise("batch:provider-files")
@each("item_id", ["a@b.example", "ünïcode", "with space", "x" * 64, "x" * 65, "."])
@each("name", NAMES)
def test_ids_fit_the_alphabet_of_the_provider(item_id: str, name: str) -> None:
    pattern = BATCH_FILES[name].id_pattern
    written = written_id(item_id, pattern)
    assert written.startswith("b64_") or pattern.fullmatch(written)
    if len(item_id.encode()) <= 45 or pattern.fullmatch(item_id):
        assert read_id(written) == item_id


@promise("batch:provider-files")
def test_a_file_for_one_model(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    lines = [
        {"custom_id": str(n), "method": "POST", "url": "/v1/chat/completions", "body": {**CHAT, "model": f"m{n % 2}"}}
        for n in range(4)
    ]
    source.write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(JobError, match="for one model, and these records name m0, m1"):
        convert(str(source), str(tmp_path / "out.jsonl"), RunOptions(workers=1), target="bedrock-batch")
    report = convert(
        str(source),
        str(tmp_path / "out.jsonl"),
        RunOptions(workers=1, restart=True),
        target="bedrock-batch",
        model="nova",
    )
    assert report.tally.converted == 4
    assert (
        convert(str(source), str(tmp_path / "a.jsonl"), RunOptions(workers=1), target="anthropic-batch").tally.converted
        == 4
    )


@promise("batch:provider-files")
def test_a_stream_flag_is_dropped_and_reported() -> None:
    line = {"custom_id": "r", "method": "POST", "url": "/v1/chat/completions", "body": {**CHAT, "stream": True}}
    written = json.loads(convert_lines(json.dumps(line).encode(), target="anthropic-batch"))
    assert "stream" not in written["params"]


@promise("batch:provider-files")
def test_bare_requests_become_a_batch(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text("\n".join(json.dumps({**CHAT, "seed": n}) for n in range(5)))
    convert(str(source), str(tmp_path / "out.jsonl"), RunOptions(workers=1), target="anthropic-batch")
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_bytes().splitlines()]
    assert len({line["custom_id"] for line in lines}) == 5
    expected = json.loads(
        translate_request(json.dumps(CHAT).encode(), source="openai-chat", target="anthropic-messages").json()
    )
    assert lines[0]["params"] == expected


@promise("batch:provider-files")
def test_losses_point_into_the_line(tmp_path: Path) -> None:
    line = {"custom_id": "r", "method": "POST", "url": "/v1/chat/completions", "body": {**CHAT, "seed": 3}}
    (tmp_path / "in.jsonl").write_text(json.dumps(line))
    report = convert(
        str(tmp_path / "in.jsonl"), str(tmp_path / "out.jsonl"), RunOptions(workers=1), target="anthropic-batch"
    )
    assert "$.body.seed" in {loss.path for loss in report.tally.losses}


@promise("batch:provider-files")
@pytest.mark.parametrize("target", ["anthropic-batch", "openai-batch"])
def test_a_failed_answer_under_status_200_is_not_a_success(target: str) -> None:
    body = {
        "id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": "failed", "output": [],
        "error": {"code": "server_error", "message": "out of order"}, "tools": [], "tool_choice": "auto",
    }  # fmt: skip
    line = {"id": "b", "custom_id": "r-1", "response": {"status_code": 200, "request_id": "q", "body": body}}
    packed = json.loads(convert_lines(json.dumps({**line, "error": None}).encode(), target=target))
    if target == "anthropic-batch":
        assert packed["result"]["type"] == "errored"
        assert packed["result"]["error"]["error"]["message"] == "out of order"
    else:
        assert packed["response"]["status_code"] >= 400


@promise("batch:provider-files")
def test_answers_of_an_api_are_not_lines_of_a_batch_file() -> None:
    """An answer of Responses has `metadata` and `error`, as an inline result of Gemini does."""
    answer = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": "completed",
              "error": None, "metadata": {}, "output": []}  # fmt: skip
    assert batch_file_of(answer) is None
    assert batch_file_of({"key": "r", "error": {"code": 3, "message": "no"}}) is not None


@promise("batch:provider-files")
def test_marks_and_line_ends_of_other_systems() -> None:
    line = lines_of("openai-batch").strip()
    lines = b"\xef\xbb\xbf" + line + b"\r\n" + line + b"\r\n\r\n"
    assert len(convert_lines(lines, target="anthropic-batch").splitlines()) == 2


@promise("batch:provider-files")
def test_ids_differ_across_shards_and_sources(tmp_path: Path) -> None:
    """A provider refuses a whole file for one id that occurs twice."""
    for name, ids in (("one", range(200)), ("two", range(199, 300))):
        lines = [{"custom_id": f"r-{id}", "method": "POST", "url": "/v1/chat/completions", "body": CHAT} for id in ids]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, lines)))
    options = JobOptions(convert=ConvertOptions(target="anthropic-batch"), shard_bytes=4_096)
    for sources, is_refused in ((["one"], False), (["two"], False), (["one", "two"], True)):
        job = Job([str(tmp_path / f"{name}.jsonl") for name in sources], str(tmp_path / "-".join(sources)), options)
        if is_refused:
            with pytest.raises(JobError, match=r"1 requests have the id of an earlier one .* line 201 of the output"):
                run_job(job, RunOptions(workers=1))
        else:
            assert run_job(job, RunOptions(workers=1)).shards > 5


@promise("batch:provider-files")
def test_results_may_have_one_id_twice(tmp_path: Path) -> None:
    """Results of two jobs are often in one file: only the ids of requests must differ."""
    result = json.dumps({"id": "b", "custom_id": "r-1", **OUTCOMES["succeeded"]})
    (tmp_path / "in.jsonl").write_text(f"{result}\n{result}\n")
    report = convert(
        str(tmp_path / "in.jsonl"), str(tmp_path / "out.jsonl"), RunOptions(workers=1), target="anthropic-batch"
    )
    assert report.tally.converted == 2


@pytest.mark.parametrize("more", [{"status": 200, "response": {"candidates": []}}, {"response": {}}, {"status": 200}])
def test_a_recorded_exchange_is_not_taken_for_a_batch_result(more: dict[str, Any]) -> None:
    """It has a request and a response too; its status became the text of an error."""
    request = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
    assert batch_file_of({"id": "1", "endpoint": "/v1beta/models/x", "request": request, **more}) is None
    found = batch_file_of({"request": request, "status": "", "response": {"candidates": []}, "processed_time": "t"})
    assert found is not None
    assert found.name == "vertex-batch"


SHORT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
LINES_WITH_MORE: dict[str, dict[str, Any]] = {
    "openai-batch": {"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": SHORT},
    "anthropic-batch": {"custom_id": "a", "params": {**SHORT, "max_tokens": 9}},
    "gemini-batch": {"key": "a", "request": {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}},
    "vertex-batch": {"request": {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}},
    "bedrock-batch": {"recordId": "a", "modelInput": {"messages": [{"role": "user", "content": [{"text": "hi"}]}]}},
    "mistral-batch": {"custom_id": "a", "body": SHORT},
}


@promise("law:2-nothing-vanishes")
@each("target", FOUND)
@each("source", FOUND)
def test_a_key_that_a_line_has_besides_is_reported(source: str, target: str) -> None:
    line = {**LINES_WITH_MORE[source], "metadata": {"column": 1}} | ({} if source == "gemini-batch" else {"team": "x"})
    options = ConvertOptions(target=target, source=source, model="m")
    converter = BatchFileConverter(options, "f", Detected(source, "request"))
    _, encoded = converter.translate(json.dumps(line).encode())
    wanted = {"$.metadata.column"} if source == "gemini-batch" else {"$.metadata", "$.team"}
    assert {loss.path for loss in encoded.losses if loss.severity == "dropped"} == wanted
    with pytest.raises(LossRefused):
        BatchFileConverter(structs.replace(options, strict=True), "f", None).translate(json.dumps(line).encode())


LONG_ID = "x" * 70
STRICTLY: tuple[tuple[str, str, dict[str, Any], str | None], ...] = (
    ("openai-batch", "anthropic-batch", {"body": {**SHORT, "max_tokens": 9, "stream": True}}, "$.body.stream"),
    ("openai-batch", "anthropic-batch", {"custom_id": LONG_ID, "body": {**SHORT, "max_tokens": 9}}, "$.custom_id"),
    ("anthropic-batch", "bedrock-batch", {"custom_id": LONG_ID}, "$.custom_id"),
    ("bedrock-batch", "vertex-batch", {"recordId": LONG_ID}, "$.recordId"),
    ("gemini-batch", "bedrock-batch", {"key": LONG_ID}, "$.key"),
    ("openai-batch", "mistral-batch", {"created_at": 1}, None),
)


@promise("law:2-nothing-vanishes")
def test_strict_refuses_what_is_lost_of_a_line_and_accepts_notes() -> None:
    for source, target, more, lost in STRICTLY:
        line = json.dumps({**LINES_WITH_MORE[source], **more}).encode()
        converter = BatchFileConverter(ConvertOptions(target=target, source=source, model="m", strict=True), "f", None)
        if lost is None:
            assert {loss.severity for loss in converter.translate(line)[1].losses} == {"noted"}
            continue
        with pytest.raises(LossRefused) as refused:
            converter.translate(line)
        assert [loss.path for loss in refused.value.losses] == [lost], (source, target)


def test_the_request_that_a_result_repeats_is_kept_in_the_same_format() -> None:
    request = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}], "labels": {"dragoman_id": "a"}}
    answer = {"candidates": [{"content": {"role": "model", "parts": [{"text": "yes"}]}, "finishReason": "STOP"}]}
    line = json.dumps({"request": request, "status": "", "response": answer}).encode()
    same = BatchFileConverter(ConvertOptions(target="vertex-batch"), "f", None).translate(line)[1]
    assert same.body == json.loads(line)
    other = BatchFileConverter(ConvertOptions(target="openai-batch"), "f", None).translate(line)[1]
    assert ("noted", "the request in the result") in {(loss.severity, loss.what) for loss in other.losses}
