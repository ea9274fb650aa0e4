"""Faults on request: `x-sim-fault: status=529; retry_after=2`, or the same keys in a turn of a script."""

from __future__ import annotations

import msgspec

from dragoman.sim.exchange import Kind, Problem, kind_of

HEADER = "x-sim-fault"


class Fault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Counts refer to events of a stream, or pieces of a body: `cut: 0` disconnects before the first byte.

    A status or an error replaces the answer; with `fail: 2` it is sent inside the stream, after two events, in the
    API's own form.
    """

    status: int | None = None
    error: Kind | None = None
    message: str = ""
    retry_after: float | None = None
    # Seconds before the first byte, and between pieces of a few bytes.
    delay: float = 0.0
    drip: float = 0.0
    cut: int | None = None
    garbage: int | None = None
    stall: int | None = None
    fail: int | None = None

    @property
    def problem(self) -> Problem | None:
        if self.status is None and self.error is None:
            return None if self.fail is None else Problem("overloaded", self.message, retry_after=self.retry_after)
        kind = self.error or kind_of(self.status or 0)
        return Problem(kind, self.message, self.status, retry_after=self.retry_after)

    @property
    def refusal(self) -> Problem | None:
        """The problem to answer with instead of the real answer."""
        return self.problem if self.fail is None else None


NO_FAULT = Fault()


def parse_fault(header: str) -> Fault:
    """Parses the header. Raises msgspec.ValidationError with a message for the user."""
    pairs = (pair.partition("=") for pair in header.split(";") if pair.strip())
    return msgspec.convert({name.strip(): value.strip() for name, _, value in pairs}, Fault, strict=False)
