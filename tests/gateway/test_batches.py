"""Batch and file APIs of three vendors: forwarded if the provider has them, otherwise run by the gateway."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from google.genai import Client as GoogleClient
from google.genai import types

from dragoman.gateway.config import Config
from dragoman.sim.server import Simulator
from tests.gateway.running import RunningGateway, configured, send, simulated
from tests.gateway.scripted_upstream import Reply, ScriptedUpstream, completion, reply
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
from tests.support.databases import Postgres
from tests.support.promises import promise
from tests.support.waiting import PATIENCE, until

pytestmark = promise("gateway:batches")

GPT, CLAUDE, GEMINI = "gpt-4.1-mini", "claude-sonnet-4-6", "gemini-2.5-flash"
IDS = [f"r-{number}" for number in range(5)]
KEYS = ("first-key-of-a-client", "other-key-of-a-client")


def pause() -> None:
    time.sleep(0.05)


def chat(gateway: RunningGateway, key: str = KEYS[0], **more: Any) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{gateway.url}/v1", api_key=key, max_retries=0, **more)


def claude(gateway: RunningGateway, key: str = KEYS[0]) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=gateway.url, api_key=key, max_retries=0)


def google(gateway: RunningGateway, key: str = KEYS[0]) -> GoogleClient:
    return GoogleClient(api_key=key, http_options=types.HttpOptions(base_url=gateway.url))


def keyed(text: str = "") -> Config:
    return configured(f"[server]\nkeys = {json.dumps(KEYS)}\n{text}").config


@pytest.fixture(scope="module")
def here(dragoman_simulator: Simulator) -> Iterator[RunningGateway]:
    """A gateway with keys whose providers are simulated, so that it runs batches itself."""
    with RunningGateway(simulated(dragoman_simulator.url, keyed())) as gateway:
        yield gateway


def lines(model: str, ids: list[str] = IDS, **more: Any) -> list[dict[str, Any]]:
    return [openai_line(id, model, f"question {id}", **more) for id in ids]


# ── run by the gateway ──


def test_openai_batches_run_on_models_of_other_vendors(here: RunningGateway) -> None:
    mixed = [*lines(CLAUDE, IDS[:3]), *lines(GEMINI, IDS[3:])]
    batch, found = openai_job(chat(here), mixed, pause)
    assert (batch.status, sorted(found)) == ("completed", IDS)
    assert not any(text.startswith("error") for text in found.values()), found
    assert (batch.request_counts.total, batch.request_counts.completed, batch.error_file_id) == (5, 5, None)
    assert batch.completed_at >= batch.created_at
    assert batch.expires_at - batch.created_at == 86_400


def test_anthropic_batches_run_on_models_of_other_vendors(here: RunningGateway) -> None:
    batch, found = anthropic_job(claude(here), [anthropic_item(id, GPT, "hi") for id in IDS], pause)
    assert (batch.processing_status, sorted(found)) == ("ended", IDS)
    assert batch.request_counts.succeeded == 5
    assert claude(here).messages.batches.delete(batch.id).type == "message_batch_deleted"
    with pytest.raises(anthropic.NotFoundError):
        claude(here).messages.batches.retrieve(batch.id)


def test_gemini_batches_run_on_models_of_other_vendors(here: RunningGateway) -> None:
    with google(here) as sdk:
        job, found = gemini_inline_job(sdk, CLAUDE, dict.fromkeys(IDS, "hi"), pause)
        assert (job.state.name, sorted(found)) == ("JOB_STATE_SUCCEEDED", IDS)
        job, found = gemini_file_job(sdk, CLAUDE, {id: gemini_request("hi") for id in IDS}, pause)
        assert (job.state.name, sorted(found)) == ("JOB_STATE_SUCCEEDED", IDS)
        assert not any(text.startswith("error") for text in found.values()), found
        assert job.name in {one.name for one in sdk.batches.list()}
        assert len(list(sdk.files.list())) == 2, "what was uploaded, and its results"
        sdk.batches.delete(name=job.name or "")
        assert len(list(sdk.files.list())) == 1


def test_batches_of_responses_requests(here: RunningGateway) -> None:
    body = {"model": CLAUDE, "input": "hi"}
    one = {"custom_id": "a", "method": "POST", "url": "/v1/responses", "body": body}
    batch, found = openai_job(chat(here), [one], pause, "/v1/responses")
    assert batch.status == "completed"
    assert found["a"]


def test_invalid_requests_in_a_batch_do_not_affect_the_others(here: RunningGateway) -> None:
    wrong = [openai_line("stream", CLAUDE, "hi", stream=True), openai_line("unknown", "no-such-model", "hi")]
    batch, found = openai_job(chat(here), [*lines(CLAUDE, IDS[:1]), *wrong], pause)
    assert (batch.status, batch.request_counts.completed, batch.request_counts.failed) == ("completed", 1, 2)
    assert found["stream"].startswith("error: 400")
    assert found["unknown"].startswith("error: 404")
    _, results = anthropic_job(
        claude(here), [anthropic_item("a", GPT, "hi"), anthropic_item("b", "no-such-model", "hi")], pause
    )
    assert results["b"] == "error: not_found_error"
    assert not results["a"].startswith("error")


def test_an_invalid_input_file_makes_a_failed_batch(here: RunningGateway) -> None:
    sdk = chat(here)
    content = b'{"custom_id":"a","method":"POST","url":"/v1/embeddings","body":{"model":"claude-sonnet-4-6"}}\n{oops\n'
    file = sdk.files.create(file=("requests.jsonl", content), purpose="batch")
    batch = sdk.batches.create(input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h")
    assert batch.status == "failed"
    problems: Any = batch.errors
    assert [(one.line, one.code) for one in problems.data] == [(1, "mismatched_endpoint"), (2, "invalid_json_line")]
    assert sdk.batches.retrieve(batch.id).status == "failed"


def test_files_and_batches_are_visible_only_to_the_key_that_created_them(here: RunningGateway) -> None:
    sdk, other = chat(here), chat(here, KEYS[1])
    content = json.dumps(lines(CLAUDE)[0]).encode()
    file = sdk.files.create(file=("requests.jsonl", content), purpose="batch")
    batch = sdk.batches.create(input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h")
    assert sdk.files.content(file.id).content == content
    assert file.id in {one.id for one in sdk.files.list()}
    assert batch.id in {one.id for one in sdk.batches.list(limit=2)}
    assert [*other.files.list(), *other.batches.list()] == []
    for refused in (
        lambda: other.files.content(file.id),
        lambda: other.files.delete(file.id),
        lambda: other.batches.retrieve(batch.id),
        lambda: other.batches.cancel(batch.id),
        lambda: other.batches.create(input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h"),
    ):
        with pytest.raises(openai.NotFoundError):
            refused()
    openai_results(sdk, batch.id, pause)
    assert sdk.files.delete(file.id).deleted
    assert {line["key"] for line in here.log.lines if line.get("operation") == "generate"} <= {"key-1"}


# ── states, limits, restarts: with an upstream that waits ──


class Slow(ScriptedUpstream):
    """Answers when the test permits it, and counts concurrent requests."""

    def __init__(self) -> None:
        super().__init__()
        self.__dict__["_lock"] = nullcontext()  # its requests do not wait for each other
        self.may_answer = threading.Event()
        self.at_once = self.most = 0
        self.first: Reply | None = None

    def _choose(self, line: str, body: bytes) -> Reply:  # noqa: ARG002
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        try:
            self.may_answer.wait(PATIENCE)
            first, self.first = self.first, None
            return first or reply(completion())
        finally:
            self.at_once -= 1


@pytest.fixture
def slow() -> Iterator[Slow]:
    server = Slow()
    yield server
    server.may_answer.set()
    server.close()


def waiting(server: ScriptedUpstream, more: str = "") -> Any:
    """Return a setting whose provider is a compatible server, which has no batch API."""
    return configured(f"[server]\n{more}\n" + server.table("own", "openai-compatible"))


def begun(sdk: openai.OpenAI, ids: list[str]) -> Any:
    content = "\n".join(json.dumps(line) for line in lines("own/m", ids)).encode()
    file = sdk.files.create(file=("requests.jsonl", content), purpose="batch")
    return sdk.batches.create(input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h")


def test_concurrency_is_limited_and_requests_not_yet_started_are_cancelled(slow: Slow) -> None:
    with RunningGateway(waiting(slow, "batch_concurrency = 2")) as gateway:
        sdk = chat(gateway)
        batch = begun(sdk, IDS)
        until(lambda: slow.count == 2)
        assert sdk.batches.retrieve(batch.id).status == "in_progress"
        assert sdk.batches.cancel(batch.id).status == "cancelling"
        slow.may_answer.set()
        batch, found = openai_results(sdk, batch.id, pause)
        assert (batch.status, slow.most, slow.count) == ("cancelled", 2, 2)
        assert sorted(found.values()) == ["error: batch_cancelled"] * 3 + ["fine"] * 2
        with pytest.raises(openai.ConflictError):
            sdk.batches.cancel(batch.id)


def test_requests_not_started_in_time_expire(slow: Slow) -> None:
    with RunningGateway(waiting(slow, "batch_concurrency = 1\nbatch_seconds = 2")) as gateway:
        sdk = claude(gateway)
        batch = sdk.messages.batches.create(requests=[anthropic_item(id, "own/m", "hi") for id in IDS])
        until(lambda: slow.count == 1)
        time.sleep(2.1)
        assert sdk.messages.batches.retrieve(batch.id).processing_status == "in_progress"
        slow.may_answer.set()
        batch, found = anthropic_results(sdk, batch.id, pause)
        assert found == {IDS[0]: "fine"} | dict.fromkeys(IDS[1:], "error: expired")
        assert (batch.request_counts.expired, batch.request_counts.succeeded) == (4, 1)


def test_a_batch_continues_after_a_restart_without_duplicate_results(slow: Slow, tmp_path: Path) -> None:
    setting = waiting(slow, f'database = "{tmp_path / "gateway.db"}"\nbatch_concurrency = 1\nkeys = ["{KEYS[0]}"]')
    with RunningGateway(setting) as gateway:
        batch = begun(chat(gateway), IDS)
        until(lambda: slow.count == 1)
        slow.may_answer.set()
        until(lambda: slow.count >= 2)
        slow.may_answer.clear()
    count_before = slow.count
    slow.may_answer.set()
    with RunningGateway(setting) as gateway:
        batch, found = openai_results(chat(gateway), batch.id, pause)
    assert (batch.status, found) == ("completed", dict.fromkeys(IDS, "fine"))
    assert slow.count <= len(IDS) + 1, f"{count_before} were asked before"
    assert KEYS[0].encode() not in (tmp_path / "gateway.db").read_bytes(), "keys are never stored"


def test_gateways_on_one_database_share_their_batches(slow: Slow, postgres_server: Postgres) -> None:
    setting = waiting(slow, f'database = "{postgres_server.fresh()}"\nbatch_concurrency = 1')
    with RunningGateway(setting) as first, RunningGateway(setting) as second:
        sdk, other = chat(first), chat(second)
        batch = begun(sdk, IDS)
        until(lambda: slow.count == 1)
        assert other.batches.cancel(batch.id).status == "cancelling"
        time.sleep(1.5)  # until the first one has looked
        slow.may_answer.set()
        batch, found = openai_results(other, batch.id, pause)
        assert batch.status == "cancelled"
        assert "fine" in found.values()
        assert len(found) == len(IDS)
        batch = begun(other, IDS)
        assert openai_results(sdk, batch.id, pause)[1] == dict.fromkeys(IDS, "fine")


def test_rate_limited_requests_of_a_batch_are_retried(slow: Slow) -> None:
    slow.may_answer.set()
    slow.first = reply({"error": {"message": "slow down"}}, "429 Too Many Requests", {"retry-after": "0.1"})
    with RunningGateway(waiting(slow)) as gateway:
        batch, found = openai_job(chat(gateway), lines("own/m"), pause)
    assert (batch.status, found) == ("completed", dict.fromkeys(IDS, "fine"))


def test_files_and_batches_have_their_own_limits(slow: Slow) -> None:
    with RunningGateway(waiting(slow, "batch_bytes = 500")) as gateway:
        sdk = chat(gateway)
        with pytest.raises(openai.APIStatusError, match="at most 500 bytes") as refused:
            sdk.files.create(file=("requests.jsonl", b"x" * 501), purpose="batch")
        assert refused.value.status_code == 413
        file = sdk.files.create(file=("requests.jsonl", b"{}"), purpose="batch")
        with pytest.raises(openai.BadRequestError, match="This gateway runs"):
            sdk.batches.create(input_file_id=file.id, endpoint="/v1/embeddings", completion_window="24h")
    with RunningGateway(waiting(slow, "batch_concurrency = 0")) as gateway:
        assert (
            send(gateway.url, "/v1/messages/batches", {"requests": [anthropic_item("a", "own/m", "x")]}).status == 501
        )


# ── passed on ──


@pytest.fixture(scope="module")
def through(dragoman_simulator: Simulator) -> Iterator[RunningGateway]:
    """A gateway whose providers have batches, each under its own name, and with routes that rename models."""
    url = dragoman_simulator.url
    bases = {"openai": f"{url}/openai/v1", "anthropic": f"{url}/anthropic", "gemini": f"{url}/gemini"}
    tables = [f'[providers.{name}]\nbase_url = "{base}"\napi_key = "any"\n' for name, base in bases.items()]
    routes = f'[routes.fast]\nto = "openai/{GPT}"\n[routes.wise]\nto = "anthropic/{CLAUDE}"\n'
    with RunningGateway(simulated(url, keyed("\n".join([*tables, routes])))) as gateway:
        yield gateway


@pytest.mark.parametrize("name", [GPT, "fast", f"openai/{GPT}"])
def test_a_batch_goes_to_the_provider_of_its_model(through: RunningGateway, dragoman_sim: Simulator, name: str) -> None:
    dragoman_sim.play_batches(polls=2)
    batch, found = openai_job(chat(through), lines(name), pause)
    assert (batch.status, batch.model, sorted(found)) == ("completed", GPT, IDS)
    with pytest.raises(openai.NotFoundError):
        chat(through, KEYS[1]).files.content(batch.output_file_id)
    with pytest.raises(openai.NotFoundError):
        chat(through, KEYS[1]).batches.retrieve(batch.id)


@pytest.mark.parametrize("name", [CLAUDE, "wise"])
def test_results_of_anthropic_are_fetched_through_the_gateway(
    through: RunningGateway, dragoman_sim: Simulator, name: str
) -> None:
    dragoman_sim.play_batches(polls=1)
    batch, found = anthropic_job(claude(through), [anthropic_item(id, name, "hi") for id in IDS], pause)
    assert batch.results_url.startswith(through.url), "the client's key belongs to the gateway"
    assert sorted(found) == IDS
    assert not any(text.startswith("error") for text in found.values()), found


def test_jobs_of_gemini_go_to_gemini(through: RunningGateway, dragoman_sim: Simulator) -> None:
    dragoman_sim.play_batches(polls=1)
    with google(through) as sdk:
        job, found = gemini_inline_job(sdk, GEMINI, dict.fromkeys(IDS, "hi"), pause)
        assert (job.state.name, sorted(found)) == ("JOB_STATE_SUCCEEDED", IDS)
        job, found = gemini_file_job(sdk, GEMINI, {id: gemini_request("hi") for id in IDS}, pause)
        assert (job.state.name, sorted(found)) == ("JOB_STATE_SUCCEEDED", IDS)


def test_a_batch_with_models_of_several_providers_is_run_by_the_gateway(
    through: RunningGateway, dragoman_sim: Simulator
) -> None:
    dragoman_sim.play_batches(polls=1)
    passed, _ = openai_job(chat(through), lines(GPT), pause)
    batch, found = openai_job(chat(through), [*lines(GPT, IDS[:2]), *lines(CLAUDE, IDS[2:])], pause)
    assert (batch.status, sorted(found)) == ("completed", IDS)
    listed = [one.id for one in chat(through).batches.list()]
    assert listed[0] == batch.id
    assert passed.id in listed
