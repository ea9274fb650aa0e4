"""Rows of the catalogue and how a name finds its row."""

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
    """A file of rows that cannot be read: which file, and what is wrong with it."""


class _Row(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Base of all rows: an unknown key is a spelling mistake, and is refused."""


class Prices(_Row, frozen=True, kw_only=True):
    """For a million tokens of each kind. None: not known."""

    input: Decimal | None = None
    output: Decimal | None = None
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None
    cache_write_1h: Decimal | None = None
    """Of a cache that lives for an hour, where that costs more."""
    audio_input: Decimal | None = None
    audio_output: Decimal | None = None

    def cost_of(self, usage: Usage) -> Decimal | None:
        """The price of all tokens; None if some are of a kind whose price is not known. No token is counted twice."""
        details = usage.details or {}
        cached, written = usage.cached or 0, usage.cache_written or 0
        for_an_hour = min(details.get("cache_written_1h", 0), written)
        heard, spoken = details.get("audio_input", 0), details.get("audio_output", 0)
        charged = (
            (max(usage.input - cached - written - heard, 0), self.input),
            (cached, self.cache_read),
            (written - for_an_hour, self.cache_write),
            (for_an_hour, self.cache_write_1h),
            (heard, self.audio_input),
            (max(usage.output - spoken, 0), self.output),
            (spoken, self.audio_output),
        )
        total = Decimal(0)
        for tokens, price in charged:
            if tokens and price is None:
                return None
            total += tokens * (price or Decimal(0))
        return total / _MILLION


class Tier(Prices, frozen=True, kw_only=True):
    """Prices of a request whose input is longer than `above` tokens: all its tokens, not only those beyond."""

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
    """Where the row was read."""
    checked: str = ""
    """When: YYYY-MM-DD."""

    def can(self, capability: Capability) -> bool | None:
        """Whether the model has it; None: not known."""
        return self.capabilities.get(capability)

    def price_of(self, usage: Usage) -> Decimal | None:
        """The cost of one request with these tokens; None where it is not known."""
        prices = self.prices
        for tier in sorted(self.tiers, key=lambda one: one.above):
            if usage.input > tier.above:
                prices = tier
        return None if prices is None else prices.cost_of(usage)


class Host(_Row, frozen=True, kw_only=True):
    """A provider that serves models of others."""

    models_of: str = ""
    """Whose models these are."""
    vendors: Mapping[str, str] = {}
    """Where a name is `vendor/model`: the vendor's prefix there, and whose models these are here."""
    prices: bool = False
    """Whether they cost the same there. If not, their price is not known."""


class _File(_Row, frozen=True, kw_only=True):
    models: tuple[Model, ...]
    hosts: Mapping[str, Host] = {}
    date: str = ""
    about: str = ""


# `claude-sonnet-4-5-20250929`, `claude-haiku-4-5@20251001`, `gpt-5-2025-08-07`, `….claude-haiku-4-5-20251001-v1:0`
_SUFFIX = re.compile(r"(?:[-@](?:\d{8}|\d{4}-\d{2}-\d{2}|default))?(?:-v\d+(?::\d+)?)?$")
_CLAUDE = re.compile(r"claude-[a-z0-9.@:-]+")


class Catalogue:
    """Rows by provider and name. Earlier rows of the same name are hidden by those of `extended_by`."""

    def __init__(self, models: Iterable[Model] = (), hosts: Mapping[str, Host] | None = None, date: str = "") -> None:
        self.models = tuple(models)
        self.hosts = dict(hosts or {})
        self.date = date
        """When the file was last checked as a whole."""
        self._rows: dict[tuple[str, str], Model] = {}
        for row in self.models:
            for name in (row.id, *row.aliases):
                self._rows[row.provider, name.lower()] = row

    def lookup(self, provider: str, model: str) -> Model | None:
        """The row of a model, by its id, an alias, or its id with a date or version behind it."""
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
        """These rows, and those of `other` before them."""
        hidden = {(row.provider, row.id) for row in other.models}
        kept = (row for row in self.models if (row.provider, row.id) not in hidden)
        return Catalogue((*kept, *other.models), {**self.hosts, **other.hosts}, other.date or self.date)

    def _find(self, provider: str, model: str) -> Model | None:
        return next((row for name in _spellings(model) if (row := self._rows.get((provider, name))) is not None), None)


def _spellings(model: str) -> Iterator[str]:
    """The name as it is, then without what clouds and snapshots put around it."""
    name = model.lower().removeprefix("models/")
    yield name
    yield _SUFFIX.sub("", name)
    claude = _CLAUDE.search(name)
    if claude is not None:  # `eu.anthropic.claude-…`, `claude-3.5-sonnet`
        yield claude[0]
        yield _SUFFIX.sub("", claude[0])
        yield _SUFFIX.sub("", claude[0]).replace(".", "-")


def read_catalogue(path: Path) -> Catalogue:
    """The rows of a file: JSON, or TOML where its name ends so."""
    try:
        data = path.read_bytes()
        if path.suffix == ".toml":
            found = msgspec.toml.decode(data, type=_File, strict=False)
        else:
            found = msgspec.json.decode(data, type=_File, strict=False)
    except (OSError, UnicodeDecodeError, msgspec.MsgspecError) as error:
        raise CatalogueError(f"{path}: {error}") from None
    return Catalogue(found.models, found.hosts, found.date)
