"""Losses that point to no place in the body, today: data for tests/laws/test_losses_are_true.py. May only shrink."""

# Paths of a Gemini body are written in camel case, also where the client wrote snake case.
# A blocked prompt has no candidate, and so no finish reason of one.
KNOWN: dict[str, set[str]] = {
    "requests": {
        "gemini request, snake case and typed schema: $.generationConfig.maxOutputTokens",
        "vertex request, snake case and typed schema: $.generationConfig.maxOutputTokens",
    },
    "responses": {
        "gemini response, blocked prompt: $.candidates[0].finishReason",
        "vertex response, blocked prompt: $.candidates[0].finishReason",
    },
    "requests in snake case": {
        "gemini request, settings, snake case: $.generationConfig.frequencyPenalty",
        "gemini request, settings, snake case: $.generationConfig.presencePenalty",
        "gemini request, settings, snake case: $.generationConfig.seed",
        "gemini request, settings, snake case: $.generationConfig.stopSequences",
        "gemini request, settings, snake case: $.generationConfig.thinkingConfig",
        "gemini request, settings, snake case: $.generationConfig.thinkingConfig.includeThoughts",
        "gemini request, settings, snake case: $.generationConfig.thinkingConfig.thinkingBudget",
        "gemini request, settings, snake case: $.generationConfig.topK",
        "gemini request, snake case and typed schema, snake case: $.generationConfig.maxOutputTokens",
        "gemini request, tools, snake case: $.contents[1].parts[1].thoughtSignature",
        "gemini request, tools, snake case: $.toolConfig.functionCallingConfig",
        "gemini request, tools, snake case: $.tools[0].functionDeclarations[0].parametersJsonSchema",
        "vertex request, settings, snake case: $.generationConfig.frequencyPenalty",
        "vertex request, settings, snake case: $.generationConfig.presencePenalty",
        "vertex request, settings, snake case: $.generationConfig.seed",
        "vertex request, settings, snake case: $.generationConfig.stopSequences",
        "vertex request, settings, snake case: $.generationConfig.thinkingConfig",
        "vertex request, settings, snake case: $.generationConfig.thinkingConfig.includeThoughts",
        "vertex request, settings, snake case: $.generationConfig.thinkingConfig.thinkingBudget",
        "vertex request, settings, snake case: $.generationConfig.topK",
        "vertex request, snake case and typed schema, snake case: $.generationConfig.maxOutputTokens",
        "vertex request, tools, snake case: $.contents[1].parts[1].thoughtSignature",
        "vertex request, tools, snake case: $.toolConfig.functionCallingConfig",
        "vertex request, tools, snake case: $.tools[0].functionDeclarations[0].parametersJsonSchema",
    },
    "responses in snake case": {
        "gemini response, blocked prompt, snake case: $.candidates[0].finishReason",
        "gemini response, text, snake case: $.usageMetadata.cachedContentTokenCount",
        "gemini response, text, snake case: $.usageMetadata.promptTokensDetails",
        "gemini response, text, snake case: $.usageMetadata.thoughtsTokenCount",
        "vertex response, blocked prompt, snake case: $.candidates[0].finishReason",
        "vertex response, text, snake case: $.usageMetadata.cachedContentTokenCount",
        "vertex response, text, snake case: $.usageMetadata.promptTokensDetails",
        "vertex response, text, snake case: $.usageMetadata.thoughtsTokenCount",
    },
    "real requests": {
        "gemini-generate: $.generationConfig.responseSchema",
        "gemini-generate: $.generationConfig.responseSchema.properties.address",
        "gemini-generate: $.generationConfig.responseSchema.properties.employer.anyOf[N]",
        "ollama-chat: $.options.temperature",
        "openai-responses: $.input[N].content[N]",
    },
    "real responses": {
        "openai-compat-chat: $.choices[N].message.content[N]",
    },
}
