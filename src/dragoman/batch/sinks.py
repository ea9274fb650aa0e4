"""Where converted records go: shards that are written atomically, and how they become one file.

A shard is written to a temporary file and then renamed, so a name always has complete contents. Compressed shards are
complete members, and concatenated members are a valid file, so joining shards copies bytes.
"""

from __future__ import annotations

import gzip
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from types import TracebackType
from typing import IO, Any, Self, cast

import msgspec

from dragoman.batch.remote_files import is_remote, remote_file_system
from dragoman.batch.tables import arrow
from dragoman.errors import InvalidValue, NotConfigured
from dragoman.installation import install_command

SUFFIXES = ("jsonl", "jsonl.gz", "jsonl.zst", "parquet", "arrow")
"""Possible file types of a shard."""
FILE_SUFFIXES = (*SUFFIXES, "json")
"""Possible file types of one output file. A JSON array is made of shards of lines."""
UNFINISHED = ".part"
"""Suffix of a file while it is written."""
_LEVELS = {"gz": 6, "zst": 3}
_BUFFER = 1 << 16
"""Larger pieces, such as the lines of a shard, are written without being copied into the buffer."""
_COPIED_AT_ONCE = 1 << 20
_TABLES = frozenset({"parquet", "arrow"})


def suffix_of(name: str) -> str | None:
    """Return the kind of output file that a name asks for; None: it is a folder of shards."""
    lowered = name.lower()
    if lowered.endswith(".ndjson"):
        return "jsonl"
    for suffix in sorted(FILE_SUFFIXES, key=len, reverse=True):
        if lowered.endswith("." + suffix):
            return suffix
    if Path(lowered).suffix and not lowered.endswith("/"):
        raise InvalidValue(
            path="output",
            expected="a folder, or a file that ends in " + ", ".join(f".{suffix}" for suffix in FILE_SUFFIXES),
            found=name,
        )
    return None


def write_file(name: str, content: bytes) -> None:
    """Write a file atomically. If the contents are empty, there is no file."""
    if not content:
        remove(name)
        return
    with replacing(name) as stream:
        stream.write(content)


def read_file(name: str) -> bytes | None:
    """Return the contents, or None if there is no such file."""
    try:
        with opened(name) as stream:
            return stream.read()
    except FileNotFoundError:
        return None


@contextmanager
def opened(name: str) -> Iterator[IO[bytes]]:
    if is_remote(name):
        files, path = remote_file_system(name)
        with files.open(path, "rb") as stream:
            yield stream
        return
    with open(name, "rb") as stream:  # noqa: PTH123
        yield stream


def exists(name: str) -> bool:
    if is_remote(name):
        files, path = remote_file_system(name)
        return bool(files.exists(path))
    return os.path.exists(name)  # noqa: PTH110


def list_folder(name: str) -> list[str]:
    """Return the names of the files in a folder, sorted."""
    if is_remote(name):
        files, path = remote_file_system(name)
        return (
            sorted(str(file).rsplit("/", 1)[-1] for file in files.ls(path, detail=False)) if files.exists(path) else []
        )
    return sorted(os.listdir(name)) if os.path.isdir(name) else []  # noqa: PTH112, PTH208


def make_folder(name: str) -> None:
    if is_remote(name):
        files, path = remote_file_system(name)
        files.makedirs(path, exist_ok=True)
    else:
        Path(name).mkdir(parents=True, exist_ok=True)


def remove(name: str) -> None:
    """Remove a file or a folder with everything in it; it need not exist."""
    if is_remote(name):
        files, path = remote_file_system(name)
        if files.exists(path):
            files.rm(path, recursive=True)
    elif os.path.isdir(name):  # noqa: PTH112
        shutil.rmtree(name)
    else:
        Path(name).unlink(missing_ok=True)


@contextmanager
def replacing(name: str) -> Iterator[IO[bytes]]:
    """Yield a file that gets its name when it is complete. Object stores work like this by themselves."""
    if is_remote(name):
        files, path = remote_file_system(name)
        remote = files.open(path, "wb")
        try:
            yield remote
        except BaseException:
            if hasattr(remote, "discard"):  # closing it would publish an incomplete file
                remote.discard()
            raise
        remote.close()
        return
    # Not the process id: workers on several machines may convert the same shard into a shared folder.
    temporary = Path(f"{name}.{token_hex(4)}{UNFINISHED}")
    try:
        with temporary.open("wb", buffering=_BUFFER) as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(name)
    finally:
        temporary.unlink(missing_ok=True)


class ShardWriter:
    """Writes the records of one shard, which appears when the block ends without an exception.

    `digest` is the SHA-256 of its lines, whatever their compression.
    """

    def __init__(self, folder: str, name: str, suffix: str, *, dry_run: bool = False) -> None:
        self._name = f"{folder}/{name}.{suffix}"
        self._packer = _packer(suffix)
        self._digest = sha256()
        self._file = nullcontext(None) if dry_run else replacing(self._name)
        self._stream: IO[bytes] | None = None

    def __enter__(self) -> Self:
        self._stream = self._file.__enter__()
        return self

    def write(self, records: Sequence[bytes]) -> None:
        block = b"\n".join((*records, b""))
        if records:
            self._digest.update(block)
            if self._stream is not None:
                self._stream.write(self._packer.pack(block))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None and self._stream is not None:
            self._stream.write(self._packer.finish())
        self._file.__exit__(kind, error, trace)

    @property
    def digest(self) -> str:
        return self._digest.hexdigest()


class _Plain:
    """JSON Lines without compression."""

    def pack(self, block: bytes) -> bytes:
        return block

    def finish(self) -> bytes:
        return b""


class _Packed:
    """JSON Lines compressed by a compressor: gzip or zstd."""

    def __init__(self, compressor: Any) -> None:
        self._compressor = compressor

    def pack(self, block: bytes) -> bytes:
        return cast("bytes", self._compressor.compress(block))

    def finish(self) -> bytes:
        return cast("bytes", self._compressor.flush())


class _Gzip:
    """A member of a gzip file without the time, so that the same records give the same bytes."""

    def pack(self, block: bytes) -> bytes:
        return gzip.compress(block, _LEVELS["gz"], mtime=0)

    def finish(self) -> bytes:
        return b""


class _Table:
    """A table with one column per key; nested values are JSON text, because their types differ by record."""

    def __init__(self, suffix: str) -> None:
        arrow()
        self._suffix = suffix
        self._lines: list[bytes] = []

    def pack(self, block: bytes) -> bytes:
        self._lines.extend(block.splitlines())
        return b""

    def finish(self) -> bytes:
        table = _table_of(self._lines)
        sink = arrow().BufferOutputStream()
        with _table_writer(self._suffix, sink, table.schema) as writer:
            writer.write_table(table)
        return cast("bytes", sink.getvalue().to_pybytes())


def _packer(suffix: str) -> _Plain | _Gzip | _Packed | _Table:
    if suffix == "jsonl.gz":
        return _Gzip()
    if suffix == "jsonl.zst":
        try:
            import zstandard  # noqa: PLC0415 - only for such files
        except ImportError as error:
            message = f"zstd files need zstandard: {install_command('batch')}"
            raise NotConfigured(message, missing="zstandard") from error
        return _Packed(zstandard.ZstdCompressor(level=_LEVELS["zst"]).compressobj())
    return _Table(suffix) if suffix in _TABLES else _Plain()


def check_packages(suffix: str) -> None:
    """Raise `NotConfigured`, before a job starts, if a package for its output is missing."""
    _packer(suffix)


def _table_writer(suffix: str, output: Any, schema: Any) -> Any:
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


def _table_of(lines: Sequence[bytes]) -> Any:
    rows = [_cells(msgspec.json.decode(line)) for line in lines]
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {name: _column([row.get(name) for row in rows]) for name in names}
    return arrow().table(columns)


def _cells(record: Any) -> dict[str, Any]:
    if not isinstance(record, dict):
        return {"record": msgspec.json.encode(record).decode()}
    return {
        key: msgspec.json.encode(value).decode() if isinstance(value, dict | list) else value
        for key, value in record.items()
    }


def _column(values: list[Any]) -> Any:
    """Return a column: values of one type keep it; mixed types become JSON text."""
    pyarrow = arrow()
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int, float}:
        values = [None if value is None else float(value) for value in values]
    elif len(kinds) > 1:
        values = [
            value if value is None or isinstance(value, str) else msgspec.json.encode(value).decode()
            for value in values
        ]
    return pyarrow.array(values)


def join_shards(names: Sequence[str], suffix: str, output: IO[bytes]) -> None:
    """Write all shards to the output, one after the other."""
    if suffix in _TABLES:
        _join_tables(names, suffix, output)
        return
    if suffix == "json":
        _join_array(names, output)
        return
    for name in names:
        with opened(name) as stream:
            shutil.copyfileobj(stream, output, _COPIED_AT_ONCE)


def _join_array(names: Sequence[str], output: IO[bytes]) -> None:
    """Write one array, a record per line."""
    before = b"[\n"
    for name in names:
        with opened(name) as stream:
            for line in stream:
                output.write(before + line.removesuffix(b"\n"))
                before = b",\n"
    output.write(b"[]\n" if before == b"[\n" else b"\n]\n")


def _join_tables(names: Sequence[str], suffix: str, output: IO[bytes]) -> None:
    """Write one row group, or one batch, per shard. Shards may have different columns: the file has all of them."""
    pyarrow = arrow()
    schemas = []
    for name in names:
        with opened(name) as stream:
            schemas.append(_read_schema(suffix, stream))
    schema = pyarrow.unify_schemas(schemas, promote_options="permissive")
    with _table_writer(suffix, output, schema) as writer:
        for name in names:
            with opened(name) as stream:
                table = _read_table(suffix, stream)
            for field in schema:
                if field.name not in table.schema.names:
                    table = table.append_column(field, pyarrow.nulls(table.num_rows, field.type))
            writer.write_table(table.select(schema.names).cast(schema))
