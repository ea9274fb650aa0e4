"""Events of OpenHands: one event per call, grouped by the answer they came in."""

from __future__ import annotations

from collections.abc import Mapping

from dragoman.codecs.datasets.conversation import (
    Conversation,
    Dataset,
    Json,
    Piece,
    items,
    mappings,
    read_tools,
    text_of,
)
from dragoman.codecs.shared_tools import texts
from dragoman.ir import Reasoning, Request, Text, ToolDefinition

NAME = "openhands"
_KINDS = frozenset({"SystemPromptEvent", "MessageEvent", "ActionEvent", "ObservationEvent", "AgentErrorEvent"})


def is_record(data: Json) -> bool:
    """Return whether this is a list of events with a known kind."""
    return any(text_of(event.get("kind")) in _KINDS for event in mappings(data)) if isinstance(data, list) else False


def read(data: Json) -> Request:
    conversation = Conversation(NAME)
    events = _seen(items(data, NAME, "$"))
    tools: list[ToolDefinition] = []
    turns: list[Piece] = []
    answer: Json = None
    for place, event in events:
        kind = text_of(event.get("kind"))
        if kind != "ActionEvent" or event.get("llm_response_id") != answer:
            conversation.add("assistant", turns, turns[0][1] if turns else place)
            turns, answer = [], None
        if kind == "ActionEvent":
            answer = event.get("llm_response_id")
            turns += _action(conversation, event, place)
        elif kind == "SystemPromptEvent":
            prompt = event.get("system_prompt")
            conversation.add("system", [(Text(_text(prompt)), place)], place)
            tools = read_tools(event.get("tools"))
        elif kind == "MessageEvent":
            message = event.get("llm_message", event.get("message"))
            inner = message if isinstance(message, Mapping) else {}
            role = "assistant" if inner.get("role") == "assistant" else "user"
            conversation.add(role, [(Text(_text(inner.get("content"))), place)], place)  # type: ignore[arg-type]
        elif kind in {"ObservationEvent", "AgentErrorEvent", "UserRejectObservation"}:
            _add_result(conversation, event, place)
    conversation.add("assistant", turns, turns[0][1] if turns else "$")
    return conversation.finish(tools=tools)


def _seen(events: list[Mapping[str, Json]]) -> list[tuple[str, Mapping[str, Json]]]:
    """Return the events that the model still saw: condensations removed others."""
    gone = {
        one
        for event in events
        if text_of(event.get("kind")).startswith("Condensation")
        for one in texts(event.get("forgotten_event_ids"))
    }
    return [(f"$[{index}]", event) for index, event in enumerate(events) if text_of(event.get("id")) not in gone]


def _action(conversation: Conversation, event: Mapping[str, Json], place: str) -> list[Piece]:
    pieces: list[Piece] = []
    if text_of(event.get("reasoning_content")):
        pieces.append((Reasoning(event["reasoning_content"]), place))
    thought = _text(event.get("thought"))
    if thought:
        pieces.append((Text(thought), place))
    call = event.get("tool_call")
    called = call if isinstance(call, Mapping) else {}
    name = called.get("name") or event.get("tool_name")
    made = conversation.call(name, called.get("arguments"), called.get("id") or event.get("tool_call_id"))
    return [*pieces, (made, place)]


def _add_result(conversation: Conversation, event: Mapping[str, Json], place: str) -> None:
    kind = event.get("kind")
    failed = kind != "ObservationEvent"
    observation = event.get("observation")
    value = event.get("error") or event.get("rejection_reason") if failed else _observed(observation)
    result = conversation.result(
        value if value is not None else "",
        call_id=event.get("tool_call_id"),
        name=event.get("tool_name"),
        is_error=failed,
    )
    conversation.add("tool", [(result, place)], place)


def _observed(observation: Json) -> Json:
    if isinstance(observation, Mapping):
        content = observation.get("content", observation.get("output"))
        return _text(content) if content is not None else observation
    return observation


def _text(content: Json) -> str:
    if isinstance(content, Mapping):
        return text_of(content.get("text"))
    if isinstance(content, list):
        return "\n".join(text_of(part.get("text")) for part in mappings(content))
    return text_of(content)


DATASET = Dataset(NAME, is_record, read, is_session=True)
