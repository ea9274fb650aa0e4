"""What Chat Completions accepts."""

from __future__ import annotations

import re

from dragoman.codecs.profile import Profile

PROFILE = Profile(
    name="openai-chat",
    family="openai",
    # Longer ids were refused in some fields ("maximum length 40"), so ours never are.
    call_id=re.compile(r"[^\s]{1,40}"),
    stop_limit=4,
    paths={
        "max_output_tokens": "$.max_completion_tokens",
        "candidates": "$.n",
        "reasoning": "$.reasoning_effort",
        "output": "$.response_format",
        "stop": "$.stop",
    },
)
