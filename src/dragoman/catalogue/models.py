"""Rows of the catalogue, and lookup by name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct, structs

from dragoman.errors import DragomanError
from dragoman.ir import Usage

Capability: TypeAlias = Literal["tools", "structured_output", "reasoning", "vision", "documents", "audio"]
_MILLION = Decimal(1_000_000)


class CatalogueError(DragomanError):
    """A catalogue file cannot be read: which file, and why."""


class _Row(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Base of all rows: unknown keys are refused, as likely typos."""


class Prices(_Row, frozen=True, kw_only=True):
    """Prices per million tokens of each kind. None: unknown."""

    input: Decimal | None = None
    output: Decimal | None = None
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None
    cache_write_1h: Decimal | None = None
    """Price of writing to a one-hour cache, if it is higher."""
    audio_input: Decimal | None = None
    audio_output: Decimal | None = None

    def cost_of(self, usage: Usage) -> Decimal | None:
        """The price of all tokens; None if one of their prices is unknown."""
        total = Decimal(0)
        for kind, tokens in tokens_by_price(usage):
            price: Decimal | None = getattr(self, kind)
            if tokens and price is None:
                return None
            total += tokens * (price or Decimal(0))
        return total / _MILLION


def tokens_by_price(usage: Usage) -> tuple[tuple[str, int], ...]:
    """Return the tokens that each price of `Prices` applies to, by its name. No token is counted twice."""
    cached, written, details = usage.cached or 0, usage.cache_written or 0, usage.details or {}
    written_1h = min(details.get("cache_written_1h", 0), written)
    audio_input, audio_output = details.get("audio_input", 0), details.get("audio_output", 0)
    return (
        ("input", max(usage.input - cached - written - audio_input, 0)),
        ("cache_read", cached),
        ("cache_write", written - written_1h),
        ("cache_write_1h", written_1h),
        ("audio_input", audio_input),
        ("output", max(usage.output - audio_output, 0)),
        ("audio_output", audio_output),
    )


class Tier(Prices, frozen=True, kw_only=True):
    """Prices of requests with more than `above` input tokens; they apply to all tokens of the request."""

    above: int


class Model(_Row, frozen=True, kw_only=True):
    """One model at one provider."""

    provider: str
    id: str
    aliases: tuple[str, ...] = ()
    context_window: int | None = None
    """Tokens of input and output together, as the vendor states it."""
    output_limit: int | None = None
    currency: str = "USD"
    prices: Prices | None = None
    tiers: tuple[Tier, ...] = ()
    capabilities: Mapping[Capability, bool] = {}
    source: str = ""
    """Source of the row."""
    checked: str = ""
    """When: YYYY-MM-DD."""

    def can(self, capability: Capability) -> bool | None:
        """Whether the model has the capability; None: unknown."""
        return self.capabilities.get(capability)

    def price_of(self, usage: Usage) -> Decimal | None:
        """The cost of one request with these tokens; None if unknown."""
        prices = self.prices
        for tier in sorted(self.tiers, key=lambda one: one.above):
            if usage.input > tier.above:
                prices = tier
        return None if prices is None else prices.cost_of(usage)


class Host(_Row, frozen=True, kw_only=True):
    """A provider that serves models of other vendors."""

    models_of: str = ""
    """The provider whose models they are."""
    vendors: Mapping[str, str] = {}
    """For names such as `vendor/model`: the vendor's prefix -> our provider."""
    prices: bool = False
    """Whether the prices are the same. If not, they are unknown."""


class _File(_Row, frozen=True, kw_only=True):
    models: tuple[Model, ...]
    hosts: Mapping[str, Host] = {}
    date: str = ""
    about: str = ""


# `claude-sonnet-4-5-20250929`, `claude-haiku-4-5@20251001`, `gpt-5-2025-08-07`, `….claude-haiku-4-5-20251001-v1:0`
_SUFFIX = re.compile(r"(?:[-@](?:\d{8}|\d{4}-\d{2}-\d{2}|default))?(?:-v\d+(?::\d+)?)?$")
_CLAUDE = re.compile(r"claude-[a-z0-9.@:-]+")


class Catalogue:
    """Rows by provider and name; rows of `extended_by` override those of the same name."""

    def __init__(self, models: Iterable[Model] = (), hosts: Mapping[str, Host] | None = None, date: str = "") -> None:
        self.models = tuple(models)
        self.hosts = dict(hosts or {})
        self.date = date
        """Date when the file was last checked."""
        self._rows: dict[tuple[str, str], Model] = {}
        for row in self.models:
            for name in (row.id, *row.aliases):
                self._rows[row.provider, name.lower()] = row

    def lookup(self, provider: str, model: str) -> Model | None:
        """The row of a model: by id, alias, or id with a date or version suffix."""
        host = self.hosts.get(provider)
        own = self._find(provider, model)
        if own is not None or host is None:
            return own
        vendor, _, rest = model.partition("/") if host.vendors else ("", "", model)
        found = self._find(host.vendors.get(vendor, "") if host.vendors else host.models_of, rest)
        if found is None or host.prices:
            return found
        return structs.replace(found, prices=None, tiers=())

    def extended_by(self, other: Catalogue) -> Catalogue:
        """A catalogue in which the rows of `other` take precedence."""
        hidden = {(row.provider, row.id) for row in other.models}
        remaining = (row for row in self.models if (row.provider, row.id) not in hidden)
        return Catalogue((*remaining, *other.models), {**self.hosts, **other.hosts}, other.date or self.date)

    def _find(self, provider: str, model: str) -> Model | None:
        return next((row for name in _spellings(model) if (row := self._rows.get((provider, name))) is not None), None)


def _spellings(model: str) -> Iterator[str]:
    """The name, then without prefixes of clouds and suffixes of snapshots."""
    name = model.lower().removeprefix("models/")
    yield name
    yield _SUFFIX.sub("", name)
    claude = _CLAUDE.search(name)
    if claude is not None:  # `eu.anthropic.claude-…`, `claude-3.5-sonnet`
        yield claude[0]
        yield _SUFFIX.sub("", claude[0])
        yield _SUFFIX.sub("", claude[0]).replace(".", "-")


def read_catalogue(path: Path) -> Catalogue:
    """Reads a catalogue file: JSON, or TOML by its suffix."""
    try:
        data = path.read_bytes()
        if path.suffix == ".toml":
            found = msgspec.toml.decode(data, type=_File, strict=False)
        else:
            found = msgspec.json.decode(data, type=_File, strict=False)
    except (OSError, UnicodeDecodeError, msgspec.MsgspecError) as error:
        raise CatalogueError(f"{path}: {error}") from None
    return Catalogue(found.models, found.hosts, found.date)
