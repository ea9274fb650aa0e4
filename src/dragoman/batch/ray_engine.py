"""Uses a Ray cluster: the same shards, converted by Ray Data wherever it has a free core.

Sources and output must be accessible to every worker (a shared folder or object storage). Ray repeats a shard whose
worker died; as shards are written atomically, repeating one changes nothing.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from dragoman.batch.job import Job, JobError
from dragoman.batch.shard_conversion import ShardResult, ShardTask, convert_shard
from dragoman.batch.sources import STDIN, Shard, read_blocks
from dragoman.errors import NotConfigured
from dragoman.installation import install_command

_CONNECT_SECONDS = 10


def run_on_ray(
    job: Job, finished: Mapping[str, ShardResult], workers: int | None = None, address: str | None = None
) -> Iterator[ShardResult]:
    """Yield the results of the unfinished shards, in order of completion."""
    ray = _ray()
    if any(source.name == STDIN for source in job.sources):
        raise JobError("stdin is only on this machine: a Ray cluster reads files, shared or in object storage")
    tasks = [{"task": msgspec.json.encode(task), "done": done} for task, done in _tasks(job, finished)]
    if not tasks:
        return
    if not ray.is_initialized():
        _connect(ray, address)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)  # the job reports progress and results itself
    # One block per shard: the unit that Ray schedules and repeats is the unit that the job records.
    shards = ray.data.from_items(tasks, override_num_blocks=len(tasks))
    converted = shards.flat_map(_convert, compute=ray.data.TaskPoolStrategy(size=workers), num_cpus=1)
    for row in converted.iter_rows():
        yield msgspec.json.decode(row["result"], type=ShardResult)


def _connect(ray: Any, address: str | None) -> None:
    """Start Ray here, or join a cluster. The address is tried first, as Ray would retry a wrong one for minutes."""
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    try:
        if host and port.isdecimal():
            socket.create_connection((host, int(port)), _CONNECT_SECONDS).close()
        ray.init(address=address, log_to_driver=False, logging_level="ERROR", include_dashboard=False)
    except (OSError, ConnectionError) as error:
        raise JobError(f"cannot reach a Ray cluster at {address}: {error}") from error


def _tasks(job: Job, finished: Mapping[str, ShardResult]) -> Iterator[tuple[ShardTask, list[int]]]:
    """Yield a task per shard; for a source that is read from its start, one task for all of its shards."""
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
        words = f"a Ray cluster needs {error.name}: {install_command('ray')}"
        raise NotConfigured(words, missing="ray") from error
    return ray
