"""Bulk conversion in one process: every source, every sink, rejects, filters, the report."""

import gzip
import importlib.util
import io
import json
import re
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

import fsspec
import msgspec
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest
import zstandard
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.spec import AbstractBufferedFile

from dragoman.batch import (
    ConvertOptions,
    Job,
    JobError,
    JobOptions,
    RecordRejected,
    Reject,
    Report,
    RunOptions,
    SourceError,
    convert,
    convert_lines,
    map_batches,
    run_job,
)
from dragoman.batch.loss_counter import pattern_of
from dragoman.batch.sources import find_sources
from dragoman.errors import InvalidValue, NotConfigured, UnknownFormat
from dragoman.loss import SEVERITIES
from dragoman.translate import translate_request
from tests.batch.conversations import lines, one_by_one, written
from tests.datasets.stories import STORIES
from tests.support.promises import promise

ALONE = RunOptions(workers=1)
SMALL = 4_096


def converted(source: str, folder: Path, target: str = "anthropic-messages", shard_bytes: int = SMALL) -> bytes:
    output = folder / "out.jsonl"
    options = JobOptions(convert=ConvertOptions(target=target), shard_bytes=shard_bytes)
    run_job(Job([source], str(output), options), RunOptions(workers=1, overwrite=True))
    return output.read_bytes()


def as_lines(records: tuple[bytes, ...], folder: Path) -> Path:
    path = folder / "in.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + b"\r\n".join(records) + b"\r\n\r\n")
    return path


def as_gzip(records: tuple[bytes, ...], folder: Path) -> Path:
    path = folder / "in.jsonl.gz"
    # Two members, as `cat a.gz b.gz` gives.
    path.write_bytes(gzip.compress(b"\n".join(records[:5]) + b"\n") + gzip.compress(b"\n".join(records[5:])))
    return path


def as_zstd(records: tuple[bytes, ...], folder: Path) -> Path:
    path = folder / "in.jsonl.zst"
    pack = zstandard.ZstdCompressor().compress
    path.write_bytes(pack(b"\n".join(records[:5]) + b"\n") + pack(b"\n".join(records[5:])))
    return path


def as_array(records: tuple[bytes, ...], folder: Path) -> Path:
    path = folder / "in.json"
    path.write_text(json.dumps([json.loads(record) for record in records], indent=1, ensure_ascii=False), "utf-8")
    return path


def as_parquet(records: tuple[bytes, ...], folder: Path) -> Path:
    path = folder / "in.parquet"
    rows = [json.loads(record) for record in records]
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=7)
    return path


def as_arrow(records: tuple[bytes, ...], folder: Path) -> Path:
    path = folder / "in.arrow"
    table = pa.table({"messages": [json.dumps(json.loads(record)["messages"]) for record in records]})
    others = pa.Table.from_pylist([{k: v for k, v in json.loads(r).items() if k != "messages"} for r in records])
    for name in others.column_names:
        table = table.append_column(name, others[name])
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as stream:
        stream.write_table(table, max_chunksize=7)
    return path


def as_sqlite(records: tuple[bytes, ...], folder: Path) -> Path:
    path = folder / "in.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(
            "create table chats (id integer primary key, model text, messages text, tools text, temperature real)"
        )
        for number, record in enumerate(records):
            row = json.loads(record)
            values = (
                3 * number,
                row["model"],
                json.dumps(row["messages"]),
                json.dumps(row["tools"]),
                row["temperature"],
            )
            database.execute("insert into chats values (?, ?, ?, ?, ?)", values)
    database.close()
    return path


LAYOUTS: tuple[Callable[[tuple[bytes, ...], Path], Path], ...] = (
    as_lines, as_gzip, as_zstd, as_array, as_parquet, as_arrow,
)  # fmt: skip


@promise("batch:sources")
@pytest.mark.parametrize("write", LAYOUTS)
@pytest.mark.parametrize("shard_bytes", [900, 1 << 24])
def test_every_layout_gives_the_same_records(
    write: Callable[[tuple[bytes, ...], Path], Path], shard_bytes: int, tmp_path: Path
) -> None:
    records = lines(40)
    output = converted(str(write(records, tmp_path)), tmp_path, shard_bytes=shard_bytes)
    expected = one_by_one(records, "anthropic-messages")
    assert [json.loads(line) for line in output.splitlines()] == [json.loads(line) for line in expected.splitlines()]


@promise("batch:sources")
def test_a_folder_of_datasets_is_read_without_the_files_about_it(tmp_path: Path) -> None:
    """As `save_to_disk` writes a dictionary of splits; caches of `map` lie beside the data, an empty split has none."""
    folder = tmp_path / "dataset"
    for split, count in (("train", 3), ("test", 0)):
        (folder / split).mkdir(parents=True)
        for name in ("state.json", "dataset_info.json"):
            (folder / split / name).write_text("{}")
        for name in ("data-00000-of-00001", "cache-0a1b")[: 2 * bool(count)]:
            as_arrow(lines(count), tmp_path).rename(folder / split / f"{name}.arrow")
    (folder / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    assert converted(str(folder), tmp_path) == converted(str(as_arrow(lines(3), tmp_path)), tmp_path)
    with pytest.raises(SourceError, match="the folder has no"):
        find_sources([str(folder / "test")])
    for name in ("state.json", "other.json"):  # names like any other in other folders
        (tmp_path / "plain").mkdir(exist_ok=True)
        (tmp_path / "plain" / name).write_bytes(lines(1)[0])
    assert len(find_sources([str(tmp_path / "plain")])) == 2


@promise("batch:sources")
def test_rows_of_sqlite(tmp_path: Path) -> None:
    """Columns beside those of a request stay with it as what they are: keys that the format does not know."""
    records = lines(40)
    output = converted(str(as_sqlite(records, tmp_path)), tmp_path, target="openai-chat")
    rows = [json.loads(line) for line in output.splitlines()]
    assert [row["messages"] for row in rows] == [json.loads(record)["messages"] for record in records]
    assert [row["tools"] for row in rows] == [json.loads(record)["tools"] for record in records]


@promise("batch:sources")
def test_a_column_with_the_record(tmp_path: Path) -> None:
    records = lines(10)
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"id": list(range(10)), "chat": [record.decode() for record in records]}), path)
    options = JobOptions(convert=ConvertOptions(target="gemini"), column="chat")
    run_job(Job([str(path)], str(tmp_path / "out.jsonl"), options), ALONE)
    assert (tmp_path / "out.jsonl").read_bytes() == one_by_one(records, "gemini")
    with pytest.raises(Exception, match="no column 'talk'; the columns are id, chat"):
        Job(
            [str(path)], str(tmp_path / "two.jsonl"), JobOptions(convert=ConvertOptions(target="gemini"), column="talk")
        )


@promise("batch:sources")
def test_globs_folders_and_object_storage(tmp_path: Path) -> None:
    records = lines(30)
    for index in range(3):
        written_part = b"".join(record + b"\n" for record in records[10 * index : 10 * index + 10])
        (tmp_path / f"in-{index}.jsonl").write_bytes(written_part)
        with fsspec.open(f"memory://in/{index}.jsonl", "wb") as stream:
            stream.write(written_part)
    expected = one_by_one(records, "gemini")
    assert converted(str(tmp_path / "in-*.jsonl"), tmp_path, "gemini") == expected
    report = convert("memory://in/*.jsonl", "memory://out/all.jsonl.gz", ALONE, target="gemini")
    assert report.tally.converted == 30
    with fsspec.open("memory://out/all.jsonl.gz", "rb") as stream:
        assert gzip.decompress(stream.read()) == expected
    convert("memory://in/*.jsonl", "memory://shards", ALONE, target="gemini")
    assert converted_folder("memory://shards") == expected


class _Ranges(SimpleHTTPRequestHandler):
    """Files of a folder; ranges of bytes as object stores and servers of datasets give them."""

    def do_GET(self) -> None:
        content = Path(self.translate_path(self.path)).read_bytes()
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        start, end = (int(asked[1]), min(int(asked[2]) + 1, len(content))) if asked else (0, len(content))
        self.send_response(206 if asked else 200)
        if asked:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(content)}")
        self.send_header("Content-Length", str(end - start))
        self.send_header("Accept-Ranges", "bytes")
        self.end_headers()
        self.wfile.write(content[start:end])

    def log_message(self, *_: Any) -> None:
        pass


@promise("batch:sources")
@pytest.mark.parametrize("name", ["in.jsonl", "in.jsonl.gz", "in.parquet"])
def test_files_of_a_web_server(name: str, tmp_path: Path) -> None:
    records = lines(30)
    write = {"in.jsonl": as_lines, "in.jsonl.gz": as_gzip, "in.parquet": as_parquet}[name]
    write(records, tmp_path)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Ranges, directory=str(tmp_path)))
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    try:
        address = f"http://127.0.0.1:{server.server_port}/{name}"
        assert converted(address, tmp_path, shard_bytes=1_000) == converted(str(tmp_path / name), tmp_path)
        with pytest.raises(SourceError, match="cannot read"):
            converted(address + ".missing", tmp_path)
    finally:
        server.shutdown()
        serving.join()
        server.server_close()


class _Object(AbstractBufferedFile):  # type: ignore[misc]
    """A file of an object store: ranges of bytes, fetched when they are read."""

    def _fetch_range(self, start: int, end: int) -> bytes:
        return bytes(MemoryFileSystem.store[self.path].getvalue()[start:end])


class _Objects(MemoryFileSystem):  # type: ignore[misc]
    protocol = "objects"

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(super()._strip_protocol(path.replace("objects://", "memory://")))

    def _open(self, path: str, mode: str = "rb", **more: Any) -> Any:
        if mode != "rb" or path not in self.store:
            return super()._open(path, mode, **more)
        return _Object(self, path, mode, block_size=4096, size=len(self.store[path].getvalue()))


@promise("batch:sources")
def test_files_of_an_object_store_are_read_in_ranges(tmp_path: Path) -> None:
    fsspec.register_implementation("objects", _Objects, clobber=True)
    lines = b"".join(json.dumps({"model": "m", "messages": [{"role": "user", "content": "x" * size}]}).encode() + b"\n"
                     for size in (10, 20_000, 30, 9_000))  # fmt: skip
    (tmp_path / "in.jsonl").write_bytes(lines)
    with fsspec.open("objects://ranged/in.jsonl", "wb") as stream:
        stream.write(lines)
    convert(str(tmp_path / "in.jsonl"), str(tmp_path / "out.jsonl"), ALONE, target="gemini")
    convert("objects://ranged/in.jsonl", "objects://ranged/out.jsonl", ALONE, target="gemini")
    with fsspec.open("objects://ranged/out.jsonl", "rb") as stream:
        assert stream.read() == (tmp_path / "out.jsonl").read_bytes()


def test_storage_without_its_package_is_an_error_that_names_it() -> None:
    with pytest.raises(NotConfigured, match="no such storage"):
        convert("nowhere://bucket/in.jsonl", "out.jsonl", ALONE, target="gemini")


@promise("batch:sources")
@pytest.mark.parametrize(("scheme", "package"), [("gs", "gcsfs"), ("az", "adlfs")])
def test_storage_of_other_clouds_names_its_package(scheme: str, package: str) -> None:
    if importlib.util.find_spec(package) is not None:
        pytest.skip(f"{package} is installed")
    with pytest.raises(NotConfigured, match=package):
        convert(f"{scheme}://bucket/in.jsonl", "out.jsonl", ALONE, target="gemini")


def converted_folder(name: str) -> bytes:
    files = fsspec.filesystem("memory")
    return b"".join(files.cat(path) for path in sorted(files.glob(name + "/part-*")))


@promise("batch:sinks")
@pytest.mark.parametrize("suffix", ["jsonl", "jsonl.gz", "jsonl.zst", "json", "parquet", "arrow", "sqlite", ""])
def test_every_sink(suffix: str, tmp_path: Path) -> None:
    records = lines(40)
    source = written(tmp_path, 40)
    output = tmp_path / (f"out.{suffix}" if suffix else "out")
    options = JobOptions(convert=ConvertOptions(target="openai-responses"), shard_bytes=SMALL)
    run_job(Job([str(source)], str(output), options), ALONE)
    expected = [json.loads(line) for line in one_by_one(records, "openai-responses").splitlines()]
    assert read_back(output, suffix) == expected
    assert not list(tmp_path.rglob("*.part"))
    assert not list(tmp_path.rglob("*.batch")), "the job leaves nothing of its own behind"


@promise("batch:sinks")
@pytest.mark.parametrize("suffix", ["json", "parquet", "arrow", "sqlite"])
def test_a_file_of_no_records_is_one_that_can_be_read(suffix: str, tmp_path: Path) -> None:
    output = tmp_path / f"out.{suffix}"
    source = tmp_path / "in.jsonl"
    source.write_bytes(b"{bad\n" * 3)
    report = run_job(Job([str(source)], str(output), JobOptions(convert=ConvertOptions(target="gemini"))), ALONE)
    assert report.tally.rejected == 3
    assert read_back(output, suffix) == []


def read_rows(output: Path, suffix: str) -> list[dict[str, Any]]:
    if suffix != "sqlite":
        table = pq.read_table(output) if suffix == "parquet" else pa.ipc.open_stream(output).read_all()
        return cast("list[dict[str, Any]]", table.to_pylist())
    with closing(sqlite3.connect(output)) as database:
        database.row_factory = sqlite3.Row
        return [dict(row) for row in database.execute("select * from records")]


def read_back(output: Path, suffix: str) -> list[object]:
    if suffix == "json":
        return cast("list[object]", json.loads(output.read_bytes()))
    if suffix in {"parquet", "arrow", "sqlite"}:
        rows = read_rows(output, suffix)
        nested = {"input", "tools", "include"}
        return [
            {key: json.loads(value) if key in nested else value for key, value in row.items() if value is not None}
            for row in rows
        ]
    if suffix == "":
        content = b"".join(path.read_bytes() for path in sorted(output.glob("part-*.jsonl")))
    elif suffix == "jsonl.gz":
        content = gzip.decompress(output.read_bytes())
    elif suffix == "jsonl.zst":
        content = (
            zstandard.ZstdDecompressor().stream_reader(io.BytesIO(output.read_bytes()), read_across_frames=True).read()
        )
    else:
        content = output.read_bytes()
    return [json.loads(line) for line in content.splitlines()]


@promise("batch:rejects")
@pytest.mark.parametrize("shard_bytes", [SMALL, 1 << 24])
def test_a_bad_record_does_not_stop_the_others(shard_bytes: int, tmp_path: Path) -> None:
    records = lines(60, bad=7)
    source = written(tmp_path, 60, bad=7)
    output = tmp_path / "out.jsonl"
    report = run_job(
        Job([str(source)], str(output), JobOptions(convert=ConvertOptions(target="gemini"), shard_bytes=shard_bytes)),
        ALONE,
    )
    assert output.read_bytes() == one_by_one(records, "gemini")
    rejects = [
        msgspec.json.decode(line, type=Reject)
        for line in (tmp_path / "out.jsonl.rejects.jsonl").read_bytes().splitlines()
    ]
    assert [reject.line for reject in rejects] == list(range(7, 61, 7))
    assert all(reject.path.startswith("$") and reject.source == str(source) for reject in rejects)
    assert all(reject.record is None for reject in rejects), "records may hold secrets"
    assert report.tally.rejected == len(rejects)
    assert sum(reject.count for reject in report.tally.rejects) == len(rejects)
    assert {one.line for reject in report.tally.rejects for one in reject.examples} <= set(range(7, 61, 7))


@promise("batch:rejects")
def test_rejected_records_are_kept_on_request_only(tmp_path: Path) -> None:
    source = written(tmp_path, 10, bad=5)
    convert(str(source), str(tmp_path / "out.jsonl"), ALONE, target="gemini", keep_rejected=True)
    rejects = (tmp_path / "out.jsonl.rejects.jsonl").read_bytes().splitlines()
    kept = [json.loads(line)["record"].encode() for line in rejects]
    assert kept == [lines(10, bad=5)[4], lines(10, bad=5)[9]]


@promise("batch:rejects")
def test_a_limit_of_errors_stops_and_goes_on(tmp_path: Path) -> None:
    source = written(tmp_path, 60, bad=3)
    job = Job(
        [str(source)],
        str(tmp_path / "out.jsonl"),
        JobOptions(convert=ConvertOptions(target="gemini"), shard_bytes=SMALL),
    )
    with pytest.raises(JobError, match="--max-errors 5"):
        run_job(job, RunOptions(workers=1, max_errors=5))
    assert not (tmp_path / "out.jsonl").exists()
    report = run_job(job, RunOptions(workers=1, max_errors=50))
    assert report.tally.rejected == 20
    assert (tmp_path / "out.jsonl").read_bytes() == one_by_one(lines(60, bad=3), "gemini")


@promise("batch:detection")
def test_files_that_mix_formats_are_read_record_by_record(tmp_path: Path) -> None:
    records = tuple(
        record
        for group in zip(
            lines(12), lines(12, "anthropic-messages"), lines(12, "gemini"), lines(12, "bedrock-converse"), strict=True
        )
        for record in group
    )
    path = tmp_path / "in.jsonl"
    path.write_bytes(b"\n".join(records))
    report = convert(str(path), str(tmp_path / "out.jsonl"), ALONE, target="openai-responses")
    assert (tmp_path / "out.jsonl").read_bytes() == one_by_one(records, "openai-responses")
    assert report.tally.formats == {
        f"{name} request": 12 for name in ("openai-chat", "anthropic-messages", "gemini", "bedrock-converse")
    }


@promise("batch:detection")
def test_answers_among_requests(tmp_path: Path) -> None:
    answer: dict[str, object] = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "c",
        "content": [{"type": "text", "text": "hi"}],
    }
    answer |= {"stop_reason": "end_turn", "stop_sequence": None, "usage": {"input_tokens": 3, "output_tokens": 4}}
    path = tmp_path / "in.jsonl"
    path.write_bytes(b"\n".join([*lines(5), json.dumps(answer).encode()]))
    report = convert(str(path), str(tmp_path / "out.jsonl"), ALONE, target="gemini")
    assert report.tally.formats == {"openai-chat request": 5, "anthropic-messages response": 1}
    assert (report.tally.input_tokens, report.tally.output_tokens) == (3, 4)


@promise("batch:detection")
def test_what_the_caller_names_is_not_looked_for() -> None:
    """A body of two readings: as Chat its `system` is an unknown key, as Messages it is the system prompt."""
    body = b'{"model":"m","max_tokens":5,"system":"be brief","messages":[{"role":"user","content":"hi"}]}'
    as_messages = json.loads(convert_lines(body, target="ollama-chat", source="anthropic-messages", kind="request"))
    as_chat = json.loads(convert_lines(body, target="ollama-chat", source="openai-chat", kind="request"))
    assert as_messages["messages"][0] == {"role": "system", "content": "be brief"}
    assert as_chat["messages"][0]["role"] == "user"


@promise("batch:options")
@pytest.mark.parametrize("severity", SEVERITIES)
def test_records_are_left_out_by_severity(severity: str, tmp_path: Path) -> None:
    records = [json.loads(line) for line in lines(20)]
    for number, record in enumerate(records):
        if number % 2:
            record["seed"] = number  # Messages has none: dropped
    path = tmp_path / "in.jsonl"
    path.write_text("\n".join(map(json.dumps, records)))
    options = ConvertOptions(target="anthropic-messages", leave_out=severity)  # type: ignore[arg-type]
    report = run_job(Job([str(path)], str(tmp_path / "out.jsonl"), JobOptions(convert=options)), ALONE)
    worst = SEVERITIES.index(severity)
    # max_tokens is invented for every record, so only the worst severity keeps any.
    assert (report.tally.converted, report.tally.left_out) == (
        (10, 10) if worst < SEVERITIES.index("invented") else (0, 20)
    )
    assert len((tmp_path / "out.jsonl").read_bytes().splitlines()) == report.tally.converted


@promise("batch:options")
def test_strict_rejects_and_sample_is_stable(tmp_path: Path) -> None:
    source = written(tmp_path, 200)
    strict = convert(str(source), str(tmp_path / "strict.jsonl"), ALONE, target="anthropic-messages", strict=True)
    assert strict.tally.rejected == 200
    first, again = (
        convert(str(source), str(tmp_path / f"{name}.jsonl"), ALONE, target="gemini", sample=0.25)
        for name in ("a", "b")
    )
    assert first.digests == again.digests
    assert 25 <= first.tally.converted <= 75
    assert first.tally.converted + first.tally.not_sampled == 200


@promise("batch:options")
def test_a_dry_run_reports_and_writes_no_records(tmp_path: Path) -> None:
    source = written(tmp_path, 20)
    options = JobOptions(convert=ConvertOptions(target="gemini"), dry_run=True)
    report = run_job(Job([str(source)], str(tmp_path / "out.jsonl"), options), ALONE)
    assert report.tally.converted == 20
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "in.jsonl",
        "out.jsonl.report.html",
        "out.jsonl.report.json",
    ]


@promise("batch:report")
def test_the_report_counts_every_loss(tmp_path: Path) -> None:
    records = lines(30)
    source = written(tmp_path, 30)
    report = convert(str(source), str(tmp_path / "out.jsonl"), ALONE, target="anthropic-messages")
    again = msgspec.json.decode((tmp_path / "out.jsonl.report.json").read_bytes(), type=Report)
    assert again == report
    losses = [
        loss
        for record in records
        for loss in translate_request(record, source="openai-chat", target="anthropic-messages").losses
    ]
    assert sum(report.by_severity().values()) == len(losses) > 0
    assert report.tally.input_sizes.total == sum(map(len, records))
    assert report.tally.output_sizes.total == len((tmp_path / "out.jsonl").read_bytes()) - 30
    for loss in report.tally.losses:
        assert all(1 <= one.line <= 30 for one in loss.examples)
    page = (tmp_path / "out.jsonl.report.html").read_text()
    assert "30 of 30 records converted to anthropic-messages" in page
    assert "<script" not in page


@promise("batch:report")
def test_the_page_shows_no_markup_of_the_input(tmp_path: Path) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "x"}], "<img src=x onerror=alert(1)>": 1}
    path = tmp_path / "<b>in.jsonl"
    path.write_text(json.dumps(body))
    convert(str(path), str(tmp_path / "out.jsonl"), ALONE, target="gemini")
    page = (tmp_path / "out.jsonl.report.html").read_text()
    assert "<img" not in page
    assert "<b>in" not in page


@promise("batch:bad-input")
def test_clear_errors_before_anything_is_read(tmp_path: Path) -> None:
    source = str(written(tmp_path, 3))
    out = str(tmp_path / "out.jsonl")
    with pytest.raises(UnknownFormat):
        convert(source, out, target="anthropic")
    with pytest.raises(SourceError, match="no such file"):
        convert(str(tmp_path / "none.jsonl"), out, target="gemini")
    with pytest.raises(InvalidValue, match=r"\(0, 1\]"):
        convert(source, out, target="gemini", sample=2)
    with pytest.raises(InvalidValue, match=r"ends in \.jsonl"):
        convert(source, str(tmp_path / "out.csv"), target="gemini")
    (tmp_path / "out.jsonl").write_text("mine")
    with pytest.raises(JobError, match="--overwrite"):
        convert(source, out, target="gemini")
    assert (tmp_path / "out.jsonl").read_text() == "mine"
    (tmp_path / "empty.jsonl").write_text("")
    report = convert(str(tmp_path / "empty.jsonl"), str(tmp_path / "nothing.jsonl"), target="gemini")
    assert report.tally.records == 0


@promise("batch:lines")
def test_lines_in_memory() -> None:
    records = lines(20, bad=9)
    rejected: list[Reject] = []
    output = convert_lines(b"\n".join(records), target="gemini", on_reject=rejected.append)
    assert output == one_by_one(records, "gemini")
    assert [reject.line for reject in rejected] == [9, 18]
    with pytest.raises(RecordRejected, match="line 9"):
        convert_lines(b"\n".join(records), target="gemini")


@promise("batch:lines")
def test_arrow_table_in_arrow_table_out() -> None:
    records = lines(12, bad=5)
    table = pa.table({"chat": [record.decode() for record in records]})
    result = map_batches(table, target="anthropic-messages", column="chat")
    assert result.num_rows == 12
    assert b"".join(r.encode() + b"\n" for r in result["record"].to_pylist() if r) == one_by_one(
        records, "anthropic-messages"
    )
    assert [bool(reason) for reason in result["rejected"].to_pylist()] == [number % 5 == 0 for number in range(1, 13)]
    assert all(
        losses
        for losses, record in zip(result["losses"].to_pylist(), result["record"].to_pylist(), strict=True)
        if record
    )


@promise("batch:lines")
def test_a_frame_is_read_as_its_table() -> None:
    """Frames of Polars, pandas and DuckDB are objects with this method, and no common class."""

    class Frame:
        def __init__(self, table: pa.Table) -> None:
            self._table = table

        def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
            return self._table.__arrow_c_stream__(requested_schema)

    table = pa.table({"chat": [line.decode() for line in lines(5)]})
    expected = map_batches(table, target="gemini", column="chat")
    assert map_batches(Frame(table), target="gemini", column="chat").equals(expected)
    assert map_batches(table.to_batches()[0], target="gemini", column="chat").equals(expected)
    pandas = pytest.importorskip("pandas")
    assert map_batches(pandas.DataFrame(table.to_pydict()), target="gemini", column="chat").equals(expected)
    wrong: Any = [1]
    with pytest.raises(InvalidValue, match="found list"):
        map_batches(wrong, target="gemini")


@promise("batch:sources")
@pytest.mark.parametrize("name", ["claude-code", "codex"])
@pytest.mark.parametrize("named", [True, False])
def test_a_session_file_is_one_conversation(name: str, named: bool, tmp_path: Path) -> None:  # noqa: FBT001
    for index in range(3):
        lines_of = b"".join(json.dumps(line).encode() + b"\n" for line in STORIES[name])
        (tmp_path / f"session-{index}.jsonl").write_bytes(lines_of + b'{"cut')
    report = convert(
        str(tmp_path / "session-*.jsonl"), str(tmp_path / "out.jsonl"), ALONE, target="openai-chat",
        source=name if named else None,
    )  # fmt: skip
    assert report.tally.formats == {f"{name} request": 3}
    assert report.tally.rejected == 0
    first = json.loads((tmp_path / "out.jsonl").read_bytes().splitlines()[0])
    assert first["messages"][-1] == {"role": "assistant", "content": "3 degrees."}


@promise("batch:report")
def test_the_same_place_in_all_messages_is_one_row_of_the_report() -> None:
    assert pattern_of("$.messages[12].content[0].text") == "$.messages[*].content[*].text"
    assert pattern_of("$.mapping['0a1b2c3d-1111-4222-8333-444455556666'].message.id") == "$.mapping[*].message.id"
    assert pattern_of("$['gen_ai.input.messages'][3]") == "$['gen_ai.input.messages'][*]"
