import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Raw, Struct

import dragoman
from dragoman import ir
from dragoman.ir.schema import ROOTS, json_schema, schema_text
from tests.passes.schema_judge import accepts
from tests.support.cases import each
from tests.support.promises import promise

DOCS = Path(__file__).resolve().parents[2] / "docs"
SCHEMA = json_schema()

METADATA = {"openai": {"x": Raw(b"1e400"), "~note": Raw(b"true")}}
SIGNATURE = ir.Signature("google", "c2ln", "rs_1")
PARTS: tuple[ir.AnyPart, ...] = (
    ir.Text("a", (ir.Citation(url="https://x.example", start=0, end=1),), ir.Cache("1h"), SIGNATURE, METADATA),
    ir.Reasoning("because", SIGNATURE),
    ir.Reasoning(signature=SIGNATURE, redacted=True),
    ir.Refusal("no"),
    ir.Image(media_type="image/png", data="AAAA", detail="low"),
    ir.Document(text="plain", title="t", context="c", cite=True),
    ir.Audio(media_type="audio/wav", url="https://x.example/a.wav", transcript="hm"),
    ir.ToolCall("c1", "f", Raw(b'{"a": 9007199254740993, "a": 1.0}'), '{"a": 9007199254740993, "a": 1.0}'),
    ir.ToolCall("c2", "f", arguments_text="{oops", incomplete=True),
    ir.ToolCall("c3", "f", {}, invented_id=True, signature=SIGNATURE),
    ir.ToolResult("c1", "f", "text", "out"),
    ir.ToolResult("c1", "f", "data", Raw(b"null")),
    ir.ToolResult("c1", "f", "error", "why"),
    ir.ToolResult("c1", "f", "multimodal", parts=(ir.Text("see"), ir.Image(url="https://x.example/i.png"))),
    ir.ServerToolCall("s1", "web_search", "anthropic", {"type": "server_tool_use"}),
    ir.ServerToolResult("s1", "web_search", "anthropic", {"type": "web_search_tool_result"}),
    ir.ServerToolCall("s2", "ask", kind="mcp", input={"q": "rain"}, server="docs"),
    ir.ServerToolResult("s2", "ask", kind="mcp", parts=(ir.Text("yes"),), sources=(ir.Citation("https://x.example"),)),
    ir.ServerToolResult("s3", "ask", kind="mcp", error="too slow"),
    ir.SearchResult("kb://1", "Rain", ("It rains.",), cite=True, cache=ir.Cache(), metadata=METADATA),
    ir.Opaque("openai", "future", {"type": "future"}),
)
USAGE = ir.Usage(10, 5, cached=3, cache_written=1, reasoning=2, image=1, total=15, metadata=METADATA)
FINISH = ir.Finish("stop", "end_turn", "END")
FAILURE = ir.Failure("rate_limit", "slow down", 429, "x", "model", 1.5, "req_1", "rate_limit_error", [1], METADATA)
REQUEST = ir.Request(
    "m",
    (ir.Message("system", "be kind"), ir.Message("user", PARTS, "ann", METADATA)),
    (
        ir.ToolDefinition("f", "does", {"type": "object"}, strict=True, cache=ir.Cache()),
        ir.ToolDefinition("g"),
        ir.CustomTool("h", format={"type": "grammar"}),
        ir.ProviderTool("search", "google", {"googleSearch": {}}),
        ir.ProviderTool("search", kind="web_search", max_uses=3, location=ir.Location("JP", city="Tokyo")),
    ),
    ir.ToolChoice("required", ("f", "g")),
    parallel_tool_calls=False,
    temperature=0.5,
    stop=("a",),
    seed=2**53 + 1,
    reasoning=ir.ReasoningSettings("on", "high", 1000, visible=True),
    output=ir.StructuredOutput("schema", {"type": "object"}, "answer", strict=True),
    cache=ir.Cache("5m"),
    metadata=METADATA,
    origin="openai",
)
TOKENS = (ir.TokenLogprob("a", -0.5, (97,), (ir.TokenLogprob("b", -1.5, id=7),)),)
VALUES: tuple[Struct, ...] = (
    REQUEST,
    ir.Request(None, ()),
    ir.Completion(
        (ir.Message("assistant", PARTS), ir.Message("assistant", "b")),
        FINISH,
        USAGE,
        "id",
        "m",
        1,
        (FINISH,),
        logprobs=(ir.Logprobs(TOKENS, 1),),
    ),
    ir.Completion(()),
    FAILURE,
    ir.Failure("server", ""),
    ir.Message("tool", (PARTS[10],)),
    ir.StreamStart("id", "m", 1, METADATA),
    *(ir.PartStart(index, part, 1) for index, part in enumerate(PARTS)),
    ir.PartDelta(0, "x", ir.Citation()),
    ir.MediaDelta(0, "AAAA"),
    ir.LogprobsDelta(TOKENS),
    ir.PartEnd(0, SIGNATURE, incomplete=True, metadata=METADATA),
    ir.UsageUpdate(USAGE),
    ir.Finished(FINISH, (None, FINISH), METADATA),
    ir.StreamFailed(FAILURE),
)


def rooted(name: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}", "$defs": SCHEMA["$defs"]}


def test_the_schema_in_docs_is_up_to_date() -> None:
    stored = (DOCS / "intermediate-format.schema.json").read_bytes()
    assert stored == schema_text(), "run: dragoman schema > docs/intermediate-format.schema.json"


def test_the_schema_names_the_version() -> None:
    assert SCHEMA["version"] == ir.VERSION
    assert SCHEMA["$id"].endswith(f":{ir.VERSION}")


def test_the_values_below_use_every_definition() -> None:
    """A definition without a value here could be wrong unnoticed."""
    kinds = {type(value).__name__ for value in VALUES}
    kinds |= {type(part).__name__ for part in PARTS}
    kinds |= {type(tool).__name__ for tool in REQUEST.tools}
    kinds |= {
        "Cache",
        "Citation",
        "Finish",
        "Location",
        "Logprobs",
        "ReasoningSettings",
        "Signature",
        "StructuredOutput",
        "TokenLogprob",
        "ToolChoice",
        "Usage",
    }
    assert kinds == set(SCHEMA["$defs"])
    assert {type(value) for value in VALUES} == set(ROOTS)


@promise("report:30")
@each("value", VALUES, ids=lambda value: type(value).__name__)
def test_encoded_values_follow_the_schema_and_come_back(value: Struct) -> None:
    encoded = msgspec.json.encode(value)
    plain = json.loads(encoded)
    assert accepts(rooted(type(value).__name__), plain)
    assert accepts(SCHEMA, plain)
    assert msgspec.json.decode(encoded, type=type(value)) == value


def test_a_bundled_conversation_follows_the_schema_in_every_format() -> None:
    body = (Path(dragoman.__file__).parent / "data" / "transcript.json").read_bytes()
    for target in dragoman.formats():
        there = dragoman.translate_request(body, source="openai-chat", target=target).json()
        request = dragoman.decode_request(there, target)
        assert accepts(rooted("Request"), json.loads(msgspec.json.encode(request)))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Request", {"messages": []}),
        ("Request", {"model": "m", "messages": [{"role": "narrator", "parts": "x"}]}),
        ("Message", {"role": "user", "parts": [{"type": "hologram"}]}),
        ("Message", {"role": "user", "parts": 3}),
        ("ToolCall", {"type": "tool_call", "id": "c", "name": "f", "arguments": [1]}),
        ("ToolResult", {"type": "tool_result", "tool_call_id": "c", "name": "f", "kind": "maybe"}),
        ("Usage", {"input": "many"}),
        ("Failure", {"message": "no kind"}),
    ],
)
def test_an_invalid_value_breaks_the_schema(name: str, value: Any) -> None:
    assert not accepts(rooted(name), value)


def test_the_document_explains_every_value_and_field() -> None:
    text = (DOCS / "intermediate-format.md").read_text(encoding="utf-8")
    words = set(re.findall(r"`([a-z_]+)`", text))
    for name, definition in SCHEMA["$defs"].items():
        assert re.search(rf"\b{name}\b", text), name
        missing = set(definition["properties"]) - words - {"type"}
        assert not missing, f"{name}: {missing}"
