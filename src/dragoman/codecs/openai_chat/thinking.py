"""How much the model reasons, and the settings that depend on it."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec
from msgspec import UNSET, Raw, structs

from dragoman.codecs.openai_chat.messages import FAMILY
from dragoman.codecs.openai_chat.profile import PLAIN_MODELS, REASONING_MODELS, SAMPLING, ChatProfile
from dragoman.codecs.openai_chat.wire import ReasoningObject, ThinkingObject
from dragoman.codecs.reading import WireValue
from dragoman.codecs.reasoning_effort import effort_asked
from dragoman.ir import ReasoningSettings, Request
from dragoman.ir.notes import Extra
from dragoman.ir.values import encode_json, parse_json
from dragoman.losses import LossLog

OBJECT = "reasoning"
"""OpenRouter's key for all settings of reasoning."""
SWITCH = "thinking"
"""The key of DeepSeek, GLM, Kimi and LiteLLM: Anthropic's object."""
WHOLE_OBJECT, WHOLE_SWITCH, WHOLE_FLAGS = "~reasoning", "~switch", "~flags"
"""Notes: the object as written; the flags as an object."""
SHOWN, TEMPLATE = "include_reasoning", "chat_template_kwargs"
"""The key of OpenRouter and Groq that shows reasoning; that of vLLM and SGLang for the variables of a template."""
IN_TEMPLATE = ("enable_thinking", "thinking")
"""Variables that switch reasoning in the templates of Qwen and GLM, and of DeepSeek and Granite."""
FLAGS = ("enable_thinking", "thinking_budget", TEMPLATE, SHOWN)
"""Keys beside each other that say how to reason, the first two of them Qwen's."""
_EFFORT_BESIDE = "~effort"
"""Note: the `reasoning_effort` beside the object."""

_object = msgspec.json.Decoder(ReasoningObject).decode
_switch = msgspec.json.Decoder(ThinkingObject).decode
_entries = msgspec.json.Decoder(dict[str, Raw]).decode
_NOTHING = ReasoningObject()


def decode_reasoning(effort: str | None, extra: Extra | None) -> ReasoningSettings | None:
    """Return the settings of the effort and of the object, which is taken out of the keys if we understand it."""
    if extra is not None and OBJECT in extra:
        return _decode_object(extra, effort)
    if extra is not None and SWITCH in extra:
        return _decode_switch(extra, effort)
    if extra is not None and not extra.keys().isdisjoint(FLAGS):
        return _decode_flags(extra, effort)
    return None if effort is None else ReasoningSettings("off" if effort == "none" else None, effort)


def _decode_object(extra: Extra, effort: str | None) -> ReasoningSettings | None:
    raw = extra[OBJECT]
    try:
        wire = _object(raw)
    except msgspec.ValidationError:
        wire = _NOTHING
    if wire == _NOTHING:
        return decode_reasoning(effort, None)
    del extra[OBJECT]
    notes = _notes(raw, WHOLE_OBJECT, _KNOWN, effort)
    if effort is not None and wire.effort not in (None, effort):
        notes["reasoning_effort"] = notes[_EFFORT_BESIDE]
    return structs.replace(_settings(wire, effort), metadata={FAMILY: notes})


def _decode_switch(extra: Extra, effort: str | None) -> ReasoningSettings | None:
    raw = extra[SWITCH]
    try:
        wire = _switch(raw)
    except msgspec.ValidationError:
        return decode_reasoning(effort, None)
    del extra[SWITCH]
    notes = _notes(raw, WHOLE_SWITCH, _KNOWN_OF_SWITCH, effort)
    return structs.replace(_switched(wire, effort), metadata={FAMILY: notes})


def _decode_flags(extra: Extra, effort: str | None) -> ReasoningSettings | None:
    """Return the settings of the flags that we understand. Further variables of a template are reported apart."""
    flags = {key: extra[key] for key in FLAGS if key in extra and _is_understood(key, parse_json(extra[key]))}
    if not flags:
        return decode_reasoning(effort, None)
    for key in flags:
        del extra[key]
    notes: Extra = {WHOLE_FLAGS: Raw(encode_json(flags))}
    for name, value in (_entries(flags[TEMPLATE]) if TEMPLATE in flags else {}).items():
        if name not in IN_TEMPLATE:
            notes[f"{TEMPLATE}.{name}"] = value
    if effort is not None:
        notes[_EFFORT_BESIDE] = Raw(encode_json(effort))
    return structs.replace(_flagged(parse_json(notes[WHOLE_FLAGS]), effort), metadata={FAMILY: notes})


def _is_understood(key: str, value: Any) -> bool:
    if key == TEMPLATE:
        return isinstance(value, dict) and any(isinstance(value.get(name), bool) for name in IN_TEMPLATE)
    return type(value) is int and value > 0 if key == "thinking_budget" else isinstance(value, bool)


def _flagged(flags: dict[str, Any], effort: str | None) -> ReasoningSettings:
    template = flags.get(TEMPLATE, {})
    given = (flags.get("enable_thinking"), *(template.get(name) for name in IN_TEMPLATE))
    switch = next((value for value in given if isinstance(value, bool)), None)
    budget = flags.get("thinking_budget")
    mode: Any = None
    if switch is False or effort == "none":
        mode = "off"
    elif switch or budget is not None:
        mode = "on"
    return ReasoningSettings(mode, effort, budget, flags.get(SHOWN))


def _notes(raw: Raw, whole: str, known: frozenset[str], effort: str | None) -> Extra:
    """Return the notes on an object; its further keys are noted separately too, so that other targets report them."""
    notes = {key: value for key, value in _entries(raw).items() if key not in known and key[:1] != "~"}
    notes[whole] = Raw(bytes(raw))
    if effort is not None:
        notes[_EFFORT_BESIDE] = Raw(encode_json(effort))
    return notes


_KNOWN = frozenset(ReasoningObject.__struct_fields__)
_KNOWN_OF_SWITCH = frozenset(ThinkingObject.__struct_fields__)


def _settings(wire: ReasoningObject, beside: str | None) -> ReasoningSettings:
    effort = wire.effort or beside
    mode: Any = None
    if wire.enabled is False or effort == "none":
        mode = "off"
    elif wire.enabled or wire.max_tokens is not None:
        mode = "on"
    return ReasoningSettings(mode, effort, wire.max_tokens, None if wire.exclude is None else not wire.exclude)


def _switched(wire: ThinkingObject, effort: str | None) -> ReasoningSettings:
    is_off = wire.type == "disabled" or effort == "none"
    return ReasoningSettings("off" if is_off else "on", effort, wire.budget_tokens)


def encode_reasoning(request: Request, log: LossLog, profile: ChatProfile) -> tuple[WireValue, Extra | None]:
    """Return the effort, and the key with the object, if the client sent one that says these settings."""
    settings = request.reasoning
    if settings is None:
        return UNSET, None
    notes = None if settings.metadata is None else settings.metadata.get(FAMILY)
    if notes is not None and not notes.keys().isdisjoint((WHOLE_OBJECT, WHOLE_SWITCH, WHOLE_FLAGS)):
        unchanged = _write_unchanged(settings, notes, profile)
        if unchanged is not None:
            return unchanged
        for key in notes:
            if key[:1] != "~":
                log.drop(request, f"reasoning.{key}", key, "only the effort is sent")
    return _encode_effort(settings, request, log), None


def _write_unchanged(settings: ReasoningSettings, notes: Extra, profile: ChatProfile) -> tuple[WireValue, Extra] | None:
    """Return the keys as the client wrote them; None if they no longer say the settings, or the server refuses them."""
    if WHOLE_FLAGS in notes:
        return _write_flags(settings, notes, profile)
    key, whole = (OBJECT, WHOLE_OBJECT) if WHOLE_OBJECT in notes else (SWITCH, WHOLE_SWITCH)
    if profile.known_keys is not None and key not in profile.known_keys:
        return None
    raw, beside = notes[whole], notes.get(_EFFORT_BESIDE)
    effort = None if beside is None else parse_json(beside)
    written = _settings(_object(raw), effort) if key == OBJECT else _switched(_switch(raw), effort)
    if written != structs.replace(settings, metadata=None):
        return None
    return UNSET if effort is None else effort, {key: raw}


def _write_flags(settings: ReasoningSettings, notes: Extra, profile: ChatProfile) -> tuple[WireValue, Extra] | None:
    flags, beside = _entries(notes[WHOLE_FLAGS]), notes.get(_EFFORT_BESIDE)
    if profile.known_keys is not None and not flags.keys() <= profile.known_keys:
        return None
    effort = None if beside is None else parse_json(beside)
    if _flagged(parse_json(notes[WHOLE_FLAGS]), effort) != structs.replace(settings, metadata=None):
        return None
    return UNSET if effort is None else effort, flags


def _encode_effort(settings: ReasoningSettings, request: Request, log: LossLog) -> WireValue:
    if request.origin != FAMILY and request.model is not None and PLAIN_MODELS.match(request.model) is not None:
        log.drop(request, "reasoning", "reasoning settings", "this model does not reason")
        return UNSET
    if settings.visible and FAMILY not in (settings.metadata or {}):
        log.drop(request, "reasoning.visible", "visible reasoning", "this API does not show reasoning")
    effort = effort_asked(settings, request, log)
    if effort is not None:
        return effort
    if settings.mode == "off":
        return "none"
    if settings.mode is not None:
        log.degrade(request, "reasoning.mode", f"reasoning {settings.mode}", "the model's own default effort applies")
    return UNSET


@lru_cache(maxsize=256)
def _reasons(model: str) -> bool:
    return REASONING_MODELS.match(model) is not None


def without_sampling(request: Request, effort: WireValue, log: LossLog) -> Request:
    """Drop what reasoning models refuse: sampling settings while they reason, and stop sequences always."""
    if not (request.stop or _samples(request)) or request.model is None or not _reasons(request.model):
        return request
    changes: dict[str, Any] = {}
    why = "this model refuses it while it reasons"
    for name in SAMPLING if effort != "none" else ():
        if getattr(request, name) is not None:
            log.drop(request, name, name, why)
            changes[name] = None
    if request.stop:
        log.drop(request, "stop", "stop sequences", "this model takes none")
        changes["stop"] = ()
    return log.replace(request, **changes)


def _samples(request: Request) -> bool:
    return (
        request.temperature is not None
        or request.top_p is not None
        or request.presence_penalty is not None
        or request.frequency_penalty is not None
        or request.logprobs is not None
        or request.top_logprobs is not None
    )
