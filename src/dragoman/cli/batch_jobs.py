"""The work behind `dragoman batch submit`, `status`, `fetch`, `retry` and `cancel`."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import msgspec

from dragoman.batch.job_file import BatchJob, BatchJobError
from dragoman.batch.job_results import JobReport
from dragoman.batch.jobs import cancel_job, fetch_job, job_status, retry_job, submit_job
from dragoman.batch.provider_files import BATCH_FILES
from dragoman.cli.ask_command import options_of
from dragoman.cli.batch_command import NOTHING_CONVERTED, ProgressLines
from dragoman.cli.format_names import target_formats
from dragoman.cli.problems import OK, REFUSED, CommandError
from dragoman.cli.targets import explain
from dragoman.errors import DragomanError, NotConfigured


def run(arguments: argparse.Namespace) -> int:
    """Runs one of the commands; returns the exit code."""
    try:
        found = asyncio.run(_ACTIONS[arguments.action](arguments))
    except BatchJobError as error:
        raise CommandError(str(error), REFUSED) from None
    except NotConfigured as error:
        raise CommandError(explain(error, getattr(arguments, "model", "").partition("/")[0])) from None
    except DragomanError as error:
        raise CommandError(str(error)) from None
    if getattr(arguments, "json", False):
        print(msgspec.json.encode(found).decode())
    else:
        print(f"dragoman: {found.summary()}", file=sys.stderr)
    return NOTHING_CONVERTED if isinstance(found, JobReport) and not found.succeeded and found.requests else OK


async def _submit(arguments: argparse.Namespace) -> BatchJob:
    target = arguments.target if arguments.target in BATCH_FILES else target_formats(arguments.target)[0]
    return await submit_job(
        arguments.sources,
        arguments.output,
        model=arguments.model,
        target=target,
        storage=arguments.storage or "",
        role=arguments.role or "",
        max_output_tokens=arguments.max_output_tokens,
        resubmit=arguments.resubmit,
        **options_of(arguments),
    )


async def _status(arguments: argparse.Namespace) -> BatchJob:
    return await job_status(arguments.output, **options_of(arguments))


async def _fetch(arguments: argparse.Namespace) -> JobReport:
    return await fetch_job(
        arguments.output,
        wait=arguments.every if arguments.wait else None,
        retry_failed=arguments.retry,
        partial=arguments.partial,
        show=ProgressLines[BatchJob](lambda job: job.summary().splitlines()[0]).show,
        **options_of(arguments),
    )


async def _retry(arguments: argparse.Namespace) -> BatchJob:
    return await retry_job(arguments.output, **options_of(arguments))


async def _cancel(arguments: argparse.Namespace) -> BatchJob:
    return await cancel_job(arguments.output, **options_of(arguments))


_ACTIONS: Mapping[str, Callable[[argparse.Namespace], Coroutine[Any, Any, BatchJob | JobReport]]] = {
    "submit": _submit,
    "status": _status,
    "fetch": _fetch,
    "retry": _retry,
    "cancel": _cancel,
}
