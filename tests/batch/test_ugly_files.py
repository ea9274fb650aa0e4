"""Files as they are found: wrong names, cut ends, marks, JSON within JSON, lines that are not records."""

import bz2
import gzip
import io
import json
import lzma
import os
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path

import pytest
import zstandard

from dragoman.batch import SourceError, convert
from dragoman.batch.tables import TableError
from tests.cli.command import run
from tests.datasets.public_shapes import CLAUDE_CODE, SHAPES
from tests.support.promises import promise

pytestmark = promise("batch:ugly-files")


def record(text: str = "hi") -> bytes:
    return json.dumps({"model": "m", "messages": [{"role": "user", "content": text}]}).encode()


LINES = record("a") + b"\n" + record("b") + b"\n"
MESSAGES = [{"role": "user", "content": "x" * 6_000}, {"role": "assistant", "content": "y"}]
PRETTY = json.dumps(json.loads(record()), indent=2).encode()
FILES = {
    "blank.jsonl": (b"\n\n" + record() + b"\n \t \n" + record() + b"\n\n", 2, 0),
    "mark-and-crlf.jsonl": (b"\xef\xbb\xbf" + LINES.replace(b"\n", b"\r\n"), 2, 0),
    "no-end-of-line.jsonl": (LINES[:-1], 2, 0),
    "cut.jsonl": (LINES[:-10], 1, 1),
    "nan.jsonl": (b'{"model":"m","messages":[],"temperature":NaN}\n' + LINES, 2, 1),
    "half-a-character.jsonl": (b'{"model":"m","messages":[{"role":"user","content":"\\ud800"}]}\n' + LINES, 2, 1),
    "not-utf-8.jsonl": (b'{"model":"m","messages":[{"role":"user","content":"\xff"}]}\n' + LINES, 2, 1),
    "zeros.jsonl": (LINES + b"\0" * 40 + b"\n", 2, 1),
    "deep.jsonl": (b"[" * 100_000 + b"]" * 100_000 + b"\n" + LINES, 2, 1),
    "two-in-a-line.jsonl": (record() + record() + b"\n" + LINES, 2, 1),
    "packed-without-saying-so.jsonl": (gzip.compress(LINES), 2, 0),
    "not-packed.jsonl.gz": (LINES, 2, 0),
    "not-parquet.parquet": (LINES, 2, 0),
    "array.json": (json.dumps([json.loads(record())] * 3).encode(), 3, 0),
    "pretty-array.json": (json.dumps([json.loads(record())] * 3, indent=1).encode(), 3, 0),
    "one-record.json": (PRETTY, 1, 0),
    "records-as-jq-prints-them.json": (PRETTY + b"\n" + PRETTY + b"\n" + PRETTY, 3, 0),
    "array-with-a-record-per-line.json": (b"[" + b",\n".join(LINES.splitlines()) + b"]\n", 2, 0),
    "messages.json": (json.dumps(MESSAGES).encode(), 1, 0),
    "messages.jsonl": ((json.dumps(MESSAGES).encode() + b"\n") * 2, 2, 0),
    "messages-as-text.jsonl": (json.dumps({"messages": json.dumps(MESSAGES)}).encode() + b"\n" + LINES, 3, 0),
    "records-as-text.jsonl": (json.dumps(record().decode()).encode() + b"\n" + LINES, 3, 0),
    "empty.jsonl": (b"", 0, 0),
    "empty.json": (b"[]\n", 0, 0),
}


@pytest.mark.parametrize("name", FILES)
def test_what_can_be_read_is_converted_and_the_rest_is_rejected(tmp_path: Path, name: str) -> None:
    content, good, bad = FILES[name]
    (tmp_path / name).write_bytes(content)
    report = convert(str(tmp_path / name), str(tmp_path / "out.jsonl"), target="anthropic-messages")
    assert (report.tally.converted, report.tally.rejected) == (good, bad), report.tally.rejects


def test_a_damaged_end_is_an_error_that_says_where(tmp_path: Path) -> None:
    whole = gzip.compress(b"".join(record(str(number)) + b"\n" for number in range(2_000)))
    (tmp_path / "cut.jsonl.gz").write_bytes(whole[:-200])
    with pytest.raises(SourceError, match=r"damaged after record \d+"):
        convert(str(tmp_path / "cut.jsonl.gz"), str(tmp_path / "out.jsonl"), target="gemini")
    (tmp_path / "cut.parquet").write_bytes(b"PAR1" + bytes(100))
    done = run("batch", "convert", str(tmp_path / "cut.parquet"), "--to", "gemini", "-o", str(tmp_path / "x.jsonl"))
    assert (done.returncode, b"damaged" in done.stderr, b"Traceback" in done.stderr) == (2, True, False)


def test_a_job_that_converts_nothing_says_so_in_its_exit_code(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_bytes(b"a,b\n1,2\n")
    done = run("batch", "convert", str(tmp_path / "table.csv"), "--to", "gemini", "-o", str(tmp_path / "out.jsonl"))
    assert (done.returncode, b"2 rejected" in done.stderr) == (1, True)


@pytest.mark.parametrize("command", ["convert", "inspect"])
def test_commands_for_text_name_the_one_that_reads_tables(tmp_path: Path, command: str) -> None:
    (tmp_path / "logs.db").write_bytes(b"SQLite format 3\0" + bytes(100))
    further = ["--to", "gemini"] if command == "convert" else []
    done = run(command, str(tmp_path / "logs.db"), *further)
    assert (done.returncode, b"dragoman batch convert" in done.stderr) == (2, True)


PIPED = {
    "lines": (LINES, 2),
    "gzip": (gzip.compress(LINES), 2),
    "zstd": (zstandard.compress(LINES), 2),
    "pretty array": (FILES["pretty-array.json"][0], 3),
    "array in one line": (b"[%s]" % LINES.strip().replace(b"\n", b","), 2),
    "long array in one line": (b"[%s]" % b",".join([LINES.splitlines()[0]] * 400), 400),
    "messages in one line": (b"[%s]" % b",".join([b'{"type": "message", "role": "user", "content": "hi"}'] * 400), 1),
    "brackets in one line": (b"[]]]", 0),
    "empty array": (b"[]\n", 0),
    "session": (b"".join(json.dumps(line).encode() + b"\n" for line in CLAUDE_CODE), 1),
    "messages": (FILES["messages.jsonl"][0], 2),
}


def test_stdin_may_be_what_a_file_may_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, (content, good) in PIPED.items():
        stdin = io.TextIOWrapper(io.BufferedReader(io.BytesIO(content), 1 << 14))
        monkeypatch.setattr("sys.stdin", stdin)
        report = convert("-", str(tmp_path / f"{name}.jsonl"), target="openai-chat", model="m")
        assert (report.tally.converted, report.tally.rejected) == (good, int(name == "brackets in one line")), name


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_what_a_job_wrote_is_read_without_its_rejects_and_report(tmp_path: Path, suffix: str) -> None:
    source, shards, files = tmp_path / "in.jsonl", tmp_path / "shards", tmp_path / "files"
    files.mkdir()
    source.write_bytes(LINES + b"no JSON\n")
    for output, options in ((shards, ["--output-format", suffix]), (files / f"out.{suffix}", [])):
        done = run("batch", "convert", str(source), "--to", "gemini", "-o", str(output), *options)
        assert b"1 rejected" in done.stderr
    for number, written in enumerate((shards, files, f"{shards}/*.jso*", f"{files}/*")):
        if suffix == "parquet" and number == 2:
            continue  # only the shards match
        report = convert(str(written), str(tmp_path / f"{number}.jsonl"), target="ollama-chat", model="m")
        assert (report.tally.converted, report.tally.rejected) == (2, 0), written
    (tmp_path / "rejects.jsonl").write_bytes(LINES)  # a file of that name, not beside a report
    assert convert(f"{tmp_path}/rej*", str(tmp_path / "own.jsonl"), target="gemini").tally.converted == 2


def test_a_folder_of_json_files(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.traj").write_text(json.dumps(SHAPES["SWE-agent trajectory"].record, indent=1))
    (folder / "b.json").write_text(json.dumps(SHAPES["UIMessage v5"].record, indent=1))
    assert convert(str(folder), str(tmp_path / "out.jsonl"), target="openai-chat").tally.converted == 2
    (folder / "c.jsonl").write_bytes(LINES)
    (folder / "d.jsonl.gz").write_bytes(gzip.compress(LINES))
    assert convert(str(folder), str(tmp_path / "lines.jsonl"), target="openai-chat").tally.converted == 4


def test_commands_for_one_body_say_what_reads_this_one(tmp_path: Path) -> None:
    (tmp_path / "exports.json").write_text(json.dumps([SHAPES["ChatGPT conversation"].record] * 2))
    (tmp_path / "log.json").write_text(json.dumps(SHAPES["llm logs --json"].record))
    for command in (("inspect",), ("convert", "--to", "openai-chat")):
        assert b"dragoman batch convert" in run(*command, str(tmp_path / "exports.json")).stderr
        assert b"llm logs path" in run(*command, str(tmp_path / "log.json")).stderr


@pytest.mark.parametrize("cut", [b"", b"," + record()[:30], b',{"model":"m","messages":["'])
def test_an_array_without_its_end_is_an_error(tmp_path: Path, cut: bytes) -> None:
    """Nothing after the cut is known, even if it is between two records."""
    path = tmp_path / "array.json"
    path.write_bytes(b"[" + b",\n".join(LINES.splitlines()) + cut)
    with pytest.raises(SourceError, match="damaged after record 2"):
        convert(str(path), str(tmp_path / "out.jsonl"), target="anthropic-messages")
    assert not (tmp_path / "out.jsonl").exists()


def test_a_damaged_line_of_a_session_is_reported_where_it_is(tmp_path: Path) -> None:
    lines = [json.dumps(line).encode() for line in CLAUDE_CODE]
    path = tmp_path / "session.jsonl"
    path.write_bytes(b"\n".join([lines[0], b'{"type":"us', *lines[1:], b'{"type":"user","mess']))
    report = convert(str(path), str(tmp_path / "out.jsonl"), target="anthropic-messages")
    (unreadable,) = [loss for loss in report.tally.losses if loss.what == "unreadable"]
    assert unreadable.examples is not None
    assert unreadable.examples[0].path == "$[1].unreadable"


def test_files_that_are_not_sqlite_files_and_names_that_look_like_urls(tmp_path: Path) -> None:
    fake = tmp_path / "fake.sqlite"
    fake.write_bytes(b"SQLite format 3\0" + b"junk" * 100)
    with pytest.raises(TableError, match="not a SQLite file"):
        convert(str(fake), str(tmp_path / "out.jsonl"), target="anthropic-messages")
    odd = tmp_path / "50% of a?b#c.db"
    with closing(sqlite3.connect(odd)) as database:
        database.execute("create table t (model text, messages json)")
        database.execute("insert into t values ('m', ?)", (json.dumps(MESSAGES),))
        database.commit()
    assert convert(str(odd), str(tmp_path / "o.jsonl"), target="anthropic-messages").tally.converted == 1


@pytest.mark.parametrize("on_stdin", [False, True])
def test_archives_are_refused_with_the_command_that_unpacks_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, on_stdin: bool
) -> None:
    """None of them is a file of lines that are not JSON."""
    archive = tmp_path / "lines.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("lines.jsonl", LINES)
    packers = {"a zip archive": archive.read_bytes(), "bzip2": bz2.compress(LINES), "xz": lzma.compress(LINES)}
    for what, content in packers.items():
        name = tmp_path / "logs.eval"
        name.write_bytes(content)
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(content))))
        with pytest.raises(SourceError, match=what):
            convert("-" if on_stdin else str(name), str(tmp_path / "out.jsonl"), target="gemini")
        assert not (tmp_path / "out.jsonl").exists()


def test_sources_that_cannot_be_read_twice_or_are_not_utf_8(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """None of them is a file without records."""
    output = str(tmp_path / "out.jsonl")
    (tmp_path / "powershell.jsonl").write_bytes(LINES.decode().encode("utf-16"))
    with pytest.raises(SourceError, match="it is UTF-16"):
        convert(str(tmp_path / "powershell.jsonl"), output, target="gemini")
    os.mkfifo(tmp_path / "pipe")
    for name in (str(tmp_path / "pipe"), "/dev/null"):
        with pytest.raises(SourceError, match="a pipe or a device"):
            convert(name, output, target="gemini")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(LINES.decode().encode("utf-16")))))
    with pytest.raises(SourceError, match="it is UTF-16"):
        convert("-", output, target="gemini")
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(SourceError, match="stdin: it is closed"):
        convert("-", output, target="gemini")
