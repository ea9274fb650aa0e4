"""Keys that only one family understands are reported at every node that may have some, each once."""

from typing import Any

import pytest
from msgspec import Raw

from dragoman import ir
from dragoman.losses import KEY, LossLog
from dragoman.passes.private import report_private_answer, report_private_content, report_private_settings
from dragoman.profile import Profile
from tests.support.promises import promise

pytestmark = promise("law:2-nothing-vanishes")

PROFILE = Profile(name="mine", family="mine")


def keyed(key: str, value: bytes = b"1") -> dict[str, dict[str, Any]]:
    """A key of another family, beside one of our own, between notes about spelling."""
    theirs = {"~raw:before": Raw(b"1"), key: Raw(value), "~raw:after": Raw(b"1")}
    return {"mine": {f"own_{key}": Raw(b"1")}, "theirs": theirs}


def reported(log: LossLog) -> list[tuple[type, str, str]]:
    assert {reason for *_, reason in log.entries} <= {"only theirs understands it"}
    return [(type(node), field.replace(KEY, ""), severity) for node, field, _, severity, _ in log.entries]


def test_settings() -> None:
    request = ir.Request(
        "m",
        (ir.Message("user", "hi", metadata=keyed("content")),),
        (
            ir.ToolDefinition("f", metadata=keyed("of_a_tool")),
            ir.ToolDefinition("g"),
            ir.CustomTool("h", metadata=keyed("of_a_custom_tool")),
            ir.ProviderTool("w", "theirs", {"type": "w"}),
        ),
        tool_choice=ir.ToolChoice("auto", metadata=keyed("a")),
        reasoning=ir.ReasoningSettings("on", metadata=keyed("b")),
        output=ir.StructuredOutput("json", metadata=keyed("c")),
        metadata=keyed("of_the_request"),
    )
    log = LossLog()
    assert report_private_settings(request, PROFILE, log) is request
    assert reported(log) == [
        (ir.Request, "of_the_request", "dropped"),
        (ir.ToolDefinition, "of_a_tool", "dropped"),
        (ir.CustomTool, "of_a_custom_tool", "dropped"),
        (ir.Request, "tool_choice.a", "dropped"),
        (ir.Request, "reasoning.b", "dropped"),
        (ir.Request, "output.c", "dropped"),
    ]
    assert report_private_settings(ir.Request("m", ()), PROFILE, log) is not None
    assert len(log.entries) == 6


def test_content() -> None:
    cited = ir.Text("a", (ir.Citation("https://a.example", metadata=keyed("d")),), metadata=keyed("b"))
    inner = ir.Image("image/png", "AA==", metadata=keyed("g"))
    opaque = ir.Opaque("theirs", "strange", {"x": 1})
    request = ir.Request(
        "m",
        (
            ir.Message("user", (cited, opaque, ir.Text("c")), metadata=keyed("a")),
            ir.Message("assistant", (ir.ToolCall("1", "f", {}, metadata=keyed("index")),)),
            ir.Message("tool", (ir.ToolResult("1", "f", "multimodal", parts=(inner, opaque), metadata=keyed("f")),)),
            ir.Message("user", "plain", metadata=keyed("h")),
        ),
    )
    log = LossLog()
    assert report_private_content(request, PROFILE, log) is request
    assert reported(log) == [
        (ir.Message, "a", "dropped"),
        (ir.Text, "b", "dropped"),
        (ir.Text, "citations.d", "dropped"),
        (ir.ToolCall, "index", "noted"),
        (ir.ToolResult, "f", "dropped"),
        (ir.Image, "g", "dropped"),
        (ir.Message, "h", "dropped"),
    ]


def test_keys_about_how_an_answer_was_made_are_noted_and_others_dropped() -> None:
    call = ir.ToolCall("1", "f", {}, metadata=keyed("index"))
    sound = ir.Audio("audio/wav", "AA==", metadata=keyed("expires_at"))
    message = ir.Message("assistant", (call, sound), metadata=keyed("finishMessage"))
    answered = ir.Message("assistant", (ir.Text("x", metadata=keyed("index")),), metadata=keyed("more"))
    completion = ir.Completion(
        (message, answered),
        ir.Finish("stop", metadata=keyed("sequence")),
        ir.Usage(1, 1, metadata=keyed("anything")),
        metadata={"theirs": {"service_tier": Raw(b'"a"'), "sources": Raw(b"[1]")}},
    )
    log = LossLog()
    report_private_answer(completion, PROFILE, log)
    assert reported(log) == [
        (ir.Completion, "service_tier", "noted"),
        (ir.Completion, "sources", "dropped"),
        (ir.Message, "finishMessage", "noted"),
        (ir.ToolCall, "index", "noted"),
        (ir.Audio, "expires_at", "noted"),
        (ir.Message, "more", "dropped"),
        (ir.Text, "index", "dropped"),
        (ir.Completion, "finish.sequence", "dropped"),
        (ir.Completion, "usage.anything", "noted"),
    ]


@pytest.mark.parametrize(
    ("value", "is_lost"),
    [(b"null", False), (b"[]", False), (b"{}", False), (b"0", True), (b'""', True), (b"true", True), (b"[[]]", True)],
)
def test_an_empty_value_is_not_a_loss(value: bytes, is_lost: bool) -> None:  # noqa: FBT001
    log = LossLog()
    report_private_settings(ir.Request("m", (), metadata=keyed("key", value)), PROFILE, log)
    assert [entry[1] for entry in log.entries] == ["key"] * is_lost


def test_keys_within_other_objects_have_their_path() -> None:
    inner = {"~in:outer": Raw(b'{"a":1,"b":null,"~in:deep":{"c":2},"~raw:d":1}')}
    log = LossLog()
    report_private_settings(ir.Request("m", (), metadata={"theirs": inner, "mine": inner}), PROFILE, log)
    assert [entry[1] for entry in log.entries] == ["outer.a", "outer.deep.c"]
