r"""Bulk conversion: files of millions of records, on one core, on all cores, on a Ray cluster.

>>> from dragoman.batch import convert_lines
>>> convert_lines(b'{"model": "gpt-5.4", "messages": [{"role": "user", "content": "hi"}]}', target="ollama-chat")
b'{"model":"gpt-5.4","messages":[{"role":"user","content":"hi"}],"stream":false}\n'
"""

from __future__ import annotations

from dragoman.batch.conversion import Progress, RecordRejected, convert, convert_lines, run_job
from dragoman.batch.job import Job, JobError
from dragoman.batch.options import ConvertOptions, JobOptions, RunOptions
from dragoman.batch.record_converter import Reject
from dragoman.batch.report import Report
from dragoman.batch.sources import SourceError
from dragoman.batch.tables import map_batches
from dragoman.batch.tally import Example, LossCount, RejectCount, Tally

__all__ = [
    "ConvertOptions",
    "Example",
    "Job",
    "JobError",
    "JobOptions",
    "LossCount",
    "Progress",
    "RecordRejected",
    "Reject",
    "RejectCount",
    "Report",
    "RunOptions",
    "SourceError",
    "Tally",
    "convert",
    "convert_lines",
    "map_batches",
    "run_job",
]
