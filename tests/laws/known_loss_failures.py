"""Losses that point to no place in the body, today: data for tests/laws/test_losses_are_true.py. May only shrink."""

KNOWN: dict[str, set[str]] = {
    "real responses": {
        "openai-compat-chat: $.choices[N].message.content[N]",
    },
}
