"""Tools of other providers are looked at once per list of tools, and always with the same result."""

import json

import pytest

import dragoman
from dragoman import ir
from dragoman.codecs.registry import codec
from dragoman.losses import LossLog
from dragoman.passes import provider_tools
from dragoman.passes.provider_tools import cross_provider_tools
from tests.support.promises import promise

pytestmark = promise("core:tool-memo")

BODY = json.dumps(
    {
        "model": "gpt-5.5",
        "input": "What is new?",
        "tools": [
            {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}},
            {"type": "web_search", "search_context_size": "high", "filters": {"allowed_domains": ["example.com"]}},
            {"type": "computer_use_preview", "display_width": 1, "display_height": 1, "environment": "linux"},
        ],
    }
).encode()


@pytest.mark.parametrize("target", ["anthropic-messages", "gemini", "openai-chat", "ollama-chat", "bedrock-converse"])
def test_the_second_time_is_as_the_first(target: str) -> None:
    provider_tools._crossings.clear()  # noqa: SLF001
    first, second = (
        dragoman.translate_request(BODY, source="openai-responses", target=target, model="some-model") for _ in range(2)
    )
    assert (first.json(), first.losses) == (second.json(), second.losses)
    assert first.losses
    assert all(loss.path != "$" for loss in first.losses)


def test_tools_are_looked_at_once_per_list_target_and_model() -> None:
    provider_tools._crossings.clear()  # noqa: SLF001
    request = dragoman.decode_request(BODY, "openai-responses")
    claude, gemini = codec("anthropic-messages").profile, codec("gemini").profile
    tools = cross_provider_tools(request, claude, LossLog()).tools
    assert cross_provider_tools(request, claude, LossLog()).tools is tools
    assert cross_provider_tools(request, gemini, LossLog()).tools is not tools
    again = dragoman.decode_request(BODY.replace(b'"f"', b'"g"'), "openai-responses")
    assert cross_provider_tools(again, claude, LossLog()).tools[0].name == "g"


def test_what_is_remembered_is_bounded() -> None:
    profile = codec("gemini").profile
    for number in range(200):
        tool = ir.ProviderTool(f"t{number}", "openai", {"type": "t"})
        cross_provider_tools(ir.Request("m", (), (tool,)), profile, LossLog())
    assert len(provider_tools._crossings) <= 64  # noqa: SLF001


@promise("law:4-determinism")
def test_of_several_restrictions_the_same_one_is_named_every_time() -> None:
    """A set of words has another order in every process."""
    assert provider_tools.RESTRICTING == ("allowed_domains", "blocked_domains", "allowed_tools", "approval")
