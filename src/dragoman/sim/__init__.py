"""Strict offline simulators of the providers. Their rules are written independently of the codecs they judge.

- `rules`: what each API accepts, as pure functions.
- `apis`: the endpoints, readers and writers of each API.
- `model`: the simulated model; `prompt_reading` and `schema_examples` help it, `script` and `faults` replace it.
- `service`, `server`: all APIs as one service, and its HTTP server; `pytest_plugin` runs it in tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.sim.server import Simulator, serving
    from dragoman.sim.service import Recorded, Service, Settings

__all__ = ["Recorded", "Service", "Settings", "Simulator", "serving"]

_HOMES = {
    "Simulator": "server",
    "serving": "server",
    "Recorded": "service",
    "Service": "service",
    "Settings": "service",
}


def __getattr__(name: str) -> object:
    """Lazy imports: the rules need no server, and the server needs an extra."""
    from importlib import import_module  # noqa: PLC0415

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
