"""The short run of the fuzzer, and inputs that once did what no input may do."""

import json
import random
from collections.abc import Iterator
from contextlib import suppress
from copy import copy
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

import dragoman
import dragoman.ir
from dragoman.batch.batch_file_converter import converter_for
from dragoman.batch.options import ConvertOptions
from dragoman.batch.provider_files import BATCH_FILES, BatchItem, write_line
from dragoman.batch.rejects import Reject
from dragoman.errors import DecodeError, EncodeError
from dragoman.ir import StreamFailed
from tests.datasets.public_shapes import records_of
from tests.fuzz.mutation import VALUES, mutate_bytes, mutate_events, mutate_json
from tests.fuzz.run import Findings, fuzz_plainly, shrink
from tests.fuzz.targets import TARGETS, VALUE_READERS, Target
from tests.support.cases import each
from tests.support.converse_streams import frame
from tests.support.promises import promise

EXECUTIONS = 150


@promise("law:10-bad-input-good-words")
@pytest.mark.parametrize("name", TARGETS)
def test_mutants_are_read_or_refused_with_a_typed_error(name: str, tmp_path: Path) -> None:
    findings = Findings(TARGETS[name], tmp_path)
    fuzz_plainly(TARGETS[name], findings, tmp_path / "corpus", EXECUTIONS, seed=len(name))
    assert findings.kinds == set()


def test_every_decoder_of_every_format_is_a_target() -> None:
    wire = {f"{kind}:{name}" for name in dragoman.formats() for kind in ("request", "response", "error", "stream")}
    records = {f"{kind}:{name}" for name in dragoman.formats("record") for kind in ("request", "response")}
    values = {name for name in dragoman.__all__ if name.startswith(("decode_tool", "decode_message"))}
    stored = {f"request:{name}" for name in dragoman.formats("dataset")} | {f"batch:{name}" for name in BATCH_FILES}
    assert wire | records | stored | {f"value:{name}" for name in dragoman.formats(None)} <= set(TARGETS)
    assert values <= {reader.__name__ for reader in VALUE_READERS}


# ── the fuzzer itself ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_finding_is_noticed_made_small_and_kept(tmp_path: Path) -> None:
    def run(data: bytes) -> None:
        if b'"bad"' in data:
            raise KeyError(data)

    target = Target("toy", run, lambda: [b'{"a":[1,2,{"good":5}],"b":"text","c":{"bad":1,"d":[1,2,3]}}'])
    findings = Findings(target, tmp_path)
    fuzz_plainly(target, findings, tmp_path / "corpus", 5, seed=1)
    assert findings.kinds == {"KeyError in fuzz target"}
    (kept,) = (tmp_path / "findings" / "toy").iterdir()
    assert kept.read_bytes() == b'{"c":{"bad":1}}' or len(kept.read_bytes()) < 20


def chance(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311


def test_mutants_depend_on_the_seed_alone_and_leave_the_table_of_values_as_it_is() -> None:
    before = json.dumps(VALUES)
    body = json.dumps({"a": [1, {"b": "c"}], "d": {"e": None}}).encode()
    made = [[mutate_json(body, chance(seed), [{"x": {"y": []}}]) for seed in range(500)] for _ in range(2)]
    assert made[0] == made[1]
    assert len(set(made[0])) > 200
    assert json.dumps(VALUES) == before


def test_streams_are_mutated_event_by_event() -> None:
    body = b'data: {"a":1}\n\ndata: {"b":2}\n\ndata: [DONE]\n\n'
    made = {mutate_events(body, chance(seed), separator=b"\n\n") for seed in range(300)}
    assert any(one.count(b"data: ") > 3 for one in made)
    assert any(one.count(b"data: ") == 2 for one in made)
    assert {mutate_bytes(b"", chance(1))}


def test_shrinking_keeps_what_fails() -> None:
    small = shrink(json.dumps({"a": list(range(50)), "b": {"c": "needle"}}).encode(), lambda data: b"needle" in data)
    assert b"needle" in small
    assert len(small) < 20


# ── found once ────────────────────────────────────────────────────────────────────────────────────────────────


def chunk(**fields: Any) -> dict[str, Any]:
    return {"id": "c", "choices": [{"index": 0, "delta": {"role": "assistant", "content": "Hi"}}], **fields}


HUGE = b"9" * 5_000
FIRST_CHUNKS = {
    "created is too large a float": json.dumps(chunk(created=7)).encode().replace(b"7", b"1e999"),
    "created is text": json.dumps(chunk(created="1")).encode(),
    "created is huge": json.dumps(chunk(created=7)).encode().replace(b"7", HUGE),
    "id is a number": json.dumps(chunk(id=5)).encode(),
    "id is not UTF-8": json.dumps(chunk(id="~")).encode().replace(b"~", b"\xff"),
}


def failure_of(data: bytes, name: str) -> str:
    decoder = dragoman.StreamDecoder(name)
    events = decoder.feed(data) + decoder.close()
    (failed,) = (event for event in events if isinstance(event, StreamFailed))
    assert failed.failure.raw_type in {"DecodeError", "LimitExceeded", "IllegalEvent"}
    return failed.failure.message


@promise("law:10-bad-input-good-words")
@pytest.mark.parametrize("case", FIRST_CHUNKS)
def test_a_first_chunk_with_a_wrong_member_fails_the_stream(case: str) -> None:
    message = failure_of(b"data: " + FIRST_CHUNKS[case] + b"\n\n", "openai-chat")
    wanted = "UTF-8" if "UTF-8" in case else "$.created" if "created" in case else "$.id"
    assert wanted in message


@pytest.mark.parametrize("kind", [{}, [], 5, True])
def test_a_delta_whose_type_is_not_text_fails_the_stream(kind: Any) -> None:
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"id": "m", "role": "assistant", "content": [], "usage": {}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": kind, "text": "x"}},
    ]
    data = b"".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in events)
    assert "$.delta" in failure_of(data, "anthropic-messages")


@pytest.mark.parametrize("head", [{}, {"name": "f"}, {"toolUseId": "t"}, {"toolUseId": [], "name": "f"}])
def test_a_converse_call_without_id_or_name_fails_the_stream(head: dict[str, Any]) -> None:
    start = json.dumps({"contentBlockIndex": 0, "start": {"toolUse": head}}).encode()
    data = frame("messageStart", b'{"role":"assistant"}') + frame("contentBlockStart", start)
    assert "$.start.toolUse." in failure_of(data, "bedrock-converse")


@each("target", dragoman.formats("wire"))
@each("numbers", [(-1, 1), (1, 2), (0, 7)])
def test_candidates_whose_numbers_have_gaps_are_answered(numbers: tuple[int, int], target: str) -> None:
    """A number that no choice had has no ending of its own either."""
    chunks = [
        {"id": "a", "choices": [{"index": n, "delta": {"content": "x"}, "finish_reason": "stop"}]} for n in numbers
    ]
    decoder = dragoman.StreamDecoder("openai-chat")
    events = (
        decoder.feed(b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks)) + decoder.close()
    )
    assert dragoman.encode_response(dragoman.accumulate(events), target).json()


@each("name", dragoman.formats())
@each("read", [dragoman.decode_request, dragoman.decode_response, dragoman.decode_error])
def test_bad_utf8_anywhere_is_refused(name: str, read: Any) -> None:
    body = json.dumps({"messages": [], "contents": [], "input": [], "~": "~"}).encode().replace(b"~", b"\xff")
    with pytest.raises(DecodeError, match="UTF-8"):
        read(body, name)
    for translate in (dragoman.translate_request, dragoman.translate_response, dragoman.translate_error):
        with pytest.raises(DecodeError, match="UTF-8"):
            translate(body, source=name, target="openai-chat")


@promise("law:10-bad-input-good-words")
@each("key", ["web_search_options", "plugins", "search_parameters"])
@each("held", ["i", True, 5, None, {}, [], ["i"], [[]], [{}, {}], {"user_location": 5}])
@each("name", [*dragoman.formats("compatible"), "openai-chat"])
def test_a_search_setting_of_any_type_is_one_tool_or_refused(key: str, held: Any, name: str) -> None:
    with suppress(DecodeError):
        dragoman.decode_tool_definition({key: held}, name)


# Blocks of tools that providers run: every member of each may be of any type.
HOSTED: dict[str, list[dict[str, Any]]] = {
    "openai-responses": [
        {"type": "web_search_call", "id": "i", "status": "failed", "action": {"type": "search", "sources": [{}]}},
        {"type": "code_interpreter_call", "id": "i", "status": "x", "outputs": [{}], "code": "", "container_id": "c"},
        {
            "type": "file_search_call",
            "id": "i",
            "status": "x",
            "queries": [""],
            "results": [{"filename": "", "text": ""}],
        },
        {
            "type": "image_generation_call",
            "id": "i",
            "result": "",
            "output_format": "",
            "revised_prompt": "",
            "error": {},
        },
        {"type": "mcp_call", "id": "i", "output": "", "error": {"content": [{}]}, "arguments": "", "server_label": ""},
        {"type": "shell_call", "call_id": "i", "action": {"commands": [""]}},
        {"type": "shell_call_output", "call_id": "i", "output": [{"stdout": "", "outcome": {"exit_code": 0}}]},
        {"type": "tool_search_call", "call_id": "i", "arguments": {}},
        {"type": "tool_search_output", "call_id": "i", "tools": [{"name": ""}]},
    ],
    "anthropic-messages": [
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": ""}},
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"url": "", "title": ""}]},
        {
            "type": "web_fetch_tool_result",
            "tool_use_id": "s",
            "content": {"url": "", "content": {"source": {"data": ""}}},
        },
        {"type": "code_execution_tool_result", "tool_use_id": "s", "content": {"stdout": "", "return_code": 0}},
        {"type": "bash_code_execution_tool_result", "tool_use_id": "s", "content": {"stderr": "", "return_code": 0}},
        {"type": "tool_search_tool_result", "tool_use_id": "s", "content": {"tool_references": [{"tool_name": ""}]}},
        {"type": "mcp_tool_use", "id": "s", "name": "f", "server_name": "", "input": {}},
        {"type": "mcp_tool_result", "tool_use_id": "s", "content": [{"text": ""}], "is_error": False},
    ],
    "gemini": [
        {"executableCode": {"language": "PYTHON", "code": "", "id": ""}},
        {"codeExecutionResult": {"outcome": "OUTCOME_FAILED", "output": "", "id": ""}},
        {"toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "args": {}, "id": ""}},
        {"toolResponse": {"toolType": "GOOGLE_SEARCH_WEB", "response": {}, "id": ""}},
    ],
    "bedrock-converse": [
        {"toolUse": {"toolUseId": "t", "name": "nova_grounding", "input": {}, "type": "server_tool_use"}},
        {"toolResult": {"toolUseId": "t", "content": [{"json": {"stdOut": ""}}], "status": "", "type": "x_result"}},
    ],
}
ODD: tuple[Any, ...] = ([], {}, 5, "x", None, True, [[]], [5], [{"a": []}], {"a": []})
WRAPPED: dict[str, Any] = {
    "openai-responses": lambda block: {"output": [block]},
    "anthropic-messages": lambda block: {"role": "assistant", "content": [block]},
    "gemini": lambda block: {"candidates": [{"content": {"role": "model", "parts": [block]}}]},
    "bedrock-converse": lambda block: {"output": {"message": {"role": "assistant", "content": [block]}}},
}


def spoiled(value: Any) -> Iterator[Any]:
    """The value with each of its members, at any depth, replaced by each odd value."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        for other in (*ODD, *spoiled(member)):
            copied = copy(value)
            copied[key] = other
            yield copied


@promise("law:10-bad-input-good-words")
@pytest.mark.parametrize("name", HOSTED)
def test_members_of_hosted_tools_may_be_anything(name: str) -> None:
    target = TARGETS[f"response:{name}"]
    for block in HOSTED[name]:
        for spoiled_block in spoiled(block):
            target.run(json.dumps(WRAPPED[name](spoiled_block)).encode())


@promise("law:10-bad-input-good-words")
@each("name", dragoman.formats("dataset"))
def test_members_of_stored_conversations_may_be_anything(name: str) -> None:
    for record in records_of(name):
        for story in spoiled(record):
            TARGETS[f"request:{name}"].run(json.dumps(story).encode())


FOUND_IN_STORED = {
    "gemini-tuning": {"contents": {"parts": [{"text": "a lone content"}]}, "completions": []},
    "langchain4j": [{"type": "USER", "contents": [{"": {}}]}],
    "langfuse": {"type": "GENERATION", "input": {"messages": [{"role": "user", "content": [{"type": {}}]}]}},
}


@promise("law:10-bad-input-good-words")
@pytest.mark.parametrize("name", FOUND_IN_STORED)
def test_stored_conversations_that_were_found(name: str) -> None:
    TARGETS[f"request:{name}"].run(json.dumps(FOUND_IN_STORED[name]).encode())


@promise("law:10-bad-input-good-words")
@pytest.mark.parametrize("name", BATCH_FILES)
def test_members_of_batch_lines_may_be_anything(name: str) -> None:
    file = BATCH_FILES[name]
    bodies = {"request": b"{}", "succeeded": b"{}", "errored": b'{"error":{"code":5,"message":"x"}}'}
    for outcome, body in bodies.items():
        item = BatchItem(id="r-1", outcome=outcome, body=Raw(body), format=file.format)  # type: ignore[arg-type]
        line = json.loads(write_line(file, item))
        for bad in ({}, *spoiled(line), *({key: line[key] for key in line if key != gone} for gone in line)):
            TARGETS[f"batch:{name}"].run(json.dumps(bad).encode())
            with suppress(DecodeError):
                file.read(file, bad)


def test_an_answer_of_a_session_whose_first_line_says_nothing_is_an_answer() -> None:
    """Lines with one id are one answer, also where the first of them is empty."""
    question = {"type": "user", "uuid": "a", "parentUuid": None, "message": {"role": "user", "content": "Hi"}}
    contents = [[], [{"type": "text", "text": "Hello"}]]
    answers = [
        {
            "type": "assistant",
            "uuid": f"b{number}",
            "parentUuid": ("a", "b0")[number],
            "message": {"role": "assistant", "id": "m", "content": content},
        }
        for number, content in enumerate(contents)
    ]
    request = dragoman.decode_request([question, *answers], "claude-code")
    assert [(message.role, message.text) for message in request.messages] == [("user", "Hi"), ("assistant", "Hello")]


@each("target", dragoman.formats(None))
def test_a_lone_part_crosses_to_servers_that_take_a_string(target: str) -> None:
    content = {"type": "text", "text": "Be short."}
    body = {"model": "m", "messages": [{"role": "system", "content": content}, {"role": "user", "content": content}]}
    encoded = dragoman.encode_request(dragoman.decode_request(body, "openai-chat"), target)
    assert b"Be short." in encoded.json()


@pytest.mark.parametrize("name", dragoman.formats())
def test_an_exponent_that_no_value_holds_is_refused_or_carried(name: str) -> None:
    for kind in ("request", "response", "error"):
        body = json.dumps({"messages": [], "contents": [], "input": [], "x": 7}).encode().replace(b"7", b"9e" + HUGE)
        TARGETS[f"{kind}:{name}"].run(body)


@promise("law:10-bad-input-good-words")
@pytest.mark.parametrize("include", [[[]], [{}], {}, 5, "x", [5]])
def test_what_a_response_shall_include_may_be_anything(include: Any) -> None:
    TARGETS["request:openai-responses"].run(json.dumps({"input": "hi", "include": include}).encode())


USAGE = (
    ("gemini", {"candidates": [{"content": {"parts": [{"text": "x"}], "role": "model"}}], "usageMetadata": {"~": 1}}),
    ("anthropic-messages", {"type": "message", "content": [{"type": "text", "text": "x"}], "usage": {"~": 1}}),
    ("openai-chat", {"choices": [{"message": {"role": "assistant", "content": "x"}}], "usage": {"~": 1}}),
)


@pytest.mark.parametrize(("name", "body"), USAGE, ids=[name for name, _ in USAGE])
def test_bad_utf8_in_the_usage_of_an_answer_is_refused(name: str, body: dict[str, Any]) -> None:
    with pytest.raises(DecodeError, match="UTF-8"):
        dragoman.decode_response(json.dumps(body).encode().replace(b"~", b"\xff"), name)


LEGACY = ({"name": "f", "arguments": "{}", "x": 1}, {"name": "f", "arguments": {"a": 1}}, {"name": "f"})
WRONG_LEGACY: tuple[Any, ...] = ({"name": 5, "arguments": "{}"}, {"name": "f", "arguments": 5}, [], "f", 7)


@pytest.mark.parametrize("call", LEGACY)
def test_a_legacy_call_with_unknown_members_is_kept_whole(call: dict[str, Any]) -> None:
    message = {"role": "assistant", "content": None, "function_call": call}
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}, message]}
    request = dragoman.decode_request(body, "openai-chat")
    assert request.messages[1].tool_calls[0].name == "f"
    encoded = dragoman.encode_request(request, "openai-chat").body
    assert encoded["messages"][1]["function_call"] == call


@pytest.mark.parametrize("call", WRONG_LEGACY)
def test_a_legacy_call_with_wrong_members_is_refused(call: Any) -> None:
    message = {"role": "assistant", "content": None, "function_call": call}
    with pytest.raises(DecodeError) as raised:
        dragoman.decode_request({"model": "m", "messages": [message]}, "openai-chat")
    assert "function_call" in raised.value.path


def test_a_null_output_config_is_read() -> None:
    body = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}], "output_config": None}
    request = dragoman.decode_request(body, "anthropic-messages")
    assert dragoman.encode_request(request, "anthropic-messages").body == body
    dragoman.translate_request(body, source="anthropic-messages", target="gemini")


@each("order", [[{}], [1], "a", {"a": 1}, [["a"]]])
@each("target", dragoman.formats(None))
def test_a_wrong_property_ordering_crosses_or_is_refused(order: Any, target: str) -> None:
    schema = {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}, "propertyOrdering": order}
    body = {
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        "tools": [{"functionDeclarations": [{"name": "f", "parameters": schema}]}],
        "generationConfig": {"responseMimeType": "application/json", "responseSchema": schema},
    }
    with suppress(DecodeError, EncodeError):
        assert dragoman.translate_request(json.dumps(body).encode(), source="gemini", target=target).losses is not None


@pytest.mark.parametrize(("text", "value"), [(b"1e999", 10**999), (b"-1e999", -(10**999)), (b"1e400", 10**400)])
def test_a_body_holds_what_the_standard_library_can_write(text: bytes, value: int) -> None:
    body = b'{"model":"m","messages":[{"role":"user","content":"hi"}],"x":[' + text + b"]}"
    encoded = dragoman.translate_request(body, source="openai-chat", target="openai-chat")
    assert text in encoded.json()
    assert encoded.body["x"] == [value]
    json.dumps(encoded.body)


@pytest.mark.parametrize("text", [b"1e99999", HUGE, b"1" + b"0" * 400 + b".5"])
def test_a_number_that_no_python_value_holds_is_refused_with_its_path(text: bytes) -> None:
    body = b'{"model":"m","messages":[{"role":"user","content":"hi"}],"x":{"y":[0,' + text + b"]}}"
    encoded = dragoman.translate_request(body, source="openai-chat", target="openai-chat")
    assert text in encoded.json()
    with pytest.raises(EncodeError) as raised:
        encoded.body  # noqa: B018
    assert raised.value.path == "$.x.y[1]"


@each("body", [b'{"":"","\xe2"', b'{"":' + b"[" * 5_000, b"[[[", b'[{"role":[]}]', b"[5]"])
@each("name", dragoman.formats("record"))
@each("read", [dragoman.decode_request, dragoman.decode_response])
def test_records_that_are_none_are_refused(body: bytes, name: str, read: Any) -> None:
    with pytest.raises(DecodeError) as raised:
        read(body, name)
    assert raised.value.path.startswith("$")


@pytest.mark.parametrize("deep", [400, 5_000])
def test_values_nested_too_deeply_are_refused_on_the_way_out(deep: int) -> None:
    value: Any = "x"
    for _ in range(deep):
        value = [value]
    call = dragoman.ir.ToolCall("c", "f", {"a": value})
    request = dragoman.ir.Request("m", (dragoman.ir.Message("assistant", (call,)),))
    for target in dragoman.formats():
        with suppress(EncodeError):
            assert dragoman.encode_request(request, target).json()


@pytest.mark.parametrize(
    "step", [{"type": "user_input"}, {"type": "model_output"}, {"type": "function_call", "name": "g"}]
)
@pytest.mark.parametrize("content", [{"type": "text", "text": ""}, {"type": "image"}])
def test_interactions_do_not_mix_contents_and_steps(content: Any, step: Any) -> None:
    with pytest.raises(DecodeError) as raised:
        dragoman.decode_request({"input": [content, step]}, "gemini-interactions")
    assert raised.value.path == "$.input[1]"


def test_a_document_whose_base64_has_other_letters_crosses_or_is_refused() -> None:
    document = {"type": "document", "data": "SGVsbG8\u2028=", "mime_type": "text/plain"}
    body = {"input": [{"type": "user_input", "content": [document]}]}
    for target in dragoman.formats():
        with suppress(DecodeError, EncodeError):
            assert dragoman.translate_request(body, source="gemini-interactions", target=target).json()


def events(*payloads: Any) -> bytes:
    return b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in payloads)


def event_of(kind: str, index: int, **message: Any) -> dict[str, Any]:
    return {"type": kind, "index": index, "delta": {"message": message}}


_CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}
_MORE = {"function": {"arguments": "{}"}}
_CITED = {"start": 0, "end": 1, "text": "a", "sources": [{"type": "tool", "id": "t:0", "tool_output": {"a": "b"}}]}
_STEP = {"event_type": "step.start", "index": 0, "step": {"type": "model_output"}}
_BLOCK = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
_MESSAGE: dict[str, Any] = {"id": "m", "type": "message", "role": "assistant", "content": [], "model": "m", "usage": {}}
ODD_STREAMS: dict[str, tuple[str, bytes]] = {
    "arguments of a call that has ended": (
        "cohere-chat",
        events(
            {"type": "message-start", "id": "c"},
            event_of("tool-call-start", 0, tool_calls=_CALL),
            {"type": "tool-call-end", "index": 0},
            event_of("tool-call-delta", 0, tool_calls=_MORE),
        ),
    ),
    "a citation of a text that has ended": (
        "cohere-chat",
        events(
            {"type": "message-start", "id": "c"},
            event_of("content-delta", 0, content={"text": "a"}),
            event_of("content-delta", 7, content={"text": "b"}),
            event_of("citation-start", 0, citations=_CITED),
        ),
    ),
    "a delta of step -1": (
        "gemini-interactions",
        events(
            _STEP,
            {"event_type": "step.delta", "index": 0, "delta": {"type": "text", "text": "I"}},
            {"event_type": "step.stop", "index": 0},
            {"event_type": "step.delta", "index": -1, "delta": {"type": "text", "text": "I"}},
        ),
    ),
    "a delta of block -1": (
        "anthropic-messages",
        events(
            {"type": "message_start", "message": _MESSAGE},
            _BLOCK,
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "I"}},
            {"type": "content_block_stop", "index": 0},
            {"type": "content_block_delta", "index": -1, "delta": {"type": "text_delta", "text": "I"}},
        ),
    ),
}


@each("target", dragoman.formats())
@each("case", ODD_STREAMS)
def test_odd_streams_cross_or_are_refused(case: str, target: str) -> None:
    source, data = ODD_STREAMS[case]
    translator = dragoman.StreamTranslator(source=source, target=target)
    with suppress(DecodeError, EncodeError):
        translator.feed(data)
        translator.close()


@pytest.mark.parametrize("source", BATCH_FILES)
def test_a_lone_surrogate_in_a_batch_line_is_refused(source: str) -> None:
    line = b'{"custom_id":"a","url":"/v1/responses","body":{"model":"m","input":"\xed\xa0\x80","x":' + HUGE + b"}}"
    converted = converter_for(ConvertOptions(target="openai-chat", source=source), "fuzz", None).convert(line, 1)
    assert isinstance(converted, Reject)


_CALLED = {"role": "model", "parts": [{"functionCall": {"id": "c", "name": "f", "args": {}}}]}
_REDACTED = {"reasoningContent": {"redactedContent": "QQ=="}}
_USED = {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t", "name": "f", "input": {}}}]}
ODD_REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "an error that is not text, with parts": (
        "gemini",
        {
            "contents": [
                _CALLED,
                {"parts": [{"functionResponse": {"id": "c", "response": {"error": ["see"]}, "parts": []}}]},
            ]
        },
    ),
    "a service tier that is an object": (
        "gemini",
        {"contents": [{"role": "user", "parts": [{"text": "hi"}]}], "serviceTier": {"a": 1}},
    ),
    "reasoning in a result": (
        "bedrock-converse",
        {
            "messages": [
                _USED,
                {"role": "user", "content": [{"toolResult": {"toolUseId": "t", "content": [_REDACTED]}}]},
            ]
        },
    ),
    "a custom tool that is strict": (
        "openai-responses",
        {"model": "m", "input": "hi", "tools": [{"type": "custom", "name": "r", "strict": True}]},
    ),
}


@each("target", dragoman.formats(None))
@each("case", ODD_REQUESTS)
def test_odd_requests_cross_or_are_refused(case: str, target: str) -> None:
    source, body = ODD_REQUESTS[case]
    with suppress(DecodeError, EncodeError):
        encoded = dragoman.translate_request(body, source=source, target=target)
        assert encoded.losses is not None
        if target == source:
            assert json.loads(encoded.json()) == body
