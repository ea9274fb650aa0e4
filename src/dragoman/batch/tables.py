"""Rows of Parquet, Arrow and SQLite files as JSON records, and back; and conversion of Arrow tables in memory.

Arrow has one type per column, so it fills missing keys of a record with nulls. These nulls are dropped when a row is
read: Arrow does not distinguish a missing key from one that is null.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, Protocol, cast
from urllib.parse import quote

import msgspec

from dragoman.batch.batch_file_converter import converter_for
from dragoman.batch.llm_database import conversation_ids, conversations, is_llm_database
from dragoman.batch.options import ConvertOptions, JobOptions
from dragoman.batch.record_converter import PACKED, SNIFFED, expected_format, unpacked_json
from dragoman.batch.rejects import Reject
from dragoman.batch.remote_files import is_remote, remote_file_system
from dragoman.errors import DragomanError, InvalidValue, NotConfigured
from dragoman.installation import install_command
from dragoman.ir.values import exact_json

if TYPE_CHECKING:
    import pyarrow as pa

JSON_MARK = {b"dragoman": b"json"}
"""Metadata of a column that has JSON text: every value of it that is JSON is read as JSON."""
RECORD_COLUMN = "record"
"""The column of records that are not objects. A table that has only this one is read as its values."""
_LLM_CONVERSATIONS = 1_000
_ROWS = 512
"""Rows in memory at a time."""


class TableError(DragomanError):
    """A table or column that does not exist, or that has to be named."""


def arrow() -> Any:
    """Return the package pyarrow. Raises an error that says how to install it."""
    try:
        import pyarrow  # noqa: ICN001, PLC0415 - an extra
        import pyarrow.ipc  # noqa: PLC0415
        import pyarrow.parquet  # noqa: PLC0415
    except ImportError as error:
        message = f"Parquet and Arrow files need pyarrow: {install_command('batch')}"
        raise NotConfigured(message, missing="pyarrow") from error
    return pyarrow


# ── shards of a table ──


def edges(name: str, layout: str, options: JobOptions) -> list[int]:
    """Return where the shards of a table begin, and where the last one ends: rows, row groups or row ids."""
    if layout == "sqlite":
        return _sqlite_edges(name, options)
    if layout == "parquet":
        metadata = _parquet_file(name).metadata
        sizes = [metadata.row_group(index).total_byte_size for index in range(metadata.num_row_groups)]
    else:
        sizes = [batch.nbytes for batch in _arrow_batches(name)]
    found, total = [0], 0
    for group, size in enumerate(sizes, 1):
        total += size
        if total >= options.shard_bytes or group == len(sizes):
            found.append(group)
            total = 0
    return found


def read_rows(name: str, layout: str, start: int, stop: int, options: JobOptions) -> Iterator[bytes]:
    """Yield the rows of a shard as JSON."""
    if layout == "sqlite":
        return _sqlite_rows(name, start, stop, options)
    batches = _parquet_batches(name, start, stop) if layout == "parquet" else _arrow_batches(name, start, stop)
    return (row for batch in batches for row in rows_of(batch, options.column))


def rows_of(batch: pa.RecordBatch, column: str | None = None) -> Iterator[bytes]:
    """Yield the rows of a batch as JSON: the whole row, or the value of one column."""
    if column is not None and column not in batch.schema.names:
        raise TableError(f"no column {column!r}; the columns are {', '.join(batch.schema.names)}")
    marked = [field.name for field in batch.schema if field.metadata and field.metadata.items() >= JSON_MARK.items()]
    if column is None and marked == batch.schema.names == [RECORD_COLUMN]:
        column = RECORD_COLUMN
    for begin in range(0, batch.num_rows, _ROWS):
        for row in batch.slice(begin, _ROWS).to_pylist():
            if column is None:
                row.update({name: json_value(row[name]) for name in marked})
            yield _record(row if column is None else row[column], whole_row=column is None)


def is_json(text: str) -> bool:
    return exact_json(text.encode()) is not None


def json_value(value: Any) -> Any:
    """Return a value of a column of JSON: JSON text as its exact JSON, other text unchanged."""
    found = exact_json(value.encode()) if isinstance(value, str) else None
    return value if found is None else found


def _record(value: Any, *, whole_row: bool) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    value = _without_nulls(value)
    if whole_row and isinstance(value, dict):
        value = {key: unpacked_json(item) if key in PACKED else item for key, item in value.items()}
    return msgspec.json.encode(value)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value


def _open_file(name: str) -> Any:
    if is_remote(name):
        files, path = remote_file_system(name)
        return files.open(path, "rb")
    return name


def _parquet_file(name: str) -> Any:
    pyarrow = arrow()
    try:
        return pyarrow.parquet.ParquetFile(_open_file(name))
    except pyarrow.ArrowException as error:
        raise TableError(f"cannot read {name}: it is not a Parquet file, or is damaged ({error})") from error


def _parquet_batches(name: str, start: int, stop: int) -> Iterator[pa.RecordBatch]:
    file = _parquet_file(name)
    yield from file.iter_batches(batch_size=_ROWS, row_groups=list(range(start, stop)))


def _arrow_batches(name: str, start: int = 0, stop: int | None = None) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a file in either layout: `datasets` writes the stream layout, others the file layout."""
    pyarrow = arrow()
    source = _open_file(name) if is_remote(name) else pyarrow.memory_map(name)
    try:
        reader = pyarrow.ipc.open_file(source)
    except pyarrow.ArrowInvalid:
        source.seek(0)
        try:
            stream = pyarrow.ipc.open_stream(source)
        except pyarrow.ArrowException as error:
            raise TableError(f"cannot read {name}: it is not an Arrow file, or is damaged ({error})") from error
        for index, batch in enumerate(stream):
            if stop is not None and index >= stop:
                return
            if index >= start:
                yield batch
        return
    for index in range(start, reader.num_record_batches if stop is None else stop):
        yield reader.get_batch(index)


# ── SQLite ──

_BOOLEANS = frozenset({"BOOLEAN", "BOOL"})


@contextmanager
def _open_database(name: str) -> Iterator[sqlite3.Connection]:
    """Yield a connection; errors of the file are those of the source."""
    try:
        with closing(_connect(name)) as database:
            yield database
    except sqlite3.Error as error:
        raise TableError(f"cannot read {name}: it is not a SQLite file, or is damaged or locked ({error})") from error


def _connect(name: str) -> sqlite3.Connection:
    if is_remote(name):
        raise TableError(f"cannot read {name}: SQLite reads files of this machine only; copy it to this machine first")
    return sqlite3.connect(f"file:{quote(name)}?mode=ro", uri=True)


def _table(database: sqlite3.Connection, name: str, options: JobOptions) -> str:
    found = [row[0] for row in database.execute("select name from sqlite_master where type = 'table' order by name")]
    tables = [table for table in found if not table.startswith("sqlite_")]
    if options.table is None and len(tables) == 1:
        return cast("str", tables[0])
    if options.table in tables:
        return cast("str", options.table)
    problem = "name the table with --table" if options.table is None else f"no table {options.table!r}"
    raise TableError(f"{name}: {problem}; the tables are {', '.join(tables)}")


def _is_llm(database: sqlite3.Connection, options: JobOptions) -> bool:
    """Return whether the records are conversations of `llm`, which are spread over many tables."""
    return options.table is None and is_llm_database(database)


def quote_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _sqlite_edges(name: str, options: JobOptions) -> list[int]:
    """Return the row ids at which shards begin. Row sizes are unknown: a shard gets as many rows as fit on average."""
    with _open_database(name) as database:
        if _is_llm(database, options):
            count = len(conversation_ids(database))
            return [*range(0, count, _LLM_CONVERSATIONS), count]
        table = quote_name(_table(database, name, options))
        count, lowest, highest = database.execute(f"select count(*), min(rowid), max(rowid) from {table}").fetchone()  # noqa: S608
        if not count:
            return [0]
        size = database.execute(
            "select page_count * page_size from pragma_page_count(), pragma_page_size()"
        ).fetchone()[0]
        rows = max(1, count * options.shard_bytes // max(size, 1))
        numbered = f"select rowid, row_number() over (order by rowid) as n from {table}"  # noqa: S608
        query = f"select rowid from ({numbered}) where (n - 1) % ? = 0"  # noqa: S608
        begins = [row[0] for row in database.execute(query, (rows,))]
    return [*(begins or [lowest]), highest + 1]


def _sqlite_rows(name: str, start: int, stop: int, options: JobOptions) -> Iterator[bytes]:
    with _open_database(name) as database:
        if _is_llm(database, options):
            yield from conversations(database, start, stop)
            return
        database.row_factory = sqlite3.Row
        table = quote_name(_table(database, name, options))
        declared = {row[1]: str(row[2]).upper() for row in database.execute(f"pragma table_info({table})")}
        column = options.column or (RECORD_COLUMN if declared == {RECORD_COLUMN: "JSON"} else None)
        if column is not None and column not in declared:
            raise TableError(f"{name}: no column {column!r}; the columns are {', '.join(declared)}")
        query = f"select * from {table} where rowid >= ? and rowid < ? order by rowid"  # noqa: S608
        for row in database.execute(query, (start, stop)):
            value = row[column] if column is not None else _declared_values(row, declared)
            yield _record(value, whole_row=column is None)


def _declared_values(row: sqlite3.Row, declared: Mapping[str, str]) -> dict[str, Any]:
    """Return a row with the types that SQLite itself lacks, as its columns declare them."""
    values = dict(row)
    for name, kind in declared.items():
        if kind == "JSON":
            values[name] = json_value(values[name])
        elif kind in _BOOLEANS and values[name] in {0, 1}:
            values[name] = bool(values[name])
    return values


# ── tables in memory ──


class SupportsArrowStream(Protocol):
    """A frame that hands out its contents as Arrow: of Polars, pandas, DuckDB and others."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


def _table_from(frame: object) -> Any:
    if not hasattr(frame, "__arrow_c_stream__"):
        raise InvalidValue(
            path="table", expected="an Arrow table, or a frame that gives one", found=type(frame).__name__
        )
    return arrow().table(frame)


def map_batches(
    table: pa.Table | pa.RecordBatch | SupportsArrowStream,
    *,
    target: str,
    source: str | None = None,
    column: str | None = None,
    model: str | None = None,
) -> pa.Table:
    """Convert an Arrow table: one record per row in, one row per record out, in order.

    The result has the columns `record` (JSON text, null where the row was rejected), `losses` (a list of texts) and
    `rejected` (the reason, or null). It fits `ray.data.Dataset.map_batches(…, batch_format="pyarrow")`,
    `datasets.Dataset.with_format("arrow").map(…, batched=True)`, and frames of Polars and pandas (2.2 or later).
    """
    pyarrow = arrow()
    options = ConvertOptions(target=target, source=source, model=model)
    options.check()
    given = table if isinstance(table, pyarrow.Table | pyarrow.RecordBatch) else _table_from(table)
    batches = given.to_batches() if isinstance(given, pyarrow.Table) else [given]
    records = [record for batch in batches for record in rows_of(batch, column)]
    rows = _TableRows(options, records)
    text = pyarrow.string()
    return pyarrow.table(
        {
            "record": pyarrow.array(rows.records, text),
            "losses": pyarrow.array(rows.losses, pyarrow.list_(text)),
            "rejected": pyarrow.array(rows.rejected, text),
        }
    )


class _TableRows:
    """The three columns of the result."""

    def __init__(self, options: ConvertOptions, records: list[bytes]) -> None:
        self.records: list[str | None] = []
        self.losses: list[list[str]] = []
        self.rejected: list[str | None] = []
        converter = converter_for(options, "table", expected_format(options, records[:SNIFFED]))
        converter.keeps_losses = True
        for row, record in enumerate(records):
            converted = converter.convert(record, row)
            self.records.append(converted.decode() if isinstance(converted, bytes) else None)
            self.losses.append([str(loss) for loss in converter.last_losses])
            self.rejected.append(converted.reason if isinstance(converted, Reject) else None)
