"""What Ollama's own chat API accepts. It checks little: most of what it does not know it ignores."""

from __future__ import annotations

import re

from dragoman.codecs.layout import Envelope, Layout
from dragoman.profile import Profile

FAMILY = "ollama"

PATH = "/api/chat"

PROFILE = Profile(
    name="ollama-chat",
    family=FAMILY,
    answer_keys=frozenset({"message"}),
    message_names=False,
    has_logprobs=True,
    tool_name=re.compile(r"[\w.:/-]{1,128}"),
)

PLAIN_MODELS = re.compile(
    r"(?:^|/)(?:llama[23]|llava|bakllava|mistral|mixtral|codellama|codegemma|gemma[23]?(?::|$|n)|phi[34]?(?:-mini)?(?::|$)"
    r"|qwen2|tinyllama|starcoder|command-r|granite3\.[01])"
)
"""Models that do not think. Any `think` but false is refused for them: «does not support thinking»."""

LEVEL_OF_EFFORT = {
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "max",
    "ultra": "max",
    "max": "max",
}
"""How the server's own Chat Completions endpoint maps these words."""

READ_KEYWORDS = frozenset({"type", "properties", "required", "items", "$defs", "description", "enum", "anyOf"})
"""The keywords that the server reads of a tool's schema; it silently drops the rest."""

DECORATION = frozenset({"$schema", "$id", "$comment", "title"})
"""Keywords without meaning for a model."""

LAYOUT = Layout(
    call_envelope=Envelope("function", ("function", "type")),
    result_names="needed",
    tool_envelope=Envelope("function", ("function", "type"), beside=(("type", "function"),)),
)
"""Where calls, results and tools are in an Ollama request. There is no tool choice."""
