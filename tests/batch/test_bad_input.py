"""`dragoman batch convert` with input that cannot be right: one line that says what is wrong, and no traceback."""

import gzip
import json
import os
import resource
import signal
import subprocess
import time
from pathlib import Path

import pytest
import zstandard

from dragoman.batch import JobError, RunOptions, SourceError, convert
from dragoman.errors import InvalidValue
from tests.batch.conversations import lines, one_by_one, written
from tests.cli.command import COMMAND, environment, run
from tests.support.promises import promise

pytestmark = promise("batch:bad-input")

CONTENT = b"".join(line + b"\n" for line in lines(200))
PACKED = {"gz": gzip.compress(CONTENT), "zst": zstandard.ZstdCompressor().compress(CONTENT)}


def refused(*arguments: str) -> str:
    """The one line that the command ends with."""
    done = run("batch", "convert", *arguments)
    assert done.returncode == 2, done.stderr
    assert b"Traceback" not in done.stderr
    (line,) = done.stderr.decode().splitlines()
    return line


BAD_OPTIONS = {
    "a format that does not exist": (["--to", "gemnii"], "did you mean 'gemini'?"),
    "a batch file that does not exist": (["--to", "anthropic-batsh"], "did you mean 'anthropic-batch'?"),
    "a source format that does not exist": (["--to", "gemini", "--from", "olama"], "did you mean 'ollama-chat'?"),
    "a format that is only read": (["--to", "tau-bench"], "only read"),
    "all formats": (["--to", "all"], "one format"),
    "a share of nothing": (["--to", "gemini", "--sample", "0"], "above 0, at most 1"),
    "a share above all": (["--to", "gemini", "--sample", "1.5"], "above 0, at most 1"),
    "no workers": (["--to", "gemini", "--workers", "0"], "at least 1"),
    "empty shards": (["--to", "gemini", "--shard-size", "0"], "at least 1"),
    "fewer than no errors": (["--to", "gemini", "--max-errors", "-1"], "at least 0"),
    "a severity that does not exist": (["--to", "gemini", "--filter", "lost"], "invalid choice"),
    "a column of lines": (["--to", "gemini", "--column", "chat"], "is not one"),
    "a table of lines": (["--to", "gemini", "--table", "chat"], "is not one"),
    "a Ray cluster that is not there": (["--to", "gemini", "--ray", "127.0.0.1:1"], "cannot reach a Ray cluster"),
}


@pytest.mark.parametrize("name", BAD_OPTIONS)
def test_options_that_cannot_be_right(name: str, tmp_path: Path) -> None:
    options, expected = BAD_OPTIONS[name]
    assert expected in refused(str(written(tmp_path, 3)), "-o", str(tmp_path / "out.jsonl"), *options)
    assert not (tmp_path / "out.jsonl").exists()


def test_sources_that_are_not_there(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    output = ["--to", "gemini", "-o", str(tmp_path / "out.jsonl")]
    assert "no file matches it" in refused(str(tmp_path / "*.jsonl"), *output)
    assert "the folder has no *.jsonl" in refused(str(tmp_path / "folder"), *output)
    assert "stdin (-) can be read only once" in refused("-", "-", *output)


def test_outputs_that_cannot_be_written(tmp_path: Path) -> None:
    source = str(written(tmp_path, 3))
    (tmp_path / "folder.jsonl").mkdir()
    (tmp_path / "there.jsonl").write_bytes(b"")
    assert "is a folder" in refused(source, "--to", "gemini", "-o", str(tmp_path / "folder.jsonl"))
    assert "--overwrite" in refused(source, "--to", "gemini", "-o", str(tmp_path / "there.jsonl"))
    assert "is the source too" in refused(source, "--to", "gemini", "-o", source, "--overwrite")
    assert "Not a directory" in refused(source, "--to", "gemini", "-o", f"{source}/out.jsonl")
    assert ".parquet" in refused(source, "--to", "gemini", "-o", str(tmp_path / "out.csv"))
    assert Path(source).read_bytes() == CONTENT[: Path(source).stat().st_size]


@pytest.mark.parametrize("suffix", PACKED)
def test_compressed_files_that_are_cut_or_damaged(suffix: str, tmp_path: Path) -> None:
    path, whole = tmp_path / f"in.jsonl.{suffix}", PACKED[suffix]
    for content in (whole[:-300], whole[: len(whole) // 2], whole[:2_000] + bytes(200) + whole[2_200:]):
        path.write_bytes(content)
        with pytest.raises(SourceError, match=r"damaged after record|cannot read"):
            convert(str(path), str(tmp_path / "out.jsonl"), RunOptions(workers=1, restart=True), target="gemini")
        assert not (tmp_path / "out.jsonl").exists(), "half of the records would look like all of them"
    path.write_bytes(whole)
    report = convert(str(path), str(tmp_path / "out.jsonl"), RunOptions(workers=1, restart=True), target="gemini")
    assert report.tally.converted == 200


def test_a_zstd_file_of_several_frames(tmp_path: Path) -> None:
    pack, path = zstandard.ZstdCompressor().compress, tmp_path / "in.jsonl.zst"
    path.write_bytes(pack(CONTENT[:1_000]) + pack(b"") + pack(CONTENT[1_000:]))
    convert(str(path), str(tmp_path / "out.jsonl"), RunOptions(workers=1), target="gemini")
    assert (tmp_path / "out.jsonl").read_bytes() == one_by_one(lines(200), "gemini")


@pytest.mark.parametrize("name", ["empty.jsonl", "empty.jsonl.gz", "blank.jsonl"])
def test_files_without_a_record(name: str, tmp_path: Path) -> None:
    content = {"empty.jsonl": b"", "empty.jsonl.gz": gzip.compress(b""), "blank.jsonl": b"\n \n\r\n"}[name]
    (tmp_path / name).write_bytes(content)
    report = convert(str(tmp_path / name), str(tmp_path / "out.jsonl"), target="gemini")
    assert (report.tally.records, (tmp_path / "out.jsonl").read_bytes()) == (0, b"")


def test_a_kind_that_the_records_are_not_of(tmp_path: Path) -> None:
    report = convert(str(written(tmp_path, 5)), str(tmp_path / "out.jsonl"), target="gemini", kind="response")
    assert (report.tally.converted, report.tally.rejected) == (0, 5)
    assert report.tally.rejects[0].reason == "record: expected a response, as --kind says"


@pytest.mark.parametrize("options", [{"strict": True}, {"sample": 0.5}, {"leave_out": "degraded"}, {"model": "m"}])
def test_an_unfinished_job_is_not_resumed_with_other_options(options: dict[str, object], tmp_path: Path) -> None:
    source, output = written(tmp_path, 20, bad=2), str(tmp_path / "out.jsonl")
    with pytest.raises(JobError, match="--max-errors 1"):
        convert(str(source), output, RunOptions(workers=1, max_errors=1), target="gemini")
    with pytest.raises(JobError, match="other sources or options"):
        convert(str(source), output, RunOptions(workers=1), target="gemini", **options)  # type: ignore[arg-type]


def test_a_format_that_is_only_read_is_refused_by_the_library_too(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="only read"):
        convert(str(written(tmp_path, 1)), str(tmp_path / "out.jsonl"), target="claude-code")


def _small_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def test_a_full_disk_and_then_room(tmp_path: Path) -> None:
    """A limit for the size of files stands for the disk: writing fails in the same way."""
    source, output = written(tmp_path, 400), tmp_path / "out.jsonl"
    command = [*COMMAND, "batch", "convert", str(source), "--to", "gemini", "-o", str(output), "--quiet"]
    full = subprocess.run(  # noqa: S603
        command, env=environment(), capture_output=True, timeout=60, check=False, preexec_fn=_small_files
    )  # fmt: skip
    assert full.returncode == 2
    assert b"File too large; run the same command again to continue" in full.stderr
    assert b"Traceback" not in full.stderr
    assert not output.exists()
    assert subprocess.run(command, env=environment(), timeout=60, check=True).returncode == 0  # noqa: S603
    assert output.read_bytes() == one_by_one(lines(400), "gemini")


def test_ctrl_c_and_then_again(tmp_path: Path) -> None:
    source, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_bytes(CONTENT * 60)
    command = [*COMMAND, "batch", "convert", str(source), "--to", "gemini", "-o", str(output)]
    command += ["--shard-size", "1", "--workers", "2", "--quiet"]
    process = subprocess.Popen(  # noqa: S603
        command, env=environment(), stderr=subprocess.PIPE, start_new_session=True
    )
    state, deadline = tmp_path / "out.jsonl.batch", time.monotonic() + 60
    while not list(state.glob("*.done")) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the workers too
    _, errors = process.communicate(timeout=60)
    if output.exists():
        pytest.skip("the job was finished before it could be interrupted")
    assert process.returncode == 130, errors
    assert errors.decode().splitlines() == ["dragoman: interrupted; run the same command again to continue"]
    assert list(state.glob("*.done"))
    assert subprocess.run(command, env=environment(), timeout=120, check=True).returncode == 0  # noqa: S603
    assert output.read_bytes() == one_by_one(lines(200), "gemini") * 60
    assert json.loads((tmp_path / "out.jsonl.report.json").read_bytes())["tally"]["converted"] == 200 * 60
