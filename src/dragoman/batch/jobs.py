"""Batch jobs of providers as a Python API: `submit_job`, `job_status`, `fetch_job`, `retry_job`, `cancel_job`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Unpack

from dragoman.batch.job_file import BatchJob, BatchJobError, JobFolder, write_private
from dragoman.batch.job_requests import Preparation, job_api
from dragoman.batch.job_results import JobReport
from dragoman.batch.job_runner import JobRunner
from dragoman.batch.provider_jobs import JobApi
from dragoman.batch.rejects import encode_rejects
from dragoman.batch.sources import find_sources
from dragoman.drivers.connect import Options, open_channel, split_model_name
from dragoman.drivers.providers import find_provider
from dragoman.drivers.remote import Channel
from dragoman.drivers.secret import hide_url
from dragoman.drivers.sync import in_background


class JobArguments(Options, total=False):
    """Arguments of `submit_job`, besides how to reach the provider."""

    target: str
    storage: str
    role: str
    max_output_tokens: int | None
    resubmit: bool


def _split(given: Mapping[str, Any], names: tuple[str, ...]) -> tuple[Options, dict[str, Any]]:
    """Return the options for reaching the provider, and the arguments of these names."""
    options: Any = {name: value for name, value in given.items() if name not in names}
    return options, {name: given.get(name) for name in names}


async def submit_job(sources: list[str], output: str, *, model: str, **given: Unpack[JobArguments]) -> BatchJob:
    """Create batch jobs for all requests in the sources. Answers will be in `output`; the job is stored beside it.

    Called again after an interruption, it resumes: nothing is submitted twice.
    """
    options, own = _split(given, ("target", "storage", "role", "max_output_tokens", "resubmit"))
    provider, name = split_model_name(model)
    api = job_api(provider.name)
    folder, found = JobFolder(output), find_sources(sources)
    channel = open_channel(provider, options)
    job = BatchJob(
        provider=provider.name, model=name, target=own["target"] or "openai-batch",
        base_url=None if options.get("base_url") is None else hide_url(channel.base_url),
        place={key: options[key] for key in _PLACES if options.get(key)},  # type: ignore[literal-required]
        storage=own["storage"] or "", role=own["role"] or "", max_output_tokens=own["max_output_tokens"],
        sources=found,
    )  # fmt: skip
    try:
        with folder.locked():
            if folder.exists:
                job = _stored(folder, job)
            elif folder.output.exists():
                raise BatchJobError(f"{folder.output} exists, and it is not of a batch job: choose another output")
            else:
                _prepare(folder, job, channel, api)
            runner = JobRunner(channel, folder, job)
            await runner.submit(resubmit=bool(own["resubmit"]))
        return runner.job
    finally:
        await channel.transport.close()


def _stored(folder: JobFolder, given: BatchJob) -> BatchJob:
    """Return the stored job. Raises `BatchJobError` if it is not the one that this command asks for."""
    job = folder.load()
    if (job.provider, job.model) != (given.provider, given.model):
        raise BatchJobError(f"{folder.folder} is a job of {job.provider}/{job.model}: choose another output")
    asked = (given.sources, given.target, given.max_output_tokens)
    if job.sources and (job.sources, job.target, job.max_output_tokens) != asked:
        raise BatchJobError(
            f"{folder.folder} is a job with other sources or options: `dragoman batch fetch {folder.output}` continues "
            "it, another output makes a new one"
        )
    return job


_PLACES = ("region", "project", "location", "api_version", "profile")


def _prepare(folder: JobFolder, job: BatchJob, channel: Channel, api: JobApi) -> None:
    if api.needs_storage and not job.storage:
        raise BatchJobError(f"{job.provider} reads and writes batch files in object storage: give storage (--storage)")
    preparation = Preparation(channel, job)
    folder.create(preparation.read(job.sources))
    job.rejected = len(preparation.rejects)
    if preparation.rejects:
        write_private(folder.folder / "rejects.jsonl", encode_rejects(preparation.rejects))
    if not job.requests:
        first = preparation.rejects[0].reason if preparation.rejects else "the sources are empty"
        raise BatchJobError(f"there is no request to send: {first}")
    if job.requests < api.fewest_requests:
        words = f"{job.provider} takes batch jobs of {api.fewest_requests} requests or more, and there are"
        raise BatchJobError(f"{words} {job.requests}: use `dragoman batch run`")
    folder.save(job)


async def _with_runner(output: str, given: Options, work: Callable[[JobRunner], Any]) -> Any:
    folder = JobFolder(output)
    job = folder.load()
    options: Options = {**job.place, **({} if job.base_url is None else {"base_url": job.base_url}), **given}  # type: ignore[typeddict-item]
    channel = open_channel(find_provider(job.provider), options)
    try:
        return await work(JobRunner(channel, folder, job))
    finally:
        await channel.transport.close()


async def job_status(output: str, **options: Unpack[Options]) -> BatchJob:
    """Return the current state of the job whose answers will be in `output`."""

    async def work(runner: JobRunner) -> BatchJob:
        await runner.look()
        return runner.job

    found: BatchJob = await _with_runner(output, options, work)
    return found


async def cancel_job(output: str, **options: Unpack[Options]) -> BatchJob:
    """Ask the provider to stop; the answers up to then can be fetched."""

    async def work(runner: JobRunner) -> BatchJob:
        await runner.cancel()
        return runner.job

    found: BatchJob = await _with_runner(output, options, work)
    return found


class FetchArguments(Options, total=False):
    """Arguments of `fetch_job`, besides how to reach the provider."""

    wait: float | None
    """Seconds between polls until the job has ended; None: it must have ended."""
    retry_failed: bool
    """Put the requests that may succeed now into a new job."""
    partial: bool
    """Write the answers so far although the job has not ended."""
    show: Callable[[BatchJob], None] | None


async def fetch_job(output: str, **given: Unpack[FetchArguments]) -> JobReport:
    """Write the answers to `output`, in the order of the requests, in the format the job was created with."""
    options, own = _split(given, ("wait", "retry_failed", "partial", "show"))

    async def work(runner: JobRunner) -> JobReport:
        await runner.submit()  # complete an interrupted submission
        if own["wait"] is not None:
            await runner.wait(own["wait"], own["show"])
        report = await runner.fetch()
        if not runner.job.ended and not own["partial"]:
            raise BatchJobError(
                f"the job is {runner.job.state}: wait for it (--wait), or take what is there (--partial)"
            )
        if own["retry_failed"] and report.retryable and await runner.retry() and own["wait"] is not None:
            await runner.wait(own["wait"], own["show"])
            report = await runner.fetch()
        return report

    found: JobReport = await _with_runner(output, options, work)
    return found


async def retry_job(output: str, **options: Unpack[Options]) -> BatchJob:
    """Put the requests of an ended job that may succeed now into a new job of the same provider."""

    async def work(runner: JobRunner) -> BatchJob:
        await runner.look()
        if not await runner.retry():
            raise BatchJobError("nothing to retry: every request was answered, or would fail again")
        return runner.job

    found: BatchJob = await _with_runner(output, options, work)
    return found


def submit_job_sync(sources: list[str], output: str, *, model: str, **given: Unpack[JobArguments]) -> BatchJob:
    """`submit_job` for programs without an event loop."""
    return in_background(submit_job(sources, output, model=model, **given))


def job_status_sync(output: str, **options: Unpack[Options]) -> BatchJob:
    """`job_status` for programs without an event loop."""
    return in_background(job_status(output, **options))


def fetch_job_sync(output: str, **given: Unpack[FetchArguments]) -> JobReport:
    """`fetch_job` for programs without an event loop."""
    return in_background(fetch_job(output, **given))


def retry_job_sync(output: str, **options: Unpack[Options]) -> BatchJob:
    """`retry_job` for programs without an event loop."""
    return in_background(retry_job(output, **options))


def cancel_job_sync(output: str, **options: Unpack[Options]) -> BatchJob:
    """`cancel_job` for programs without an event loop."""
    return in_background(cancel_job(output, **options))
