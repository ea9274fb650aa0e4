"""Where converted records go: shards that are written atomically, and how they become one file.

A shard is written to a temporary file and then renamed, so a name always has complete contents. Compressed shards are
complete members, and concatenated members are a valid file, so joining shards copies bytes.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from types import TracebackType
from typing import IO, Any, Self, cast

from dragoman.batch.remote_files import is_remote, open_to_read, remote_file_system
from dragoman.batch.table_sinks import TablePacker, join_as_sqlite, join_tables
from dragoman.errors import InvalidValue, NotConfigured
from dragoman.installation import install_command

SUFFIXES = ("jsonl", "jsonl.gz", "jsonl.zst", "parquet", "arrow")
"""Possible file types of a shard."""
FILE_SUFFIXES = (*SUFFIXES, "json", "sqlite")
"""Possible file types of one output file. A JSON array and a SQLite file are made of shards of lines."""
_OTHER_SUFFIXES = {".ndjson": "jsonl", ".db": "sqlite", ".sqlite3": "sqlite"}
UNFINISHED = ".part"
"""Suffix of a file while it is written."""
_LEVELS = {"gz": 6, "zst": 3}
_BUFFER = 1 << 16
"""Larger pieces, such as the lines of a shard, are written without being copied into the buffer."""
_COPIED_AT_ONCE = 1 << 20
_TABLES = frozenset({"parquet", "arrow"})
SHARD = re.compile(r"part-\d{5}-\d{5}\.(" + "|".join(map(re.escape, SUFFIXES)) + r")(\..*\.part)?")
"""Names of shards in a folder, and of those that a killed worker left unfinished."""


def suffix_of(name: str) -> str | None:
    """Return the kind of output file that a name asks for; None: it is a folder of shards."""
    lowered = name.lower()
    if (other := _OTHER_SUFFIXES.get(Path(lowered).suffix)) is not None:
        return other
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
        with open_to_read(name) as stream:
            return stream.read()
    except FileNotFoundError:
        return None


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


def _packer(suffix: str) -> _Plain | _Gzip | _Packed | TablePacker:
    if suffix == "jsonl.gz":
        return _Gzip()
    if suffix == "jsonl.zst":
        try:
            import zstandard  # noqa: PLC0415 - only for such files
        except ImportError as error:
            message = f"zstd files need zstandard: {install_command('batch')}"
            raise NotConfigured(message, missing="zstandard") from error
        return _Packed(zstandard.ZstdCompressor(level=_LEVELS["zst"]).compressobj())
    return TablePacker(suffix) if suffix in _TABLES else _Plain()


def check_packages(suffix: str) -> None:
    """Raise `NotConfigured`, before a job starts, if a package for its output is missing."""
    _packer(suffix)


def join_shards(names: Sequence[str], suffix: str, output: IO[bytes]) -> None:
    """Write all shards to the output, one after the other."""
    if suffix in _TABLES:
        join_tables(names, suffix, output)
        return
    if suffix == "sqlite":
        join_as_sqlite(names, output)
        return
    if suffix == "json":
        _join_array(names, output)
        return
    for name in names:
        with open_to_read(name) as stream:
            shutil.copyfileobj(stream, output, _COPIED_AT_ONCE)


def _join_array(names: Sequence[str], output: IO[bytes]) -> None:
    """Write one array, a record per line."""
    before = b"[\n"
    for name in names:
        with open_to_read(name) as stream:
            for line in stream:
                output.write(before + line.removesuffix(b"\n"))
                before = b",\n"
    output.write(b"[]\n" if before == b"[\n" else b"\n]\n")
