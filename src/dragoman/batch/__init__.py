r"""Bulk conversion: files of millions of records, on one core, on all cores, on a Ray cluster.

>>> from dragoman.batch import convert_lines
>>> convert_lines(b'{"model": "gpt-5.4", "messages": [{"role": "user", "content": "hi"}]}', target="ollama-chat")
b'{"model":"gpt-5.4","messages":[{"role":"user","content":"hi"}],"stream":false}\n'
"""

from __future__ import annotations

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
from dragoman.batch.record_converter import Reject
from dragoman.batch.report import Report
from dragoman.batch.sources import SourceError
from dragoman.batch.tables import map_batches
from dragoman.batch.tally import Example, LossCount, RejectCount, Tally

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
