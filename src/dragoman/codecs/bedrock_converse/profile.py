"""What Converse accepts, and what the models of each vendor behind it accept, as data."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from dragoman.codecs.claude_models import NO_FORCED_CHOICE, NO_OUTPUT_SCHEMA, NO_PREFILL
from dragoman.codecs.document_citations import MESSAGES_KEYS
from dragoman.codecs.layout import Envelope, Layout
from dragoman.codecs.shared_settings import ANSWERED_BY_BEDROCK
from dragoman.profile import HostedRule, Profile

FAMILY = "bedrock"

PROFILE = Profile(
    name="bedrock-converse",
    answer_tiers=ANSWERED_BY_BEDROCK,
    citation_keys={"anthropic": MESSAGES_KEYS},
    usage_details=frozenset({"cache_written_1h"}),
    family=FAMILY,
    message_names=False,
    system="field",
    # Claude's own rules apply underneath.
    final_assistant="trimmed",
    no_prefill_models=NO_PREFILL,
    no_output_schema_models=NO_OUTPUT_SCHEMA,
    no_forced_choice_models=NO_FORCED_CHOICE,
    blank_text=False,
    # The API itself takes `.` and `:` too; Claude underneath does not.
    call_id=re.compile(r"[a-zA-Z0-9_-]{1,64}"),
    tool_name=re.compile(r"[a-zA-Z0-9_-]{1,64}"),
    # «The toolConfig field must be defined when using toolUse and toolResult content blocks.»
    tools_with_calls=True,
    stop_limit=2500,
    blank_stop=False,
    cache_marks=4,
    hosted={"web_search": HostedRule(), "code_execution": HostedRule()},
    hosted_models=re.compile(r"nova-(?:[2-9]|premier-v[2-9])", re.IGNORECASE),
)

Thinking = Literal["claude", "nova", "reasoning_effort", "none"]


class ModelLimits(Struct, frozen=True, kw_only=True):
    """What the models of one vendor take. The defaults are for an unknown model: nothing is withheld from it."""

    caches: bool = True
    signs: bool = True
    """Whether it reads signed reasoning: Claude's, on any platform."""
    named_choice: bool = True
    """Whether one tool can be forced by name."""
    assistant_first: bool = True
    status: bool = True
    """Whether a result may be marked as an error."""
    documents_beside_results: bool = True
    results_alone: bool = False
    """Whether nothing may be beside results in their turn."""
    plays: bool = True
    """Whether it takes video and audio."""
    fetches: bool = True
    """Whether it reads images and documents from S3."""
    thinking: Thinking = "claude"
    top_k: Literal["top_k", "nested", "none"] = "top_k"
    """Where top_k is set: Nova has its own `inferenceConfig` with `topK`."""
    is_claude: bool = False


UNKNOWN_MODEL = ModelLimits()
_CLAUDE = ModelLimits(is_claude=True, documents_beside_results=False, plays=False, fetches=False)
_NOVA = ModelLimits(signs=False, assistant_first=False, thinking="none", top_k="nested")
_NOVA_2 = replace(_NOVA, thinking="nova")
_OTHER = ModelLimits(
    caches=False,
    signs=False,
    named_choice=False,
    assistant_first=False,
    plays=False,
    thinking="none",
    top_k="none",
)
_RESULTS_ALONE = replace(_OTHER, results_alone=True)
_GPT_OSS = replace(_OTHER, thinking="reasoning_effort")
_QWEN = replace(_OTHER, assistant_first=True)
_PALMYRA = replace(_OTHER, status=False)

# The first row that matches counts.
_MODELS: tuple[tuple[re.Pattern[str], ModelLimits], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), limits)
    for pattern, limits in (
        (r"claude|anthropic\.", _CLAUDE),
        (r"nova-(?:[2-9]|premier-v[2-9])", _NOVA_2),
        (r"nova-", _NOVA),
        (r"gpt-oss", _GPT_OSS),
        (r"qwen", _QWEN),
        (r"palmyra|writer\.", _PALMYRA),
        (r"llama|meta\.|mistral|mixtral|pixtral", _RESULTS_ALONE),
        (
            r"(?:^|[./])(?:ai21|amazon|cohere|deepseek|google|luma|meta|minimax|mistral|moonshot|nvidia|openai|stability|zai)\.",
            _OTHER,
        ),
        (r"deepseek|gemma|jamba|titan|kimi|command-r", _OTHER),
    )
)


@lru_cache(maxsize=256)
def limits_of(model: str | None) -> ModelLimits:
    """Return the limits of a model by its id in any form: bare, with region, as an ARN that names it."""
    return next((limits for pattern, limits in _MODELS if pattern.search(model or "")), UNKNOWN_MODEL)


LAYOUT = Layout(
    tools=("toolConfig", "tools"),
    tool_choice=("toolConfig", "toolChoice"),
    system="system",
    calls="content",
    call_sign=("toolUse", None),
    call_envelope=Envelope("toolUse", ("toolUse",)),
    results=("user", "content"),
    result_envelope=Envelope("toolResult", ("toolResult",), inner="toolUseId"),
    tool_envelope=Envelope("toolSpec", ("toolSpec", "systemTool", "cachePoint")),
)
"""Where calls, results, tools and the tool choice are in a Converse request."""
