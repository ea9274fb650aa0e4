"""The work behind `dragoman batch`: options to a job, progress to stderr."""

from __future__ import annotations

import argparse
import asyncio
import errno
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from dragoman.batch import ConvertOptions, Job, JobError, JobOptions, Progress, RunOptions, run_job
from dragoman.batch.inference import Estimate, InferenceOptions, InferenceReport, estimate, run_inference
from dragoman.batch.provider_files import BATCH_FILES
from dragoman.cli.ask_command import options_of
from dragoman.cli.format_names import ALL, AUTO, known_format, target_formats
from dragoman.cli.problems import BAD_INPUT, INTERRUPTED, OK, REFUSED, CommandError, system_reason
from dragoman.cli.targets import explain
from dragoman.codecs.registry import formats
from dragoman.drivers.connect import open_channel, split_model_name
from dragoman.drivers.remote import RemoteDriver
from dragoman.errors import DragomanError, NotConfigured

NOTHING_CONVERTED = 1
_MEGABYTE = 1 << 20
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_GOES_ON = "; run the same command again to continue"
_MINUTE = 60
T = TypeVar("T")
_PLAIN_SECONDS = 10.0
"""Seconds between lines of progress where nothing can be redrawn."""


def convert(arguments: argparse.Namespace) -> int:
    """Runs `batch convert`; returns the exit code."""
    try:
        job = Job(arguments.sources, arguments.output, _job_options(arguments))
        with _progress(arguments) as show:
            report = run_job(job, _run_options(arguments), show)
    except JobError as error:
        raise CommandError(str(error), REFUSED if "--max-errors" in str(error) else 2) from error
    except DragomanError as error:
        raise CommandError(str(error)) from error
    except BrokenPipeError:
        raise
    except OSError as error:  # a full disk, most often
        again = _GOES_ON if error.errno in _NO_ROOM and arguments.output != "-" else ""
        place = error.filename or ("stdout" if arguments.output == "-" else arguments.output)
        raise CommandError(f"cannot write {place}: {system_reason(error)}{again}") from error
    except KeyboardInterrupt:
        print(f"dragoman: interrupted{_GOES_ON if arguments.output != '-' else ''}", file=sys.stderr)
        return INTERRUPTED
    print(f"dragoman: {report.summary()}", file=sys.stderr)
    if arguments.output != "-" and not arguments.quiet:
        rejects = f"rejects: {job.beside('rejects.jsonl')}, " if report.tally.rejected else ""
        print(f"dragoman: {rejects}report: {job.beside('report.html')}", file=sys.stderr)
    is_all_rejected = report.tally.rejected == report.tally.records > 0
    return NOTHING_CONVERTED if is_all_rejected else OK


def _job_options(arguments: argparse.Namespace) -> JobOptions:
    if arguments.target == ALL:
        raise CommandError("batch convert writes one format: choose it with --to FORMAT")
    if arguments.shard_size < 1:
        raise CommandError("--shard-size must be at least 1 (megabytes)")
    if arguments.sample is not None and not 0 < arguments.sample <= 1:
        raise CommandError("--sample is a share of the records: above 0, at most 1")
    known = (*formats(None), *formats("dataset"), *BATCH_FILES)
    target = known_format(arguments.target, known)
    source = None if arguments.source in {None, AUTO} else known_format(arguments.source, (AUTO, *known))
    return JobOptions(
        convert=ConvertOptions(
            target=target,
            source=source,
            kind=arguments.kind,
            model=arguments.model,
            strict=arguments.strict,
            leave_out=arguments.leave_out,
            sample=arguments.sample,
            keep_rejected=arguments.keep_rejected,
        ),
        shard_bytes=arguments.shard_size * _MEGABYTE,
        table=arguments.table,
        column=arguments.column,
        output_format=arguments.output_format,
        dry_run=arguments.dry_run,
    )


def _run_options(arguments: argparse.Namespace) -> RunOptions:
    if arguments.workers is not None and arguments.workers < 1:
        raise CommandError("--workers must be at least 1")
    if arguments.max_errors is not None and arguments.max_errors < 0:
        raise CommandError("--max-errors must be at least 0")
    return RunOptions(
        engine="local" if arguments.ray is None else "ray",
        workers=arguments.workers,
        ray_address=None if arguments.ray in {None, "local"} else arguments.ray,
        max_errors=arguments.max_errors,
        restart=arguments.restart,
        overwrite=arguments.overwrite,
    )


def answer(arguments: argparse.Namespace) -> int:
    """Runs `batch run`; returns the exit code."""
    options = InferenceOptions(
        model=arguments.model,
        target=arguments.target if arguments.target in BATCH_FILES else target_formats(arguments.target)[0],
        concurrency=arguments.concurrency,
        requests_per_minute=arguments.requests_per_minute,
        max_errors=arguments.max_errors,
        max_output_tokens=arguments.max_output_tokens,
        restart=arguments.restart,
        overwrite=arguments.overwrite,
    )
    try:
        if arguments.dry_run:
            return _print_estimate(estimate(arguments.sources, options), arguments.prices)
        report = asyncio.run(_answer_all(arguments, options))
    except ExceptionGroup as group:
        error = group.exceptions[0]
        if not isinstance(error, DragomanError):
            raise
        raise CommandError(str(error), REFUSED if "--max-errors" in str(error) else BAD_INPUT) from None
    except NotConfigured as error:
        raise CommandError(explain(error, arguments.model.partition("/")[0])) from None
    except DragomanError as error:
        raise CommandError(str(error)) from None
    print(f"dragoman: {report.summary()}", file=sys.stderr)
    if report.retriable:
        print(f"dragoman: run the same command again to send {report.retriable:,} of them again", file=sys.stderr)
    return NOTHING_CONVERTED if report.failed == report.requests > 0 else OK


async def _answer_all(arguments: argparse.Namespace, options: InferenceOptions) -> InferenceReport:
    provider, model = split_model_name(arguments.model)
    driver = RemoteDriver(open_channel(provider, options_of(arguments)), model, {})
    started = time.monotonic()

    def describe_answers(report: InferenceReport) -> str:
        rate = (report.answered + report.failed - report.resumed) / (time.monotonic() - started)
        return f"{report.answered:,} answered, {report.failed:,} failed, {rate:.1f}/s"

    async with driver:
        show = None if arguments.quiet else ProgressLines(describe_answers).show
        return await run_inference(arguments.sources, arguments.output, driver, options, show)


def _print_estimate(found: Estimate, prices: str | None) -> int:
    most = f"at most {found.most_output_tokens:,} output tokens"
    if found.unlimited:
        most = f"any number of output tokens: {found.unlimited:,} have no limit (--max-output-tokens sets one)"
    rejected = f"; not requests: {found.rejected:,}" if found.rejected else ""
    print(f"{found.requests:,} requests, about {found.input_tokens:,} input tokens, {most}{rejected}")
    if prices is not None:
        try:
            paid_in, paid_out = map(float, prices.split(","))
        except ValueError:
            raise CommandError("--prices needs two numbers, per million tokens, such as 3,15") from None
        bound = "at least" if found.unlimited else "at most"
        print(f"{bound} about {found.cost(paid_in, paid_out):,.2f} at {paid_in:g} and {paid_out:g} per million tokens")
    return OK


# ── progress ──


@contextmanager
def _progress(arguments: argparse.Namespace) -> Iterator[Callable[[Progress], None] | None]:
    """Shows a bar on a terminal if rich is installed; otherwise a line every ten seconds."""
    if arguments.quiet:
        yield None
        return
    if sys.stderr.isatty():
        try:
            from rich.progress import Progress as RichProgress  # noqa: F401 - an extra
        except ImportError:
            pass
        else:
            with _bar() as show:
                yield show
            return
    yield ProgressLines(describe).show


class ProgressLines(Generic[T]):
    """Prints progress as plain lines, at intervals."""

    def __init__(self, describe: Callable[[T], str]) -> None:
        self._describe = describe
        self._shown = time.monotonic()

    def show(self, progress: T) -> None:
        now = time.monotonic()
        if now - self._shown >= _PLAIN_SECONDS:
            self._shown = now
            print(f"dragoman: {self._describe(progress)}", file=sys.stderr, flush=True)


def describe(progress: Progress) -> str:
    """The progress of a job in one line."""
    rate = (progress.records - progress.resumed_records) / progress.seconds if progress.seconds else 0
    share = f"{100 * progress.bytes_done / progress.bytes_total:.0f} %, " if progress.bytes_total else ""
    rejected = f", {progress.rejected:,} rejected" if progress.rejected else ""
    return f"{share}{progress.records:,} records, {rate:,.0f}/s{_time_left(progress)}{rejected}"


def _time_left(progress: Progress) -> str:
    done = progress.bytes_done - progress.resumed_bytes
    if not progress.bytes_total or not done:
        return ""
    left = progress.seconds * (progress.bytes_total - progress.bytes_done) / done
    return f", {left / _MINUTE:.0f} min left" if left >= _MINUTE else f", {max(left, 0):.0f} s left"


@contextmanager
def _bar() -> Iterator[Callable[[Progress], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress

    columns = (BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), TimeRemainingColumn())
    with RichProgress(*columns, console=Console(stderr=True), transient=True) as drawn:
        bar = drawn.add_task("starting", total=None)

        def show(progress: Progress) -> None:
            total = progress.bytes_total or None
            drawn.update(bar, total=total, completed=progress.bytes_done, description=describe(progress))

        yield show
