"""`convert` runs a whole bulk conversion; `convert_lines` does the same for bytes in memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TypeAlias, Unpack

from msgspec import Struct

from dragoman.batch.batch_file_converter import converter_for
from dragoman.batch.job import Job, JobError
from dragoman.batch.local_engine import run_locally
from dragoman.batch.options import ConvertArguments, ConvertOptions, JobOptions, RunOptions
from dragoman.batch.record_converter import SNIFFED, expected_format
from dragoman.batch.rejects import Reject
from dragoman.batch.report import Report
from dragoman.batch.shard_conversion import ShardResult
from dragoman.batch.sources import split_lines
from dragoman.codecs.framing import BOM
from dragoman.errors import DragomanError


class Progress(Struct, frozen=True):
    """Progress of a job. `bytes_total` is 0 if unknown (stdin, compressed files).

    `resumed` shards, with their records and bytes, are of an earlier run: `seconds` does not count them.
    """

    records: int
    rejected: int
    bytes_done: int
    bytes_total: int
    shards: int
    resumed: int
    resumed_records: int
    resumed_bytes: int
    seconds: float


AT_HAND = RunOptions()
"""Runs on all cores of this machine."""
OnProgress: TypeAlias = Callable[[Progress], None]


def run_job(job: Job, run: RunOptions = AT_HAND, on_progress: OnProgress | None = None) -> Report:
    """Convert everything that is not converted yet, and write the output, the rejects and the report."""
    try:
        return _run_job(job, run, on_progress)
    finally:
        job.close()


def _run_job(job: Job, run: RunOptions, on_progress: OnProgress | None) -> Report:
    started = time.monotonic()
    finished = job.begin(restart=run.restart, overwrite=run.overwrite)
    earlier = list(finished.values())
    results = list(earlier)
    rejected = sum(result.tally.rejected for result in results)
    for result in _engine(job, finished, run):
        results.append(result)
        rejected += result.tally.rejected
        if on_progress is not None:
            on_progress(_progress(job, results, earlier, time.monotonic() - started))
        if run.max_errors is not None and rejected > run.max_errors:
            raise JobError(
                f"stopped after {rejected} rejected records (--max-errors {run.max_errors}); they are in {job.state}. "
                "Run the same command with a higher limit to continue"
            )
    return job.finish(results, time.monotonic() - started, _records(earlier))


def _engine(job: Job, finished: Mapping[str, ShardResult], run: RunOptions) -> Iterator[ShardResult]:
    if run.engine == "local":
        return run_locally(job, finished, run.workers)
    from dragoman.batch.ray_engine import run_on_ray  # noqa: PLC0415 - an extra

    return run_on_ray(job, finished, run.workers, run.ray_address)


def _records(results: Sequence[ShardResult]) -> int:
    return sum(result.tally.records for result in results)


def _bytes(results: Sequence[ShardResult], *, of_total: bool) -> int:
    """Bytes read. Of a known total, whole shards: records left out by `--sample` and line ends are part of it."""
    if of_total:
        return sum(result.shard.stop - result.shard.start for result in results)
    return sum(result.tally.input_sizes.total for result in results)


def _progress(job: Job, results: Sequence[ShardResult], earlier: Sequence[ShardResult], seconds: float) -> Progress:
    sizes = [source.size if source.splits and source.layout == "lines" else 0 for source in job.sources]
    total = sum(sizes) if all(sizes) else 0
    return Progress(
        records=_records(results),
        rejected=sum(result.tally.rejected for result in results),
        bytes_done=_bytes(results, of_total=total > 0),
        bytes_total=total,
        shards=len(results),
        resumed=len(earlier),
        resumed_records=_records(earlier),
        resumed_bytes=_bytes(earlier, of_total=total > 0),
        seconds=seconds,
    )


def convert(
    sources: Sequence[str] | str,
    output: str,
    run: RunOptions = AT_HAND,
    **options: Unpack[ConvertArguments],
) -> Report:
    """Convert files of records: JSON Lines, JSON arrays, Parquet, Arrow, SQLite, plain or compressed, here or remote.

    `output` is a file or a folder of shards. If the job is interrupted, the same call resumes it.
    """
    names = [sources] if isinstance(sources, str) else list(sources)
    return run_job(Job(names, output, JobOptions(convert=ConvertOptions(**options))), run)


def convert_lines(
    lines: bytes, *, on_reject: Callable[[Reject], None] | None = None, **options: Unpack[ConvertArguments]
) -> bytes:
    """Convert JSON Lines in memory: one line per record in, one line per converted record out.

    A record that cannot be converted raises `RecordRejected`, or is passed to `on_reject` and left out.
    """
    checked = ConvertOptions(**options)
    checked.check()
    records = split_lines(lines.removeprefix(BOM))
    expected = expected_format(checked, islice((record for record in records if record.strip()), SNIFFED))
    converter = converter_for(checked, "lines", expected)
    return b"\n".join([*converter.convert_many(records, 1, on_reject or _raise_rejected), b""])


def _raise_rejected(reject: Reject) -> None:
    raise RecordRejected(reject)


class RecordRejected(DragomanError, ValueError):
    """A record that cannot be converted; `reject` says which and why."""

    def __init__(self, reject: Reject) -> None:
        self.reject = reject
        super().__init__(f"line {reject.line}: {reject.reason}")
