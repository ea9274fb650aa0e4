"""The metrics and the health of several workers, merged into one answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Protocol

import msgspec

_NOT_ADDED = frozenset({"dragoman_breaker_open", "dragoman_model_breaker_open"})
"""Metrics that are 1 if any worker has an open breaker; their values are not added up."""
_WORSE = ("closed", "half-open", "open")


class Peers(Protocol):
    """The other workers of a gateway, as one of them sees them."""

    async def ask(self, target: str) -> list[bytes]:
        """Return the answer of each worker; those that do not answer are left out."""
        ...

    def follow(self, target: str) -> AsyncGenerator[bytes, None]:
        """Yield the data of the events that the workers stream, without end."""
        ...


def merge_metrics(texts: Sequence[str]) -> str:
    """Merge metrics: samples with the same name and labels are added up, under one heading per metric."""
    headings: dict[str, list[str]] = {}
    samples: dict[str, dict[str, float]] = {}
    for text in texts:
        metric = ""
        for line in text.rstrip("\n").split("\n"):  # not `splitlines`, which also splits within labels
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


def upstream_health(breaker: str) -> dict[str, str]:
    """Return the health of an upstream, which is unhealthy while the breaker of one of its models is open."""
    return {"status": "unhealthy" if breaker == "open" else "healthy", "breaker": breaker}


def merge_health(bodies: Sequence[bytes]) -> dict[str, Any]:
    reports: list[Mapping[str, Any]] = [msgspec.json.decode(body) for body in bodies]
    breakers: dict[str, str] = {}
    unrecorded: Counter[str] = Counter()
    for one in reports:
        unrecorded.update(one.get("unrecorded", {}))
        for name, upstream in one["upstreams"].items():
            breakers[name] = max(breakers.get(name, "closed"), upstream["breaker"], key=_WORSE.index)
    # One unhealthy worker makes the gateway unhealthy.
    worst = next((one for one in reports if one["status"] != "healthy"), reports[0])
    more = {"unrecorded": dict(unrecorded)} if unrecorded else {}
    return {
        **worst,
        "in_flight": sum(one["in_flight"] for one in reports),
        "upstreams": {name: upstream_health(breaker) for name, breaker in breakers.items()},
        "workers": len(reports),
        **more,
    }
