"""Settings that several APIs have under other names, in other words and with other limits."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

from msgspec import UNSET, Struct, UnsetType, structs

from dragoman.ir import Request, StructuredOutput
from dragoman.ir.requests import schema_held
from dragoman.ir.values import compact_text, encode_json
from dragoman.losses import LossLog

# ── labels ────────────────────────────────────────────────────────────────────────────────────────────────────


class LabelRules(Struct, frozen=True):
    """What an API takes as labels of a request."""

    key: re.Pattern[str]
    value: re.Pattern[str]
    pairs: int = 16


GOOGLE_LABELS: Final = LabelRules(re.compile(r"[a-z][a-z0-9_-]{0,62}"), re.compile(r"[a-z0-9_-]{0,63}"), 64)
OPENAI_LABELS: Final = LabelRules(re.compile(r"(?s:.{0,64})"), re.compile(r"(?s:.{0,512})"))


def fit_labels(labels: dict[str, str], rules: LabelRules, request: Request, log: LossLog) -> dict[str, str] | UnsetType:
    """The labels that the API takes; the others are losses."""
    kept: dict[str, str] = {}
    for key, value in labels.items():
        if rules.key.fullmatch(key) is None or rules.value.fullmatch(value) is None:
            log.drop(request, f"labels.{key}", f"label {key!r}", "this API refuses such a label")
        elif len(kept) == rules.pairs:
            log.drop(request, f"labels.{key}", f"label {key!r}", f"this API takes {rules.pairs} labels")
        else:
            kept[key] = value
    return kept or UNSET


# ── limits ────────────────────────────────────────────────────────────────────────────────────────────────────


def fit_limits(request: Request, stop_limit: int | None, log: LossLog) -> dict[str, Any]:
    """What to change in a request that has too many stop sequences, or no room for an answer."""
    changes: dict[str, Any] = {}
    if stop_limit is not None and len(request.stop) > stop_limit:
        log.drop(request, "stop", f"{len(request.stop) - stop_limit} stop sequences", f"this API takes {stop_limit}")
        changes["stop"] = request.stop[:stop_limit]
    maximum = request.max_output_tokens
    if maximum is not None and maximum < 1:
        log.drop(request, "max_output_tokens", f"limit of {maximum} tokens", "this API wants at least one token")
        changes["max_output_tokens"] = None
    return changes


def fit_modalities(modalities: tuple[str, ...], known: tuple[str, ...], request: Request, log: LossLog) -> list[str]:
    """The kinds of answer that an API knows."""
    kept = [word for word in modalities if word in known]
    if len(kept) < len(modalities):
        log.drop(request, "modalities", "kind of answer", f"this API knows {', '.join(known)}")
    return kept


# ── the end user ──────────────────────────────────────────────────────────────────────────────────────────────

LONGEST_IDENTIFIER: Final = 64
"""Of OpenAI's `safety_identifier`."""


def fit_identifier(identifier: str, request: Request, log: LossLog) -> str:
    """The identifier, or its hash where it is too long: the same user keeps the same one."""
    if len(identifier) <= LONGEST_IDENTIFIER:
        return identifier
    what = f"identifier of {len(identifier)} characters"
    log.degrade(request, "safety_identifier", what, f"hashed: this API takes at most {LONGEST_IDENTIFIER}")
    return sha256(identifier.encode()).hexdigest()


# ── service tiers ─────────────────────────────────────────────────────────────────────────────────────────────

AUTO: Final = "auto"
"""The provider or the account decides: what every API does when nothing is said."""


def fit_tier(tier: str, words: Mapping[str, str], request: Request, log: LossLog) -> str | UnsetType:
    """The tier in an API's own words (`words` maps ours to them)."""
    word = words.get(tier)
    if word is not None:
        return word
    if tier != AUTO:
        log.drop(request, "service_tier", f"service tier {tier!r}", "this API has no such tier")
    return UNSET


def tier_writer(words: Mapping[str, str]) -> Any:
    """A writer of tiers, for the table of settings."""
    return lambda tier, request, log: fit_tier(tier, words, request, log)


def read_tier(words: Mapping[str, str]) -> Any:
    """A reader of tiers: an API's own word -> ours; None for one we do not know."""
    ours: dict[str, str] = {}
    for tier, word in words.items():
        ours.setdefault(word, tier)
    return lambda word: ours.get(word) if isinstance(word, str) else None


CHAT_TIERS: Final = {tier: tier for tier in ("auto", "default", "flex", "scale", "priority", "fast")}
# «The response will show priority regardless»: fast is another word for it.
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


def tiers_read(words: Mapping[str, str]) -> dict[bytes, str]:
    """An API's own word for the tier of an answer, as JSON -> ours."""
    return {encode_json(word): tier for tier, word in words.items()}


# ── structured output ─────────────────────────────────────────────────────────────────────────────────────────

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")

JSON_INSTRUCTION: Final = "Answer with one JSON object and nothing else."
"""For APIs without JSON mode."""


def json_instruction(output: StructuredOutput) -> str:
    """What to tell a model whose API does not take the form that the answer must have."""
    held = schema_held(output)
    if output.kind == "json" or held is None:
        return JSON_INSTRUCTION
    return f"Answer with JSON that follows this JSON Schema, and nothing else:\n{compact_text(held)}"


def name_of_title(output: StructuredOutput) -> tuple[str | None, StructuredOutput]:
    """The title of the schema, if it can be the name that OpenAI wants a schema to have, and the output without it."""
    schema = output.schema
    title = schema.get("title") if isinstance(schema, dict) else None
    if not isinstance(title, str) or _NAME.fullmatch(title) is None:
        return None, output
    untitled = {key: value for key, value in schema.items() if key != "title"}
    return title, structs.replace(output, schema=untitled)


def report_json_instruction(request: Request, log: LossLog) -> None:
    what, why = "JSON without a schema", "asked for in the system text: this API wants a schema for structured output"
    log.degrade(request, "output", what, why)
