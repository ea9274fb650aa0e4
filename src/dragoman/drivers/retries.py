"""Retry policy: which failures are retried, and when."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypeAlias

from msgspec import Struct

from dragoman.errors import ConnectionFailed, ProviderError
from dragoman.ir import FailureKind

_STATUSES = frozenset({408, 409, 429})
_FIRST_SERVER_ERROR = 500
# Whatever the status.
_NEVER_RETRIED: frozenset[FailureKind] = frozenset(
    {"invalid_request", "authentication", "billing", "permission", "not_found", "too_large", "cancelled"}
)


class RetryNotice(Struct, frozen=True, kw_only=True):
    """A call failed and will be retried."""

    provider: str
    attempt: int
    """Number of the failed attempt, from 1."""
    delay: float
    """Seconds until the next attempt."""
    error: ProviderError


RetryHook: TypeAlias = Callable[[RetryNotice], None]

_listener: ContextVar[RetryHook | None] = ContextVar("dragoman_retry_listener", default=None)


@contextmanager
def report_retries(hook: RetryHook) -> Iterator[None]:
    """Reports the retries of drivers called inside, in addition to the driver's own hook."""
    token = _listener.set(hook)
    try:
        yield
    finally:
        _listener.reset(token)


def announce(notice: RetryNotice, *hooks: RetryHook | None) -> None:
    for hook in (*hooks, _listener.get()):
        if hook is not None:
            hook(notice)


class RetryPolicy(Struct, frozen=True, kw_only=True):
    """Exponential back-off with jitter; a provider's retry-after takes precedence. No retries after the first byte."""

    attempts: int = 3
    """Total number of attempts: 1 means no retries."""
    first_delay: float = 0.5
    factor: float = 2.0
    longest_delay: float = 8.0
    longest_hint: float = 60.0
    """Longest accepted retry-after in seconds; beyond it, the error is raised with the retry time."""
    jitter: float = 0.25
    """The delay is reduced randomly by up to this share, so that clients do not retry all at once."""
    chance: Callable[[], float] = random.random

    def delay_after(self, attempt: int, error: ProviderError) -> float | None:
        """Seconds to wait after this attempt; None: do not retry."""
        if attempt >= self.attempts or not may_retry(error):
            return None
        hint = error.retry_after
        if hint is not None:
            return max(hint, 0.0) if hint <= self.longest_hint else None
        delay = min(self.first_delay * self.factor ** (attempt - 1), self.longest_delay)
        return delay * (1 - self.jitter * self.chance())


def may_retry(error: ProviderError) -> bool:
    if isinstance(error, ConnectionFailed):
        return True
    status = error.status
    if status is None or error.kind in _NEVER_RETRIED:
        return False
    return status in _STATUSES or status >= _FIRST_SERVER_ERROR


def seconds_until(date: str) -> float | None:
    """Seconds until the date in a `retry-after` header (RFC 9110, 10.2.3); None if it is not a date."""
    try:
        moment = parsedate_to_datetime(date)
    except (ValueError, OverflowError):  # the latter for numbers that do not fit into a machine word
        return None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return max((moment - datetime.now(UTC)).total_seconds(), 0.0)
