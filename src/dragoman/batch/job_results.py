"""Results of batch jobs: matched to their requests, in the order of the requests, in the requested format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import UNSET, Struct, structs

from dragoman.batch.answer_lines import AnswerLines
from dragoman.batch.job_file import BatchJob, JobFolder, JobPart, StoredRequest
from dragoman.batch.job_requests import stored_request
from dragoman.batch.loss_counter import LossCounter, count_by_severity
from dragoman.batch.provider_files import BatchFile, BatchItem, read_id
from dragoman.batch.record_converter import read_json
from dragoman.batch.rejects import Reject, encode_rejects
from dragoman.batch.tally import LossCount
from dragoman.codecs.registry import Codec
from dragoman.drivers.base import failure_in
from dragoman.drivers.remote import with_own_names
from dragoman.drivers.retries import may_retry
from dragoman.errors import DecodeError, DragomanError, provider_error
from dragoman.ir import Completion, Failure, Request

_OUTCOMES = ("succeeded", "errored", "expired", "canceled", "missing")


class JobReport(Struct, kw_only=True):
    """Outcomes of the requests of a job."""

    provider: str
    model: str
    state: str
    requests: int = 0
    succeeded: int = 0
    errored: int = 0
    expired: int = 0
    canceled: int = 0
    missing: int = 0
    """Requests for which the provider returned nothing at all."""
    retryable: int = 0
    """Requests that may succeed in a new job: never run, or failed temporarily."""
    rejected: int = 0
    """Input lines that were not put into a job."""
    input_tokens: int = 0
    output_tokens: int = 0
    losses: dict[str, int] = {}
    kinds_of_losses: list[LossCount] = []
    """Those of the requests, then those of the answers."""

    def summary(self) -> str:
        """Return one line for people."""
        parts = [f"{self.succeeded:,} of {self.requests:,} requests answered by {self.provider}/{self.model}"]
        parts += [f"{getattr(self, name):,} {name}" for name in _OUTCOMES[1:] if getattr(self, name)]
        if self.retryable:
            parts.append(f"{self.retryable:,} of them may be retried")
        if self.rejected:
            parts.append(f"not sent: {self.rejected:,}")
        parts += count_by_severity(self.losses)
        return f"{', '.join(parts)}; {self.input_tokens:,} input and {self.output_tokens:,} output tokens"


class ResultReader:
    """Reads what a provider returned for the parts of a job."""

    def __init__(self, codec: Codec, folder: JobFolder, job: BatchJob, file: BatchFile) -> None:
        self._codec = codec
        self.folder = folder
        self.job = job
        self._file = file

    def decode(self, stored: StoredRequest, item: BatchItem) -> tuple[Request, Completion | Failure]:
        """Return the provider's answer. A body that reports a failure is a failure, whatever its status."""
        request, codec = stored_request(stored, self.job), self._codec
        body = bytes(item.body) if item.body is not None else b""
        if item.outcome == "errored":
            return request, _failure(codec.decode_error(body, item.status, {}), item)
        try:
            completion = codec.decode_response(body)
        except DecodeError as error:
            return request, Failure("server", f"the answer does not follow its format: {error}")
        failure = failure_in(completion)
        return request, with_own_names(completion, request, codec) if failure is None else failure

    def index(self, number: int) -> Iterator[tuple[str, int, int, BatchItem]]:
        """Yield (id, position, length, result) of each line that a part returned."""
        path = self.folder.results(number)
        if not path.exists():
            return
        position = 0
        with path.open("rb") as stream:
            for line in stream:
                if line.strip():
                    item = _read_result(self._file, line)
                    if item is not None and item.id is not None:
                        yield item.id, position, len(line), item
                position += len(line)

    def result(self, number: int, position: int, length: int) -> BatchItem | None:
        with self.folder.results(number).open("rb") as stream:
            stream.seek(position)
            return _read_result(self._file, stream.read(length))


def publish(reader: ResultReader) -> JobReport:
    """Write the answers in the order of the requests, the rejects, and the report."""
    job, folder, outcomes, lines = reader.job, reader.folder, Outcomes(reader), AnswerLines(reader.job.target)
    report = JobReport(
        provider=job.provider,
        model=job.model,
        state=job.state,
        requests=job.requests,
        rejected=job.rejected,
        losses=dict(job.losses),
    )
    rejects: list[Reject] = []
    output = folder.output
    temporary = output.with_name(f"{output.name}.part")
    with temporary.open("wb") as stream:
        for position, stored in enumerate(folder.requests()):
            written = _answer_line(outcomes, position, stored, lines, report, rejects)
            if written is not UNSET:
                stream.write(bytes(written) + b"\n")
    temporary.replace(output)
    report.kinds_of_losses = [*job.kinds_of_losses, *outcomes.losses.counts()]
    _write_rejects(folder, rejects)
    encoded = msgspec.json.format(msgspec.json.encode(report))
    output.with_name(f"{output.name}.report.json").write_bytes(encoded)
    return report


def _failure(failure: Failure, item: BatchItem) -> Failure:
    return (
        failure if failure.status is not None or item.status is None else structs.replace(failure, status=item.status)
    )


def _read_result(file: BatchFile, line: bytes) -> BatchItem | None:
    """Return the result in a line; None if the line is not a result of this provider."""
    try:
        data = read_json(line)
        return file.read(file, data) if isinstance(data, Mapping) else None
    except (DragomanError, KeyError, TypeError):
        return None


class Outcomes:
    """The outcome of each request: a success of any part, or else that of the last part."""

    def __init__(self, reader: ResultReader) -> None:
        self.losses = LossCounter()
        """Those of the answers."""
        self._reader = reader
        self._found: dict[str, tuple[int, int, int, str]] = {}
        self._last: dict[int, int] = {}
        for number, part in enumerate(reader.job.parts):
            for request in part.requests:
                self._last[request] = number
            if not part.fetched:
                continue
            for item_id, position, length, item in reader.index(number):
                before = self._found.get(item_id)
                if before is None or (before[3] != "succeeded" and before[0] < number):
                    self._found[item_id] = (number, position, length, item.outcome)

    def part(self, position: int) -> JobPart | None:
        number = self._last.get(position)
        return None if number is None else self._reader.job.parts[number]

    def of(self, position: int, stored: StoredRequest) -> tuple[str, Request | None, Completion | Failure | None]:
        """Return the outcome, with the request and the answer or failure if there is one."""
        found = self._found.get(read_id(stored.sent) or stored.sent)
        if found is None:
            part = self.part(position)
            pending = part is None or not part.ended
            return ("pending" if pending else "missing"), None, None
        number, at, length, outcome = found
        if outcome in {"expired", "canceled"}:
            return outcome, None, None
        item = self._reader.result(number, at, length)
        assert item is not None  # noqa: S101 - it was read before
        request, answered = self._reader.decode(stored, item)
        return ("errored" if isinstance(answered, Failure) else "succeeded"), request, answered

    def may_retry(self, position: int, stored: StoredRequest) -> bool:
        outcome, _, answered = self.of(position, stored)
        if outcome == "missing":
            # A job that was rejected as a whole would be rejected again.
            part = self.part(position)
            return part is not None and (part.state != "failed" or part.is_temporary)
        if isinstance(answered, Failure):
            return may_retry(provider_error(answered, provider=self._reader.job.provider))
        return outcome in {"expired", "canceled"}


def _answer_line(
    outcomes: Outcomes,
    position: int,
    stored: StoredRequest,
    lines: AnswerLines,
    report: JobReport,
    rejects: list[Reject],
) -> Any:
    """Return the line of one request; UNSET if the format has no line for its outcome."""
    outcome, request, answered = outcomes.of(position, stored)
    if outcome == "pending":
        return UNSET
    setattr(report, outcome, getattr(report, outcome) + 1)
    report.retryable += outcomes.may_retry(position, stored)
    if isinstance(answered, Completion) and request is not None:
        line, encoded = lines.answer(stored.id, answered, request)
        for loss in encoded.losses:
            report.losses[loss.severity] = report.losses.get(loss.severity, 0) + 1
        outcomes.losses.add(encoded.losses, stored.name, stored.line)
        if answered.usage is not None:
            report.input_tokens += answered.usage.input
            report.output_tokens += answered.usage.output
        return line
    part = outcomes.part(position)
    problem = answered if isinstance(answered, Failure) else _never(outcome, part)
    rejects.append(Reject(stored.name, stored.line, "$", problem.message, outcome))
    if outcome in {"expired", "canceled"}:
        return lines.never_ran(stored.id, outcome)  # type: ignore[arg-type]
    return lines.failure(stored.id, problem)


def _never(outcome: str, part: JobPart | None) -> Failure:
    if outcome == "missing":
        failed = part is not None and part.state == "failed"
        why = "the whole job failed" if failed else "the provider returned no result for it"
        why = part.problems[0] if part is not None and part.problems else why
        return Failure("server", f"This request has no result: {why}")
    return Failure("cancelled", f"This request was not run: the batch {outcome}.")


def _write_rejects(folder: JobFolder, rejects: list[Reject]) -> None:
    """Write the lines that were never sent, then the requests without an answer."""
    unread = folder.folder / "rejects.jsonl"
    content = (unread.read_bytes() if unread.exists() else b"") + encode_rejects(rejects)
    path = folder.output.with_name(f"{folder.output.name}.rejects.jsonl")
    path.unlink(missing_ok=True)
    if content:
        path.write_bytes(content)
