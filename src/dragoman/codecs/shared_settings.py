"""Settings that several APIs have under different names, with different values and limits."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, Final

from msgspec import UNSET, UnsetType, structs

from dragoman.ir import Message, Request, StructuredOutput, ToolDefinition, Usage
from dragoman.ir.notes import MODELLED, Extra
from dragoman.ir.values import compact_text, encode_json, parse_json
from dragoman.losses import LossLog
from dragoman.schema import OPENAI_STRICT, violations

# ── labels ────────────────────────────────────────────────────────────────────────────────────────────────────


class LabelRules:
    """What an API accepts as labels of a request."""

    def __init__(self, key: re.Pattern[str], value: re.Pattern[str], pairs: int = 16) -> None:
        self.key = key
        self.value = value
        self.pairs = pairs


GOOGLE_LABELS: Final = LabelRules(re.compile(r"[a-z][a-z0-9_-]{0,62}"), re.compile(r"[a-z0-9_-]{0,63}"), 64)
OPENAI_LABELS: Final = LabelRules(re.compile(r"(?s:.{0,64})"), re.compile(r"(?s:.{0,512})"))


def fit_labels(rules: LabelRules, labels: dict[str, str], request: Request, log: LossLog) -> dict[str, str] | UnsetType:
    """Return the labels that the API takes; the others are losses."""
    kept: dict[str, str] = {}
    for key, value in labels.items():
        if rules.key.fullmatch(key) is None or rules.value.fullmatch(value) is None:
            log.drop(request, f"labels.{key}", f"label {key!r}", "this API refuses such a label")
        elif len(kept) == rules.pairs:
            log.drop(request, f"labels.{key}", f"label {key!r}", f"this API takes at most {rules.pairs} labels")
        else:
            kept[key] = value
    return kept or UNSET


def fit_others(fit: Callable[[Any, Request, LossLog], Any], *families: str) -> Callable[[Any, Request, LossLog], Any]:
    """Return a writer for the table of settings: a value of these families as it is, any other as `fit` returns it."""
    return lambda value, request, log: value if request.origin in families else fit(value, request, log)


# ── sampling ──────────────────────────────────────────────────────────────────────────────────────────────────


def number_or_none(value: Any) -> float | None:
    """Return a setting that is a number, and a whole number as it is."""
    return value if type(value) in (int, float) else None


# ── limits ────────────────────────────────────────────────────────────────────────────────────────────────────


def fit_limits(request: Request, log: LossLog) -> dict[str, Any]:
    """Return the changes to a request that leaves no room for an answer."""
    changes: dict[str, Any] = {}
    maximum = request.max_output_tokens
    if maximum is not None and maximum < 1:
        log.drop(request, "max_output_tokens", f"limit of {maximum} tokens", "this API requires at least one token")
        changes["max_output_tokens"] = None
    return changes


def fit_modalities(modalities: tuple[str, ...], known: tuple[str, ...], request: Request, log: LossLog) -> list[str]:
    """Return the output modalities that an API supports."""
    kept = [word for word in modalities if word in known]
    if len(kept) < len(modalities):
        log.drop(request, "modalities", "output modality", f"this API has only {', '.join(known)}")
    return kept


# ── the end user ──────────────────────────────────────────────────────────────────────────────────────────────

LONGEST_IDENTIFIER: Final = 64
"""For OpenAI's `safety_identifier`."""


def fit_identifier(identifier: str, request: Request, log: LossLog) -> str:
    """Return the identifier, or its hash if it is too long, so that a user always has the same one."""
    if len(identifier) <= LONGEST_IDENTIFIER:
        return identifier
    what = f"identifier of {len(identifier)} characters"
    log.degrade(request, "safety_identifier", what, f"hashed: this API takes at most {LONGEST_IDENTIFIER}")
    return sha256(identifier.encode()).hexdigest()


# ── log probabilities ─────────────────────────────────────────────────────────────────────────────────────────


def fit_top_logprobs(switch: str, number: int, request: Request, log: LossLog) -> int | UnsetType:
    """Return the number of alternatives per token; `switch` is the wire's name of `logprobs`, which must be on."""
    if request.logprobs:
        return number
    log.drop(request, "top_logprobs", "top logprobs", f"this API takes it only beside `{switch}`")
    return UNSET


# ── service tiers ─────────────────────────────────────────────────────────────────────────────────────────────

AUTO: Final = "auto"
"""The provider or the account decides: the default of every API."""


def fit_tier(words: Mapping[str, str], tier: str, request: Request, log: LossLog) -> str | UnsetType:
    """Return the API's name for a tier (`words` maps our names to the API's)."""
    word = words.get(tier)
    if word is not None:
        return word
    if tier != AUTO:
        log.drop(request, "service_tier", f"service tier {tier!r}", "this API has no such tier")
    return UNSET


def read_tier(words: Mapping[str, str]) -> Any:
    """Return a reader of tiers: the API's name -> ours; None for an unknown one."""
    ours: dict[str, str] = {}
    for tier, word in words.items():
        ours.setdefault(word, tier)
    return lambda word: ours.get(word) if isinstance(word, str) else None


CHAT_TIERS: Final = {tier: tier for tier in ("auto", "default", "flex", "scale", "priority", "fast")}
# «The response will show priority regardless»: `fast` is another name for it.
RESPONSES_TIERS: Final = {**CHAT_TIERS, "ultrafast": "ultrafast"}
MESSAGES_TIERS: Final = {"auto": "auto", "default": "standard_only"}
GEMINI_TIERS: Final = {"default": "standard", "flex": "flex", "priority": "priority", "fast": "priority"}
CONVERSE_TIERS: Final = {
    "default": "default", "flex": "flex", "priority": "priority", "fast": "priority", "reserved": "reserved"
}  # fmt: skip


ANSWERED_BY_OPENAI: Final = {tier: tier for tier in ("auto", "default", "flex", "scale", "priority", "fast")}
ANSWERED_BY_ANTHROPIC: Final = {"default": "standard", "priority": "priority", "batch": "batch"}
ANSWERED_BY_GOOGLE: Final = {"default": "standard", "flex": "flex", "priority": "priority"}
ANSWERED_BY_BEDROCK: Final = {tier: tier for tier in ("default", "flex", "priority", "reserved")}


def tier_word(usage: Usage | None, words: Mapping[str, str]) -> str | None:
    """Return the API's name for the tier of an answer; None if the tier is unknown, or has no name there."""
    return None if usage is None or usage.service_tier is None else words.get(usage.service_tier)


def named_tier(usage: Usage | None, words: Mapping[str, str]) -> dict[str, str]:
    """Return the tier as a member, for APIs that call it `service_tier`."""
    word = tier_word(usage, words)
    return {} if word is None else {"service_tier": word}


# The API's name for the tier of an answer, as JSON -> ours.
OPENAI_TIERS_READ: Final = {encode_json(word): tier for tier, word in ANSWERED_BY_OPENAI.items()}
GOOGLE_TIERS_READ: Final = {encode_json(word): tier for tier, word in ANSWERED_BY_GOOGLE.items()}
BEDROCK_TIERS_READ: Final = {encode_json({"type": word}): tier for tier, word in ANSWERED_BY_BEDROCK.items()}


def take_tier(usage: Usage, notes: Extra, key: str, tiers: Mapping[bytes, str]) -> Usage:
    """Return the usage with its tier, which several wires give among the answer's other keys.

    The key is then marked as modelled. A value without a counterpart stays a key of the answer.
    """
    held = notes.get(key)
    tier = None if held is None else tiers.get(encode_json(parse_json(held)))
    if tier is None:
        return usage
    notes[MODELLED + key] = notes.pop(key)
    return structs.replace(usage, service_tier=tier)


# ── structured output ─────────────────────────────────────────────────────────────────────────────────────────

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")

JSON_INSTRUCTION: Final = "Answer with one JSON object and nothing else."
"""For APIs without JSON mode."""


def json_instruction(output: StructuredOutput) -> str:
    """Return an instruction for a model whose API does not take the required format of the answer."""
    schema = output.schema_held
    if output.kind == "json" or schema is None:
        return JSON_INSTRUCTION
    return f"Answer with JSON that follows this JSON Schema, and nothing else:\n{compact_text(schema)}"


def name_of_title(output: StructuredOutput) -> tuple[str | None, StructuredOutput]:
    """Return the schema's title, if it can be the name that OpenAI requires, and the output without it."""
    schema = output.schema
    title = schema.get("title") if isinstance(schema, dict) else None
    if not isinstance(title, str) or _NAME.fullmatch(title) is None:
        return None, output
    untitled = {key: value for key, value in schema.items() if key != "title"}
    return title, structs.replace(output, schema=untitled)


def required_name(output: StructuredOutput, request: Request, log: LossLog) -> tuple[str, StructuredOutput]:
    """Return a name for the schema of an answer, which OpenAI requires, and the output without what became the name."""
    name, output = name_of_title(output)
    if name is None:
        log.invent(request, "output.name", "schema name", "this API requires a name for structured output")
    return name or "response", output


def is_strict(schema: Any, node: ToolDefinition | Request, field: str, log: LossLog) -> bool:
    """Return `strict` for OpenAI, off if it would refuse the schema as strict: the schema is never changed to fit."""
    broken = violations(schema, OPENAI_STRICT)
    if broken:
        log.degrade(node, field, "strict", f"this API refuses the schema as strict: {broken[0].reason}")
    return not broken


def report_json_instruction(request: Request, log: LossLog) -> None:
    what, why = (
        "JSON without a schema",
        "asked for in the system text: this API requires a schema for structured output",
    )
    log.degrade(request, "output", what, why)


def mentions_json(messages: tuple[Message, ...]) -> bool:
    return any("json" in message.text.lower() for message in messages)


def announcing_json(request: Request, log: LossLog) -> Request:
    """Add an instruction to answer in JSON: OpenAI refuses JSON mode unless the conversation contains the word.

    «Response input messages must contain the word 'json' in some form».
    """
    if mentions_json(request.messages):
        return request
    log.invent(request, "output", "the instruction to answer in JSON", "this API requires the word JSON in a message")
    return log.replace(request, messages=(Message("system", "Answer in JSON."), *request.messages))
