"""What MCP servers write to standard output (extra `mcp`), as the SDK decodes it: whole lines, each of limited size.

The SDK joins the pieces of an unfinished line again for each piece, which takes quadratic time, and has no limit. The
encoding of a server's output is the only place where it can be given one.
"""

from __future__ import annotations

import codecs

from dragoman.agent.mcp_http import MOST, MOST_VALUES, JsonValues

ENCODING = "dragoman_mcp_lines"
"""UTF-8. Decoded in pieces, an unfinished line is held until it is complete."""
_UTF8 = codecs.lookup("utf-8")


class _LineDecoder(codecs.IncrementalDecoder):
    """A line that exceeds a limit is dropped: the call that waits for it ends at its time limit."""

    def __init__(self, errors: str = "strict") -> None:
        super().__init__(errors)
        self._start_line()

    def _start_line(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0
        self._values = JsonValues()
        self._is_dropped = False

    def decode(self, input: bytes, final: bool = False) -> str:  # type: ignore[override] # noqa: FBT001, FBT002
        whole, end, rest = bytes(input).rpartition(b"\n")
        lines = ""
        if end:
            first, _, others = (whole + end).partition(b"\n")
            self._hold(first)
            lines = self._join_pieces(b"\n") + others.decode("utf-8", self.errors)
            self._start_line()
        self._hold(rest)
        return lines + self._join_pieces(b"") if final else lines

    def _hold(self, data: bytes) -> None:
        self._size += len(data)
        if self._is_dropped or self._size > MOST or self._values.feed(data) > MOST_VALUES:
            self._is_dropped = True
            self._pieces.clear()
        else:
            self._pieces.append(data)

    def _join_pieces(self, end: bytes) -> str:
        return "" if self._is_dropped else (b"".join(self._pieces) + end).decode("utf-8", self.errors)


def _find(name: str) -> codecs.CodecInfo | None:
    if name != ENCODING:
        return None
    return codecs.CodecInfo(_UTF8.encode, _UTF8.decode, incrementaldecoder=_LineDecoder, name=ENCODING)


codecs.register(_find)
