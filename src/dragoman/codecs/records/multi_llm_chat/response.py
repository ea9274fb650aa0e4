"""One answer as an entry of multi-llm-chat, both ways. The model that spoke is the entry's role."""

from __future__ import annotations

from msgspec import Raw

from dragoman.codecs.encoded import Encoded
from dragoman.codecs.records.answers import finish_with, only_message
from dragoman.codecs.records.multi_llm_chat.messages import FAMILY, MessageDecoder, MessageEncoder
from dragoman.codecs.records.multi_llm_chat.request import request_paths
from dragoman.errors import DecodeError
from dragoman.ir import Completion, Request
from dragoman.losses import LossLog, paths_by


def decode_response(body: bytes) -> Completion:
    messages = MessageDecoder().decode_entry(Raw(body), "$")
    if len(messages) != 1 or messages[0].role != "assistant":
        got = messages[0].role if len(messages) == 1 else "results among its parts"
        raise DecodeError(path="$.role", expected="the entry of a model", got=got, source=FAMILY)
    return Completion(tuple(messages), finish_with(messages[0]), metadata={FAMILY: {}})


def encode_response(completion: Completion, log: LossLog) -> Encoded:
    message = only_message(completion, log)
    return Encoded(bytes(MessageEncoder(log).encode_entry(message, message.parts)))


def _json_path(completion: Completion, message_index: int | None, part_index: int | None, field: str) -> str:
    """Where in the stored answer a node of the completion came from."""
    if message_index is None:
        return "$"
    path = request_paths(Request(None, completion.messages))(message_index, part_index, field)
    return "$" + path.removeprefix("$.messages[0]")


response_paths = paths_by(_json_path)
