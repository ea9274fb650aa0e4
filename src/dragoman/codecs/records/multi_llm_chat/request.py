"""Histories of multi-llm-chat as requests, both ways.

The file of a saved conversation is read too: its turns are the messages, its system prompt the first of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET, Raw, structs

from dragoman.codecs.encoded import Encoded
from dragoman.codecs.reading import WireReader, spliced
from dragoman.codecs.records.history import History, Places, decode_history, encode_history
from dragoman.codecs.records.multi_llm_chat.messages import BAG, FAMILY, GOES_ON, ROLE, MessageDecoder, MessageEncoder
from dragoman.codecs.records.multi_llm_chat.wire import StoredChat
from dragoman.codecs.records.reading import CONTENT, TRUE, as_json, is_list
from dragoman.codecs.records.roles import within_part
from dragoman.codecs.records.tools import ToolStyle
from dragoman.ir import Message, Request
from dragoman.ir.messages import content_held
from dragoman.ir.values import note
from dragoman.losses import LossLog, paths_by

PROMPT = "~system_prompt"
"""Note: this message is the system prompt of a saved conversation, not one of its turns."""

_reader = WireReader(StoredChat, FAMILY, aliases={"turns": "messages", "history": "messages"})
HISTORY = History(FAMILY, ToolStyle(FAMILY), _reader, MessageDecoder, MessageEncoder)


def decode_request(body: bytes) -> Request:
    request = decode_history(body, HISTORY)
    prompt = None if is_list(body) else _reader.read(body).system_prompt
    if prompt is None:
        return request
    first = Message("system", prompt, None, {FAMILY: {PROMPT: TRUE}})
    return structs.replace(request, messages=(first, *request.messages))


def encode_request(request: Request, log: LossLog) -> Encoded:
    first = request.messages[0] if request.messages else None
    if first is None or note(first.metadata, FAMILY, PROMPT) is UNSET:
        return encode_history(request, HISTORY, log)
    encoded = encode_history(structs.replace(request, messages=request.messages[1:]), HISTORY, log)
    return Encoded(bytes(spliced(Raw(encoded.content), {"system_prompt": as_json(first.text)})))


# ── paths of losses ───────────────────────────────────────────────────────────────────────────────────────────


def _json_path(request: Request, message_index: int | None, part_index: int | None, field: str) -> str:
    """Where in the stored body a node came from."""
    if message_index is not None and note(request.messages[message_index].metadata, FAMILY, PROMPT) is not UNSET:
        return "$.system_prompt"
    if message_index is not None and part_index is not None:
        first = _first_of(request.messages, message_index)
        part_index += _parts_before(request.messages, message_index)
        request = structs.replace(request, messages=_entry_of(request.messages, message_index))
        return _places.paths(request)(first, part_index, field)
    if field == "name" and message_index is not None and _is_model(request.messages[message_index]):
        field = "role"
    return _places.paths(request)(message_index, part_index, field)


def _is_model(message: Message) -> bool:
    """Whether the entry names its speaker by its role."""
    return message.role == "assistant" and note(message.metadata, FAMILY, ROLE) is UNSET


def _first_of(messages: Sequence[Message], index: int) -> int:
    """The message that begins the entry this one belongs to."""
    while index and note(messages[index].metadata, FAMILY, GOES_ON) is not UNSET:
        index -= 1
    return index


def _parts_before(messages: Sequence[Message], index: int) -> int:
    return sum(len(message.parts) for message in messages[_first_of(messages, index) : index])


def _entry_of(messages: tuple[Message, ...], index: int) -> tuple[Message, ...]:
    """The messages up to this one, with the parts of its entry together in the first of it."""
    first = _first_of(messages, index)
    parts = tuple(part for message in messages[first : index + 1] for part in message.parts)
    whole = messages[first] if first == index else structs.replace(messages[first], parts=parts)
    return (*messages[:first], whole)


def _count(message: Message) -> int:
    return 0 if message.metadata and {GOES_ON, PROMPT} & message.metadata.get(FAMILY, {}).keys() else 1


def _place(message: Message, part_index: int, field: str) -> tuple[int, str]:
    part = message.parts[part_index]
    if type(content_held(message)) is str:
        return 0, ".content"
    within = within_part(part, field, FAMILY, BAG)
    if CONTENT in (getattr(part, "metadata", None) or {}).get(FAMILY, {}):
        return 0, within
    return 0, f".content[{part_index}]{within}"


_places = Places(HISTORY, _count, _place)


request_paths = paths_by(_json_path)
