"""Where records come from: files of any size and compression, tables, stdin; read piece by piece.

A source is cut into shards. JSON Lines without compression, Parquet, Arrow and SQLite can be entered at any shard, so
their shards are read by the workers that convert them. Compressed files, JSON arrays and stdin can only be read from
their beginning: one reader cuts them into blocks of records.
"""

from __future__ import annotations

import glob
import gzip
import io
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice, pairwise
from pathlib import Path
from typing import IO, Any, Literal, TypeAlias, cast

import msgspec
from msgspec import Struct, structs

from dragoman.batch import tables
from dragoman.batch.options import JobOptions
from dragoman.batch.remote_files import is_remote, remote_file_system
from dragoman.codecs.datasets.catalogue import is_session, session_of
from dragoman.codecs.framing import BOM, JsonArray
from dragoman.codecs.reading import MAX_BODY_BYTES
from dragoman.codecs.stream_limits import Limits
from dragoman.detection import detect
from dragoman.errors import DragomanError, NotConfigured
from dragoman.installation import install_command
from dragoman.ir.values import encode_json, exact_json, parse_json

STDIN = "-"
_CHUNK = 1 << 20
SNIFFED_LINES = 10

Layout: TypeAlias = Literal["lines", "array", "record", "session", "parquet", "arrow", "sqlite"]
"""`record`: the file is one record over many lines; `session`: all lines of a file are one conversation."""
Compression: TypeAlias = Literal["", "gz", "zst"]


class SourceError(DragomanError):
    """A source that cannot be read at all: it does not exist, is empty, or is of no kind we know."""


class Source(Struct, frozen=True):
    """One file, or stdin (`-`)."""

    name: str
    layout: Layout
    compression: Compression = ""
    size: int = 0
    changed: int = 0
    """When it was last changed, in nanoseconds: a job is not resumed on a source that changed."""

    @property
    def splits(self) -> bool:
        """Whether a worker can begin to read in the middle."""
        return self.layout not in {"array", "record", "session"} and not self.compression and self.name != STDIN


class Shard(Struct, frozen=True):
    """A piece of a source: bytes of lines, rows of a table, or (without `stop`) a block cut by the reader."""

    source: int
    number: int
    start: int = 0
    stop: int = 0

    @property
    def name(self) -> str:
        return f"part-{self.source:05}-{self.number:05}"


_SUFFIXES: dict[str, Layout] = {
    ".jsonl": "lines", ".ndjson": "lines", ".json": "lines", ".out": "lines",
    ".parquet": "parquet", ".arrow": "arrow", ".feather": "arrow",
    ".db": "sqlite", ".sqlite": "sqlite", ".sqlite3": "sqlite",
}  # fmt: skip
_COMPRESSIONS: dict[str, Compression] = {".gz": "gz", ".gzip": "gz", ".zst": "zst", ".zstd": "zst"}
_DATA_FILES = ("*.jsonl", "*.jsonl.gz", "*.jsonl.zst", "*.ndjson", "*.parquet", "*.arrow")


def find_sources(names: Sequence[str], format_name: str | None = None) -> list[Source]:
    """Files, globs, folders (of Hugging Face datasets, of shards) and stdin, in a fixed order.

    Session files of agents are known by their first lines, or by the name of the format.
    """
    found = [_as_session(source, format_name) for name in names for source in _sources(name)]
    if len([source for source in found if source.name == STDIN]) > 1:
        raise SourceError("stdin (-) can be read only once")
    return found


def _sources(name: str) -> Iterator[Source]:
    if name == STDIN:
        yield Source(STDIN, "lines")
        return
    paths = _remote_paths(name) if is_remote(name) else _local_paths(name)
    if not paths:
        raise SourceError(f"cannot read {name}: no such file, and no file matches it")
    for path in paths:
        yield _source(path)


def _as_session(source: Source, format_name: str | None) -> Source:
    if source.layout != "lines" or source.name == STDIN:
        return source
    if format_name is not None:
        is_one = is_session(format_name)
    else:
        with _opened(source) as stream:
            is_one = any(_is_session_line(line) for line in islice(_stream_lines(stream), SNIFFED_LINES))
    return structs.replace(source, layout="session") if is_one else source


def _is_session_line(line: bytes) -> bool:
    try:
        return session_of(parse_json(line)) is not None
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False


def _local_paths(name: str) -> list[str]:
    path = Path(name)
    if path.is_dir():
        # `datasets.save_to_disk` writes arrow files, downloaded datasets have data/*.parquet.
        for pattern in _DATA_FILES:
            if paths := sorted(str(file) for file in path.rglob(pattern) if ".batch" not in file.parts):
                return [file for file in paths if not Path(file).name.startswith((".", "cache-"))]
        raise SourceError(f"cannot read {name}: the folder has no {', '.join(_DATA_FILES)}")
    if path.exists():
        return [name]
    return sorted(glob.glob(name, recursive=True))  # noqa: PTH207 - the name may be absolute


def _remote_paths(name: str) -> list[str]:
    files, path = remote_file_system(name)
    scheme = name.partition("://")[0]
    found = files.glob(path) if any(sign in path for sign in "*?[") else [path]
    return [file if "://" in file else f"{scheme}://{file}" for file in sorted(found)]


_MAGIC: dict[bytes, Compression] = {b"\x1f\x8b": "gz", b"\x28\xb5\x2f\xfd": "zst"}
_LONGEST_START = 8 << 20
"""Bytes of a file that are looked at to tell an array from lines, and one record over many lines from many records."""


def _source(name: str) -> Source:
    """What the file is, by its first bytes: names are often wrong about it."""
    plain = name
    for suffix in _COMPRESSIONS:
        plain = plain.removesuffix(suffix)
    try:
        size, changed = _size(name)
        with _opened(Source(name, "lines")) as stream:
            start = stream.read(4)
        compression: Compression = next((kind for magic, kind in _MAGIC.items() if start.startswith(magic)), "")
        with _opened(Source(name, "lines", compression)) as stream:
            layout = _layout(stream, Path(plain).suffix.lower())
    except OSError as error:
        raise SourceError(f"cannot read {name}: {error.strerror or error}") from error
    return Source(name, layout, compression, size, changed)


def _layout(stream: IO[bytes], suffix: str) -> Layout:
    start = stream.read(4_096)
    if start.startswith(b"SQLite format 3\0"):
        return "sqlite"
    if start.startswith(b"PAR1"):
        return "parquet"
    named = _SUFFIXES.get(suffix, "lines")
    text = start.removeprefix(BOM).lstrip()
    if named == "arrow" or (named != "lines" and not text.startswith((b"{", b"["))):
        return named
    first_line = text.partition(b"\n")[0].strip()
    if not text.startswith((b"{", b"[")) or (text.startswith(b"{") and exact_json(first_line) is not None):
        return "lines"
    return _text_layout(text + stream.read(_LONGEST_START), suffix)


def _text_layout(text: bytes, suffix: str) -> Layout:
    """Lines, an array of records, or one record over many lines.

    A line may itself be an array (of messages), so an array in one line is looked at from within.
    """
    line, _, rest = text.partition(b"\n")
    is_whole = len(text) < _LONGEST_START
    if (value := exact_json(line.strip())) is None:
        if text.startswith(b"["):
            return "lines" if suffix in _LINES and not rest and not is_whole else "array"
        return "record" if is_whole and rest and exact_json(text.strip()) is not None else "lines"
    if not text.startswith(b"[") or suffix in _LINES or rest.strip() or _is_known(line):
        return "lines"
    first = next(iter(parse_json(value) or ()), None)
    return "array" if first is not None and _is_known(encode_json(first)) else "lines"


_LINES = frozenset({".jsonl", ".ndjson"})


def _is_known(record: bytes) -> bool:
    try:
        return detect(record.strip()) is not None
    except DragomanError:
        return False


def _size(name: str) -> tuple[int, int]:
    if is_remote(name):
        files, path = remote_file_system(name)
        return int(files.size(path) or 0), 0
    status = Path(name).stat()
    return status.st_size, status.st_mtime_ns


@contextmanager
def _opened(source: Source) -> Iterator[IO[bytes]]:
    """The bytes of a source, decompressed."""
    if source.name == STDIN:
        yield sys.stdin.buffer
        return
    if is_remote(source.name):
        files, path = remote_file_system(source.name)
        # Files of object stores read lines of any length, and one byte after the other.
        raw: IO[bytes] = io.BufferedReader(files.open(path, "rb"), _CHUNK)
    else:
        raw = open(source.name, "rb")  # noqa: PTH123, SIM115  # closed below, with what reads it
    with raw:
        if source.compression == "gz":
            with gzip.open(raw, "rb") as stream:
                yield cast("IO[bytes]", stream)
        elif source.compression == "zst":
            yield cast("IO[bytes]", io.BufferedReader(_zstd_reader(raw), _CHUNK))
        else:
            yield raw


def _zstd_reader(raw: IO[bytes]) -> Any:
    try:
        import zstandard  # noqa: PLC0415 - only for such files
    except ImportError as error:
        words = f"zstd files need zstandard: {install_command('batch')}"
        raise NotConfigured(words, missing="zstandard") from error
    return zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)


# ── shards ──


def plan_shards(source: Source, index: int, options: JobOptions) -> list[Shard]:
    """The shards of a source that can be entered anywhere. They depend on the source and the options alone."""
    if source.layout == "lines":
        edges = [*range(0, source.size, options.shard_bytes), source.size]
    else:
        edges = tables.edges(source.name, source.layout, options)
    return [Shard(index, number, start, stop) for number, (start, stop) in enumerate(pairwise(edges))]


def read_shard(source: Source, shard: Shard, options: JobOptions) -> Iterator[bytes]:
    """The records of a shard: lines as they are (blank ones too, they count as lines), rows as JSON."""
    if source.layout != "lines":
        return tables.read_rows(source.name, source.layout, shard.start, shard.stop, options)
    return _read_lines(source, shard)


def _read_lines(source: Source, shard: Shard) -> Iterator[bytes]:
    """Lines that begin in the shard. A line belongs to the shard in which its first byte stands."""
    with _opened(source) as stream:
        position = shard.start
        if position:
            stream.seek(position - 1)
            position += _line(stream)[1] - 1
        while position < shard.stop:
            line, length = _line(stream)
            if not length:
                return
            yield line if position else line.removeprefix(BOM)
            position += length


def _line(stream: IO[bytes]) -> tuple[bytes, int]:
    """One line and its length. Of a line longer than any body may be, the beginning is kept: it is rejected by size."""
    line = stream.readline(MAX_BODY_BYTES + 2)
    length = len(line)
    if length > MAX_BODY_BYTES + 1:
        while not line.endswith(b"\n") and (more := stream.readline(_CHUNK)):
            length += len(more)
            if more.endswith(b"\n"):
                break
    return line, length


def read_blocks(source: Source, options: JobOptions) -> Iterator[list[bytes]]:
    """Blocks of records of a source that can only be read from its beginning."""
    block: list[bytes] = []
    size = count = 0
    with _opened(source) as stream:
        records = _READERS[source.layout](stream)
        try:
            for record in records:
                block.append(record)
                size += len(record)
                if size >= options.shard_bytes:
                    yield block
                    count += len(block)
                    block, size = [], 0
        except (EOFError, OSError, zlib.error) as error:
            words = f"cannot read {source.name} to its end: it is damaged after record {count + len(block)} ({error})"
            raise SourceError(words) from error
    if block:
        yield block


def _stream_lines(stream: IO[bytes]) -> Iterator[bytes]:
    line = _line(stream)[0].removeprefix(BOM)
    while line:
        yield line
        line = _line(stream)[0]


def _whole_session(stream: IO[bytes]) -> Iterator[bytes]:
    """All lines as one list. A last line that was cut when the program died is left out."""
    lines = [line.strip() for line in _stream_lines(stream)]
    found = [line for line in lines if line and exact_json(line) is not None]
    if sum(map(len, found)) > MAX_BODY_BYTES:
        found = found[:1]  # rejected as what it is: the beginning of a session
    yield b"[" + b",".join(found) + b"]"


def _whole_record(stream: IO[bytes]) -> Iterator[bytes]:
    yield stream.read(MAX_BODY_BYTES + 1).removeprefix(BOM)


def _array_elements(stream: IO[bytes]) -> Iterator[bytes]:
    framing = JsonArray(Limits(event_bytes=MAX_BODY_BYTES, stream_bytes=sys.maxsize), "JSON array")
    while chunk := stream.read(_CHUNK):
        yield from framing.feed(chunk)
    yield from framing.close()


_READERS: dict[str, Callable[[IO[bytes]], Iterator[bytes]]] = {
    "lines": _stream_lines,
    "array": _array_elements,
    "record": _whole_record,
    "session": _whole_session,
}


def first_records(source: Source, shard: Shard | None, options: JobOptions, count: int) -> list[bytes]:
    """The first records, to find out what the source holds."""
    if source.name == STDIN:
        return []
    if shard is not None:
        records = read_shard(source, shard, options)
    else:
        records = (record for block in read_blocks(source, options) for record in block)
    found: list[bytes] = []
    for record in records:
        if record.strip():
            found.append(record)
        if len(found) >= count:
            break
    return found
