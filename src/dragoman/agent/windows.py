"""How much the models take in: the context window of each family, where all its members are known to have it.

A model that is not here, or runs with a window that its owner chose (Ollama), has none that we could know.
"""

from __future__ import annotations

import re

WINDOWS: tuple[tuple[re.Pattern[str], int], ...] = tuple(
    (re.compile(pattern), tokens)
    for pattern, tokens in (
        (r"claude-", 200_000),
        (r"gemini-(?:1\.5|[2-9])", 1_048_576),
        (r"gpt-4\.1", 1_047_576),
        (r"gpt-4o", 128_000),
        (r"gpt-5", 400_000),
        (r"gpt-oss-", 131_072),
        (r"\bo[134](?:-|$)", 200_000),
    )
)
_CHOSEN_BY_ITS_OWNER = re.compile(r"ollama/|openai-compatible/")


def window_of(name: str) -> int | None:
    """Of a driver's name, `provider/model`. Tokens."""
    if _CHOSEN_BY_ITS_OWNER.match(name):
        return None
    model = name.partition("/")[2]
    return next((tokens for pattern, tokens in WINDOWS if pattern.search(model)), None)
