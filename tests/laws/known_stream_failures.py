"""Places of a stream where an unknown key is still lost in silence, and why. Rows may only be removed."""

_BLOCK_KEYS = "the start of a thinking block is written before the keys of the block are known"
_PLACEHOLDER = "the arguments at the start are a placeholder, which the fragments replace"
_WHOLE_BLOCKS = "unknown keys of a delta belong to a block that is emitted whole; in other blocks they are skipped"
_COUNTS = "what a provider counts beside its tokens stays with the usage of its own family"
_EVERY_CHUNK = "members of the whole answer come with every chunk; they are read in the first and last ones"

KNOWN: dict[str, dict[str, str]] = {
    "anthropic-messages": {
        "content_block_start $.content_block -> itself": _BLOCK_KEYS,
        "content_block_start $.content_block.input -> another": _PLACEHOLDER,
        "content_block_start $.content_block.input -> itself": _PLACEHOLDER,
    },
    "gemini": {},
    "openai-responses": {},
    "openai-chat": {
        "chunk $ -> another": _EVERY_CHUNK,
        "chunk $ -> itself": _EVERY_CHUNK,
    },
    "bedrock-converse": {
        "contentBlockDelta $.contentBlockDelta.delta -> another": _WHOLE_BLOCKS,
        "contentBlockDelta $.contentBlockDelta.delta -> itself": _WHOLE_BLOCKS,
    },
    "ollama-chat": {},
    "cohere-chat": {
        "message-end $.delta.usage.tokens -> another": _COUNTS,
    },
    "gemini-interactions": {},
}
