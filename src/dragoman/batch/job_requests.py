"""Requests of a batch job: read once from their sources, and prepared for sending."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import Raw, structs

from dragoman.batch.inference import question_of, read_questions, reading_options, reject_of
from dragoman.batch.job_file import BatchJob, BatchJobError, StoredRequest
from dragoman.batch.loss_counter import LossCounter
from dragoman.batch.provider_files import BATCH_FILES, written_id
from dragoman.batch.provider_jobs import JOB_APIS, JobApi
from dragoman.batch.rejects import Reject
from dragoman.batch.sources import Source
from dragoman.drivers.remote import Channel
from dragoman.errors import DragomanError, InvalidValue
from dragoman.ir import Request
from dragoman.loss import Loss
from dragoman.translate import encode_request_for


def job_api(provider: str) -> JobApi:
    """Return the batch API of a provider. Raises `BatchJobError` for a provider without batch jobs."""
    found = JOB_APIS.get(provider)
    if found is None:
        words = f"{provider} has no batch jobs that dragoman knows ({', '.join(JOB_APIS)} have)"
        raise BatchJobError(f"{words}; `dragoman batch run` answers the same file through its ordinary API")
    return found


def stored_request(stored: StoredRequest, job: BatchJob) -> Request:
    """Return a stored request as it is sent."""
    return request_for_job(question_of(stored.source, stored.line, bytes(stored.record)).request, job)


def request_for_job(request: Request, job: BatchJob) -> Request:
    """Return the request as it is sent: the job sets the model, and a batch has no streams."""
    limit = request.max_output_tokens or job.max_output_tokens
    return structs.replace(request, model=job.model, stream=None, max_output_tokens=limit)


class Preparation:
    """Reads the sources once: requests that can be sent, and rejects."""

    def __init__(self, channel: Channel, job: BatchJob) -> None:
        self._channel = channel
        self._job = job
        self._pattern = BATCH_FILES[job_api(job.provider).file].id_pattern
        self._ids: set[str] = set()
        self._losses = LossCounter()
        self.rejects: list[Reject] = []

    def read(self, sources: list[Source]) -> Iterator[StoredRequest]:
        """Yield the requests that can be sent; the others go to `rejects`."""
        for source, line, name, record in read_questions(sources, reading_options()):
            try:
                stored = self._build_request(source, line, name, record)
            except DragomanError as error:
                self.rejects.append(reject_of(name, line, error))
                continue
            self._job.requests += 1
            yield stored
        self._job.kinds_of_losses = self._losses.counts()

    def _build_request(self, source: int, line: int, name: str, record: bytes) -> StoredRequest:
        question = question_of(source, line, record)
        request = request_for_job(question.request, self._job)
        sent = written_id(question.id, self._pattern)
        if sent in self._ids:
            raise InvalidValue(path="$", expected="an id that no other line has", found=question.id)
        encoded = encode_request_for(request, self._channel.codec)
        losses = encoded.losses
        if question.request.stream:
            losses += (Loss("$.stream", "stream flag", "dropped", "a batch has no streams"),)
        for loss in losses:
            self._job.losses[loss.severity] = self._job.losses.get(loss.severity, 0) + 1
        self._losses.add(losses, name, line)
        self._ids.add(sent)
        return StoredRequest(source, line, name, question.id, sent, Raw(msgspec.json.format(record, indent=-1)))
