"""Events of OpenHands: one event per call, grouped by the answer they came in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import structs

from dragoman.codecs.datasets.conversation import (
    TOOL_KEYS,
    Conversation,
    Json,
    Piece,
    items,
    mappings,
    media,
    read_tools,
    refuse,
    text_of,
)
from dragoman.codecs.datasets.dataset import Dataset
from dragoman.codecs.datasets.known_keys import keys, kinds_of
from dragoman.codecs.datasets.trl import MESSAGE_KEYS, add_message
from dragoman.codecs.shared_tools import texts
from dragoman.ir import Image, Reasoning, Request, Text, ToolDefinition

NAME = "openhands"
_RESULTS = frozenset({"ObservationEvent", "AgentErrorEvent", "UserRejectObservation"})
_KINDS = frozenset({"SystemPromptEvent", "MessageEvent", "ActionEvent"}) | _RESULTS
"""Kinds of events that the model sees."""


def is_record(data: Json) -> bool:
    """Return whether this is a list of events with a known kind, or of the classic ones."""
    events = mappings(data) if isinstance(data, list) else []
    return any(text_of(event.get("kind")) in _KINDS or _is_classic(event) for event in events)


def _is_classic(event: Mapping[str, Json]) -> bool:
    """Return whether this is an event of the versions before 1: an action or an observation of a source."""
    has_values = isinstance(event.get("args"), dict) or isinstance(event.get("extras"), dict)
    return "source" in event and has_values and ("action" in event or "observation" in event)


def read(data: Json) -> Request:
    conversation = Conversation(NAME)
    if any(map(_is_classic, mappings(data))):
        return _read_classic(conversation, items(data, NAME, "$"))
    events = _visible_events(conversation, items(data, NAME, "$"))
    tools: Sequence[ToolDefinition] = ()
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
            inner = message if isinstance(message, dict) else {}
            role = "assistant" if inner.get("role") == "assistant" else "user"
            conversation.add(role, [(part, place) for part in _parts(inner.get("content"))], place)  # type: ignore[arg-type]
        elif kind in _RESULTS:
            _add_result(conversation, event, place)
    conversation.add("assistant", turns, turns[0][1] if turns else "$")
    return conversation.finish(tools=tools)


def _visible_events(
    conversation: Conversation, events: list[Mapping[str, Json]]
) -> list[tuple[str, Mapping[str, Json]]]:
    """Return the events that the model still saw, with their paths.

    A condensation removes events, and may put a summary at a position among those that stay.
    """
    view: list[tuple[str, Mapping[str, Json]]] = []
    for index, event in enumerate(events):
        kind, place = text_of(event.get("kind")), f"$[{index}]"
        if kind in _KINDS:
            view.append((place, event))
        if not kind.startswith("Condensation"):
            continue
        gone = set(texts(event.get("forgotten_event_ids")))
        view = [(where, one) for where, one in view if text_of(one.get("id")) not in gone]
        summary, offset = text_of(event.get("summary")), event.get("summary_offset")
        if summary and isinstance(offset, int):
            message = {"role": "user", "content": [{"type": "text", "text": summary}]}
            shown = {"kind": "MessageEvent", "id": f"{text_of(event.get('id'))}-summary", "llm_message": message}
            view.insert(max(offset, 0), (f"{place}.summary", shown))
        elif summary:
            conversation.leave_out("summary of a condensation", "the file does not say where the model saw it")
    return view


def _action(conversation: Conversation, event: Mapping[str, Json], place: str) -> list[Piece]:
    pieces: list[Piece] = []
    if text_of(event.get("reasoning_content")):
        pieces.append((Reasoning(event["reasoning_content"]), place))
    thought = _text(event.get("thought"))
    if thought:
        pieces.append((Text(thought), place))
    call = event.get("tool_call")
    called = call if isinstance(call, dict) else {}
    name = called.get("name") or event.get("tool_name")
    made = conversation.call(name, called.get("arguments"), called.get("id") or event.get("tool_call_id"))
    return [*pieces, (made, place)]


def _add_result(conversation: Conversation, event: Mapping[str, Json], place: str) -> None:
    observation = event.get("observation")
    refused = event.get("kind") != "ObservationEvent"
    failed = refused or (isinstance(observation, dict) and observation.get("is_error") is True)
    parts = _parts(observation.get("content")) if isinstance(observation, dict) else []
    if not failed and any(isinstance(part, Image) for part in parts):
        shown = conversation.parts_result(parts, call_id=event.get("tool_call_id"), name=event.get("tool_name"))
        conversation.add("tool", [(shown, place)], place)
        return
    value = event.get("error") or event.get("rejection_reason") if refused else _observation_text(observation)
    result = conversation.result(
        value if value is not None else "",
        call_id=event.get("tool_call_id"),
        name=event.get("tool_name"),
        is_error=failed,
    )
    conversation.add("tool", [(result, place)], place)


def _observation_text(observation: Json) -> Json:
    if isinstance(observation, dict):
        content = observation.get("content", observation.get("output"))
        return _text(content) if content is not None else observation
    return observation


# ── events before version 1 ──


def _read_classic(conversation: Conversation, events: list[Mapping[str, Json]]) -> Request:
    """Read actions and observations. The arguments of calls are in the model's answer, kept with the first action."""
    tools: Sequence[ToolDefinition] = ()
    answered = set[str]()
    for index, event in enumerate(events):
        place, action, args = f"$[{index}]", text_of(event.get("action")), event.get("args")
        values: Mapping[str, Json] = args if isinstance(args, dict) else {}
        metadata = event.get("tool_call_metadata")
        called: Mapping[str, Json] = metadata if isinstance(metadata, dict) else {}
        if called and action:
            _add_answer(conversation, called, answered, place)
        elif called and "observation" in event:
            name, call_id = called.get("function_name"), called.get("tool_call_id")
            failed = event.get("observation") == "error"
            result = conversation.result(event.get("content"), call_id=call_id, name=name, is_error=failed)
            conversation.add("tool", [(result, place)], place)
        elif action == "system":
            conversation.add("system", [(Text(text_of(values.get("content"))), place)], place)
            tools = read_tools(values.get("tools"))
        elif action == "message" and text_of(values.get("content")):
            role = "user" if event.get("source") == "user" else "assistant"
            conversation.add(role, [(Text(values["content"]), place)], place)  # type: ignore[arg-type]
        elif action == "condensation":
            conversation.leave_out("condensations", "those of versions before 1 are not read")
        elif action and event.get("source") == "agent" and action not in _NOT_CALLS:
            raise refuse(NAME, place, "an action with the call that the model made (tool_call_metadata)", None)
    return conversation.finish(tools=tools)


_NOT_CALLS = frozenset({"message", "system", "change_agent_state", "recall", "null", "start", "finish"})


def _add_answer(conversation: Conversation, called: Mapping[str, Json], answered: set[str], place: str) -> None:
    """Add the answer that an action came in; its other actions refer to the same answer."""
    body = called.get("model_response")
    choices = mappings(body.get("choices")) if isinstance(body, dict) else []
    message = choices[0].get("message") if choices else None
    if not isinstance(message, dict) or not isinstance(body, dict):
        raise refuse(NAME, f"{place}.tool_call_metadata", "the answer of the model", message)
    if text_of(body.get("id")) not in answered:
        answered.add(text_of(body.get("id")))
        inner = f"{place}.tool_call_metadata.model_response.choices[0].message"
        add_message(conversation, {**message, "role": "assistant"}, inner)


def _parts(content: Json) -> list[Text | Image]:
    """Return the text, with the images before and after it."""
    found: list[Text | Image] = []
    for block in mappings(content):
        if block.get("type") == "image":
            found += [
                part for url in texts(block.get("image_urls")) if isinstance(part := media("image/*", url), Image)
            ]
        elif found and isinstance(found[-1], Text):
            found[-1] = Text(f"{found[-1].text}\n{text_of(block.get('text'))}")
        else:
            found.append(Text(text_of(block.get("text"))))
    return found or [Text(_text(content))]


def _text(content: Json) -> str:
    if isinstance(content, dict):
        return text_of(content.get("text"))
    if isinstance(content, list):
        return "\n".join(text_of(part.get("text")) for part in mappings(content))
    return text_of(content)


_TEXT_KEYS = keys("type text")
_CONTENT_KEYS = keys("type text image_urls")
_OBSERVATION = structs.replace(
    keys("kind output is_error", content=_CONTENT_KEYS),
    is_kept=lambda found: isinstance(found, dict) and found.get("content", found.get("output")) is None,
)
_KEYS = kinds_of(
    "kind",
    {
        "SystemPromptEvent": keys("id", system_prompt=_TEXT_KEYS, tools=TOOL_KEYS),
        "MessageEvent": keys(
            "id", llm_message=keys("role", content=_CONTENT_KEYS), message=keys("role", content=_CONTENT_KEYS)
        ),
        "ActionEvent": keys(
            "id llm_response_id reasoning_content tool_name tool_call_id",
            thought=_TEXT_KEYS,
            tool_call=keys("id name arguments"),
        ),
        "ObservationEvent": keys("id tool_name tool_call_id", observation=_OBSERVATION),
        "AgentErrorEvent UserRejectObservation": keys("id tool_name tool_call_id error rejection_reason"),
        "Condensation CondensationEvent": keys("id forgotten_event_ids summary summary_offset"),
    },
    keys(
        "id action observation source content",
        args=keys("content", tools=TOOL_KEYS),
        tool_call_metadata=keys(
            "function_name tool_call_id", model_response=keys("id", choices=keys(message=MESSAGE_KEYS))
        ),
    ),
)
DATASET = Dataset(NAME, is_record, read, is_session=True, keys=_KEYS)
