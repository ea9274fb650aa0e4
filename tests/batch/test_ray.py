"""The same job on a local Ray cluster with two workers: the same bytes, also when a worker is killed."""

import gzip
import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dragoman.batch import ConvertOptions, Job, JobOptions, RunOptions, map_batches, run_job
from tests.batch.conversations import lines, one_by_one
from tests.support.promises import promise

ray = pytest.importorskip("ray")
RAY = RunOptions(engine="ray")
pytestmark = pytest.mark.filterwarnings("ignore")  # Ray warns about itself


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    environment = {
        "PYTHONPATH": os.pathsep.join(path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path)
    }
    ray.init(
        num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR",
        object_store_memory=100_000_000, runtime_env={"env_vars": environment},
    )  # fmt: skip
    yield ray
    ray.shutdown()


def files(folder: Path, count: int) -> list[str]:
    plain, packed = folder / "in.jsonl", folder / "in.jsonl.gz"
    content = b"".join(line + b"\n" for line in lines(count, bad=97))
    plain.write_bytes(content)
    packed.write_bytes(gzip.compress(content))
    return [str(plain), str(packed)]


def job_of(sources: list[str], output: Path) -> Job:
    return Job(
        sources, str(output), JobOptions(convert=ConvertOptions(target="anthropic-messages"), shard_bytes=1 << 16)
    )


@promise("batch:ray")
@pytest.mark.usefixtures("cluster")
def test_the_same_bytes_rejects_and_report_as_on_one_machine(tmp_path: Path) -> None:
    sources = files(tmp_path, 600)
    here = run_job(job_of(sources, tmp_path / "here"), RunOptions(workers=1))
    there = run_job(job_of(sources, tmp_path / "there"), RAY)
    assert there.tally == here.tally
    assert there.digests == here.digests
    for name in sorted(path.name for path in (tmp_path / "here").iterdir()):
        if name.startswith(("part-", "rejects")):
            assert (tmp_path / "there" / name).read_bytes() == (tmp_path / "here" / name).read_bytes()
    converted = b"".join(path.read_bytes() for path in sorted((tmp_path / "there").glob("part-00000-*")))
    assert converted == one_by_one(lines(600, bad=97), "anthropic-messages")


@promise("batch:ray")
@pytest.mark.usefixtures("cluster")
def test_a_killed_worker_changes_nothing(tmp_path: Path) -> None:
    sources = files(tmp_path, 4_000)[:1]
    killed: list[int] = []
    state = tmp_path / "out" / ".batch"

    def kill_one() -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not killed:
            if list(state.glob("*.done")):
                for process in _descendants(os.getpid()):  # not the workers of another cluster
                    if _is_converting(process):
                        os.kill(process, signal.SIGKILL)
                        killed.append(process)
                        return
            time.sleep(0.005)

    killer = threading.Thread(target=kill_one)
    killer.start()
    report = run_job(job_of(sources, tmp_path / "out"), RAY)
    killer.join()
    assert killed, "no worker was caught at work"
    assert report.tally.converted == 4_000 - 4_000 // 97
    converted = b"".join(path.read_bytes() for path in sorted((tmp_path / "out").glob("part-*")))
    assert converted == one_by_one(lines(4_000, bad=97), "anthropic-messages")
    assert json.loads((tmp_path / "out" / "report.json").read_bytes())["shards"] == report.shards


def _descendants(process: int) -> list[int]:
    """Return the processes that this one started, and those that they started."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and (status := _read(entry / "stat")):
            children.setdefault(int(status.rpartition(b")")[2].split()[1]), []).append(int(entry.name))
    found = children.get(process, [])
    for one in found:
        found.extend(children.get(one, []))
    return found


def _is_converting(process: int) -> bool:
    title = _read(Path(f"/proc/{process}/cmdline"))
    return b"ray::" in title and b"_convert" in title


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # the process has ended
        return b""


@promise("batch:ray", "batch:lines")
@pytest.mark.usefixtures("cluster")
def test_a_step_of_a_pipeline_of_ray_data() -> None:
    records = lines(40, bad=9)
    table = pa.table({"id": list(range(40)), "chat": [record.decode() for record in records]})
    step = partial(map_batches, target="gemini", column="chat")
    found = ray.data.from_arrow(table).map_batches(step, batch_format="pyarrow", batch_size=None).take_all()
    assert [row["record"] for row in found if row["record"]] == one_by_one(records, "gemini").decode().splitlines()
    assert sum(row["rejected"] is not None for row in found) == 40 // 9
