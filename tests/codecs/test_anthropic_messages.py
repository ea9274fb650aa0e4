"""The anthropic-messages codec: one table of cases for both directions, then the rules that bend what others say."""

import json
from typing import Any

import pytest
from msgspec import Raw, structs

from dragoman import ir
from dragoman.codecs.anthropic_messages import errors, json_paths, request, response
from dragoman.codecs.anthropic_messages.profile import limits_of
from dragoman.codecs.encoded import Encoded
from dragoman.errors import DecodeError, EncodeError
from dragoman.loss import Loss
from dragoman.losses import LossLog, intermediate_paths
from dragoman.sim.rules import anthropic_messages as judge
from tests.support.calls import all_calls
from tests.support.cases import each
from tests.support.promises import promise

FAMILY = "anthropic"
MODEL = "claude-sonnet-4-5"
OLD_VERSION = "2023-06-01"
NEW_VERSION = "2026-10-21"

Json = dict[str, Any]


def noted(**notes: Any) -> ir.Metadata:
    """What the codec notes on a node; a leading `_` stands for `~`."""
    keys = {key: key.removeprefix("_") for key in notes}
    return {FAMILY: {("~" if key[:1] == "_" else "") + name: _raw(notes[key]) for key, name in keys.items()}}


def _raw(value: Any) -> Raw:
    return Raw(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def decode(body: Json) -> ir.Request:
    return request.decode_request(bytes(_raw(body)))


def encode(value: ir.Request) -> tuple[Encoded, tuple[Loss, ...]]:
    """The request as the codec alone encodes it, with its losses."""
    log = LossLog()
    encoded = request.encode_request(value, log)
    return encoded, log.resolve(value, intermediate_paths)


def answer(value: ir.Completion) -> tuple[Json, tuple[Loss, ...]]:
    log = LossLog()
    encoded = response.encode_response(value, log)
    return encoded.body, log.resolve(value, intermediate_paths)


def request_of(*messages: ir.Message, model: str = MODEL, **fields: Any) -> ir.Request:
    """A request of another family."""
    given = messages or (ir.Message("user", "hi"),)
    return ir.Request(model, given, **({"max_output_tokens": 100} | fields))


def complete(*parts: ir.AnyPart, reason: ir.FinishReason = "stop", **fields: Any) -> ir.Completion:
    """An answer of another family."""
    usage = ir.Usage(10, 5)
    given: Json = {"finish": ir.Finish(reason, reason), "usage": usage, "id": "resp_1", "model": "m"} | fields
    return ir.Completion((ir.Message("assistant", parts),), **given)


def assert_legal(encoded: Encoded) -> None:
    assert judge.check_request(encoded.body, version=encoded.headers["anthropic-version"]) == ()


def severities(losses: tuple[Loss, ...], path: str) -> list[str]:
    return [loss.severity for loss in losses if loss.path == path]


# ── documents that are to be cited ────────────────────────────────────────────────────────────────────────────


def documents(*cites: bool | None, **fields: Any) -> tuple[list[Any], tuple[Loss, ...]]:
    """The switches of documents, the last of which stands in a result."""
    *first, last = (ir.Document(text=f"page {number}", cite=cite) for number, cite in enumerate(cites))
    encoded, losses = encode(
        request_of(
            ir.Message("user", tuple(first)),
            ir.Message("assistant", (ir.ToolCall("toolu_1", "f", {}),)),
            ir.Message("tool", (ir.ToolResult("toolu_1", "f", "multimodal", parts=(last,)),)),
            tools=(ir.ToolDefinition("f"),),
            **fields,
        )
    )
    assert judge.check_request(encoded.body) == ()
    opened, _, answered = encoded.body["messages"]
    blocks = [*opened["content"], *answered["content"][0]["content"]]
    return [block.get("citations", {}).get("enabled") for block in blocks], losses


@pytest.mark.parametrize(
    ("asked_for", "sent", "invented"),
    [
        ((True, True, True), [True, True, True], []),
        (
            (True, None, False),
            [True, True, True],
            ["$.messages[0].parts[1].cite", "$.messages[2].parts[0].parts[0].cite"],
        ),
        ((None, False, True), [True, True, True], ["$.messages[0].parts[0].cite", "$.messages[0].parts[1].cite"]),
        ((None, None, None), [None, None, None], []),
        ((False, None, False), [False, None, False], []),
    ],
)
def test_all_documents_are_cited_or_none(
    asked_for: tuple[bool | None, ...], sent: list[Any], invented: list[str]
) -> None:
    switches, losses = documents(*asked_for)
    assert switches == sent
    assert [loss.path for loss in losses if "document" in loss.what] == invented
    assert {loss.severity for loss in losses if "document" in loss.what} <= {"invented"}


def test_nothing_is_cited_in_an_answer_with_a_format() -> None:
    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    switches, losses = documents(*(True, None, True), output=ir.StructuredOutput("schema", schema=schema))
    assert switches == [None, None, None]
    dropped = [loss.path for loss in losses if loss.what == "citations"]
    assert dropped == ["$.messages[0].parts[0].cite", "$.messages[2].parts[0].parts[0].cite"]


def test_its_own_requests_are_sent_as_they_are() -> None:
    source = {"type": "text", "media_type": "text/plain", "data": "x"}
    blocks = [{"type": "document", "source": source, "citations": {"enabled": on}} for on in (True, False)]
    body = {"model": MODEL, "max_tokens": 9, "messages": [{"role": "user", "content": blocks}]}
    assert encode(decode(body))[0].body == body


# ── messages, both directions ─────────────────────────────────────────────────────────────────────────────────

TOOL_USE = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1.0}}
CALL = ir.ToolCall("toolu_1", "f", {"a": 1.0})
ASKS = {"role": "assistant", "content": [TOOL_USE]}
CALLING_TURN = ir.Message("assistant", (CALL,))
GOOGLE = ir.Signature("google", "c2ln")
CITATION = {"type": "web_search_result_location", "url": "https://e.org", "title": "T", "encrypted_index": "e"}
SERVER_CALL = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}}
SERVER_RESULT = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}


def result(content: Any = None, **more: Any) -> Json:
    block = {"type": "tool_result", "tool_use_id": "toolu_1"} | ({} if content is None else {"content": content})
    return {"role": "user", "content": [block | more]}


def answered(kind: ir.ResultKind, value: Any = None, **fields: Any) -> ir.Message:
    return ir.Message("tool", (ir.ToolResult("toolu_1", "f", kind, value, **fields),))


def user(block: Json) -> list[Json]:
    return [{"role": "user", "content": [block]}]


def from_user(part: ir.AnyPart) -> list[ir.Message]:
    return [ir.Message("user", (part,))]


def assistant(*blocks: Json) -> list[Json]:
    return [{"role": "assistant", "content": list(blocks)}]


def from_assistant(*parts: ir.AnyPart) -> list[ir.Message]:
    return [ir.Message("assistant", parts)]


MESSAGES: dict[str, tuple[list[Json], list[ir.Message]]] = {
    "text as a string": ([{"role": "user", "content": "hi"}], [ir.Message("user", "hi")]),
    "text as a block": (user({"type": "text", "text": "hi"}), from_user(ir.Text("hi"))),
    "assistant string": (
        [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}],
        [ir.Message("user", "a"), ir.Message("assistant", "b")],
    ),
    "cache mark": (
        user({"type": "text", "text": "hi", "cache_control": {"type": "ephemeral", "ttl": "1h"}}),
        from_user(ir.Text("hi", cache=ir.Cache("1h"))),
    ),
    "cache mark that says more": (
        user({"type": "text", "text": "hi", "cache_control": {"type": "ephemeral", "scope": "x"}}),
        from_user(
            ir.Text(
                "hi",
                cache=ir.Cache(),
                metadata={
                    "anthropic": {
                        "~cache": _raw({"type": "ephemeral", "scope": "x"}),
                        "~in:cache_control": _raw({"scope": "x"}),
                    }
                },
            )
        ),
    ),
    "cache mark null": (
        user({"type": "text", "text": "hi", "cache_control": None}),
        from_user(ir.Text("hi", metadata=noted(_cache=None))),
    ),
    "citations null": (
        assistant({"type": "text", "text": "hi", "citations": None}),
        from_assistant(ir.Text("hi", metadata=noted(_citations=None))),
    ),
    "citation": (
        assistant({"type": "text", "text": "hi", "citations": [CITATION | {"cited_text": "c"}]}),
        from_assistant(
            ir.Text(
                "hi",
                (
                    ir.Citation(
                        "https://e.org",
                        "T",
                        "c",
                        metadata=noted(_citation=CITATION | {"cited_text": "c"}, encrypted_index="e"),
                    ),
                ),
            )
        ),
    ),
    "unknown key on a block": (
        user({"type": "text", "text": "hi", "later": {"x": 1}}),
        from_user(ir.Text("hi", metadata=noted(later={"x": 1}))),
    ),
    "image by data": (
        user({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QQ=="}}),
        from_user(ir.Image("image/png", "QQ==")),
    ),
    "image by address": (
        user({"type": "image", "source": {"type": "url", "url": "https://e.org/a.png"}}),
        from_user(ir.Image(url="https://e.org/a.png")),
    ),
    "image by file": (
        user({"type": "image", "source": {"type": "file", "file_id": "file_1"}}),
        from_user(ir.Image(file_id="file_1")),
    ),
    "image of an unknown source": (
        user({"type": "image", "source": {"type": "later", "x": 1}}),
        from_user(ir.Opaque(FAMILY, "image", {"type": "image", "source": {"type": "later", "x": 1}})),
    ),
    "PDF": (
        user(
            {
                "type": "document",
                "source": {"type": "base64", "media_type": "application/pdf", "data": "JQ=="},
                "title": "T",
                "context": "C",
                "citations": {"enabled": True},
            }
        ),
        from_user(ir.Document("application/pdf", "JQ==", title="T", context="C", cite=True)),
    ),
    "text document": (
        user({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "words"}}),
        from_user(ir.Document("text/plain", text="words")),
    ),
    "document in blocks": (
        user({"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "words"}]}}),
        from_user(
            ir.Document(
                text="words",
                metadata={
                    FAMILY: {"~raw:source": _raw({"type": "content", "content": [{"type": "text", "text": "words"}]})}
                },
            )
        ),
    ),
    "document by address": (
        user({"type": "document", "source": {"type": "url", "url": "https://e.org/a.pdf"}, "title": None}),
        from_user(ir.Document(url="https://e.org/a.pdf", metadata=noted(title=None))),
    ),
    "unknown block": (
        user({"type": "container_upload", "file_id": "file_1"}),
        from_user(ir.Opaque(FAMILY, "container_upload", {"type": "container_upload", "file_id": "file_1"})),
    ),
    "signed thinking, then a call": (
        [
            *assistant({"type": "thinking", "thinking": "", "signature": "sig"}, TOOL_USE),
            result("ok"),
        ],
        [*from_assistant(ir.Reasoning("", ir.Signature(FAMILY, "sig")), CALL), answered("text", "ok")],
    ),
    "redacted thinking": (
        assistant({"type": "redacted_thinking", "data": "xyz"}),
        from_assistant(ir.Reasoning("", ir.Signature(FAMILY, "xyz"), redacted=True)),
    ),
    "unsigned thinking of a compatible server": (
        assistant({"type": "thinking", "thinking": "hm"}),
        from_assistant(ir.Reasoning("hm", metadata=noted(_signature="absent"))),
    ),
    "call with caller": (
        assistant(TOOL_USE | {"caller": {"type": "direct"}}),
        from_assistant(structs.replace(CALL, metadata={FAMILY: {"~raw:caller": _raw({"type": "direct"})}})),
    ),
    "call of a toolset, made by code": (
        assistant(TOOL_USE | {"caller": {"type": "code_execution_20260120"}, "toolset_name": "browser"}),
        from_assistant(
            structs.replace(
                CALL,
                name=f"browser__{CALL.name}",
                metadata={
                    FAMILY: {
                        "~raw:toolset_name": Raw(b'"browser"'),
                        "caller": Raw(b'{"type":"code_execution_20260120"}'),
                    }
                },
            )
        ),
    ),
    "call whose arguments were no JSON": (
        assistant(TOOL_USE | {"input": {"unparsed_arguments": "{oops"}}),
        from_assistant(ir.ToolCall("toolu_1", "f", arguments_text="{oops")),
    ),
    "call whose input is null": (
        assistant(TOOL_USE | {"input": None}),
        from_assistant(ir.ToolCall("toolu_1", "f", {}, metadata={FAMILY: {"~input": Raw(b"null")}})),
    ),
    "server tool": (
        assistant(SERVER_CALL, SERVER_RESULT),
        from_assistant(
            ir.ServerToolCall("srvtoolu_1", "web_search", FAMILY, SERVER_CALL, kind="web_search", input={"query": "q"}),
            ir.ServerToolResult("srvtoolu_1", "web_search", FAMILY, SERVER_RESULT, kind="web_search"),
        ),
    ),
    "result text": ([ASKS, result("22")], [CALLING_TURN, answered("text", "22")]),
    "result without content": ([ASKS, result()], [CALLING_TURN, answered("text", "")]),
    "result of no characters": (
        [ASKS, result("")],
        [CALLING_TURN, answered("text", "", metadata=noted(_content="empty"))],
    ),
    "result in blocks": (
        [ASKS, result([{"type": "text", "text": "22"}])],
        [CALLING_TURN, answered("multimodal", parts=(ir.Text("22"),))],
    ),
    "result said not to be an error": (
        [ASKS, result("22", is_error=False)],
        [CALLING_TURN, answered("text", "22", metadata=noted(_is_error=False))],
    ),
    "result that is an error": ([ASKS, result("no", is_error=True)], [CALLING_TURN, answered("error", "no")]),
    "error in blocks": (
        [ASKS, result([{"type": "text", "text": "no"}], is_error=True)],
        [CALLING_TURN, answered("error", parts=(ir.Text("no"),))],
    ),
    "result with a mark": (
        [ASKS, result("22", cache_control={"type": "ephemeral"})],
        [CALLING_TURN, answered("text", "22", cache=ir.Cache())],
    ),
    "result and text in one turn": (
        [
            ASKS,
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_1", "content": "22"},
                    {"type": "text", "text": "so?"},
                ],
            },
        ],
        [CALLING_TURN, answered("text", "22"), ir.Message("user", (ir.Text("so?"),))],
    ),
    "result and text in two turns": (
        [ASKS, result("22"), {"role": "user", "content": "so?"}],
        [CALLING_TURN, answered("text", "22"), ir.Message("user", "so?", metadata=noted(_turn="own"))],
    ),
    "text before a result": (
        [
            ASKS,
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "so:"},
                    {"type": "tool_result", "tool_use_id": "toolu_1", "content": "22"},
                ],
            },
        ],
        [
            CALLING_TURN,
            structs.replace(answered("text", "22"), metadata=noted(_order=[False, True])),
            ir.Message("user", (ir.Text("so:"),)),
        ],
    ),
    "system message inside": (
        [{"role": "user", "content": "hi"}, {"role": "system", "content": "Be brief.", "clear_at": "never"}],
        [ir.Message("user", "hi"), ir.Message("system", "Be brief.", metadata=noted(_inline=True, clear_at="never"))],
    ),
    "empty content": (
        [{"role": "user", "content": "hi"}, {"role": "assistant", "content": []}],
        [ir.Message("user", "hi"), ir.Message("assistant", (), metadata=noted(_content="empty"))],
    ),
    "thought signature of Gemini before a call": (
        assistant({"type": "thinking", "thinking": "", "signature": "dragoman:1:next:google::c2ln"}, TOOL_USE),
        from_assistant(structs.replace(CALL, signature=GOOGLE, metadata=noted(_tagged=True))),
    ),
    "thought signature of Gemini on an empty text": (
        assistant({"type": "thinking", "thinking": "", "signature": "dragoman:1:text:google::c2ln"}),
        from_assistant(ir.Text("", signature=GOOGLE, metadata=noted(_tagged=True))),
    ),
    "reasoning of OpenAI": (
        assistant({"type": "thinking", "thinking": "sum", "signature": "dragoman:1:reasoning:openai:=rs_1:ZW5j"}),
        from_assistant(ir.Reasoning("sum", ir.Signature("openai", "ZW5j", "rs_1"), metadata=noted(_tagged=True))),
    ),
}

BODY = {"model": MODEL, "max_tokens": 100}


@promise("law:1-identity")
@each("name", MESSAGES)
def test_messages_are_read(name: str) -> None:
    wire, messages = MESSAGES[name]
    assert decode(BODY | {"messages": wire}).messages == tuple(messages)


@promise("law:1-identity", "report:37", "report:54", "report:55")
@each("name", MESSAGES)
def test_messages_are_written(name: str) -> None:
    wire, messages = MESSAGES[name]
    encoded, losses = encode(request_of(*messages, origin=FAMILY))
    assert encoded.body == BODY | {"messages": wire}
    assert losses == ()


# ── settings, both directions ─────────────────────────────────────────────────────────────────────────────────

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False}
TOOL = {"name": "f", "description": "F", "input_schema": SCHEMA}
FUNCTION = ir.ToolDefinition("f", "F", SCHEMA)
SEARCH = {"type": "web_search_20250305", "name": "web_search", "max_uses": None}
TOOLSET = {"type": "mcp_toolset", "mcp_server_name": "docs", "cache_control": {"type": "ephemeral"}}

SETTINGS: dict[str, tuple[Json, Json]] = {
    "system string": (
        {"system": "Be brief."},
        {"messages": (ir.Message("system", "Be brief."), ir.Message("user", "hi"))},
    ),
    "system blocks": (
        {"system": [{"type": "text", "text": "Be"}, {"type": "text", "text": "brief."}]},
        {"messages": (ir.Message("system", (ir.Text("Be"), ir.Text("brief."))), ir.Message("user", "hi"))},
    ),
    "sampling": (
        {"temperature": 1.0, "top_p": 0.5, "top_k": 7, "stop_sequences": ["END"], "stream": True},
        {"temperature": 1.0, "top_p": 0.5, "top_k": 7, "stop": ("END",), "stream": True},
    ),
    "user": ({"metadata": {"user_id": "u"}}, {"safety_identifier": "u"}),
    "automatic cache": ({"cache_control": {"type": "ephemeral"}}, {"cache": ir.Cache()}),
    "budget": (
        {"thinking": {"type": "enabled", "budget_tokens": 1024, "display": "omitted"}},
        {
            "reasoning": ir.ReasoningSettings(
                "on",
                budget_tokens=1024,
                visible=False,
                metadata=noted(_thinking={"type": "enabled", "budget_tokens": 1024, "display": "omitted"}),
            )
        },
    ),
    "adaptive with effort": (
        {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}},
        {"reasoning": ir.ReasoningSettings("adaptive", "low", metadata=noted(_thinking={"type": "adaptive"}))},
    ),
    "effort alone": ({"output_config": {"effort": "max"}}, {"reasoning": ir.ReasoningSettings(None, "max")}),
    "between tools": (
        {"thinking": {"type": "between_tools"}},
        {"reasoning": ir.ReasoningSettings("off", metadata=noted(_thinking={"type": "between_tools"}))},
    ),
    "format": (
        {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}, "task_budget": {"total": 9}}},
        {
            "output": ir.StructuredOutput("schema", SCHEMA),
            "metadata": noted(**{"~in:output_config": {"task_budget": {"total": 9}}}),
        },
    ),
    "format in its old place": (
        {"output_format": {"type": "json_schema", "schema": SCHEMA}},
        {"output": ir.StructuredOutput("schema", SCHEMA), "metadata": noted(_output_format=True)},
    ),
    "tools": (
        {"tools": [TOOL | {"strict": True}, TOOL | {"name": "g", "type": "custom", "defer_loading": True}]},
        {
            "tools": (
                structs.replace(FUNCTION, strict=True),
                structs.replace(FUNCTION, name="g", metadata=noted(_type="custom"), deferred=True),
            )
        },
    ),
    "tools of the provider": (
        {"tools": [SEARCH, TOOLSET]},
        {
            "tools": (
                ir.ProviderTool("web_search", FAMILY, SEARCH, kind="web_search"),
                ir.ProviderTool("docs", FAMILY, TOOLSET, ir.Cache(), "mcp", approval="never"),
            )
        },
    ),
    "choice": (
        {"tools": [TOOL], "tool_choice": {"type": "auto"}},
        {"tools": (FUNCTION,), "tool_choice": ir.ToolChoice("auto")},
    ),
    "any": (
        {"tools": [TOOL], "tool_choice": {"type": "any"}},
        {"tools": (FUNCTION,), "tool_choice": ir.ToolChoice("required")},
    ),
    "none": (
        {"tools": [TOOL], "tool_choice": {"type": "none"}},
        {"tools": (FUNCTION,), "tool_choice": ir.ToolChoice("none")},
    ),
    "one tool, one call": (
        {"tools": [TOOL], "tool_choice": {"type": "tool", "name": "f", "disable_parallel_tool_use": True}},
        {"tools": (FUNCTION,), "tool_choice": ir.ToolChoice("required", ("f",)), "parallel_tool_calls": False},
    ),
    "parallel calls said aloud": (
        {"tools": [TOOL], "tool_choice": {"type": "auto", "disable_parallel_tool_use": False}},
        {
            "tools": (FUNCTION,),
            "tool_choice": ir.ToolChoice("auto", metadata=noted(_parallel=False)),
            "parallel_tool_calls": True,
        },
    ),
    "what the API knows and we do not": (
        {"service_tier": "auto", "mcp_servers": [{"type": "url"}], "anthropic_version": "bedrock-2023-05-31"},
        {
            "service_tier": "auto",
            "metadata": noted(mcp_servers=[{"type": "url"}], anthropic_version="bedrock-2023-05-31"),
        },
    ),
    "empty lists": (
        {"tools": [], "stop_sequences": [], "system": []},
        {"metadata": {FAMILY: {f"~raw:{key}": _raw([]) for key in ("system", "tools", "stop_sequences")}}},
    ),
}


@promise("law:1-identity", "report:80")
@each("name", SETTINGS)
def test_settings_are_read(name: str) -> None:
    wire, fields = SETTINGS[name]
    value = decode(BODY | {"messages": [{"role": "user", "content": "hi"}]} | wire)
    expected = structs.replace(request_of(origin=FAMILY), **fields)
    assert value == expected


@promise("law:1-identity", "report:80")
@each("name", SETTINGS)
def test_settings_are_written(name: str) -> None:
    wire, fields = SETTINGS[name]
    encoded, losses = encode(structs.replace(request_of(origin=FAMILY), **fields))
    assert encoded.body == BODY | {"messages": [{"role": "user", "content": "hi"}]} | wire
    assert losses == ()


def test_a_body_without_limit_stays_without_one() -> None:
    body = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}  # count_tokens
    encoded, losses = encode(decode(body))
    assert encoded.body == body
    assert losses == ()


@promise("law:1-identity")
def test_a_misplaced_call_keeps_its_nulls() -> None:
    call: Json = {"type": "tool_use", "id": "a", "name": "f", "input": {}, "cache_control": None}
    body = {"model": MODEL, "max_tokens": 100, "messages": user(call)}
    assert encode(decode(body))[0].body == body


@promise("law:10-bad-input-good-words")
def test_an_unknown_role_is_refused_with_its_path() -> None:
    with pytest.raises(DecodeError) as caught:
        decode(BODY | {"messages": [{"role": "user", "content": "hi"}, {"role": "bot", "content": "hi"}]})
    assert (caught.value.path, caught.value.got) == ("$.messages[1].role", "'bot'")


@promise("law:10-bad-input-good-words")
@pytest.mark.parametrize("choice", [{"type": "maybe"}, {"type": "tool"}, {"type": "auto", "name": "f"}])
def test_an_unknown_choice_is_refused_with_its_path(choice: Json) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(BODY | {"messages": [], "tool_choice": choice})
    assert (caught.value.path, caught.value.got) == ("$.tool_choice", repr(choice["type"]))


# ── requests of other families: turns ─────────────────────────────────────────────────────────────────────────


@promise("report:46", "report:55", "law:8-pairs-hold")
def test_results_and_the_user_text_after_them_share_one_turn() -> None:
    other = ir.ToolCall("call_2", "g", {})
    encoded, _ = encode(
        request_of(
            ir.Message("user", "hi"),
            ir.Message("assistant", (CALL, other)),
            answered("text", "22"),
            ir.Message("tool", (ir.ToolResult("call_2", "g", "text", "ok"),)),
            ir.Message("user", "so?"),
        )
    )
    assert [message["role"] for message in encoded.body["messages"]] == ["user", "assistant", "user"]
    assert [block["type"] for block in encoded.body["messages"][2]["content"]] == ["tool_result", "tool_result", "text"]


def test_several_system_messages_become_blocks() -> None:
    encoded, losses = encode(
        request_of(ir.Message("system", "A"), ir.Message("system", (ir.Text("B"),)), ir.Message("user", "hi"))
    )
    assert encoded.body["system"] == [{"type": "text", "text": "A"}, {"type": "text", "text": "B"}]
    assert losses == ()


LATE_SYSTEM = (ir.Message("user", "hi"), ir.Message("system", "Be brief."))


def test_a_late_system_message_is_inline_where_the_model_takes_it() -> None:
    encoded, losses = encode(request_of(*LATE_SYSTEM, model="claude-opus-5"))
    assert encoded.body["messages"][1] == {"role": "system", "content": "Be brief."}
    assert losses == ()
    encoded, losses = encode(request_of(*LATE_SYSTEM, model="claude-sonnet-5"))
    assert encoded.body["system"] == "Be brief."
    assert severities(losses, "$.messages[1]") == ["degraded"]


def test_a_user_turn_that_is_lost_as_a_whole_says_so() -> None:
    lost = ir.Message("user", (ir.Image(file_id="file-of-openai"),))
    encoded, losses = encode(request_of(lost))
    assert [message["role"] for message in encoded.body["messages"]] == ["user"]
    assert severities(losses, "$.messages[0].parts[0]") == ["dropped"]
    assert severities(losses, "$.messages[0]") == ["invented"]


def test_a_conversation_of_nothing_is_refused() -> None:
    with pytest.raises(EncodeError, match="at least one message"):
        encode(request_of(ir.Message("assistant", (ir.Reasoning("hm"),))))


def test_calls_end_their_turn() -> None:
    encoded, losses = encode(
        request_of(ir.Message("user", "hi"), ir.Message("assistant", (CALL, ir.Text("wait"))), answered("text", "22"))
    )
    assert [block["type"] for block in encoded.body["messages"][1]["content"]] == ["text", "tool_use"]
    assert severities(losses, "$.messages[1].parts[0]") == ["degraded"]
    assert_legal(encoded)


# ── requests of other families: calls and results ─────────────────────────────────────────────────────────────

RESULTS: list[tuple[ir.ResultKind, Any, Json]] = [
    ("text", "plain", {"content": "plain"}),
    ("text", '{"a": 1}', {"content": '{"a": 1}'}),
    ("text", "", {}),
    ("data", {"b": "ü", "a": None}, {"content": '{"b":"ü","a":null}'}),
    ("data", "x", {"content": '"x"'}),
    ("data", 22, {"content": "22"}),
    ("data", 0, {"content": "0"}),
    ("data", [1, 2], {"content": "[1,2]"}),
    ("data", None, {"content": "null"}),
    ("data", {}, {"content": "{}"}),
    ("error", "no", {"content": "no", "is_error": True}),
    ("error", {"code": 1}, {"content": '{"code":1}', "is_error": True}),
    ("error", "", {"content": "unknown error", "is_error": True}),
    ("error", None, {"content": "unknown error", "is_error": True}),
]


@promise("report:45", "report:58")
@pytest.mark.parametrize(("kind", "value", "expected"), RESULTS)
def test_every_kind_of_result(kind: ir.ResultKind, value: Any, expected: Json) -> None:
    encoded, losses = encode(request_of(CALLING_TURN, answered(kind, value)))
    assert encoded.body["messages"][1]["content"] == [{"type": "tool_result", "tool_use_id": "toolu_1"} | expected]
    assert ["invented" for loss in losses] == (["invented"] if kind == "error" and not value else [])


@promise("report:56")
def test_a_result_keeps_its_images() -> None:
    encoded, losses = encode(
        request_of(CALLING_TURN, answered("multimodal", parts=(ir.Text("see"), ir.Image("image/png", "QQ=="))))
    )
    (block,) = encoded.body["messages"][1]["content"]
    assert [inner["type"] for inner in block["content"]] == ["text", "image"]
    assert losses == ()


@promise("report:59", "law:7-no-guessing")
def test_arguments_that_are_not_json_are_wrapped_and_come_back() -> None:
    broken = ir.ToolCall("call_1", "f", arguments_text='{"a": ')
    encoded, _ = encode(request_of(ir.Message("user", "hi"), ir.Message("assistant", (broken,))))
    assert encoded.body["messages"][1]["content"][0]["input"] == {"unparsed_arguments": '{"a": '}
    assert request.decode_request(encoded.json()).messages[1].parts == (broken,)


def test_exact_numbers_and_key_order_of_arguments_survive() -> None:
    raw = Raw(b'{"z": 1.0, "a": 9007199254740993, "z": 1e400}')
    encoded, _ = encode(
        request_of(ir.Message("user", "hi"), ir.Message("assistant", (ir.ToolCall("call_1", "f", raw),)))
    )
    assert bytes(raw) in encoded.json()


# ── requests of other families: reasoning and signatures ──────────────────────────────────────────────────────

FOREIGN_REASONING = [
    ir.Reasoning("hm"),
    ir.Reasoning("hm", ir.Signature("google", "c2ln")),
    ir.Reasoning("", ir.Signature("openai", "ZW5j", "rs_1"), redacted=True),
    ir.Reasoning("hm", ir.Signature(FAMILY, "")),
]


@promise("report:31", "report:33", "report:35", "law:6-owed-back")
@pytest.mark.parametrize("reasoning", FOREIGN_REASONING)
def test_reasoning_this_api_did_not_sign_never_reaches_it(reasoning: ir.Reasoning) -> None:
    encoded, losses = encode(
        request_of(
            ir.Message("user", "hi"), ir.Message("assistant", (reasoning, ir.Text("yes"))), ir.Message("user", "ok")
        )
    )
    assert encoded.body["messages"][1]["content"] == [{"type": "text", "text": "yes"}]
    assert severities(losses, "$.messages[1].parts[0]") == ["dropped"]


@promise("report:33")
def test_an_empty_signature_is_not_sent_even_if_it_came_so() -> None:
    thinking = {"type": "thinking", "thinking": "hm", "signature": ""}
    encoded, losses = encode(decode(BODY | {"messages": assistant(thinking, {"type": "text", "text": "yes"})}))
    assert encoded.body["messages"] == assistant({"type": "text", "text": "yes"})
    assert severities(losses, "$.messages[0].parts[0]") == ["dropped"]


@promise("report:36", "report:38", "law:6-owed-back")
def test_signed_thinking_that_crossed_another_format_is_first_again() -> None:
    thinking = ir.Reasoning("hm", ir.Signature(FAMILY, "sig"))
    redacted = ir.Reasoning("", ir.Signature(FAMILY, "xyz"), redacted=True)
    encoded, losses = encode(
        request_of(
            ir.Message("user", "hi"), ir.Message("assistant", (thinking, redacted, CALL)), answered("text", "22")
        )
    )
    assert encoded.body["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "redacted_thinking", "data": "xyz"},
        TOOL_USE,
    ]
    assert losses == ()


@promise("report:26", "report:39")
def test_a_foreign_signature_of_a_call_stays_behind() -> None:
    signed = structs.replace(CALL, signature=GOOGLE)
    encoded, losses = encode(
        request_of(ir.Message("user", "hi"), ir.Message("assistant", (signed,)), answered("text", "22"))
    )
    assert encoded.body["messages"][1]["content"] == [TOOL_USE]
    assert severities(losses, "$.messages[1].parts[0].signature") == ["dropped"]


CARRIED: list[ir.AnyPart] = [
    ir.Reasoning("hm", ir.Signature("google", "c2ln")),
    ir.Reasoning("hm", ir.Signature("openai", "a:b%3A", "rs:1")),
    ir.Reasoning("", ir.Signature("openai", "ZW5j", "rs_1"), redacted=True),
    ir.Reasoning("hm"),
    ir.ToolCall("call_1", "f", {"a": 1}, signature=GOOGLE),
    ir.Text("yes", signature=GOOGLE),
    ir.Text("", signature=GOOGLE),
]


@promise("law:6-owed-back", "report:25", "report:29", "report:34", "report:38", "report:41")
@pytest.mark.parametrize("part", CARRIED)
def test_what_is_owed_to_others_goes_to_the_client_and_comes_back(part: ir.AnyPart) -> None:
    body, losses = answer(complete(ir.Reasoning("first"), part, ir.Text("last")))
    assert [loss for loss in losses if loss.severity != "invented"] == []
    assert judge.check_response(body) == ()
    echoed = decode(BODY | {"messages": [{"role": "assistant", "content": body["content"]}]})
    returned = [structs.replace(value, metadata=None) for value in echoed.messages[0].parts]
    assert returned == [ir.Reasoning("first"), part, ir.Text("last")]
    again, _ = encode(echoed)
    assert again.body["messages"][0]["content"] == body["content"]


def test_a_signature_whose_part_is_gone_stays_a_block() -> None:
    lonely = {"type": "thinking", "thinking": "", "signature": "dragoman:1:next:google::c2ln"}
    native = {"type": "thinking", "thinking": "hm", "signature": "sig"}
    body = BODY | {"messages": assistant(lonely, native, lonely, lonely)}
    value = decode(body)
    assert [part.text for part in value.messages[0].parts if isinstance(part, ir.Reasoning)] == ["", "hm", "", ""]
    assert encode(value)[0].body == body


# ── requests of other families: tools ─────────────────────────────────────────────────────────────────────────


@promise("report:58")
@pytest.mark.parametrize("parameters", [None, Raw(b"null")])
def test_a_tool_that_takes_nothing_says_so(parameters: Any) -> None:
    encoded, losses = encode(request_of(tools=(ir.ToolDefinition("f", parameters=parameters),)))
    assert encoded.body["tools"] == [{"name": "f", "input_schema": {"type": "object", "properties": {}}}]
    assert losses == ()


def test_a_schema_whose_root_does_not_say_object() -> None:
    encoded, losses = encode(request_of(tools=(ir.ToolDefinition("f", parameters={"properties": {"a": {}}}),)))
    assert encoded.body["tools"][0]["input_schema"] == {"type": "object", "properties": {"a": {}}}
    assert severities(losses, "$.tools[0].parameters") == ["invented"]


@promise("law:3-legality", "report:65")
def test_alternatives_at_the_root_of_a_schema_are_united() -> None:
    branch = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    other = {"type": "object", "properties": {"b": {"type": "string"}}, "required": ["b"]}
    encoded, losses = encode(request_of(tools=(ir.ToolDefinition("f", parameters={"anyOf": [branch, other]}),)))
    schema = encoded.body["tools"][0]["input_schema"]
    assert schema["type"] == "object"
    assert set(schema["properties"]) == {"a", "b"}
    assert "degraded" in [loss.severity for loss in losses]
    assert_legal(encoded)


def test_a_schema_that_can_be_no_object_is_refused() -> None:
    with pytest.raises(EncodeError, match="object"):
        encode(request_of(tools=(ir.ToolDefinition("f", parameters={"type": "string"}),)))


@promise("report:80")
def test_a_plain_schema_passes_byte_for_byte() -> None:
    raw = Raw(b'{"type":"object", "properties": {"b": {"minimum": 1.0}, "a": {}}}')
    encoded, losses = encode(request_of(tools=(ir.ToolDefinition("f", parameters=raw),)))
    assert bytes(raw) in encoded.json()
    assert losses == ()


def test_strict_stays_where_the_schema_can_be_enforced() -> None:
    loose = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 1}}, "additionalProperties": False}
    encoded, losses = encode(
        request_of(
            tools=(ir.ToolDefinition("f", None, SCHEMA, strict=True), ir.ToolDefinition("g", None, loose, strict=True))
        )
    )
    assert [tool.get("strict") for tool in encoded.body["tools"]] == [True, None]
    assert encoded.body["tools"][1]["input_schema"] == loose
    assert severities(losses, "$.tools[1].strict") == ["degraded"]
    assert_legal(encoded)


def test_no_more_strict_tools_than_the_api_takes() -> None:
    tools = tuple(ir.ToolDefinition(f"f{number}", None, SCHEMA, strict=True) for number in range(21))
    encoded, losses = encode(request_of(tools=tools))
    assert sum(tool.get("strict", False) for tool in encoded.body["tools"]) == 20
    assert severities(losses, "$.tools[20].strict") == ["degraded"]


def test_a_custom_tool_becomes_a_function_with_one_text() -> None:
    encoded, losses = encode(request_of(tools=(ir.CustomTool("patch", "Patches"),)))
    assert encoded.body["tools"] == [
        {
            "name": "patch",
            "description": "Patches",
            "input_schema": {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]},
        }
    ]
    assert severities(losses, "$.tools[0]") == ["degraded"]


@promise("report:71")
def test_a_tool_of_another_provider_is_dropped_aloud() -> None:
    tool = ir.ProviderTool("google_search", "google", {"google_search": {}})
    encoded, losses = encode(
        request_of(tools=(tool,), tool_choice=ir.ToolChoice("required"), parallel_tool_calls=False)
    )
    assert "tools" not in encoded.body
    assert "tool_choice" not in encoded.body
    assert [loss.path for loss in losses] == ["$.tools[0]", "$.tool_choice", "$.parallel_tool_calls"]


G = ir.ToolDefinition("g", None, SCHEMA)
H = ir.ToolDefinition("h", None, SCHEMA)


@promise("report:68")
@pytest.mark.parametrize(("mode", "expected"), [("required", "any"), ("auto", "auto")])
def test_a_set_of_tools_is_offered_by_itself(mode: Any, expected: str) -> None:
    choice = ir.ToolChoice(mode, ("g", "f"))
    encoded, losses = encode(request_of(tools=(FUNCTION, G, H), tool_choice=choice))
    assert [tool["name"] for tool in encoded.body["tools"]] == ["f", "g"]
    assert encoded.body["tool_choice"] == {"type": expected}
    assert severities(losses, "$.tool_choice") == ["degraded"]


@promise("report:70")
def test_the_switch_for_parallel_calls_forces_nothing() -> None:
    encoded, losses = encode(request_of(tools=(FUNCTION,), parallel_tool_calls=False))
    assert encoded.body["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}
    assert losses == ()
    encoded, _ = encode(request_of(tools=(FUNCTION,), parallel_tool_calls=True))
    assert "tool_choice" not in encoded.body


@pytest.mark.parametrize(
    "model", ["claude-opus-5-5", "anthropic.claude-sonnet-5-5", "claude-fable-5-1", "mythos-preview"]
)
def test_models_that_refuse_to_be_forced_are_not(model: str) -> None:
    encoded, losses = encode(request_of(model=model, tools=(FUNCTION,), tool_choice=ir.ToolChoice("required", ("f",))))
    assert encoded.body["tool_choice"] == {"type": "auto"}
    assert severities(losses, "$.tool_choice") == ["degraded"]


# ── requests of other families: settings ──────────────────────────────────────────────────────────────────────


def test_a_limit_is_invented_because_the_api_wants_one() -> None:
    encoded, losses = encode(request_of(max_output_tokens=None))
    assert encoded.body["max_tokens"] == 64_000
    assert severities(losses, "$.max_output_tokens") == ["invented"]
    documented = {
        "claude-3-opus-20240229": 4096,
        "claude-3-5-haiku-latest": 8192,
        "claude-3-7-sonnet-latest": 64_000,
        "claude-opus-4-1": 32_000,
        "claude-sonnet-4-20250514": 64_000,
        "us.anthropic.claude-haiku-4-5-20251001-v1:0": 64_000,
        "claude-opus-4-7": 128_000,
        "claude-sonnet-5": 128_000,
        "claude-opus-5-5": 128_000,
        "claude-fable-5-1": 128_000,
        "claude-sonnet-5-5": 128_000,
        "anthropic.claude-v2:1": 4096,
        # The catalogue does not know it: what every model takes.
        "claude-tomorrow": 8192,
    }
    for model, most in documented.items():
        assert encode(request_of(max_output_tokens=None, model=model))[0].body["max_tokens"] == most, model


def test_the_version_follows_the_sampling_settings() -> None:
    assert encode(request_of())[0].headers == {"anthropic-version": NEW_VERSION}
    assert encode(request_of(temperature=0.5))[0].headers == {"anthropic-version": OLD_VERSION}
    assert encode(request_of())[0].path == "/v1/messages"


def test_betas_in_the_body_are_betas_in_the_header() -> None:
    encoded, _ = encode(decode(BODY | {"messages": [], "anthropic_beta": ["a-1", "b-2"]}))
    assert encoded.headers["anthropic-beta"] == "a-1,b-2"


def test_the_version_follows_what_only_the_old_one_takes() -> None:
    cited = {"type": "text", "text": "hi", "citations": [CITATION]}
    document = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}}
    for messages in (user(cited), assistant(document)):
        assert encode(decode(BODY | {"messages": messages}))[0].headers["anthropic-version"] == OLD_VERSION


SAMPLING: list[tuple[str, Json, Json, list[str]]] = [
    (MODEL, {"temperature": 1.7}, {"temperature": 1}, ["$.temperature"]),
    (MODEL, {"temperature": 0.2, "top_p": 0.9}, {"temperature": 0.2}, ["$.top_p"]),
    ("claude-opus-4-7", {"temperature": 0.2, "top_k": 5}, {}, ["$.temperature", "$.top_k"]),
    ("claude-opus-4-7", {"temperature": 1}, {"temperature": 1}, []),
    ("claude-haiku-5-5", {"temperature": 1, "top_p": 0.99}, {"temperature": 1}, ["$.top_p"]),
    ("some-model", {"temperature": 0.2, "top_p": 0.9, "top_k": 3}, {"temperature": 0.2, "top_p": 0.9, "top_k": 3}, []),
]


@promise("law:3-legality")
@pytest.mark.parametrize(("model", "given", "sent", "paths"), SAMPLING)
def test_sampling_as_the_model_takes_it(model: str, given: Json, sent: Json, paths: list[str]) -> None:
    encoded, losses = encode(request_of(model=model, **given))
    assert {key: value for key, value in encoded.body.items() if key in {"temperature", "top_p", "top_k"}} == sent
    assert [loss.path for loss in losses] == paths
    assert_legal(encoded)


@promise("law:2-nothing-vanishes")
def test_settings_without_counterpart_are_reported() -> None:
    _, losses = encode(request_of(seed=1, presence_penalty=0.1, frequency_penalty=0.0, candidates=2))
    paths = ["$.seed", "$.presence_penalty", "$.frequency_penalty", "$.candidates"]
    assert sorted(loss.path for loss in losses) == sorted(paths)
    assert {loss.severity for loss in losses} == {"dropped"}


REASONING: list[tuple[str, ir.ReasoningSettings, Json, Json, int]] = [
    # model, settings, thinking, output_config, how many losses
    (MODEL, ir.ReasoningSettings(None, "low"), {"type": "enabled", "budget_tokens": 2048}, {}, 1),
    (MODEL, ir.ReasoningSettings("on", budget_tokens=3000), {"type": "enabled", "budget_tokens": 3000}, {}, 0),
    (MODEL, ir.ReasoningSettings("on", budget_tokens=100), {"type": "enabled", "budget_tokens": 1024}, {}, 1),
    (MODEL, ir.ReasoningSettings("on", budget_tokens=99999), {"type": "enabled", "budget_tokens": 5000}, {}, 1),
    (MODEL, ir.ReasoningSettings("off", "none"), {"type": "disabled"}, {}, 0),
    ("claude-opus-4-6", ir.ReasoningSettings(None, "xhigh"), {"type": "adaptive"}, {"effort": "high"}, 1),
    ("claude-opus-4-7", ir.ReasoningSettings(None, "xhigh"), {"type": "adaptive"}, {"effort": "xhigh"}, 0),
    ("claude-opus-4-7", ir.ReasoningSettings("on", budget_tokens=3000), {"type": "adaptive"}, {"effort": "medium"}, 1),
    ("claude-opus-5", ir.ReasoningSettings(None, "low"), {}, {"effort": "low"}, 0),
    ("claude-opus-5", ir.ReasoningSettings("off", "max"), {"type": "disabled"}, {"effort": "high"}, 1),
    ("claude-sonnet-5-5", ir.ReasoningSettings("off", "none"), {"type": "between_tools"}, {}, 1),
    ("claude-opus-5-5", ir.ReasoningSettings("off", "none"), {}, {}, 1),
    ("claude-opus-5-5", ir.ReasoningSettings(None, "minimal"), {}, {"effort": "low"}, 1),
    (
        "claude-sonnet-5",
        ir.ReasoningSettings("adaptive", visible=True),
        {"type": "adaptive", "display": "summarized"},
        {},
        0,
    ),
    ("claude-3-5-haiku-latest", ir.ReasoningSettings(None, "high"), {}, {}, 1),
    ("claude-3-5-haiku-latest", ir.ReasoningSettings("off", "none"), {}, {}, 0),
]


@promise("law:3-legality")
@each(("model", "settings", "thinking", "config", "count"), REASONING)
def test_reasoning_in_the_words_of_the_model(
    model: str, settings: ir.ReasoningSettings, thinking: Json, config: Json, count: int
) -> None:
    encoded, losses = encode(request_of(model=model, reasoning=settings, max_output_tokens=10_000))
    assert encoded.body.get("thinking", {}) == thinking
    assert encoded.body.get("output_config", {}) == config
    assert len(losses) == count, losses
    assert_legal(encoded)


def test_a_budget_raises_the_invented_limit() -> None:
    settings = ir.ReasoningSettings("on", budget_tokens=20_000)
    encoded, losses = encode(request_of(reasoning=settings, max_output_tokens=None))
    assert encoded.body["max_tokens"] == 64_000  # the most that the model can write
    assert [loss.severity for loss in losses] == ["invented"]
    assert_legal(encoded)
    unknown, _ = encode(request_of(model="claude-tomorrow", reasoning=settings, max_output_tokens=None))
    assert unknown.body["max_tokens"] == 28_192


def test_no_room_for_thinking_means_no_thinking() -> None:
    encoded, losses = encode(request_of(reasoning=ir.ReasoningSettings(None, "high"), max_output_tokens=500))
    assert "thinking" not in encoded.body
    assert severities(losses, "$.reasoning") == ["dropped"]


@promise("law:3-legality")
def test_a_forced_call_and_a_budget_exclude_each_other() -> None:
    fields: Json = {"tools": (FUNCTION,), "tool_choice": ir.ToolChoice("required"), "max_output_tokens": 10_000}
    encoded, losses = encode(request_of(reasoning=ir.ReasoningSettings("on", budget_tokens=2000), **fields))
    assert "thinking" not in encoded.body
    assert encoded.body["tool_choice"] == {"type": "any"}
    assert severities(losses, "$.reasoning") == ["dropped"]
    assert_legal(encoded)
    settings = ir.ReasoningSettings("on", budget_tokens=2000)
    encoded, losses = encode(request_of(model="claude-opus-4-6", reasoning=settings, **fields))
    assert encoded.body["thinking"] == {"type": "adaptive"}
    assert_legal(encoded)


@promise("report:36", "law:3-legality")
def test_a_loop_that_began_without_thinking_goes_on_without() -> None:
    loop = (ir.Message("user", "hi"), CALLING_TURN, answered("text", "22"))
    settings = ir.ReasoningSettings(None, "low")
    encoded, losses = encode(request_of(*loop, reasoning=settings, max_output_tokens=10_000, tools=(FUNCTION,)))
    assert "thinking" not in encoded.body
    assert severities(losses, "$.reasoning") == ["dropped"]
    assert_legal(encoded)


def test_structured_output_loses_its_name_and_what_cannot_be_enforced() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 1}}}
    output = ir.StructuredOutput("schema", schema, "answer", strict=True)
    encoded, losses = encode(request_of(output=output))
    assert encoded.body["output_config"]["format"] == {
        "type": "json_schema",
        "schema": {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False},
    }
    assert severities(losses, "$.output.name") == ["dropped"]
    assert severities(losses, "$.output.schema.properties.a") == ["degraded"]
    assert_legal(encoded)


def test_json_without_a_schema_is_asked_for_in_the_system_text() -> None:
    encoded, losses = encode(request_of(output=ir.StructuredOutput("json")))
    assert "output_config" not in encoded.body
    assert "JSON" in encoded.body["system"]
    assert severities(losses, "$.output") == ["degraded"]


def test_an_answer_that_must_be_json_is_not_begun_by_us() -> None:
    begun = (ir.Message("user", "hi"), ir.Message("assistant", "{"))
    encoded, losses = encode(request_of(*begun, output=ir.StructuredOutput("schema", SCHEMA)))
    assert encoded.body["messages"][-1]["role"] == "user"
    assert severities(losses, "$.messages[1]") == ["invented"]
    assert_legal(encoded)


MEDIA: list[tuple[ir.AnyPart, Json | None, int]] = [
    (ir.Image("image/bmp", "QQ=="), None, 1),
    (ir.Image(url="gs://bucket/a.png"), None, 1),
    (ir.Image(url="https://e.org/a.png", detail="low"), {"type": "url", "url": "https://e.org/a.png"}, 1),
    (ir.Document("text/csv", "YSxi"), {"type": "text", "media_type": "text/plain", "data": "a,b"}, 1),
    (ir.Document("text/plain", "YSxi"), {"type": "text", "media_type": "text/plain", "data": "a,b"}, 0),
    (ir.Document("image/png", "QQ=="), {"type": "base64", "media_type": "image/png", "data": "QQ=="}, 0),
    (ir.Document("video/mp4", "QQ=="), None, 1),
    (ir.Document("text/csv", "/w=="), None, 1),
    (ir.Document(file_id="file-openai"), None, 1),
    (ir.Audio("audio/wav", "QQ=="), None, 1),
]


@promise("law:2-nothing-vanishes", "law:3-legality")
@pytest.mark.parametrize(("part", "source", "count"), MEDIA)
def test_media_as_the_api_takes_them(part: ir.AnyPart, source: Json | None, count: int) -> None:
    encoded, losses = encode(request_of(ir.Message("user", (ir.Text("see"), part))))
    blocks = encoded.body["messages"][0]["content"][1:]
    assert [block["source"] for block in blocks] == ([] if source is None else [source])
    assert len(losses) == count
    assert_legal(encoded)


def test_audio_becomes_its_transcript() -> None:
    encoded, losses = encode(request_of(ir.Message("user", (ir.Audio("audio/wav", "QQ==", transcript="hello"),))))
    assert encoded.body["messages"][0]["content"] == [{"type": "text", "text": "hello"}]
    assert [loss.severity for loss in losses] == ["degraded"]


# ── requests of other families: cache marks ───────────────────────────────────────────────────────────────────


def marks_of(encoded: Encoded) -> list[str | None]:
    blocks = encoded.body["messages"][0]["content"]
    return [block["cache_control"].get("ttl", "5m") if "cache_control" in block else None for block in blocks]


@promise("report:81")
def test_four_cache_marks_are_sent_and_they_are_the_last() -> None:
    texts = tuple(ir.Text(f"t{number}", cache=ir.Cache()) for number in range(6))
    encoded, losses = encode(request_of(ir.Message("user", texts)))
    assert marks_of(encoded) == [None, None, "5m", "5m", "5m", "5m"]
    assert [loss.path for loss in losses] == ["$.messages[0].parts[0].cache", "$.messages[0].parts[1].cache"]
    assert_legal(encoded)
    encoded, _ = encode(request_of(ir.Message("user", texts), cache=ir.Cache()))
    assert marks_of(encoded) == [None, None, None, "5m", "5m", "5m"]
    assert_legal(encoded)


@promise("report:81")
def test_an_hour_never_follows_five_minutes() -> None:
    texts = tuple(ir.Text("t", cache=ir.Cache(ttl)) for ttl in ("1h", None, "1h", "24h"))
    tool = ir.ToolDefinition("f", None, SCHEMA, cache=None)
    encoded, losses = encode(request_of(ir.Message("user", texts), tools=(tool,)))
    assert marks_of(encoded) == ["1h", "5m", "5m", "5m"]
    assert [loss.severity for loss in losses] == ["degraded", "degraded"]
    assert_legal(encoded)


def test_blank_text_carries_no_mark() -> None:
    encoded, losses = encode(request_of(ir.Message("user", (ir.Text("hi"), ir.Text(" ", cache=ir.Cache())))))
    assert marks_of(encoded) == [None, None]
    assert severities(losses, "$.messages[0].parts[1].cache") == ["dropped"]


def test_marks_on_tools_calls_and_results_are_counted_too() -> None:
    tool = ir.ToolDefinition("f", "F", SCHEMA, cache=ir.Cache("1h"))
    marked = structs.replace(CALL, cache=ir.Cache())
    inner = (ir.Text("in", cache=ir.Cache()),)
    turn = ir.Message("tool", (ir.ToolResult("toolu_1", "f", "multimodal", None, inner, ir.Cache()),))
    messages = (ir.Message("user", (ir.Text("hi", cache=ir.Cache()),)), ir.Message("assistant", (marked,)), turn)
    encoded, losses = encode(request_of(*messages, tools=(tool,)))
    assert encoded.json().count(b"cache_control") == 4
    assert severities(losses, "$.tools[0].cache") == ["dropped"]
    assert_legal(encoded)


def test_marks_of_the_own_family_stay_as_they_are() -> None:
    blocks = [{"type": "text", "text": "t", "cache_control": {"type": "ephemeral"}} for _ in range(6)]
    body = BODY | {"messages": [{"role": "user", "content": blocks}]}
    encoded, losses = encode(decode(body))
    assert encoded.body == body
    assert losses == ()


# ── answers ───────────────────────────────────────────────────────────────────────────────────────────────────

USAGE = {
    "input_tokens": 3,
    "cache_creation_input_tokens": 5,
    "cache_read_input_tokens": 7,
    "cache_creation": {"ephemeral_5m_input_tokens": 5, "ephemeral_1h_input_tokens": 0},
    "output_tokens": 11,
    "output_tokens_details": {"thinking_tokens": 4, "later": 1},
    "service_tier": "standard",
}
ANSWER = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-opus-5-5",
    "content": [{"type": "text", "text": "hi"}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": USAGE,
}

ANSWERS: dict[str, Json] = {
    "plain": ANSWER,
    "thinking, text, call": ANSWER
    | {
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "sig"},
            {"type": "text", "text": "a", "citations": None},
            TOOL_USE | {"caller": {"type": "direct"}},
        ],
        "stop_reason": "tool_use",
        "stop_details": None,
    },
    "refusal": ANSWER
    | {"content": [], "stop_reason": "refusal", "stop_details": {"type": "refusal", "category": "bio"}},
    "stop sequence": ANSWER | {"stop_reason": "stop_sequence", "stop_sequence": "END"},
    "unknown stop reason": ANSWER | {"stop_reason": "tomorrow", "container": {"id": "c"}, "diagnostics": None},
    "odd": {"content": [], "usage": None, "type": "completion", "stop_details": None},
    "nulls": ANSWER | {"usage": {"input_tokens": 1, "output_tokens": 1, "cache_read_input_tokens": None}},
}


@promise("law:1-identity", "report:37")
@pytest.mark.parametrize("name", ANSWERS)
def test_answers_are_the_same_again(name: str) -> None:
    completion = response.decode_response(bytes(_raw(ANSWERS[name])))
    body, losses = answer(completion)
    assert body == ANSWERS[name]
    assert losses == ()


@promise("law:9-usage-adds-up", "report:76", "report:77")
def test_usage_counts_all_that_was_read_as_input() -> None:
    usage = response.decode_usage(_raw(USAGE))
    assert (usage.input, usage.cached, usage.cache_written, usage.output, usage.reasoning) == (15, 7, 5, 11, 4)
    assert usage.uncached_input == 3


@promise("law:9-usage-adds-up", "report:76")
def test_usage_of_others_is_split_again() -> None:
    body, _ = answer(complete(ir.Text("hi"), usage=ir.Usage(100, 20, cached=80, reasoning=5)))
    assert body["usage"] == {
        "input_tokens": 20,
        "output_tokens": 20,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 80,
        "output_tokens_details": {"thinking_tokens": 5},
    }


def test_more_reasoning_than_output_is_cut_aloud() -> None:
    body, losses = answer(complete(ir.Text("hi"), usage=ir.Usage(1, 2, reasoning=9)))
    assert body["usage"]["output_tokens_details"] == {"thinking_tokens": 2}
    assert severities(losses, "$.usage.reasoning") == ["degraded"]


FINISHES: list[tuple[str, ir.FinishReason]] = [
    ("end_turn", "stop"),
    ("stop_sequence", "stop"),
    ("max_tokens", "length"),
    ("model_context_window_exceeded", "length"),
    ("tool_use", "tool_calls"),
    ("pause_turn", "pause"),
    ("compaction", "pause"),
    ("refusal", "refusal"),
    ("tomorrow", "unknown"),
    # OpenAI's words, which some servers pass on
    ("stop", "stop"),
    ("length", "length"),
    ("tool_calls", "tool_calls"),
    ("content_filter", "content_filter"),
]


@promise("report:79")
@pytest.mark.parametrize(("word", "reason"), FINISHES)
def test_stop_reasons_are_read(word: str, reason: ir.FinishReason) -> None:
    finish = response.decode_finish(word, [])
    assert finish is not None
    assert (finish.reason, finish.raw) == (reason, word)


@promise("report:79")
def test_calls_make_the_reason_whatever_the_word() -> None:
    finish = response.decode_finish("end_turn", [CALL])
    assert finish is not None
    assert finish.reason == "tool_calls"
    by_code = structs.replace(CALL, metadata=noted(caller={"type": "code_execution_20260120"}))
    finish = response.decode_finish("end_turn", [by_code])
    assert finish is not None
    assert finish.reason == "stop"


WORDS: list[tuple[ir.FinishReason, tuple[ir.AnyPart, ...], str, int]] = [
    ("stop", (ir.Text("hi"),), "end_turn", 0),
    ("stop", (CALL,), "tool_use", 0),
    ("tool_calls", (CALL,), "tool_use", 0),
    ("tool_calls", (ir.Text("hi"),), "end_turn", 1),
    ("length", (structs.replace(CALL, incomplete=True),), "max_tokens", 0),
    ("content_filter", (), "refusal", 1),
    ("refusal", (), "refusal", 0),
    ("pause", (ir.Text("hi"),), "pause_turn", 0),
    ("error", (ir.Text("hi"),), "max_tokens", 1),
    ("unknown", (ir.Text("hi"),), "max_tokens", 1),
]


@promise("report:79")
@pytest.mark.parametrize(("reason", "parts", "word", "count"), WORDS)
def test_stop_reasons_are_written(
    reason: ir.FinishReason, parts: tuple[ir.AnyPart, ...], word: str, count: int
) -> None:
    body, losses = answer(complete(*parts, reason=reason))
    assert body["stop_reason"] == word
    assert len(losses) == count
    assert judge.check_response(body) == ()


def test_the_matched_stop_sequence_is_returned() -> None:
    body, losses = answer(complete(ir.Text("hi"), finish=ir.Finish("stop", "stop", "END")))
    assert (body["stop_reason"], body["stop_sequence"]) == ("stop_sequence", "END")
    assert losses == ()


@promise("report:17")
def test_a_call_cut_off_by_the_limit_is_incomplete() -> None:
    completion = response.decode_response(
        json.dumps(ANSWER | {"content": [TOOL_USE], "stop_reason": "max_tokens"}).encode()
    )
    assert completion.finish_reason == "length"
    assert all_calls(completion)[0].incomplete


@promise("law:4-determinism")
def test_an_answer_of_others_is_a_whole_message() -> None:
    completion = complete(ir.Reasoning("hm"), ir.Text("hi"), CALL, id="chatcmpl-1", reason="tool_calls")
    body, losses = answer(completion)
    assert list(body) == [
        "content", "id", "type", "role", "model", "stop_reason", "stop_sequence", "stop_details", "usage",
    ]  # fmt: skip
    assert (body["id"], body["type"], body["role"]) == ("msg_chatcmpl-1", "message", "assistant")
    assert losses == ()
    assert judge.check_response(body) == ()
    nameless = structs.replace(completion, id=None)
    assert answer(nameless)[0]["id"].startswith("msg_")
    assert answer(nameless) == answer(nameless)


@promise("report:83")
def test_a_refusal_is_text_and_a_stop_reason() -> None:
    body, losses = answer(complete(ir.Refusal("I cannot.")))
    assert body["content"] == [{"type": "text", "text": "I cannot."}]
    assert body["stop_reason"] == "refusal"
    assert [loss.severity for loss in losses] == ["degraded"]


@promise("report:82")
def test_citations_stay_with_their_text_or_are_reported() -> None:
    cited = {"type": "text", "text": "hi", "citations": [CITATION | {"cited_text": "c"}]}
    completion = response.decode_response(json.dumps(ANSWER | {"content": [cited]}).encode())
    (part,) = completion.messages[0].parts
    assert isinstance(part, ir.Text)
    assert [(citation.url, citation.title, citation.cited_text) for citation in part.citations] == [
        ("https://e.org", "T", "c")
    ]
    body, losses = answer(complete(ir.Text("hi", (ir.Citation("https://e.org"),))))
    shown = {"type": "web_search_result_location", "url": "https://e.org", "title": None, "cited_text": ""}
    assert body["content"][0]["citations"] == [shown | {"encrypted_index": "dragoman:1:"}]
    assert not severities(losses, "$.messages[0].parts[0].citations")
    # To the API itself no citation goes whose index it did not encrypt, also when a client sends ours back.
    decoded = response.decode_response(json.dumps(ANSWER | {"content": body["content"]}).encode()).messages[0]
    assert decoded.parts == (ir.Text("hi", (ir.Citation("https://e.org"),)),)
    sent, losses = encode(request_of(ir.Message("user", "q"), decoded, ir.Message("user", "q")))
    assert "citations" not in sent.body["messages"][1]["content"][0]
    assert severities(losses, "$.messages[1].parts[0].citations") == ["dropped"]


@promise("report:82")
@pytest.mark.parametrize(
    ("citation", "title", "text"),
    [
        (ir.Citation(None, "T", "quoted"), "T", "quoted"),
        (ir.Citation(None, "T"), "T", ""),
        (ir.Citation(None, None, "quoted"), None, "quoted"),
        (ir.Citation(None, "T", "quoted", 0, 2), "T", "quoted"),
    ],
)
def test_documents_that_other_providers_cite_are_shown_to_clients(
    citation: ir.Citation, title: str | None, text: str
) -> None:
    body, losses = answer(complete(ir.Text("hi", (citation,))))
    (shown,) = body["content"][0]["citations"]
    assert (shown["type"], shown["document_title"], shown["cited_text"]) == ("char_location", title, text)
    assert shown["end_char_index"] - shown["start_char_index"] == len(text)
    assert judge.check_response(body) == ()
    why = [loss.what for loss in losses]
    assert why == ["place of a citation in the text"] * (citation.start is not None) + ["number of the cited document"]
    # It says nothing about the client's documents, so the API itself does not get it back.
    decoded = response.decode_response(json.dumps(ANSWER | {"content": body["content"]}).encode()).messages[0]
    (part,) = decoded.parts
    assert isinstance(part, ir.Text)
    assert [(one.title, one.cited_text) for one in part.citations] == [(title, text or None)]
    # Nor is the placeholder reported again when the client's body is written again.
    assert answer(complete(part))[1] == ()
    sent, losses = encode(request_of(ir.Message("user", "q"), decoded, ir.Message("user", "q")))
    assert "citations" not in sent.body["messages"][1]["content"][0]
    assert severities(losses, "$.messages[1].parts[0].citations") == ["dropped"]


def test_a_citation_that_says_nothing_is_a_loss() -> None:
    body, losses = answer(complete(ir.Text("hi", (ir.Citation(start=0, end=2),))))
    assert "citations" not in body["content"][0]
    assert [(loss.what, loss.severity) for loss in losses] == [("citation", "dropped")]


CITATIONS: list[Json] = [
    {"type": "char_location", "document_title": "T", "cited_text": "c", "start_char_index": 0, "end_char_index": 1},
    {"type": "page_location", "document_title": "T", "cited_text": "c", "start_page_number": 1, "end_page_number": 2},
    {"type": "content_block_location", "document_title": "T", "cited_text": "c", "start_block_index": 0},
    {"type": "search_result_location", "title": "T", "cited_text": "c", "source": "kb://1", "search_result_index": 0},
    CITATION | {"cited_text": "c"},
]


@promise("report:82")
@pytest.mark.parametrize("citation", CITATIONS)
def test_all_five_kinds_of_citations(citation: Json) -> None:
    body = ANSWER | {"content": [{"type": "text", "text": "hi", "citations": [citation]}]}
    completion = response.decode_response(json.dumps(body).encode())
    (part,) = completion.messages[0].parts
    assert isinstance(part, ir.Text)
    assert (part.citations[0].title, part.citations[0].cited_text) == ("T", "c")
    assert answer(completion)[0] == body


def test_only_the_first_candidate_crosses() -> None:
    second = ir.Message("assistant", "other")
    body, losses = answer(structs.replace(complete(ir.Text("hi")), messages=(ir.Message("assistant", "hi"), second)))
    assert body["content"] == [{"type": "text", "text": "hi"}]
    assert severities(losses, "$.messages[1]") == ["dropped"]


@promise("law:2-nothing-vanishes")
def test_what_an_answer_cannot_hold_is_reported() -> None:
    lost = (
        ir.Image("image/png", "QQ=="),
        ir.Opaque("google", "later", {}),
        ir.ServerToolCall("s_1", "code", "google", {"executableCode": {}}),
    )
    body, losses = answer(complete(ir.Text("hi"), *lost, created=1))
    assert body["content"] == [{"type": "text", "text": "hi"}]
    assert {loss.path for loss in losses} == {"$.created", *(f"$.messages[0].parts[{index}]" for index in (1, 2, 3))}


def test_an_answer_of_nothing_is_an_empty_list() -> None:
    body, _ = answer(structs.replace(complete(), messages=(ir.Message("assistant", ""),)))
    assert body["content"] == []


# ── errors ────────────────────────────────────────────────────────────────────────────────────────────────────


def failed(word: str, *, details: Json | None = None, **more: Any) -> Json:
    inner = {"type": word, "message": "m"} | ({} if details is None else {"details": details})
    return {"type": "error", "error": inner} | more


ERRORS: list[tuple[int, Json, ir.FailureKind]] = [
    (400, failed("invalid_request_error", request_id="req_1"), "invalid_request"),
    (401, failed("authentication_error"), "authentication"),
    (402, failed("billing_error", request_id=None), "billing"),
    (403, failed("permission_error"), "permission"),
    (404, failed("not_found_error"), "not_found"),
    (409, failed("conflict_error"), "conflict"),
    (413, failed("request_too_large"), "too_large"),
    (429, failed("rate_limit_error", details={"error_code": "c"}), "rate_limit"),
    (500, failed("api_error", later=1), "server"),
    (504, failed("timeout_error"), "timeout"),
    (529, failed("overloaded_error"), "overloaded"),
    (503, {"message": "m"}, "overloaded"),
    (403, {"message": "m", "later": 1}, "permission"),
    (502, {"error": "m"}, "server"),
]


@promise("law:1-identity")
@pytest.mark.parametrize(("status", "body", "kind"), ERRORS)
def test_errors_are_the_same_again(status: int, body: Json, kind: ir.FailureKind) -> None:
    failure = errors.decode_error(json.dumps(body).encode(), status)
    assert failure.kind == kind
    assert failure.message == "m"
    encoded = errors.encode_error(failure)
    assert (encoded.body, encoded.status) == (body, status)


def test_an_error_with_status_200_is_recognised_by_its_type() -> None:
    body = b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}'
    failure = errors.decode_error(body, 200, {"retry-after": "3", "request-id": "req_9"})
    assert (failure.kind, failure.status, failure.retry_after, failure.request_id) == ("overloaded", 529, 3.0, "req_9")
    assert errors.encode_error(failure).headers == {"request-id": "req_9", "retry-after": "3"}


@pytest.mark.parametrize(
    ("kind", "status", "word"),
    [("overloaded", 529, "overloaded_error"), ("billing", 402, "billing_error"), ("cancelled", 499, "api_error")],
)
def test_errors_of_others(kind: ir.FailureKind, status: int, word: str) -> None:
    encoded = errors.encode_error(ir.Failure(kind, "m", 503, "insufficient_quota", request_id="r"))
    assert encoded.status == status
    assert encoded.body == {
        "error": {"type": word, "message": "m", "details": {"error_code": "insufficient_quota"}},
        "type": "error",
        "request_id": "r",
    }


# ── places ────────────────────────────────────────────────────────────────────────────────────────────────────

PLACED = BODY | {
    "system": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
    "messages": [
        {"role": "user", "content": "hi"},
        *assistant({"type": "thinking", "thinking": "", "signature": "dragoman:1:next:google::c2ln"}, TOOL_USE),
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": "22"},
                {"type": "text", "text": "so?"},
            ],
        },
        {"role": "assistant", "content": "yes"},
    ],
    "tools": [TOOL],
}

PLACES: list[tuple[int | None, int | None, str, str]] = [
    (0, 1, "cache", "$.system[1].cache_control"),
    (1, None, "", "$.messages[0]"),
    (1, 0, "", "$.messages[0].content"),
    (2, 0, "signature", "$.messages[1].content[1].signature"),
    (3, 0, "", "$.messages[2].content[0]"),
    (4, 0, "", "$.messages[2].content[1]"),
    (5, None, "", "$.messages[3]"),
    (None, 0, "parameters.properties.a", "$.tools[0].input_schema.properties.a"),
    (None, None, "max_output_tokens", "$.max_tokens"),
    (None, None, "reasoning.effort", "$.output_config.effort"),
    (None, None, "output.schema", "$.output_config.format.schema"),
    (None, None, "top_k", "$.top_k"),
    (None, None, "", "$"),
]


@promise("law:2-nothing-vanishes")
@pytest.mark.parametrize(("message", "part", "field", "path"), PLACES)
def test_places_in_the_body(message: int | None, part: int | None, field: str, path: str) -> None:
    assert json_paths.request_paths(decode(PLACED))(message, part, field) == path


def test_places_in_an_answer() -> None:
    completion = response.decode_response(json.dumps(ANSWER).encode())
    assert json_paths.response_paths(completion)(0, 0, "citations") == "$.content[0].citations"
    assert json_paths.response_paths(completion)(None, None, "finish") == "$.stop_reason"


# ── models ────────────────────────────────────────────────────────────────────────────────────────────────────

NAMES = [
    ("claude-opus-4-20250514", "claude-opus-4-1"),
    ("us.anthropic.claude-sonnet-4-20250514-v1:0", "claude-sonnet-4-0"),
    ("claude-sonnet-4@20250514", "claude-sonnet-4"),
    ("claude-sonnet-4-5@20250929", "anthropic.claude-haiku-4-5-20251001-v1:0"),
    ("claude-3-7-sonnet-latest", "claude-sonnet-4-0"),
    ("anthropic/claude-opus-4.6", "claude-opus-4-6"),
    ("claude-opus-5-20270101", "claude-opus-5"),
    ("claude-opus-5-5-20270101", "claude-fable-5"),
]


@pytest.mark.parametrize(("spelling", "same"), NAMES)
def test_models_are_known_in_every_spelling(spelling: str, same: str) -> None:
    assert limits_of(spelling) == limits_of(same)
    assert limits_of(spelling) != limits_of("some-model")
