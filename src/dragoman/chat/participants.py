"""The models of a conversation: their names, and the drivers that reach them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from importlib.util import find_spec
from typing import Any

from msgspec import Struct

from dragoman.chat.entries import OTHERS
from dragoman.chat.mentions import ALL
from dragoman.chat.tokens import window_of
from dragoman.drivers.base import Driver
from dragoman.drivers.connect import connect

_NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,62}[A-Za-z0-9_])?")
DEFAULTS: Mapping[str, str] = {
    "gemini": "gemini/gemini-3.8-flash",
    "chatgpt": "openai/gpt-5.6",
    "claude": "anthropic/claude-sonnet-5",
    "ollama": "ollama/qwen3",
}
"""Also `local`: the model named by `CHAT_MODEL_LOCAL` or the command line, or one installed on this machine."""


class Participant(Struct, frozen=True, kw_only=True):
    """One model. It connects on its first question, so that a missing key does not affect the other models."""

    name: str
    model: str
    """provider/model."""
    connect: Callable[[], Driver]
    window: int
    is_simulated: bool = False
    """A simulator answers instead of a model: front ends say so."""
    format: str = ""
    """The wire format of its requests, if not that of its provider."""

    def __post_init__(self) -> None:
        if not is_a_name(self.name):
            raise ValueError(
                f"{self.name!r} is not a valid name for a model: use letters, digits, '_', '.', '-', "
                f"and none of all, assistant, {', '.join(sorted(OTHERS))}"
            )


def is_a_name(word: str) -> bool:
    """Whether a model can have this name."""
    return _NAME.fullmatch(word) is not None and word.casefold() not in {ALL, "assistant", *OTHERS}


def participant(
    name: str,
    model: str = "",
    *,
    driver: Driver | None = None,
    window: int | None = None,
    options: Mapping[str, Any] | None = None,
    is_simulated: bool = False,
) -> Participant:
    """Makes a participant from an existing driver, or from `provider/model` with the options of `connect`."""
    known = model or (driver.name if driver is not None else "")
    given: Any = dict(options or {})
    return Participant(
        name=name,
        model=known,
        connect=(lambda: driver) if driver is not None else (lambda: connect(known, **given)),
        window=window or window_of(name, known),
        is_simulated=is_simulated,
    )


def configured_models(chosen: Iterable[str] = (), environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Name -> provider/model: from `name=provider/model` arguments, or the defaults and `CHAT_MODEL_<NAME>`.

    >>> configured_models(["fast=gemini/gemini-3.8-flash", "claude"], {})
    {'fast': 'gemini/gemini-3.8-flash', 'claude': 'anthropic/claude-sonnet-5'}
    """
    known = os.environ if environment is None else environment
    defaults = {name: known.get(f"CHAT_MODEL_{name.upper()}") or model for name, model in DEFAULTS.items()}
    local = known.get("CHAT_MODEL_LOCAL") or _installed_model()
    if local:
        defaults["local"] = local
    found: dict[str, str] = {}
    for word in chosen:
        name, _, model = word.partition("=")
        if not model and "/" in name:  # provider/model without a name: named after its provider
            name, model = name.partition("/")[0], name
        if not model and name not in defaults:
            raise ValueError(f"{word!r}: write name=provider/model, or one of {', '.join(defaults)}")
        if name.casefold() in {one.casefold() for one in found}:
            raise ValueError(f"two models are named {name!r}: give one of them another name, as name=provider/model")
        found[name] = model or defaults[name]
    return found or defaults


def _installed_model() -> str | None:
    """A model installed as a package, if its runtime is installed too."""
    if find_spec("xllamacpp") is None:
        return None
    from dragoman.local.models import installed_models  # noqa: PLC0415 - rarely needed

    return next((f"local/{name}" for name in installed_models()), None)
