"""The metrics and the health of several workers, merged into one answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Protocol

import msgspec

_NOT_ADDED = frozenset({"dragoman_breaker_open", "dragoman_model_breaker_open"})
"""One worker that has seen an upstream fail is enough, and two are no more."""
_WORSE = ("closed", "half-open", "open")


class Peers(Protocol):
    """The other workers of a gateway, as one of them sees them."""

    async def ask(self, target: str) -> list[bytes]:
        """What each answers; who does not answer is left out."""
        ...

    def follow(self, target: str) -> AsyncGenerator[bytes, None]:
        """Data of the events that they stream, as they come, for ever."""
        ...


def merge_metrics(texts: Sequence[str]) -> str:
    """Samples of the same name and labels are added up, each under its own heading."""
    headings: dict[str, list[str]] = {}
    samples: dict[str, dict[str, float]] = {}
    for text in texts:
        metric = ""
        for line in text.splitlines():
            if line.startswith("#"):
                metric = line.split(" ", 3)[2]
                headings.setdefault(metric, []).append(line)
                continue
            sample, _, value = line.rpartition(" ")
            known = samples.setdefault(metric, {})
            before = known.get(sample, 0.0)
            known[sample] = max(before, float(value)) if metric in _NOT_ADDED else before + float(value)
    lines: list[str] = []
    for metric, heading in headings.items():
        lines += dict.fromkeys(heading)
        lines += [f"{sample} {_number(value)}" for sample, value in samples.get(metric, {}).items()]
    return "\n".join(lines) + "\n"


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(value)


def merge_health(bodies: Sequence[bytes]) -> dict[str, Any]:
    told: list[Mapping[str, Any]] = [msgspec.json.decode(body) for body in bodies]
    upstreams: dict[str, str] = {}
    for one in told:
        for name, state in one["upstreams"].items():
            upstreams[name] = max(upstreams.get(name, state), state, key=_worse)
    in_flight = sum(one["in_flight"] for one in told)
    unrecorded: Counter[str] = Counter()
    for one in told:
        unrecorded.update(one.get("unrecorded", {}))
    more = {"unrecorded": dict(unrecorded)} if unrecorded else {}
    return {**told[0], "in_flight": in_flight, "upstreams": upstreams, "workers": len(told), **more}


def _worse(state: str) -> int:
    return _WORSE.index(state) if state in _WORSE else 0
