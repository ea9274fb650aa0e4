"""Runs one batch job: submit, poll, fetch, retry and cancel, with the HTTP and the keys of the drivers."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from msgspec import Raw

from dragoman.batch.job_file import BatchJob, BatchJobError, JobFolder, JobPart, StoredRequest, write_private
from dragoman.batch.job_requests import job_api, stored_request
from dragoman.batch.job_results import JobReport, Outcomes, ResultReader, publish
from dragoman.batch.job_steps import run_steps
from dragoman.batch.provider_files import BATCH_FILES, BatchItem, write_line
from dragoman.batch.provider_jobs import JobContext, Steps
from dragoman.codecs.encoded import Encoded
from dragoman.drivers.remote import Channel
from dragoman.errors import DragomanError, NoAnswer, NotFound, PermissionRefused, TimedOut
from dragoman.ir.values import encode_json, parse_json
from dragoman.translate import encode_request_for

T = TypeVar("T")
_LONGEST_PAUSE = 300.0
_SECOND = 1.0


class JobRunner:
    """The operations on one job, over one channel."""

    def __init__(self, channel: Channel, folder: JobFolder, job: BatchJob) -> None:
        self._channel = channel
        self._folder = folder
        self.job = job
        self._api = job_api(job.provider)
        self._file = BATCH_FILES[self._api.file]
        self._reader = ResultReader(channel.codec, folder, job, self._file)

    def _context(self, part: JobPart) -> JobContext:
        job = self.job
        return JobContext(
            model=job.model,
            key=part.key,
            place=self._channel.place,
            storage=job.storage,
            role=job.role,
            headers=part.headers,
        )

    async def _run(self, steps: Steps[T], part: JobPart) -> T:
        base_url = ""
        if self._api.base_url and self.job.base_url is None:
            base_url = self._api.base_url.format(**self._channel.place)
        return await run_steps(self._channel, steps, self._context(part), base_url)

    # ── submitting ──

    async def submit(self, *, resubmit: bool = False) -> None:
        """Create the parts that do not exist yet; a creation without a reply is first searched for at the provider."""
        for part in [part for part in self.job.parts if not part.id]:
            await self._settle(part, resubmit=resubmit)
        covered = {position for part in self.job.parts for position in part.requests}
        positions = [position for position in range(self.job.requests) if position not in covered]
        await self._create_parts(positions)

    async def _settle(self, part: JobPart, *, resubmit: bool) -> None:
        if self._api.find is not None:
            found: str | None = await self._run(self._api.find(self._context(part)), part)
            part.id = found or ""
        elif not resubmit:
            raise BatchJobError(
                f"{self.job.provider} did not answer when a job of {len(part.requests):,} requests was created, and "
                "cannot list its jobs. See its console; if there is no such job, use --resubmit"
            )
        if not part.id:
            self.job.parts.remove(part)
        self._folder.save(self.job)

    async def _create_parts(self, positions: Sequence[int]) -> None:
        for headers, chosen, content in self._groups(set(positions)):
            key = f"dragoman-{secrets.token_hex(8)}"
            part = JobPart(key=key, requests=chosen, headers=headers)
            self.job.parts.append(part)
            self._folder.save(self.job)  # before the request is sent, so that a lost reply can be detected
            try:
                part.id = await self._run(self._api.create(self._context(part), content), part)
            except (NoAnswer, TimedOut):
                raise
            except DragomanError:
                self.job.parts.remove(part)
                self._folder.save(self.job)
                raise
            part.state = "queued"
            self._folder.save(self.job)

    def _groups(self, wanted: set[int]) -> Iterator[tuple[dict[str, str], list[int], bytes]]:
        """Yield groups of requests that fit into one job, by number, size and equal headers.

        Headers must be equal because `anthropic-beta` applies to a whole batch.
        """
        waiting: dict[str, tuple[dict[str, str], list[int], list[bytes], int]] = {}
        for position, stored in enumerate(self._folder.requests()):
            if position not in wanted:
                continue
            encoded = encode_request_for(stored_request(stored, self.job), self._channel.codec)
            line = self._line(stored, encoded)
            headers = {name.lower(): value for name, value in encoded.headers.items()}
            key = repr(sorted(headers.items()))
            _, chosen, lines, size = waiting.setdefault(key, (headers, [], [], 0))
            if chosen and (len(chosen) >= self._api.most_requests or size + len(line) > self._api.most_bytes):
                yield headers, chosen, b"\n".join(lines) + b"\n"
                chosen, lines, size = [], [], 0
            chosen.append(position)
            lines.append(line)
            waiting[key] = (headers, chosen, lines, size + len(line) + 1)
        for headers, chosen, lines, _ in waiting.values():
            yield headers, chosen, b"\n".join(lines) + b"\n"

    def _line(self, stored: StoredRequest, encoded: Encoded) -> bytes:
        body = Raw(encoded.content)
        if self._file.one_model and b'"model"' in encoded.content:
            fields = parse_json(body)
            fields.pop("model", None)
            body = Raw(encode_json(fields))
        item = BatchItem(id=stored.sent, outcome="request", body=body, format=self._file.format)
        return write_line(self._file, item)

    # ── looking and cancelling ──

    async def look(self) -> None:
        for part in self.job.parts:
            if part.id and not part.ended:
                seen = await self._run(self._api.look(self._context(part), part.id), part)
                part.state, part.provider_state = seen.state, seen.provider_state
                part.counts, part.problems, part.is_temporary = seen.counts, seen.problems, seen.is_temporary
        self._folder.save(self.job)

    async def cancel(self) -> None:
        await self.look()
        for part in self.job.parts:
            if part.id and not part.ended and part.state != "canceling":
                await self._run(self._api.cancel(self._context(part), part.id), part)
        await self.look()

    async def wait(self, every: float, show: Callable[[BatchJob], None] | None = None) -> None:
        """Poll until all parts have ended, with growing intervals."""
        pause = min(every, _SECOND)
        while True:
            await self.look()
            if show is not None:
                show(self.job)
            if self.job.ended:
                return
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, max(every, _SECOND), _LONGEST_PAUSE)

    # ── fetching ──

    async def fetch(self) -> JobReport:
        """Download the results of all ended parts, and write the answers in the order of the requests."""
        await self.look()
        for number, part in enumerate(self.job.parts):
            if part.ended and not part.fetched:
                context = self._context(part)
                seen = await self._run(self._api.look(context, part.id), part)
                try:
                    content = await self._run(self._api.results(context, part.id, seen), part)
                except (NotFound, PermissionRefused) as error:  # Google's answer for a file that does not exist
                    raise self._results_are_gone(part, str(error)) from error
                write_private(self._folder.results(number), content)
                is_complete = seen.state == "completed" and seen.counts.succeeded > 0
                if is_complete and not any(item.body for _, _, _, item in self._reader.index(number)):
                    raise self._results_are_gone(part, "it returned none")
                part.fetched = True
                self._folder.save(self.job)
        return publish(self._reader)

    def _results_are_gone(self, part: JobPart, found: str) -> BatchJobError:
        """Return the error for answers that were paid for and are gone. They are not missing: nothing is retried."""
        return BatchJobError(
            f"the results of job {part.id} are not there any more ({found}): {self.job.provider} keeps them for a "
            "limited time. Nothing was written or retried; submit the requests to another output to pay for them again"
        )

    async def retry(self) -> int:
        """Put the requests that may succeed now into a new job. Returns how many they were."""
        if not self.job.ended:
            raise BatchJobError("the job has not ended: only then it is known what to retry")
        await self.fetch()
        outcomes = Outcomes(self._reader)
        again = [
            position for position, stored in enumerate(self._folder.requests()) if outcomes.may_retry(position, stored)
        ]
        if again:
            await self._create_parts(again)
        return len(again)
