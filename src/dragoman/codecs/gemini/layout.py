"""Where calls, results, tools and the tool choice are in a generateContent request."""

from __future__ import annotations

from dragoman.codecs.layout import Envelope, Layout

LAYOUT = Layout(
    messages="contents",
    tool_choice=("toolConfig",),
    system="systemInstruction",
    assistant="model",
    message_signs=("role", "parts"),
    calls="parts",
    call_sign=("functionCall", None),
    call_envelope=Envelope("functionCall", ("functionCall", "function_call")),
    results=("user", "parts"),
    result_envelope=Envelope("functionResponse", ("functionResponse", "function_response")),
    result_names="needed",
    declarations="functionDeclarations",
    choice_envelope=Envelope(
        "functionCallingConfig", ("functionCallingConfig", "function_calling_config"), inner="mode"
    ),
)
