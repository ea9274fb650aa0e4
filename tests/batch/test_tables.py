"""Tables as output: what they hold, and that they give the same records when they are read again."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import fsspec
import pyarrow.parquet as pq
import pytest

from dragoman.batch import ConvertOptions, Job, JobOptions, RunOptions, SourceError, convert, run_job
from dragoman.batch.tables import TableError
from tests.batch.conversations import lines, one_by_one, written
from tests.cli.command import run
from tests.support.promises import promise

ALONE = RunOptions(workers=1, overwrite=True)
SUFFIXES = ("parquet", "arrow", "sqlite")
MESSAGES = [{"role": "user", "content": "hi"}]
ODD: tuple[dict[str, Any], ...] = (
    {"system": [{"type": "text", "text": "Be brief."}], "stream": False, "metadata": {"user_id": "u"}},
    {"system": "[1, 2] is a list", "temperature": 1},
    {"system": "[1, 2]", "temperature": 0.5, "tool_choice": {"type": "auto"}, "tools": [{"name": "a"}]},
    {"system": "true", "stream": False, "max_tokens": 2**53 + 1},
    {"system": '"quoted"', "stop_sequences": ["é\u2028"]},
    {"future": 2**64, "top_k": 1}, {"future": 7.5, "top_k": 2},
)  # fmt: skip
"""Texts that look like JSON beside JSON, integers beside floats, numbers that no column has."""


def bodies(*changes: dict[str, Any]) -> list[dict[str, Any]]:
    common: dict[str, Any] = {"model": "claude-sonnet-5", "max_tokens": 64, "messages": MESSAGES}
    tool = {"input_schema": {"type": "object"}}
    return [
        {**common, **change, **({"tools": [{**one, **tool} for one in change["tools"]]} if "tools" in change else {})}
        for change in changes
    ]


def job(source: Path, output: Path, target: str = "anthropic-messages", shard_bytes: int = 1 << 20) -> Job:
    return Job([str(source)], str(output), JobOptions(convert=ConvertOptions(target=target), shard_bytes=shard_bytes))


def write_lines(folder: Path, records: list[Any]) -> Path:
    path = folder / "in.jsonl"
    path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records), "utf-8")
    return path


def read_lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line]


@promise("batch:tables")
@pytest.mark.parametrize("shard_bytes", [150, 1 << 20])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_table_gives_the_same_records_again(suffix: str, shard_bytes: int, tmp_path: Path) -> None:
    source, table = write_lines(tmp_path, bodies(*ODD)), tmp_path / f"table.{suffix}"
    run_job(job(source, tmp_path / "direct.jsonl"), ALONE)
    report = run_job(job(source, table, shard_bytes=shard_bytes), ALONE)
    assert (report.shards > 1) == (shard_bytes == 150)
    again = run_job(job(table, tmp_path / "again.jsonl"), ALONE)
    assert again.tally.rejected == 0
    assert read_lines(tmp_path / "again.jsonl") == read_lines(tmp_path / "direct.jsonl")


@promise("batch:tables")
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_records_that_are_lists_are_one_column(suffix: str, tmp_path: Path) -> None:
    source, table = written(tmp_path, 20), tmp_path / f"table.{suffix}"
    run_job(job(source, tmp_path / "direct.jsonl", "message-list"), ALONE)
    run_job(job(source, table, "message-list", shard_bytes=4_096), ALONE)
    run_job(job(table, tmp_path / "again.jsonl", "message-list"), ALONE)
    assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "direct.jsonl").read_bytes()


@promise("batch:sinks")
@pytest.mark.parametrize("name", ["out.sqlite", "out.db", "out.sqlite3"])
def test_a_database_has_a_table_with_typed_columns(name: str, tmp_path: Path) -> None:
    source, output = written(tmp_path, 40), tmp_path / name
    run_job(job(source, output, "openai-chat", shard_bytes=4_096), ALONE)
    with closing(sqlite3.connect(output)) as database:
        columns = {row[1]: row[2] for row in database.execute("pragma table_info(records)")}
        rows = database.execute(
            "select model, json_extract(messages, '$[0].role'), temperature from records"
        ).fetchall()
    assert columns["model"] == "TEXT"
    assert columns["messages"] == columns["tools"] == "JSON"
    assert columns["temperature"] == "REAL"
    expected = [json.loads(line) for line in lines(40)]
    assert rows == [(body["model"], body["messages"][0]["role"], body["temperature"]) for body in expected]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        ["in.jsonl", name, f"{name}.report.json", f"{name}.report.html"]
    )


@promise("batch:sinks", "batch:deterministic")
def test_a_database_is_the_same_bytes_every_time(tmp_path: Path) -> None:
    source = written(tmp_path, 200)
    outputs = [tmp_path / "one.sqlite", tmp_path / "two.sqlite"]
    for workers, output in enumerate(outputs, 1):
        run_job(job(source, output, shard_bytes=1 << 16), RunOptions(workers=workers))
    assert outputs[0].read_bytes() == outputs[1].read_bytes()


@promise("batch:sinks")
@pytest.mark.parametrize("names", [("Seed", "sEED"), tuple(f"key{number}" for number in range(1_001)), ("a\0b",)])
def test_keys_that_cannot_be_columns_of_a_database(names: tuple[str, ...], tmp_path: Path) -> None:
    """SQLite does not distinguish letters by case, and limits columns: the records are in one column then."""
    records = bodies(*({name: 1} for name in names))
    source, output = write_lines(tmp_path, records), tmp_path / "out.sqlite"
    run_job(job(source, output), ALONE)
    with closing(sqlite3.connect(output)) as database:
        assert [row[1] for row in database.execute("pragma table_info(records)")] == ["record"]
    run_job(job(output, tmp_path / "again.jsonl"), ALONE)
    assert read_lines(tmp_path / "again.jsonl") == records


@promise("batch:sinks")
def test_databases_of_nothing_and_on_object_storage(tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_bytes(b"{bad\n")
    run_job(job(tmp_path / "bad.jsonl", tmp_path / "none.db"), ALONE)
    with closing(sqlite3.connect(tmp_path / "none.db")) as database:
        assert database.execute("select count(*) from records").fetchone() == (0,)
    convert(str(written(tmp_path, 9)), "memory://tables/out.sqlite", ALONE, target="gemini")
    (tmp_path / "fetched.sqlite").write_bytes(fsspec.filesystem("memory").cat("/tables/out.sqlite"))
    with closing(sqlite3.connect(tmp_path / "fetched.sqlite")) as database:
        assert database.execute("select count(*) from records").fetchone() == (9,)
    with pytest.raises(TableError, match="copy it to this machine"):
        convert("memory://tables/out.sqlite", str(tmp_path / "no.jsonl"), ALONE, target="gemini")


@promise("batch:sources")
def test_types_that_a_database_declares(tmp_path: Path) -> None:
    path = tmp_path / "chats.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("create table chats (model text, messages json, stream boolean, response_format json)")
        shape = json.dumps({"type": "json_object"})
        database.execute("insert into chats values ('m', ?, 0, ?)", (json.dumps(MESSAGES), shape))
    run_job(job(path, tmp_path / "out.jsonl", "openai-chat"), ALONE)
    body = {"model": "m", "messages": MESSAGES, "stream": False, "response_format": {"type": "json_object"}}
    assert read_lines(tmp_path / "out.jsonl") == [body]


@promise("batch:sinks")
def test_other_programs_see_plain_columns(tmp_path: Path) -> None:
    """The mark of a column of JSON is metadata: readers that do not know it see text."""
    run_job(job(write_lines(tmp_path, bodies(*ODD)), tmp_path / "out.parquet"), ALONE)
    table = pq.read_table(tmp_path / "out.parquet")
    assert {str(field.type) for field in table.schema} <= {"string", "int64", "double", "bool", "null"}
    assert table.column("system").to_pylist()[:3] == [
        '[{"type":"text","text":"Be brief."}]',
        "[1, 2] is a list",
        '"[1, 2]"',
    ]


@promise("batch:sources")
@pytest.mark.parametrize("name", ["memory://folder", "memory://folder/"])
def test_a_folder_on_object_storage_is_read_as_one_on_this_machine(name: str, tmp_path: Path) -> None:
    files = fsspec.filesystem("memory")
    records = lines(20)
    local = tmp_path / "folder"
    contents = {
        "a/0.jsonl": records[:10], "b/1.jsonl": records[10:], "b/.2.jsonl": records[:1], "c/report.json": records[:1],
        ".batch/part.jsonl": records[:1],
    }  # fmt: skip
    for path, some in contents.items():
        files.pipe(f"/folder/{path}", b"".join(record + b"\n" for record in some))
        (local / path).parent.mkdir(parents=True, exist_ok=True)
        (local / path).write_bytes(b"".join(record + b"\n" for record in some))
    for source in (name, str(local)):
        convert(source, str(tmp_path / "out.jsonl"), ALONE, target="gemini")
        assert (tmp_path / "out.jsonl").read_bytes() == one_by_one(records, "gemini")
    files.pipe("/empty/notes.txt", b"nothing")
    with pytest.raises(SourceError, match="the folder has no"):
        convert("memory://empty", str(tmp_path / "no.jsonl"), ALONE, target="gemini")
    with pytest.raises(SourceError, match="no such file"):
        convert("memory://missing", str(tmp_path / "no.jsonl"), ALONE, target="gemini")


@promise("batch:bad-input")
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_table_is_not_read_from_stdin(suffix: str, tmp_path: Path) -> None:
    table = tmp_path / f"table.{suffix}"
    run_job(job(written(tmp_path, 5), table), ALONE)
    done = run("batch", "convert", "-", "--to", "gemini", "-o", str(tmp_path / "out.jsonl"), stdin=table.read_bytes())
    assert done.returncode == 2
    assert b"table from stdin" in done.stderr
    assert b"Traceback" not in done.stderr


@promise("batch:bad-input")
def test_a_table_that_a_database_does_not_have(tmp_path: Path) -> None:
    database = tmp_path / "table.sqlite"
    run_job(job(written(tmp_path, 5), database), ALONE)
    options = JobOptions(convert=ConvertOptions(target="gemini"), table="chats")
    with pytest.raises(TableError, match="no table 'chats'; the tables are records"):
        Job([str(database)], str(tmp_path / "out.jsonl"), options)
