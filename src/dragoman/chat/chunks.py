"""Streams of any API as chunks of multi-llm-chat: text as it arrives, each call once and complete."""

from __future__ import annotations

from dragoman.codecs.unified_chunks import Chunk, ChunkWriter
from dragoman.streams import StreamDecoder


class ChunkReader:
    r"""Bytes of one stream in, chunks out, for any cut of the bytes.

    Gemini sends whole calls: each is a chunk when it arrives, in order with the text. Calls of other APIs come when the
    answer has ended well. A call of an answer that was blocked, cut inside the call, or broke off yields no chunk; if
    that becomes known only after its chunk was returned, an `error` chunk follows. So run calls only after the stream
    has ended without an error.

    A Gemini call with empty arguments is held back until its arguments arrive or the answer ends.

    >>> reader = ChunkReader("ollama-chat")
    >>> reader.feed(b'{"model":"m","message":{"role":"assistant","content":"Hello"},"done":false}')
    []
    >>> reader.feed(b'\n')
    [{'type': 'text', 'content': 'Hello'}]
    """

    def __init__(self, source: str) -> None:
        self._decoder = StreamDecoder(source, joins_calls=True)
        self._writer = ChunkWriter(in_order=self._decoder.sends_whole_calls)

    def feed(self, data: bytes) -> list[Chunk]:
        events = self._decoder.feed(data)
        arrived = self._decoder.settle()
        return list(self._writer.write([*events, *(arrived or ())], arrived=arrived is not None))

    def close(self) -> list[Chunk]:
        """Ends the stream and returns the chunks of calls that were held back until now."""
        return list(self._writer.write(self._decoder.close()))
