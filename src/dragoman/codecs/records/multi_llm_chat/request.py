"""Histories of multi-llm-chat as requests, both ways.

The file of a saved conversation is read too: its turns are the messages, its system prompt the first of them.
"""

from __future__ import annotations

from msgspec import UNSET, Raw, structs

from dragoman.codecs.encoded import Encoded
from dragoman.codecs.reading import WireReader, spliced
from dragoman.codecs.records.history import History, Places, decode_history, encode_history
from dragoman.codecs.records.multi_llm_chat.messages import BAG, FAMILY, GOES_ON, ROLE, MessageDecoder, MessageEncoder
from dragoman.codecs.records.multi_llm_chat.wire import StoredChat
from dragoman.codecs.records.reading import CONTENT, TRUE, as_json, is_list
from dragoman.codecs.records.roles import within_part
from dragoman.codecs.records.tools import ToolStyle
from dragoman.ir import AnyPart, Message, Request
from dragoman.ir.messages import content_held
from dragoman.ir.values import note
from dragoman.losses import LossLog, PathLookup

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


def request_paths(request: Request) -> PathLookup:
    """Where in the stored body the nodes of a request came from. What is counted is counted once, when it is needed."""
    messages = request.messages
    own = _places.paths(request)
    entries: list[tuple[list[tuple[int, int]], PathLookup]] = []

    def json_path(message_index: int | None, part_index: int | None, field: str) -> str:
        if message_index is not None and note(messages[message_index].metadata, FAMILY, PROMPT) is not UNSET:
            return "$.system_prompt"
        if message_index is not None and part_index is not None:
            if not entries:
                starts, joined = _joined_entries(messages)
                entries.append((starts, _places.paths(structs.replace(request, messages=joined))))
            starts, lookup = entries[0]
            first, before = starts[message_index]
            return lookup(first, before + part_index, field)
        if field == "name" and message_index is not None and _is_model(messages[message_index]):
            field = "role"
        return own(message_index, part_index, field)

    return json_path


def _is_model(message: Message) -> bool:
    """Whether the entry names its speaker by its role."""
    return message.role == "assistant" and note(message.metadata, FAMILY, ROLE) is UNSET


def _joined_entries(messages: tuple[Message, ...]) -> tuple[list[tuple[int, int]], tuple[Message, ...]]:
    """For each message the one that begins its entry and the parts of that entry before it; and the joined messages.

    Joined: the parts of each entry stand together in the first message of it.
    """
    starts: list[tuple[int, int]] = []
    parts: dict[int, list[AnyPart]] = {}
    for index, message in enumerate(messages):
        goes_on = index > 0 and note(message.metadata, FAMILY, GOES_ON) is not UNSET
        first = starts[-1][0] if goes_on else index
        starts.append((first, len(parts.setdefault(first, []))))
        parts[first] += message.parts
    several = {first for index, (first, _) in enumerate(starts) if first != index}
    joined = tuple(
        structs.replace(message, parts=tuple(parts[index])) if index in several else message
        for index, message in enumerate(messages)
    )
    return starts, joined


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
