"""Calls of models as tracing services export them: runs of LangSmith, generations of Langfuse. Read-only.

They keep what the client sent and received. Bodies of Chat and messages of LangChain are read; any other logged value
is refused.
"""

from __future__ import annotations

from collections.abc import Mapping

from dragoman.codecs.datasets import langchain
from dragoman.codecs.datasets.conversation import (
    TOOL_KEYS,
    Conversation,
    Dataset,
    Json,
    mappings,
    read_tools,
    refuse,
    text_of,
)
from dragoman.codecs.datasets.known_keys import keys, merge_keys, messages_in
from dragoman.codecs.datasets.trl import MESSAGE_KEYS, add_message
from dragoman.ir import Request

LANGSMITH, LANGFUSE = "langsmith", "langfuse"


def is_langsmith(data: Json) -> bool:
    """Return whether this is a run of a model with its messages; other runs (chains, tools) hold any value."""
    return isinstance(data, Mapping) and data.get("run_type") == "llm" and bool(_messages(data.get("inputs")))


def read_langsmith(data: Json) -> Request:
    return _read(LANGSMITH, data, "inputs", "outputs", _model_of(data.get("extra")))


def _model_of(extra: Json) -> Json:
    parameters = extra.get("invocation_params") if isinstance(extra, Mapping) else None
    return parameters.get("model", parameters.get("model_name")) if isinstance(parameters, Mapping) else None


def is_langfuse(data: Json) -> bool:
    """Return whether this is a generation with its messages; other observations hold any value."""
    return isinstance(data, Mapping) and data.get("type") == "GENERATION" and bool(_messages(data.get("input")))


def read_langfuse(data: Json) -> Request:
    return _read(LANGFUSE, data, "input", "output", data.get("model"))


def _messages(logged: Json) -> list[Mapping[str, Json]]:
    """Return the messages that were sent: as a list, or in a body; none if there are several prompts."""
    found = logged.get("messages") if isinstance(logged, Mapping) else logged
    if isinstance(found, list) and _is_batch(found):
        found = found[0]
    is_list = isinstance(found, list) and all(isinstance(one, Mapping) and _is_message(one) for one in found)
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
    if not isinstance(logged, Mapping):
        return _with_paths(mappings(logged), place)
    if _is_message(logged):
        return [(place, logged)]
    where, choice = (*_choices(logged, place), (place, logged))[0]
    message = choice.get("message")
    if isinstance(message, Mapping):
        return [(f"{where}.message", message)]
    return _with_paths(mappings(logged.get("messages")), f"{place}.messages")


def _choices(logged: Json, place: str) -> list[tuple[str, Mapping[str, Json]]]:
    """Return the answers to choose from: generations of LangChain, or choices of Chat."""
    if not isinstance(logged, Mapping):
        return []
    generations = logged.get("generations")
    listed = generations[0] if isinstance(generations, list) and generations else None
    return _with_paths(mappings(listed), f"{place}.generations[0]") or _with_paths(
        mappings(logged.get("choices")), f"{place}.choices"
    )


def _with_paths(found: list[Mapping[str, Json]], place: str) -> list[tuple[str, Mapping[str, Json]]]:
    return [(f"{place}[{index}]", one) for index, one in enumerate(found)]


def _read(name: str, data: Json, given: str, got: str, model: Json) -> Request:
    passed = data[given]
    body = passed if isinstance(passed, Mapping) else {}
    conversation = Conversation(name, read_tools(body.get("tools")))
    place = f"$.{given}.messages" if body else f"$.{given}"
    if _is_batch(body.get("messages") if body else passed):
        place += "[0]"
    for index, message in enumerate(_messages(passed)):
        _add(conversation, message, f"{place}[{index}]")
    answers = _answers(data.get(got), f"$.{got}")
    if data.get(got) is not None and not all(_is_message(message) for _, message in answers):
        raise refuse(name, f"$.{got}", "a message, or a body with one", data.get(got))
    for where, message in answers:
        _add(conversation, message, where)
    if len(_choices(data.get(got), f"$.{got}")) > 1:
        conversation.leave_out("further answers", "a conversation goes on with one")
    return conversation.finish(model=text_of(body.get("model")) or model)


def _add(conversation: Conversation, message: Mapping[str, Json], place: str) -> None:
    if langchain.is_message(message):
        langchain.add_message(conversation, message, place)
    else:
        add_message(conversation, message, place)


_MESSAGE_KEYS = merge_keys(MESSAGE_KEYS, langchain.MESSAGE_KEYS)
_PASSED = messages_in(_MESSAGE_KEYS, "model", tools=TOOL_KEYS)
_GOT = merge_keys(
    merge_keys(_PASSED, _MESSAGE_KEYS),
    keys("index", generations=keys(message=_MESSAGE_KEYS), choices=keys("index", message=_MESSAGE_KEYS)),
)
_LANGSMITH_KEYS = keys("run_type", inputs=_PASSED, outputs=_GOT, extra=keys(invocation_params=keys("model model_name")))
_LANGFUSE_KEYS = keys("type model", input=_PASSED, output=_GOT)

LANGSMITH_RUN = Dataset(LANGSMITH, is_langsmith, read_langsmith, keys=_LANGSMITH_KEYS)
LANGFUSE_GENERATION = Dataset(LANGFUSE, is_langfuse, read_langfuse, keys=_LANGFUSE_KEYS)
