"""Bodies, streams and values that reach code which no other golden page reaches, collected from tests of single rules.

`tests/golden_cases` has a file for each format and a line for each case: its kind, its text, and what came with it. The
tests that they come from assert one thing about each; the pages record all that becomes of them.
"""

import base64
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

FOLDER = Path(__file__).resolve().parent.parent / "golden_cases"
_IN_BASE64 = "="


@dataclass(frozen=True, slots=True)
class Collected:
    kind: str
    """request, response, error, stream; written-request and written-response: values of the intermediate format."""
    raw: bytes
    status: int | None = None
    headers: dict[str, str] | None = None

    @property
    def title(self) -> str:
        """Names the case by its content, so that a further case leaves the others as they are."""
        return f"{crc32(self.raw):08x}"

    @property
    def line(self) -> str:
        about = [self.status, self.headers] if self.kind == "error" else []
        return json.dumps([self.kind, _body_of(self.raw), *about], ensure_ascii=False)


def collected(name: str) -> Iterator[Collected]:
    for line in lines_of(name):
        kind, body, *about = json.loads(line)
        yield Collected(kind, _raw_of(body), *about)


def lines_of(name: str) -> list[str]:
    return (FOLDER / f"{name}.jsonl").read_text().rstrip("\n").split("\n")  # a text may have other line breaks


def _body_of(raw: bytes) -> Any:
    """Compact JSON as it is, other text as a text, and bytes in base64 behind a sign."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        text = _IN_BASE64
    if text[:1] == _IN_BASE64:
        return _IN_BASE64 + base64.b64encode(raw).decode()
    with suppress(ValueError):  # a stream, or a body that is refused
        found = json.loads(text)
        if not isinstance(found, str) and _compact(found) == raw:
            return found
    return text


def _raw_of(body: Any) -> bytes:
    if not isinstance(body, str):
        return _compact(body)
    return base64.b64decode(body[1:]) if body[:1] == _IN_BASE64 else body.encode()


def _compact(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
