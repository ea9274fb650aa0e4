"""Bulk inference against scripted and simulated models: order, ids, failures, limits, going on after a stop."""

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dragoman import Message, connect
from dragoman.batch import JobError, SourceError
from dragoman.batch.inference import InferenceOptions, InferenceReport, estimate, run_inference
from dragoman.drivers.base import QueryResult, result_of
from dragoman.errors import InvalidValue, ProviderError, provider_error
from dragoman.file_locks import take_lock
from dragoman.ir import Completion, Failure, Finish, Usage
from dragoman.sim.server import Simulator
from dragoman.translate import decode_response
from tests.batch.conversations import lines
from tests.cli.command import COMMAND, environment
from tests.support.promises import promise

BUSY = Failure("overloaded", "busy", 529)


class Model:
    """Answers with the number in the question; fails where the test says so."""

    def __init__(self, failing: frozenset[str] = frozenset(), failure: Failure = BUSY) -> None:
        self.failing = failing
        self.failure = failure
        self.prompts: list[str] = []
        self.at_once = self.most_at_once = 0

    async def query(self, _prompt: Any = None, *, messages: Any = (), **_: Any) -> QueryResult:
        text = messages[-1].text
        self.prompts.append(text)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0.001 * (hash(text) % 5))
        self.at_once -= 1
        if text in self.failing:
            raise provider_error(self.failure, provider="test")
        answer = Completion((Message("assistant", f"answer to {text}"),), Finish("stop"), Usage(input=3, output=2))
        return result_of(answer)


def questions(folder: Path, count: int) -> Path:
    path = folder / "in.jsonl"
    bodies = (
        {
            "custom_id": f"q{n}", "method": "POST", "url": "/v1/chat/completions",
            "body": {"model": "m", "messages": [{"role": "user", "content": f"{n}"}]},
        }
        for n in range(count)
    )  # fmt: skip
    path.write_text("\n".join(map(json.dumps, bodies)))
    return path


def run(path: Path, output: Path, driver: Model, model: str = "test/model", **options: Any) -> Any:
    settings = InferenceOptions(model=model, **options)
    return asyncio.run(run_inference([str(path)], str(output), driver, settings))  # type: ignore[arg-type]


@promise("batch:inference")
def test_answers_are_in_the_order_of_their_requests(tmp_path: Path) -> None:
    model = Model()
    report = run(questions(tmp_path, 50), tmp_path / "out.jsonl", model, concurrency=7)
    answers = [json.loads(line) for line in (tmp_path / "out.jsonl").read_bytes().splitlines()]
    assert [answer["custom_id"] for answer in answers] == [f"q{n}" for n in range(50)]
    texts = [answer["response"]["body"]["choices"][0]["message"]["content"] for answer in answers]
    assert texts == [f"answer to {n}" for n in range(50)]
    assert 1 < model.most_at_once <= 7
    assert (report.answered, report.failed, report.input_tokens, report.output_tokens) == (50, 0, 150, 100)


@promise("batch:inference")
@pytest.mark.parametrize("target", ["anthropic-messages", "gemini", "anthropic-batch"])
def test_answers_in_the_format_asked_for(target: str, tmp_path: Path) -> None:
    run(questions(tmp_path, 3), tmp_path / "out.jsonl", Model(), target=target)
    answers = [json.loads(line) for line in (tmp_path / "out.jsonl").read_bytes().splitlines()]
    bodies = [answer["result"]["message"] for answer in answers] if target == "anthropic-batch" else answers
    wire = "anthropic-messages" if target == "anthropic-batch" else target
    assert [decode_response(body, wire).text for body in bodies] == [f"answer to {n}" for n in range(3)]


@promise("batch:inference")
def test_failures_have_a_line_and_are_asked_again(tmp_path: Path) -> None:
    path, output = questions(tmp_path, 10), tmp_path / "out.jsonl"
    failing = Model(frozenset({"4", "7"}))
    with pytest.raises(ExceptionGroup):
        run(path, output, failing, max_errors=0, concurrency=1)
    assert not output.exists()
    well = Model()
    report = run(path, output, well)
    assert "4" in well.prompts, "a failure is asked again"
    assert not set(well.prompts) & {"0", "1", "2", "3"}, "an answer is not"
    assert report.resumed == 4
    assert len(output.read_bytes().splitlines()) == 10
    assert not (tmp_path / "out.jsonl.journal").exists()
    broken = run(path, tmp_path / "two.jsonl", Model(frozenset({"4"})))
    assert broken.failed == 1
    failed = json.loads((tmp_path / "two.jsonl").read_bytes().splitlines()[4])
    assert failed["custom_id"] == "q4"
    assert failed["response"]["status_code"] >= 400
    (reject,) = (tmp_path / "two.jsonl.rejects.jsonl").read_bytes().splitlines()
    assert json.loads(reject)["line"] == 5


@promise("batch:inference")
def test_a_journal_that_was_cut_is_read_up_to_there(tmp_path: Path) -> None:
    path, output = questions(tmp_path, 6), tmp_path / "out.jsonl"
    with pytest.raises(ExceptionGroup):
        run(path, output, Model(frozenset({"3"})), max_errors=0, concurrency=1)
    journal = tmp_path / "out.jsonl.journal"
    journal.write_bytes(journal.read_bytes() + b'{"source":0,"line":5,"con')
    model = Model()
    run(path, output, model)
    assert sorted(model.prompts) == ["3", "4", "5"]
    assert len(output.read_bytes().splitlines()) == 6


@promise("batch:inference")
def test_a_job_with_failures_goes_on_with_these_alone(tmp_path: Path) -> None:
    path, output = questions(tmp_path, 6), tmp_path / "out.jsonl"
    report = run(path, output, Model(frozenset({"2", "5"})))
    assert (report.answered, report.failed, report.retriable) == (4, 2, 2)
    assert len(output.read_bytes().splitlines()) == 6, "failures have their lines"
    again = Model()
    report = run(path, output, again)
    assert (report.resumed, report.answered, report.failed) == (4, 6, 0)
    assert (report.input_tokens, report.output_tokens, report.finishes) == (18, 12, {"stop": 6})
    assert sorted(again.prompts) == ["2", "5"]
    codes = [json.loads(line)["response"]["status_code"] for line in output.read_bytes().splitlines()]
    assert codes == [200] * 6
    assert not (tmp_path / "out.jsonl.rejects.jsonl").exists()


@promise("batch:inference")
@pytest.mark.parametrize("failure", [Failure("authentication", "no such key", 401), Failure("billing", "unpaid", 402)])
def test_a_refused_account_is_not_asked_for_every_request(failure: Failure, tmp_path: Path) -> None:
    path, output = questions(tmp_path, 50), tmp_path / "out.jsonl"
    model = Model(frozenset(map(str, range(3, 50))), failure)
    with pytest.raises(ProviderError, match=failure.message):
        run(path, output, model, concurrency=2)
    assert len(model.prompts) < 10
    assert not output.exists()
    well = Model()
    report = run(path, output, well)
    assert (report.answered, report.failed) == (50, 0)
    assert not set(well.prompts) & {"0", "1", "2"}, "answers are kept"


@promise("batch:inference")
def test_answers_that_were_paid_for_are_not_asked_for_or_replaced_by_accident(tmp_path: Path) -> None:
    path, output = questions(tmp_path, 3), tmp_path / "out.jsonl"
    run(path, output, Model())
    before, silent = output.read_bytes(), Model()
    with pytest.raises(JobError, match="--overwrite"):
        run(path, output, silent)
    assert (silent.prompts, output.read_bytes()) == ([], before)
    run(path, output, silent, overwrite=True)
    assert sorted(silent.prompts) == ["0", "1", "2"]


@promise("batch:inference")
@pytest.mark.parametrize("change", ["model", "target", "requests"])
def test_a_journal_of_another_job_is_not_continued(change: str, tmp_path: Path) -> None:
    path, output = questions(tmp_path, 4), tmp_path / "out.jsonl"
    run(path, output, Model(frozenset({"3"})))
    changed: dict[str, Any] = {"target": "gemini"} if change == "target" else {}
    model = "test/other" if change == "model" else "test/model"
    if change == "requests":
        questions(tmp_path, 5)
    other = Model()
    with pytest.raises(JobError, match="--restart"):
        run(path, output, other, model, **changed)
    assert other.prompts == []
    run(path, output, other, model, restart=True, overwrite=True, **changed)
    assert len(other.prompts) == (5 if change == "requests" else 4)


@promise("batch:inference", "batch:bad-input")
def test_a_source_that_does_not_exist_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(SourceError):
        run(tmp_path / "missing.jsonl", tmp_path / "out.jsonl", Model())
    assert list(tmp_path.iterdir()) == []


@promise("batch:inference")
def test_records_that_are_not_requests_are_rejected(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes(b"\n".join([lines(1)[0], b"{", b'{"unknown": 1}']))
    report = run(path, tmp_path / "out.jsonl", Model())
    assert (report.answered, report.failed) == (1, 2)
    rejects = (tmp_path / "out.jsonl.rejects.jsonl").read_bytes().splitlines()
    assert [json.loads(reject)["line"] for reject in rejects] == [2, 3]


@promise("batch:inference")
def test_limits_and_estimates(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="concurrency"):
        run(questions(tmp_path, 1), tmp_path / "out.jsonl", Model(), concurrency=0)
    found = estimate([str(questions(tmp_path, 10))], InferenceOptions(model="m", max_output_tokens=100))
    assert (found.requests, found.most_output_tokens) == (10, 1000)
    assert found.input_tokens > 0
    assert found.cost(1_000_000, 0) == found.input_tokens
    path = questions(tmp_path, 10)
    path.write_text(path.read_text() + "\nno JSON\n")
    found = estimate([str(path)], InferenceOptions(model="m"))
    assert (found.requests, found.unlimited, found.rejected) == (10, 10, 1), "what the output costs is not known"


@promise("batch:inference")
def test_the_command_against_a_simulator(dragoman_sim: Simulator, tmp_path: Path) -> None:
    path = questions(tmp_path, 12)
    done = subprocess.run(  # noqa: S603
        [
            *COMMAND, "batch", "run", str(path), "--model", "anthropic/claude-sonnet-5",
            "-o", str(tmp_path / "out.jsonl"), "--base-url", f"{dragoman_sim.url}/anthropic",
            "--max-output-tokens", "50",
        ],
        capture_output=True, env=environment(ANTHROPIC_API_KEY="sk-test"), timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert b"12 of 12 requests answered by anthropic/claude-sonnet-5" in done.stderr
    answers = [json.loads(line) for line in (tmp_path / "out.jsonl").read_bytes().splitlines()]
    assert [answer["response"]["status_code"] for answer in answers] == [200] * 12
    assert b"sk-test" not in (tmp_path / "out.jsonl").read_bytes()
    page = (tmp_path / "out.jsonl.report.html").read_text("utf-8")
    assert "<h1>12 of 12 requests answered by anthropic/claude-sonnet-5</h1>" in page
    assert "stop: 12" in page


@promise("batch:inference", "batch:jobs")
def test_a_command_whose_requests_all_failed_says_so_in_its_exit_code(dragoman_sim: Simulator, tmp_path: Path) -> None:
    path, output = questions(tmp_path, 2), tmp_path / "later.jsonl"
    place = ["--base-url", f"{dragoman_sim.url}/v1"]
    model = ["--model", "openai/no-such-model"]
    surroundings = environment(OPENAI_API_KEY="sk-test")
    for action, code in (
        (["run", str(path), *model, "-o", str(tmp_path / "out.jsonl")], 1),
        (["submit", str(path), *model, "-o", str(output)], 0),
        (["fetch", str(output), "--wait", "--every", "0.1"], 1),
    ):
        command = [*COMMAND, "batch", *action, *place]
        done = subprocess.run(command, capture_output=True, env=surroundings, timeout=60, check=False)  # noqa: S603
        assert done.returncode == code, (action, done.stderr)


@promise("batch:inference", "law:2-nothing-vanishes")
def test_the_report_says_what_was_lost_and_where(dragoman_sim: Simulator, tmp_path: Path) -> None:
    """It only counted losses; and `n`, which no driver sends, was in no count."""
    path = tmp_path / "in.jsonl"
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "n": 2, "logit_bias": {"5": 1}}
    path.write_text(json.dumps(body) + "\n" + json.dumps({**body, "messages": []}))
    output = tmp_path / "out.jsonl"
    settings = InferenceOptions(model="anthropic/claude-sonnet-5")

    async def answer() -> InferenceReport:
        async with connect(settings.model, base_url=f"{dragoman_sim.url}/anthropic", api_key="any") as driver:
            return await run_inference([str(path)], str(output), driver, settings)

    report = asyncio.run(answer())
    found = {(loss.what, loss.path, loss.records, loss.examples[0].line) for loss in report.kinds_of_losses}
    assert {("candidates", "$.candidates", 1, 1), ("logit_bias", "$.logit_bias", 1, 1)} <= found
    assert sum(report.losses.values()) == sum(loss.count for loss in report.kinds_of_losses)
    assert (report.failed, report.retriable) == (1, 0), "a request without messages never succeeds"
    assert not Path(f"{output}.journal").exists()
    assert "logit_bias" in Path(f"{output}.report.html").read_text()


@promise("batch:inference")
def test_two_processes_do_not_ask_the_same_questions(tmp_path: Path) -> None:
    path, output = questions(tmp_path, 4), tmp_path / "out.jsonl"
    run(path, output, Model(frozenset({"3"})))
    journal = tmp_path / "out.jsonl.journal"
    before, silent = journal.read_bytes(), Model()
    with journal.open("ab") as other:
        assert take_lock(other)
        for options in (dict[str, Any](), {"restart": True, "overwrite": True}):
            with pytest.raises(JobError, match="another process is writing"):
                run(path, output, silent, **options)
    with pytest.raises(JobError, match="--overwrite"):
        run(path, output, silent, restart=True)
    assert (silent.prompts, journal.read_bytes()) == ([], before), "answers that were paid for are kept"
