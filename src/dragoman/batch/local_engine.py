"""Uses all cores of this machine: processes convert the shards, which finish in any order."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import chain
from multiprocessing import get_context, parent_process
from typing import TypeAlias

from dragoman.batch.job import Job, JobError
from dragoman.batch.shard_conversion import ShardResult, ShardTask, convert_shard
from dragoman.batch.sources import STDIN, Shard, Source, read_blocks

Work: TypeAlias = tuple[ShardTask, bytes | None]
_SMALL = 4 << 20
"""Bytes that one process converts in less time than others need to start."""
_EXPANSION = 8
"""What a compressed file or a table may expand to, as a multiple of its size."""


def work_of(job: Job, finished: Mapping[str, ShardResult]) -> Iterator[Work]:
    """Yield every unfinished shard, with its lines if its source can only be read from the start."""
    for index, source in enumerate(job.sources):
        if source.splits:
            for shard in job.shards[index]:
                if shard.name not in finished:
                    yield job.task(shard), None
        else:
            for number, block in enumerate(read_blocks(source, job.options)):
                shard = Shard(index, number)
                if shard.name not in finished:
                    yield job.task(shard), block


def run_locally(job: Job, finished: Mapping[str, ShardResult], workers: int | None = None) -> Iterator[ShardResult]:
    """Yield the results of the unfinished shards, in order of completion."""
    count = workers or (1 if _is_small(job.sources) else available_cores())
    work = work_of(job, finished)
    first, second = next(work, None), next(work, None)
    if first is None:
        return iter(())
    if count == 1 or second is None:  # for one shard or one process, starting others would take longer
        return (convert_shard(*one) for one in chain((first,), () if second is None else (second,), work))
    return _run_in_processes(chain((first, second), work), count)


def _is_small(sources: Sequence[Source]) -> bool:
    """Return whether starting other processes would take longer than the work; the size of stdin is not known."""
    sizes = [
        source.size * (1 if source.layout == "lines" and not source.compression else _EXPANSION) for source in sources
    ]
    return sum(sizes) < _SMALL and all(source.name != STDIN for source in sources)


def available_cores() -> int:
    """Return the number of cores this process may use; in a container these are fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _run_in_processes(work: Iterator[Work], count: int) -> Iterator[ShardResult]:
    with ProcessPoolExecutor(count, mp_context=get_context("spawn"), initializer=_exit_with_parent) as pool:
        waiting: set[Future[ShardResult]] = set()
        try:
            for task, block in work:
                with _blocked_interrupts():  # submitting starts a process while there are too few
                    waiting.add(pool.submit(convert_shard, task, block))
                if len(waiting) > count:  # one more than are running, so that no process is idle
                    done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                    yield from (future.result() for future in done)
            while waiting:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
        except BrokenProcessPool as error:
            raise JobError("a worker process died (out of memory?); run the same command again to continue") from error
        finally:
            for future in waiting:
                future.cancel()


@contextmanager
def _blocked_interrupts() -> Iterator[None]:
    """Block SIGINT. Processes started meanwhile inherit the mask, so that Ctrl-C reaches this process alone.

    A terminal sends Ctrl-C to the whole group; each worker would end with a traceback.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _exit_with_parent() -> None:
    """Exit when the parent process is killed; otherwise this process would wait forever for its next shard."""
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_wait_for, args=(parent.join,), daemon=True).start()


def _wait_for(join: Callable[[], None]) -> None:
    join()
    os._exit(1)
