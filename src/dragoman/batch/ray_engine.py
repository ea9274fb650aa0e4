"""A Ray cluster: the same shards, converted by Ray Data wherever it has a free core.

Sources and output have to be in reach of every worker (a shared folder or object storage). Ray repeats a shard whose
worker died; as a shard appears at once and whole, repeating it changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from dragoman.batch.job import Job, JobError
from dragoman.batch.shard_conversion import ShardResult, ShardTask, convert_shard
from dragoman.batch.sources import STDIN, Shard, read_blocks
from dragoman.errors import NotConfigured
from dragoman.installation import install_command


def run_on_ray(
    job: Job, finished: Mapping[str, ShardResult], workers: int | None = None, address: str | None = None
) -> Iterator[ShardResult]:
    """The results of all shards that are not finished, as they come."""
    ray = _ray()
    if any(source.name == STDIN for source in job.sources):
        raise JobError("stdin is only on this machine: a Ray cluster reads files, shared or in object storage")
    tasks = [{"task": msgspec.json.encode(task), "done": done} for task, done in _tasks(job, finished)]
    if not tasks:
        return
    if not ray.is_initialized():
        ray.init(address=address, log_to_driver=False, logging_level="ERROR", include_dashboard=False)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    # One block per shard: the unit that Ray schedules and repeats is the unit that the job remembers.
    shards = ray.data.from_items(tasks, override_num_blocks=len(tasks))
    converted = shards.flat_map(_convert, concurrency=workers, num_cpus=1)
    for row in converted.iter_rows():
        yield msgspec.json.decode(row["result"], type=ShardResult)


def _tasks(job: Job, finished: Mapping[str, ShardResult]) -> Iterator[tuple[ShardTask, list[int]]]:
    """A task per shard; for a source that is read from its beginning, one for all of its shards."""
    for index, source in enumerate(job.sources):
        if source.splits:
            for shard in job.shards[index]:
                if shard.name not in finished:
                    yield job.task(shard), []
        else:
            done = [result.shard.number for result in finished.values() if result.shard.source == index]
            yield job.task(Shard(index, 0)), done


def _convert(row: dict[str, Any]) -> list[dict[str, Any]]:
    task = msgspec.json.decode(row["task"], type=ShardTask)
    return [{"result": msgspec.json.encode(result)} for result in _results(task, set(row["done"]))]


def _results(task: ShardTask, done: set[int]) -> Iterator[ShardResult]:
    if task.source.splits:
        yield convert_shard(task)
        return
    for number, block in enumerate(read_blocks(task.source, task.options)):
        if number not in done:
            shard = msgspec.structs.replace(task.shard, number=number)
            yield convert_shard(msgspec.structs.replace(task, shard=shard), block)


def _ray() -> Any:
    try:
        import ray  # noqa: PLC0415 - an extra
        import ray.data  # noqa: PLC0415
    except ImportError as error:
        raise NotConfigured(f"a Ray cluster needs Ray: {install_command('ray')}", missing="ray") from error
    return ray
