"""Maps the name of a model to the upstreams that may answer, in the order to try them."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import translate as glob

from msgspec import Struct, structs

from dragoman.drivers.connect import Environment, Options
from dragoman.drivers.providers import ALIASES, PROVIDERS, Provider, providers_of_name
from dragoman.drivers.transport import Timeouts
from dragoman.errors import NotConfigured
from dragoman.gateway.client_protocols import CLIENT_PROTOCOLS
from dragoman.gateway.config import Config, ConfigError, ProviderTable, RouteTable, Weighted
from dragoman.gateway.upstreams import Breaker, BreakerSettings, Upstream, open_upstreams

_MOST_PLANS = 1_000

# Some APIs name the model in the path: a name must not lead to another path, or end it.
_NAME = re.compile(r"[!$&-\[\]^_`a-z{|}~]{1,300}")
_ELSEWHERE = frozenset({"", ".", ".."})


def is_name(model: str) -> bool:
    return _NAME.fullmatch(model) is not None and "?" not in model and _ELSEWHERE.isdisjoint(model.split("/"))


class Candidate(Struct, frozen=True):
    """One upstream, and its name for the model."""

    upstream: Upstream
    model: str

    @property
    def breaker(self) -> Breaker:
        return self.upstream.breakers[self.model]


class RouteSettings(Struct, frozen=True, kw_only=True):
    strict: bool = False
    max_output_tokens: int | None = None
    reasoning: str | None = None
    cache: str | None = None
    drop: tuple[str, ...] = ()
    attempts: int = 3
    changes_requests: bool = False

    def __post_init__(self) -> None:
        set_here = (self.max_output_tokens, self.reasoning, self.cache)
        changes = any(value is not None for value in set_here) or bool(self.drop) or self.strict
        structs.force_setattr(self, "changes_requests", changes)


class Plan(Struct, frozen=True):
    route: str
    candidates: tuple[Candidate, ...]
    settings: RouteSettings

    def uses_only(self, format: str) -> bool:
        """Whether every candidate uses this format."""
        for candidate in self.candidates:  # noqa: SIM110 - a generator costs more than the comparison
            if candidate.upstream.channel.provider.format != format:
                return False
        return True


class NoSuchModel(Exception):
    """No upstream has this model. `hint` states what is missing."""

    def __init__(self, model: str, hint: str = "") -> None:
        self.model = model
        self.hint = hint
        super().__init__(model)


PLAIN = RouteSettings()


class Place(Struct, frozen=True):
    """A provider with the settings that this gateway uses for it."""

    name: str
    provider: Provider
    options: Options
    keys: tuple[str, ...] = ()
    breaker: BreakerSettings = BreakerSettings()
    models: tuple[str, ...] = ()
    is_configured: bool = False
    """Whether it is a provider of the configuration, and not of the environment."""


class Router:
    """Immutable except for the upstreams it has opened: a new configuration makes a new router."""

    def __init__(
        self,
        config: Config,
        environment: Environment,
        simulated: Mapping[str, str] | None = None,
        *,
        local: Mapping[str, tuple[str, ...]] | None = None,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.config = config
        self._environment = environment
        self._simulated = simulated or {}
        self._chance = chance
        self._local = local or {}
        self._places = {name: configured_place(name, table, environment) for name, table in config.providers.items()}
        self._opened: dict[str, tuple[Upstream, ...]] = {}
        self._turn = 0
        self._plans: dict[tuple[str, str], Plan] = {}
        self._globs = [
            (re.compile(glob(name)), name, route) for name, route in config.routes.items() if set(name) & set("*?[")
        ]

    # ── names ──

    def plan(self, model: str, format: str) -> Plan:
        """Return the candidates for a model. Raises `NoSuchModel`."""
        plan = self._plans.get((model, format))
        if plan is None:
            plan = self._make_plan(model, format)
            # The plan of one candidate without a route never changes. Clients choose the names, so limit the cache.
            if plan.settings is PLAIN and len(plan.candidates) == 1 and len(self._plans) < _MOST_PLANS:
                self._plans[model, format] = plan
        return plan

    def _make_plan(self, model: str, format: str) -> Plan:
        model = model.removeprefix("models/")
        name, route = self._route(model)
        if route is None:
            return Plan(model, self._candidates([self._with_provider(model, format)], format), PLAIN)
        settings = RouteSettings(
            strict=route.strict,
            max_output_tokens=route.max_output_tokens,
            reasoning=route.reasoning,
            cache=route.cache,
            drop=route.drop,
            attempts=route.attempts,
        )
        targets = [*self._shuffle_by_weight(route), *route.fallback]
        return Plan(name, self._candidates(list(self._resolve_targets(targets, format, {name})), format), settings)

    def _route(self, model: str) -> tuple[str, RouteTable | None]:
        exact = self.config.routes.get(model)
        if exact is not None:
            return model, exact
        return next(((name, route) for pattern, name, route in self._globs if pattern.match(model)), (model, None))

    def _shuffle_by_weight(self, route: RouteTable) -> list[str]:
        """Return the targets in random order, by weight."""
        if isinstance(route.to, str):
            return [route.to]
        choices = [one if isinstance(one, Weighted) else Weighted(model=one) for one in route.to]
        ordered: list[str] = []
        while choices:
            point = self._chance() * sum(one.weight for one in choices)
            for one in choices:
                point -= one.weight
                if point < 0:
                    break
            else:
                one = choices[-1]
            choices.remove(one)
            ordered.append(one.model)
        return ordered

    def _resolve_targets(self, targets: Sequence[str], format: str, seen: set[str]) -> Iterator[str]:
        """Yield `provider/model` for each target, following routes that name other routes.

        Each route is followed once, at its first mention, and without recursion: routes may form long chains, and
        have very many ways from one to another.
        """
        waiting = list(reversed(targets))
        while waiting:
            target = waiting.pop()
            route = self.config.routes.get(target)
            if route is None:
                yield self._with_provider(target, format)
            elif target not in seen:
                seen.add(target)
                waiting += reversed([*self._shuffle_by_weight(route), *route.fallback])

    def _with_provider(self, model: str, format: str) -> str:
        """Return `provider/model`; if the provider is missing, the model's name or the client's format selects it."""
        head, slash, rest = model.partition("/")
        if slash and rest and (head in self._places or ALIASES.get(head, head) in PROVIDERS):
            return model
        home = CLIENT_PROTOCOLS[format].home
        having = providers_of_name(model)
        if not having and slash and not self._allows_slashes(home, format):
            known = dict.fromkeys([*self.config.routes, *(place.name for place in self.available())])
            raise NoSuchModel(model, f"unknown provider {head!r}; known providers: {', '.join(known) or 'none'}")
        having = having or (home,)
        return f"{home if home in having else having[0]}/{model}"

    def provider_of(self, model: str) -> str | None:
        """Return the provider that a model name without one is routed to, if the name shows its vendor."""
        having = providers_of_name(model)
        return having[0] if having else None

    def _allows_slashes(self, home: str, format: str) -> bool:
        """Whether models may be named like `Qwen/Qwen3-8B`: at self-hosted servers, not at vendors or simulators."""
        place = self._place(home, format)
        if not place.is_configured and place.name in self._simulated:
            return False
        addressed = any(self._environment.get(name) for name in place.provider.base_url_environment)
        return addressed or not place.provider.key_required or "base_url" in place.options

    # ── upstreams ──

    def _candidates(self, targets: Sequence[str], format: str) -> tuple[Candidate, ...]:
        found: list[Candidate] = []
        problem: NoSuchModel | None = None
        for target in targets:
            provider, _, model = target.partition("/")
            if not is_name(model) or not self._is_offered(provider, model):
                raise NoSuchModel(model)
            try:
                upstreams = self._upstreams(provider, format)
            except NotConfigured as error:
                problem = problem or NoSuchModel(model, f"on the gateway's side: {_for_gateway(error)}")
                continue
            found += [Candidate(upstream, model) for upstream in upstreams]
        if not found:
            raise problem or NoSuchModel(targets[0])
        return tuple(found)

    def _is_offered(self, provider: str, model: str) -> bool:
        """Whether clients may use this local model: only installed ones, since a name could be any file."""
        names = self._local.get(provider)
        return provider in self._places or names is None or model in names

    def _upstreams(self, name: str, format: str) -> Sequence[Upstream]:
        place = self._place(name, format)
        upstreams = self._opened.get(place.name)
        if upstreams is None:
            upstreams = open_upstreams(place.name, place.provider, place.options, place.keys, place.breaker)
            self._opened[place.name] = upstreams
        if len(upstreams) == 1:
            return upstreams
        self._turn += 1
        turn = self._turn % len(upstreams)
        return sorted((*upstreams[turn:], *upstreams[:turn]), key=lambda one: one.in_flight)

    def _place(self, name: str, format: str) -> Place:
        place = self._places.get(name)
        if place is not None:
            return place
        provider = _api_in_format(PROVIDERS[ALIASES.get(name, name)], format)
        place = self._places.get(provider.name)
        return place or self._sibling(provider) or self._of_environment(provider)

    def _sibling(self, provider: Provider) -> Place | None:
        """Return the vendor's other API, if that is configured and the environment has no key for this one."""
        if provider.name in self._simulated or any(self._environment.get(name) for name in provider.key_environment):
            return None
        configured = (self._places.get(other.name) for other in PROVIDERS.values() if _is_sibling(other, provider))
        return next((place for place in configured if place is not None), None)

    def _of_environment(self, provider: Provider) -> Place:
        simulated = self._simulated.get(provider.name)
        if simulated is None:
            models = self._local.get(provider.name, ())
            return Place(provider.name, provider, {"environment": self._environment}, models=models)
        options: Options = {"base_url": simulated, "environment": {}, "proxy": "", **_simulator_options(provider)}  # type: ignore[typeddict-item]
        return Place(provider.name, provider, options)

    # ── listing ──

    def available(self) -> Iterator[Place]:
        """Yield the providers that can be used: configured, simulated, or with a key in the environment."""
        yield from self._places.values()
        for provider in PROVIDERS.values():
            if provider.name in self._places:
                continue
            keyed = any(self._environment.get(name) for name in provider.key_environment)
            addressed = any(self._environment.get(name) for name in provider.base_url_environment)
            reached = provider.name in self._simulated or bool(self._local.get(provider.name))
            if reached or keyed or (addressed and not provider.key_required):
                yield self._of_environment(provider)

    def unusable_targets(self) -> Iterator[tuple[str, str]]:
        """Yield `route: target` and the problem for each target whose provider lacks a key or an address."""
        for name, route in self.config.routes.items():
            for target in [*self._shuffle_by_weight(route), *route.fallback]:
                if target in self.config.routes:
                    continue
                try:
                    self._upstreams(
                        target.partition("/")[0], "openai-responses"
                    )  # all APIs of a vendor need the same key
                except NotConfigured as error:
                    yield f"{name}: {target}", _for_gateway(error)

    def upstreams_of(self, place: Place) -> Sequence[Upstream]:
        """Return the upstreams of a provider, one per key. Raises `NotConfigured`."""
        return self._upstreams(place.name, place.provider.format)

    def is_simulated(self, name: str) -> bool:
        return name in self._simulated and name not in self._places

    def upstream(self, name: str, format: str) -> Upstream | None:
        """Return the upstream with this name, if it is still configured."""
        try:
            upstreams = self._upstreams(name.partition("#")[0], format)
        except (KeyError, NotConfigured):
            return None
        return next((one for one in upstreams if one.name == name), None)

    def named_upstreams(self, name: str, format: str) -> Sequence[Upstream]:
        """Return the upstreams of a provider, or the one with a certain key (`name#2`); empty if not configured."""
        if "#" in name:
            found = self.upstream(name, format)
            return () if found is None else (found,)
        try:
            return self._upstreams(name, format)
        except (KeyError, NotConfigured):
            return ()

    def upstreams_in_use(self) -> Iterator[Upstream]:
        for upstreams in self._opened.values():
            yield from upstreams

    def adopt(self, older: Router) -> None:
        """Take over unchanged upstreams of the older router, with their connections and breakers."""
        for name, upstreams in older._opened.items():
            mine, theirs = self._places.get(name), older._places.get(name)
            if mine == theirs and self._simulated == older._simulated:
                self._opened[name] = upstreams


def _for_gateway(error: NotConfigured) -> str:
    return str(error).replace(f", or pass {error.missing}=...", "")  # an argument of Python, not of the gateway


def _api_in_format(provider: Provider, format: str) -> Provider:
    """Return the same vendor's API in the client's format, if there is one with the same base URL and key."""
    if provider.format == format:
        return provider
    others = (other for other in PROVIDERS.values() if other.format == format and _is_sibling(other, provider))
    return next(others, provider)


def _is_sibling(other: Provider, provider: Provider) -> bool:
    return (
        other.base_url_environment == provider.base_url_environment
        and (other.base_url, other.key_environment) == (provider.base_url, provider.key_environment)
        and bool(other.key_environment)
    )


def _simulator_options(provider: Provider) -> dict[str, str]:
    """Return options for a simulator, which accepts any key and needs the variables of paths."""
    variables = {variable.name for variable in provider.variables}
    made_up = {"region": "us-east-1"} if "region" in variables else {}
    return {"api_key": "simulated", **made_up}


def configured_place(name: str, table: ProviderTable, environment: Environment) -> Place:
    """Return a provider with its configured settings. Raises `ConfigError`."""
    kind = table.kind or name
    provider = PROVIDERS[ALIASES.get(kind, kind)]
    given = {
        word: getattr(table, word)
        for word in ("base_url", "region", "project", "location", "api_version", "profile")
        if getattr(table, word) is not None
    }
    limits = table.timeouts
    timeouts = Timeouts(
        connect=limits.connect,
        first_byte=limits.first_byte,
        between_bytes=limits.between_bytes,
        total=limits.total,
    )
    common = {"headers": table.headers, "timeouts": timeouts, "environment": environment}
    options: Options = {**common, **given}  # type: ignore[typeddict-item]
    keys = table.api_keys or (() if table.api_key is None else (table.api_key,))
    breaker = BreakerSettings(failures=table.breaker.failures, seconds=table.breaker.seconds)
    revealed = tuple(revealed_key(key, environment) for key in keys)
    return Place(name, provider, options, revealed, breaker, table.models, is_configured=True)


def revealed_key(key: str, environment: Environment) -> str:
    if not key.startswith("env:"):
        return key
    value = environment.get(key.removeprefix("env:"))
    if not value:
        raise ConfigError(f"the environment variable {key.removeprefix('env:')} of the configuration is not set")
    return value
