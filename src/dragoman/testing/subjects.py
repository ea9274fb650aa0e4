"""A codec on the bench: registered or not, it is spoken to in the same way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any, TypeAlias

from msgspec import structs

from dragoman.codecs.accumulate import accumulate
from dragoman.codecs.reading import body_bytes
from dragoman.codecs.registry import Codec, codec, folder_of, formats
from dragoman.codecs.stream_limits import Limits
from dragoman.errors import StreamError
from dragoman.fidelity.cases import Heard
from dragoman.ir import AnyEvent, Completion, Request
from dragoman.loss import Loss
from dragoman.losses import LossLog, intermediate_paths
from dragoman.passes.answers import legalise_answer
from dragoman.passes.legalise import legalise
from dragoman.passes.private import PrivateEvents

Bodies: TypeAlias = Iterable[bytes | str | dict[str, Any]]


class Subject:
    """A codec, its stream module if it has one, and bodies known to be valid."""

    def __init__(self, given: str | Codec, requests: Bodies, responses: Bodies, stream: ModuleType | None) -> None:
        self.codec = codec(given) if isinstance(given, str) else given
        self.name = self.codec.name
        self.requests = [body_bytes(body, self.name) for body in requests]
        self.responses = [body_bytes(body, self.name) for body in responses]
        self.stream: Any = stream or (_stream_module(given) if isinstance(given, str) else None)

    def write_request(self, request: Request) -> tuple[bytes, tuple[Loss, ...]]:
        log = LossLog()
        encoded = self.codec.encode_request(legalise(request, self.codec.profile, log), log)
        return encoded.json(), log.resolve(request, intermediate_paths)

    def write_response(self, completion: Completion) -> tuple[bytes, tuple[Loss, ...]]:
        log = LossLog()
        encoded = self.codec.encode_response(legalise_answer(completion, self.codec.profile, None, log), log)
        return encoded.json(), log.resolve(completion, intermediate_paths)

    def as_asked(self, completion: Completion, request: Request | None) -> Completion:
        """The answer with the tools as the client had declared them."""
        return legalise_answer(completion, self.codec.profile, request, LossLog())

    def same_request(self, body: bytes) -> bytes:
        """The body after decoding and encoding, as of its own family: nothing is made legal, nothing may change."""
        request = self.codec.decode_request(body)
        return self.codec.encode_request(structs.replace(request, origin=self.codec.profile.family), LossLog()).json()

    def same_response(self, body: bytes) -> bytes:
        return self.codec.encode_response(self.codec.decode_response(body), LossLog()).json()

    def write_stream(self, events: Sequence[AnyEvent], *, ended: bool = True) -> tuple[bytes, tuple[Loss, ...]]:
        log = LossLog()
        encoder = self.stream.EventEncoder(log)
        report = PrivateEvents(self.codec.profile, log).report  # as `StreamEncoder` does for every codec
        content = encoder.encode(report(list(events))) + (encoder.close() if ended else b"")
        return content, log.resolve(Completion(()), intermediate_paths)

    def read_stream(self, content: bytes, size: int | None = None) -> list[AnyEvent]:
        decoder = self.stream.PayloadDecoder()
        framing = decoder.framing(Limits())
        step = size or max(len(content), 1)
        pieces = [content[start : start + step] for start in range(0, len(content), step)]
        payloads = [payload for piece in pieces for payload in framing.feed(piece)] + framing.close()
        return [*(event for payload in payloads for event in decoder.decode(payload)), *decoder.close()]


def _stream_module(name: str) -> ModuleType | None:
    """Stored histories have no streams."""
    module = f"dragoman.codecs.{folder_of(name)}.stream"
    return import_module(module) if name not in formats("record") and find_spec(module) is not None else None


def heard(events: Iterable[AnyEvent]) -> Heard:
    try:
        return Heard(accumulate(events))
    except StreamError as error:
        return Heard(error.partial, error.failure)
