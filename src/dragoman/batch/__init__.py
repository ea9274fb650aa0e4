r"""Bulk conversion: files of millions of records, on one core, on all cores, on a Ray cluster.

>>> from dragoman.batch import convert_lines
>>> convert_lines(b'{"model": "gpt-5.4", "messages": [{"role": "user", "content": "hi"}]}', target="ollama-chat")
b'{"model":"gpt-5.4","messages":[{"role":"user","content":"hi"}],"stream":false}\n'

Names below are loaded when first used: a process that converts shards does not need the drivers of batch jobs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.batch.conversion import Progress, RecordRejected, convert, convert_lines, run_job
    from dragoman.batch.job import Job, JobError
    from dragoman.batch.job_file import BatchJob, BatchJobError, JobPart
    from dragoman.batch.job_results import JobReport
    from dragoman.batch.job_states import JobState
    from dragoman.batch.jobs import (
        cancel_job,
        cancel_job_sync,
        fetch_job,
        fetch_job_sync,
        job_status,
        job_status_sync,
        retry_job,
        retry_job_sync,
        submit_job,
        submit_job_sync,
    )
    from dragoman.batch.options import ConvertOptions, JobOptions, RunOptions
    from dragoman.batch.rejects import Reject
    from dragoman.batch.report import Report
    from dragoman.batch.sources import SourceError
    from dragoman.batch.tables import map_batches
    from dragoman.batch.tally import Example, LossCount, RejectCount, Tally

_HOMES = {
    "dragoman.batch.conversion": (
        "Progress",
        "RecordRejected",
        "convert",
        "convert_lines",
        "run_job",
    ),
    "dragoman.batch.job": (
        "Job",
        "JobError",
    ),
    "dragoman.batch.job_file": (
        "BatchJob",
        "BatchJobError",
        "JobPart",
    ),
    "dragoman.batch.job_results": ("JobReport",),
    "dragoman.batch.job_states": ("JobState",),
    "dragoman.batch.jobs": (
        "cancel_job",
        "cancel_job_sync",
        "fetch_job",
        "fetch_job_sync",
        "job_status",
        "job_status_sync",
        "retry_job",
        "retry_job_sync",
        "submit_job",
        "submit_job_sync",
    ),
    "dragoman.batch.options": (
        "ConvertOptions",
        "JobOptions",
        "RunOptions",
    ),
    "dragoman.batch.rejects": ("Reject",),
    "dragoman.batch.report": ("Report",),
    "dragoman.batch.sources": ("SourceError",),
    "dragoman.batch.tables": ("map_batches",),
    "dragoman.batch.tally": (
        "Example",
        "LossCount",
        "RejectCount",
        "Tally",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "BatchJob",
    "BatchJobError",
    "ConvertOptions",
    "Example",
    "Job",
    "JobError",
    "JobOptions",
    "JobPart",
    "JobReport",
    "JobState",
    "LossCount",
    "Progress",
    "RecordRejected",
    "Reject",
    "RejectCount",
    "Report",
    "RunOptions",
    "SourceError",
    "Tally",
    "cancel_job",
    "cancel_job_sync",
    "convert",
    "convert_lines",
    "fetch_job",
    "fetch_job_sync",
    "job_status",
    "job_status_sync",
    "map_batches",
    "retry_job",
    "retry_job_sync",
    "run_job",
    "submit_job",
    "submit_job_sync",
]


def __getattr__(name: str) -> Any:
    """Import the module that defines a public name when the name is first used."""
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
