"""Losses that point to no place in the body, today: data for tests/laws/test_losses_are_true.py. May only shrink."""

KNOWN: dict[str, set[str]] = {
    "real requests": {
<<<<<<< HEAD
        "gemini-generate: $.generationConfig.responseSchema",
        "gemini-generate: $.generationConfig.responseSchema.properties.address",
        "gemini-generate: $.generationConfig.responseSchema.properties.employer.anyOf[N]",
=======
        "mistral-chat: $.seed",
>>>>>>> 5462c73 (gemini: paths of losses spell keys as the client did)
        "ollama-chat: $.options.temperature",
        "openai-responses: $.input[N].content[N]",
    },
    "real responses": {
        "openai-compat-chat: $.choices[N].message.content[N]",
    },
}
