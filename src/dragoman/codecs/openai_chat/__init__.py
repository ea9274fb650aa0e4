"""OpenAI Chat Completions, and the servers that are compatible with it."""
