"""Where records come from: files of any size and compression, tables, stdin; read piece by piece.

A source is cut into shards. Uncompressed JSON Lines, Parquet, Arrow and SQLite can be read from any shard, so the
workers read the shards they convert. Compressed files, JSON arrays and stdin can only be read from the start: one
reader cuts them into blocks of records.
"""

from __future__ import annotations

import codecs
import glob
import gzip
import io
import stat
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice, pairwise
from pathlib import Path, PurePosixPath
from typing import IO, Any, Literal, TypeAlias, cast

import msgspec
from msgspec import Struct, structs

from dragoman.batch import tables
from dragoman.batch.options import JobOptions
from dragoman.batch.remote_files import is_remote, remote_file_system
from dragoman.codecs.datasets.catalogue import is_session, known_dataset, readable_lines, session_of
from dragoman.codecs.framing import BOM, JsonArray
from dragoman.codecs.reading import MAX_BODY_BYTES
from dragoman.codecs.stream_limits import Limits
from dragoman.detection import detect
from dragoman.errors import DragomanError, NotConfigured
from dragoman.installation import install_command
from dragoman.ir.values import encode_json, exact_json, parse_json

STDIN = "-"
_CHUNK = 1 << 20
_LINES_AT_ONCE = 1 << 17
"""Bytes of lines that are converted together: few enough to stay in the processor's cache."""
SNIFFED_LINES = 10
SNIFFED_BYTES = 1 << 14
_PACKED_AT_ONCE = 1 << 14
"""Bytes that are decompressed together: a hostile file expands to some hundred times as much."""
_ROWS = 512
_DAMAGE = (EOFError, OSError, zlib.error)

Layout: TypeAlias = Literal["lines", "array", "record", "session", "parquet", "arrow", "sqlite"]
"""`record`: the file is one record over many lines; `session`: all lines of a file are one conversation."""
Compression: TypeAlias = Literal["", "gz", "zst"]


class SourceError(DragomanError):
    """A source that cannot be read at all: it does not exist, is empty, or is of an unknown kind."""


class Source(Struct, frozen=True):
    """One file, or stdin (`-`)."""

    name: str
    layout: Layout
    compression: Compression = ""
    size: int = 0
    changed: int = 0
    """When it was last modified, in nanoseconds: a job is not resumed if a source has changed."""

    @property
    def splits(self) -> bool:
        """Whether a worker can start reading in the middle."""
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
_DATA_FILES = (
    ("*.jsonl", "*.jsonl.gz", "*.jsonl.zst", "*.ndjson", "*.ndjson.gz", "*.ndjson.zst"),
    ("*.parquet",),
    ("*.arrow",),
    ("*.json", "*.json.gz", "*.json.zst", "*.traj"),
)
"""Files of a folder that are read: those of the first kind that it has. Data sets also have JSON files about them."""

_ABOUT_DATA = ("dataset_info.json", "dataset_dict.json", "state.json")
"""Files that `datasets.save_to_disk` writes about the data; the first two say that it wrote the folder."""


_WITHOUT_FOLDERS = frozenset({"http", "https"})
"""What a web server shows as a folder is a page."""


def find_sources(names: Sequence[str], format_name: str | None = None) -> list[Source]:
    """Return the sources for files, globs, folders (of Hugging Face datasets, of shards) and stdin, in a fixed order.

    Session files of agents are detected by their first lines, or by the format's name.
    """
    found = [_as_session(source, format_name) for name in names for source in _sources(name)]
    if len([source for source in found if source.name == STDIN]) > 1:
        raise SourceError("stdin (-) can be read only once")
    return found


def _sources(name: str) -> Iterator[Source]:
    if name == STDIN:
        yield _stdin_source()
        return
    paths = _remote_paths(name) if is_remote(name) else _local_paths(name)
    if not paths:
        raise SourceError(f"cannot read {name}: no such file, and no file matches it")
    for path in paths:
        yield _source(path)


def _as_session(source: Source, format_name: str | None) -> Source:
    if source.layout != "lines":
        return source
    if format_name is not None:
        is_one = is_session(format_name)
    elif source.name == STDIN:
        is_one = any(
            _is_session_line(line) for line in _start_of_stdin(source.compression).split(b"\n")[:SNIFFED_LINES]
        )
    else:
        with _open_source(source) as stream:
            lines = (line for block in _blocks_of_lines(stream, SNIFFED_BYTES) for line in split_lines(block))
            is_one = any(_is_session_line(line) for line in islice(lines, SNIFFED_LINES))
    return structs.replace(source, layout="session") if is_one else source


def _is_session_line(line: bytes) -> bool:
    try:
        return session_of(parse_json(line)) is not None
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False


def _local_paths(name: str) -> list[str]:
    path = Path(name)
    if path.is_dir():
        files = [file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file()]
        return [str(path / file) for file in _data_files(name, files)]
    if path.exists():
        return [name]
    matching = sorted(glob.glob(name, recursive=True))  # noqa: PTH207 - the name may be absolute
    return [file for file in matching if not _is_about_a_job(file, lambda beside: Path(beside).exists())]


def _remote_paths(name: str) -> list[str]:
    files, path = remote_file_system(name)
    scheme = name.partition("://")[0]
    if any(sign in path for sign in "*?["):
        found = [file for file in sorted(files.glob(path)) if not _is_about_a_job(file, files.exists)]
    elif scheme not in _WITHOUT_FOLDERS and files.isdir(path):
        root = path.rstrip("/") + "/"
        found = [root + file for file in _data_files(name, [file.removeprefix(root) for file in files.find(path)])]
    else:
        found = [path]
    return [file if "://" in file else f"{scheme}://{file}" for file in found]


def _data_files(name: str, files: Sequence[str]) -> list[str]:
    """Return those files of a folder that have records, by their paths in it."""
    # `datasets.save_to_disk` writes arrow files, downloaded datasets have data/*.parquet.
    paths, known = sorted(PurePosixPath(file) for file in files), set(files)
    data = [path for path in paths if _is_data(path, known)]
    for patterns in _DATA_FILES:
        if found := [str(path) for path in data if any(path.match(pattern) for pattern in patterns)]:
            return found
    wanted = ", ".join(pattern for patterns in _DATA_FILES for pattern in patterns)
    raise SourceError(f"cannot read {name}: the folder has no {wanted}")


def _is_data(file: PurePosixPath, known: set[str]) -> bool:
    """Return whether a file of a folder has records: not what a job or `datasets` keeps beside them."""
    if ".batch" in file.parts or file.name.startswith((".", "cache-")):
        return False
    if _is_about_a_job(str(file), known.__contains__):
        return False
    return file.name not in _ABOUT_DATA or not any(str(file.parent / name) in known for name in _ABOUT_DATA[:2])


_REPORT = ("report.json", "report.html")


def _is_about_a_job(path: str, exists: Callable[[str], bool]) -> bool:
    """Return whether a job wrote this file beside its output: its report, or rejects that have a report."""
    start = next((path.removesuffix(end) for end in ("rejects.jsonl", *_REPORT) if path.endswith(end)), None)
    is_about_one = start is not None and (not start or start[-1] in "/\\.")
    return is_about_one and all(exists(f"{start}{name}") for name in _REPORT)


_TABLE_STARTS = {b"PAR1": "Parquet", b"ARROW1": "Arrow", b"\xff\xff\xff\xff": "Arrow", b"SQLite format 3\0": "SQLite"}


def _stdin_source() -> Source:
    if sys.stdin is None:  # started with `<&-`
        raise SourceError("cannot read stdin: it is closed")
    start = _start_of_stdin()
    _refuse_utf_16("stdin", start)
    _refuse_archive("stdin", start)
    table = next((kind for magic, kind in _TABLE_STARTS.items() if start.startswith(magic)), None)
    if table is not None:
        raise SourceError(
            f"cannot read a {table} table from stdin, because it is not read in order; name the file instead"
        )
    compression = _compression_of(start)
    text = _start_of_stdin(compression).removeprefix(BOM).lstrip()
    # Of one long line only the start is seen: it may be a line that is a list of messages, or an array of records.
    line, end, _ = text.partition(b"\n")
    goes_on = bool(end) and text.startswith((b"[", b"{")) and exact_json(line.strip()) is None
    is_array = goes_on and (text.startswith(b"[") or _are_printed(text) or line.strip() == b"{")
    is_array = is_array or (text.startswith(b"[") and (text.split() == [b"[]"] or _starts_with_a_record(text)))
    return Source(STDIN, "array" if is_array else "lines", compression)


def _starts_with_a_record(array: bytes) -> bool:
    """Return whether the first element of a one-line array is a record and could not be a message or an item of one."""
    line, _, rest = array.partition(b"\n")
    first = None
    with suppress(DragomanError):  # a line that is not valid JSON is rejected when it is read
        first = next(iter(_array_framing().feed(line)), None) if not rest.strip() else None
    value = parse_json(first) if first is not None and _is_known(first) else None
    return isinstance(value, dict) and not value.keys() & {"role", "type"}


def _start_of_stdin(compression: Compression = "") -> bytes:
    """Return the first bytes of stdin, decompressed, without taking them from it."""
    peek = getattr(sys.stdin.buffer, "peek", None)
    start: bytes = peek(SNIFFED_BYTES) if peek is not None and not sys.stdin.isatty() else b""
    if compression == "gz":
        return zlib.decompressobj(wbits=31).decompress(start, SNIFFED_BYTES)
    if compression == "zst":
        with suppress(EOFError):
            return io.BufferedReader(ZstdReader(io.BytesIO(start)), SNIFFED_BYTES).read1(SNIFFED_BYTES)
    return start if not compression else b""


_MAGIC: dict[bytes, Compression] = {b"\x1f\x8b": "gz", b"\x28\xb5\x2f\xfd": "zst"}


def _compression_of(start: bytes) -> Compression:
    return next((kind for magic, kind in _MAGIC.items() if start.startswith(magic)), "")


_LONGEST_START = 8 << 20
"""Bytes inspected to distinguish an array from lines, and one record over many lines from many records."""


_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
"""What `>` in Windows PowerShell 5 writes."""


_ARCHIVES = {
    b"PK\x03\x04": "a zip archive; unpack it first: unzip (a log of Inspect: inspect log convert --to json)",
    b"BZh": "compressed with bzip2, not gzip or zstd; unpack it first: bunzip2",
    b"\xfd7zXZ\x00": "compressed with xz, not gzip or zstd; unpack it first: unxz",
    b"\x04\x22\x4d\x18": "compressed with lz4, not gzip or zstd; unpack it first: unlz4",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive; unpack it first",
}


def _refuse_archive(name: str, start: bytes) -> None:
    for magic, what in _ARCHIVES.items():
        if start.startswith(magic):
            raise SourceError(f"cannot read {name}: it is {what}")


def _refuse_utf_16(name: str, start: bytes) -> None:
    if start.startswith(_UTF_16):
        raise SourceError(f"cannot read {name}: it is UTF-16; convert it to UTF-8: iconv -f UTF-16 -t UTF-8")


def _source(name: str) -> Source:
    """Return what the file is, by its first bytes: names are often wrong."""
    plain = name
    for suffix in _COMPRESSIONS:
        plain = plain.removesuffix(suffix)
    try:
        size, changed = _size(name)
        with _open_source(Source(name, "lines")) as stream:
            start = stream.read(6)
        _refuse_utf_16(name, start)
        _refuse_archive(name, start)
        compression = _compression_of(start)
        with _open_source(Source(name, "lines", compression)) as stream:
            layout = _layout(stream, Path(plain).suffix.lower())
    except FileNotFoundError as error:
        raise SourceError(f"cannot read {name}: no such file") from error
    except EOFError as error:
        raise SourceError(f"cannot read {name}: {error}") from error
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
    """Return the layout: lines, an array of records, or one record over many lines.

    A line may itself be an array (of messages), so the contents of a one-line array are inspected.
    """
    line, _, rest = text.partition(b"\n")
    is_whole = len(text) < _LONGEST_START
    if (value := exact_json(line.strip())) is None:
        if text.startswith(b"["):
            if is_whole and _is_conversation(text):
                return "record"
            return "lines" if suffix in _LINES and not rest and not is_whole else "array"
        if is_whole and rest and exact_json(text.strip()) is not None:
            return "record"
        return "array" if rest and _are_printed(text) else "lines"
    if not text.startswith(b"[") or suffix in _LINES or rest.strip() or _is_known(line):
        return "lines"
    elements = parse_json(value)
    return "array" if not elements or _is_known(encode_json(elements[0])) else "lines"


def _are_printed(text: bytes) -> bool:
    """Return whether records over many lines follow each other, as `jq` prints them."""
    try:
        first = next(iter(_array_framing().feed(text)), None)
    except DragomanError:
        return False
    return first is not None and b"\n" in first and exact_json(first) is not None


_LINES = frozenset({".jsonl", ".ndjson"})


def _is_conversation(array: bytes) -> bool:
    """Return whether all elements of an array together are one record: messages, or lines of a session."""
    try:
        return known_dataset(parse_json(array)) is not None
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False


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
    if not stat.S_ISREG(status.st_mode):  # a source is read several times
        raise SourceError(f"cannot read {name}: it is a pipe or a device; name it as stdin: - < {name}")
    return status.st_size, status.st_mtime_ns


@contextmanager
def _open_source(source: Source) -> Iterator[IO[bytes]]:
    """Yield the bytes of a source, decompressed."""
    if source.name == STDIN and not source.compression:
        yield sys.stdin.buffer
        return
    if source.name == STDIN:
        raw: IO[bytes] = sys.stdin.buffer
    elif is_remote(source.name):
        files, path = remote_file_system(source.name)
        # Buffered, because files of object stores read lines without a length limit, and byte by byte.
        raw = io.BufferedReader(files.open(path, "rb"), _CHUNK)
    else:
        raw = open(source.name, "rb")  # noqa: PTH123, SIM115  # closed below, with what reads it
    with raw:
        if source.compression == "gz":
            with gzip.open(raw, "rb") as stream:
                yield cast("IO[bytes]", stream)
        elif source.compression == "zst":
            yield cast("IO[bytes]", io.BufferedReader(ZstdReader(raw), _CHUNK))
        else:
            yield raw


class ZstdReader(io.RawIOBase):
    """Decompresses concatenated zstd frames.

    A truncated frame is an error. The package's own reader treats it as the end of the file.
    """

    def __init__(self, raw: IO[bytes]) -> None:
        try:
            import zstandard  # noqa: PLC0415 - only for such files
        except ImportError as error:
            message = f"zstd files need zstandard: {install_command('batch')}"
            raise NotConfigured(message, missing="zstandard") from error
        self._raw, self._error = raw, zstandard.ZstdError
        self._new_frame = zstandard.ZstdDecompressor().decompressobj
        self._frame: Any = None
        self._packed = self._plain = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._plain:
            packed = self._packed or self._raw.read(_PACKED_AT_ONCE)
            if not packed:
                if self._frame is not None:
                    raise EOFError("the compressed file ends in the middle of a frame")
                return 0
            self._decompress(packed)
        length = min(len(buffer), len(self._plain))
        buffer[:length], self._plain = self._plain[:length], self._plain[length:]
        return length

    def _decompress(self, packed: bytes) -> None:
        if self._frame is None:
            self._frame = self._new_frame()
        try:
            self._plain = self._frame.decompress(packed)
        except self._error as error:
            raise OSError(str(error)) from error
        self._packed = self._frame.unused_data
        if self._frame.eof:
            self._frame = None


# ── shards ──


def plan_shards(source: Source, index: int, options: JobOptions) -> list[Shard]:
    """Return the shards of a source that can be read from anywhere. They depend only on the source and the options."""
    if source.layout == "lines":
        # Of equal size: a short last shard would leave cores idle at the end.
        count = -(-source.size // options.shard_bytes)
        edges = [source.size * number // count for number in range(count + 1)] if count else [0]
    else:
        edges = tables.edges(source.name, source.layout, options)
    return [Shard(index, number, start, stop) for number, (start, stop) in enumerate(pairwise(edges))]


def read_shard(source: Source, shard: Shard, options: JobOptions) -> Iterator[list[bytes]]:
    """Yield the records of a shard in batches: lines unchanged (blank ones too, they are counted), rows as JSON."""
    if source.layout == "lines":
        return _read_lines(source, shard)
    return batched(tables.read_rows(source.name, source.layout, shard.start, shard.stop, options), _ROWS)


def batched(records: Iterator[bytes], size: int) -> Iterator[list[bytes]]:
    """Yield lists of `size` records, the last one shorter."""
    while batch := list(islice(records, size)):
        yield batch


def split_lines(content: bytes) -> list[bytes]:
    """Return the lines without their ends; a line end at the end of the content adds no line."""
    lines = content.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return lines


def _read_lines(source: Source, shard: Shard) -> Iterator[list[bytes]]:
    """Yield the lines of a shard. A line belongs to the shard that contains its first byte."""
    with _open_source(source) as stream:
        position = shard.start
        if position:
            stream.seek(position - 1)
            position += _rest_of_line(stream)[1] - 1
        while position < shard.stop:
            chunk = stream.read(min(_LINES_AT_ONCE, shard.stop - position))
            if not chunk:
                return
            lines, length = split_lines(chunk), len(chunk)
            if not chunk.endswith(b"\n"):
                rest, more = _rest_of_line(stream)
                lines[-1] += rest.removesuffix(b"\n")
                length += more
            if not position:
                lines[0] = lines[0].removeprefix(BOM)
            yield lines
            position += length


def _rest_of_line(stream: IO[bytes]) -> tuple[bytes, int]:
    """Return the bytes up to the end of the line, and their number.

    Of a line longer than any body may be, only the start is kept: it is rejected for its size.
    """
    line = stream.readline(MAX_BODY_BYTES + 2)
    length = len(line)
    if length > MAX_BODY_BYTES + 1:
        while not line.endswith(b"\n") and (more := stream.readline(_CHUNK)):
            length += len(more)
            if more.endswith(b"\n"):
                break
    return line, length


def read_blocks(source: Source, options: JobOptions) -> Iterator[bytes]:
    """Yield blocks of whole lines, one record each, of a source that can only be read from its start."""
    records = 0
    with _open_source(source) as stream:
        try:
            for block in _READERS[source.layout](stream, options.shard_bytes):
                yield block
                records += block.count(b"\n")
        except _DAMAGE as error:
            words = f"cannot read {source.name} to its end: it is damaged after record {records} ({error})"
            raise SourceError(words) from error


def _blocks_of_lines(stream: IO[bytes], size: int) -> Iterator[bytes]:
    """Yield blocks of lines. Lines before a damaged position are yielded before the error."""
    block, is_first = bytearray(), True
    try:
        while piece := stream.read1(_CHUNK):  # type: ignore[attr-defined]  # `read` would drop it
            block += piece
            if len(block) >= size:
                if not block.endswith(b"\n"):
                    block += _rest_of_line(stream)[0]
                yield bytes(block).removeprefix(BOM) if is_first else bytes(block)
                block, is_first = bytearray(), False
    except _DAMAGE:
        yield bytes(block[: block.rfind(b"\n") + 1])
        raise
    if block:
        yield bytes(block).removeprefix(BOM) if is_first else bytes(block)


def _whole_session(stream: IO[bytes], _size: int) -> Iterator[bytes]:
    """Yield all lines as one list."""
    lines = [line.strip() for block in _blocks_of_lines(stream, _CHUNK) for line in split_lines(block)]
    found = readable_lines(filter(None, lines))
    if sum(map(len, found)) > MAX_BODY_BYTES:
        found = found[:1]  # rejected as the start of a session
    yield b"[" + b",".join(found) + b"]\n"


def _whole_record(stream: IO[bytes], _size: int) -> Iterator[bytes]:
    yield _as_line(stream.read(MAX_BODY_BYTES + 1).removeprefix(BOM))


def _array_framing() -> JsonArray:
    return JsonArray(Limits(event_bytes=MAX_BODY_BYTES, stream_bytes=sys.maxsize), "JSON array")


def _array_elements(stream: IO[bytes], size: int) -> Iterator[bytes]:
    framing = _array_framing()
    block, held = list[bytes](), 0
    while chunk := stream.read(_CHUNK):
        for element in framing.feed(chunk):
            block.append(_as_line(element))
            held += len(element)
            if held >= size:
                yield b"".join(block)
                block, held = [], 0
    if not (is_cut := framing.is_open):
        block.extend(map(_as_line, framing.close()))
    if block:
        yield b"".join(block)
    if is_cut:
        raise EOFError("the JSON ends before its last bracket")


def _as_line(record: bytes) -> bytes:
    """Return the record in one line: between JSON tokens, a space is as good as a line end."""
    return record.replace(b"\n", b" ") + b"\n"


_READERS: dict[str, Callable[[IO[bytes], int], Iterator[bytes]]] = {
    "lines": _blocks_of_lines,
    "array": _array_elements,
    "record": _whole_record,
    "session": _whole_session,
}


def first_records(source: Source, shard: Shard | None, options: JobOptions, count: int) -> list[bytes]:
    """Return the first records, to detect what the source holds."""
    if source.name == STDIN:
        return []
    if shard is not None:
        batches = read_shard(source, shard, options)
    else:
        small = structs.replace(options, shard_bytes=_CHUNK)
        batches = (split_lines(block) for block in read_blocks(source, small))
    records = (record for batch in batches for record in batch if record.strip())
    return list(islice(records, count))
