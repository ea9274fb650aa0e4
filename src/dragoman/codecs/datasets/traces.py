"""Calls of models as tracing services export them: runs of LangSmith, generations of Langfuse. Read-only.

They keep what the client sent and received, as objects or as JSON text. Messages of Chat, Anthropic and LangChain are
read; any other logged value is refused.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import structs

from dragoman.codecs.datasets import langchain
from dragoman.codecs.datasets.conversation import (
    TOOL_KEYS,
    Conversation,
    Json,
    mappings,
    media,
    read_tools,
    refuse,
    text_of,
)
from dragoman.codecs.datasets.dataset import Dataset
from dragoman.codecs.datasets.frameworks import add_turn, read_blocks
from dragoman.codecs.datasets.known_keys import keys, merge_keys, messages_in
from dragoman.codecs.datasets.trl import MESSAGE_KEYS, add_message
from dragoman.codecs.media import data_url
from dragoman.ir import AnyPart, Reasoning, Request, Signature, Text
from dragoman.ir.values import parse_json

LANGSMITH, LANGFUSE = "langsmith", "langfuse"


def is_langsmith(data: Json) -> bool:
    """Return whether this is a run of a model with its messages; other runs (chains, tools) hold any value."""
    return isinstance(data, dict) and data.get("run_type") == "llm" and bool(_messages(_logged(data.get("inputs"))))


def read_langsmith(data: Json) -> Request:
    extra = data.get("extra")
    found = extra.get("invocation_params") if isinstance(extra, dict) else None
    parameters: Mapping[str, Json] = found if isinstance(found, dict) else {}
    model = parameters.get("model", parameters.get("model_name"))
    return _read(LANGSMITH, data, "inputs", "outputs", model, parameters.get("tools"))


def is_langfuse(data: Json) -> bool:
    """Return whether this is a generation with its messages; other observations hold any value."""
    is_generation = isinstance(data, dict) and data.get("type") == "GENERATION"
    return is_generation and bool(_messages(_logged(data.get("input"))))


def read_langfuse(data: Json) -> Request:
    return _read(LANGFUSE, data, "input", "output", data.get("model"))


def _logged(value: Json) -> Json:
    """Return a logged value; tables of exports have the JSON text of it."""
    if not isinstance(value, str) or value.lstrip()[:1] not in {"[", "{"}:
        return value
    try:
        return parse_json(value)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return value


def _messages(logged: Json) -> list[Mapping[str, Json]]:
    """Return the messages that were sent: as a list, or in a body; none if there are several prompts."""
    found = logged.get("messages") if isinstance(logged, dict) else logged
    if isinstance(found, list) and _is_batch(found):
        found = found[0]
    is_list = isinstance(found, list) and all(isinstance(one, dict) and _is_message(one) for one in found)
    return mappings(found) if is_list else []


def _is_batch(found: Json) -> bool:
    """Return whether this is a list of prompts, with a single one in it."""
    return isinstance(found, list) and len(found) == 1 and isinstance(found[0], list)


def _is_message(message: Mapping[str, Json]) -> bool:
    return langchain.is_message(message) or isinstance(message.get("role"), str)


def _answers(logged: Json, place: str) -> list[tuple[str, Mapping[str, Json]]]:
    """Return the messages of the first answer, which is a message, a body of Chat, or generations of LangChain."""
    if isinstance(logged, str):
        return [(place, {"role": "assistant", "content": logged})]
    if not isinstance(logged, dict):
        return _with_paths(mappings(logged), place)
    if _is_message(logged):
        return [(place, logged)]
    where, choice = (*_choices(logged, place), (place, logged))[0]
    message = choice.get("message")
    if isinstance(message, dict):
        return [(f"{where}.message", message)]
    return _with_paths(mappings(logged.get("messages")), f"{place}.messages")


def _choices(logged: Json, place: str) -> list[tuple[str, Mapping[str, Json]]]:
    """Return the answers to choose from: generations of LangChain, or choices of Chat."""
    if not isinstance(logged, dict):
        return []
    generations = logged.get("generations")
    listed = generations[0] if isinstance(generations, list) and generations else None
    return _with_paths(mappings(listed), f"{place}.generations[0]") or _with_paths(
        mappings(logged.get("choices")), f"{place}.choices"
    )


def _with_paths(found: list[Mapping[str, Json]], place: str) -> list[tuple[str, Mapping[str, Json]]]:
    return [(f"{place}[{index}]", one) for index, one in enumerate(found)]


def _read(name: str, data: Json, given: str, got: str, model: Json, tools: Json = None) -> Request:
    passed, received = _logged(data[given]), _logged(data.get(got))
    body = passed if isinstance(passed, dict) else {}
    conversation = Conversation(name, read_tools(body.get("tools") or tools))
    if system := _text_of_system(body.get("system")):
        conversation.add("system", [(Text(system), f"$.{given}.system")], f"$.{given}.system")
    place = f"$.{given}.messages" if body else f"$.{given}"
    if _is_batch(body.get("messages") if body else passed):
        place += "[0]"
    for index, message in enumerate(_messages(passed)):
        _add(conversation, message, f"{place}[{index}]")
    answers = _answers(received, f"$.{got}")
    if received is not None and not all(_is_message(message) for _, message in answers):
        raise refuse(name, f"$.{got}", "a message, or a body with one", received)
    for where, message in answers:
        _add(conversation, message, where)
    if len(_choices(received, f"$.{got}")) > 1:
        conversation.leave_out("further answers", "a conversation goes on with one")
    return conversation.finish(model=text_of(body.get("model")) or model)


def _text_of_system(system: Json) -> str:
    """Return the system prompt of Anthropic's API, which is beside the messages."""
    return text_of(system) or "\n".join(text_of(block.get("text")) for block in mappings(system))


def _add(conversation: Conversation, message: Mapping[str, Json], place: str) -> None:
    if langchain.is_message(message):
        langchain.add_message(conversation, message, place)
    elif any(text_of(block.get("type")) in _BLOCKS for block in mappings(message.get("content"))):
        pieces = read_blocks(conversation, message["content"], f"{place}.content", _block)
        add_turn(conversation, "assistant" if message.get("role") == "assistant" else "user", pieces, place)
    else:
        add_message(conversation, message, place)


_BLOCKS = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document"})
"""Types of blocks of Anthropic's API."""


def _block(conversation: Conversation, block: Mapping[str, Json]) -> AnyPart | None:
    kind = text_of(block.get("type"))
    if kind == "text":
        return Text(text_of(block.get("text")))
    if kind == "thinking":
        signed = text_of(block.get("signature"))
        return Reasoning(text_of(block.get("thinking")), Signature("anthropic", signed) if signed else None)
    if kind == "tool_use":
        return conversation.call(block.get("name"), block.get("input"), block.get("id"))
    if kind == "tool_result":
        content, failed = block.get("content"), block.get("is_error") is True
        texts = [text_of(one.get("text")) for one in mappings(content)]
        if not all(one.get("type") == "text" for one in mappings(content)):
            conversation.leave_out("media of tool results", "they are read as text")
        value = "\n".join(filter(None, texts)) if isinstance(content, list) else content
        return conversation.result(value or "", call_id=block.get("tool_use_id"), is_error=failed)
    source = block.get("source")
    if kind in {"image", "document"} and isinstance(source, dict):
        mime = text_of(source.get("media_type")) or ("image/*" if kind == "image" else None)
        data, address = text_of(source.get("data")), text_of(source.get("url"))
        return media(mime, data_url(mime or "", data) if data else address) if data or address else None
    return None


_BLOCK_KEYS = keys(
    "type text thinking signature id name input tool_use_id is_error",
    content=keys("type text"),
    source=keys("type media_type data url"),
)
_MESSAGE_KEYS = merge_keys(merge_keys(MESSAGE_KEYS, langchain.MESSAGE_KEYS), keys("role", content=_BLOCK_KEYS))
_PASSED = structs.replace(messages_in(_MESSAGE_KEYS, "model", system=keys("type text"), tools=TOOL_KEYS), as_text=True)
_CHOICES = keys("index", generations=keys(message=_MESSAGE_KEYS), choices=keys("index", message=_MESSAGE_KEYS))
_GOT = structs.replace(
    merge_keys(merge_keys(_PASSED, _MESSAGE_KEYS), merge_keys(_CHOICES, keys(message=_MESSAGE_KEYS))), as_text=True
)
_PARAMETERS = keys("model model_name", tools=TOOL_KEYS)
_LANGSMITH_KEYS = keys("run_type", inputs=_PASSED, outputs=_GOT, extra=keys(invocation_params=_PARAMETERS))
_LANGFUSE_KEYS = keys("type model", input=_PASSED, output=_GOT)

LANGSMITH_RUN = Dataset(LANGSMITH, is_langsmith, read_langsmith, keys=_LANGSMITH_KEYS)
LANGFUSE_GENERATION = Dataset(LANGFUSE, is_langfuse, read_langfuse, keys=_LANGFUSE_KEYS)
