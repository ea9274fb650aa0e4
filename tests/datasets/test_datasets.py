"""Formats of stored conversations: one story read from each, written to each that can be, and on to every API."""
# ruff: noqa: E501 - a record per line reads better

import contextlib
import json
from typing import Any

import pytest

import dragoman
from dragoman.codecs.datasets.catalogue import codec_of, dataset, known_dataset, session_of
from dragoman.codecs.registry import codec
from dragoman.detection import detect
from dragoman.errors import DragomanError, EncodeError
from dragoman.ir import Request, Text, ToolCall, ToolResult
from dragoman.losses import LossLog
from dragoman.translate import encode_request, translate_request
from tests.datasets.public_shapes import SHAPES
from tests.datasets.stories import ARGUMENTS, CHAT, FUNCTION, TEXT, TOOLS
from tests.datasets.stories import STORIES as WRITTEN_STORIES
from tests.support.cases import each
from tests.support.promises import promise

NAMES = dragoman.formats("dataset")
WRITTEN = tuple(name for name in NAMES if dataset(name).write is not None)
SHAPED = {
    shape.format: shape for shape in reversed(SHAPES.values()) if shape.format not in WRITTEN_STORIES and shape.story
}
STORIES: dict[str, Any] = WRITTEN_STORIES | {name: shape.record for name, shape in SHAPED.items() if name in NAMES}
HAVE_BLOCKS = {"claude-code", "codex", "anthropic-message-list"}
"""Messages of an API, in the form that the file has."""
TASKS = {"bfcl", "xlam"}
"""A task has no answer."""
NO_TOOLS = frozenset(NAMES) - {
    "openai-finetuning",
    "trl",
    "sharegpt",
    "hermes",
    "bedrock-tuning",
    "toolbench",
    "openhands",
    "bfcl",
    "llm",
    "glaive",
    "xlam",
    "toolace",
    "letta",
}


def body(name: str) -> bytes:
    return json.dumps(STORIES[name]).encode()


def read(name: str) -> Request:
    return codec(name).decode_request(body(name))


def tell(request: Request) -> list[tuple[str, Any]]:
    """The story, without what formats differ in."""
    story: list[tuple[str, Any]] = []
    for message in request.messages:
        for part in message.parts:
            if isinstance(part, ToolCall):
                arguments = part.arguments
                story.append(
                    ("call", (part.name, json.loads(arguments["input"]) if "input" in arguments else arguments))
                )
            elif isinstance(part, ToolResult):
                story.append(("result", part.value))
            elif isinstance(part, Text) and message.role in {"user", "assistant"} and part.text != "I look.":
                story.append((message.role, part.text))
    return story


STORY = [("user", "Weather in Oslo?"), ("call", ("weather", ARGUMENTS)), ("result", "3C"), ("assistant", "3 degrees.")]


def story_of(name: str) -> list[tuple[str, Any]]:
    """The part of the story that a format can hold."""
    return STORY[:1] if name == "bfcl" else list(SHAPED[name].story) if name in SHAPED else STORY


def test_every_format_has_its_story() -> None:
    assert set(STORIES) == set(NAMES)


@promise("batch:datasets")
@each("name", NAMES)
def test_the_story_is_read(name: str) -> None:
    request = read(name)
    assert tell(request) == story_of(name)
    if name not in NO_TOOLS:
        assert [tool.name for tool in request.tools][:1] == ["weather.get" if name == "bfcl" else "weather"]


@promise("batch:datasets")
@each("name", sorted(set(NAMES) - HAVE_BLOCKS))
def test_a_text_alone_is_written_as_text(name: str) -> None:
    """Templates of trainers and many servers read no lists of parts."""
    body = translate_request(json.dumps(STORIES[name]), source=name, target="openai-chat", model="m").body
    for message in body["messages"]:
        texts = message.get("content")
        assert not isinstance(texts, list) or len(texts) > 1, message


@promise("batch:datasets")
@each("name", [name for name in NAMES if name not in TASKS])
def test_results_answer_their_calls(name: str) -> None:
    request = read(name)
    calls = [part.id for message in request.messages for part in message.parts if isinstance(part, ToolCall)]
    results = [
        part.tool_call_id for message in request.messages for part in message.parts if isinstance(part, ToolResult)
    ]
    assert calls == results
    assert read(name) == request, "ids that had to be invented depend on their place alone"


@promise("batch:datasets")
@each("name", NAMES)
def test_a_record_is_known_by_its_keys(name: str) -> None:
    found = detect(body(name))
    assert found is not None
    assert (found.format, found.kind) == (name, "request")
    assert known_dataset(STORIES[name]) == name


@promise("batch:datasets")
@pytest.mark.parametrize("name", ["claude-code", "codex", "openhands"])
def test_a_line_of_a_session_is_known(name: str) -> None:
    assert name in {session_of(line) for line in STORIES[name]}
    assert {session_of(line) for line in STORIES[name]} <= {name, None}
    assert not any(session_of(message) for message in CHAT)


@promise("batch:datasets")
@each("target", dragoman.formats())
@each("name", NAMES)
def test_a_stored_conversation_crosses_to_every_api(name: str, target: str) -> None:
    encoded = translate_request(body(name), source=name, target=target, model="m")
    again = codec(target).decode_request(encoded.json())
    crossed = tell(again)
    if crossed[-1] == ("user", "Continue.") and "invented" in {loss.severity for loss in encoded.losses}:
        crossed.pop()  # Cohere refuses a conversation that ends with the assistant
    story = story_of(name)
    if crossed[-1][0] == "result" and name in TASKS:
        crossed.pop()  # an API needs a result for every call
    assert [(kind, value if kind != "call" else value[1]) for kind, value in crossed if kind != "user" or value] == [
        (kind, value if kind != "call" else value[1]) for kind, value in story
    ]
    for loss in encoded.losses:
        assert loss.path.startswith("$")


@promise("batch:datasets")
@each("target", WRITTEN)
@each("source", [name for name in NAMES if name not in TASKS])
def test_a_stored_conversation_crosses_to_every_format_that_is_written(source: str, target: str) -> None:
    encoded = translate_request(body(source), source=source, target=target)
    assert tell(codec(target).decode_request(encoded.json())) == story_of(source)


@promise("batch:datasets")
@pytest.mark.parametrize("name", WRITTEN)
def test_reading_and_writing_changes_nothing(name: str) -> None:
    """A record keeps its content; spellings with the same meaning (absent or null, text or a list) may differ."""
    log = LossLog()
    first = read(name)
    written = codec_of(name).encode_request(first, log)
    assert not log.entries
    second = codec_of(name).decode_request(written.json())
    assert tell(second) == tell(first)
    assert second.tools == first.tools
    assert codec_of(name).encode_request(second, LossLog()).json() == written.json()


@promise("batch:datasets")
@pytest.mark.parametrize("name", [name for name in NAMES if name not in WRITTEN])
def test_logs_are_read_and_not_written(name: str) -> None:
    with pytest.raises(EncodeError, match="read, not written"):
        encode_request(read("trl"), name)


@promise("batch:datasets")
@each("name", NAMES)
@each("bad", [b"{}", b"[]", b"5", b'"x"', b"[[]]", b'{"messages": 5}', b'[{"role": 5}]', b"null"])
def test_bad_records_are_typed_errors(name: str, bad: bytes) -> None:
    with contextlib.suppress(DragomanError):  # any other error fails the test
        dragoman.decode_request(bad, name)


@promise("batch:datasets")
def test_weights_stay_with_the_file() -> None:
    """`weight` selects what is learned: it returns to a fine-tuning file and is never sent to a model."""
    name = "openai-finetuning"
    again = json.loads(translate_request(body(name), source=name, target=name).json())
    assert again["messages"][3]["weight"] == 1
    assert again["parallel_tool_calls"] is False
    for target in dragoman.formats():
        assert b"weight" not in translate_request(body(name), source=name, target=target, model="m").json()


@promise("batch:datasets")
@pytest.mark.parametrize("key", ["output", "completion"])
def test_preference_pairs(key: str) -> None:
    record = {
        "input": {"messages": CHAT[:3], "tools": TOOLS},
        f"preferred_{key}": [CHAT[3]],
        f"non_preferred_{key}": [{"role": "assistant", "content": "Warm."}],
    }
    content = json.dumps(record).encode()
    assert detect(content) == dragoman.detection.Detected("openai-finetuning", "request")
    request = codec("openai-finetuning").decode_request(content)
    assert tell(request) == STORY
    again = json.loads(codec("openai-finetuning").encode_request(request, LossLog()).json())
    assert again["preferred_output"] == [CHAT[3]]
    assert again["non_preferred_output"] == [{"role": "assistant", "content": "Warm."}]
    assert again["input"]["messages"] == CHAT[:3]


@promise("batch:datasets")
def test_arguments_at_every_depth_are_the_same_call() -> None:
    """An object, JSON text, and JSON text within JSON text, as in sets that were converted twice."""
    for arguments in (ARGUMENTS, json.dumps(ARGUMENTS), json.dumps(json.dumps(ARGUMENTS))):
        value = json.dumps({"name": "weather", "arguments": arguments})
        record = {"conversations": [{"from": "human", "value": "?"}, {"from": "function_call", "value": value}]}
        request = codec("sharegpt").decode_request(json.dumps(record).encode())
        (call,) = request.messages[1].parts
        assert isinstance(call, ToolCall)
        assert call.arguments == ARGUMENTS


@promise("batch:datasets")
def test_a_constant_id_is_unique_after_reading() -> None:
    """OpenAI's own examples use "call_id" for every call of a set, also twice in one conversation."""
    call = {"id": "call_id", "type": "function", "function": {"name": "weather", "arguments": ARGUMENTS}}
    result = {"role": "tool", "tool_call_id": "call_id", "content": "3C"}
    messages = [
        CHAT[0],
        {"role": "assistant", "tool_calls": [call]},
        result,
        {"role": "assistant", "tool_calls": [call]},
        result,
    ]
    request = codec("trl").decode_request(json.dumps({"messages": messages}).encode())
    ids = [part.id for message in request.messages for part in message.parts if isinstance(part, ToolCall)]
    answered = [
        part.tool_call_id for message in request.messages for part in message.parts if isinstance(part, ToolResult)
    ]
    assert len(set(ids)) == 2
    assert answered == ids


@promise("batch:datasets")
def test_a_call_that_is_the_label_stays_unanswered() -> None:
    record = {"conversations": STORIES["sharegpt"]["conversations"][:2], "tools": "[]"}
    request = codec("sharegpt").decode_request(json.dumps(record).encode())
    assert [message.role for message in request.messages] == ["user", "assistant"]
    again = json.loads(codec("sharegpt").encode_request(request, LossLog()).json())
    assert again["conversations"] == record["conversations"]


@promise("batch:datasets")
def test_hermes_keeps_what_it_cannot_parse_as_text() -> None:
    record = {
        "conversations": [{"from": "human", "value": "?"}, {"from": "gpt", "value": "<tool_call>nonsense</tool_call>"}]
    }
    request = codec("hermes").decode_request(json.dumps(record).encode())
    assert request.messages[1].text == "<tool_call>nonsense</tool_call>"
    python = "<tool_call>{'name': 'weather', 'arguments': {'city': 'Oslo'}}</tool_call>"
    coder = "<tool_call><function=weather>\n<parameter=city>\nOslo\n</parameter>\n</function></tool_call>"
    for text in (python, coder):
        record["conversations"][1]["value"] = text
        assert tell(codec("hermes").decode_request(json.dumps(record).encode()))[1] == ("call", ("weather", ARGUMENTS))


@promise("batch:datasets")
def test_a_literal_without_a_json_value_stays_text() -> None:
    """Complex numbers, bytes, sets, keys of other types: `literal_eval` reads them, no JSON has them."""
    for literal in ("1j", "b'ab'", "{1, 2}", "{(1, 2): 3}", "{1: 2}", "1e999", "'\\ud800'"):
        call = f"<tool_call>{{'name': 'weather', 'arguments': {{'city': {literal}}}}}</tool_call>"
        tools = f"<tools>[{{'name': 'weather', 'parameters': {{'type': 'object', 'x': {literal}}}}}]</tools>"
        answer = f"<tool_response>{{'name': 'weather', 'content': {literal}}}</tool_response>"
        turns = [("system", tools), ("human", "?"), ("gpt", call), ("tool", answer)]
        record = {"conversations": [{"from": speaker, "value": text} for speaker, text in turns]}
        request = codec("hermes").decode_request(json.dumps(record).encode())
        assert not request.tools, literal
        assert request.messages[2].text == call, literal
        assert translate_request(json.dumps(record).encode(), source="hermes", target="trl").json()


@promise("batch:datasets")
def test_hermes_keeps_what_the_user_says_beside_results_and_reports_the_rest() -> None:
    call = '<tool_call>{"name": "weather", "parameters": {"city": "Oslo"}, "id": "c1", "why": "asked"}</tool_call>'
    answered = "<tool_response>3C</tool_response>\nAnd in Bergen?"
    turns = [("human", "?"), ("gpt", call), ("human", answered)]
    record = {"conversations": [{"from": speaker, "value": text} for speaker, text in turns]}
    request = codec("hermes").decode_request(json.dumps(record).encode())
    assert tell(request)[1:] == [("call", ("weather", ARGUMENTS)), ("result", "3C"), ("user", "And in Bergen?")]
    assert request.messages[1].tool_calls[0].id == "c1"
    losses = translate_request(json.dumps(record).encode(), source="hermes", target="openai-chat").losses
    assert [loss.what for loss in losses] == ["why of a call"]
    record["conversations"][2] = {"from": "tool", "value": answered}
    losses = translate_request(json.dumps(record).encode(), source="hermes", target="openai-chat").losses
    assert {loss.what for loss in losses} == {"why of a call", "text around a result"}


@promise("batch:datasets")
def test_a_thought_of_autogen_belongs_to_the_answer_after_it() -> None:
    call = {"id": "c1", "arguments": TEXT, "name": "weather"}
    thought = {"type": "ThoughtEvent", "source": "helper", "content": "hm"}
    events = [
        {"type": "TextMessage", "source": "user", "content": "?"},
        thought,
        {"type": "ToolCallRequestEvent", "source": "helper", "content": [call]},
        thought,
        {"type": "TextMessage", "source": "user", "content": "Well?"},
        thought,
    ]
    request = codec("autogen").decode_request(json.dumps({"messages": events}).encode())
    read = [(message.role, [type(part).__name__ for part in message.parts]) for message in request.messages]
    assert read == [
        ("user", ["Text"]),
        ("assistant", ["Reasoning", "ToolCall"]),
        ("assistant", ["Reasoning"]),
        ("user", ["Text"]),
        ("assistant", ["Reasoning"]),
    ]


@promise("batch:datasets")
def test_tools_that_were_read_before_are_the_same_values() -> None:
    """A set has one list of tools in all rows: it is read once, and the writer of the target knows it by identity."""
    for name in ("trl", "sharegpt", "ms-swift"):
        story = {**STORIES[name], "tools": json.dumps([{**FUNCTION, "name": f"weather_{name}"}])}
        rows = [codec(name).decode_request(json.dumps({**story, "row": row}).encode()) for row in range(4)]
        assert rows[0].tools == rows[3].tools, name
        assert rows[2].tools is rows[3].tools, name
        other = {**story, "tools": json.dumps([{**FUNCTION, "name": "other"}])}
        assert codec(name).decode_request(json.dumps(other).encode()).tools[0].name == "other", name


@promise("batch:datasets")
def test_hermes_messages_are_written_in_their_column() -> None:
    for column in ("messages", "conversations"):
        call = '<tool_call>\n{"name":"weather","arguments":{"city":"Oslo"}}\n</tool_call>'
        answer = '<tool_response>\n{"name":"weather","content":"3C"}\n</tool_response>'
        turns = [("user", "?"), ("assistant", call), ("tool", answer), ("assistant", "3 degrees.")]
        for tools in ("[]", json.dumps(TOOLS), TOOLS):
            record = {column: [{"role": role, "content": text} for role, text in turns], "tools": tools, "id": 7}
            body = json.dumps(record).encode()
            written = translate_request(body, source="hermes", target="hermes")
            assert json.loads(written.json()) == record
            assert not written.losses
            lost = {loss.what for loss in translate_request(body, source="hermes", target="openai-chat").losses}
            assert lost == ({"id", "tools"} if tools == "[]" else {"id"})


@promise("batch:datasets")
def test_claude_code_follows_the_newest_branch_and_compactions() -> None:
    lines = [
        *STORIES["claude-code"],
        {"type": "user", "uuid": "c1", "parentUuid": "u5", "isCompactSummary": True, "message": {"role": "user", "content": "So far: 3 degrees."}},
        {"type": "assistant", "uuid": "c2", "parentUuid": "c1", "message": {"id": "m3", "role": "assistant", "content": [{"type": "text", "text": "Go on."}]}},
    ]  # fmt: skip
    request = codec("claude-code").decode_request(json.dumps(lines).encode())
    assert tell(request) == [("user", "So far: 3 degrees."), ("assistant", "Go on.")]
    assert read("claude-code").model == "claude-x"


@promise("batch:datasets")
def test_codex_compaction_replaces_what_was_before() -> None:
    kept = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "summary"}]}
    lines = [*STORIES["codex"], {"type": "compacted", "payload": {"message": "", "replacement_history": [kept]}}]
    request = codec("codex").decode_request(json.dumps(lines).encode())
    assert tell(request) == [("user", "summary")]


@promise("law:10-bad-input-good-words")
@each("name", dragoman.formats("dataset"))
@each("speaker", [None, "ann"])
def test_answers_are_refused_because_these_formats_have_none(name: str, speaker: str | None) -> None:
    answer = {"role": "assistant", "content": [{"type": "text", "text": "hi"}], "stop_reason": "end_turn"}
    with pytest.raises(DragomanError, match="has no responses"):
        dragoman.translate_response(answer, source="anthropic-messages", target=name, speaker=speaker)


@promise("batch:datasets")
@pytest.mark.parametrize(
    ("kept", "texts"),
    [("3", ["So far", "Three", "Five"]), ("gone", ["So far", "Five"]), (None, ["So far", "Five"])],
)
def test_a_compaction_of_pi_replaces_all_before_what_it_keeps(kept: str | None, texts: list[str]) -> None:
    def line(number: int, role: str, text: str) -> dict[str, Any]:
        message = {"role": role, "content": [{"type": "text", "text": text}]}
        return {"type": "message", "id": str(number), "parentId": str(number - 1), "message": message}

    compaction = {"type": "compaction", "id": "4", "parentId": "3", "summary": "So far"}
    lines = [
        {"type": "session", "version": 3, "id": "s", "timestamp": "t", "cwd": "/p"},
        line(1, "user", "One"),
        line(2, "assistant", "Two"),
        line(3, "user", "Three"),
        compaction | ({} if kept is None else {"firstKeptEntryId": kept}),
        line(5, "assistant", "Five"),
    ]
    request = codec("pi").decode_request(json.dumps(lines).encode())
    assert [message.text for message in request.messages] == texts


@promise("batch:datasets")
def test_error_results_keep_their_flag() -> None:
    failed = {"kind": "request", "parts": [{"part_kind": "tool-return", "tool_name": "weather", "content": "no", "tool_call_id": "call_1", "outcome": "failed"}]}  # fmt: skip
    messages = [*STORIES["pydantic-ai"][:2], failed]
    encoded = translate_request(
        json.dumps(messages).encode(), source="pydantic-ai", target="anthropic-messages", model="m"
    )
    assert json.loads(encoded.json())["messages"][2]["content"][0]["is_error"] is True
    back = json.loads(translate_request(encoded.json(), source="anthropic-messages", target="langchain").json())
    assert back[2]["data"]["status"] == "error"


@promise("batch:datasets")
def test_losses_point_into_the_record() -> None:
    record = json.loads(body("pydantic-ai"))
    record[1]["parts"].insert(
        0, {"part_kind": "thinking", "content": "hm", "signature": "s", "provider_name": "anthropic"}
    )
    encoded = translate_request(json.dumps(record).encode(), source="pydantic-ai", target="openai-chat", model="m")
    assert "$[1].parts[0]" in {loss.path for loss in encoded.losses}
