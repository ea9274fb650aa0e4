"""Automatic cache marks: an option of routes and drivers, for Anthropic and Bedrock."""

from typing import Any

import pytest

import dragoman
from dragoman import ir
from dragoman.gateway.config import ConfigError, read_config
from dragoman.gateway.routing import RouteSettings
from dragoman.gateway.upstream_calls import _with_settings
from tests.support.promises import promise

pytestmark = promise("core:automatic-cache-marks")

CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
MESSAGES = (ir.Message("system", "Be brief."), ir.Message("user", "Hello"))


def test_bedrock_gets_cache_points_after_the_system_text_and_the_last_message() -> None:
    encoded = dragoman.encode_request(ir.Request(CLAUDE, MESSAGES, cache=ir.Cache()), "bedrock-converse")
    point = {"cachePoint": {"type": "default"}}
    assert encoded.body["system"] == [{"text": "Be brief."}, point]
    assert encoded.body["messages"][0]["content"] == [{"text": "Hello"}, point]
    assert encoded.losses == ()


def test_a_tool_result_is_marked_and_lifetimes_are_kept() -> None:
    call = ir.ToolCall("c1", "f", {})
    messages = (
        ir.Message("user", "Hello"),
        ir.Message("assistant", (call,)),
        ir.Message("tool", (ir.ToolResult("c1", "f", "text", "ok"),)),
    )
    request = ir.Request(CLAUDE, messages, (ir.ToolDefinition("f"),), cache=ir.Cache("1h"))
    content = dragoman.encode_request(request, "bedrock-converse").body["messages"][-1]["content"]
    assert content[-1] == {"cachePoint": {"type": "default", "ttl": "1h"}}


def test_a_cache_mark_for_a_model_without_a_cache_is_a_loss() -> None:
    request = ir.Request("us.meta.llama3-3-70b-instruct-v1:0", MESSAGES, cache=ir.Cache())
    encoded = dragoman.encode_request(request, "bedrock-converse")
    assert "cachePoint" not in encoded.json().decode()
    assert [(loss.path, loss.severity) for loss in encoded.losses] == [("$.cache", "dropped")]


def test_anthropic_gets_one_setting_for_automatic_caching() -> None:
    encoded = dragoman.encode_request(
        ir.Request("claude-sonnet-4-5", MESSAGES, cache=ir.Cache("1h")), "anthropic-messages"
    )
    assert encoded.body["cache_control"] == {"type": "ephemeral", "ttl": "1h"}


def test_the_cache_option_of_a_route() -> None:
    config = read_config('[providers.anthropic]\n[routes.r]\nto = "anthropic/claude-sonnet-5"\ncache = "1h"\n')
    assert config.routes["r"].cache == "1h"
    with pytest.raises(ConfigError):
        read_config('[providers.anthropic]\n[routes.r]\nto = "anthropic/x"\ncache = "2h"\n')


@pytest.mark.parametrize(
    ("request_", "marks", "expected"),
    [
        (ir.Request("m", MESSAGES), True, ir.Cache()),
        (ir.Request("m", MESSAGES), False, None),
        (ir.Request("m", (ir.Message("user", (ir.Text("a", cache=ir.Cache()),)),)), True, None),
        (ir.Request("m", MESSAGES, cache=ir.Cache("1h")), True, ir.Cache("1h")),
        (ir.Request("m", MESSAGES, (ir.ToolDefinition("f", cache=ir.Cache()),)), True, None),
    ],
)
def test_cache_marks_of_the_client_take_precedence(request_: ir.Request, marks: Any, expected: ir.Cache | None) -> None:
    settings = RouteSettings(cache="5m")
    assert settings.changes_requests
    assert _with_settings(request_, settings, marks=marks).cache == expected
