"""Rules that hold for some of Google's models only."""

import pytest

import dragoman
from tests.support.cases import each
from tests.support.formats import refusals
from tests.support.promises import promise

THINKS_NEVER = ("gemma-3-27b-it", "gemma-3n-e4b-it", "gemini-2.5-flash-image", "gemini-2.5-flash-preview-tts")
THINKS = ("gemma-4-31b-it", "gemini-2.5-flash", "gemini-3-pro-image-preview", "gemini-3.6-flash")
CHAT = {
    "model": "any",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "developer", "content": [{"type": "text", "text": "Answer in French."}]},
        {"role": "user", "content": "Hi"},
    ],
}


@promise("law:3-legality")
@each("effort", ["none", "minimal", "low", "medium", "high", "xhigh"])
@pytest.mark.parametrize("target", ["gemini", "vertex"])
def test_thinking_is_not_asked_of_models_that_never_think(target: str, effort: str) -> None:
    for model in THINKS_NEVER + THINKS:
        body = {**CHAT, "reasoning_effort": effort}
        encoded = dragoman.translate_request(body, source="openai-chat", target=target, model=model)
        asked = "thinkingConfig" in encoded.body.get("generationConfig", {})
        assert asked is (model in THINKS), model
        lost = {loss.path for loss in encoded.losses if loss.severity == "dropped"}
        assert asked or effort == "none" or lost == {"$.reasoning_effort"}, model
        refused = [one.path for one in refusals(encoded, target, model=model)]
        assert not [path for path in refused if "thinkingConfig" in path or "systemInstruction" in path], model


@promise("law:2-nothing-vanishes", "law:3-legality")
def test_gemma_3_reads_system_text_as_the_users() -> None:
    """It refuses a system instruction."""
    encoded = dragoman.translate_request(CHAT, source="openai-chat", target="gemini", model="gemma-3-27b-it")
    assert encoded.body == {
        "contents": [
            {"role": "user", "parts": [{"text": "Be brief."}, {"text": "Answer in French."}]},
            {"role": "user", "parts": [{"text": "Hi"}]},
        ]
    }
    assert [(loss.severity, loss.path) for loss in encoded.losses] == [
        ("degraded", "$.messages[0]"),
        ("degraded", "$.messages[1]"),
    ]
    encoded = dragoman.translate_request(CHAT, source="openai-chat", target="gemini", model="gemma-4-31b-it")
    assert encoded.body["systemInstruction"] == {"parts": [{"text": "Be brief."}, {"text": "Answer in French."}]}
    assert encoded.losses == ()


def test_a_client_of_gemini_gets_what_it_wrote() -> None:
    body = {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [{"role": "user", "parts": [{"text": "Hi"}]}],
        "generationConfig": {"thinkingConfig": {"thinkingLevel": "LOW"}},
    }
    assert dragoman.translate_request(body, source="gemini", target="gemini", model="gemma-3-27b-it").body == body
