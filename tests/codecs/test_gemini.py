"""The gemini codec: tables of cases for both directions, then the rules that bend what others say."""

import base64
import json
from typing import Any

import pytest
from msgspec import Raw, structs

import dragoman
from dragoman import ir
from dragoman.codecs.encoded import Encoded
from dragoman.codecs.gemini import errors, json_paths, request, response
from dragoman.codecs.gemini.profile import PROFILE, VERTEX_PROFILE, GeminiProfile
from dragoman.codecs.gemini.schemas import json_schema_of
from dragoman.codecs.ids import invent_id
from dragoman.errors import DecodeError, EncodeError
from dragoman.loss import Loss
from dragoman.losses import LossLog, intermediate_paths
from dragoman.sim.rules import gemini as judge
from tests.codecs.gemini_cases import (
    ANSWERS,
    CALL,
    CALLED,
    CALLS,
    CODE,
    CONTENTS,
    COUNTS,
    FAMILY,
    FUNCTION,
    GREETING,
    HELLO,
    KINDS,
    OUTCOME,
    PLACEHOLDER,
    PNG,
    SCHEMA,
    SETTINGS,
    SIGNED,
    TOOL,
    TYPED,
    Json,
    answered,
    candidate,
    declared,
    from_model,
    from_user,
    model,
    noted,
    raw,
    responds,
    results,
    tools,
    unnamed,
    user,
)
from tests.support.cases import each
from tests.support.promises import promise

OLD = "gemini-2.5-flash"
NEW = "gemini-3-flash-preview"


def decode(body: Json) -> ir.Request:
    """The request, without the note of the service that it was written for."""
    decoded = request.decode_request(bytes(raw(body)))
    notes = {key: value for key, value in (decoded.metadata or {})[FAMILY].items() if key != request.SERVICE}
    return structs.replace(decoded, metadata={FAMILY: notes} if notes else None)


def encode(value: ir.Request, profile: GeminiProfile = PROFILE) -> tuple[Encoded, tuple[Loss, ...]]:
    """The request as the codec alone encodes it, with its losses."""
    log = LossLog()
    encoded = request.encode_request(value, log, profile)
    return encoded, log.resolve(value, intermediate_paths)


def answer(value: ir.Completion) -> tuple[Json, tuple[Loss, ...]]:
    log = LossLog()
    encoded = response.encode_response(value, log)
    return encoded.body, log.resolve(value, intermediate_paths)


def request_of(*messages: ir.Message, model: str | None = OLD, **fields: Any) -> ir.Request:
    """A request of another family."""
    return ir.Request(model, messages or (ir.Message("user", "hi"),), **fields)


def complete(*parts: ir.AnyPart, reason: ir.FinishReason = "stop", **fields: Any) -> ir.Completion:
    """An answer of another family."""
    given: Json = {"finish": ir.Finish(reason, reason), "usage": ir.Usage(10, 5), "id": "resp_1", "model": "m"}
    return ir.Completion((ir.Message("assistant", parts),), **(given | fields))


def loss_pairs(losses: tuple[Loss, ...]) -> list[tuple[str, str]]:
    return [(loss.severity, loss.path) for loss in losses]


def parts_of(body: Json, index: int = 0) -> list[Json]:
    parts: list[Json] = body["candidates"][index]["content"]["parts"]
    return parts


# ── the tables ────────────────────────────────────────────────────────────────────────────────────────────────


@promise("law:1-identity", "law:6-owed-back", "report:29", "report:34")
@each("name", CONTENTS)
def test_contents_are_read(name: str) -> None:
    wire, messages = CONTENTS[name]
    assert decode({"contents": wire}).messages == tuple(messages)


@promise("law:1-identity", "report:37", "report:54", "report:59")
@each("name", CONTENTS)
def test_contents_are_written(name: str) -> None:
    wire, messages = CONTENTS[name]
    encoded, losses = encode(request_of(*messages, model=None, origin=FAMILY))
    assert encoded.body == {"contents": wire}
    assert losses == ()


@promise("report:45", "report:50", "report:58")
@pytest.mark.parametrize("name", KINDS)
def test_kinds_of_results(name: str) -> None:
    kind, value, expected = KINDS[name]
    encoded, losses = encode(request_of(GREETING, CALLED, answered(kind, value)))
    assert encoded.body["contents"][2] == responds(expected)
    assert losses == ()
    assert decode(encoded.body).messages[2] == answered(kind, value)


def test_a_string_that_is_data_and_an_error_that_is_an_object_are_wrapped() -> None:
    encoded, _ = encode(request_of(GREETING, CALLED, answered("data", "x")))
    assert encoded.body["contents"][2] == responds({"output": "x"})
    encoded, _ = encode(request_of(GREETING, CALLED, answered("error", {"code": 5})))
    assert encoded.body["contents"][2] == responds({"error": {"code": 5}})


@promise("law:1-identity")
def test_numbers_and_key_order_survive_exactly() -> None:
    args = b'{"z":1.0,"big":9007199254740993,"a":{"k":1e400,"k":2}}'
    body = (
        b'{"contents":[{"role":"model","parts":[{"functionCall":{"name":"f","args":' + args + b',"id":"x"}}]},'
        b'{"role":"user","parts":[{"functionResponse":{"name":"f","response":' + args + b',"id":"x"}}]}]}'
    )
    encoded = request.encode_request(request.decode_request(body), LossLog())
    assert encoded.json().count(args) == 2


@promise("law:1-identity")
@each("name", SETTINGS)
def test_settings_are_read(name: str) -> None:
    wire, fields = SETTINGS[name]
    messages = fields.get("messages", (GREETING,))
    rest = {key: value for key, value in fields.items() if key != "messages"}
    expected = structs.replace(ir.Request(None, messages, origin=FAMILY), **rest)
    assert decode({"contents": [HELLO]} | wire) == expected


@promise("law:1-identity", "report:80")
@each("name", SETTINGS)
def test_settings_are_written(name: str) -> None:
    wire, fields = SETTINGS[name]
    value = structs.replace(ir.Request(None, (GREETING,), origin=FAMILY), **fields)
    only_on_vertex = "responseFormat" in (wire.get("generationConfig") or {})
    encoded, losses = encode(value, VERTEX_PROFILE if only_on_vertex else PROFILE)
    assert encoded.body == {"contents": [HELLO]} | wire
    assert losses == ()


def test_a_lone_content_and_a_lone_tool_come_back_alone() -> None:
    body = {"contents": HELLO, "tools": declared(TOOL)}
    assert encode(decode(body))[0].body == body


@promise("report:66")
def test_typed_schemas_become_json_schema() -> None:
    typed = {
        "type": "OBJECT",
        "any_of": [{"type": 1}, {"ref": "#/defs/X"}],
        "defs": {"X": {"type": "INTEGER", "enum": ["1", "2"], "format": "enum", "example": 1}},
        "properties": {"type": {"type": "STRING", "enum": ["OBJECT"], "nullable": True}, "nullable": {"anyOf": []}},
        "min_properties": "1",
    }
    assert json_schema_of(typed) == {
        "type": "object",
        "anyOf": [{"type": "string"}, {"$ref": "#/$defs/X"}],
        "$defs": {"X": {"type": "integer", "enum": [1, 2], "examples": [1]}},
        "properties": {
            "type": {"type": ["string", "null"], "enum": ["OBJECT", None]},
            "nullable": {"anyOf": []},
        },
        "minProperties": 1,
    }


def test_a_changed_schema_is_not_sent_in_its_old_form() -> None:
    read = decode({"contents": [HELLO]} | tools(declared({"name": "f", "parameters": TYPED})))
    (tool,) = read.tools
    changed = structs.replace(read, tools=(structs.replace(tool, parameters=SCHEMA),))
    assert encode(changed)[0].body["tools"] == [declared({"name": "f", "parametersJsonSchema": SCHEMA})]


def without_notes(completion: ir.Completion, name: str) -> ir.Completion:
    """Ids without a response id follow from the body, and the counts' own spelling is long: not written out here."""
    if name == "call that must not be run":
        (message,) = completion.messages
        calls = tuple(structs.replace(call, id="") for call in message.tool_calls)
        return structs.replace(completion, messages=(structs.replace(message, parts=calls),))
    if name == "all counts" and completion.usage is not None:
        return structs.replace(completion, usage=structs.replace(completion.usage, metadata=None))
    return completion


@promise("report:79", "report:76", "report:77", "law:9-usage-adds-up")
@each("name", ANSWERS)
def test_answers_are_read(name: str) -> None:
    body, completion = ANSWERS[name]
    assert without_notes(response.decode_response(bytes(raw(body))), name) == completion


@promise("law:1-identity")
@each("name", ANSWERS)
def test_answers_are_written(name: str) -> None:
    body, _ = ANSWERS[name]
    again, losses = answer(response.decode_response(bytes(raw(body))))
    assert again == body
    assert losses == ()


WORDS = {
    "stop": "STOP",
    "length": "MAX_TOKENS",
    "tool_calls": "STOP",
    "content_filter": "SAFETY",
    "refusal": "SAFETY",
    "pause": "MAX_TOKENS",
    "error": "OTHER",
    "unknown": "FINISH_REASON_UNSPECIFIED",
}


@promise("report:79")
@pytest.mark.parametrize("reason", WORDS)
def test_every_finish_reason_has_a_word(reason: ir.FinishReason) -> None:
    body, losses = answer(complete(ir.Text("b"), reason=reason))
    assert body["candidates"][0]["finishReason"] == WORDS[reason]
    assert [loss.severity for loss in losses] == (["degraded"] if reason in {"refusal", "pause", "unknown"} else [])


@promise("law:9-usage-adds-up", "report:77")
def test_counts_add_up() -> None:
    body, _ = answer(complete(ir.Text("b"), usage=ir.Usage(100, 30, 60, None, 20, 10)))
    assert body["usageMetadata"] == {
        "promptTokenCount": 100,
        "candidatesTokenCount": 10,
        "totalTokenCount": 130,
        "cachedContentTokenCount": 60,
        "thoughtsTokenCount": 20,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 90}, {"modality": "IMAGE", "tokenCount": 10}],
    }
    read = response.decode_response(bytes(raw(body))).usage
    assert read is not None
    assert (read.input, read.output, read.cached, read.reasoning, read.image, read.total) == (100, 30, 60, 20, 10, 130)


def test_answers_of_others_are_whole() -> None:
    body, losses = answer(complete(ir.Text("b"), ir.ToolCall("call_1", "f", {"a": 1}), reason="tool_calls", created=0))
    assert losses == ()
    assert judge.check_response(body) == ()
    assert body == {
        "candidates": [
            {
                "content": {
                    "role": "model",
                    "parts": [{"text": "b"}, {"functionCall": {"name": "f", "args": {"a": 1}, "id": "call_1"}}],
                },
                "finishReason": "STOP",
                "index": 0,
            }
        ],
        "usageMetadata": COUNTS,
        "modelVersion": "m",
        "createTime": "1970-01-01T00:00:00Z",
        "responseId": "resp_1",
    }


def test_a_filter_that_left_nothing_is_a_blocked_prompt() -> None:
    body, _ = answer(ir.Completion((), ir.Finish("content_filter"), id="r"))
    assert body == {"promptFeedback": {"blockReason": "OTHER"}, "responseId": "r"}


# ── citations ─────────────────────────────────────────────────────────────────────────────────────────────────

WEB = {"web": {"uri": "https://e.org", "title": "T"}}


def grounded(text: str, *segments: Json, **more: Any) -> Json:
    supports = [{"segment": segment, "groundingChunkIndices": [0]} for segment in segments]
    metadata = {"groundingChunks": [WEB], "groundingSupports": supports} | more
    return {"candidates": [candidate({"text": text}, groundingMetadata=metadata)]}


@promise("report:82")
def test_offsets_are_bytes_there_and_characters_here() -> None:
    body = grounded("Größe: 3 m", {"startIndex": 9, "endIndex": 12, "text": "3 m"})
    completion = response.decode_response(bytes(raw(body)))
    (text,) = completion.messages[0].parts
    assert isinstance(text, ir.Text)
    assert text.citations == (ir.Citation("https://e.org", "T", None, 7, 10),)
    assert answer(completion)[0] == body


def test_a_segment_is_found_by_its_text_where_the_part_is_not_named() -> None:
    parts: list[Json] = [CODE, OUTCOME, {"text": "Tokyo is big"}]
    metadata = {
        "groundingChunks": [WEB],
        "groundingSupports": [{"segment": {"endIndex": 5, "text": "Tokyo"}, "groundingChunkIndices": [0]}],
    }
    completion = response.decode_response(bytes(raw({"candidates": [candidate(*parts, groundingMetadata=metadata)]})))
    text = completion.messages[0].parts[2]
    assert isinstance(text, ir.Text)
    assert text.citations == (ir.Citation("https://e.org", "T", None, 0, 5),)


BESIDE = {"webSearchQueries": ["q"], "searchEntryPoint": {"renderedContent": "<div>"}}


@pytest.mark.parametrize("key", ["groundingMetadata", "grounding_metadata"])
def test_what_grounding_has_beside_citations_is_reported(key: str) -> None:
    """Google's terms ask for the search suggestions to be shown: other formats have no place for them."""
    body = grounded("Tokyo", {"endIndex": 5, "text": "Tokyo"}, retrievalMetadata={}, **BESIDE)
    body["candidates"][0][key] = body["candidates"][0].pop("groundingMetadata")
    completion = response.decode_response(bytes(raw(body)))
    assert answer(completion)[0] == body
    written = dragoman.translate_response(body, source="gemini", target="openai-chat")
    assert {loss.path for loss in written.losses if loss.severity == "dropped"} == {
        f"$.candidates[0].{key}.{name}" for name in BESIDE
    }
    stream = dragoman.StreamTranslator(source="gemini", target="openai-chat")
    stream.feed(b"data: " + bytes(raw(body)) + b"\r\n\r\n")
    stream.close()
    assert {loss.what for loss in stream.losses if loss.severity == "dropped"} == set(BESIDE)


@promise("report:82")
def test_citations_of_others_become_grounding() -> None:
    cited = ir.Text("Größe: 3 m", (ir.Citation("https://e.org", "T", None, 7, 10), ir.Citation("https://f.org")))
    body, losses = answer(complete(ir.Text("a"), cited))
    assert losses == ()
    assert body["candidates"][0]["groundingMetadata"] == {
        "groundingChunks": [WEB, {"web": {"uri": "https://f.org"}}],
        "groundingSupports": [
            {
                "segment": {"partIndex": 1, "startIndex": 9, "endIndex": 12, "text": "3 m"},
                "groundingChunkIndices": [0],
            },
            {"segment": {"partIndex": 1, "endIndex": 12, "text": "Größe: 3 m"}, "groundingChunkIndices": [1]},
        ],
    }
    _, losses = answer(complete(ir.Text("a", (ir.Citation(start=0, end=1),))))
    assert loss_pairs(losses) == [("dropped", "$.messages[0].parts[0].citations")]


def test_a_document_is_retrieved_context() -> None:
    body, losses = answer(complete(ir.Text("a", (ir.Citation(title="d", cited_text="quoted"),))))
    assert losses == ()
    chunk = {"retrievedContext": {"title": "d", "text": "quoted"}}
    assert body["candidates"][0]["groundingMetadata"]["groundingChunks"] == [chunk]
    (text,) = response.decode_response(bytes(raw(body))).messages[0].parts
    assert isinstance(text, ir.Text)
    assert text.citations == (ir.Citation(None, "d", "quoted", 0, 1),)


# ── what others signed ────────────────────────────────────────────────────────────────────────────────────────

THINKING = ir.Reasoning("hm", ir.Signature("anthropic", "c2ln"))
REDACTED = ir.Reasoning("", ir.Signature("anthropic", "eHl6"), redacted=True)
UNSIGNED = ir.Reasoning("so", metadata={"openai": {"~key": raw("reasoning_content")}})


def echoed(completion: ir.Completion, change: Any = lambda parts: parts) -> ir.Request:
    """What a client that read the answer sends back."""
    parts = change(parts_of(answer(completion)[0]))
    return decode({"contents": [HELLO, {"role": "model", "parts": parts}]})


def url_safe(parts: list[Json]) -> list[Json]:
    """SDKs hold signatures as bytes and write them in their own alphabet."""
    return [
        part
        | {
            key: base64.urlsafe_b64encode(base64.b64decode(part[key])).decode().rstrip("=")
            for key in part
            if key == "thoughtSignature"
        }
        for part in parts
    ]


def without_thoughts(parts: list[Json]) -> list[Json]:
    return [part for part in parts if not part.get("thought")]


@promise("law:6-owed-back", "report:38", "report:41")
@pytest.mark.parametrize("change", [lambda parts: parts, url_safe], ids=["as it was", "in the other alphabet"])
def test_reasoning_of_others_rides_on_the_next_part(change: Any) -> None:
    parts_in = (THINKING, REDACTED, UNSIGNED, ir.Text("b"), THINKING, CALL)
    parts = parts_of(answer(complete(*parts_in))[0])
    assert [sorted(part) for part in parts] == [
        ["text", "thought"],
        ["text", "thought"],
        ["text", "thoughtSignature"],
        ["text", "thought"],
        ["functionCall", "thoughtSignature"],
    ]
    back = echoed(complete(*parts_in), change).messages[1].parts
    assert [structs.replace(part, metadata=None) if hasattr(part, "metadata") else part for part in back] == [
        structs.replace(part, metadata=None) if hasattr(part, "metadata") else part for part in parts_in
    ]
    assert back[2].metadata == UNSIGNED.metadata  # type: ignore[union-attr]


@promise("law:6-owed-back")
def test_reasoning_rides_on_the_call_as_googles_own_signatures_do() -> None:
    parts_in = complete(THINKING, ir.Text("b"), CALL)
    shown, text, called = parts_of(answer(parts_in)[0])
    assert (shown["thought"], text) == (True, {"text": "b"})
    assert "thoughtSignature" in called
    for change in (list, without_thoughts):
        reasoning, *others = echoed(parts_in, change).messages[1].parts
        assert isinstance(reasoning, ir.Reasoning)
        assert reasoning.signature == THINKING.signature
        assert [type(part) for part in others] == [ir.Text, ir.ToolCall]


@promise("law:6-owed-back")
def test_reasoning_survives_a_client_that_drops_thoughts() -> None:
    (reasoning, text) = echoed(complete(THINKING, ir.Text("b")), without_thoughts).messages[1].parts
    assert isinstance(reasoning, ir.Reasoning)
    assert (reasoning.text, reasoning.signature) == (THINKING.text, THINKING.signature)
    assert text == ir.Text("b")


@promise("law:6-owed-back", "report:38")
@pytest.mark.parametrize("last", [THINKING, REDACTED])
def test_reasoning_that_nothing_follows_rides_on_its_own_thought(last: ir.Reasoning) -> None:
    parts = parts_of(answer(complete(ir.Text("b"), last))[0])
    assert len(parts) == 2
    assert parts[1]["thought"] is True
    assert echoed(complete(ir.Text("b"), last)).messages[1].parts == (ir.Text("b"), last)


def test_a_signature_of_others_on_a_part_rides_too() -> None:
    call = structs.replace(CALL, signature=ir.Signature("xai", "c2ln"))
    assert echoed(complete(call)).messages[1].parts == (call,)


@promise("law:1-identity", "law:6-owed-back")
@pytest.mark.parametrize("change", [lambda parts: parts, url_safe, without_thoughts])
def test_a_stored_transcript_keeps_what_it_carries(change: Any) -> None:
    parts = change(parts_of(answer(complete(THINKING, ir.Text("b"), REDACTED, CALL))[0]))
    body = {"contents": [HELLO, {"role": "model", "parts": parts}]}
    encoded, losses = encode(decode(body))
    assert encoded.body == body
    assert losses == ()


@promise("law:6-owed-back", "report:35")
def test_google_never_sees_what_others_signed() -> None:
    history = echoed(complete(THINKING, ir.Text("b"), REDACTED, CALL))
    encoded, losses = encode(structs.replace(history, model=NEW))
    parts = encoded.body["contents"][1]["parts"]
    assert [sorted(part) for part in parts] == [["text"], ["functionCall", "thoughtSignature"]]
    assert parts[1]["thoughtSignature"] == PLACEHOLDER
    assert [loss.severity for loss in losses] == ["dropped", "dropped", "invented"]


@promise("report:31", "report:35")
def test_reasoning_of_other_vendors_does_not_become_text() -> None:
    encoded, losses = encode(request_of(GREETING, from_model(THINKING, UNSIGNED, ir.Text("b")), GREETING))
    assert encoded.body["contents"][1] == model({"text": "b"})
    assert loss_pairs(losses) == [("dropped", "$.messages[1].parts[0]"), ("dropped", "$.messages[1].parts[1]")]


@promise("report:33")
def test_an_empty_signature_is_never_sent() -> None:
    empty = ir.Signature(FAMILY, "")
    encoded, _ = encode(request_of(GREETING, from_model(ir.Text("b", signature=empty)), GREETING))
    assert encoded.body["contents"][1] == model({"text": "b"})


# ── placeholders ──────────────────────────────────────────────────────────────────────────────────────────────

FOREIGN = ir.ToolCall("call_1", "f", {})
SIBLING = ir.ToolCall("call_2", "g", {})
DONE = ir.ToolResult("call_1", "f", "text", "1")
DONE_TOO = ir.ToolResult("call_2", "g", "text", "2")


def signatures(encoded: Encoded) -> list[str | None]:
    contents = encoded.body["contents"]
    return [part.get("thoughtSignature") for content in contents for part in content["parts"] if "functionCall" in part]


@promise("law:6-owed-back", "report:25", "report:27", "report:28")
def test_the_first_call_of_an_unsigned_step_gets_the_placeholder() -> None:
    history = (GREETING, from_model(FOREIGN, SIBLING), results(DONE, DONE_TOO))
    encoded, losses = encode(request_of(*history, model=NEW))
    assert signatures(encoded) == [PLACEHOLDER, None]
    assert loss_pairs(losses) == [("invented", "$.messages[1].parts[0].signature")]
    assert judge.check_request(encoded.body, model=NEW) == ()


@promise("report:27")
@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ((GREETING, from_model(structs.replace(FOREIGN, signature=SIGNED), SIBLING)), [SIGNED.data, None]),
        ((GREETING, from_model(FOREIGN), results(DONE), GREETING), [None]),
        ((GREETING, from_model(FOREIGN), results(DONE), from_model(SIBLING)), [PLACEHOLDER, PLACEHOLDER]),
        ((GREETING, from_model(FOREIGN), from_model(SIBLING)), [PLACEHOLDER, None]),
    ],
    ids=["signed", "of an earlier turn", "two steps", "one step in two messages"],
)
def test_which_calls_get_a_placeholder(messages: tuple[ir.Message, ...], expected: list[str | None]) -> None:
    assert signatures(encode(request_of(*messages, model=NEW))[0]) == expected


@pytest.mark.parametrize("older", [OLD, "models/gemini-1.5-pro", None])
def test_older_models_need_no_placeholder(older: str | None) -> None:
    assert signatures(encode(request_of(GREETING, from_model(FOREIGN), model=older))[0]) == [None]


# ── ids, order, turns ─────────────────────────────────────────────────────────────────────────────────────────


def ids(encoded: Encoded) -> list[str | None]:
    members = ("functionCall", "functionResponse")
    contents = encoded.body["contents"]
    return [part[key].get("id") for content in contents for part in content["parts"] for key in members if key in part]


@promise("report:62")
def test_ids_that_google_gave_are_echoed_and_invented_ones_are_not() -> None:
    given = structs.replace(CALL, metadata=noted(_id=True))
    invented = ir.ToolCall(invent_id("r", 0), "g", {}, invented_id=True)
    history = (
        GREETING,
        from_model(given, invented),
        results(ir.ToolResult(given.id, "f", "text", "1"), ir.ToolResult(invented.id, "g", "text", "2")),
    )
    for profile in (PROFILE, VERTEX_PROFILE):
        assert ids(encode(request_of(*history), profile)[0]) == ["a1b2c3d4", None, "a1b2c3d4", None]


@promise("report:62")
def test_vertex_gets_no_ids_of_others() -> None:
    history = request_of(GREETING, from_model(FOREIGN), results(DONE))
    assert ids(encode(history)[0]) == ["call_1", "call_1"]
    encoded, losses = encode(history, VERTEX_PROFILE)
    assert ids(encoded) == [None, None]
    assert losses == ()


@promise("report:46", "report:47", "report:49", "report:18")
def test_results_of_a_turn_are_one_content_in_call_order_with_the_name_of_their_call() -> None:
    history = request_of(
        GREETING,
        from_model(FOREIGN, SIBLING),
        results(structs.replace(DONE_TOO, name="unknown")),
        results(structs.replace(DONE, name="")),
        GREETING,
    )
    contents = encode(history)[0].body["contents"]
    assert [content["role"] for content in contents] == ["user", "model", "user", "user"]
    assert [part["functionResponse"]["name"] for part in contents[2]["parts"]] == ["f", "g"]
    assert contents[3] == HELLO


@promise("report:63", "law:4-determinism")
def test_invented_ids_follow_from_the_place() -> None:
    body = {"contents": [HELLO, model({"functionCall": {"name": "f", "args": {}}})]}
    assert decode(body) == decode(body)
    assert decode(body).messages[1].tool_calls[0].id == unnamed(1)


@promise("report:51")
def test_references_in_results_cross_as_text() -> None:
    signed = from_model(structs.replace(CALL, signature=SIGNED))
    encoded, losses = encode(request_of(GREETING, signed, answered("data", {"schema": {"$ref": "#/x"}}), model=NEW))
    assert encoded.body["contents"][2] == responds({"output": '{"schema":{"$ref":"#/x"}}'})
    assert loss_pairs(losses) == [("degraded", "$.messages[2].parts[0].value")]
    assert judge.check_request(encoded.body, model=NEW) == ()


@promise("report:56")
def test_pictures_of_results_stand_beside_the_response_since_gemini_3() -> None:
    shown = answered("multimodal", parts=(ir.Text("look"), ir.Image("image/png", "QQ==")))
    signed = from_model(structs.replace(CALL, signature=SIGNED))
    encoded, losses = encode(request_of(GREETING, signed, shown, model=NEW))
    assert encoded.body["contents"][2] == responds({"output": "look"}, parts=[{"inlineData": PNG}])
    assert losses == ()


@promise("report:56")
@pytest.mark.parametrize("texts", [(ir.Text("look"),), ()], ids=["with text", "without text"])
def test_pictures_of_results_follow_in_a_tagged_turn_before_gemini_3(texts: tuple[ir.Text, ...]) -> None:
    shown = answered("multimodal", parts=(*texts, ir.Image("image/png", "QQ==")))
    encoded, losses = encode(request_of(GREETING, CALLED, shown))
    assert loss_pairs(losses) == [("degraded", "$.messages[2].parts[0]")]
    assert encoded.body["contents"][3]["parts"][1] == {"inlineData": PNG}
    read = decode(encoded.body)
    (result,) = read.messages[2].tool_results
    assert result.parts == (*texts, ir.Image("image/png", "QQ=="))
    again, losses = encode(read)
    assert again.body == encoded.body
    assert losses == ()


@promise("law:2-nothing-vanishes")
def test_what_the_media_of_results_cannot_hold_is_reported() -> None:
    pieces = (
        ir.Text("a", cache=ir.Cache()),
        ir.Document(text="b", title="T"),
        ir.Image("image/png", "QQ==", detail="low"),
        ir.Audio("audio/wav", "QQ==", transcript="t"),
    )
    signed = from_model(structs.replace(CALL, signature=SIGNED))
    encoded, losses = encode(request_of(GREETING, signed, answered("multimodal", parts=pieces), model=NEW))
    response = encoded.body["contents"][2]["parts"][0]["functionResponse"]
    assert response["response"] == {"output": "a\nb"}
    assert len(response["parts"]) == 2
    assert sorted(loss.what for loss in losses) == [
        "2 texts",
        "audio transcript",
        "cache mark",
        "document title",
        "image detail 'low'",
        "text document",
    ]


def test_system_text_in_the_middle_moves_to_the_front() -> None:
    encoded, losses = encode(request_of(ir.Message("system", "a"), GREETING, ir.Message("system", "b"), GREETING))
    assert encoded.body["systemInstruction"] == {"parts": [{"text": "a"}, {"text": "b"}]}
    assert loss_pairs(losses) == [("degraded", "$.messages[2]")]


def test_a_turn_of_which_nothing_crosses_stays_a_turn() -> None:
    encoded, losses = encode(request_of(from_user(ir.Image(file_id="file_1"))))
    assert encoded.body["contents"][0]["role"] == "user"
    assert loss_pairs(losses) == [("dropped", "$.messages[0].parts[0]"), ("invented", "$.messages[0]")]
    with pytest.raises(EncodeError, match="no message has content"):
        encode(request_of(from_model(THINKING)))


@promise("law:2-nothing-vanishes")
def test_what_this_api_cannot_express_is_reported() -> None:
    value = request_of(
        ir.Message("user", (ir.Text("hi", cache=ir.Cache("1h")),), name="Ann"),
        from_model(ir.Refusal("no"), ir.Opaque("anthropic", "container_upload", {"type": "container_upload"})),
        ir.Message("user", (ir.Document(text="words", title="T"), ir.Image(url="gs://b/a.png"))),
        user="u",
        cache=ir.Cache(),
        parallel_tool_calls=False,
        tools=(FUNCTION, ir.ProviderTool("web_search", "anthropic", {"type": "web_search_20250305"})),
    )
    _, losses = encode(value)
    assert set(loss_pairs(losses)) == {
        ("dropped", "$.messages[0].parts[0].cache"),
        ("degraded", "$.messages[1].parts[0]"),
        ("dropped", "$.messages[1].parts[1]"),
        ("dropped", "$.messages[2].parts[0].title"),
        ("degraded", "$.messages[2].parts[0]"),
        ("dropped", "$.messages[2].parts[1]"),
        ("dropped", "$.user"),
        ("dropped", "$.cache"),
        ("dropped", "$.parallel_tool_calls"),
        ("dropped", "$.tools[1]"),
    }


# ── tools and settings of others ──────────────────────────────────────────────────────────────────────────────


@promise("report:64", "report:65")
def test_schemas_of_others_cross_verbatim() -> None:
    schema = b'{"type":"object","properties":{"x":{"$ref":"#/$defs/X"}},"$defs":{"X":{"const":1.0}}}'
    tool = ir.ToolDefinition("f", parameters=Raw(schema))
    output = ir.StructuredOutput("schema", Raw(schema))
    encoded = request.encode_request(request_of(model=NEW, tools=(tool,), output=output), LossLog())
    assert encoded.json().count(b'JsonSchema":' + schema) == 2


CHOICES: dict[str, tuple[ir.ToolChoice | None, bool, Json | None]] = {
    "nothing said": (None, False, None),
    "nothing said, strict": (None, True, {"mode": "VALIDATED"}),
    "auto": (ir.ToolChoice("auto"), False, {"mode": "AUTO"}),
    "auto, strict": (ir.ToolChoice("auto"), True, {"mode": "VALIDATED"}),
    "required, strict": (ir.ToolChoice("required"), True, {"mode": "ANY"}),
    "one tool, strict": (ir.ToolChoice("required", ("f",)), True, {"mode": "ANY", "allowedFunctionNames": ["f"]}),
    "a set": (ir.ToolChoice("required", ("f", "g")), False, {"mode": "ANY", "allowedFunctionNames": ["f", "g"]}),
    "none": (ir.ToolChoice("none"), True, {"mode": "NONE"}),
}


@promise("report:67", "report:68", "report:69")
@pytest.mark.parametrize("name", CHOICES)
def test_choices_of_others(name: str) -> None:
    chosen, strict, expected = CHOICES[name]
    both = (structs.replace(FUNCTION, strict=strict), structs.replace(FUNCTION, name="g"))
    encoded, losses = encode(request_of(tools=both, tool_choice=chosen))
    assert encoded.body.get("toolConfig", {}).get("functionCallingConfig") == expected
    assert losses == ()
    assert judge.check_request(encoded.body, model=OLD) == ()


@promise("report:68")
def test_a_free_choice_among_some_tools_declares_only_those() -> None:
    both = (FUNCTION, structs.replace(FUNCTION, name="g"))
    encoded, losses = encode(request_of(tools=both, tool_choice=ir.ToolChoice("auto", ("g",))))
    assert [tool["name"] for tool in encoded.body["tools"][0]["functionDeclarations"]] == ["g"]
    assert encoded.body["toolConfig"] == {"functionCallingConfig": {"mode": "AUTO"}}
    assert loss_pairs(losses) == [("degraded", "$.tools[0]")]


@promise("report:70")
def test_no_choice_without_functions() -> None:
    encoded, losses = encode(request_of(tool_choice=ir.ToolChoice("required")))
    assert "toolConfig" not in encoded.body
    assert loss_pairs(losses) == [("dropped", "$.tool_choice")]


@promise("report:71")
def test_a_custom_tool_crosses_as_a_function_of_one_text() -> None:
    custom = ir.CustomTool("patch", "P", {"type": "grammar"})
    call = ir.ToolCall("call_1", "patch", {"input": "*** x"}, "*** x", custom=True)
    encoded, losses = encode(request_of(GREETING, from_model(call), tools=(custom,)))
    assert encoded.body["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"]["required"] == ["input"]
    assert encoded.body["contents"][1]["parts"][0]["functionCall"]["args"] == {"input": "*** x"}
    assert loss_pairs(losses) == [("degraded", "$.tools[0]"), ("dropped", "$.tools[0].format")]


@promise("report:72")
@pytest.mark.parametrize(
    ("name", "profile", "flag", "kept"),
    [(NEW, PROFILE, True, True), (NEW, VERTEX_PROFILE, None, True), (OLD, PROFILE, None, False)],
    ids=["gemini", "vertex", "older"],
)
def test_built_in_tools_beside_functions(name: str, profile: GeminiProfile, flag: Any, kept: Any) -> None:
    search = ir.ProviderTool("googleSearch", FAMILY, {"googleSearch": {}})
    encoded, losses = encode(request_of(tools=(FUNCTION, search), model=name), profile)
    assert encoded.body.get("toolConfig", {}).get("includeServerSideToolInvocations") is flag
    assert ({"googleSearch": {}} in encoded.body["tools"]) is kept
    assert [loss.severity for loss in losses] == (["invented"] if flag else [] if kept else ["dropped"])
    assert judge.check_request(encoded.body, model=name, backend=profile.name) == ()  # type: ignore[arg-type]


THOUGHT: dict[str, tuple[str, ir.ReasoningSettings, Json | None, list[str]]] = {
    "effort": (
        NEW,
        ir.ReasoningSettings(None, "high", visible=True),
        {"thinkingLevel": "HIGH", "includeThoughts": True},
        [],
    ),
    "least effort": ("gemini-3.5-flash", ir.ReasoningSettings(None, "minimal"), {"thinkingLevel": "MINIMAL"}, []),
    "least effort of a model that wants more": (
        "gemini-3-pro-preview",
        ir.ReasoningSettings(None, "minimal"),
        {"thinkingLevel": "LOW"},
        ["degraded"],
    ),
    "more effort than there is": (NEW, ir.ReasoningSettings(None, "xhigh"), {"thinkingLevel": "HIGH"}, ["degraded"]),
    "unheard-of effort": (NEW, ir.ReasoningSettings(None, "heroic"), None, ["dropped"]),
    "off where it cannot be": (NEW, ir.ReasoningSettings("off"), {"thinkingLevel": "MINIMAL"}, ["degraded"]),
    "budget": (NEW, ir.ReasoningSettings("on", budget_tokens=99), {"thinkingBudget": 99}, []),
    "budget and effort": (
        NEW,
        ir.ReasoningSettings("on", "low", 99),
        {"thinkingLevel": "LOW"},
        ["dropped"],
    ),
    "adaptive": (NEW, ir.ReasoningSettings("adaptive"), None, []),
    "effort as a budget": (OLD, ir.ReasoningSettings(None, "medium"), {"thinkingBudget": 8192}, ["degraded"]),
    "off": (OLD, ir.ReasoningSettings("off"), {"thinkingBudget": 0}, []),
    "off where it costs something": (
        "gemini-2.5-pro",
        ir.ReasoningSettings("off"),
        {"thinkingBudget": 128},
        ["degraded"],
    ),
    "dynamic budget": (OLD, ir.ReasoningSettings("adaptive"), {"thinkingBudget": -1}, []),
    "budget beyond the limit": (
        OLD,
        ir.ReasoningSettings("on", budget_tokens=64000),
        {"thinkingBudget": 24576},
        ["degraded"],
    ),
    "model that does not think": ("gemini-2.0-flash", ir.ReasoningSettings(None, "high"), None, ["dropped"]),
}


@pytest.mark.parametrize("name", THOUGHT)
def test_reasoning_settings_of_others(name: str) -> None:
    chosen, settings, expected, severities = THOUGHT[name]
    encoded, losses = encode(request_of(model=chosen, reasoning=settings))
    if settings.mode != "off" and name != "model that does not think":
        # A client that asks for thinking gets it.
        expected = {**(expected or {}), "includeThoughts": True}
    assert encoded.body.get("generationConfig", {}).get("thinkingConfig") == expected
    assert [loss.severity for loss in losses] == severities
    assert judge.check_request(encoded.body, model=chosen) == ()


def test_json_beside_functions_needs_gemini_3() -> None:
    value = request_of(tools=(FUNCTION,), output=ir.StructuredOutput("schema", SCHEMA, name="n"))
    encoded, losses = encode(value)
    assert "generationConfig" not in encoded.body
    assert loss_pairs(losses) == [("dropped", "$.output")]
    encoded, losses = encode(structs.replace(value, model=NEW))
    schema = {**SCHEMA, "title": "n"}
    assert encoded.body["generationConfig"] == {"responseMimeType": "application/json", "responseJsonSchema": schema}
    assert loss_pairs(losses) == []


def test_settings_that_a_model_refuses_are_left_out() -> None:
    encoded, losses = encode(request_of(model=NEW, candidates=2, max_output_tokens=0))
    assert encoded.body == {"contents": [HELLO]}
    assert loss_pairs(losses) == [("dropped", "$.max_output_tokens"), ("dropped", "$.candidates")]


PATHS = [
    (PROFILE, None, False, "/v1beta/models/{model}:generateContent"),
    (PROFILE, "gemini-3-pro", False, "/v1beta/models/gemini-3-pro:generateContent"),
    (PROFILE, "models/gemini-3-pro", True, "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse"),
    (PROFILE, "tunedModels/mine", False, "/v1beta/tunedModels/mine:generateContent"),
    (VERTEX_PROFILE, "gemini-3-pro", False, "/v1beta1/publishers/google/models/gemini-3-pro:generateContent"),
    (VERTEX_PROFILE, "meta/llama", False, "/v1beta1/publishers/meta/models/llama:generateContent"),
    (VERTEX_PROFILE, "publishers/x/models/y", False, "/v1beta1/publishers/x/models/y:generateContent"),
]


@pytest.mark.parametrize(("profile", "name", "stream", "path"), PATHS)
def test_model_and_stream_are_in_the_path(profile: GeminiProfile, name: str | None, stream: Any, path: str) -> None:
    encoded, _ = encode(request_of(model=name, stream=stream), profile)
    assert encoded.path == path
    assert "model" not in encoded.body
    assert "stream" not in encoded.body


# ── places of losses ──────────────────────────────────────────────────────────────────────────────────────────


def test_losses_lead_to_the_wire_body() -> None:
    read = decode(
        {
            "systemInstruction": {"parts": [{"text": "Be brief."}]},
            "contents": [HELLO, CALLS, user({"text": "so:"}, *responds({"output": "22"})["parts"], {"text": "good?"})],
            "tools": [declared(TOOL, {"name": "g", "parameters": TYPED}), {"googleSearch": {}}],
            "generationConfig": {"topK": 7, "thinkingConfig": {"thinkingLevel": "low"}},
        }
    )

    def place(message: int | None, part: int | None, field: str = "") -> str:
        return json_paths.request_paths(read)(message, part, field)

    assert place(0, 0) == "$.systemInstruction.parts[0]"
    assert place(2, 0, "arguments") == "$.contents[1].parts[0].functionCall.args"
    assert place(2, 0, "signature") == "$.contents[1].parts[0].thoughtSignature"
    assert place(3, 0, "value") == "$.contents[2].parts[1].functionResponse.response"
    assert place(4, 1) == "$.contents[2].parts[2]"
    assert (
        place(None, 0, "parameters.properties") == "$.tools[0].functionDeclarations[0].parametersJsonSchema.properties"
    )
    assert place(None, 1, "parameters") == "$.tools[0].functionDeclarations[1].parameters"
    assert place(None, 2) == "$.tools[1]"
    assert place(None, None, "top_k") == "$.generationConfig.topK"
    assert place(None, None, "reasoning.effort") == "$.generationConfig.thinkingConfig.thinkingLevel"
    assert place(None, None, "safetySettings") == "$.safetySettings"


# ── errors ────────────────────────────────────────────────────────────────────────────────────────────────────

QUOTA = {
    "error": {
        "code": 429,
        "message": "Slow down.",
        "status": "RESOURCE_EXHAUSTED",
        "details": [
            {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": "q"}]},
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.4s"},
        ],
    }
}
BAD_KEY = {
    "error": {
        "code": 400,
        "message": "API key not valid.",
        "status": "INVALID_ARGUMENT",
        "details": [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}],
    }
}
BAD_FIELD = {
    "error": {
        "code": 400,
        "message": "Invalid JSON payload received.",
        "status": "INVALID_ARGUMENT",
        "details": [
            {"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": [{"field": "contents[0]"}]}
        ],
    }
}
ERRORS: dict[str, tuple[Any, Json]] = {
    "quota": (QUOTA, {"kind": "rate_limit", "status": 429, "retry_after": 34.4, "raw_type": "RESOURCE_EXHAUSTED"}),
    "in an array": ([QUOTA], {"kind": "rate_limit", "status": 429, "retry_after": 34.4}),
    "bad key": (BAD_KEY, {"kind": "authentication", "status": 400, "code": "API_KEY_INVALID"}),
    "bad field": (BAD_FIELD, {"kind": "invalid_request", "parameter": "contents[0]"}),
    "overloaded": (
        {"error": {"code": 503, "message": "m", "status": "UNAVAILABLE"}},
        {"kind": "overloaded", "message": "m"},
    ),
    "no status word": ({"error": {"code": 404, "message": "m"}}, {"kind": "not_found", "raw_type": None}),
    "a front end's own": (
        {"error": {"code": 403, "message": "m", "errors": [{"reason": "forbidden"}]}, "id": 1},
        {"kind": "permission"},
    ),
    "just a word": ({"error": "no"}, {"kind": "server", "message": "no"}),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    body, expected = ERRORS[name]
    failure = errors.decode_error(bytes(raw(body)))
    assert {key: getattr(failure, key) for key in expected} == expected
    assert json.loads(errors.encode_error(failure).json()) == body


def test_the_status_of_the_answer_counts() -> None:
    failure = errors.decode_error(b'{"error": {"message": "m"}}', 500, {"retry-after": "2"})
    assert (failure.kind, failure.status, failure.retry_after) == ("server", 500, 2.0)
    assert json.loads(errors.encode_error(failure).json()) == {"error": {"message": "m"}}


def test_errors_of_others_speak_google() -> None:
    failure = ir.Failure("rate_limit", "Slow.", code="c", parameter="p", retry_after=1.5, request_id="req_1")
    encoded = errors.encode_error(failure)
    assert encoded.status == 429
    error = encoded.body["error"]
    assert (error["code"], error["message"], error["status"]) == (429, "Slow.", "RESOURCE_EXHAUSTED")
    again = errors.decode_error(encoded.json())
    for field in ("kind", "message", "code", "parameter", "retry_after", "request_id"):
        assert getattr(again, field) == getattr(failure, field)


# ── bad input ─────────────────────────────────────────────────────────────────────────────────────────────────

BAD: dict[str, tuple[Json, str]] = {
    "role": ({"contents": [{"role": "wizard", "parts": [{"text": "hi"}]}]}, "$.contents[0].role"),
    "arguments": (
        {"contents": [HELLO, model({"functionCall": {"name": "f", "args": [1]}})]},
        "$.contents[1].parts[0].functionCall.args",
    ),
    "number": ({"contents": [HELLO], "generationConfig": {"topK": 1.5}}, "$.generationConfig.topK"),
    "word for a number": (
        {"contents": [HELLO], "generationConfig": {"thinkingConfig": {"thinkingBudget": "much"}}},
        "$.generationConfig.thinkingConfig.thinkingBudget",
    ),
    "no contents": ({"content": []}, "$"),
}


@promise("law:10-bad-input-good-words")
@pytest.mark.parametrize("name", BAD)
def test_bad_requests_are_named(name: str) -> None:
    body, path = BAD[name]
    with pytest.raises(DecodeError) as raised:
        decode(body)
    assert raised.value.path == path


@promise("law:10-bad-input-good-words")
@pytest.mark.parametrize("counts", [{"promptTokenCount": "many"}, {"promptTokenCount": {}}, [1]])
def test_bad_counts_are_named(counts: Any) -> None:
    with pytest.raises(DecodeError):
        response.decode_response(bytes(raw({"candidates": [], "usageMetadata": counts})))


@pytest.mark.parametrize("typed", [{}, {"parameters": None}, {"parameters": {"type": "OBJECT"}}])
@pytest.mark.parametrize("key", ["parametersJsonSchema", "parameters_json_schema"])
def test_parameters_of_null_say_nothing_and_come_back(key: str, typed: dict[str, Any]) -> None:
    declaration = {"name": "f", key: None, **typed}
    given = {
        "contents": [{"role": "user", "parts": [{"text": "x"}]}],
        "tools": [{"functionDeclarations": [declaration]}],
    }
    read = dragoman.decode_request(given, "gemini")
    assert dragoman.encode_request(read, "gemini").body == given
    (tool,) = read.tools
    assert isinstance(tool, ir.ToolDefinition)
    assert (tool.parameters is None) == (typed.get("parameters") is None)
