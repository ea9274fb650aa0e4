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
from dragoman.loss import Loss
from dragoman.passes.provider_tools import OPTIONS, RESTRICTING
from dragoman.profile import HostedRule
from tests.support.cases import each
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


def encoded_request(target: str, *tools: ir.AnyTool, **fields: Any) -> tuple[Json, tuple[Loss, ...]]:
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


@each(("target", "kind", "rule"), list(rules()))
def test_a_target_says_every_option_that_its_profile_names(target: str, kind: str, rule: HostedRule) -> None:
    _, losses = encoded_request(target, example(kind))
    assert not losses
    for option in rule.options:
        tool = example(kind, option)
        body, losses = encoded_request(target, tool)
        assert not [loss for loss in losses if loss.refusable], option
        assert all(mark in json.dumps(body) for mark in marks(getattr(tool, option))), option


@each("target", FORMATS)
@each("kind", KINDS)
def test_what_a_target_lacks_is_reported(target: str, kind: str) -> None:
    profile = codec(target).profile
    for option in (None, *OPTIONS):
        tool = example(kind, option)
        body, losses = encoded_request(target, tool)
        rule = profile.hosted.get(kind)
        says_all = rule is not None and (option is None or option in rule.options)
        if option == "max_uses" and rule is not None and profile.limits_all_calls:
            says_all = kind != "tool_search"  # a search among the tools themselves is not counted
            assert ("max_tool_calls" in body) == says_all
        assert any(loss.refusable for loss in losses) != says_all, (option, losses)
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


@each("target", SEARCHES)
@each("source", SEARCHES)
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
    body, _ = encoded_request("openai-responses", example("web_search"))
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
        body, losses = encoded_request(target, function, example("web_search"), tool_choice=choice)
        assert ("choice of 'tool'" in {loss.what for loss in losses}) != is_named
        assert '"name": "tool"' not in json.dumps(body)


def test_a_chosen_search_is_named_as_the_target_names_it() -> None:
    forced = ir.ToolChoice("required", ("tool",))
    body, _ = encoded_request("openai-responses", example("web_search"), tool_choice=forced)
    allowed = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "web_search"}]}
    assert body["tool_choice"] == allowed
    body, _ = encoded_request("openai-responses", example("code_execution"), tool_choice=forced)
    assert body["tool_choice"] == {"type": "code_interpreter"}
    body, _ = encoded_request("anthropic-messages", example("web_search"), tool_choice=forced)
    assert body["tool_choice"] == {"type": "tool", "name": "web_search"}
    server = encoded_request("openai-responses", example("mcp"), tool_choice=forced)[0]["tool_choice"]
    assert server == {"type": "mcp", "server_label": "tool"}


# ── histories ─────────────────────────────────────────────────────────────────────────────────────────────────

CALL = ir.ServerToolCall("s1", "web_search", kind="web_search", input={"query": "rain"})
FOUND = ir.ServerToolResult(
    "s1", "web_search", kind="web_search", sources=(ir.Citation("https://a.org", "Rain", "It will rain"),)
)
AS_TEXT = '[web_search called with {"query":"rain"}]', "[web_search returned]\n- Rain <https://a.org>: It will rain"


@pytest.mark.parametrize("target", FORMATS)
def test_what_another_provider_ran_reaches_the_model_as_text(target: str) -> None:
    message = ir.Message("assistant", (ir.Text("Let me see."), CALL, FOUND, ir.Text("Yes.")))
    encoded = dragoman.encode_request(ir.Request(MODEL[target], (USER, message, USER)), target)
    assert refusals(encoded, target, model=MODEL[target]) == ()
    turns = dragoman.decode_request(encoded.body, target).messages[1:-1]
    texts_there = "\n".join(turn.text for turn in turns)
    assert [texts_there.find(text) for text in AS_TEXT] == sorted(texts_there.find(text) for text in AS_TEXT)
    assert -1 not in [texts_there.find(text) for text in ("Let me see.", *AS_TEXT, "Yes.")]
    assert [loss.severity for loss in encoded.losses if "parts" in loss.path] == ["degraded", "degraded"]


@pytest.mark.parametrize("target", FORMATS)
def test_text_about_a_hosted_call_does_not_separate_a_call_from_its_result(target: str) -> None:
    """Gemini calls a function and searches in one turn; Claude refuses text behind a call."""
    called = ir.Message("assistant", (ir.ToolCall("c1", "look", {}), CALL, FOUND))
    answered = ir.Message("tool", (ir.ToolResult("c1", "look", "text", "4"),))
    request = ir.Request(MODELS[target], (USER, called, answered), (ir.ToolDefinition("look"),))
    encoded = dragoman.encode_request(request, target)
    assert refusals(encoded, target, model=MODELS[target]) == ()
    turns = dragoman.decode_request(encoded.body, target).messages
    assert all(any(text in turn.text for turn in turns) for text in AS_TEXT)
    assert [result.value for turn in turns for result in turn.tool_results] == ["4"]


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
ANSWERED = ir.ServerToolResult("m1", "ask", kind="mcp", parts=(ir.Text("because"),))
FETCH = ir.ServerToolCall("f1", "web_fetch", kind="web_fetch", input={"url": "https://a.org"})
PAGE = ir.ServerToolResult(
    "f1", "web_fetch", kind="web_fetch", parts=(ir.Text("page"),), sources=(ir.Citation("https://a.org"),)
)
LOOK = ir.ServerToolCall("q1", "file_search", kind="file_search", input={"queries": ["rain"]})
FILES = ir.ServerToolResult("q1", "file_search", kind="file_search", sources=(ir.Citation(None, "a.pdf", "wet"),))
PAIRS = {
    "web_search": (CALL, FOUND),
    "code_execution": (CODE, RAN),
    "mcp": (ASK, ANSWERED),
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


@each("way", ["whole", "streamed"])
@each("kind", PAIRS)
@each("target", SHOWN)
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
            texts_there = "".join(message.text for message in dragoman.decode_request(encoded.body, target).messages)
            for part in hosted:
                text = hosted_text(part)
                drawn = [one for one in getattr(part, "parts", ()) if isinstance(one, ir.Image) and one.data]
                if part.kind == "image_generation" and drawn and target == "gemini":
                    assert str(drawn[0].data) in encoded.json().decode()
                else:
                    assert text is None or text.strip() in texts_there
            assert dragoman.encode_response(answer, target).json()
    assert seen >= 5


# ── tools that the client runs ────────────────────────────────────────────────────────────────────────────────

CLIENT_RUN: dict[str, list[Json]] = {
    "anthropic-messages": [
        {"type": "bash_20250124", "name": "bash"},
        {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool", "max_characters": 9},
        {"type": "memory_20250818", "name": "memory"},
        {"type": "computer_20250124", "name": "computer", "display_width_px": 1024, "display_height_px": 768},
    ],
    "openai-responses": [
        {"type": "shell"},
        {"type": "local_shell"},
        {"type": "apply_patch"},
        {"type": "computer_use_preview", "display_width": 1024, "display_height": 768, "environment": "browser"},
    ],
    "gemini": [{"computerUse": {"environment": "ENVIRONMENT_BROWSER"}}],
}


@promise("core:client-run-tools")
@each("target", FORMATS)
@each("source", CLIENT_RUN)
def test_tools_that_the_client_runs_are_functions_elsewhere(source: str, target: str) -> None:
    body = dragoman.encode_request(ir.Request(MODEL[source], (USER,), max_output_tokens=64), source).body
    body |= {"tools": CLIENT_RUN[source]}
    encoded = dragoman.translate_request(body, source=source, target=target, model=MODEL[target])
    if FAMILY[source] == FAMILY[target]:
        assert encoded.body["tools"] == CLIENT_RUN[source]
        return
    if {source, target} == {"gemini", "gemini-interactions"}:
        return  # the same vendor's tool under another key
    assert refusals(encoded, target, model=MODEL[target]) == ()
    declared = dragoman.decode_request(body, source).tools
    functions = [one for tool in declared if isinstance(tool, ir.ProviderTool) for one in tool.functions]
    there = dragoman.decode_request(encoded.body, target).tools
    assert all(type(tool) is ir.ToolDefinition for tool in there)
    assert [tool.name for tool in there] == [function.name for function in functions]
    assert len(there) >= len(CLIENT_RUN[source])
    assert {loss.severity for loss in encoded.losses if ".tools" in loss.path} == {"degraded"}


ITEMS: dict[str, tuple[Json, Json, Json]] = {
    "shell": (
        {"type": "shell"},
        {"type": "shell_call", "call_id": "call_1", "status": "completed", "action": {"commands": ["ls"]}},
        {
            "type": "shell_call_output",
            "call_id": "call_1",
            "output": [{"stdout": "a.txt", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
        },
    ),
    "local_shell": (
        {"type": "local_shell"},
        {
            "type": "local_shell_call",
            "id": "lsh_1",
            "call_id": "call_1",
            "status": "completed",
            "action": {"type": "exec", "command": ["ls"], "env": {}},
        },
        {"type": "local_shell_call_output", "id": "call_1", "output": "a.txt"},
    ),
    "apply_patch": (
        {"type": "apply_patch"},
        {
            "type": "apply_patch_call",
            "call_id": "call_1",
            "status": "completed",
            "operation": {"type": "create_file", "path": "a.txt", "diff": "+a"},
        },
        {"type": "apply_patch_call_output", "call_id": "call_1", "status": "completed", "output": "wrote a.txt"},
    ),
    "computer_use_preview": (
        {"type": "computer_use_preview", "display_width": 1024, "display_height": 768, "environment": "browser"},
        {
            "type": "computer_call",
            "id": "cu_1",
            "call_id": "call_1",
            "status": "completed",
            "pending_safety_checks": [],
            "action": {"type": "screenshot"},
        },
        {
            "type": "computer_call_output",
            "call_id": "call_1",
            "output": {"type": "computer_screenshot", "image_url": "data:image/png;base64,AAAA"},
        },
    ),
}


@promise("core:client-run-tools")
@pytest.mark.parametrize("name", ITEMS)
def test_their_items_are_calls_and_results(name: str) -> None:
    tool, call, output = ITEMS[name]
    body = {"model": "gpt-5.1", "input": [{"role": "user", "content": "go"}, call, output], "tools": [tool]}
    request = dragoman.decode_request(body, "openai-responses")
    (call_there,), (result,) = request.messages[1].tool_calls, request.messages[2].tool_results
    assert (call_there.name, result.name, result.tool_call_id) == (name, name, call_there.id)
    assert dragoman.encode_request(request, "openai-responses").body == body
    for target in ("anthropic-messages", "openai-chat", "gemini", "bedrock-converse", "ollama-chat"):
        crossed = dragoman.translate_request(body, source="openai-responses", target=target, model=MODELS[target])
        assert refusals(crossed, target, model=MODELS[target]) == ()
        (there,) = (
            one for message in dragoman.decode_request(crossed.body, target).messages for one in message.tool_calls
        )
        assert (there.name, there.arguments) == (name, call_there.arguments)
    # What the model of another vendor calls returns to the client as the item it knows, whole and streamed.
    plain = ir.ToolCall("call_1", name, call_there.arguments)
    asked_for = {key: value for key, value in call.items() if key in {"type", "call_id", "action", "operation"}}
    completion = ir.Completion((ir.Message("assistant", (plain,)),), ir.Finish("tool_calls"), ir.Usage(1, 1), "i", "m")
    whole = dragoman.encode_response(completion, "openai-responses", request=request).body
    assert {key: whole["output"][0].get(key) for key in asked_for} == asked_for
    Response.model_validate(whole)
    claude = dragoman.encode_response(completion, "anthropic-messages").json()
    again = dragoman.translate_response(
        claude, source="anthropic-messages", target="openai-responses", request=request
    ).body
    assert again["output"][0]["type"] == call["type"]
    translator = dragoman.StreamTranslator(source="anthropic-messages", target="openai-responses", request=request)
    pieces = b"".join([translator.feed(streamed("anthropic-messages", plain)[0]), translator.close()])
    (part,) = read_stream("openai-responses", pieces).messages[0].parts
    assert isinstance(part, ir.ToolCall)
    assert (part.name, part.arguments) == (name, call_there.arguments)
    assert f'"type":"{call["type"]}"' in pieces.decode()


@promise("core:client-run-tools")
def test_an_agent_answers_such_a_call_in_its_own_form() -> None:
    for name, (tool, call, output) in ITEMS.items():
        answer = {"id": "r", "object": "response", "status": "completed", "model": "m", "output": [call]}
        message = dragoman.decode_response(answer, "openai-responses").messages[0]
        (asked_for,) = message.tool_calls
        screen = ir.Image("image/png", "AAAA")
        result = (
            ir.ToolResult(asked_for.id, name, "multimodal", None, (screen,))
            if name.startswith("computer")
            else ir.ToolResult(asked_for.id, name, "text", "wrote a.txt" if name == "apply_patch" else "a.txt")
        )
        declared = dragoman.decode_request({"model": "m", "input": "go", "tools": [tool]}, "openai-responses").tools
        request = ir.Request("m", (USER, message, ir.Message("tool", (result,))), declared)
        assert dragoman.encode_request(request, "openai-responses").body["input"][1:] == [call, output]


# ── namespaces, and tools given later ─────────────────────────────────────────────────────────────────────────

SPAWN = {
    "type": "function",
    "name": "spawn",
    "description": "Spawns.",
    "parameters": {"type": "object"},
    "strict": False,
}
NOTE = {"type": "custom", "name": "note", "description": "Takes a note."}
AGENTS = {"type": "namespace", "name": "agents", "description": "Agents.", "tools": [SPAWN, NOTE]}
LATER = {"type": "additional_tools", "role": "developer", "tools": [{**SPAWN, "name": "late"}, {"type": "web_search"}]}
SPACED: Json = {
    "model": "gpt-5.4",
    "input": [
        {"role": "user", "content": "go"},
        {"type": "function_call", "call_id": "c1", "name": "spawn", "namespace": "agents", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "done"},
        LATER,
        {"role": "user", "content": "on"},
    ],
    "tools": [AGENTS, {**SPAWN, "name": "f"}],
}


@promise("core:client-run-tools")
@pytest.mark.parametrize("target", FORMATS)
def test_namespaces_and_later_tools_cross(target: str) -> None:
    crossed = dragoman.translate_request(SPACED, source="openai-responses", target=target, model=MODEL[target])
    assert refusals(crossed, target, model=MODEL[target]) == ()
    if target == "openai-responses":
        assert crossed.body == {**SPACED, "model": MODEL[target]}
        return
    there = dragoman.decode_request(crossed.body, target)
    names = {tool.name for tool in there.tools if isinstance(tool, ir.ToolDefinition)}
    assert names == {"agents__spawn", "agents__note", "f", "late"}
    (call,) = (call for message in there.messages for call in message.tool_calls)
    assert call.name == "agents__spawn"
    assert "$.input[3].tools[0]" in {loss.path for loss in crossed.losses}
    assert not [loss for loss in crossed.losses if loss.path.startswith("$.input[1]")]


@promise("core:client-run-tools")
def test_calls_return_to_their_namespace() -> None:
    request = dragoman.decode_request(SPACED, "openai-responses")
    calls = (
        ir.ToolCall("c1", "agents__spawn", {"n": 1}),
        ir.ToolCall("c2", "agents__note", {"input": "milk"}),
        ir.ToolCall("c3", "f", {}),
    )
    completion = ir.Completion((ir.Message("assistant", calls),), ir.Finish("tool_calls"), ir.Usage(1, 1), "i", "m")
    output = dragoman.encode_response(completion, "openai-responses", request=request).body["output"]
    assert [(item["type"], item["name"], item.get("namespace")) for item in output] == [
        ("function_call", "spawn", "agents"),
        ("custom_tool_call", "note", "agents"),
        ("function_call", "f", None),
    ]
    assert output[1]["input"] == "milk"
    translator = dragoman.StreamTranslator(source="anthropic-messages", target="openai-responses", request=request)
    body = b"".join([translator.feed(streamed("anthropic-messages", *calls)[0]), translator.close()])
    read = read_stream("openai-responses", body).messages[0].tool_calls
    assert [(call.name, call.custom) for call in read] == [
        ("agents__spawn", False),
        ("agents__note", True),
        ("f", False),
    ]
    assert body.count(b'"namespace":"agents"') >= 2


@promise("core:client-run-tools")
def test_members_of_a_toolset_are_functions_with_the_name_of_the_set() -> None:
    click = {"type": "tool_use", "id": "t1", "name": "left_click", "toolset_name": "computer", "input": {}}
    shown = {"type": "tool_result", "tool_use_id": "t1", "toolset_name": "computer", "content": "ok"}
    toolset = {"type": "computer_toolset_20260801", "configs": {"zoom": {"enabled": False}}}
    body = {
        "model": "claude-opus-5",
        "max_tokens": 64,
        "messages": [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": [click]},
            {"role": "user", "content": [shown]},
        ],
        "tools": [toolset],
    }
    request = dragoman.decode_request(body, "anthropic-messages")
    assert dragoman.encode_request(request, "anthropic-messages").body == body
    there = dragoman.translate_request(body, source="anthropic-messages", target="openai-chat").body
    names = {tool["function"]["name"] for tool in there["tools"]}
    assert {"computer__left_click", "computer__type"} <= names
    assert "computer__zoom" not in names
    assert there["messages"][1]["tool_calls"][0]["function"]["name"] == "computer__left_click"
    call = ir.ToolCall("t2", "computer__type", {"text": "hi"})
    completion = ir.Completion((ir.Message("assistant", (call,)),), ir.Finish("tool_calls"), ir.Usage(1, 1), "i", "m")
    (block,) = dragoman.encode_response(completion, "anthropic-messages", request=request).body["content"]
    assert (block["name"], block["toolset_name"]) == ("type", "computer")
    translator = dragoman.StreamTranslator(source="openai-responses", target="anthropic-messages", request=request)
    pieces = b"".join([translator.feed(streamed("openai-responses", call)[0]), translator.close()])
    (part,) = read_stream("anthropic-messages", pieces).messages[0].tool_calls
    assert part.name == "computer__type"
    assert b'"toolset_name":"computer"' in pieces


def test_where_no_tool_is_left_the_called_ones_are_declared() -> None:
    call, result = ir.ToolCall("c1", "f", {}), ir.ToolResult("c1", "f", "text", "ok")
    messages = (USER, ir.Message("assistant", (call,)), ir.Message("tool", (result,)))
    request = ir.Request(MODELS["bedrock-converse"], messages, (example("web_search"),), max_output_tokens=64)
    encoded = dragoman.encode_request(request, "bedrock-converse")
    assert refusals(encoded, "bedrock-converse", model=MODELS["bedrock-converse"]) == ()


# ── MCP servers ───────────────────────────────────────────────────────────────────────────────────────────────

CLAUDE_SERVER: Json = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 64,
    "messages": [{"role": "user", "content": "hi"}],
    "mcp_servers": [{"type": "url", "url": "https://example.org/mcp", "name": "docs", "authorization_token": "tok"}],
    "tools": [
        {
            "type": "mcp_toolset",
            "mcp_server_name": "docs",
            "default_config": {"enabled": False},
            "configs": {"ask": {"enabled": True}},
        }
    ],
}
OPENAI_SERVER: Json = {
    "type": "mcp",
    "server_label": "docs",
    "server_url": "https://example.org/mcp",
    "authorization": "tok",
    "allowed_tools": ["ask"],
    "require_approval": "never",
}


def test_a_server_of_claude_is_a_server_of_openai_and_back() -> None:
    there = dragoman.translate_request(CLAUDE_SERVER, source="anthropic-messages", target="openai-responses")
    assert there.body["tools"] == [OPENAI_SERVER]
    assert refusals(there, "openai-responses", model=MODELS["openai-responses"]) == ()
    assert {loss.severity for loss in there.losses} == {"noted"}  # that the token is sent on
    back = dragoman.translate_request(
        {**there.body, "max_output_tokens": 64}, source="openai-responses", target="anthropic-messages"
    )
    assert {key: back.body[key] for key in ("mcp_servers", "tools")} == {
        key: CLAUDE_SERVER[key] for key in ("mcp_servers", "tools")
    }
    assert back.headers["anthropic-beta"] == "mcp-client-2025-11-20"
    assert refusals(back, "anthropic-messages", model=MODELS["anthropic-messages"]) == ()
    same = dragoman.translate_request(CLAUDE_SERVER, source="anthropic-messages", target="anthropic-messages")
    assert same.body == CLAUDE_SERVER


def test_a_server_whose_calls_must_be_approved_does_not_cross_to_one_that_never_asks() -> None:
    for approval in ({}, {"require_approval": "always"}, {"require_approval": {"never": {"read_only": True}}}):
        tool = {key: value for key, value in OPENAI_SERVER.items() if key != "require_approval"} | approval
        body = {
            "model": "gpt-5.1",
            "input": "hi",
            "tools": [tool],
            "tool_choice": {"type": "mcp", "server_label": "docs"},
        }
        for target in ("anthropic-messages", "gemini"):
            crossed = dragoman.translate_request(body, source="openai-responses", target=target, model=MODELS[target])
            assert "mcp_servers" not in crossed.body
            assert not crossed.body.get("tools")
            assert {"$.tools[0]", "$.tool_choice"} <= {loss.path for loss in crossed.losses}


def test_a_bearer_token_among_the_headers_is_the_authorization() -> None:
    server = {
        "name": "docs",
        "streamableHttpTransport": {"url": "https://e.org", "headers": {"Authorization": "Bearer t"}},
    }
    body = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}], "tools": [{"mcpServers": [server]}]}
    there = dragoman.translate_request(
        body, source="gemini", target="anthropic-messages", model="claude-sonnet-4-5"
    ).body
    assert there["mcp_servers"] == [{"type": "url", "url": "https://e.org", "name": "docs", "authorization_token": "t"}]


APPROVALS: list[Json] = [
    {
        "type": "mcp_approval_request",
        "id": "mcpr_1",
        "server_label": "dice",
        "name": "roll",
        "arguments": '{"n":1}',
    },
    {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": False, "reason": "too risky"},
]
ANSWER = {"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "gpt-5.1"}
OTHERS = [target for target in FORMATS if target != "openai-responses"]
TO_APPROVE = {"approval_request_id": "mcpr_1", "server_label": "dice", "name": "roll", "arguments": {"n": 1}}


@pytest.mark.parametrize("target", FORMATS)
def test_approvals_in_a_history_are_a_call_and_its_result_elsewhere(target: str) -> None:
    items = [{"role": "user", "content": "Roll."}, *APPROVALS, {"role": "user", "content": "Go on."}]
    body = {"model": "gpt-5.1", "input": items}
    crossed = dragoman.translate_request(body, source="openai-responses", target=target, model=MODELS[target])
    if target == "openai-responses":
        assert crossed.body["input"] == items
        return
    assert refusals(crossed, target, model=MODELS[target]) == ()
    turns = dragoman.decode_request(crossed.body, target).messages
    assert [call.arguments for turn in turns for call in turn.tool_calls] == [TO_APPROVE]
    (result,) = [result for turn in turns for result in turn.tool_results]
    answer = result.value if isinstance(result.value, dict) else json.loads(result.value)
    assert answer == {"approve": False, "reason": "too risky"}


def asked_for_approval(target: str, *, streams: bool) -> ir.Completion:
    """What a client of `target` reads when the answer of Responses asks for an approval."""
    if not streams:
        body = {**ANSWER, "output": APPROVALS[:1]}
        encoded = dragoman.translate_response(body, source="openai-responses", target=target)
        return dragoman.decode_response(encoded.json(), target)
    events: list[Json] = [
        {"type": "response.created", "response": {**ANSWER, "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": APPROVALS[0]},
        {"type": "response.output_item.done", "output_index": 0, "item": APPROVALS[0]},
        {"type": "response.completed", "response": {**ANSWER, "output": APPROVALS[:1]}},
    ]
    translator = dragoman.StreamTranslator(source="openai-responses", target=target)
    out = b"".join(translator.feed(f"data: {json.dumps(event)}\n\n".encode()) for event in events)
    return read_stream(target, out + translator.close())


@each("streams", [False, True], ids=["whole", "streamed"])
@each("target", OTHERS)
def test_an_approval_that_is_asked_for_is_a_call_to_every_client(target: str, *, streams: bool) -> None:
    answer = asked_for_approval(target, streams=streams)
    assert [(call.name, call.arguments) for call in answer.tool_calls] == [("mcp_approval_request", TO_APPROVE)]
    assert answer.finish_reason == "tool_calls"


WORDS: list[tuple[str, Json]] = [
    ('{"approve": true}', {"approve": True}),
    ('{"approve": true, "reason": "fine"}', {"approve": True, "reason": "fine"}),
    ('{"approve": false, "reason": "no"}', {"approve": False, "reason": "no"}),
    ("No such tool: mcp_approval_request", {"approve": False, "reason": "No such tool: mcp_approval_request"}),
    ("approved", {"approve": False, "reason": "approved"}),
    ('{"approve": "true"}', {"approve": False}),
    ("", {"approve": False}),
]


@each("streams", [False, True], ids=["whole", "streamed"])
@each("target", OTHERS)
def test_every_client_can_answer_an_approval(target: str, *, streams: bool) -> None:
    """The client sends its history back with a result; Responses gets the request as it was, and the approval."""
    answer = asked_for_approval(target, streams=streams)
    (call,) = answer.tool_calls
    for text, expected in WORDS:
        turns = (USER, answer.messages[0], ir.Message("tool", (ir.ToolResult(call.id, call.name, "text", text),)))
        history = dragoman.encode_request(ir.Request("gpt-5.1", turns, max_output_tokens=64), target).json()
        back = dragoman.translate_request(history, source=target, target="openai-responses", model="gpt-5.1")
        assert refusals(back, "openai-responses", model="gpt-5.1") == ()
        request, response = back.body["input"][-2:]
        assert request == APPROVALS[0]
        assert response == {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", **expected}, text


def test_an_error_never_approves() -> None:
    call = ir.ToolCall("mcpr_1", "mcp_approval_request", TO_APPROVE)
    failed = ir.ToolResult.error(call, '{"approve": true}')
    turns = (USER, ir.Message("assistant", (call,)), ir.Message("tool", (failed,)))
    body = dragoman.encode_request(ir.Request("gpt-5.1", turns), "openai-responses").body
    assert body["input"][-1]["approve"] is False


def test_a_function_of_that_name_without_a_request_stays_a_function() -> None:
    call = ir.ToolCall("call_1", "mcp_approval_request", {"what": "lunch"})
    turns = (USER, ir.Message("assistant", (call,)), ir.Message("tool", (ir.ToolResult.text(call, "yes"),)))
    body = dragoman.encode_request(ir.Request("gpt-5.1", turns), "openai-responses").body
    assert [item["type"] for item in body["input"][1:]] == ["function_call", "function_call_output"]


# ── tools that are looked up ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("target", FORMATS)
def test_deferred_tools_wait_where_the_model_can_look_them_up(target: str) -> None:
    later = ir.ToolDefinition("later", parameters={"type": "object", "properties": {}}, deferred=True)
    now = ir.ToolDefinition("now", parameters={"type": "object", "properties": {}})
    for tools in ((now, later), (now, later, example("tool_search"))):
        encoded = dragoman.encode_request(
            ir.Request(
                "gpt-5.4" if target == "openai-responses" else MODEL[target], (USER,), tools, max_output_tokens=64
            ),
            target,
        )
        assert refusals(encoded, target) == ()
        (there,) = (tool for tool in dragoman.decode_request(encoded.body, target).tools if tool.name == "later")
        waits = len(tools) == 3 and "tool_search" in codec(target).profile.hosted
        assert getattr(there, "deferred", None) == (True if waits else None)
        assert any("deferred" in loss.what for loss in encoded.losses) != waits


# ── counts ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_searches_are_counted_wherever_an_api_counts_them() -> None:
    usage = {"input_tokens": 3, "output_tokens": 4, "server_tool_use": {"web_search_requests": 2}}
    claude = {"id": "m", "type": "message", "role": "assistant", "model": "c", "content": [], "stop_reason": "end_turn"}
    there = dragoman.translate_response(
        {**claude, "stop_sequence": None, "usage": usage}, source="anthropic-messages", target="openai-responses"
    ).body
    assert there["tool_usage"] == {"web_search": {"num_requests": 2}}
    back = dragoman.translate_response(there, source="openai-responses", target="anthropic-messages").body
    assert back["usage"]["server_tool_use"] == {"web_search_requests": 2}
    chat = dragoman.translate_response(there, source="openai-responses", target="openai-chat").body
    assert chat["usage"]["server_tool_use_details"] == {"web_search_requests": 2}
    for target in ("gemini", "bedrock-converse", "ollama-chat"):
        losses = dragoman.translate_response(there, source="openai-responses", target=target).losses
        assert ("2 web searches", "noted") in {(loss.what, loss.severity) for loss in losses}
    body, _ = streamed("anthropic-messages", ir.Text("hi"))
    counted = body.replace(b'"output_tokens":4', b'"output_tokens":4,"server_tool_use":{"web_search_requests":2}')
    assert counted != body
    translator = dragoman.StreamTranslator(source="anthropic-messages", target="openai-responses")
    pieces = b"".join([translator.feed(counted), translator.close()])
    read = read_stream("openai-responses", pieces).usage
    assert read is not None
    assert read.searches == 2
    for target in ("gemini", "bedrock-converse", "ollama-chat", "cohere-chat"):
        translator = dragoman.StreamTranslator(source="anthropic-messages", target=target)
        translator.feed(counted)
        translator.close()
        assert ("2 web searches", "noted") in {(loss.what, loss.severity) for loss in translator.losses}


def test_a_limit_for_one_tool_and_a_limit_for_all_are_the_same_for_a_single_tool() -> None:
    search = {"type": "web_search_20250305", "name": "web_search", "max_uses": 3}
    claude = {"model": "c", "max_tokens": 64, "messages": [{"role": "user", "content": "hi"}], "tools": [search]}
    there = dragoman.translate_request(claude, source="anthropic-messages", target="openai-responses", model="gpt-5.1")
    assert there.body["max_tool_calls"] == 3
    assert there.losses == ()
    back = dragoman.translate_request(
        there.body, source="openai-responses", target="anthropic-messages", model="claude-sonnet-4-5"
    )
    assert back.body["tools"][0]["max_uses"] == 3
    lost = dragoman.translate_request(there.body, source="openai-responses", target="gemini", model="gemini-2.5-flash")
    assert "$.max_tool_calls" in {loss.path for loss in lost.losses}


def test_limits_of_several_tools_are_one_limit_only_if_each_has_one() -> None:
    search = {"type": "web_search_20250305", "name": "web_search", "max_uses": 3}
    run = {"type": "code_execution_20250825", "name": "code_execution"}
    claude = {"model": "c", "max_tokens": 64, "messages": [{"role": "user", "content": "hi"}], "tools": [search, run]}
    there = dragoman.translate_request(claude, source="anthropic-messages", target="openai-responses", model="gpt-5.1")
    assert "max_tool_calls" not in there.body
    assert [(loss.path, loss.what) for loss in there.losses] == [("$.tools[0]", "max_uses of tool 'web_search'")]
    given = {"model": "m", "input": "hi", "tools": [{"type": "web_search"}] * 2, "max_tool_calls": 2}
    crossed = dragoman.translate_request(
        given, source="openai-responses", target="anthropic-messages", model="claude-sonnet-4-5"
    )
    assert {tool["max_uses"] for tool in crossed.body["tools"]} == {2}


@pytest.mark.parametrize("key", ["server_tool_use_details", "server_side_tool_usage_details"])
def test_servers_that_speak_chat_count_searches_too(key: str) -> None:
    word = "web_search_requests" if key.startswith("server_tool") else "web_search_calls"
    usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7, key: {word: 5}}
    message = {"role": "assistant", "content": "hi"}
    body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "usage": usage}
    body |= {"choices": [{"index": 0, "finish_reason": "stop", "message": message}]}
    completion = dragoman.decode_response(body, "openai-chat")
    assert completion.usage is not None
    assert completion.usage.searches == 5
    assert dragoman.encode_response(completion, "openai-chat").body == body


def test_a_picture_that_openai_drew_is_a_picture_for_clients_of_gemini() -> None:
    drawn = {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "AAAA"}
    drawn["output_format"] = "webp"
    answer = {"id": "r", "object": "response", "status": "completed", "model": "m", "output": [drawn]}
    completion = dragoman.decode_response(answer, "openai-responses")
    assert dragoman.encode_response(completion, "openai-responses").body == answer
    body = dragoman.encode_response(completion, "gemini").body
    assert body["candidates"][0]["content"]["parts"] == [{"inlineData": {"mimeType": "image/webp", "data": "AAAA"}}]
