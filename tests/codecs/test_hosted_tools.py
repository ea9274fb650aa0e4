"""Tools that providers run themselves: definitions, choices, calls, results and citations between all formats."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, get_args

import anthropic.types
import pytest
from google.genai import types as google
from openai.types.responses import Response

import dragoman
from dragoman import ir
from dragoman.codecs.registry import codec
from dragoman.codecs.shared_tools import FORGED, hosted_text
from dragoman.losses import Loss
from dragoman.passes.provider_tools import OPTIONS, RESTRICTING
from dragoman.profile import HostedRule
from tests.support.formats import FAMILY, FORMATS, MODELS, refusals
from tests.support.ir_examples import EXAMPLES, marks
from tests.support.promises import promise
from tests.support.recordings import Record, share

pytestmark = promise("core:hosted-tools")

Json = dict[str, Any]
KINDS = get_args(ir.HostedKind)
NOVA, SEARCH_MODEL = "us.amazon.nova-2-lite-v1:0", "gpt-4o-search-preview"
MODEL = {**MODELS} | {"bedrock-converse": NOVA, "openai-chat": SEARCH_MODEL}
"""Models that have hosted tools, where not all do."""
USER = ir.Message("user", "Will it rain?")


def asked(target: str, *tools: ir.AnyTool, **fields: Any) -> tuple[Json, tuple[Loss, ...]]:
    encoded = dragoman.encode_request(ir.Request(MODEL[target], (USER,), tools, max_output_tokens=64, **fields), target)
    assert refusals(encoded, target, model=MODEL[target]) == ()
    return encoded.body, encoded.losses


def rules() -> Iterator[tuple[str, str, HostedRule]]:
    for target in FORMATS:
        for kind, rule in codec(target).profile.hosted.items():
            yield target, kind, rule


# ── definitions ───────────────────────────────────────────────────────────────────────────────────────────────


def example(kind: str, option: str | None = None) -> ir.ProviderTool:
    """A tool that no vendor's definition is behind, with one option."""
    fields: Json = {"server_url": "https://example.org"} if kind == "mcp" else {}
    fields |= {"stores": ("store_1",)} if kind == "file_search" else {}
    if option is not None:
        fields |= {option: EXAMPLES[ir.ProviderTool].fields[option][option]}
        fields |= {"max_results": 7} if option == "max_results" else {}
    return ir.ProviderTool("tool", **{**fields, "kind": kind})


@pytest.mark.parametrize(("target", "kind", "rule"), list(rules()))
def test_a_target_says_every_option_that_its_profile_names(target: str, kind: str, rule: HostedRule) -> None:
    _, losses = asked(target, example(kind))
    assert not losses
    for option in rule.options:
        tool = example(kind, option)
        body, losses = asked(target, tool)
        assert not losses, option
        assert all(mark in json.dumps(body) for mark in marks(getattr(tool, option))), option


@pytest.mark.parametrize("target", FORMATS)
@pytest.mark.parametrize("kind", KINDS)
def test_what_a_target_lacks_is_reported(target: str, kind: str) -> None:
    profile = codec(target).profile
    for option in (None, *OPTIONS):
        tool = example(kind, option)
        body, losses = asked(target, tool)
        rule = profile.hosted.get(kind)
        says_all = rule is not None and (option is None or option in rule.options)
        assert bool(losses) != says_all, (option, losses)
        if rule is None or (option in RESTRICTING and option not in rule.options):
            assert not body.get("tools"), option
            assert not body.get("toolConfig"), option


SEARCHES: dict[str, tuple[str, Json]] = {
    "anthropic-messages": ("tools", {"type": "web_search_20260209", "name": "web_search", "max_uses": None}),
    "openai-responses": ("tools", {"type": "web_search_preview"}),
    "gemini": ("tools", {"google_search": {}}),
    "vertex": ("tools", {"googleSearch": {}}),
    "bedrock-converse": ("toolConfig", {"systemTool": {"name": "nova_grounding"}}),
    "openai-chat": ("web_search_options", {}),
}


def body_of(source: str) -> Json:
    """A request in which the provider may search."""
    key, tool = SEARCHES[source]
    body: Json = dragoman.encode_request(ir.Request(MODEL[source], (USER,), max_output_tokens=64), source).body
    if key == "web_search_options":
        return body | {key: tool}
    return body | ({"toolConfig": {"tools": [tool]}} if key == "toolConfig" else {"tools": [tool]})


@pytest.mark.parametrize("target", SEARCHES)
@pytest.mark.parametrize("source", SEARCHES)
def test_a_search_crosses_between_all_vendors_that_have_one(source: str, target: str) -> None:
    body = body_of(source)
    assert dragoman.translate_request(body, source=source, target=source).body == body
    crossed = dragoman.translate_request(body, source=source, target=target, model=MODEL[target])
    assert refusals(crossed, target, model=MODEL[target]) == ()
    (tool,) = dragoman.decode_request(crossed.body, target).tools
    assert isinstance(tool, ir.ProviderTool)
    assert tool.kind == "web_search"
    assert not [loss for loss in crossed.losses if "tool" in loss.path]


OPTIONED: list[tuple[str, Json, Json]] = [
    (
        "anthropic-messages",
        {
            "type": "web_search_20250305",
            "name": "web_search",
            "max_uses": 5,
            "blocked_domains": ["b.com"],
            "user_location": {"type": "approximate", "city": "Paris", "country": "FR", "timezone": "Europe/Paris"},
        },
        {
            "max_uses": 5,
            "blocked_domains": ("b.com",),
            "location": ir.Location("FR", None, "Paris", "Europe/Paris"),
        },
    ),
    (
        "openai-responses",
        {
            "type": "web_search",
            "filters": {"allowed_domains": ["a.org"], "blocked_domains": ["b.com"]},
            "search_context_size": "low",
            "user_location": {"type": "approximate", "region": "IDF"},
        },
        {
            "allowed_domains": ("a.org",),
            "blocked_domains": ("b.com",),
            "context_size": "low",
            "location": ir.Location(region="IDF"),
        },
    ),
    # xAI
    ("openai-responses", {"type": "web_search", "excluded_domains": ["b.com"]}, {"blocked_domains": ("b.com",)}),
    ("vertex", {"googleSearch": {"excludeDomains": ["b.com"]}}, {"blocked_domains": ("b.com",)}),
    (
        "openai-chat",
        {"type": "openrouter:web_search", "parameters": {"max_uses": 3, "excluded_domains": ["b.com"]}},
        {"max_uses": 3, "blocked_domains": ("b.com",)},
    ),
    ("openai-chat", {"type": "web_search"}, {}),  # Mistral
    ("openai-chat", {"type": "browser_search"}, {}),  # Groq
]


@pytest.mark.parametrize(("source", "definition", "fields"), OPTIONED)
def test_the_options_of_a_search_are_fields(source: str, definition: Json, fields: Json) -> None:
    body = body_of(source)
    body.pop("web_search_options", None)
    (tool,) = dragoman.decode_request(body | {"tools": [definition]}, source).tools
    expected = ir.ProviderTool("", kind="web_search", **fields)
    for name in ("kind", *OPTIONS):
        assert getattr(tool, name) == getattr(expected, name), name


SETTINGS: list[tuple[Json, Json]] = [
    (
        {"web_search_options": {"search_context_size": "high", "user_location": {"approximate": {"country": "FR"}}}},
        {"context_size": "high", "location": ir.Location("FR")},
    ),
    (
        {"plugins": [{"id": "web", "include_domains": ["a.org"], "max_results": 3}]},
        {"allowed_domains": ("a.org",), "max_results": 3},
    ),
    (
        {"search_parameters": {"mode": "auto", "sources": [{"type": "web", "excluded_websites": ["b.com"]}]}},
        {"blocked_domains": ("b.com",)},
    ),
]


@pytest.mark.parametrize(("setting", "fields"), SETTINGS)
def test_a_setting_that_switches_a_search_on_is_a_tool(setting: Json, fields: Json) -> None:
    plain = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": [FUNCTION]}
    request = dragoman.decode_request(plain | setting, "openai-chat")
    tool = request.tools[-1]
    assert isinstance(tool, ir.ProviderTool)
    assert {name: getattr(tool, name) for name in fields} == fields
    assert dragoman.encode_request(request, "openai-chat").body == plain | setting
    losses = dragoman.translate_request(plain | setting, source="openai-chat", target="ollama-chat").losses
    assert [loss.path for loss in losses] == [f"$.{next(iter(setting))}"]


FUNCTION = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}


def test_without_a_location_openai_searches_from_nowhere() -> None:
    body, _ = asked("openai-responses", example("web_search"))
    assert body["tools"] == [{"type": "web_search", "user_location": {"type": "approximate"}}]


@pytest.mark.parametrize("name", ["openrouter", "groq", "mistral", "deepseek"])
def test_compatible_servers_get_their_own_entries(name: str) -> None:
    from dragoman.codecs.openai_chat import profile, request  # noqa: PLC0415
    from dragoman.losses import LossLog  # noqa: PLC0415
    from dragoman.passes.legalise import legalise  # noqa: PLC0415

    server = getattr(profile, name.upper())
    log = LossLog()
    asks = ir.Request("openai/gpt-oss-20b", (USER,), (example("web_search", "max_uses"),))
    body = request.encode_request(legalise(asks, server, log), log, server).body
    expected = {
        "openrouter": [{"type": "openrouter:web_search", "parameters": {"max_uses": 7321}}],
        "groq": [{"type": "browser_search"}],
    }
    assert body.get("tools") == expected.get(name)
    assert bool(log) == (name != "openrouter")


# ── choices ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("target", FORMATS)
def test_a_choice_goes_where_its_tool_goes(target: str) -> None:
    function = ir.ToolDefinition("f", parameters={"type": "object", "properties": {}})
    rule = codec(target).profile.hosted.get("web_search")
    is_named = rule is not None and rule.name is not None
    for choice in (ir.ToolChoice("required", ("tool",)), ir.ToolChoice("auto", ("f", "tool"))):
        body, losses = asked(target, function, example("web_search"), tool_choice=choice)
        assert ("choice of 'tool'" in {loss.what for loss in losses}) != is_named
        assert '"name": "tool"' not in json.dumps(body)


def test_a_chosen_search_is_named_as_the_target_names_it() -> None:
    forced = ir.ToolChoice("required", ("tool",))
    body, _ = asked("openai-responses", example("web_search"), tool_choice=forced)
    allowed = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "web_search"}]}
    assert body["tool_choice"] == allowed
    body, _ = asked("openai-responses", example("code_execution"), tool_choice=forced)
    assert body["tool_choice"] == {"type": "code_interpreter"}
    body, _ = asked("anthropic-messages", example("web_search"), tool_choice=forced)
    assert body["tool_choice"] == {"type": "tool", "name": "web_search"}
    server = asked("openai-responses", example("mcp"), tool_choice=forced)[0]["tool_choice"]
    assert server == {"type": "mcp", "server_label": "tool"}


# ── histories ─────────────────────────────────────────────────────────────────────────────────────────────────

CALL = ir.ServerToolCall("s1", "web_search", kind="web_search", input={"query": "rain"})
FOUND = ir.ServerToolResult(
    "s1", "web_search", kind="web_search", sources=(ir.Citation("https://a.org", "Rain", "It will rain"),)
)
AS_TEXT = '[web_search called with {"query":"rain"}]', "[web_search returned]\n- Rain <https://a.org>: It will rain"


@pytest.mark.parametrize("target", FORMATS)
def test_what_another_provider_ran_reaches_the_model_as_text(target: str) -> None:
    said = ir.Message("assistant", (ir.Text("Let me see."), CALL, FOUND, ir.Text("Yes.")))
    encoded = dragoman.encode_request(ir.Request(MODEL[target], (USER, said, USER)), target)
    assert refusals(encoded, target, model=MODEL[target]) == ()
    turns = dragoman.decode_request(encoded.body, target).messages[1:-1]
    told = "\n".join(turn.text for turn in turns)
    assert [told.find(text) for text in AS_TEXT] == sorted(told.find(text) for text in AS_TEXT)
    assert -1 not in [told.find(text) for text in ("Let me see.", *AS_TEXT, "Yes.")]
    assert [loss.severity for loss in encoded.losses if "parts" in loss.path] == ["degraded", "degraded"]


def test_a_failed_call_says_why() -> None:
    failed = ir.ServerToolResult("s1", "ask", kind="mcp", parts=(ir.Text("no route"),), error="timeout")
    assert hosted_text(failed) == "[ask failed: timeout]\nno route"
    assert (
        hosted_text(ir.ServerToolCall("s1", "ask", kind="mcp", input={}, server="docs")) == "[docs.ask called with {}]"
    )
    assert hosted_text(ir.ServerToolResult("s1", "ask")) is None


# ── answers ───────────────────────────────────────────────────────────────────────────────────────────────────

CODE = ir.ServerToolCall("c1", "code", kind="code_execution", input={"code": "print(1)"})
RAN = ir.ServerToolResult("c1", "code", kind="code_execution", parts=(ir.Text("1"),))
ASK = ir.ServerToolCall("m1", "ask", kind="mcp", input={"q": 1}, server="docs")
TOLD = ir.ServerToolResult("m1", "ask", kind="mcp", parts=(ir.Text("because"),))
FETCH = ir.ServerToolCall("f1", "web_fetch", kind="web_fetch", input={"url": "https://a.org"})
PAGE = ir.ServerToolResult(
    "f1", "web_fetch", kind="web_fetch", parts=(ir.Text("page"),), sources=(ir.Citation("https://a.org"),)
)
LOOK = ir.ServerToolCall("q1", "file_search", kind="file_search", input={"queries": ["rain"]})
FILES = ir.ServerToolResult("q1", "file_search", kind="file_search", sources=(ir.Citation(None, "a.pdf", "wet"),))
PAIRS = {
    "web_search": (CALL, FOUND),
    "code_execution": (CODE, RAN),
    "mcp": (ASK, TOLD),
    "web_fetch": (FETCH, PAGE),
    "file_search": (LOOK, FILES),
}
SHOWN = {
    "anthropic-messages": {"web_search", "code_execution", "mcp", "web_fetch"},
    "openai-responses": {"web_search", "code_execution", "mcp", "web_fetch", "file_search"},
    "gemini": {"code_execution"},
    "vertex": {"code_execution"},
    "bedrock-converse": {"web_search", "code_execution"},
    "openai-chat": set(),
    "ollama-chat": set(),
}


def complete(*parts: ir.AnyPart) -> ir.Completion:
    message = ir.Message("assistant", parts)
    return ir.Completion((message,), ir.Finish("stop"), ir.Usage(3, 4), "id_1", "some-model", 1)


def streamed(target: str, *parts: ir.AnyPart) -> tuple[bytes, tuple[Loss, ...]]:
    events: list[ir.AnyEvent] = [ir.StreamStart("id_1", "some-model")]
    for index, part in enumerate(parts):
        events += [ir.PartStart(index, part), ir.PartEnd(index)]
    encoder = dragoman.StreamEncoder(target)
    body = encoder.encode([*events, ir.UsageUpdate(ir.Usage(3, 4)), ir.Finished(ir.Finish("stop"))]) + encoder.close()
    return body, encoder.losses


def read_stream(target: str, body: bytes) -> ir.Completion:
    decoder = dragoman.StreamDecoder(target)
    return dragoman.accumulate([*decoder.feed(body), *decoder.close()])


@pytest.mark.parametrize("way", ["whole", "streamed"])
@pytest.mark.parametrize("kind", PAIRS)
@pytest.mark.parametrize("target", FORMATS)
def test_a_client_sees_what_its_format_has_an_item_for(target: str, kind: str, way: str) -> None:
    call, result = PAIRS[kind]
    if way == "streamed":
        body, losses = streamed(target, call, result, ir.Text("Yes."))
        read = read_stream(target, body)
    else:
        encoded = dragoman.encode_response(complete(call, result, ir.Text("Yes.")), target)
        read, losses = dragoman.decode_response(encoded.body, target), encoded.losses
    severities = {loss.severity for loss in losses if "run by the provider" in loss.what}
    parts = [part for part in read.messages[0].parts if isinstance(part, ir.ServerToolCall | ir.ServerToolResult)]
    assert read.text == "Yes."
    if kind not in SHOWN[target]:
        assert (severities, parts) == ({"dropped"}, [])
        return
    assert severities == {"degraded"}
    assert [part.kind for part in parts] == [kind] * len(parts)
    called, returned = parts
    assert isinstance(called, ir.ServerToolCall)
    assert isinstance(returned, ir.ServerToolResult)
    assert called.id == returned.tool_call_id
    assert FORGED in called.id
    shown = json.dumps(call.input).strip('{}"').split('"')[-1].strip("]: ")
    assert shown in json.dumps(called.input)


@pytest.mark.parametrize("kind", PAIRS)
def test_strict_clients_read_the_items(kind: str) -> None:
    parts = (*PAIRS[kind], ir.Text("Yes.", (ir.Citation("https://a.org", "A", start=0, end=3),)))
    body = dragoman.encode_response(complete(*parts), "anthropic-messages").body
    if kind in SHOWN["anthropic-messages"] - {"mcp"}:  # MCP is in the types of the beta only
        anthropic.types.Message.model_validate(body, strict=True)
    body = dragoman.encode_response(complete(*parts), "openai-responses").body
    output = Response.model_validate(body).output
    assert type(output[0]).__name__ != "BaseModel"
    google.GenerateContentResponse.model_validate(dragoman.encode_response(complete(*parts), "gemini").body)


@pytest.mark.parametrize("target", ["anthropic-messages", "openai-responses", "bedrock-converse", "gemini"])
def test_an_item_of_ours_never_reaches_the_provider_as_its_own(target: str) -> None:
    """The client sends back what it was shown, and the next model is of the client's own vendor."""
    answered = dragoman.decode_response(
        dragoman.encode_response(complete(CODE, RAN, ir.Text("Yes.")), target).body, target
    )
    request = ir.Request(MODEL[target], (USER, *answered.messages, USER), max_output_tokens=64, origin=FAMILY[target])
    encoded = dragoman.encode_request(request, target)
    sent = encoded.json().decode()
    assert FORGED not in sent
    assert re.search(r"\[\w* called with", sent) is not None


# ── recorded ──────────────────────────────────────────────────────────────────────────────────────────────────

FILES_OF = {
    "anthropic-messages": "anthropic-messages",
    "openai-responses": "openai-responses",
    "gemini": "gemini-generate",
}


@pytest.mark.parametrize("source", FILES_OF)
def test_recorded_calls_reach_every_other_vendor(source: str, recordings: Callable[[str], Iterator[Record]]) -> None:
    seen = 0
    for record in share(recordings(FILES_OF[source]), source):
        if record.status >= 400 or not isinstance(record.response, dict) or record.endpoint.endswith("count_tokens"):
            continue
        try:
            answer = dragoman.decode_response(record.response, source)
        except dragoman.DragomanError:
            continue
        hosted = [p for m in answer.messages for p in m.parts if isinstance(p, ir.ServerToolCall | ir.ServerToolResult)]
        if not hosted:
            continue
        seen += 1
        for target in ("openai-chat", "anthropic-messages", "gemini"):
            if FAMILY[target] == FAMILY[source]:
                continue
            sent = ir.Request("some-model", (USER, *answer.messages, USER))
            encoded = dragoman.encode_request(sent, target)
            told = "".join(message.text for message in dragoman.decode_request(encoded.body, target).messages)
            for part in hosted:
                text = hosted_text(part)
                assert text is None or text.strip() in told
            assert dragoman.encode_response(answer, target).json()
    assert seen >= 5
