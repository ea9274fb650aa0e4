"""Law 6. Opaque vendor data returns to its own family, on its own part, and reaches no other.

An answer of one vendor is translated for a client of another format; the client echoes it in its next request; that
request is translated back. What the vendor minted must be there again, on the part it came on. And when the same
request goes to a third vendor, none of it may be in the bytes.
"""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

import dragoman
from dragoman import ir
from dragoman.fidelity.echo import CONTINUE
from tests import strategies
from tests.support.cases import each
from tests.support.clients import OPENING
from tests.support.formats import FAMILY, FORMATS, SIGNED_AS
from tests.support.promises import promise
from tests.support.trees import strings

pytestmark = promise("law:6-owed-back")

SECRET = "c2VjcmV0LXNpZ25hdHVyZS0"  # base64 of nothing that occurs elsewhere
THINKING = "aGlkZGVuLXRoaW5raW5nLTI"
VENDORS = tuple(FORMATS)
# Chat Completions is spoken by many; the model name shows the vendor, as relays spell it.
MODELS_ASKED = dict.fromkeys(FORMATS, "some-model") | {"openai-chat": "openai/gpt-5"}
TRIPS = tuple((vendor, client) for vendor in VENDORS for client in FORMATS if FAMILY[vendor] != FAMILY[client])

# What each vendor really signs, as its own answers spell it.
ANSWERS: dict[str, dict[str, dict[str, Any]]] = {
    "anthropic-messages": {
        "thinking before a call": {
            "content": [
                {"type": "thinking", "thinking": "let me see", "signature": SECRET},
                {"type": "text", "text": "I look it up."},
                {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"n": 1}},
            ]
        },
        "thinking that is not shown": {
            "content": [
                {"type": "thinking", "thinking": "", "signature": SECRET},
                {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}},
            ]
        },
        "redacted thinking in its place": {
            "content": [
                {"type": "redacted_thinking", "data": SECRET},
                {"type": "thinking", "thinking": "second", "signature": THINKING},
                {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}},
            ]
        },
        "several thoughts": {
            "content": [
                {"type": "thinking", "thinking": "one", "signature": SECRET},
                {"type": "thinking", "thinking": "two", "signature": THINKING},
                {"type": "text", "text": "Done."},
            ]
        },
    },
    "gemini": {
        "on the first of two calls": {
            "parts": [
                {"functionCall": {"name": "f", "args": {"n": 1}}, "thoughtSignature": SECRET},
                {"functionCall": {"name": "g", "args": {}}},
            ]
        },
        "on a call with an id": {
            "parts": [{"functionCall": {"id": "abc12345", "name": "f", "args": {}}, "thoughtSignature": SECRET}]
        },
        "on text": {"parts": [{"text": "Hello", "thoughtSignature": SECRET}]},
        "on an empty last part": {"parts": [{"text": "Hello"}, {"text": "", "thoughtSignature": SECRET}]},
        "on the part after the thought": {
            "parts": [{"text": "hm", "thought": True}, {"text": "Hello", "thoughtSignature": SECRET}]
        },
        "on text and on a call": {
            "parts": [
                {"text": "Let me see.", "thoughtSignature": THINKING},
                {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": SECRET},
            ]
        },
    },
    "openai-responses": {
        "reasoning before two calls": {
            "output": [
                {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": SECRET},
                {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": '{"n":1}'},
                {"type": "function_call", "id": "fc_2", "call_id": "call_2", "name": "g", "arguments": "{}"},
            ]
        },
        "a summary before a text": {
            "output": [
                {
                    "type": "reasoning",
                    "id": "rs_1",
                    "summary": [{"type": "summary_text", "text": "hm"}],
                    "encrypted_content": SECRET,
                },
                {
                    "type": "message",
                    "id": "msg_1",
                    "role": "assistant",
                    "status": "completed",
                    "content": [{"type": "output_text", "text": "Hello", "annotations": []}],
                },
            ]
        },
    },
    "openai-chat": {
        "encrypted reasoning": {
            "message": {
                "role": "assistant",
                "content": "Hello",
                "reasoning_details": [
                    {
                        "type": "reasoning.encrypted",
                        "data": SECRET,
                        "id": "rs_1",
                        "format": "openai-responses-v1",
                        "index": 0,
                    }
                ],
            }
        },
    },
}
ANSWERS["vertex"] = ANSWERS["gemini"]
# A relay passes on what another family minted, and says whose it is.
MINTED = {"openai-chat": FAMILY["openai-responses"]}
ANSWERS["bedrock-converse"] = {
    "reasoning before a call": {
        "content": [
            {"reasoningContent": {"reasoningText": {"text": "hm", "signature": SECRET}}},
            {"text": "Calling."},
            {"toolUse": {"toolUseId": "tooluse_1", "name": "f", "input": {"n": 1}}},
        ]
    },
    "redacted reasoning": {"content": [{"reasoningContent": {"redactedContent": SECRET}}, {"text": "hi"}]},
}
ANSWERS["ollama-chat"] = {}  # signs nothing
ANSWERS["cohere-chat"] = {}  # nor does this
ANSWERS["gemini-interactions"] = {
    "a thought before two calls": {
        "steps": [
            {"type": "thought", "signature": SECRET},
            {"type": "function_call", "id": "zggxzq8r", "name": "f", "arguments": {"n": 1}},
            {"type": "function_call", "id": "aggxzq8r", "name": "g", "arguments": {}},
        ]
    },
    "a summary before a call": {
        "steps": [
            {"type": "thought", "signature": SECRET, "summary": [{"type": "text", "text": "hm"}]},
            {"type": "function_call", "id": "zggxzq8r", "name": "f", "arguments": {"n": 1}},
        ]
    },
    "thoughts before a text and before a call": {
        "steps": [
            {"type": "thought", "signature": THINKING},
            {"type": "model_output", "content": [{"type": "text", "text": "Let me see."}]},
            {"type": "thought", "signature": SECRET},
            {"type": "function_call", "id": "zggxzq8r", "name": "f", "arguments": {}},
        ]
    },
    "a thought that nothing follows": {
        "steps": [
            {"type": "model_output", "content": [{"type": "text", "text": "Hello"}]},
            {"type": "thought", "signature": SECRET},
        ]
    },
}


def answer_body(vendor: str, answer: dict[str, Any]) -> dict[str, Any]:
    if vendor == "anthropic-messages":
        calls = any(block["type"] == "tool_use" for block in answer["content"])
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "stop_reason": "tool_use" if calls else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
            **answer,
        }
    if vendor == "openai-responses":
        return {"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "m", **answer}
    if vendor == "gemini-interactions":
        calls = any(step["type"] == "function_call" for step in answer["steps"])
        status = "requires_action" if calls else "completed"
        return {"id": "v1_r", "object": "interaction", "status": status, "model": "m", **answer}
    if vendor == "bedrock-converse":
        calls = any("toolUse" in block for block in answer["content"])
        return {
            "output": {"message": {"role": "assistant", **answer}},
            "stopReason": "tool_use" if calls else "end_turn",
            "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2},
            "metrics": {"latencyMs": 1},
        }
    if vendor == "openai-chat":
        choice = {"index": 0, "finish_reason": "stop", **answer}
        return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    content = {"role": "model", **answer}
    return {"candidates": [{"content": content, "finishReason": "STOP"}], "modelVersion": "m", "responseId": "r"}


def trip(vendor: str, client: str, answer: dict[str, Any]) -> dict[str, Any]:
    """The next request of the client, as its own format spells it."""
    seen = dragoman.translate_response(answer, source=vendor, target=client).body
    return CONTINUE[client](OPENING[client], seen)


def spelled(vendor: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    """The parts of the assistant's turn in a request to this vendor."""
    if vendor in {"anthropic-messages", "bedrock-converse"}:
        return list(body["messages"][1]["content"])
    if vendor in {"openai-responses", "gemini-interactions"}:
        return list(body["input"][1:])
    if vendor == "openai-chat":
        return [body["messages"][1]]
    return list(body["contents"][1]["parts"])


_SLOTS = ("signature", "data", "thoughtSignature", "encrypted_content")


def _opened(block: dict[str, Any]) -> dict[str, Any]:
    """A thought of Converse, whose only key is its kind, spelled as others spell theirs."""
    if "reasoningContent" not in block:
        return block
    reasoning = block["reasoningContent"]
    signature, data = reasoning.get("reasoningText", {}).get("signature"), reasoning.get("redactedContent")
    return {"type": "reasoning", "signature": signature, "data": data}


def signatures_in(parts: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """(what the part is, what it carries), for parts that carry something."""
    found = []
    for part in map(_opened, parts):
        kind = next((name for name in ("functionCall", "type", "text") if name in part), "")
        label = str(part.get("type") or (part["functionCall"]["name"] if kind == "functionCall" else part.get("text")))
        found += [(label, str(part[key])) for key in _SLOTS if part.get(key)]
        found += [("detail", detail["data"]) for detail in part.get("reasoning_details") or () if "data" in detail]
    return found


CASES = [
    pytest.param(vendor, client, answered, id=f"{vendor}, {name}, behind {client}")
    for vendor, client in TRIPS
    for name, answered in ANSWERS[vendor].items()
]


def blocks_of(signed: dict[str, Any]) -> Any:
    """The blocks, parts, items or steps of an answer, whatever its format calls them."""
    keys = ("content", "parts", "output", "steps")
    return next((signed[key] for key in keys if signed.get(key)), None) or [signed["message"]]


@promise("report:25", "report:29", "report:34", "report:36", "report:38", "report:41", "report:35")
@each(("vendor", "client", "signed"), CASES)
def test_what_was_minted_returns_to_its_own_part(vendor: str, client: str, signed: dict[str, Any]) -> None:
    answer = answer_body(vendor, signed)
    request = trip(vendor, client, answer)
    back = dragoman.translate_request(request, source=client, target=vendor, model=MODELS_ASKED[vendor]).body
    assert signatures_in(spelled(vendor, back)) == signatures_in(blocks_of(signed))


@promise("report:35", "report:39")
@each(("vendor", "client", "signed"), CASES)
def test_what_was_minted_reaches_no_other_vendor(vendor: str, client: str, signed: dict[str, Any]) -> None:
    request = trip(vendor, client, answer_body(vendor, signed))
    for stranger in FORMATS:
        if SIGNED_AS[stranger] in {SIGNED_AS[vendor], MINTED.get(vendor)}:
            continue
        sent = dragoman.translate_request(request, source=client, target=stranger, model="some-model")
        if stranger == client:
            continue  # what the client itself wrote is its own business; the gateway knows where it came from
        assert not leaks(sent.json())


def leaks(body: bytes) -> bool:
    """Whether one of the secrets is in these bytes, plain or within base64 or JSON text."""
    return any(_holds(text) for text in strings(json.loads(body)))


def _holds(text: str) -> bool:
    if SECRET in text or THINKING in text:
        return True
    try:
        inner = base64.b64decode(text, validate=True).decode()
    except ValueError:
        return False
    return SECRET in inner or THINKING in inner


# What clients do with blocks and items of an assistant's turn that they take for thoughts.
_THOUGHTS = ("thinking", "reasoning")


def _is_thought(block: dict[str, Any]) -> bool:
    return block.get("type") in _THOUGHTS or "reasoningContent" in block


def _to_the_front(blocks: list[Any]) -> list[Any]:
    return sorted(blocks, key=lambda block: not _is_thought(block))


def _to_the_end(blocks: list[Any]) -> list[Any]:
    return sorted(blocks, key=_is_thought)


def _in_reverse(blocks: list[Any]) -> list[Any]:
    return [*reversed([block for block in blocks if _is_thought(block)]), *_to_the_end(blocks)[: _rest(blocks)]]


def _rest(blocks: list[Any]) -> int:
    return sum(not _is_thought(block) for block in blocks)


CALLING: dict[str, list[dict[str, Any]]] = {
    "two signed calls": [
        {"text": "Let me see."},
        {"functionCall": {"id": "aaaa1111", "name": "f", "args": {"n": 1}}, "thoughtSignature": SECRET},
        {"functionCall": {"id": "bbbb2222", "name": "g", "args": {}}, "thoughtSignature": THINKING},
    ],
    "one signed call": [
        {"text": "Let me see."},
        {"functionCall": {"id": "aaaa1111", "name": "f", "args": {"n": 1}}, "thoughtSignature": SECRET},
    ],
    "the first of two calls": [
        {"text": "Let me see."},
        {"functionCall": {"id": "aaaa1111", "name": "f", "args": {}}, "thoughtSignature": SECRET},
        {"functionCall": {"id": "bbbb2222", "name": "f", "args": {}}},
    ],
}


@each("moved", [_to_the_front, _to_the_end, _in_reverse])
@each("client", ["anthropic-messages", "bedrock-converse", "openai-responses"])
@each("name", CALLING)
def test_the_signature_of_a_call_finds_its_call_wherever_a_client_puts_it(name: str, client: str, moved: Any) -> None:
    answer_parts = {"parts": CALLING[name]}
    seen = dragoman.translate_response(answer_body("gemini", answer_parts), source="gemini", target=client).body
    content = _turn_of(client, seen)
    assert any(_is_thought(block) for block in content)
    content[:] = moved(content)
    request = CONTINUE[client](OPENING[client], seen)
    back = dragoman.translate_request(request, source=client, target="gemini", model="some-model").body
    assert signatures_in(spelled("gemini", back)) == signatures_in(answer_parts["parts"])


def _turn_of(client: str, answer: dict[str, Any]) -> list[Any]:
    if client == "openai-responses":
        found: list[Any] = answer["output"]
        return found
    content: list[Any] = (answer if client == "anthropic-messages" else answer["output"]["message"])["content"]
    return content


def _carried(kind: str, call_id: str, data: str) -> dict[str, Any]:
    return {"type": "reasoning", "summary": [], "encrypted_content": f"dragoman:1:{kind}={call_id}:google::{data}"}


def _called(call_id: str) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": "f", "arguments": "{}"}


_DONE = {"type": "function_call_output", "call_id": "call_0", "output": "done"}
_SEARCHED = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}}
HISTORIES: dict[str, tuple[list[dict[str, Any]], list[tuple[str, str]]]] = {
    "an id that comes again in a later turn": (
        [_carried("next", "call_0", "b25l"), _called("call_0"), _DONE, _carried("next", "call_0", "dHdv"),
         _called("call_0"), _DONE],
        [("f", "b25l"), ("f", "dHdv")],
    ),
    "one that was behind stands before": (
        [_carried("previous", "call_0", "b25l"), _called("call_0"), _DONE],
        [("f", "b25l")],
    ),
    "one that is there twice": (
        [_carried("next", "call_0", "b25l"), {"role": "assistant", "content": "Well."},
         _carried("next", "call_0", "b25l"), _called("call_0"), _DONE],
        [("f", "b25l")],
    ),
    "beside an item of the vendor": (
        [_SEARCHED, _carried("next", "call_0", "b25l"), {"role": "assistant", "content": "Well."}, _called("call_0"),
         _DONE],
        [("f", "b25l")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HISTORIES)
def test_each_call_of_a_history_takes_the_signature_that_names_it(name: str) -> None:
    items, signed = HISTORIES[name]
    body = {"model": "some-model", "input": [{"role": "user", "content": "Go."}, *items]}
    back = dragoman.translate_request(body, source="openai-responses", target="gemini", model="some-model").body
    calls = [part for turn in back["contents"] for part in turn["parts"] if "functionCall" in part]
    assert [(part["functionCall"]["name"], part.get("thoughtSignature")) for part in calls] == signed
    assert "dragoman:1:" not in str(back)


@pytest.mark.parametrize("client", ["anthropic-messages", "bedrock-converse", "openai-responses"])
def test_a_signature_whose_call_is_gone_is_not_attached_elsewhere(client: str) -> None:
    answer_parts = {"parts": CALLING["two signed calls"]}
    seen = dragoman.translate_response(answer_body("gemini", answer_parts), source="gemini", target=client).body
    content = _turn_of(client, seen)
    content[:] = [block for block in content if "aaaa1111" not in str(block) or _is_thought(block)]
    request = CONTINUE[client](OPENING[client], seen)
    back = dragoman.translate_request(request, source=client, target="gemini", model="some-model").body
    assert signatures_in(spelled("gemini", back)) == [("g", THINKING)]


RELAYED = [
    ("anthropic-messages", "anthropic/claude-sonnet-4.5", "thinking before a call"),
    ("gemini", "google/gemini-3-pro-preview", "on the first of two calls"),
    ("gemini", "gemini-3-pro-preview", "on the first of two calls"),
]


@promise("report:25")
@pytest.mark.parametrize("model", ["some-model", "openai/gpt-5", *(row[1] for row in RELAYED)])
@pytest.mark.parametrize(("vendor", "name"), sorted({(row[0], row[2]) for row in RELAYED}))
def test_a_relay_gets_back_what_its_model_minted_and_nothing_else(vendor: str, name: str, model: str) -> None:
    """The same vendor behind a Chat Completions endpoint: there the name of the model says who will read it."""
    history = CONTINUE[vendor](OPENING[vendor], answer_body(vendor, ANSWERS[vendor][name]))
    sent = dragoman.translate_request(history, source=vendor, target="openai-chat", model=model)
    own = {row[1] for row in RELAYED if row[0] == vendor}
    assert (SECRET in sent.json().decode()) == (model in own)


@promise("report:43")
@pytest.mark.parametrize("client", FORMATS)
def test_plain_reasoning_returns_to_the_servers_that_insist_on_it(client: str) -> None:
    message = {"role": "assistant", "content": "", "reasoning_content": "hm, hm", "tool_calls": [
        {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    ]}  # fmt: skip
    request = trip(
        "openai-chat", client, answer_body("openai-chat", {"message": message, "finish_reason": "tool_calls"})
    )
    there = dragoman.translate_request(request, source=client, target="openai-chat", model="deepseek-reasoner")
    assert there.body["messages"][1]["reasoning_content"] == "hm, hm"
    for stranger in FORMATS:
        if FAMILY[stranger] not in {"openai", FAMILY[client]}:
            elsewhere = dragoman.translate_request(request, source=client, target=stranger, model="some-model")
            assert "hm, hm" not in elsewhere.json().decode()


@promise("report:35")
@pytest.mark.parametrize(("source", "target"), [("gemini", "vertex"), ("vertex", "gemini")])
def test_gemini_and_vertex_are_one_family(source: str, target: str) -> None:
    request = CONTINUE[source](OPENING[source], answer_body(source, ANSWERS[source]["on the first of two calls"]))
    there = dragoman.translate_request(request, source=source, target=target, model="gemini-3-pro-preview").body
    assert there["contents"][1]["parts"][0]["thoughtSignature"] == SECRET
    assert "thoughtSignature" not in there["contents"][1]["parts"][1]


@given(request=strategies.REQUESTS)
@each("target", FORMATS)
def test_generated_signatures_reach_their_own_family_only(target: str, request: ir.Request) -> None:
    body = dragoman.encode_request(request, target).json().decode()
    signatures = [getattr(part, "signature", None) for message in request.messages for part in message.parts]
    own = {
        signature.data for signature in signatures if signature is not None and signature.family == SIGNED_AS[target]
    }
    for signature in signatures:
        if signature is not None and signature.family != SIGNED_AS[target] and signature.data not in own:
            assert signature.data not in body
            assert base64.b64encode(signature.data.encode()).decode()[:-4] not in body


_SIGNED_BY = {"anthropic-messages": "anthropic", "bedrock-converse": "bedrock", "gemini": "google", "vertex": "google"}
_SIGNED_BY["gemini-interactions"] = "google"


def _as_vendors_do(part: Any) -> Any:
    """Only Google signs calls."""
    if isinstance(part, ir.Text):
        return structs.replace(part, citations=())
    signed_by_others = (
        isinstance(part, ir.ToolCall) and part.signature is not None and part.signature.family != "google"
    )
    return structs.replace(part, signature=None) if signed_by_others else part


def _without_signed_thoughts(message: ir.Message) -> ir.Message:
    """A thought of Interactions signs what follows it, never itself."""
    parts = [
        structs.replace(part, signature=None) if isinstance(part, ir.Reasoning) else part for part in message.parts
    ]
    return structs.replace(message, parts=tuple(parts))


@st.composite
def signed_answers(draw: st.DrawFn) -> ir.Completion:
    """An answer as a vendor gives it: reasoning first, then text, then calls, some of them signed."""
    message = draw(strategies.answers())
    parts = [part for part in message.parts if isinstance(part, ir.Reasoning | ir.Text | ir.ToolCall)]
    ranked = sorted(parts, key=lambda part: ("Reasoning", "Text", "ToolCall").index(type(part).__name__))
    kept = tuple(_as_vendors_do(part) for part in ranked)
    return ir.Completion((ir.Message("assistant", kept or "hi"),), ir.Finish("stop"), ir.Usage(), "r", "m", 1)


def minted(message: ir.Message, family: str) -> list[tuple[str, str]]:
    return [
        (type(part).__name__, part.signature.data)
        for part in message.parts
        if isinstance(part, ir.Reasoning | ir.ToolCall | ir.Text)
        and part.signature is not None
        and part.signature.family == family
    ]


@given(completion=signed_answers())
@each(("vendor", "client"), [trip for trip in TRIPS if trip[0] in _SIGNED_BY])
def test_generated_answers_keep_what_is_owed(vendor: str, client: str, completion: ir.Completion) -> None:
    if vendor == "gemini-interactions":
        completion = structs.replace(completion, messages=tuple(map(_without_signed_thoughts, completion.messages)))
    native = dragoman.encode_response(completion, vendor).body
    known = dragoman.decode_response(native, vendor).messages[0]
    back = dragoman.translate_request(trip(vendor, client, native), source=client, target=vendor, model="some-model")
    family = _SIGNED_BY[vendor]
    found = dragoman.decode_request(back.json(), vendor).messages[1]
    assert minted(found, family) == minted(known, family)


@promise("report:39")
@given(request=strategies.REQUESTS)
@each("target", FORMATS)
def test_no_key_of_our_own_is_on_the_wire(target: str, request: ir.Request) -> None:
    body = dragoman.encode_request(request, target)
    own = [text for text in strings(body.body) if text.startswith(("~", "_dragoman", "_provider"))]
    assert own == []


@promise("report:33")
@each("target", FORMATS)
@each("family", ["anthropic", "google"])
def test_no_empty_signature_is_ever_sent(target: str, family: str) -> None:
    parts = (
        ir.Reasoning("hm", ir.Signature(family, "")),
        ir.Text("hi", signature=ir.Signature(family, "")),
        ir.ToolCall("call_1", "f", {}, signature=ir.Signature(family, "")),
    )
    result = ir.ToolResult("call_1", "f", "text", "ok")
    request = ir.Request(
        "some-model",
        (ir.Message("user", "go"), ir.Message("assistant", parts), ir.Message("tool", (result,))),
        (ir.ToolDefinition("f"),),
    )
    completion = ir.Completion((ir.Message("assistant", parts),), ir.Finish("tool_calls"), ir.Usage(), "r", "m", 1)
    for encoded in (dragoman.encode_request(request, target), dragoman.encode_response(completion, target)):
        text = encoded.json().decode()
        assert '"signature":""' not in text
        assert '"thoughtSignature":""' not in text
        assert '"thought_signature":""' not in text
