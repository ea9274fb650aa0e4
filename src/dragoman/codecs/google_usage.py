"""Token counts of generateContent and Interactions: both count the same, under other names.

Thoughts are counted outside the output in both, and what a tool read outside the prompt. The intermediate format adds
them, so an answer that crosses from one API to the other is translated from the usage as it was written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET, Raw, Struct, UnsetType, structs

from dragoman.codecs.google_signatures import GOOGLE
from dragoman.codecs.reading import WireReader
from dragoman.ir import Usage
from dragoman.ir.notes import Extra, family_notes
from dragoman.ir.values import parse_json

USAGE_METADATA = "~usageMetadata"
"""Note: the usage object of generateContent, as written."""
INTERACTION_USAGE = "~usage"
"""Note: that of Interactions."""
_INTERACTIONS = "gemini-interactions"

_COUNTS = {
    "promptTokenCount": "total_input_tokens",
    "candidatesTokenCount": "total_output_tokens",
    "thoughtsTokenCount": "total_thought_tokens",
    "toolUsePromptTokenCount": "total_tool_use_tokens",
    "cachedContentTokenCount": "total_cached_tokens",
    "totalTokenCount": "total_tokens",
}
_LISTS = {
    "promptTokensDetails": "input_tokens_by_modality",
    "candidatesTokensDetails": "output_tokens_by_modality",
    "cacheTokensDetails": "cached_tokens_by_modality",
    "toolUsePromptTokensDetails": "tool_use_tokens_by_modality",
}
DETAILS_OF_GENERATE = frozenset(_LISTS)
DETAILS_OF_INTERACTIONS = frozenset(_LISTS.values())
AUDIO_COUNTS = frozenset({"audio_input", "audio_output"})


class _UsageWire(Struct, frozen=True, gc=False):
    """The counts we read. The whole object is kept beside them, byte for byte."""

    total_input_tokens: int | None | UnsetType = UNSET
    total_output_tokens: int | None | UnsetType = UNSET
    total_thought_tokens: int | None | UnsetType = UNSET
    total_tool_use_tokens: int | None | UnsetType = UNSET
    total_cached_tokens: int | None | UnsetType = UNSET
    total_tokens: int | None | UnsetType = UNSET


_reader = WireReader(_UsageWire, "gemini-interactions usage", path="$.usage")


def usage_for_interactions(usage: Usage) -> dict[str, Any] | None:
    """Return the usage of an answer of generateContent for Interactions; None for any other, or a changed one."""
    counts = _original_counts(usage, GOOGLE, USAGE_METADATA)
    if counts is None:
        return None
    translated: dict[str, Any] = dict.fromkeys(_COUNTS.values(), 0)
    for key, name in _COUNTS.items():
        if key in counts:
            translated[name] = counts[key]
    for key, name in _LISTS.items():
        if key in counts:
            entries = _entries(counts[key], "tokenCount")
            if entries is None:
                return None
            translated[name] = [{"modality": word.lower(), "tokens": count} for word, count in entries]
    return translated if _is_sum(translated, usage) else None


def usage_for_generate(usage: Usage) -> dict[str, Any] | None:
    """Return the usage of an interaction for generateContent; None for any other, or a changed one."""
    counts = _original_counts(usage, _INTERACTIONS, INTERACTION_USAGE)
    if counts is None or not _is_sum(counts, usage):
        return None
    translated: dict[str, Any] = {
        key: counts[name] for key, name in _COUNTS.items() if counts.get(name) or key in _ALWAYS
    }
    for key, name in _LISTS.items():
        if counts.get(name):
            entries = _entries(counts[name], "tokens")
            if entries is None:
                return None
            translated[key] = [{"modality": word.upper(), "tokenCount": count} for word, count in entries]
    return translated


_ALWAYS = frozenset({"promptTokenCount", "candidatesTokenCount", "totalTokenCount"})


def _original_counts(usage: Usage, family: str, key: str) -> dict[str, Any] | None:
    notes: Extra = family_notes(family, usage.metadata)
    if key not in notes:
        return None
    parsed = parse_json(notes[key])
    return parsed if isinstance(parsed, dict) else None


def _entries(details: Any, key: str) -> list[tuple[str, int]] | None:
    """Return (modality, count) of each entry of a list; None for one in another spelling."""
    if not isinstance(details, list):
        return None
    found = []
    for entry in details:
        word = entry.get("modality") if isinstance(entry, dict) else None
        count = entry.get(key, 0) if isinstance(entry, dict) else None
        if not isinstance(word, str) or type(count) is not int or not entry.keys() <= {"modality", key}:
            return None
        found.append((word, count))
    return found


def _is_sum(counts: Mapping[str, Any], usage: Usage) -> bool:
    """Whether these counts add up to the usage, which a program may have changed."""
    given = [count for name in _COUNTS.values() if type(count := counts.get(name)) is int]
    if len(given) < len(_COUNTS):
        return False
    read, written, thoughts, tools, cached, total = given
    return (
        (read + tools, written + thoughts, total) == (usage.input, usage.output, read + tools + written + thoughts)
        and cached == (usage.cached or 0)
        and thoughts == (usage.reasoning or 0)
    )


def by_modality(usage: Usage) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    """Return the input and the output of any usage by modality; empty if all of it is text."""
    if not usage.image and usage.details is None:
        return [], []
    details = usage.details or {}
    read = [("IMAGE", usage.image or 0), ("AUDIO", details.get("audio_input", 0))]
    written = [("AUDIO", details.get("audio_output", 0))]
    return _with_text(read, usage.input), _with_text(written, usage.output - (usage.reasoning or 0))


def _with_text(others: list[tuple[str, int]], total: int) -> list[tuple[str, int]]:
    counted = [(word, count) for word, count in others if count > 0]
    return [("TEXT", max(total - sum(count for _, count in counted), 0)), *counted] if counted else []


def _other_modalities(raw: Raw) -> tuple[int | None, dict[str, int] | None]:
    """Return the image tokens of the input, and the audio tokens of both sides, in the usage of an interaction."""
    data = bytes(raw)
    if b"_by_modality" not in data or not (b'"image"' in data or b'"audio"' in data):
        return None, None
    counts = parse_json(raw)
    found = {
        (name, word): count
        for name in ("input_tokens_by_modality", "output_tokens_by_modality")
        for word, count in _entries(counts.get(name, []), "tokens") or ()
        if count > 0
    }
    sound = {ours: found[name, "audio"] for ours, name in _AUDIO_IN.items() if (name, "audio") in found}
    return found.get(("input_tokens_by_modality", "image")), sound or None


_AUDIO_IN = {"audio_input": "input_tokens_by_modality", "audio_output": "output_tokens_by_modality"}


def read_usage(raw: Raw, family: str) -> Usage:
    """Return the usage of an interaction. Thoughts and what tools read are added to output and input."""
    wire = _reader.read(raw)
    thoughts, tools, cached = (
        None if count is UNSET else count
        for count in (wire.total_thought_tokens, wire.total_tool_use_tokens, wire.total_cached_tokens)
    )
    image, sound = _other_modalities(raw)
    return Usage(
        (wire.total_input_tokens or 0) + (tools or 0),
        (wire.total_output_tokens or 0) + (thoughts or 0),
        cached,
        reasoning=thoughts,
        image=image,
        total=None if wire.total_tokens is UNSET else wire.total_tokens,
        metadata={family: {INTERACTION_USAGE: raw}},
        details=sound,
    )


def write_usage(usage: Usage, thoughts: int, cached: int | None, total: int) -> dict[str, Any]:
    """Return any usage as that of an interaction."""
    counts = _UsageWire(usage.input, usage.output - thoughts, thoughts, 0, cached or 0, total)
    lists = zip(_AUDIO_IN.values(), by_modality(usage), strict=True)
    details = {
        name: [{"modality": word.lower(), "tokens": count} for word, count in entries]
        for name, entries in lists
        if entries
    }
    return {**structs.asdict(counts), **details}
