"""Google's SDK as a judge of Interactions: what we write for its clients is of types that it knows."""

import json
from collections.abc import Iterator
from typing import Any

from google.genai._gaos.types.interactions import Interaction
from google.genai._gaos.types.interactions.interactionsseevent import InteractionSSEEvent
from pydantic import BaseModel, TypeAdapter

import dragoman
from dragoman import ir
from dragoman.fidelity.catalogue import CASES
from tests.support.bodies import RESPONSES, Sample
from tests.support.cases import each
from tests.support.promises import promise

pytestmark = promise("gateway:interactions")

FORMAT = "gemini-interactions"
_events: TypeAdapter[Any] = TypeAdapter(InteractionSSEEvent)


def unknown(value: Any) -> Iterator[Any]:
    """The objects within that the SDK does not know."""
    if getattr(value, "is_unknown", False):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from unknown(item)
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from unknown(getattr(value, name))


@each("sample", RESPONSES, ids=str)
def test_every_answer_is_an_interaction_for_the_sdk(sample: Sample) -> None:
    body = dragoman.translate_response(sample.json(), source=sample.format, target=FORMAT).json()
    if b'"error"' in body[:10]:
        return  # an answer that failed without a word is an error for clients of any format
    interaction = Interaction.model_validate_json(body)
    assert list(unknown(interaction.steps or [])) == []
    message = dragoman.decode_response(body, FORMAT).messages[0]
    calls = [step for step in interaction.steps or [] if step.type == "function_call"]
    assert [(call.id, call.name) for call in calls] == [(call.id, call.name) for call in message.tool_calls]


STREAMS = [case for case in CASES if case.kind == "stream" and isinstance(case.example, tuple)]


@each("case", STREAMS, ids=lambda case: str(case.feature))
def test_every_event_is_known_to_the_sdk(case: Any) -> None:
    encoder = dragoman.StreamEncoder(FORMAT, stores=True)
    events: tuple[ir.AnyEvent, ...] = case.example
    data = encoder.encode(events) + encoder.close()
    payloads = [line[6:] for line in data.split(b"\n") if line[:7] == b"data: {"]
    assert payloads
    for payload in payloads:
        event = _events.validate_python(json.loads(payload))
        assert list(unknown(event)) == [], payload
