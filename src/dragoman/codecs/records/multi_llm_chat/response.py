"""One answer as an entry of multi-llm-chat, both ways. The model that spoke is the entry's role."""

from __future__ import annotations

from msgspec import Raw

from dragoman.codecs.encoded import Encoded
from dragoman.codecs.records.answers import finish_with, only_message
from dragoman.codecs.records.multi_llm_chat.messages import FAMILY, MessageDecoder, MessageEncoder
from dragoman.codecs.records.multi_llm_chat.request import request_paths
from dragoman.errors import DecodeError
from dragoman.ir import Completion, Request
from dragoman.losses import LossLog, PathLookup


def decode_response(body: bytes) -> Completion:
    messages = MessageDecoder().decode_entry(Raw(body), "$")
    if len(messages) != 1 or messages[0].role != "assistant":
        got = messages[0].role if len(messages) == 1 else "results among its parts"
        raise DecodeError(path="$.role", expected="the entry of a model", got=got, source=FAMILY)
    return Completion(tuple(messages), finish_with(messages[0]), metadata={FAMILY: {}})


def encode_response(completion: Completion, log: LossLog) -> Encoded:
    message = only_message(completion, log)
    return Encoded(bytes(MessageEncoder(log).encode_entry(message, message.parts)))


def response_paths(completion: Completion) -> PathLookup:
    """Where in the stored answer the nodes of a completion came from."""
    lookup = request_paths(Request(None, completion.messages))

    def json_path(message_index: int | None, part_index: int | None, field: str) -> str:
        if message_index is None:
            return "$"
        return "$" + lookup(message_index, part_index, field).removeprefix("$.messages[0]")

    return json_path
