"""Files and batch jobs of the simulators, through the vendors' own SDKs: states, expiry, cancelling, failures."""

import json
from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest
from google.genai import Client as GoogleClient
from google.genai import errors, types

from dragoman.sim.server import Simulator
from tests.sim.wire import send
from tests.support.batch_clients import (
    anthropic_item,
    anthropic_job,
    anthropic_results,
    gemini_file_job,
    gemini_inline_job,
    gemini_request,
    openai_job,
    openai_line,
    openai_results,
)
from tests.support.promises import promise

MODEL, CLAUDE, GEMINI = "gpt-4.1-mini", "claude-sonnet-4-6", "gemini-2.5-flash"
LINES = [openai_line(f"r-{number}", MODEL, f"question {number}") for number in range(4)]
ITEMS = [anthropic_item(f"r-{number}", CLAUDE, f"question {number}") for number in range(4)]
REQUESTS = {f"r-{number}": gemini_request(f"question {number}") for number in range(4)}


def at_once() -> None:
    """The simulators have no clock: a job goes on when it is looked at."""


@pytest.fixture
def chat(dragoman_sim: Simulator) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{dragoman_sim.url}/v1", api_key="any", max_retries=0) as sdk:
        yield sdk


@pytest.fixture
def claude(dragoman_sim: Simulator) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=dragoman_sim.url, api_key="any", max_retries=0) as sdk:
        yield sdk


@pytest.fixture
def google(dragoman_sim: Simulator) -> Iterator[GoogleClient]:
    with GoogleClient(api_key="any", http_options=types.HttpOptions(base_url=dragoman_sim.url)) as sdk:
        yield sdk


@promise("batch:simulators")
def test_jobs_of_the_three_vendors_end_with_an_answer_for_every_request(
    chat: openai.OpenAI, claude: anthropic.Anthropic, google: GoogleClient
) -> None:
    batch, found = openai_job(chat, LINES, at_once)
    assert (batch.status, batch.request_counts.completed, batch.error_file_id) == ("completed", 4, None)
    assert set(found) == {"r-0", "r-1", "r-2", "r-3"}
    assert all("question" in text for text in found.values())
    message_batch, answers = anthropic_job(claude, ITEMS, at_once)
    assert message_batch.request_counts.succeeded == 4
    assert set(answers) == set(found)
    for job, results in (
        gemini_file_job(google, GEMINI, REQUESTS, at_once),
        gemini_inline_job(google, GEMINI, {key: f"question {key}" for key in REQUESTS}, at_once),
    ):
        assert job.state == types.JobState.JOB_STATE_SUCCEEDED
        assert set(results) == set(found)


@promise("batch:simulators")
def test_responses_run_in_batches_too(chat: openai.OpenAI) -> None:
    lines = [{**line, "url": "/v1/responses", "body": {"model": MODEL, "input": "question"}} for line in LINES]
    batch, found = openai_job(chat, lines, at_once, "/v1/responses")
    assert batch.status == "completed"
    assert all("question" in text for text in found.values())


@promise("batch:simulators")
def test_a_script_says_which_requests_fail_expire_or_are_missing(
    dragoman_sim: Simulator, chat: openai.OpenAI, claude: anthropic.Anthropic, google: GoogleClient
) -> None:
    dragoman_sim.play_batches(items={"r-1": "error", "r-2": "expired", "r-3": "missing"})
    batch, found = openai_job(chat, LINES, at_once)
    assert batch.status == "completed"  # there is no other word for it
    assert found["r-1"].startswith("error: 500")
    assert found["r-2"] == "error: batch_expired"
    assert "r-3" not in found
    _, answers = anthropic_job(claude, ITEMS, at_once)
    assert (answers["r-1"], answers["r-2"]) == ("error: api_error", "error: expired")
    assert answers["r-3"] == "error: expired"  # this vendor has a line for every request
    job, results = gemini_file_job(google, GEMINI, REQUESTS, at_once)
    assert job.state == types.JobState.JOB_STATE_SUCCEEDED
    assert results["r-1"] == "error: 13"
    assert "r-3" not in results


@promise("batch:simulators")
def test_jobs_expire_with_what_was_finished(
    dragoman_sim: Simulator, chat: openai.OpenAI, claude: anthropic.Anthropic, google: GoogleClient
) -> None:
    dragoman_sim.play_batches(ends="expired", finished=1)
    batch, found = openai_job(chat, LINES, at_once)
    assert batch.status == "expired"
    assert [id for id, text in found.items() if not text.startswith("error")] == ["r-0"]
    _, answers = anthropic_job(claude, ITEMS, at_once)
    assert [id for id, text in answers.items() if not text.startswith("error")] == ["r-0"]
    assert list(answers.values()).count("error: expired") == 3
    job, results = gemini_file_job(google, GEMINI, REQUESTS, at_once)
    assert job.state == types.JobState.JOB_STATE_EXPIRED
    assert results == {}


@promise("batch:simulators")
def test_a_job_can_be_cancelled_and_deleted(
    chat: openai.OpenAI, claude: anthropic.Anthropic, google: GoogleClient
) -> None:
    content = "".join(json.dumps(line) + "\n" for line in LINES).encode()
    file = chat.files.create(file=("in.jsonl", content), purpose="batch")
    batch = chat.batches.create(input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h")
    assert chat.batches.cancel(batch.id).status == "cancelling"
    ended, found = openai_results(chat, batch.id, at_once)
    assert ended.status == "cancelled"
    assert set(found.values()) == {"error: batch_cancelled"}
    with pytest.raises(openai.ConflictError):
        chat.batches.cancel(batch.id)
    assert [one.id for one in chat.batches.list()] == [batch.id]
    assert file.id in [one.id for one in chat.files.list(purpose="batch")]
    assert chat.files.delete(file.id).deleted
    with pytest.raises(openai.NotFoundError):
        chat.files.retrieve(file.id)
    message_batch = claude.messages.batches.create(requests=ITEMS)
    with pytest.raises(anthropic.BadRequestError):
        claude.messages.batches.delete(message_batch.id)
    assert claude.messages.batches.cancel(message_batch.id).processing_status == "canceling"
    ended_batch, answers = anthropic_results(claude, message_batch.id, at_once)
    assert set(answers.values()) == {"error: canceled"}
    assert ended_batch.request_counts.canceled == 4
    assert claude.messages.batches.delete(message_batch.id).type == "message_batch_deleted"
    source: Any = [types.InlinedRequest(contents="hi")]
    job = google.batches.create(model=GEMINI, src=source)
    google.batches.cancel(name=job.name or "")
    assert google.batches.get(name=job.name or "").state == types.JobState.JOB_STATE_CANCELLED
    google.batches.delete(name=job.name or "")
    with pytest.raises(errors.ClientError):
        google.batches.get(name=job.name or "")


@promise("batch:simulators")
def test_files_that_are_wrong_fail_before_anything_runs(chat: openai.OpenAI) -> None:
    wrong = [
        LINES[0],
        LINES[0],
        {**LINES[1], "url": "/v1/responses"},
        {**LINES[2], "method": "GET"},
        openai_line("other", "gpt-4o", "another model"),
    ]
    batch, found = openai_job(chat, wrong, at_once)
    assert (batch.status, found) == ("failed", {})
    assert [(one.line, one.code) for one in batch.errors.data] == [
        (2, "duplicate_custom_id"),
        (3, "mismatched_endpoint"),
        (4, "invalid_method"),
        (5, "mismatched_model"),
    ]


@promise("batch:simulators")
@pytest.mark.parametrize(
    ("id", "expected"),
    [("with space", "pattern"), ("x" * 65, "at most 64"), ("r-0", "unique")],
)
def test_anthropic_refuses_ids(claude: anthropic.Anthropic, id: str, expected: str) -> None:
    wrong: Any = {**ITEMS[1], "custom_id": id}
    with pytest.raises(anthropic.BadRequestError, match=expected):
        claude.messages.batches.create(requests=[ITEMS[0], wrong])


@promise("batch:simulators")
def test_requests_that_are_wrong_come_back_as_errors(
    chat: openai.OpenAI, claude: anthropic.Anthropic, google: GoogleClient
) -> None:
    _, found = openai_job(chat, [openai_line("r", MODEL, "hi", temperature=9)], at_once)
    assert found["r"].startswith("error: 400")
    item = anthropic_item("r", CLAUDE, "hi")
    _, answers = anthropic_job(claude, [{**item, "params": {**item["params"], "max_tokens": -1}}], at_once)
    assert answers == {"r": "error: invalid_request_error"}
    _, results = gemini_file_job(google, GEMINI, {"r": {**gemini_request("hi"), "toolz": []}}, at_once)
    assert results == {"r": "error: 3"}


@promise("batch:simulators")
def test_words_for_states_may_be_scripted(dragoman_sim: Simulator, chat: openai.OpenAI) -> None:
    control = send(dragoman_sim, "/_sim/batches", {"states": ["pondering"]}, method="PUT")
    assert control.status == 200
    content = json.dumps(LINES[0]).encode()
    file = chat.files.create(file=("in.jsonl", content), purpose="batch")
    batch = chat.batches.create(input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h")
    states: list[str] = [chat.batches.retrieve(batch.id).status for _ in range(2)]
    assert [batch.status, *states] == ["validating", "pondering", "completed"]
    assert send(dragoman_sim, "/_sim/batches", {"polls": "x"}, method="PUT").status == 400
