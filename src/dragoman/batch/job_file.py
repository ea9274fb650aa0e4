"""A batch job as stored on this machine: a private folder beside the output, without keys.

`answers.jsonl` has its job in `answers.jsonl.job/`: `job.json`, the requests as they were read, and what the provider
returned. So every command can be interrupted and repeated, by another process and after a restart.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import msgspec
from msgspec import Raw, Struct

from dragoman.batch.job_states import ENDED, JobState
from dragoman.batch.loss_counter import count_by_severity
from dragoman.batch.provider_jobs import JobCounts
from dragoman.batch.sources import Source
from dragoman.batch.tally import LossCount
from dragoman.errors import DragomanError
from dragoman.file_locks import take_lock
from dragoman.private_files import create_private_file, create_private_folder

_SUFFIX = ".job"
_PRIVATE = 0o600


class BatchJobError(DragomanError):
    """A batch job that cannot be done as requested. The message says why and what to do."""


class StoredRequest(Struct, frozen=True):
    """A request as it was read. `sent` is its id at the provider, `id` its id in the source."""

    source: int
    line: int
    name: str
    id: str
    sent: str
    record: Raw


class JobPart(Struct, kw_only=True):
    """One job at the provider. There are several if a file is too large for one, and for retries."""

    key: str
    requests: list[int]
    """Positions in the file of requests."""
    id: str = ""
    """The provider's id; empty until the provider has answered the creation."""
    headers: dict[str, str] = {}
    state: JobState = "submitting"
    provider_state: str = ""
    """The provider's own name of the state, also if it is not known here."""
    counts: JobCounts = JobCounts()
    problems: tuple[str, ...] = ()
    is_temporary: bool = False
    """Whether the provider rejected the whole job for something that passes."""
    fetched: bool = False

    @property
    def ended(self) -> bool:
        return self.state in ENDED


class BatchJob(Struct, kw_only=True):
    """A file of requests that a provider answers as batch jobs."""

    version: int = 1
    provider: str
    model: str
    target: str
    """The format of the answers."""
    base_url: str | None = None
    place: dict[str, str] = {}
    storage: str = ""
    role: str = ""
    max_output_tokens: int | None = None
    """For requests that do not set it themselves."""
    sources: list[Source] = []
    """Where the requests were read; empty for jobs of earlier versions."""
    created: float = msgspec.field(default_factory=time.time)
    requests: int = 0
    rejected: int = 0
    losses: dict[str, int] = {}
    kinds_of_losses: list[LossCount] = []
    parts: list[JobPart] = []

    @property
    def state(self) -> JobState:
        """The state of all parts: that of the part furthest from its end; if all have ended, the worst."""
        states = {part.state for part in self.parts}
        order: tuple[JobState, ...] = (
            "submitting", "unknown", "canceling", "queued", "running", "failed", "expired", "canceled", "completed",
        )  # fmt: skip
        return next((state for state in order if state in states), "submitting")

    @property
    def ended(self) -> bool:
        return bool(self.parts) and all(part.ended for part in self.parts)

    @property
    def counts(self) -> JobCounts:
        return JobCounts(
            total=sum(len(part.requests) for part in self.parts),
            succeeded=sum(part.counts.succeeded for part in self.parts),
            failed=sum(part.counts.failed for part in self.parts),
        )

    def summary(self) -> str:
        """Return lines for people."""
        counts = self.counts
        head = f"{self.state}: {self.requests:,} requests to {self.provider}/{self.model}"
        head += f" (rejected: {self.rejected:,})" if self.rejected else ""
        outcomes = f"{counts.succeeded:,} succeeded, {counts.failed:,} failed"
        lost = ", ".join(count_by_severity(self.losses))
        lines = [f"{head}, {outcomes}" + (f"; in the requests {lost}" if lost else "")]
        for part in self.parts:
            word = part.provider_state or part.state
            known = "" if part.state != "unknown" else " (an unknown state)"
            lines.append(f"  {part.id or '(not confirmed)'}  {word}{known}  {len(part.requests):,} requests")
            lines += [f"    {problem}" for problem in part.problems[:5]]
        return "\n".join(lines)


class JobFolder:
    """The files of one job."""

    def __init__(self, output: str) -> None:
        name = output.rstrip("/")
        name = name.removesuffix(_SUFFIX)
        self.output = Path(name)
        self.folder = Path(f"{name}{_SUFFIX}")
        self._job = self.folder / "job.json"
        self._requests = self.folder / "requests.jsonl"

    @property
    def exists(self) -> bool:
        return self._job.exists()

    def load(self) -> BatchJob:
        """Return the stored job. Raises `BatchJobError`."""
        try:
            return msgspec.json.decode(self._job.read_bytes(), type=BatchJob)
        except FileNotFoundError:
            raise BatchJobError(f"no batch job at {self.folder}: make one with `dragoman batch submit`") from None
        except (OSError, msgspec.DecodeError) as error:
            raise BatchJobError(f"{self._job} cannot be read: {error}") from error

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder while jobs are created, so that two processes do not create the same one."""
        create_private_folder(self.folder)
        create_private_file(self.folder / "lock")
        with (self.folder / "lock").open("ab") as file:
            if not take_lock(file):
                raise BatchJobError(f"another process is creating the job of {self.output}; wait for it")
            yield

    def save(self, job: BatchJob) -> None:
        """Save the job atomically, readable by the owner only."""
        write_private(self._job, msgspec.json.format(msgspec.json.encode(job)))

    def create(self, requests: Iterator[StoredRequest]) -> None:
        """Write the requests; the job itself is saved after them."""
        create_private_folder(self.folder)
        with open_private(self._requests) as stream:
            for request in requests:
                stream.write(msgspec.json.encode(request) + b"\n")
            stream.flush()
            os.fsync(stream.fileno())

    def requests(self) -> Iterator[StoredRequest]:
        """Yield all requests in the order in which they were read."""
        decode = msgspec.json.Decoder(StoredRequest).decode
        with self._requests.open("rb") as stream:
            for line in stream:
                yield decode(line)

    def results(self, part: int) -> Path:
        return self.folder / f"results-{part}.jsonl"


def open_private(path: Path) -> IO[bytes]:
    """Open a new file readable by its owner only, replacing an existing one."""
    path.unlink(missing_ok=True)
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE), "wb")


def write_private(path: Path, content: bytes) -> None:
    """Replace a file atomically; only its owner may read it."""
    temporary = path.with_name(f"{path.name}.part")
    with open_private(temporary) as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(path)
