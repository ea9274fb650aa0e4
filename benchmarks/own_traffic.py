"""Bodies and streams of a user's own files, for `make bench ARGS='--own FILE ...'`.

A file is one JSON body, JSON Lines of bodies (also gzipped), or one recorded stream of server-sent events. Format and
kind are detected, as `dragoman inspect` does. Nothing leaves the machine.
"""

import gzip
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, cast

import orjson

from benchmarks.bodies import FIRST, LATER, Format
from benchmarks.corpus import Kind, Sample, body_sample, server_sent_event

_FORMATS: Final = frozenset((*FIRST, *LATER))
Found = dict[tuple[Format, Kind], list[Sample]]


def read(paths: Sequence[Path]) -> tuple[Found, list[str]]:
    """The samples by format and kind, and a remark for each body that cannot be measured."""
    found: Found = {}
    remarks = []
    for path in paths:
        for name, content in _contents(path):
            detected = _detected(content)
            if isinstance(detected, str):
                remarks.append(f"{name}: {detected}")
                continue
            source, kind = detected
            read_sample = _stream_sample if kind == "stream" else _body_sample
            found.setdefault(detected, []).append(read_sample(name, source, content))
    return found, remarks


def _contents(path: Path) -> Iterator[tuple[str, bytes]]:
    """Each body of a file with its name: a whole file, or a line of it."""
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    if _parsed(content) is not None or _is_stream(content):
        yield path.name, content
        return
    for number, line in enumerate(content.splitlines(), 1):
        if line.strip():
            yield f"{path.name}:{number}", line


def _is_stream(content: bytes) -> bool:
    return content.lstrip().startswith((b"data:", b"event:"))


def _parsed(content: bytes) -> Any:
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        return None


def _detected(content: bytes) -> tuple[Format, Kind] | str:
    """Format and kind, or why the content is not measured."""
    from dragoman import DragomanError, detect  # noqa: PLC0415 - its import is measured too, in fresh interpreters
    from dragoman.detection import detect_stream  # noqa: PLC0415 - as above

    if _is_stream(content):
        format, kind = detect_stream(content), "stream"
    else:
        try:
            detected = detect(content)
        except DragomanError as error:
            return str(error)
        format, kind = (None, "") if detected is None else (detected.format, detected.kind)
    if format is None:
        return "the format is unknown or ambiguous"
    if format not in _FORMATS or kind == "error":
        return f"{format} {kind}: not measured"
    return format, cast("Kind", kind)


def _body_sample(name: str, source: Format, content: bytes) -> Sample:
    return body_sample(name, source, orjson.loads(content))


def _stream_sample(name: str, source: Format, content: bytes) -> Sample:
    text = content.decode().replace("\r\n", "\n")
    events = [server_sent_event(f"{event}\n\n") for event in text.split("\n\n") if event.strip()]
    return Sample(name, source, tuple(chunk for chunk, _ in events), tuple(payload for _, payload in events if payload))
