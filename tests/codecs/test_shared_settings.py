"""Settings that several APIs have cross; where one has none, it is a loss."""

from typing import Any

import pytest

import dragoman
from tests.support.formats import FORMATS
from tests.support.promises import promise

pytestmark = promise("core:shared-settings")

CHAT: dict[str, Any] = {"model": "gpt-5.1", "messages": [{"role": "user", "content": "hi"}]}
RESPONSES: dict[str, Any] = {"model": "gpt-5.1", "input": "hi"}


def crossed(source: str, target: str, body: dict[str, Any]) -> tuple[Any, list[str]]:
    """The body in the target's words, and the paths of what was lost."""
    encoded = dragoman.translate_request(body, source=source, target=target)
    return encoded.body, [loss.path for loss in encoded.losses if loss.severity != "invented"]


# ── verbosity ──


def test_verbosity_between_chat_and_responses() -> None:
    there, lost = crossed("openai-chat", "openai-responses", {**CHAT, "verbosity": "low"})
    assert (there["text"], lost) == ({"verbosity": "low"}, [])
    text = {"verbosity": "low", "format": {"type": "json_schema", "name": "x", "schema": {"type": "object"}}}
    back, lost = crossed("openai-responses", "openai-chat", {**RESPONSES, "text": text})
    assert (back["verbosity"], back["response_format"]["type"], lost) == ("low", "json_schema", [])


@pytest.mark.parametrize("target", [name for name in FORMATS if not name.startswith("openai")])
def test_verbosity_is_a_loss_elsewhere(target: str) -> None:
    assert "$.verbosity" in crossed("openai-chat", target, {**CHAT, "verbosity": "low"})[1]
    assert "$.text.verbosity" in crossed("openai-responses", target, {**RESPONSES, "text": {"verbosity": "low"}})[1]
