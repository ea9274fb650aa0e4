"""Events are lines of JSON."""

import typing

import msgspec
import pytest

from dragoman.agent import (
    AnyAgentEvent,
    CompactionCompleteEvent,
    CompactionStartEvent,
    FinalEvent,
    HandOffEvent,
    HiddenUserMessageEvent,
    HostedCallEvent,
    LimitEvent,
    NestedEvent,
    PartialOutputEvent,
    PendingCall,
    PendingEvent,
    ReasoningDeltaEvent,
    ReasoningEvent,
    RetryEvent,
    StepCompleteEvent,
    StepStartEvent,
    TextDeltaEvent,
    TextEvent,
    ToolCallEvent,
    ToolResultEvent,
    UsageEvent,
    decode_event,
    encode_event,
)
from dragoman.ir import Usage
from tests.support.promises import promise

EXAMPLES: list[tuple[AnyAgentEvent, str]] = [
    (TextEvent("a\nb", 1.5), '{"type":"text","content":"a\\nb","timestamp":1.5}'),
    (ReasoningEvent("ü", 0), '{"type":"reasoning","content":"ü","timestamp":0}'),
    (TextDeltaEvent("a"), '{"type":"text_delta","content":"a"}'),
    (ReasoningDeltaEvent("a"), '{"type":"reasoning_delta","content":"a"}'),
    (StepStartEvent("c1", "add", 1), '{"type":"step_start","step_id":"c1","title":"add","step_number":1}'),
    (ToolCallEvent("add", {"a": 1}, "c1"), '{"type":"tool_call","tool":"add","args":{"a":1},"tool_call_id":"c1"}'),
    (
        ToolCallEvent("add", {}, "c1", "Add"),
        '{"type":"tool_call","tool":"add","args":{},"tool_call_id":"c1","display_name":"Add"}',
    ),
    (ToolResultEvent("add", "2", "c1"), '{"type":"tool_result","tool":"add","result":"2","tool_call_id":"c1"}'),
    (
        ToolResultEvent("add", "no", "c1", is_error=True, screenshot_base64="aGk="),
        '{"type":"tool_result","tool":"add","result":"no","tool_call_id":"c1","is_error":true,"screenshot_base64":"aGk="}',
    ),
    (
        StepCompleteEvent("c1", "completed", 0.5),
        '{"type":"step_complete","step_id":"c1","status":"completed","duration_ms":0.5}',
    ),
    (HiddenUserMessageEvent("go on"), '{"type":"hidden_user_message","content":"go on"}'),
    (CompactionStartEvent(9, 85), '{"type":"compaction_start","messages":9,"tokens":85}'),
    (CompactionCompleteEvent(True, 3), '{"type":"compaction_complete","compacted":true,"messages":3}'),  # noqa: FBT003
    (RetryEvent("p", 1, 0.5, "busy"), '{"type":"retry","provider":"p","attempt":1,"delay":0.5,"reason":"busy"}'),
    (UsageEvent("p/m", Usage(3, 4)), '{"type":"usage","model":"p/m","usage":{"input":3,"output":4}}'),
    (HostedCallEvent("web_search", "s1"), '{"type":"hosted_call","tool":"web_search","tool_call_id":"s1"}'),
    (PartialOutputEvent({"a": 1}), '{"type":"partial_output","output":{"a":1}}'),
    (HandOffEvent("p/m", "q/n"), '{"type":"hand_off","before":"p/m","after":"q/n"}'),
    (LimitEvent("requests", 2.0, 2.0), '{"type":"limit","limit":"requests","allowed":2.0,"used":2.0}'),
    (
        PendingEvent((PendingCall("c1", "pay", {"sum": 5}, "approval"),)),
        '{"type":"pending","calls":[{"call_id":"c1","tool":"pay","arguments":{"sum":5},"kind":"approval","reason":"","path":[]}]}',
    ),
    (
        NestedEvent(("research",), TextEvent("a", 1)),
        '{"type":"nested","path":["research"],"event":{"type":"text","content":"a","timestamp":1}}',
    ),
    (FinalEvent("done"), '{"type":"final","content":"done"}'),
]


@promise("agent:events-json")
@pytest.mark.parametrize(("event", "line"), EXAMPLES, ids=[type(row[0]).__name__ for row in EXAMPLES])
def test_every_event_is_a_line_of_json_and_is_read_back(event: AnyAgentEvent, line: str) -> None:
    assert encode_event(event).decode() == line
    assert decode_event(line) == event
    assert event.type == msgspec.json.decode(line)["type"]


@promise("agent:events-json")
def test_every_event_type_is_listed_and_other_values_are_refused() -> None:
    assert {type(event) for event, _ in EXAMPLES} == set(typing.get_args(AnyAgentEvent))
    with pytest.raises(msgspec.ValidationError):
        decode_event('{"type":"nonsense"}')
