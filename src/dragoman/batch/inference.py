"""Bulk inference: one model answers every request of a file, with limits, retries, and a journal to resume from.

Each answer is written to the journal when it arrives, so that a resumed job sends no request twice. At the end the
answers are put in the order of their requests.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager
from itertools import chain
from pathlib import Path
from typing import IO, Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from dragoman.batch.answer_lines import AnswerLines
from dragoman.batch.job import JobError
from dragoman.batch.loss_counter import LossCounter, count_by_severity
from dragoman.batch.options import ConvertOptions, JobOptions
from dragoman.batch.provider_files import batch_file_of
from dragoman.batch.record_converter import read_json
from dragoman.batch.rejects import Reject
from dragoman.batch.report_page import render_answers_page
from dragoman.batch.sources import STDIN, Source, find_sources, plan_shards, read_blocks, read_shard, split_lines
from dragoman.batch.tally import LossCount
from dragoman.codecs.settings import SETTING_NAMES
from dragoman.detection import detect
from dragoman.drivers.base import Driver, QueryResult, Settings
from dragoman.errors import (
    AuthenticationFailed,
    BillingRefused,
    DecodeError,
    DragomanError,
    EncodeError,
    InvalidValue,
    ProviderError,
)
from dragoman.file_locks import take_lock
from dragoman.ir import Request
from dragoman.loss import Loss
from dragoman.translate import decode_request

_TAKEN = frozenset(Settings.__annotations__) & frozenset(Request.__struct_fields__) - {"model"}
_NOT_SENT = {
    "candidates": (1, "each request is asked for one answer"),
    "max_tool_calls": (None, "a driver has no such setting"),
    "stream": (False, "answers are stored whole"),
}
"""Settings of a request that a driver does not send, with the values that are what it does, and why."""
_READING = JobOptions(convert=ConvertOptions(target="openai-chat"))
"""Only the limits are used: requests are read, not converted."""
_TOKEN_BYTES = 4
"""Approximate bytes per token, for estimates before any request is sent."""


class InferenceOptions(Struct, frozen=True, kw_only=True):
    """How to answer a file of requests."""

    model: str
    target: str = "openai-batch"
    """The format of the answers: a wire format, or a batch file, whose lines have ids and include failures."""
    concurrency: int = 8
    requests_per_minute: float | None = None
    max_errors: int | None = None
    max_output_tokens: int | None = None
    """For requests that do not set it themselves."""
    restart: bool = False
    """Discard the answers of an unfinished job."""
    overwrite: bool = False
    """Send all requests again if the output exists, and replace it."""

    def check(self) -> None:
        """Raise a typed error for a number out of range."""
        for name, value in (("concurrency", self.concurrency), ("requests_per_minute", self.requests_per_minute)):
            if value is not None and value <= 0:
                raise InvalidValue(path=f"InferenceOptions.{name}", expected="a positive number", found=str(value))


class Estimate(Struct, frozen=True):
    """What a job would use, before any request is sent: tokens are a quarter of the bytes."""

    requests: int
    input_tokens: int
    most_output_tokens: int
    unlimited: int = 0
    """Requests without a limit of output tokens: `most_output_tokens` does not count them."""
    rejected: int = 0
    """Records that are not requests."""

    def cost(self, input_price: float, output_price: float) -> float:
        """Return the cost at prices per million tokens; output tokens are counted at their limit."""
        return (self.input_tokens * input_price + self.most_output_tokens * output_price) / 1_000_000


class InferenceReport(Struct, kw_only=True):
    """Counts of a job's outcomes."""

    model: str
    requests: int = 0
    answered: int = 0
    failed: int = 0
    retriable: int = 0
    """Failures that may succeed later: the same command sends these requests again."""
    resumed: int = 0
    """Of those answered or failed, those of an earlier run."""
    input_tokens: int = 0
    output_tokens: int = 0
    attempts: int = 0
    seconds: float = 0.0
    losses: dict[str, int] = {}
    """How many losses there were, by severity."""
    kinds_of_losses: list[LossCount] = []
    finishes: dict[str, int] = {}

    def summary(self) -> str:
        """Return one line for people."""
        parts = [f"{self.answered:,} of {self.requests:,} requests answered by {self.model}"]
        if self.failed:
            parts.append(f"{self.failed:,} failed")
        if self.resumed:
            parts.append(f"{self.resumed:,} from an earlier run")
        parts += count_by_severity(self.losses)
        tokens = f"{self.input_tokens:,} input and {self.output_tokens:,} output tokens"
        return f"{', '.join(parts)}; {tokens}; {self.seconds:.1f} s"


class _JobIdentity(Struct, frozen=True):
    """The first line of the journal: what answers depend on. A job is resumed only if all of this is the same."""

    job: str
    sources: list[Source]
    target: str
    max_output_tokens: int | None


class _Entry(Struct, frozen=True):
    """A line of the journal: the request and its outcome. `retried`: a later run sends it again."""

    source: int
    line: int
    content: Raw | UnsetType = UNSET
    reject: Reject | None = None
    retried: bool = False
    outcome: _Outcome | None = None


class _Outcome(Struct, frozen=True, kw_only=True):
    """What a report counts of an answer."""

    finish: str
    attempts: int
    input: int = 0
    output: int = 0
    losses: tuple[Loss, ...] = ()


class Question(Struct, frozen=True):
    """A request, and where it was read."""

    source: int
    line: int
    id: str
    request: Request


OnAnswer = Callable[[InferenceReport], None]


def read_questions(sources: list[Source], options: JobOptions) -> Iterator[tuple[int, int, str, bytes]]:
    """Yield (source index, line, source name, record) for every record."""
    for index, source in enumerate(sources):
        if source.splits:
            shards = plan_shards(source, index, options)
            batches = (batch for shard in shards for batch in read_shard(source, shard, options))
        else:
            batches = (split_lines(block) for block in read_blocks(source, options))
        for line, record in enumerate(chain.from_iterable(batches), 1):
            if record.strip():
                yield index, line, source.name, record.strip()


def reading_options() -> JobOptions:
    """Return the options for reading sources of requests."""
    return _READING


def question_of(source: int, line: int, record: bytes) -> Question:
    """Return a record as a request with an id: its own, or one made from its position. Raises typed errors."""
    data = read_json(record)
    file = batch_file_of(data) if isinstance(data, Mapping) else None
    if file is not None:
        item = file.read(file, data)
        if item.outcome != "request" or item.body is None:
            raise DecodeError(path="$", expected="a request", got="a result", source=file.name)
        item_id = item.id or f"record-{line}"
        return Question(source, line, item_id, decode_request(bytes(item.body), item.format))
    found = detect(record)
    if found is None or found.kind != "request":
        raise DecodeError(path="$", expected="a request of a known format", got="something else", source="record")
    return Question(source, line, f"record-{source}-{line}", decode_request(record, found.format))


def estimate(names: list[str], options: InferenceOptions) -> Estimate:
    """Count what would be sent, without sending it."""
    requests = tokens = most = unlimited = rejected = 0
    for source, line, _, record in read_questions(find_sources(names), _READING):
        try:
            question = question_of(source, line, record)
        except DragomanError:
            rejected += 1
            continue
        requests += 1
        tokens += len(record) // _TOKEN_BYTES
        limit = question.request.max_output_tokens or options.max_output_tokens
        most += limit or 0
        unlimited += limit is None
    return Estimate(requests, tokens, most, unlimited, rejected)


class _Journal:
    """Answers in the order of arrival. The last line may be truncated, if the program died while writing it."""

    def __init__(self, path: Path, identity: _JobIdentity, *, restart: bool = False) -> None:
        self._path = path
        self.places: dict[tuple[int, int], tuple[int, int]] = {}
        self._file: IO[bytes] = path.open("ab")
        try:
            self._take_lock()
            position = 0 if restart else self._read(identity)
        except BaseException:
            self._file.close()
            raise
        self._file.truncate(position)
        self._position = position
        if not position:
            self._position = self._file.write(msgspec.json.encode(identity) + b"\n")
            self._file.flush()

    def _take_lock(self) -> None:
        if not take_lock(self._file):
            raise JobError(f"another process is writing {self._path}; wait for it, or choose another output")

    def _read(self, identity: _JobIdentity) -> int:
        """Read what an earlier run wrote. Returns the length of the lines that are whole."""
        decode, position = msgspec.json.Decoder(_Entry).decode, 0
        with self._path.open("rb") as stream:
            try:
                first = stream.readline()
                if msgspec.json.decode(first, type=_JobIdentity) != identity:
                    raise JobError(
                        f"{self._path} belongs to an unfinished job with other requests or another model; "
                        "--restart discards it, another output keeps it"
                    )
            except msgspec.DecodeError:
                return 0
            position = len(first)
            for line in stream:
                try:
                    entry = decode(line)
                except msgspec.DecodeError:
                    break
                if not entry.retried:
                    self.places[entry.source, entry.line] = (position, len(line))
                position += len(line)
        return position

    def add(self, entry: _Entry) -> None:
        line = msgspec.json.encode(entry) + b"\n"
        self._file.write(line)
        self._file.flush()
        self.places[entry.source, entry.line] = (self._position, len(line))
        self._position += len(line)

    def entries(self) -> Iterator[_Entry]:
        """Yield the entries in the order of the requests."""
        os.fsync(self._file.fileno())
        with self._path.open("rb") as stream:
            for key in sorted(self.places):
                position, length = self.places[key]
                stream.seek(position)
                yield msgspec.json.decode(stream.read(length), type=_Entry)

    def close(self) -> None:
        self._file.close()

    def remove(self) -> None:
        """Delete the journal of a finished job."""
        self._path.unlink()


class _Pace:
    """Spaces requests evenly, at most `per_minute` of them per minute."""

    def __init__(self, per_minute: float | None) -> None:
        self._step = 0.0 if per_minute is None else 60.0 / per_minute
        self._next = 0.0

    async def wait(self) -> None:
        if self._step:
            now = time.monotonic()
            at = max(now, self._next)
            self._next = at + self._step
            if at > now:
                await asyncio.sleep(at - now)


async def run_inference(
    names: list[str], output: str, driver: Driver, options: InferenceOptions, on_answer: OnAnswer | None = None
) -> InferenceReport:
    """Answer every request without an answer so far, then write answers and rejects in the order of the requests.

    If requests failed that may succeed later, the journal stays: the same call sends these again, and no others.
    """
    options.check()
    started, sources = time.monotonic(), find_sources(names)
    journal = _begin(Path(f"{output}.journal"), Path(output), sources, options)
    run = _Run(driver, options, journal, on_answer)
    try:
        run.count_earlier(sources)
        await run.ask_all(sources)
        run.report.seconds = time.monotonic() - started
        _publish(journal, Path(output), run.report)
    finally:
        journal.close()
    if not run.report.retriable:
        journal.remove()
    return run.report


def _begin(path: Path, output: Path, sources: list[Source], options: InferenceOptions) -> _Journal:
    """Return the journal, unless answers that were paid for would be lost or mixed with those of another job."""
    goes_on = path.exists() and not options.restart
    if goes_on and any(source.name == STDIN for source in sources):
        raise JobError("a job that reads stdin cannot be resumed; --restart begins again")
    if output.exists() and not goes_on and not options.overwrite:
        raise JobError(f"{output} exists; --overwrite sends all requests again and replaces it")
    identity = _JobIdentity(options.model, sources, options.target, options.max_output_tokens)
    return _Journal(path, identity, restart=options.restart)


_REFUSALS_OF_ALL = (AuthenticationFailed, BillingRefused)
"""Every other request would be refused for the same reason."""


class _Run:
    """One run of a job: sends requests, counts outcomes, and writes the journal."""

    def __init__(
        self, driver: Driver, options: InferenceOptions, journal: _Journal, on_answer: OnAnswer | None
    ) -> None:
        self._driver = driver
        self._options = options
        self._journal = journal
        self._on_answer = on_answer
        self._lines = AnswerLines(options.target)
        self._losses = LossCounter()
        self._refused: ProviderError | None = None
        self.report = InferenceReport(model=options.model, resumed=len(journal.places))

    def count_earlier(self, sources: list[Source]) -> None:
        """Count the answers of an earlier run."""
        for entry in self._journal.entries():
            if entry.outcome is not None:
                self._count(entry.outcome, sources[entry.source].name, entry.line)
            self.report.failed += entry.reject is not None

    async def ask_all(self, sources: list[Source]) -> None:
        pace = _Pace(self._options.requests_per_minute)
        async with _bounded_tasks(self._options.concurrency) as start:
            for source, line, name, record in read_questions(sources, _READING):
                self.report.requests += 1
                if (source, line) not in self._journal.places:
                    if self._refused is not None:
                        break
                    self._refuse_more_errors()
                    await pace.wait()
                    await start(self._answer(source, line, name, record))
        if self._refused is not None:
            raise self._refused
        self.report.kinds_of_losses = self._losses.counts()

    def _refuse_more_errors(self) -> None:
        limit, failed = self._options.max_errors, self.report.failed
        if limit is not None and failed > limit:
            hint = "run the same command with a higher limit to continue"
            raise InvalidValue(path="--max-errors", expected=f"at most {limit} failures", found=str(failed), hint=hint)

    async def _answer(self, source: int, line: int, name: str, record: bytes) -> None:
        try:
            question = question_of(source, line, record)
        except DragomanError as error:
            self.report.failed += 1
            self._note(_Entry(source, line, reject=reject_of(name, line, error)))
            return
        try:
            result = await _ask(self._driver, question.request, self._options)
            content, _ = self._lines.answer(question.id, result.completion, question.request)
        except (EncodeError, InvalidValue) as error:  # of the request itself: the same request fails again
            self.report.failed += 1
            self._note(_Entry(source, line, reject=reject_of(name, line, error)))
            return
        except DragomanError as error:
            self.report.failed += 1
            self.report.retriable += 1
            if isinstance(error, _REFUSALS_OF_ALL):
                self._refused = error
            failed = error.failure if isinstance(error, ProviderError) else None
            written = UNSET if failed is None else self._lines.failure(question.id, failed)
            self._note(_Entry(source, line, content=written, reject=reject_of(name, line, error), retried=True))
            return
        usage = result.usage
        outcome = _Outcome(
            finish=result.finish_reason,
            attempts=result.metadata.attempts,
            input=0 if usage is None else usage.input,
            output=0 if usage is None else usage.output,
            losses=(*_not_sent(question.request), *result.losses),
        )
        self._count(outcome, name, line)
        self._note(_Entry(source, line, content=content, outcome=outcome))

    def _note(self, entry: _Entry) -> None:
        self._journal.add(entry)
        if self._on_answer is not None:
            self._on_answer(self.report)

    def _count(self, outcome: _Outcome, name: str, line: int) -> None:
        report = self.report
        report.answered += 1
        report.attempts += outcome.attempts
        report.finishes[outcome.finish] = report.finishes.get(outcome.finish, 0) + 1
        report.input_tokens += outcome.input
        report.output_tokens += outcome.output
        for loss in outcome.losses:
            report.losses[loss.severity] = report.losses.get(loss.severity, 0) + 1
        if outcome.losses:
            self._losses.add(outcome.losses, name, line)


@asynccontextmanager
async def _bounded_tasks(limit: int) -> AsyncIterator[Callable[[Coroutine[Any, Any, None]], Awaitable[None]]]:
    """Yield a function that starts tasks, at most `limit` at a time; the exit waits for all of them."""
    places = asyncio.Semaphore(limit)
    async with asyncio.TaskGroup() as group:

        async def start(work: Coroutine[Any, Any, None]) -> None:
            await places.acquire()
            group.create_task(work).add_done_callback(lambda _: places.release())

        yield start


def _not_sent(request: Request) -> list[Loss]:
    """Return the losses of settings that a driver does not send."""
    return [
        Loss(f"$.{name}", SETTING_NAMES[name], "dropped", why)
        for name, (usual, why) in _NOT_SENT.items()
        if (value := getattr(request, name)) is not None and value != usual
    ]


async def _ask(driver: Driver, request: Request, options: InferenceOptions) -> QueryResult:
    settings: dict[str, Any] = {name: value for name in _TAKEN if (value := getattr(request, name)) not in (None, ())}
    if options.max_output_tokens is not None:
        settings.setdefault("max_output_tokens", options.max_output_tokens)
    tools, choice = request.tools or None, request.tool_choice
    return await driver.query(messages=request.messages, tools=tools, tool_choice=choice, **settings)


def reject_of(name: str, line: int, error: DragomanError) -> Reject:
    """Return the reject that says why a record was not answered."""
    path = getattr(error, "path", "$")
    return Reject(name, line, path if isinstance(path, str) else "$", str(error), type(error).__name__)


def _publish(journal: _Journal, output: Path, report: InferenceReport) -> None:
    rejects: list[Reject] = []
    temporary = output.with_name(f"{output.name}.part")
    with temporary.open("wb") as stream:
        for entry in journal.entries():
            if entry.content is not UNSET:
                stream.write(bytes(entry.content) + b"\n")
            if entry.reject is not None:
                rejects.append(entry.reject)
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(output)
    reject_file = output.with_name(f"{output.name}.rejects.jsonl")
    reject_file.unlink(missing_ok=True)
    if rejects:
        reject_file.write_bytes(b"".join(msgspec.json.encode(reject) + b"\n" for reject in rejects))
    output.with_name(f"{output.name}.report.json").write_bytes(msgspec.json.format(msgspec.json.encode(report)))
    page = render_answers_page(report, str(output))
    output.with_name(f"{output.name}.report.html").write_text(page, encoding="utf-8")
