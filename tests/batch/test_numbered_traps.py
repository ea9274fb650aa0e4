"""The twenty-five traps of batch files and batch jobs: a row per trap, and a test that fails if a number has no row."""

import json
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman.batch import (
    BatchJobError,
    JobError,
    Reject,
    RunOptions,
    convert,
    convert_lines,
    fetch_job_sync,
    retry_job_sync,
    submit_job_sync,
)
from dragoman.batch.job_file import JobFolder
from dragoman.batch.job_states import ENDED, STATES, state_of
from dragoman.batch.provider_files import BATCH_FILES, BatchItem, read_id, written_id
from dragoman.batch.provider_jobs import JOB_APIS, JobContext, Reply, Seen
from dragoman.drivers.http import HttpTransport
from dragoman.errors import NoAnswer
from dragoman.sim.server import Simulator
from dragoman.translate import decode_request, decode_response
from tests.batch.test_jobs import KEY, MODELS, LosesTheAnswer, Place, json_of, lines_of, play, question
from tests.support.promises import promise
from tests.support.traps import Traps

pytestmark = promise("batch:provider-files", "batch:jobs")
trap = Traps(25)
CONTEXT = JobContext(model="m", key="k", place={"project": "p", "location": "l", "region": "r"}, storage="s3://b/j")


@pytest.mark.parametrize("number", range(1, trap.count + 1))
def test_trap(number: int, dragoman_sim: Simulator, tmp_path: Path) -> None:
    trap.run(number, dragoman_sim, tmp_path)


def test_every_number_has_a_row() -> None:
    assert trap.missing == []


def item(line: dict[str, Any], name: str) -> BatchItem:
    return BATCH_FILES[name].read(BATCH_FILES[name], line)


def seen(provider: str, reply: dict[str, Any]) -> Seen:
    api = JOB_APIS[provider]
    found: Seen = play(api.look(CONTEXT, "j"), json_of(reply))[1]
    return found


def request_line(id: str = "r-1", **body: Any) -> bytes:
    full = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], **body}
    return json.dumps({"custom_id": id, "method": "POST", "url": "/v1/chat/completions", "body": full}).encode() + b"\n"


def answer(text: str) -> dict[str, Any]:
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-6", "stop_sequence": None,
        "content": [{"type": "text", "text": text}], "stop_reason": "end_turn",
        "usage": {"input_tokens": 3, "output_tokens": 4},
    }  # fmt: skip


def with_results(place: Place, lines: list[dict[str, Any]]) -> Any:
    """The report of a job whose provider gave these lines, in this order."""
    place.submit()
    place.fetch()
    results = JobFolder(str(place.output)).results(0)
    results.write_bytes(b"\n".join(map(msgspec.json.encode, lines)))
    return place.fetch()


@trap(1, "Results come in any order and are joined by their ids; Vertex's by the label that was put there.")
def _order(simulator: Simulator, folder: Path) -> None:
    place = Place(folder, simulator, "anthropic", ["a", "b", "c"])
    lines = [{"custom_id": id, "result": {"type": "succeeded", "message": answer(f"to {id}")}} for id in "cab"]
    assert with_results(place, lines).succeeded == 3
    texts = [one["response"]["body"]["choices"][0]["message"]["content"] for one in place.answers]
    assert texts == ["to a", "to b", "to c"]
    vertex = json.loads(convert_lines(request_line("r-7"), target="vertex-batch"))
    echoed = {"request": vertex["request"], "status": "", "response": {"candidates": []}}
    assert item(echoed, "vertex-batch").id == "r-7"


@trap(2, "Failures are in a second file, and both files may be missing.")
def _two_files(_simulator: Simulator, _folder: Path) -> None:
    job = {"status": "completed", "output_file_id": "o", "error_file_id": "e"}
    asked, content = play(
        JOB_APIS["openai"].results(CONTEXT, "j", seen("openai", job)), Reply(b'{"a":1}\n'), Reply(b'{"b":2}\n')
    )
    assert ([one.url for one in asked], content) == (["/files/o/content", "/files/e/content"], b'{"a":1}\n{"b":2}')
    assert seen("openai", {"status": "completed", "output_file_id": None, "error_file_id": None}).outputs == ()
    assert seen("openai", {"status": "completed", "output_file_id": None, "error_file_id": "e"}).outputs == ("e",)


@trap(3, "A job that is done may have failed requests, and the report counts them.")
def _partial_failure(simulator: Simulator, folder: Path) -> None:
    simulator.play_batches(items={"a": "error", "b": "expired"})
    place = Place(folder, simulator, "openai-chat", ["a", "b", "c"])
    place.submit()
    report = place.fetch()
    assert (report.state, report.succeeded, report.errored, report.expired) == ("completed", 1, 1, 1)
    for provider, word in (("bedrock", "PartiallyCompleted"), ("gemini", "JOB_STATE_PARTIALLY_SUCCEEDED")):
        assert state_of(provider, word) == "completed"


@trap(4, "A job that failed ran nothing; its reasons, with their lines, are those of its requests.")
def _failed_file(simulator: Simulator, folder: Path) -> None:
    errors = {"data": [{"code": "invalid", "line": 7, "message": "no url"}]}
    job = seen("openai", {"status": "failed", "errors": errors})
    assert (job.state, job.problems, job.outputs) == ("failed", ("line 7: no url",), ())
    place = Place(folder, simulator, "openai-chat", ["a"])
    place.model = "openai-chat/no-such-model"
    place.submit()
    report = place.fetch()
    assert (report.state, report.missing, report.retryable) == ("failed", 1, 0)
    simulator.play_batches(ends="failed")  # the lines are all right, and the queue is full
    (folder / "later").mkdir()
    place = Place(folder / "later", simulator, "openai-chat", ["a"])
    place.submit()
    report = place.fetch()
    assert (report.state, report.missing, report.retryable) == ("failed", 1, 1)
    simulator.play_batches()
    assert place.fetch(retry_failed=True).succeeded == 1


@trap(5, "Counts that are zero until the end do not say that nothing was done.")
def _late_counts(_simulator: Simulator, _folder: Path) -> None:
    counts = {"processing": 5, "succeeded": 0, "errored": 0, "canceled": 0, "expired": 0}
    running = seen("anthropic", {"processing_status": "in_progress", "request_counts": counts})
    assert (running.state, running.ended, running.counts.total) == ("running", False, 5)


@trap(6, "Each provider nests its errors in another way; all are the same failure.")
def _errors(_simulator: Simulator, _folder: Path) -> None:
    body = {"message": "slow down", "type": "rate_limit_error"}
    failed = {
        "openai-batch": {"id": "b", "custom_id": "r", "error": None,
                         "response": {"status_code": 429, "request_id": "q", "body": {"error": body}}},
        "anthropic-batch": {"custom_id": "r", "result": {"type": "errored", "error": {"type": "error", "error": body}}},
        "gemini-batch": {"key": "r", "error": {"code": 8, "message": "slow down"}},
        "bedrock-batch": {"recordId": "r", "modelInput": {}, "error": {"errorCode": 429, "errorMessage": "slow down"}},
    }  # fmt: skip
    for name, line in failed.items():
        found = json.loads(convert_lines(json.dumps(line).encode(), source=name, target="openai-batch"))
        assert found["response"]["status_code"] == 429, name
        assert found["response"]["body"]["error"]["message"] == "slow down", name
    unrun = {"id": "b", "custom_id": "r", "response": None, "error": {"code": "server_error", "message": "broken"}}
    assert item(unrun, "openai-batch").outcome == "errored"


@trap(7, "Status 200 may hold an answer that failed.")
def _failed_answer(_simulator: Simulator, _folder: Path) -> None:
    body = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": "failed", "output": [],
            "error": {"code": "server_error", "message": "out of order"}, "tools": []}  # fmt: skip
    line = {
        "id": "b",
        "custom_id": "r",
        "response": {"status_code": 200, "request_id": "q", "body": body},
        "error": None,
    }
    packed = json.loads(convert_lines(json.dumps(line).encode(), target="anthropic-batch"))
    assert packed["result"]["type"] == "errored"
    assert packed["result"]["error"]["error"]["message"] == "out of order"


@trap(8, "A request without a result anywhere is missing, and may be asked again.")
def _missing(simulator: Simulator, folder: Path) -> None:
    place = Place(folder, simulator, "anthropic", ["a", "b"])
    report = with_results(place, [{"custom_id": "b", "result": {"type": "succeeded", "message": answer("hi")}}])
    assert (report.succeeded, report.missing, report.retryable) == (1, 1, 1)
    assert [one["line"] for one in lines_of(place.output.with_name("answers.jsonl.rejects.jsonl"))] == [1]


@trap(9, "Every spelling of a cancelled job is one state.")
def _cancelled(_simulator: Simulator, _folder: Path) -> None:
    ended = [("openai", "cancelled"), ("together", "CANCELLED"), ("together", "CANCELED"), ("bedrock", "Stopped"),
             ("gemini", "BATCH_STATE_CANCELLED"), ("vertex", "JOB_STATE_CANCELLED"),
             ("mistral", "CANCELLED")]  # fmt: skip
    assert {state_of(*one) for one in ended} == {"canceled"}
    ending = [("openai", "cancelling"), ("anthropic", "canceling"), ("bedrock", "Stopping"),
              ("mistral", "CANCELLATION_REQUESTED"), ("vertex", "JOB_STATE_CANCELLING")]  # fmt: skip
    assert {state_of(*one) for one in ending} == {"canceling"}
    assert "canceling" not in ENDED


@trap(10, "Ids fit the alphabet of a provider, stay apart and come back; two requests with one id are refused.")
def _ids(simulator: Simulator, folder: Path) -> None:
    ids = ["a.b", "a_b", "a b", "A.B", "a@b", "ü", "x" * 64, "x" * 65, "x" * 66]
    for name, file in BATCH_FILES.items():
        written = [written_id(id, file.id_pattern) for id in ids]
        assert len(set(written)) == len(ids), name
        kept = [id for id in ids if len(id) <= 45]
        assert [read_id(written_id(id, file.id_pattern)) for id in kept] == kept
        source = folder / "in.jsonl"
        source.write_bytes(b"".join(request_line(id) for id in ("a", "b", "a", "a")))
        with pytest.raises(JobError, match=r"2 requests have the id .* line 3 of the output"):
            convert(str(source), str(folder / f"{name}.jsonl"), RunOptions(workers=1), target=name, model="m")
        assert not (folder / f"{name}.jsonl").exists()
    place = Place(folder, simulator, "openai-chat", ["a", "a", "b"])
    assert (place.submit().requests, place.submit().rejected) == (2, 1)


@trap(11, "A Bedrock job says that its bodies are Converse's; a file with a model's own bodies is read as such.")
def _bedrock_bodies(_simulator: Simulator, _folder: Path) -> None:
    context = msgspec.structs.replace(CONTEXT, role="arn:role")
    asked, _ = play(JOB_APIS["bedrock"].create(context, b"{}\n"), Reply(), json_of({"jobArn": "arn:job/1"}))
    assert msgspec.json.decode(asked[1].body)["modelInvocationType"] == "Converse"
    own = {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 5, "messages": [{"role": "user", "content": "Hi"}]}
    assert item({"recordId": "r", "modelInput": own}, "bedrock-batch").format == "anthropic-messages"
    converse = {"messages": [{"role": "user", "content": [{"text": "Hi"}]}]}
    assert item({"recordId": "r", "modelInput": converse}, "bedrock-batch").format == "bedrock-converse"


@trap(12, "A job with fewer requests than the provider takes is refused before anything is sent.")
def _fewest(_simulator: Simulator, folder: Path) -> None:
    (folder / "in.jsonl").write_bytes(request_line())
    options: Any = {"storage": "memory://jobs", "role": "arn:role", "region": "us-east-1", "api_key": KEY}
    with pytest.raises(BatchJobError, match=r"100 requests or more, and there are 1"):
        submit_job_sync([str(folder / "in.jsonl")], str(folder / "out.jsonl"), model="bedrock/nova", **options)
    assert JOB_APIS["anthropic"].fewest_requests == JOB_APIS["openai"].fewest_requests == 1


@trap(13, "Where the job names the model, the lines do not; elsewhere each line does.")
def _models(_simulator: Simulator, _folder: Path) -> None:
    for name, file in BATCH_FILES.items():
        body = item(json.loads(convert_lines(request_line(), target=name)), name).body
        assert (b'"model"' in bytes(body or b"")) is not file.one_model, name
    assert {name for name, file in BATCH_FILES.items() if file.one_model} == {
        "gemini-batch", "vertex-batch", "bedrock-batch", "mistral-batch",
    }  # fmt: skip


@trap(14, "A beta header belongs to a whole batch: requests that need different ones go into different jobs.")
def _betas(simulator: Simulator, folder: Path) -> None:
    place = Place(folder, simulator, "anthropic", [])
    plain = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "Hi"}]}
    with_beta = {**plain, "anthropic_beta": ["context-management-2025-06-27"]}
    lines = [{"custom_id": str(index), "params": body} for index, body in enumerate((plain, with_beta, plain))]
    place.source.write_text("".join(json.dumps(line) + "\n" for line in lines))
    parts = place.submit().parts
    assert sorted(part.requests for part in parts) == [[0, 2], [1]]
    assert [bool(part.headers.get("anthropic-beta")) for part in sorted(parts, key=lambda part: part.requests)] == [
        False, True,
    ]  # fmt: skip


@trap(15, "A creation whose answer was lost is looked for, and never sent again by itself.")
def _lost_creation(simulator: Simulator, folder: Path) -> None:
    place = Place(folder, simulator, "openai-chat", ["a"])
    with pytest.raises(NoAnswer):
        place.submit(transport=LosesTheAnswer(HttpTransport()))
    place.submit()
    assert len(simulator.service.memory.shelf.batches) == 1
    for name, api in JOB_APIS.items():
        steps = api.create(msgspec.structs.replace(CONTEXT, role="arn:role"), b"{}\n")
        made = [next(steps)]
        reply = Reply(b'{"id":"x","name":"x","file":{"name":"x"}}', {"x-goog-upload-url": "https://u.example"})
        try:
            while True:
                made.append(steps.send(reply))
        except (StopIteration, KeyError):
            pass
        assert getattr(made[-1], "once", False), f"{name} may create twice"


@trap(16, "A job knows where it was made, and not with which key; another day it goes to the same place.")
def _where_it_was_made(simulator: Simulator, folder: Path) -> None:
    place = Place(folder, simulator, "anthropic", ["a"])
    place.submit()
    stored = b"".join(path.read_bytes() for path in JobFolder(str(place.output)).folder.iterdir())
    assert KEY.encode() not in stored
    assert place.options["base_url"].encode() in stored
    report = fetch_job_sync(str(place.output), wait=0.0, api_key=KEY)
    assert report.succeeded == 1


@trap(17, "Written files are one compact line per request, with plain line ends; read ones may have others.")
def _line_ends(_simulator: Simulator, _folder: Path) -> None:
    pretty = json.dumps(json.loads(request_line("b")), indent=1).replace("\n", "\r").encode()
    given = b"\xef\xbb\xbf" + request_line("a").strip() + b"\r\n" + pretty + b"\r\n\r\n"
    for name in BATCH_FILES:
        written = convert_lines(given, target=name)
        assert written.count(b"\n") == 2
        assert written.endswith(b"\n")
        assert not written.startswith(b"\xef\xbb\xbf")
        assert b"\r" not in written


@trap(18, "Vertex rewrites the request that it repeats: results are not joined by comparing requests.")
def _echo(_simulator: Simulator, _folder: Path) -> None:
    line = json.loads(convert_lines(request_line("Order 7/b", temperature=1.0), target="vertex-batch"))
    rewritten = {key: line["request"][key] for key in sorted(line["request"], reverse=True)}
    rewritten["generationConfig"] = {"temperature": 1}
    found = item({"request": rewritten, "status": "", "response": {"candidates": []}}, "vertex-batch")
    assert (found.id, found.outcome) == ("Order 7/b", "succeeded")


@trap(19, "Limits are bytes of the lines as they are sent: what does not fit goes into another job.")
def _sizes(simulator: Simulator, folder: Path) -> None:
    place = Place(folder, simulator, "openai-chat", ["a", "b", "c"])
    api = JOB_APIS["openai-chat"]
    monkey = pytest.MonkeyPatch()
    place.source.write_text("".join(json.dumps(question(id, "ü" * 2_000)) + "\n" for id in "abc"))
    try:
        monkey.setitem(JOB_APIS, "openai-chat", msgspec.structs.replace(api, most_bytes=6_000))
        parts = place.submit().parts
    finally:
        monkey.undo()
    assert [part.requests for part in parts] == [[0], [1], [2]]
    sizes = [JOB_APIS[name].most_bytes >> 20 for name in ("openai", "anthropic", "groq")]
    assert sizes == [200, 256, 100]


@trap(20, "Signatures in results are kept like those of any answer.")
def _signatures(_simulator: Simulator, _folder: Path) -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "c2lnbmVk"}
    message = {**answer("hi"), "content": [thought, {"type": "text", "text": "hi"}]}
    line = json.dumps({"custom_id": "r", "result": {"type": "succeeded", "message": message}}).encode()
    again = json.loads(convert_lines(line, target="anthropic-batch"))
    assert again["result"]["message"]["content"][0] == thought
    bare = json.loads(convert_lines(line, target="anthropic-messages"))
    assert decode_response(json.dumps(bare), "anthropic-messages").messages[0].parts[0].signature is not None  # type: ignore[union-attr]


@trap(21, "Tokens are those of the single answers; a sum that the job reports is not added to them.")
def _usage(simulator: Simulator, folder: Path) -> None:
    place = Place(folder, simulator, "anthropic", ["a", "b"])
    lines = [{"custom_id": id, "result": {"type": "succeeded", "message": answer("hi")}} for id in "ab"]
    report = with_results(place, lines)
    assert (report.input_tokens, report.output_tokens) == (6, 8)
    job = seen("openai", {"status": "completed", "usage": {"input_tokens": 1_000}, "request_counts": {"total": 1}})
    assert "usage" not in msgspec.structs.asdict(job)


@trap(22, "A flag for streams is dropped, and reported.")
def _streams(_simulator: Simulator, folder: Path) -> None:
    (folder / "in.jsonl").write_bytes(request_line(stream=True))
    for name in BATCH_FILES:
        output = folder / f"{name}.jsonl"
        report = convert(str(folder / "in.jsonl"), str(output), RunOptions(workers=1), target=name)
        assert b'"stream"' not in output.read_bytes()
        assert ("dropped", "$.body.stream") in {(loss.severity, loss.path) for loss in report.tally.losses}


@trap(23, "Tools, output schemas and images are in the request after it crossed to another provider's file.")
def _features(_simulator: Simulator, _folder: Path) -> None:
    schema = {
        "type": "object",
        "properties": {"t": {"type": "number"}},
        "required": ["t"],
        "additionalProperties": False,
    }
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    line = request_line(
        messages=[{"role": "user", "content": [{"type": "text", "text": "Weather?"}, image]}],
        tools=[
            {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}
        ],
        response_format={"type": "json_schema", "json_schema": {"name": "t", "schema": schema}},
    )
    for name in BATCH_FILES:
        found = item(json.loads(convert_lines(line, target=name)), name)
        request = decode_request(bytes(found.body or b""), found.format)
        assert [tool.name for tool in request.tools] == ["weather"], name
        assert "image" in {type(part).__name__.lower() for part in request.messages[-1].parts}, name
        assert request.output is not None or name == "bedrock-batch", name


@trap(24, "A limit of output is kept; the job's own limit is for requests without one.")
def _limits(simulator: Simulator, folder: Path) -> None:
    place = Place(folder, simulator, "anthropic", [])
    place.source.write_bytes(request_line("a", max_tokens=7) + request_line("b"))
    place.submit(max_output_tokens=50)
    created = [one for one in simulator.requests if one.method == "POST" and one.path.endswith("/batches")]
    sent = {one["custom_id"]: one["params"]["max_tokens"] for one in json.loads(created[0].body)["requests"]}
    assert sent == {"a": 7, "b": 50}
    cut = {**answer("half"), "stop_reason": "max_tokens"}
    lines = [{"custom_id": id, "result": {"type": "succeeded", "message": cut}} for id in "ab"]
    JobFolder(str(place.output)).results(0)
    place.fetch()
    JobFolder(str(place.output)).results(0).write_bytes(b"\n".join(map(msgspec.json.encode, lines)))
    place.fetch()
    assert {one["response"]["body"]["choices"][0]["finish_reason"] for one in place.answers} == {"length"}


@trap(25, "A job that ended in time, too late, or whose results are gone: each says so, and none looks like success.")
def _clocks(simulator: Simulator, folder: Path) -> None:
    for vocabulary, words in STATES.items():
        late = {word for word in words if "xpired" in word or "EXPIRED" in word or "TIMEOUT" in word}
        assert {state_of(vocabulary, word) for word in late} <= {"expired"}
        assert late or vocabulary in {"anthropic", "xai"}, "these two have counts instead of a state"
    for provider in MODELS:
        (folder / provider).mkdir()
        in_time = Place(folder / provider, simulator, provider, ["a", "b", "c"])
        simulator.play_batches()
        in_time.submit()
        report = in_time.fetch()
        assert (report.state, report.succeeded, report.retryable) == ("completed", 3, 0)
        in_time.output.unlink()
        shutil.rmtree(in_time.output.with_name("answers.jsonl.job"))
        simulator.play_batches(ends="expired", finished=0)
        in_time.submit()
        report = in_time.fetch()
        assert (report.state, report.succeeded, report.retryable) == ("expired", 0, 3), provider
        assert report.expired + report.missing == 3
        assert all(one["response"] is None or one["response"]["status_code"] != 200 for one in in_time.answers)
    lines = [{"custom_id": "r", "result": {"type": "expired"}}]
    rejects: list[Reject] = []
    assert convert_lines(json.dumps(lines[0]).encode(), target="openai-chat", on_reject=rejects.append) == b""
    assert [reject.line for reject in rejects] == [1]


@pytest.mark.parametrize("provider", MODELS)
def test_results_that_are_gone_are_neither_missing_nor_paid_for_again(
    provider: str, dragoman_sim: Simulator, tmp_path: Path
) -> None:
    place = Place(tmp_path, dragoman_sim, provider, ["a", "b"])
    dragoman_sim.play_batches(gone=True)
    place.submit()
    made = len(dragoman_sim.service.memory.shelf.batches)
    retry = partial(retry_job_sync, str(place.output), **place.options)
    for act in (place.fetch, partial(place.fetch, retry_failed=True), retry):
        with pytest.raises(BatchJobError, match="not there any more"):
            act()
    assert len(dragoman_sim.service.memory.shelf.batches) == made
    assert not place.output.exists()
