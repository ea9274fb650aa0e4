"""Tables as output: Parquet, Arrow and SQLite files with one column per key of the records.

A column has the type of its values. Objects, arrays and values of mixed types become JSON text, and the column says so:
in the metadata of its field (Parquet, Arrow) or as its declared type (SQLite). So a table that is read again gives the
same records.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from math import isinf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, Literal, TypeAlias, cast

import msgspec
from msgspec import Raw

from dragoman.batch.remote_files import is_remote, open_to_read
from dragoman.batch.tables import JSON_MARK, RECORD_COLUMN, arrow, is_json, quote_name

Kind: TypeAlias = Literal["text", "boolean", "integer", "real", "json"]
_COPIED_AT_ONCE = 1 << 20
_MOST_COLUMNS = 1_000
"""Columns of a table: SQLite allows 2,000."""
_EXACT, _LONGEST = 1 << 53, 1 << 63
"""Integers below the first are exact as floats; those below the second fit a column of integers."""
_LONGEST_DIGITS = 20
SQLITE_TABLE = "records"

_read_cells = msgspec.json.Decoder(dict[str, Raw]).decode
_read_text = msgspec.json.Decoder(str).decode


def _cells(line: bytes) -> dict[str, Raw]:
    return _read_cells(line) if line.startswith(b"{") else {RECORD_COLUMN: Raw(line)}


# ── types of columns ──


def _kind(value: bytes) -> str | None:
    """Return the kind of one JSON value; None for null. `long`: an integer that no float holds exactly."""
    match value[:1]:
        case b'"':
            return "text"
        case b"{" | b"[":
            return "json"
        case b"t" | b"f":
            return "boolean"
        case b"n":
            return None
    if value.lstrip(b"-").isdigit():
        size = abs(int(value)) if len(value) <= _LONGEST_DIGITS else _LONGEST
        return "integer" if size <= _EXACT else "long" if size < _LONGEST else "json"
    return "json" if isinf(float(value)) else "real"


class Columns:
    """The columns of a table, in the order in which their keys first occur, with the kinds of their values."""

    def __init__(self) -> None:
        self._found: dict[str, set[str]] = {}

    def add(self, cells: Mapping[str, Raw]) -> None:
        for name, value in cells.items():
            kinds = self._found.setdefault(name, set())
            kind = _kind(bytes(value))
            if kind is not None:
                kinds.add(kind)

    def kinds(self) -> dict[str, Kind]:
        return {name: _common(kinds) for name, kinds in self._found.items()}


def _common(kinds: set[str]) -> Kind:
    if kinds <= {"integer", "long"} and kinds:
        return "integer"
    if kinds == {"integer", "real"}:
        return "real"
    if len(kinds) > 1:
        return "json"
    return cast("Kind", next(iter(kinds), "text"))


def _value(value: Raw | None, kind: Kind) -> str | int | float | bool | None:
    """Return the value of a cell. In a column of JSON, a text stays as it is unless it would be read as JSON."""
    raw = b"null" if value is None else bytes(value)
    if raw == b"null":
        return None
    if kind == "text":
        return _read_text(raw)
    if kind == "json":
        return raw.decode() if not raw.startswith(b'"') or is_json(_read_text(raw)) else _read_text(raw)
    if kind == "boolean":
        return raw == b"true"
    return int(raw) if kind == "integer" else float(raw)


# ── Parquet and Arrow ──


class TablePacker:
    """Collects the lines of a shard, which become one table."""

    def __init__(self, suffix: str) -> None:
        arrow()
        self._suffix = suffix
        self._lines: list[bytes] = []

    def pack(self, block: bytes) -> bytes:
        self._lines.extend(block.splitlines())
        return b""

    def finish(self) -> bytes:
        table = _arrow_table(self._lines)
        sink = arrow().BufferOutputStream()
        with _writer(self._suffix, sink, table.schema) as writer:
            writer.write_table(table)
        return cast("bytes", sink.getvalue().to_pybytes())


def _arrow_table(lines: Iterable[bytes]) -> Any:
    pyarrow = arrow()
    columns, rows = Columns(), [_cells(line) for line in lines]
    for row in rows:
        columns.add(row)
    kinds = columns.kinds()
    arrays = [pyarrow.array([_value(row.get(name), kind) for row in rows]) for name, kind in kinds.items()]
    fields = [
        pyarrow.field(name, array.type, metadata=JSON_MARK if kind == "json" else None)
        for array, (name, kind) in zip(arrays, kinds.items(), strict=True)
    ]
    return pyarrow.table(arrays, schema=pyarrow.schema(fields))


def _writer(suffix: str, output: Any, schema: Any) -> Any:
    pyarrow = arrow()
    if suffix == "parquet":
        return pyarrow.parquet.ParquetWriter(output, schema, compression="zstd")
    return pyarrow.ipc.new_stream(output, schema)  # what `datasets` reads and writes


def _read_table(suffix: str, stream: IO[bytes]) -> Any:
    pyarrow = arrow()
    return pyarrow.parquet.read_table(stream) if suffix == "parquet" else pyarrow.ipc.open_stream(stream).read_all()


def _read_schema(suffix: str, stream: IO[bytes]) -> Any:
    pyarrow = arrow()
    return pyarrow.parquet.read_schema(stream) if suffix == "parquet" else pyarrow.ipc.open_stream(stream).schema


def join_tables(names: Sequence[str], suffix: str, output: IO[bytes]) -> None:
    """Write one row group, or one batch, per shard. Shards may have different columns: the file has all of them."""
    schemas = []
    for name in names:
        with open_to_read(name) as stream:
            schemas.append(_read_schema(suffix, stream))
    schema = _common_schema(schemas)
    with _writer(suffix, output, schema) as writer:
        for name in names:
            with open_to_read(name) as stream:
                writer.write_table(_fit_to_schema(_read_table(suffix, stream), schema))


def _common_schema(schemas: Sequence[Any]) -> Any:
    """Return all columns of the shards. One whose types differ is a column of JSON."""
    pyarrow = arrow()
    found: dict[str, list[Any]] = {}
    for schema in schemas:
        for field in schema:
            found.setdefault(field.name, []).append(field)
    fields = []
    for name, same in found.items():
        types = {field.type for field in same} - {pyarrow.null()}
        if types == {pyarrow.int64(), pyarrow.float64()}:
            types = {pyarrow.float64()}
        is_json_column = len(types) > 1 or any(field.metadata for field in same)
        kind = pyarrow.string() if is_json_column else next(iter(types), pyarrow.null())
        fields.append(pyarrow.field(name, kind, metadata=JSON_MARK if is_json_column else None))
    return pyarrow.schema(fields)


def _fit_to_schema(table: Any, schema: Any) -> Any:
    """Return the table with the columns of the schema, in its order."""
    pyarrow = arrow()
    columns = []
    for field in schema:
        if field.name not in table.schema.names:
            columns.append(pyarrow.nulls(table.num_rows, field.type))
        elif field.metadata and not table.schema.field(field.name).metadata:
            values = table.column(field.name).to_pylist()
            raws = [None if value is None else Raw(msgspec.json.encode(value)) for value in values]
            columns.append(pyarrow.array([_value(raw, "json") for raw in raws], field.type))
        else:
            columns.append(table.column(field.name).cast(field.type))
    return pyarrow.table(columns, schema=schema)


# ── SQLite ──

_DECLARED: dict[Kind, str] = {
    "text": "TEXT",
    "boolean": "BOOLEAN",
    "integer": "INTEGER",
    "real": "REAL",
    "json": "JSON",
}


def join_as_sqlite(names: Sequence[str], output: IO[bytes]) -> None:
    """Write a database with the table `records`, from shards of lines."""
    columns = Columns()
    for cells in map(_cells, _lines(names)):
        columns.add(cells)
    kinds = columns.kinds()
    rows: Iterator[Mapping[str, Raw]] = map(_cells, _lines(names))
    if not kinds or not _are_distinct(kinds):
        kinds, rows = {RECORD_COLUMN: "json"}, ({RECORD_COLUMN: Raw(line)} for line in _lines(names))
    # Beside the shards: a folder for temporary files is often small.
    beside = None if not names or is_remote(names[0]) else os.path.dirname(names[0])  # noqa: PTH120
    with TemporaryDirectory(dir=beside) as folder:
        path = Path(folder) / "records.sqlite"
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            _fill(database, kinds, rows)
        with path.open("rb") as stream:
            shutil.copyfileobj(stream, output, _COPIED_AT_ONCE)


def _are_distinct(names: Iterable[str]) -> bool:
    """Return whether SQLite can have these columns: their names must differ in more than the case of letters."""
    lowered = [name.lower() for name in names]
    return len(set(lowered)) == len(lowered) <= _MOST_COLUMNS and not any("\0" in name for name in lowered)


def _fill(database: sqlite3.Connection, kinds: Mapping[str, Kind], rows: Iterable[Mapping[str, Raw]]) -> None:
    database.execute("pragma journal_mode = off")  # it is thrown away if it is not complete
    database.execute("pragma synchronous = off")
    declared = ", ".join(f"{quote_name(name)} {_DECLARED[kind]}" for name, kind in kinds.items())
    database.execute("begin")
    database.execute(f"create table {SQLITE_TABLE} ({declared})")
    marks = ", ".join("?" * len(kinds))
    values = ([_value(row.get(name), kind) for name, kind in kinds.items()] for row in rows)
    database.executemany(f"insert into {SQLITE_TABLE} values ({marks})", values)  # noqa: S608 - our own names
    database.execute("commit")


def _lines(names: Sequence[str]) -> Iterator[bytes]:
    for name in names:
        with open_to_read(name) as stream:
            for line in stream:
                yield line.removesuffix(b"\n")
