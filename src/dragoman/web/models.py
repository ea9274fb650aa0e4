"""Models for the gateway's chat: all that it can reach, used through the gateway like any client does.

So limits, budgets, routes and fallbacks apply to the chat too, and its requests appear in the live view.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from urllib.parse import urlsplit

from msgspec import structs

from dragoman.chat.participants import Participant, configured_models, is_a_name, participant
from dragoman.drivers.providers import ALIASES, PROVIDERS
from dragoman.drivers.retries import RetryPolicy
from dragoman.gateway.client_protocols import CLIENT_PROTOCOLS
from dragoman.gateway.routing import Router

_ANY_FORMAT = "openai-chat"
_UNSPOKEN = frozenset({"vertex", "bedrock-converse"})
"""Formats whose drivers require credentials that a gateway does not."""
_EVERYWHERE = frozenset({"0.0.0.0", "::"})  # noqa: S104 - a server that listens there is reachable on loopback
_PATTERN = frozenset("*?[")
FOREIGN_FORMATS = tuple(
    name for name, wire in CLIENT_PROTOCOLS.items() if not wire.model_in_path and name not in _UNSPOKEN
)
"""Formats in which a client can name the model of any provider."""


class GatewayModels:
    """Connects to models through a gateway, with the user's own key."""

    def __init__(self, url: str, key: str, is_simulated: Callable[[str], bool] = lambda _: False) -> None:
        self._is_simulated = is_simulated
        split = urlsplit(url)
        is_everywhere = split.hostname in _EVERYWHERE
        self._url = f"http://127.0.0.1:{split.port}" if is_everywhere else url
        self._key = key

    def participant(self, name: str, model: str) -> Participant:
        """A participant that uses the provider's own format, so that nothing is lost."""
        head = model.partition("/")[0]
        provider = PROVIDERS.get(ALIASES.get(head, head))
        format = _ANY_FORMAT if provider is None or provider.format in _UNSPOKEN else provider.format
        return self._participant(name, model, format)

    def in_format(self, known: Participant, format: str) -> Participant:
        """The same model, addressed in another format, which the gateway translates. Raises `ValueError`."""
        if format not in FOREIGN_FORMATS:
            raise ValueError(f"messages cannot be sent as {format}: choose one of {', '.join(FOREIGN_FORMATS)}")
        return structs.replace(self._participant(known.name, known.model, format), format=format)

    def _participant(self, name: str, model: str, format: str) -> Participant:
        wire = CLIENT_PROTOCOLS[format]
        home = wire.home
        # In a path, a slash would separate resources; the bare model name goes to this format's own provider.
        asked_for = model.partition("/")[2] if wire.model_in_path else model
        base = self._url + urlsplit(PROVIDERS[home].base_url).path
        # No retries here: the gateway retries.
        options = {"base_url": base, "api_key": self._key, "proxy": "", "environment": {}}
        resolved = participant(name, f"{home}/{asked_for}", options={**options, "retry": RetryPolicy(attempts=1)})
        known = participant(name, model)
        return Participant(
            name=name,
            model=model,
            connect=resolved.connect,
            window=known.window,
            is_simulated=self._is_simulated(model),
        )


def reachable_models(router: Router, environment: Mapping[str, str]) -> dict[str, str]:
    """Name -> model for every usable provider and route; the default models if there are none."""
    usual = configured_models((), environment)
    named = {ALIASES.get(head, head): name for name, model in usual.items() if (head := model.partition("/")[0])}
    found = dict(_provider_models(router, usual, named))
    ordered = {name: found[name] for name in usual if name in found} | found
    for route in router.config.routes:
        if not set(route) & _PATTERN and is_a_name(route):
            ordered.setdefault(route, route)
    return ordered or usual


def _provider_models(router: Router, usual: Mapping[str, str], named: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for place in router.available():
        name = named.get(place.name, place.name)
        wanted = usual.get(name, "")
        offered = [f"{place.name}/{model}" for model in place.models]
        if offered and wanted not in offered and is_a_name(name):
            yield name, offered[0]
        elif name in usual:
            yield name, wanted
