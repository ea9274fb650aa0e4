"""Streams of any API as the chunks that multi-llm-chat stores: text as it comes, every call once and whole."""

from __future__ import annotations

from dragoman.codecs.unified_chunks import Chunk, ChunkWriter
from dragoman.streams import StreamDecoder


class ChunkReader:
    r"""Bytes of one stream in, chunks out, for any cut of the bytes.

    Calls come when the answer has ended well, in the order of arrival: a call of an answer that was blocked, cut inside
    the call, or broke off is none.

    >>> reader = ChunkReader("ollama-chat")
    >>> reader.feed(b'{"model":"m","message":{"role":"assistant","content":"Hello"},"done":false}')
    []
    >>> reader.feed(b'\n')
    [{'type': 'text', 'content': 'Hello'}]
    """

    def __init__(self, source: str) -> None:
        self._decoder = StreamDecoder(source)
        self._writer = ChunkWriter()

    def feed(self, data: bytes) -> list[Chunk]:
        return list(self._writer.write(self._decoder.feed(data)))

    def close(self) -> list[Chunk]:
        """The end of the bytes. Without it, calls that were waiting for the end are missing."""
        return list(self._writer.write(self._decoder.close()))
