"""Behaviours that no other test noticed when a mutation run broke them (scripts/mutate.py)."""

from typing import Any, get_args

import pytest

import dragoman
from dragoman import StreamDecoder, accumulate, ir
from dragoman.codecs.failures import kind_of_status, status_of_kind
from dragoman.codecs.reasoning_tags import join_thinking, split_thinking
from dragoman.streams import StreamEncoder
from tests.support import converse_streams
from tests.support.formats import FAMILY, FORMATS
from tests.support.promises import promise


@promise("law:2-nothing-vanishes")
@pytest.mark.parametrize("target", [name for name in FORMATS if name not in {"openai-chat", "openai-responses"}])
def test_a_custom_tool_that_is_reported_as_a_function_is_one(target: str) -> None:
    tool = ir.CustomTool(name="shell", description="Runs a line.")
    encoded = dragoman.encode_request(ir.Request("m", (ir.Message("user", "hi"),), tools=(tool,)), target)
    assert {loss.severity for loss in encoded.losses if loss.path == "$.tools[0]"} == {"degraded"}
    (sent,) = dragoman.decode_request(encoded.body, target).tools
    assert isinstance(sent, ir.ToolDefinition)
    assert (sent.name, sent.description) == ("shell", "Runs a line.")
    assert sent.parameters is not None
    assert sent.parameters["required"] == ["input"]


@promise("law:5-streams-tell-the-same-story")
@pytest.mark.parametrize("target", FORMATS)
@pytest.mark.parametrize("custom", [False, True])
def test_a_call_that_starts_whole_arrives_whole(target: str, custom: bool) -> None:  # noqa: FBT001
    arguments: dict[str, Any] = {"input": "ls -l"} if custom else {"city": "Rome", "days": [1, 2.5]}
    text = "ls -l" if custom else None
    call = ir.ToolCall(id="call_1", name="look", arguments=arguments, arguments_text=text, custom=custom)
    events: list[ir.AnyEvent] = [
        ir.StreamStart(id="id_1", model="m"),
        ir.PartStart(0, call),
        ir.PartEnd(0),
        ir.Finished(ir.Finish("tool_calls")),
    ]
    encoder, decoder = StreamEncoder(target), StreamDecoder(target)
    read = decoder.feed(encoder.encode(events) + encoder.close())
    (arrived,) = accumulate([*read, *decoder.close()]).tool_calls
    assert (arrived.name, arrived.arguments) == ("look", arguments)


@promise("law:1-identity")
@pytest.mark.parametrize("target", ["gemini", "vertex"])
@pytest.mark.parametrize("answered", [{"id": "fc_9"}, {}])
def test_a_gemini_result_without_a_known_call_keeps_its_id(target: str, answered: dict[str, str]) -> None:
    result = {"functionResponse": {"name": "look", "response": {"output": "sunny"}, **answered}}
    body = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}, {"role": "user", "parts": [result]}]}
    request = dragoman.decode_request(body, target)
    (found,) = [part for message in request.messages for part in message.parts if isinstance(part, ir.ToolResult)]
    assert found.tool_call_id == answered.get("id", found.tool_call_id) != ""
    assert dragoman.encode_request(request, target).body == body


@promise("law:6-owed-back")
@pytest.mark.parametrize("target", ["anthropic-messages", "bedrock-converse"])
@pytest.mark.parametrize("owned", [True, False])
def test_blank_text_stays_only_if_its_own_family_signed_it(target: str, owned: bool) -> None:  # noqa: FBT001
    """These APIs refuse blank text; a signed blank part is data that its family wants back."""
    from dragoman.codecs.registry import codec  # noqa: PLC0415
    from dragoman.losses import LossLog  # noqa: PLC0415
    from dragoman.passes.turns import drop_blank_text  # noqa: PLC0415

    profile = codec(target).profile
    signature = ir.Signature(profile.family if owned else "google", "c2ln")
    blank, words = ir.Text(" \n", signature=signature), ir.Text("words")
    request = ir.Request("m", (ir.Message("assistant", (blank, words)), ir.Message("assistant", (ir.Text(" "),))))
    log = LossLog()
    (kept,) = drop_blank_text(request, profile, log).messages
    assert kept.parts == ((blank, words) if owned else (words,))
    lost = ["blank text"] if owned else ["blank text", "signature", "blank text"]
    assert [(what, severity) for _, _, what, severity, _ in log.entries] == [(what, "dropped") for what in lost]


@promise("law:2-nothing-vanishes")
def test_losses_of_an_answer_whose_calls_are_renamed_point_into_the_answer() -> None:
    tools = (ir.ToolDefinition("look.up"),)
    request = ir.Request("m", (ir.Message("user", "hi"),), tools=tools)
    call = {"content": {"role": "model", "parts": [{"functionCall": {"name": "look_up", "args": {}}}]}}
    body = {"candidates": [{**call, "index": 0}, {**call, "index": 1}]}
    encoded = dragoman.translate_response(body, source="gemini", target="anthropic-messages", request=request)
    assert [loss.path for loss in encoded.losses if "candidate" in loss.what] == ["$.candidates[1].content"]


@promise("law:2-nothing-vanishes")
def test_losses_of_an_answer_without_its_speaker_point_into_the_answer() -> None:
    messages = tuple(ir.Message("assistant", (ir.Text("hi"),), name=name) for name in ("claude", "gemini"))
    encoded = dragoman.encode_response(ir.Completion(messages, ir.Finish("stop")), "anthropic-messages")
    assert [(loss.path, loss.what) for loss in encoded.losses if "messages" in loss.path] == [
        ("$.messages[0].name", "name of the speaker"),
        ("$.messages[1].name", "name of the speaker"),
        ("$.messages[1]", "further candidate"),
    ]


@promise("law:7-no-guessing")
@pytest.mark.parametrize("target", ["openai-chat", "openai-responses"])
def test_only_a_declared_custom_tool_is_called_as_one(target: str) -> None:
    """Also if a function has one text argument of the same name."""
    tools = (ir.ToolDefinition("ask"), ir.CustomTool("shell"))
    request = ir.Request("m", (ir.Message("user", "hi"),), tools=tools)
    block = {"type": "tool_use", "id": "toolu_1", "name": "ask", "input": {"input": "ls"}}
    body = {"role": "assistant", "content": [block, {**block, "id": "toolu_2", "name": "shell"}]}
    encoded = dragoman.translate_response(body, source="anthropic-messages", target=target, request=request)
    calls = dragoman.decode_response(encoded.json(), target).messages[0].tool_calls
    assert [(call.name, call.custom, call.arguments) for call in calls] == [
        ("ask", False, {"input": "ls"}),
        ("shell", True, {"input": "ls"}),
    ]


@promise("law:10-bad-input-good-words")
@pytest.mark.parametrize("kind", [kind for kind in get_args(ir.FailureKind) if kind != "truncated"])
def test_the_status_of_a_failure_says_its_kind(kind: ir.FailureKind) -> None:
    """ "truncated" is a word of ours: others read that the server failed."""
    assert kind_of_status(status_of_kind(kind)) == kind


@promise("law:10-bad-input-good-words")
@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (None, "server"), (400, "invalid_request"), (408, "timeout"), (418, "invalid_request"),
        (422, "invalid_request"), (502, "server"), (504, "timeout"), (529, "overloaded"), (599, "server"),
    ],
)  # fmt: skip
def test_statuses_that_several_kinds_share(status: int | None, kind: ir.FailureKind) -> None:
    assert kind_of_status(status) == kind
    assert kind_of_status(status_of_kind("truncated")) == "server"


@promise("law:5-streams-tell-the-same-story")
def test_a_frame_whose_beginning_is_known_is_still_checked() -> None:
    """Of frames of one type and length the beginning is remembered. Their payload has a checksum too."""
    frame = converse_streams.stream(("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "abc"}}))
    broken = bytearray(frame)
    broken[frame.index(b"abc")] ^= 1
    whole = [converse_streams.stream(("messageStart", {"role": "assistant"})), frame, frame]
    decoder = StreamDecoder("bedrock-converse")
    read = [event for one in whole for event in decoder.feed(one)]
    assert [event.text for event in read if isinstance(event, ir.PartDelta)] == ["abc", "abc"]
    assert any(isinstance(event, ir.StreamFailed) for event in decoder.feed(bytes(broken)))


def _asked(**settings: Any) -> ir.Request:
    return ir.Request("m", (ir.Message("user", "hi"),), **settings)


@promise("law:2-nothing-vanishes")
@pytest.mark.parametrize("target", FORMATS)
@pytest.mark.parametrize("mode", ["required", "auto", "none"])
def test_a_choice_without_tools_is_not_sent_and_only_a_demand_is_reported(target: str, mode: Any) -> None:
    """Without tools no API calls one: only who demands a call misses something."""
    encoded = dragoman.encode_request(_asked(tool_choice=ir.ToolChoice(mode)), target)
    assert dragoman.decode_request(encoded.body, target).tool_choice is None
    assert [loss.path for loss in encoded.losses if "tool_choice" in loss.path] == (
        ["$.tool_choice"] if mode == "required" else []
    )


@promise("law:2-nothing-vanishes")
@pytest.mark.parametrize("target", FORMATS)
@pytest.mark.parametrize("text", ["hi", "Answer in json, please."])
def test_words_that_we_add_are_reported(target: str, text: str) -> None:
    request = ir.Request("m", (ir.Message("user", text),), output=ir.StructuredOutput("json"))
    encoded = dragoman.encode_request(request, target)
    added = len(dragoman.decode_request(encoded.body, target).messages) > 1
    assert added == any(loss.path == "$.output" for loss in encoded.losses)


@promise("law:2-nothing-vanishes")
@pytest.mark.parametrize("target", FORMATS)
def test_text_behind_a_call_stays_there_or_its_move_is_reported(target: str) -> None:
    call = ir.ToolCall("call_1", "look", {})
    asked = ir.Message("assistant", (ir.Text("before"), call, ir.Text("behind")))
    done = ir.Message("tool", (ir.ToolResult("call_1", "look", "text", "sunny"),))
    messages = (ir.Message("user", "hi"), asked, done)
    encoded = dragoman.encode_request(ir.Request("m", messages, tools=(ir.ToolDefinition("look"),)), target)
    read = [part for message in dragoman.decode_request(encoded.body, target).messages for part in message.parts]
    kinds = [type(part).__name__ for part in read if isinstance(part, ir.ToolCall | ir.Text)]
    moved = [loss.path for loss in encoded.losses if "place among" in loss.what]
    assert bool(moved) == (kinds != ["Text", "Text", "ToolCall", "Text"])
    assert all(path.startswith("$.messages[1].parts[") for path in moved)


@promise("law:2-nothing-vanishes")
@pytest.mark.parametrize("target", FORMATS)
@pytest.mark.parametrize("content", ["Be brief.", (ir.Text("Be brief."),), (ir.Text("Be"), ir.Text("brief."))])
def test_system_text_arrives_however_it_is_held(target: str, content: Any) -> None:
    request = ir.Request("m", (ir.Message("system", content), ir.Message("user", "hi")))
    arrived = dragoman.decode_request(dragoman.encode_request(request, target).body, target).messages[0]
    text = " ".join(part.text for part in arrived.parts if isinstance(part, ir.Text))
    assert (arrived.role, text.split()) == ("system", ["Be", "brief."])


@promise("law:4-determinism")
@pytest.mark.parametrize("target", FORMATS)
def test_an_answer_without_a_time_has_no_time_of_its_own(target: str) -> None:
    """The core asks no clock: where the API wants a time, it is the first moment of 1970."""
    answer = ir.Completion((ir.Message("assistant", "hi"),), ir.Finish("stop"), id="a", model="m")
    body = dragoman.encode_response(answer, target).body
    times = [body[key] for key in ("created", "created_at", "updated") if key in body]
    assert all(time in {0, "1970-01-01T00:00:00Z"} for time in times)


@promise("law:4-determinism")
def test_bodies_are_compared_with_their_losses() -> None:
    request = ir.Request("m", (ir.Message("user", "hi"),), seed=7)
    one, same = (dragoman.encode_request(request, "anthropic-messages") for _ in range(2))
    other = dragoman.encode_request(ir.Request("m", request.messages), "anthropic-messages")
    assert one == same
    assert one != other, "the same body with another loss"
    assert one.content == other.content
    text: object = "a text"
    assert one != text


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("<think>a</think>b", ("a", "b")),
        (" <think>\na\n</think>\n\nb", ("a", "b")),
        ("<think>never closed", ("", "<think>never closed")),
        ("says <think>a</think>", ("", "says <think>a</think>")),
        ("", ("", "")),
    ],
)
def test_only_closed_reasoning_at_the_beginning_is_split_off(text: str, parts: tuple[str, str]) -> None:
    assert split_thinking(text) == parts


def test_reasoning_that_is_joined_is_split_again() -> None:
    assert split_thinking(join_thinking("a", "b")) == ("a", "b")
    assert split_thinking(join_thinking("", "b")) == ("", "b")


@promise("law:2-nothing-vanishes")
@pytest.mark.parametrize("target", [name for name in FORMATS if FAMILY[name] != "cohere"])
@pytest.mark.parametrize("mode", ["required", "auto", "none"])
def test_a_choice_whose_tools_do_not_cross_goes_with_them(target: str, mode: Any) -> None:
    tool = ir.ProviderTool(name="hologram", origin="cohere", definition={"type": "hologram"})
    encoded = dragoman.encode_request(_asked(tools=(tool,), tool_choice=ir.ToolChoice(mode)), target)
    sent = dragoman.decode_request(encoded.body, target)
    assert (sent.tools, sent.tool_choice) == ((), None)
    assert [loss.path for loss in encoded.losses if "tool_choice" in loss.path] == (
        ["$.tool_choice"] if mode == "required" else []
    )


@pytest.mark.parametrize(("display", "visible"), [("summarized", True), ("updates", True), ("omitted", False)])
def test_how_thinking_is_displayed_says_whether_it_is_seen(display: str, visible: bool) -> None:  # noqa: FBT001
    thinking = {"type": "adaptive", "display": display}
    message = {"role": "user", "content": [{"text": "hi"}]}
    body = {"messages": [message], "additionalModelRequestFields": {"thinking": thinking}}
    reasoning = dragoman.decode_request(body, "bedrock-converse").reasoning
    assert reasoning is not None
    assert reasoning.visible is visible


@promise("law:9-usage-adds-up")
@pytest.mark.parametrize("count", [0, 3])
def test_tokens_cached_for_an_hour_are_counted_if_there_are_any(count: int) -> None:
    usage = {"inputTokens": 5, "outputTokens": 2, "totalTokens": 7, "cacheWriteInputTokens": count}
    details = [{"ttl": "1h", "inputTokens": count}]
    message = {"role": "assistant", "content": [{"text": "hi"}]}
    body = {"output": {"message": message}, "stopReason": "end_turn", "usage": {**usage, "cacheDetails": details}}
    found = dragoman.decode_response(body, "bedrock-converse").usage
    assert found is not None
    assert (found.details or {}).get("cache_written_1h") == (count or None)
