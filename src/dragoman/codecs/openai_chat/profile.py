"""What Chat Completions accepts, and what its models refuse."""

from __future__ import annotations

import re

from dragoman.profile import Profile

PATH = "/chat/completions"

PROFILE = Profile(
    name="openai-chat",
    family="openai",
    # Longer ids were refused in some fields ("maximum length 40"), so ours never are.
    call_id=re.compile(r"[^\s]{1,40}"),
    stop_limit=4,
)

REASONING_MODELS = re.compile(r"^(o[1-9]|gpt-5(?!.*chat)|gpt-[6-9])")
"""While these reason, they refuse sampling settings and stop sequences; with effort "none" they take the former."""

SAMPLING = ("temperature", "top_p", "presence_penalty", "frequency_penalty")

AUDIO_MODELS = re.compile(r"audio|realtime|voxtral|gemini|omni")
"""Other models answer audio parts with "Content blocks are expected to be either text or image_url type"."""

_MINTED_BEHIND = (
    (re.compile(r"^anthropic/"), "anthropic"),
    (re.compile(r"^(google/|models/)?gemini|^google/"), "google"),
    (re.compile(r"^openai/"), "openai-responses"),
    (re.compile(r"^x-ai/"), "xai"),
)

PLAIN_REASONING_MODELS = re.compile(r"deepseek", re.IGNORECASE)
"""DeepSeek refuses a tool turn whose `reasoning_content` did not come back ("must be passed back to the API")."""


def minted_behind(model: str) -> str | None:
    """Relays and compatible endpoints: the family whose signatures the model of this name takes back, if any."""
    return next((family for pattern, family in _MINTED_BEHIND if pattern.search(model) is not None), None)
