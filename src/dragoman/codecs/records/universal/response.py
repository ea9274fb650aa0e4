"""One answer as a universal message record, both ways."""

from __future__ import annotations

from msgspec import Raw

from dragoman.codecs.encoded import Encoded
from dragoman.codecs.reading import WireReader
from dragoman.codecs.records.answers import finish_with, only_message
from dragoman.codecs.records.roles import place_of
from dragoman.codecs.records.universal.messages import FAMILY, STYLE, MessageDecoder, MessageEncoder
from dragoman.codecs.records.universal.wire import MessageRecord
from dragoman.errors import DecodeError
from dragoman.ir import Completion
from dragoman.losses import LossLog, paths_by

_reader = WireReader(MessageRecord, f"{FAMILY} answer")


def decode_response(body: bytes) -> Completion:
    role = _reader.read(body).role
    if role != "assistant":
        raise DecodeError(path="$.role", expected="assistant", got=repr(role), source=FAMILY)
    decoder = MessageDecoder()
    decoder.add_message("assistant", Raw(body), "$")
    (message,) = decoder.messages
    return Completion((message,), finish_with(message), metadata={FAMILY: {}})


def encode_response(completion: Completion, log: LossLog) -> Encoded:
    (record,) = MessageEncoder(log).encode_message(only_message(completion, log))
    return Encoded(bytes(record))


def _json_path(completion: Completion, message_index: int | None, part_index: int | None, field: str) -> str:
    """Where in the stored answer a node of the completion came from."""
    if message_index is None:
        return "$"
    if part_index is None:
        return f"$.{field}" if field else "$"
    return "$" + place_of(completion.messages[message_index], part_index, field, STYLE)[1]


response_paths = paths_by(_json_path)
