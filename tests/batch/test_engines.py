"""Jobs in several processes: the same bytes however they are run, killed, and run again."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from msgspec import structs

from dragoman.batch import (
    ConvertOptions,
    Job,
    JobError,
    JobOptions,
    Report,
    RunOptions,
    convert,
    local_engine,
    run_job,
)
from dragoman.batch.conversion import Progress
from dragoman.batch.local_engine import Work, run_locally
from dragoman.batch.shard_conversion import ShardResult, convert_shard
from dragoman.batch.sources import Source, plan_shards
from dragoman.cli.batch_command import describe
from tests.batch.conversations import lines, one_by_one, written
from tests.cli.command import COMMAND, environment
from tests.support.promises import promise

SHARD = 1 << 14


def job_of(source: Path, output: Path | str, target: str = "gemini") -> Job:
    return Job([str(source)], str(output), JobOptions(convert=ConvertOptions(target=target), shard_bytes=SHARD))


def run(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(  # noqa: S603
        [*COMMAND, "batch", "convert", *arguments], capture_output=True, env=environment(), timeout=120, check=False
    )


@promise("batch:deterministic")
def test_any_number_of_processes_gives_the_same_bytes(tmp_path: Path) -> None:
    source = written(tmp_path, 300, bad=50)
    reports = {}
    for workers in (1, 2, 3):
        output = tmp_path / f"out-{workers}.jsonl"
        reports[workers] = run_job(job_of(source, output), RunOptions(workers=workers))
        assert output.read_bytes() == one_by_one(lines(300, bad=50), "gemini")
    assert reports[1].digests == reports[2].digests == reports[3].digests
    assert reports[1].tally == reports[2].tally == reports[3].tally
    assert reports[1].shards > 3


@promise("batch:resumable")
def test_killed_and_run_again(tmp_path: Path) -> None:
    """`kill -9` in the middle; finished shards are not converted again, and the bytes are those of one run."""
    source = written(tmp_path, 3_000, bad=500)
    output = tmp_path / "out.jsonl"
    options = ("--to", "gemini", "--shard-size", "1", "--workers", "2")
    arguments = [*COMMAND, "batch", "convert", str(source), *options, "-o", str(output)]
    whole = run(str(source), *options, "-o", str(tmp_path / "whole.jsonl"))
    assert whole.returncode == 0, whole.stderr
    process = subprocess.Popen(arguments, env=environment(), stderr=subprocess.PIPE)  # noqa: S603
    state = tmp_path / "out.jsonl.batch"
    deadline = time.monotonic() + 60
    while not list(state.glob("*.done")) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert process.stderr is not None
    process.stderr.close()
    if output.exists():
        pytest.skip("the job was finished before it could be killed")
    done = {path.name: path.stat().st_mtime_ns for path in state.glob("*.done")}
    assert done
    again = run(*arguments[len(COMMAND) + 2 :])
    assert again.returncode == 0, again.stderr
    assert output.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    assert (tmp_path / "out.jsonl.rejects.jsonl").read_bytes() == (tmp_path / "whole.jsonl.rejects.jsonl").read_bytes()
    first, second = (
        msgspec.json.decode((tmp_path / f"{name}.report.json").read_bytes(), type=Report)
        for name in ("whole.jsonl", "out.jsonl")
    )
    assert first.tally == second.tally
    assert not state.exists()


@promise("batch:resumable")
def test_finished_shards_are_not_converted_again(tmp_path: Path) -> None:
    source = written(tmp_path, 300)
    job = job_of(source, tmp_path / "out.jsonl")
    engine = run_locally(job, job.begin(), workers=1)
    first = [next(engine).shard.name, next(engine).shard.name]
    assert sorted(job.begin()) == sorted(first)
    job.close()
    again = job_of(source, tmp_path / "out.jsonl")
    rest = [result.shard.name for result in run_locally(again, again.begin(), workers=1)]
    assert not set(first) & set(rest)
    run_job(again)
    assert (tmp_path / "out.jsonl").read_bytes() == one_by_one(lines(300), "gemini")


@promise("batch:resumable")
@pytest.mark.parametrize("sample", [None, 0.3])
def test_rate_and_time_left_are_those_of_this_run(sample: float | None, tmp_path: Path) -> None:
    """What an earlier run converted counts as done, not as fast; and what `--sample` skips counts as read."""
    source = written(tmp_path, 300)
    options = JobOptions(convert=ConvertOptions(target="gemini", sample=sample), shard_bytes=SHARD)
    job = Job([str(source)], str(tmp_path / "out.jsonl"), options)
    engine = run_locally(job, job.begin(), workers=1)
    earlier = sum(next(engine).tally.records for _ in range(2))
    seen: list[Progress] = []
    report = run_job(job, RunOptions(workers=1), seen.append)
    assert {progress.resumed_records for progress in seen} == {report.resumed} == {earlier}
    assert seen[0].resumed == 2
    assert 0 < seen[0].resumed_bytes < seen[0].bytes_done
    assert seen[-1].bytes_done == seen[-1].bytes_total == source.stat().st_size
    assert report.records_per_second == (report.tally.records - earlier) / report.seconds
    assert f"{earlier:,} in an earlier run" in report.summary()
    shown = structs.replace(
        seen[0], records=300, resumed_records=200, bytes_done=600, resumed_bytes=500, bytes_total=1_000, seconds=10.0
    )
    assert describe(shown).startswith("60 %, 300 records, 10/s, 40 s left")


@promise("batch:resumable")
def test_another_job_does_not_take_over_what_one_has_begun(tmp_path: Path) -> None:
    source = written(tmp_path, 300)
    job = job_of(source, tmp_path / "out.jsonl")
    job.begin()
    with pytest.raises(JobError, match="another process is writing"):
        run_job(job_of(source, tmp_path / "out.jsonl"), RunOptions(restart=True))
    job.close()
    with pytest.raises(JobError, match="--restart"):
        run_job(job_of(source, tmp_path / "out.jsonl", target="openai-responses"))
    os.utime(source, ns=(1, 1))
    with pytest.raises(JobError, match="other sources or options"):
        run_job(job_of(source, tmp_path / "out.jsonl"))
    run_job(job_of(source, tmp_path / "out.jsonl"), RunOptions(restart=True))
    assert (tmp_path / "out.jsonl").read_bytes() == one_by_one(lines(300), "gemini")


@promise("batch:memory")
def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """Peak memory of the whole command with its workers, on a file and on one six times as large."""
    peaks = []
    for count in (3_000, 18_000):
        source = tmp_path / f"in-{count}.jsonl"
        block = b"".join(line + b"\n" for line in lines(1_000))
        source.write_bytes(block * (count // 1_000))
        measured = subprocess.run(  # noqa: S603
            [
                *(COMMAND[0], "-c", _PEAK),
                *(*COMMAND, "batch", "convert", str(source), "--to", "gemini", "--quiet", "--shard-size", "1"),
                *("-o", str(tmp_path / f"out-{count}.jsonl"), "--workers", "2"),
            ],
            capture_output=True,
            env=environment(),
            timeout=300,
            check=True,
        )
        peaks.append(int(measured.stdout))
    assert peaks[1] < peaks[0] * 1.25, peaks


_PEAK = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


@promise("batch:command")
def test_the_command(tmp_path: Path) -> None:
    source = written(tmp_path, 50, bad=10)
    done = run(str(source), "--to", "anthropic-messages", "-o", str(tmp_path / "out"))
    assert done.returncode == 0
    assert b"45 of 50 records converted to anthropic-messages" in done.stderr
    assert b"5 rejected" in done.stderr
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["part-00000-00000.jsonl", "rejects.jsonl", "report.html", "report.json"]
    assert run(str(source), "--to", "gemini", "-o", str(tmp_path / "x.jsonl"), "--max-errors", "1").returncode == 3
    assert run("none.jsonl", "--to", "gemini", "-o", str(tmp_path / "y.jsonl")).returncode == 2
    piped = subprocess.run(  # noqa: S603
        [*COMMAND, "batch", "convert", "-", "--to", "gemini", "-o", "-"],
        input=source.read_bytes(), capture_output=True, env=environment(), timeout=60, check=True,
    )  # fmt: skip
    assert piped.stdout == one_by_one(lines(50, bad=10), "gemini")


@promise("batch:progress")
@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_a_terminal_shows_a_bar_and_a_pipe_plain_lines(tmp_path: Path) -> None:
    import pty  # noqa: PLC0415 - not on Windows

    source = written(tmp_path, 2_000, bad=100)
    arguments = [*COMMAND, "batch", "convert", str(source), "--to", "gemini", "--workers", "1", "--shard-size", "1"]
    terminal, other_end = pty.openpty()
    process = subprocess.Popen(  # noqa: S603
        [*arguments, "-o", str(tmp_path / "shown.jsonl")],
        stderr=other_end,
        env=environment(TERM="xterm", COLUMNS="120"),
    )
    os.close(other_end)
    shown = bytearray()
    with suppress(OSError):  # Linux reports the end of a terminal as an error
        while piece := os.read(terminal, 4_096):
            shown += piece
    os.close(terminal)
    assert process.wait(60) == 0
    assert "━".encode() in shown, "a bar"
    assert re.search(rb"%, [\d,]+ records, [\d,]+/s", shown)
    assert b"20 rejected" in shown
    piped = run(str(source), "--to", "gemini", "-o", str(tmp_path / "piped.jsonl"))
    assert b"\x1b" not in piped.stderr
    assert "━".encode() not in piped.stderr


@promise("batch:deterministic")
@pytest.mark.parametrize(("records", "workers"), [(20, None), (6_000, None), (20, 2)])
def test_a_small_job_starts_no_processes_of_its_own_accord(
    records: int, workers: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[int] = []

    def run_alone(work: Iterator[Work], count: int) -> Iterator[ShardResult]:
        started.append(count)
        return (convert_shard(*one) for one in work)

    monkeypatch.setattr(local_engine, "_run_in_processes", run_alone)
    monkeypatch.setattr(local_engine, "available_cores", lambda: 2)
    sources = [str(written(tmp_path, records, name=name)) for name in ("a.jsonl", "b.jsonl")]
    options = JobOptions(convert=ConvertOptions(target="gemini", sample=0.01))
    run_job(Job(sources, str(tmp_path / "out"), options), RunOptions(workers=workers))
    assert started == ([] if (records, workers) == (20, None) else [2])


@promise("batch:deterministic")
def test_many_sources_keep_their_order(tmp_path: Path) -> None:
    sources = []
    for index in range(5):
        path = tmp_path / f"in-{index}.jsonl"
        path.write_bytes(b"".join(line + b"\n" for line in lines(100)[20 * index : 20 * index + 20]))
        sources.append(str(path))
    convert(sources, str(tmp_path / "out.jsonl"), RunOptions(workers=2), target="ollama-chat")
    assert (tmp_path / "out.jsonl").read_bytes() == one_by_one(lines(100), "ollama-chat")


@promise("batch:deterministic")
@pytest.mark.parametrize(("size", "limit"), [(1, 10), (10, 10), (11, 10), (99, 10), (100, 7), (0, 10)])
def test_shards_are_of_equal_size(size: int, limit: int) -> None:
    """A short last shard would leave the other cores idle at the end."""
    options = JobOptions(convert=ConvertOptions(target="gemini"), shard_bytes=limit)
    shards = plan_shards(Source("in.jsonl", "lines", size=size), 0, options)
    lengths = [shard.stop - shard.start for shard in shards]
    assert sum(lengths) == size
    assert len(lengths) == -(-size // limit)
    assert not lengths or (max(lengths) <= limit and max(lengths) - min(lengths) <= 1)
    assert all(one.stop == following.start for one, following in pairwise(shards))


@promise("batch:deterministic")
def test_a_worker_imports_what_it_converts_with_and_no_more() -> None:
    """Each process pays for its imports before its first record."""
    loaded = subprocess.run(  # noqa: S603
        [COMMAND[0], "-c", "import dragoman.batch.shard_conversion, sys; print(*sys.modules)"],
        capture_output=True, env=environment(), timeout=60, check=True, text=True,
    ).stdout.split()  # fmt: skip
    unwanted = (
        "dragoman.drivers",
        "dragoman.agent",
        "dragoman.gateway",
        "dragoman.sim",
        "dragoman.batch.jobs",
        "pyarrow",
    )
    assert [name for name in loaded if name.startswith(unwanted)] == []


@promise("batch:resumable")
def test_a_folder_has_the_shards_of_the_last_job_alone(tmp_path: Path) -> None:
    """Also if that job wrote fewer shards, or of another type, or was restarted."""
    source, out = written(tmp_path, 300), tmp_path / "out"
    run_job(job_of(source, out))
    before = sorted(path.name for path in out.iterdir())
    assert len(before) > 5
    fewer = JobOptions(convert=ConvertOptions(target="gemini"))
    with pytest.raises(JobError, match="is a source in the folder"):
        run_job(Job([str(out)], str(out), fewer), RunOptions(overwrite=True))
    dry = JobOptions(convert=ConvertOptions(target="gemini"), dry_run=True)
    run_job(Job([str(source)], str(out), dry), RunOptions(overwrite=True))
    assert sorted(path.name for path in out.iterdir()) == before
    (out / "notes.txt").write_text("of the user")
    run_job(Job([str(source)], str(out), fewer), RunOptions(overwrite=True))
    assert sorted(path.name for path in out.glob("part-*")) == ["part-00000-00000.jsonl"]
    packed = JobOptions(convert=fewer.convert, output_format="jsonl.gz")
    run_job(Job([str(source)], str(out), packed), RunOptions(overwrite=True))
    assert sorted(path.name for path in out.iterdir()) == [
        "notes.txt", "part-00000-00000.jsonl.gz", "report.html", "report.json"
    ]  # fmt: skip
    fresh = job_of(source, tmp_path / "fresh")
    next(run_locally(fresh, fresh.begin(), workers=1))
    fresh.close()
    (tmp_path / "fresh" / ".batch" / "job.json").unlink()  # killed at the very start
    run_job(Job([str(source)], str(tmp_path / "fresh"), fewer), RunOptions(overwrite=True))
    assert len(list((tmp_path / "fresh").glob("part-*"))) == 1
    begun = job_of(source, tmp_path / "begun")
    next(run_locally(begun, begun.begin(), workers=1))
    begun.close()
    run_job(Job([str(source)], str(tmp_path / "begun"), fewer), RunOptions(restart=True))
    assert len(list((tmp_path / "begun").glob("part-*"))) == 1


@promise("batch:resumable")
def test_a_job_killed_before_its_first_file_is_begun_again(tmp_path: Path) -> None:
    source = written(tmp_path, 30)
    (tmp_path / "out" / ".batch").mkdir(parents=True)
    run_job(job_of(source, tmp_path / "out"))
    assert (tmp_path / "out" / "report.json").exists()


@promise("batch:command")
def test_nothing_is_left_of_what_was_meant_for_stdout(tmp_path: Path) -> None:
    """The converted records may be private, and fill the disk."""
    source, temporary = written(tmp_path, 30), tmp_path / "temporary"
    temporary.mkdir()
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(  # noqa: S603
            [*COMMAND, "batch", "convert", str(source), "--to", "gemini", "-o", "-"],
            stdout=full, stderr=subprocess.PIPE, env=environment(TMPDIR=str(temporary)), timeout=60, check=False,
        )  # fmt: skip
    assert done.stderr == b"dragoman: cannot write stdout: No space left on device\n"
    assert list(temporary.iterdir()) == []
