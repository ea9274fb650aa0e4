"""What is known about models: context window, output limit, prices, capabilities. One dated data file, `models.json`.

    lookup("anthropic", "claude-sonnet-5").context_window
    price_of("anthropic", "claude-sonnet-5", usage)

Each row states where it was read and when. Unknown values are None, never a guess. Your own rows take precedence: a
file named by `DRAGOMAN_CATALOGUE` (JSON or TOML, the same shape), `use_file`, or `register`.
"""

from __future__ import annotations

import os
from decimal import Decimal
from functools import lru_cache
from pathlib import Path

from dragoman.catalogue.models import Catalogue, CatalogueError, Host, Model, Prices, Tier, read_catalogue
from dragoman.ir import Usage

__all__ = [
    "VARIABLE",
    "Catalogue",
    "CatalogueError",
    "Host",
    "Model",
    "Prices",
    "Tier",
    "catalogue",
    "lookup",
    "price_of",
    "read_catalogue",
    "register",
    "reset",
    "shipped",
    "use_file",
]

VARIABLE = "DRAGOMAN_CATALOGUE"
"""Environment variable: files with rows of your own, separated as in PATH. Earlier files take precedence."""
_FILE = Path(__file__).with_name("models.json")
_current: Catalogue | None = None


@lru_cache(maxsize=1)
def shipped() -> Catalogue:
    """The rows of this release, without the user's."""
    return read_catalogue(_FILE)


def catalogue() -> Catalogue:
    """The catalogue in use: rows registered in code, then those of the user's files, then those of this release."""
    global _current  # noqa: PLW0603 - one catalogue per process, read when it is first needed
    if _current is None:
        found = shipped()
        for name in reversed(os.environ.get(VARIABLE, "").split(os.pathsep)):
            if name:
                found = found.extended_by(read_catalogue(Path(name)))
        _current = found
    return _current


def register(*models: Model) -> None:
    """Adds rows with the highest precedence, for this process."""
    global _current  # noqa: PLW0603 - see `catalogue`
    _current = catalogue().extended_by(Catalogue(models))


def use_file(path: str | Path) -> None:
    """Adds the rows of a file with the highest precedence, for this process. Raises `CatalogueError`."""
    global _current  # noqa: PLW0603 - see `catalogue`
    _current = catalogue().extended_by(read_catalogue(Path(path)))


def reset() -> None:
    """Discards rows registered in code, and rereads the user's files at the next lookup."""
    global _current  # noqa: PLW0603 - see `catalogue`
    _current = None


def lookup(provider: str, model: str) -> Model | None:
    """The row of a model at this provider; None if unknown."""
    return catalogue().lookup(provider, model)


def price_of(provider: str, model: str, usage: Usage) -> Decimal | None:
    """The cost of these tokens in the currency of the row; None if a price is unknown.

    Only tokens: searches and other items that providers bill separately are not included.
    """
    found = lookup(provider, model)
    return None if found is None else found.price_of(usage)
