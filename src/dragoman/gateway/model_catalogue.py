"""The models that clients may use, listed in the shape of each format."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from msgspec import Struct, structs

from dragoman.drivers.model_listing import list_models
from dragoman.drivers.transport import Timeouts
from dragoman.errors import DragomanError
from dragoman.gateway.access import Caller
from dragoman.gateway.routing import Place, Router, is_name
from dragoman.gateway.upstreams import open_upstreams

_FRESH = 300.0
_TIMEOUTS = Timeouts(connect=2.0, first_byte=5.0, total=8.0)
_EPOCH = "2026-01-01T00:00:00Z"


class Listed(Struct, frozen=True):
    id: str
    """`provider/model`, or a route."""
    owner: str


class Catalogue:
    """Lists routes, configured models, and the models that providers list, which are cached for a while."""

    def __init__(self, router: Router) -> None:
        self._router = router
        self._known: tuple[float, tuple[Listed, ...]] | None = None
        self._asking = asyncio.Lock()

    async def models(self) -> tuple[Listed, ...]:
        async with self._asking:
            if self._known is None or time.monotonic() - self._known[0] > _FRESH:
                self._known = (time.monotonic(), await self._ask())
            return self._known[1]

    async def _ask(self) -> tuple[Listed, ...]:
        places = list(self._router.available())
        found = await asyncio.gather(*(_of_place(place) for place in places))
        routes = [Listed(name, "dragoman") for name in self._router.config.routes if not set(name) & set("*?[")]
        listed = [
            Listed(f"{place.name}/{name}", place.name)
            for place, names in zip(places, found, strict=True)
            for name in names
        ]
        return tuple(dict.fromkeys([*routes, *self._match_wildcards(listed), *listed]))

    def _match_wildcards(self, listed: Sequence[Listed]) -> list[Listed]:
        """Return names without provider that a wildcard route accepts: its targets, and listed models it matches."""
        found: list[Listed] = []
        for pattern, route in self._router.config.routes.items():
            if not set(pattern) & set("*?["):
                continue
            targets = (route.to,) if isinstance(route.to, str) else route.to
            names = [target if isinstance(target, str) else target.model for target in targets]
            bare = [name.partition("/")[2] for name in [*names, *(model.id for model in listed)]]
            found += [Listed(name, "dragoman") for name in bare if name and fnmatchcase(name, pattern)]
        return found


def allowed_models(models: Sequence[Listed], caller: Caller, router: Router) -> list[Listed]:
    """Return the models that this client may use, under names that it may use.

    A key for `claude-*` may not use the name `anthropic/claude-sonnet-5`, so the list has that model without the
    provider, if the name alone is routed to it.
    """
    allowed = []
    for model in models:
        bare = model.id.partition("/")[2]
        if caller.allows(model.id):
            allowed.append(model)
        elif bare and caller.allows(bare) and router.provider_of(bare) == model.owner:
            allowed.append(Listed(bare, model.owner))
    return allowed


async def _of_place(place: Place) -> Sequence[str]:
    """Return the models of a provider; none if it does not answer."""
    if place.models:
        return place.models
    try:
        upstream = open_upstreams(place.name, place.provider, place.options, place.keys[:1], place.breaker)[0]
        channel = structs.replace(upstream.channel, timeouts=_TIMEOUTS)
        try:
            return [name for name in await list_models(channel) if is_name(name)]
        finally:
            await channel.transport.close()
    except (DragomanError, OSError):
        return ()


# ── shapes ──


def _openai(models: Sequence[Listed]) -> dict[str, Any]:
    return {"object": "list", "data": [_openai_model(model) for model in models]}


def _openai_model(model: Listed) -> dict[str, Any]:
    return {"id": model.id, "object": "model", "created": 0, "owned_by": model.owner}


def _anthropic(models: Sequence[Listed]) -> dict[str, Any]:
    ends = {"first_id": models[0].id, "last_id": models[-1].id} if models else {"first_id": None, "last_id": None}
    return {"data": [_anthropic_model(model) for model in models], "has_more": False, **ends}


def _anthropic_model(model: Listed) -> dict[str, Any]:
    return {"type": "model", "id": model.id, "display_name": model.id, "created_at": _EPOCH}


def _gemini(models: Sequence[Listed]) -> dict[str, Any]:
    return {"models": [_gemini_model(model) for model in models]}


def _gemini_model(model: Listed) -> dict[str, Any]:
    return {
        "name": f"models/{model.id}",
        "displayName": model.id,
        "version": "001",
        "supportedGenerationMethods": ["generateContent", "streamGenerateContent", "countTokens"],
    }


def _ollama(models: Sequence[Listed]) -> dict[str, Any]:
    return {"models": [_ollama_model(model) for model in models]}


def _ollama_model(model: Listed) -> dict[str, Any]:
    details = {"parent_model": "", "format": "gateway", "family": model.owner, "families": [model.owner]}
    return {
        "name": model.id,
        "model": model.id,
        "modified_at": _EPOCH,
        "size": 0,
        "digest": "",
        "details": {**details, "parameter_size": "", "quantization_level": ""},
    }


def _bedrock(models: Sequence[Listed]) -> dict[str, Any]:
    return {"modelSummaries": [_bedrock_model(model) for model in models]}


def _bedrock_model(model: Listed) -> dict[str, Any]:
    return {"modelId": model.id, "modelName": model.id, "providerName": model.owner, "responseStreamingSupported": True}


def _cohere(models: Sequence[Listed]) -> dict[str, Any]:
    return {"models": [_cohere_model(model) for model in models]}


def _cohere_model(model: Listed) -> dict[str, Any]:
    return {"name": model.id, "is_deprecated": False, "endpoints": ["chat"], "finetuned": False, "features": ["tools"]}


SHAPES: Mapping[str, Callable[[Sequence[Listed]], dict[str, Any]]] = {
    "openai-chat": _openai,
    "openai-responses": _openai,
    "anthropic-messages": _anthropic,
    "gemini": _gemini,
    "vertex": _gemini,
    "gemini-interactions": _gemini,
    "ollama-chat": _ollama,
    "bedrock-converse": _bedrock,
    "cohere-chat": _cohere,
}
ONE: Mapping[str, Callable[[Listed], dict[str, Any]]] = {
    "openai-chat": _openai_model,
    "openai-responses": _openai_model,
    "anthropic-messages": _anthropic_model,
    "gemini": _gemini_model,
    "vertex": _gemini_model,
    "gemini-interactions": _gemini_model,
    "ollama-chat": _ollama_model,
    "bedrock-converse": _bedrock_model,
    "cohere-chat": _cohere_model,
}
