"""ShareGPT with tools, as LLaMA-Factory reads it: turns from human, gpt, function_call and observation.

A `function_call` turn is JSON text of one call or of a list; there are no ids, so results follow calls in order. Tools
are JSON text of bare functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import structs

from dragoman.codecs.datasets.conversation import (
    TOOL_KEYS,
    UNSTORED_IMAGES,
    UNSTORED_TOOLS,
    UNSTORED_WORDS,
    Conversation,
    Json,
    Piece,
    Placeholders,
    arguments_value,
    drop_part,
    file_url,
    items,
    join_tagged,
    left_over,
    mappings,
    no_tools_key,
    no_tools_note,
    noted_images,
    own_keys,
    read_tools,
    refuse,
    report_settings,
    result_text,
    text_of,
    write_tools,
)
from dragoman.codecs.datasets.dataset import Dataset
from dragoman.codecs.datasets.known_keys import all_keys, keys, kinds_of
from dragoman.codecs.datasets.tagged_calls import has_call_tags
from dragoman.codecs.datasets.trl import content_pieces
from dragoman.ir import Image, Message, Reasoning, Refusal, Request, Text, ToolCall, ToolResult
from dragoman.ir.values import compact_text, parse_json
from dragoman.losses import LossLog

NAME = "sharegpt"
_HUMAN = frozenset({"human", "user"})
_MODEL = frozenset({"gpt", "assistant", "chatgpt", "bing", "bard", "model"})
_RESULT = frozenset({"observation", "tool", "function_response", "function-response"})
_CALL = frozenset({"function_call", "function-call", "tool_call"})


def turns_of(data: Json) -> Json:
    """Return the turns of a record: `conversations`, or `items` in older files."""
    if not isinstance(data, dict):
        return None
    found = data.get("conversations", data.get("items"))
    turns = mappings(found)
    return found if turns and all("from" in turn and "value" in turn for turn in turns) else None


def is_record(data: Json) -> bool:
    """Return whether these are turns with `from` and `value`, and calls are not written as tags in the text."""
    turns = turns_of(data)
    if turns is None or "[func1(" in text_of(data.get("system")):  # ToolACE has calls in the text
        return False
    return not any(has_call_tags(text_of(turn.get("value"))) for turn in turns)


def read(data: Json) -> Request:
    turns = turns_of(data)
    if turns is None:
        raise refuse(NAME, "$.conversations", "turns with `from` and `value`", data)
    key = "conversations" if "conversations" in data else "items"
    tools, images = read_tools(data.get("tools")), Placeholders(NAME, data.get("images"))
    conversation = Conversation(NAME, tools)
    if text_of(data.get("system")):
        conversation.add("system", [(Text(data["system"]), "$.system")], "$.system")
    for index, turn in enumerate(items(turns, NAME, f"$.{key}")):
        _add_turn(conversation, turn, f"$.{key}[{index}]", images)
    known = (key, "system", "tools", *(("images",) if images else ()))
    return conversation.finish(
        metadata={**left_over(data, known), **no_tools_note(data, tools), **images.note()},
    )


def _add_turn(conversation: Conversation, turn: Mapping[str, Json], place: str, images: Placeholders) -> None:
    speaker, value = text_of(turn.get("from")).lower(), turn.get("value")
    if speaker in _CALL:
        conversation.add("assistant", [(call, place) for call in _calls(conversation, value, place)], place)
    elif speaker in _RESULT:
        conversation.add("tool", [(conversation.result(value), place)], place)
    elif speaker in _HUMAN or speaker == "system":
        role = "system" if speaker == "system" else "user"
        pieces = _with_images(value, f"{place}.value", images) if images and isinstance(value, str) else None
        pieces = content_pieces(value, f"{place}.value") if pieces is None else pieces
        conversation.add(role, pieces, place)  # type: ignore[arg-type]
    elif speaker in _MODEL:
        conversation.add("assistant", content_pieces(value, f"{place}.value", thinking=True), place)
    else:
        raise refuse(NAME, f"{place}.from", "human, gpt, function_call, observation or system", turn.get("from"))


IMAGE = "<image>"
"""Stands in the text for the next image of the list beside the conversation."""


def _with_images(text: str, place: str, images: Placeholders) -> list[Piece]:
    """Return the text with its images in their places."""
    pieces: list[Piece] = []
    for index, words in enumerate(text.split(IMAGE)):
        if index:
            image = images.next()
            if image is None:
                raise refuse(NAME, "$.images", "an image for each <image> in the text", None)
            pieces.append((image, place))
        if words:
            pieces.append((Text(words), place))
    return pieces


def _calls(conversation: Conversation, value: Json, place: str) -> list[ToolCall]:
    try:
        parsed = parse_json(value) if isinstance(value, str) else value
    except (msgspec.DecodeError, UnicodeError) as error:
        raise refuse(NAME, f"{place}.value", "JSON of a call or of a list of calls", value) from error
    calls = parsed if isinstance(parsed, list) else [parsed]
    return [
        conversation.call(call.get("name"), call.get("arguments", call.get("parameters")))
        for call in items(calls, NAME, f"{place}.value")
    ]


def write(request: Request, log: LossLog) -> Json:
    report_settings(request, log)
    record: dict[str, Any] = {"conversations": []}
    images = _Images(request)
    turns: list[Json] = record["conversations"]
    for index, message in enumerate(request.messages):
        if message.role == "system" and index == 0:
            record["system"] = message.text
        elif message.role == "tool":
            turns += [
                {"from": "observation", "value": _observation(part, log)}
                for part in message.parts
                if isinstance(part, ToolResult)
            ]
        else:
            turns += _write_message(message, images, log)
    tools = write_tools(request, log, bare=True)
    if tools:
        record["tools"] = compact_text(tools)
    return {**record, **own_keys(request, NAME), **no_tools_key(request, NAME), **images.key()}


class _Images:
    """The images of a conversation, as the list beside it that `<image>` in the text refers to."""

    def __init__(self, request: Request) -> None:
        self._noted = noted_images(request, NAME)
        self._listed: list[Json] = []
        texts = (part.text for message in request.messages for part in message.parts if isinstance(part, Text))
        self._is_ambiguous = any(IMAGE in text for text in texts)

    def placeholder(self, image: Image) -> str | None:
        """Return what stands in the text; None if the image has no address, or a text has the placeholder in it."""
        address = file_url(image)
        if not address or self._is_ambiguous:
            return None
        self._listed.append(address)
        return IMAGE

    def key(self) -> dict[str, Json]:
        return {"images": self._noted or self._listed} if self._listed else {}


def _observation(result: ToolResult, log: LossLog) -> str:
    if result.is_error:
        log.degrade(result, "kind", "that the tool failed", "results have no error flag in this format")
    return result_text(result, log)


def _write_message(message: Message, images: _Images, log: LossLog) -> list[Json]:
    speaker = {"system": "system", "user": "human"}.get(message.role, "gpt")
    thoughts = [part for part in message.parts if isinstance(part, Reasoning)]
    text = ""
    calls = [part for part in message.parts if isinstance(part, ToolCall)]
    for part in message.parts:
        if isinstance(part, Reasoning) and part.signature is not None:
            log.drop(part, "signature", "signature", "this format does not keep signatures")
        elif isinstance(part, Text | Refusal):
            text += part.text
        elif isinstance(part, Image) and message.role == "user" and (stands := images.placeholder(part)):
            text += stands
        elif not isinstance(part, Reasoning | ToolCall):
            drop_part(part, log)
    turns: list[Json] = []
    value = join_tagged(thoughts, text)
    if value or not calls:
        turns.append({"from": speaker, "value": value})
    if calls:
        written = [{"name": call.name, "arguments": arguments_value(call, NAME)} for call in calls]
        turns.append({"from": "function_call", "value": compact_text(written if len(written) > 1 else written[0])})
    return turns


TURN_KEYS = keys("from value")
_CALL_KEYS = structs.replace(keys("name arguments parameters"), as_text=True)
_TURN_KEYS = kinds_of("from", {" ".join(sorted(_CALL)): keys(value=_CALL_KEYS)}, TURN_KEYS)
_KEYS = all_keys(conversations=_TURN_KEYS, items=_TURN_KEYS, tools=TOOL_KEYS)
DATASET = Dataset(
    NAME, is_record, read, write, keys=_KEYS, unstored={**UNSTORED_WORDS, **UNSTORED_IMAGES, **UNSTORED_TOOLS}
)
