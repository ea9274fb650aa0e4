"""Batch jobs of providers through the drivers, against the simulators: submit, look, fetch, retry, cancel."""

import asyncio
import json
import stat
from pathlib import Path
from typing import Any, get_args

import anthropic
import msgspec
import pytest
from google.genai.types import JobState as GoogleState
from openai.types.batch import Batch as OpenAiBatch

from dragoman.batch import (
    BatchJobError,
    JobState,
    cancel_job_sync,
    fetch_job_sync,
    job_status,
    job_status_sync,
    retry_job_sync,
    submit_job_sync,
)
from dragoman.batch.job_file import JobFolder
from dragoman.batch.job_states import ENDED, STATES, state_of
from dragoman.batch.provider_jobs import JOB_APIS, Call, JobContext, Load, Reply, Save, Seen
from dragoman.cli.main import main
from dragoman.drivers.http import HttpTransport
from dragoman.drivers.providers import PROVIDERS
from dragoman.drivers.transport import HttpRequest, HttpResponse, Timeouts, no_answer_error
from dragoman.errors import InvalidRequest, NoAnswer
from dragoman.sim.server import Simulator
from tests.support.promises import promise

MODELS = {
    "openai": ("gpt-4.1-mini", "/openai/v1"),
    "openai-chat": ("gpt-4.1-mini", "/openai/v1"),
    "groq": ("gpt-oss-120b", "/openai/v1"),
    "anthropic": ("claude-sonnet-4-6", "/anthropic"),
    "gemini": ("gemini-2.5-flash", "/gemini"),
}
KEY = "sk-very-secret-key"


def lines_of(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def question(id: str, text: str) -> dict[str, Any]:
    body = {"model": "any", "messages": [{"role": "user", "content": text}], "stream": True}
    return {"custom_id": id, "method": "POST", "url": "/v1/chat/completions", "body": body}


class Place:
    """A file of requests, and how to reach one simulated provider."""

    def __init__(self, folder: Path, simulator: Simulator, provider: str, ids: list[str]) -> None:
        model, mount = MODELS[provider]
        self.model = f"{provider}/{model}"
        self.source = folder / "in.jsonl"
        self.source.write_text("".join(json.dumps(question(id, f"question {id}")) + "\n" for id in ids))
        self.output = folder / "answers.jsonl"
        self.options: Any = {"base_url": simulator.url + mount, "api_key": KEY}

    def submit(self, **more: Any) -> Any:
        more = {"max_output_tokens": 100, **more}
        return submit_job_sync([str(self.source)], str(self.output), model=self.model, **self.options, **more)

    def fetch(self, **more: Any) -> Any:
        return fetch_job_sync(str(self.output), **{"wait": 0.0, **self.options, **more})

    @property
    def answers(self) -> list[Any]:
        return lines_of(self.output)


IDS = ["zulu", "alpha", "m@il with spaces and ümlauts", "x" * 70, "last"]


@pytest.fixture(params=MODELS)
def place(request: pytest.FixtureRequest, dragoman_sim: Simulator, tmp_path: Path) -> Place:
    return Place(tmp_path, dragoman_sim, request.param, IDS)


@promise("batch:jobs")
def test_answers_join_their_requests_in_order_with_their_ids(place: Place) -> None:
    job = place.submit()
    assert (job.state, job.requests) == ("queued", 5)
    report = place.fetch()
    assert (report.succeeded, report.requests, report.state) == (5, 5, "completed")
    assert [answer["custom_id"] for answer in place.answers] == IDS
    for id, answer in zip(IDS, place.answers, strict=True):
        body = answer["response"]["body"]
        assert body["object"] == "chat.completion"
        assert id[:20] in body["choices"][0]["message"]["content"]
    assert report.output_tokens > 0


@promise("batch:jobs", "law:2-nothing-vanishes")
def test_what_is_lost_is_counted_and_listed(dragoman_sim: Simulator, tmp_path: Path) -> None:
    place = Place(tmp_path, dragoman_sim, "anthropic", ["a", "b"])
    job = place.submit()
    assert [(loss.what, loss.count) for loss in job.kinds_of_losses] == [("stream flag", 2)]
    assert "in the requests 2 dropped" in job.summary()
    report = place.fetch()
    assert "2 dropped" in report.summary()
    assert report.kinds_of_losses[0].examples[0].line == 1
    assert sum(report.losses.values()) == sum(loss.count for loss in report.kinds_of_losses)


@promise("batch:jobs")
@pytest.mark.parametrize("target", ["anthropic-batch", "gemini-batch", "ollama-chat"])
def test_answers_come_in_the_format_asked_for(dragoman_sim: Simulator, tmp_path: Path, target: str) -> None:
    place = Place(tmp_path, dragoman_sim, "anthropic", ["a", "b"])
    place.submit(target=target)
    place.fetch()
    first = place.answers[0]
    expected = {
        "anthropic-batch": lambda: first["result"]["message"]["content"][0]["type"] == "text",
        "gemini-batch": lambda: first["response"]["candidates"][0]["content"]["role"] == "model",
        "ollama-chat": lambda: first["message"]["role"] == "assistant",
    }
    assert expected[target]()
    assert len(place.answers) == 2


@promise("batch:job-retry")
def test_what_failed_for_a_while_or_never_ran_goes_into_a_new_job(place: Place, dragoman_sim: Simulator) -> None:
    sent = {"zulu": "error", "alpha": "expired", "last": "missing"}
    dragoman_sim.play_batches(items=sent)
    place.submit()
    report = place.fetch()
    assert (report.succeeded, report.retryable) == (2, 3)
    assert report.errored + report.expired + report.canceled + report.missing == 3
    rejects = lines_of(place.output.with_name("answers.jsonl.rejects.jsonl"))
    assert sorted(reject["line"] for reject in rejects) == [1, 2, 5]
    dragoman_sim.play_batches()
    job = retry_job_sync(str(place.output), **place.options)
    assert [len(part.requests) for part in job.parts] == [5, 3]
    report = place.fetch()
    assert (report.succeeded, report.retryable) == (5, 0)
    assert [answer["custom_id"] for answer in place.answers] == IDS
    assert not place.output.with_name("answers.jsonl.rejects.jsonl").exists()
    with pytest.raises(BatchJobError, match="nothing to retry"):
        retry_job_sync(str(place.output), **place.options)


@promise("batch:job-retry")
def test_requests_that_were_refused_are_not_retried(dragoman_sim: Simulator, tmp_path: Path) -> None:
    place = Place(tmp_path, dragoman_sim, "anthropic", ["good", "bad"])
    dragoman_sim.play({"when": {"says": "question bad"}, "error": "invalid"})
    place.submit()
    report = place.fetch(retry_failed=True)
    assert (report.succeeded, report.errored, report.retryable) == (1, 1, 0)
    assert len(job_status_sync(str(place.output), **place.options).parts) == 1


@promise("batch:job-retry")
def test_fetch_retries_by_itself_when_asked(place: Place, dragoman_sim: Simulator) -> None:
    dragoman_sim.play_batches(ends="expired", finished=1)
    place.submit()
    job = asyncio.run(job_status(str(place.output), **place.options))
    dragoman_sim.play_batches()
    assert not job.ended
    report = place.fetch(retry_failed=True)
    assert report.succeeded == 5


@promise("batch:jobs")
def test_a_job_can_be_cancelled(place: Place, dragoman_sim: Simulator) -> None:
    dragoman_sim.play_batches(polls=50)
    place.submit()
    job = cancel_job_sync(str(place.output), **place.options)
    assert job.state in {"canceling", "canceled"}
    report = place.fetch()
    assert report.canceled + report.missing == 5
    codes = {(answer["error"] or {}).get("code", answer["response"]) is not None for answer in place.answers}
    assert codes == {True}


@promise("batch:jobs")
def test_a_job_that_runs_is_not_fetched_by_accident(dragoman_sim: Simulator, tmp_path: Path) -> None:
    dragoman_sim.play_batches(polls=50)
    place = Place(tmp_path, dragoman_sim, "openai-chat", ["a"])
    place.submit()
    with pytest.raises(BatchJobError, match="--wait"):
        place.fetch(wait=None)
    assert place.fetch(wait=None, partial=True).succeeded == 0


@promise("batch:job-states")
def test_an_unknown_state_is_reported_and_not_taken_for_an_end(dragoman_sim: Simulator, tmp_path: Path) -> None:
    dragoman_sim.play_batches(states=("pondering",))
    place = Place(tmp_path, dragoman_sim, "openai-chat", ["a"])
    place.submit()
    job = job_status_sync(str(place.output), **place.options)
    assert (job.state, job.parts[0].provider_state) == ("unknown", "pondering")
    assert "pondering" in job.summary()
    assert place.fetch().succeeded == 1


@promise("batch:job-states")
def test_every_word_of_the_vendors_sdks_has_a_state() -> None:
    words = set(get_args(OpenAiBatch.model_fields["status"].annotation))
    assert words == set(STATES["openai"])
    assert {state.value for state in GoogleState} - {"JOB_STATE_DELETING"} <= set(STATES["gemini"])
    status: Any = anthropic.types.messages.MessageBatch.model_fields["processing_status"].annotation
    assert set(get_args(status)) == set(STATES["anthropic"])
    assert {state for table in STATES.values() for state in table.values()} <= set(get_args(JobState))
    assert state_of("bedrock", "PartiallyCompleted") in ENDED
    assert state_of("bedrock", "Pondering") == "unknown"
    assert {api.vocabulary for api in JOB_APIS.values()} <= set(STATES)
    assert set(JOB_APIS) <= set(PROVIDERS)


@promise("batch:job-file")
def test_the_job_is_private_and_holds_no_key(place: Place) -> None:
    place.submit()
    folder = place.output.with_name("answers.jsonl.job")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert {"job.json", "requests.jsonl"} <= {path.name for path in files}
    for path in files:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert KEY.encode() not in path.read_bytes()


@promise("batch:job-file")
def test_the_same_command_again_submits_nothing_twice(place: Place) -> None:
    first, again = place.submit(), place.submit()
    assert [part.id for part in again.parts] == [part.id for part in first.parts]
    with pytest.raises(BatchJobError, match="choose another output"):
        submit_job_sync([str(place.source)], str(place.output), model="gemini/other", **place.options)


class LosesTheAnswer:
    """A network on which the answer to a creation is lost after the provider has received it."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def send(self, request: HttpRequest, *, timeouts: Timeouts) -> HttpResponse:
        response: HttpResponse = await self._inner.send(request, timeouts=timeouts)
        if request.method == "POST" and request.url.endswith(("/batches", ":batchGenerateContent")):
            response.close()
            raise no_answer_error("the connection broke")
        return response

    async def close(self) -> None:
        await self._inner.close()


@promise("batch:job-file")
def test_a_creation_without_an_answer_is_looked_for_and_never_repeated(place: Place, dragoman_sim: Simulator) -> None:
    with pytest.raises(NoAnswer):
        place.submit(transport=LosesTheAnswer(HttpTransport()))
    creations = [one for one in dragoman_sim.requests if one.method == "POST" and one.path.endswith(
        ("/batches", ":batchGenerateContent"))]  # fmt: skip
    assert len(creations) == 1
    if place.model.startswith("anthropic/"):  # it has nothing to look for a job by
        with pytest.raises(BatchJobError, match="--resubmit"):
            place.submit()
        place.submit(resubmit=True)
    else:
        place.submit()
        assert len(dragoman_sim.service.memory.shelf.batches) == 1
    assert place.fetch().succeeded == 5


@promise("batch:jobs")
def test_a_file_too_large_for_one_job_becomes_several(
    dragoman_sim: Simulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(tmp_path, dragoman_sim, "openai-chat", [f"r-{number}" for number in range(7)])
    small = msgspec.structs.replace(JOB_APIS["openai-chat"], most_requests=3)
    monkeypatch.setitem(JOB_APIS, "openai-chat", small)
    job = place.submit()
    assert [len(part.requests) for part in job.parts] == [3, 3, 1]
    assert place.fetch().succeeded == 7
    assert [answer["custom_id"] for answer in place.answers] == [f"r-{number}" for number in range(7)]


@promise("batch:jobs")
def test_lines_that_are_not_requests_are_rejected_and_the_rest_goes_on(dragoman_sim: Simulator, tmp_path: Path) -> None:
    place = Place(tmp_path, dragoman_sim, "openai-chat", ["a", "b", "a"])
    place.source.write_text(place.source.read_text() + "not json\n")
    job = place.submit()
    assert (job.requests, job.rejected) == (2, 2)
    report = place.fetch()
    assert (report.succeeded, report.rejected) == (2, 2)
    assert [one["line"] for one in lines_of(place.output.with_name("answers.jsonl.rejects.jsonl"))] == [3, 4]


@promise("batch:jobs")
def test_a_job_that_the_provider_refuses_says_why(dragoman_sim: Simulator, tmp_path: Path) -> None:
    place = Place(tmp_path, dragoman_sim, "gemini", ["a"])
    place.model = "gemini/no-such-model"
    with pytest.raises(Exception, match="not found") as caught:
        place.submit()
    assert not isinstance(caught.value, InvalidRequest) or caught.value.status
    assert job_status_sync(str(place.output), **place.options).parts == []
    other = Place(tmp_path / "..", dragoman_sim, "openai-chat", ["a"])
    other.model, other.output = "openai-chat/no-such-model", tmp_path / "other.jsonl"
    other.submit()
    report = other.fetch()
    assert (report.missing, report.retryable, report.state) == (1, 0, "failed")
    assert "not supported" in lines_of(tmp_path / "other.jsonl.rejects.jsonl")[0]["reason"]


@promise("batch:jobs")
def test_providers_without_jobs_are_named(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text(json.dumps(question("a", "hi")))
    with pytest.raises(BatchJobError, match="batch run"):
        submit_job_sync([str(tmp_path / "in.jsonl")], str(tmp_path / "out"), model="ollama/qwen3")


@promise("batch:jobs")
def test_the_commands(
    dragoman_sim: Simulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = Place(tmp_path, dragoman_sim, "anthropic", ["a", "b"])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", place.options["base_url"])

    def run(*words: str) -> tuple[int, str, str]:
        code = main(["batch", *words])
        return code, *capsys.readouterr()

    code, _, errors = run(
        "submit", "in.jsonl", "--model", place.model, "-o", "answers.jsonl", "--max-output-tokens", "50"
    )
    assert (code, "queued: 2 requests" in errors) == (0, True), errors
    _, printed, _ = run("status", "answers.jsonl", "--json")
    assert json.loads(printed)["parts"][0]["provider_state"] == "in_progress"
    code, _, errors = run("fetch", "answers.jsonl", "--wait", "--retry")
    assert (code, "2 of 2 requests answered" in errors) == (0, True), errors
    code, _, errors = run("cancel", "nothing.jsonl")
    assert (code, "batch submit" in errors) == (3, True)


# ── the protocols of providers without a simulator, step by step ──


def play(steps: Any, *replies: Reply) -> tuple[list[Any], Any]:
    """The steps that an operation asks for, given these replies, and its finding."""
    calls = [next(steps)]
    try:
        calls += [steps.send(reply) for reply in replies[:-1]]
        steps.send(replies[-1])
    except StopIteration as end:
        return calls, end.value
    raise AssertionError("the operation asks for more")


def json_of(value: Any) -> Reply:
    return Reply(msgspec.json.encode(value))


@promise("batch:jobs")
def test_mistral_jobs() -> None:
    api, context = JOB_APIS["mistral"], JobContext(model="mistral-small", key="k")
    calls, job = play(api.create(context, b"{}\n"), json_of({"id": "f1"}), json_of({"id": "j1"}))
    body = msgspec.json.decode(calls[1].body)
    assert (calls[0].url, calls[1].url, calls[1].once, job) == ("/files", "/batch/jobs", True, "j1")
    assert (body["model"], body["input_files"], body["endpoint"]) == ("mistral-small", ["f1"], "/v1/chat/completions")
    status = {"status": "TIMEOUT_EXCEEDED", "output_file": "o", "error_file": "e", "total_requests": 3}
    _, seen = play(api.look(context, "j1"), json_of(status))
    assert (seen.state, seen.outputs, seen.counts.total) == ("expired", ("o", "e"), 3)
    _, content = play(api.results(context, "j1", seen), Reply(b'{"a":1}\n'), Reply(b'{"b":2}\n'))
    assert content == b'{"a":1}\n{"b":2}'
    assert play(api.cancel(context, "j1"), Reply())[0][0].url == "/batch/jobs/j1/cancel"


@promise("batch:jobs")
def test_xai_jobs() -> None:
    api, context = JOB_APIS["xai"], JobContext(model="grok-4", key="k")
    calls, job = play(api.create(context, b"{}\n"), json_of({"id": "f1"}), json_of({"batch_id": "b1"}))
    assert job == "b1"
    assert b"purpose" not in calls[0].body
    state = {"num_requests": 2, "num_pending": 1, "num_success": 1}
    assert play(api.look(context, "b1"), json_of({"state": state}))[1].state == "running"
    seen = play(api.look(context, "b1"), json_of({"state": {**state, "num_pending": 0}}))[1]
    assert seen.state == "completed"
    good = {"batch_request_id": "a", "batch_result": {"response": {"chat_get_completion": {"id": "c"}}}}
    bad = {"batch_request_id": "b", "error_message": "no"}
    calls, content = play(
        api.results(context, "b1", seen),
        json_of({"results": [good], "pagination_token": "next/1"}),
        json_of({"results": [bad]}),
    )
    assert calls[1].url.endswith("&pagination_token=next%2F1")
    lines = [json.loads(line) for line in content.splitlines()]
    assert lines[0]["response"]["body"] == {"id": "c"}
    assert (lines[1]["custom_id"], lines[1]["error"]["message"]) == ("b", "no")


@promise("batch:jobs")
def test_vertex_and_bedrock_jobs_read_and_write_the_users_storage() -> None:
    place = {"project": "p", "location": "us-central1", "region": "us-east-1"}
    context = JobContext(model="m", key="k", place=place, storage="gs://bucket/jobs", role="arn:role")
    api = JOB_APIS["vertex"]
    calls, job = play(api.create(context, b"lines"), Reply(), json_of({"name": "projects/p/jobs/1"}))
    assert calls[0] == Save("gs://bucket/jobs/k/requests.jsonl", b"lines")
    assert isinstance(calls[1], Call)
    assert calls[1].url == "/v1/projects/p/locations/us-central1/batchPredictionJobs"
    body = msgspec.json.decode(calls[1].body)
    assert body["inputConfig"]["gcsSource"]["uris"] == ["gs://bucket/jobs/k/requests.jsonl"]
    info = {"state": "JOB_STATE_SUCCEEDED", "outputInfo": {"gcsOutputDirectory": "gs://bucket/out"}}
    _, seen = play(api.look(context, job), json_of(info))
    calls, content = play(api.results(context, job, seen), Reply(b"{}"))
    assert (calls[0], content) == (Load("gs://bucket/out", (".jsonl", ".jsonl.out")), b"{}")
    api = JOB_APIS["bedrock"]
    calls, arn = play(api.create(context, b"lines"), Reply(), json_of({"jobArn": "arn:aws:bedrock:job/abc"}))
    body = msgspec.json.decode(calls[1].body)
    assert (body["modelInvocationType"], body["roleArn"], body["clientRequestToken"]) == ("Converse", "arn:role", "k")
    _, seen = play(api.look(context, arn), json_of({"status": "Stopped"}))
    assert (seen.state, seen.outputs) == ("canceled", ("gs://bucket/jobs/k/results/abc",))
    assert (
        play(api.cancel(context, arn), Reply())[0][0].url
        == "/model-invocation-job/arn%3Aaws%3Abedrock%3Ajob%2Fabc/stop"
    )


@promise("batch:job-states")
def test_a_gemini_job_without_its_file_has_not_ended() -> None:
    """A client saw a job succeed before its file had a name."""
    api, context = JOB_APIS["gemini"], JobContext(model="m", key="k")
    early = play(api.look(context, "batches/1"), json_of({"metadata": {"state": "BATCH_STATE_SUCCEEDED"}}))[1]
    assert (early.state, early.provider_state) == ("running", "BATCH_STATE_SUCCEEDED")
    gone = play(api.look(context, "batches/1"), json_of({"metadata": {"state": "JOB_STATE_EXPIRED"}}))[1]
    assert gone.state == "expired"
    assert isinstance(gone, Seen)


@promise("batch:job-states")
def test_an_anthropic_job_that_ended_says_by_its_counts_how() -> None:
    api, context = JOB_APIS["anthropic"], JobContext(model="m", key="k")

    def state(**counts: int) -> str:
        found = {"processing_status": "ended", "request_counts": counts, "results_url": "x"}
        return str(play(api.look(context, "b"), json_of(found))[1].state)

    assert state(succeeded=1, expired=4) == "completed"
    assert state(expired=4) == "expired"
    assert state(canceled=1, expired=4) == "canceled"


@promise("batch:job-file")
def test_a_job_of_other_requests_is_not_taken_for_this_one(place: Place) -> None:
    place.submit()
    other = {"target": "gemini"} if place.model.startswith("openai/") else {"max_output_tokens": 7}
    with pytest.raises(BatchJobError, match="other sources or options"):
        place.submit(**other)
    place.source.write_text(json.dumps(question("new", "another question")) + "\n")
    with pytest.raises(BatchJobError, match="other sources or options"):
        place.submit()
    with JobFolder(str(place.output)).locked(), pytest.raises(BatchJobError, match="another process"):
        place.submit()
    assert [len(part.requests) for part in JobFolder(str(place.output)).load().parts] == [len(IDS)]


@promise("batch:job-file")
def test_a_file_that_is_not_of_a_job_is_not_replaced_by_its_answers(place: Place) -> None:
    place.output.write_text("precious")
    with pytest.raises(BatchJobError, match="exists"):
        place.submit()
    with pytest.raises(BatchJobError, match="exists"):
        submit_job_sync([str(place.source)], str(place.source), model=place.model, **place.options)
    assert place.output.read_text() == "precious"


@promise("batch:jobs")
def test_what_was_not_sent_is_counted_when_a_job_is_created_and_when_it_is_fetched(place: Place) -> None:
    place.source.write_text(place.source.read_text() + "no JSON\n")
    assert "(rejected: 1)" in place.submit().summary()
    assert "not sent: 1" in place.fetch().summary()
