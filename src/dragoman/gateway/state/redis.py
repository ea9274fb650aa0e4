"""Redis, for limits of several gateways (extra `redis`). Its scripts are atomic, and all gateways use its clock."""

from __future__ import annotations

import math
import secrets
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from typing import Any

from dragoman.drivers.credentials import import_extra
from dragoman.gateway.state.base import Exceeded, Grant, Limit, Ticket, Timing, Unavailable

_PATIENCE = 3.0
_PREFIX = "dragoman:"
_NONE = -1
_REFUSED: tuple[Limit, ...] = ("tokens", "concurrent", "requests")
# KEYS: arrivals, leases, tokens. ARGV: requests and tokens per minute, concurrent requests, seconds of the window,
# this request, seconds of its lease. Returns the exceeded limit (1, 2, 3; 0: none) and how long to wait.
_ENTER = """
local clock = redis.call('TIME')
local now = tonumber(clock[1]) + tonumber(clock[2]) / 1000000
local most, tokens, working = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local minute, lease, seconds = tonumber(ARGV[4]), ARGV[5], tonumber(ARGV[6])
if tokens >= 0 then
  local total, oldest = 0, now
  local counted = redis.call('HGETALL', KEYS[3])
  for place = 1, #counted, 2 do
    local second = tonumber(counted[place])
    -- A second counts until its end is old enough; one in the future was written before the clock was set back.
    if second <= now - minute - 1 or second > now then
      redis.call('HDEL', KEYS[3], counted[place])
    else
      total = total + tonumber(counted[place + 1])
      oldest = math.min(oldest, second)
    end
  end
  if total >= tokens then return {1, tostring(oldest + minute + 1 - now)} end
end
if working >= 0 then
  redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', string.format('%.6f', now))
  redis.call('ZREMRANGEBYSCORE', KEYS[2], string.format('(%.6f', now + 2 * seconds), '+inf')
  if redis.call('ZCARD', KEYS[2]) >= working then return {2, '1'} end
end
if most >= 0 then
  redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.6f', now - minute))
  redis.call('ZREMRANGEBYSCORE', KEYS[1], string.format('(%.6f', now), '+inf')
  if redis.call('ZCARD', KEYS[1]) >= most then
    local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
    return {3, tostring((tonumber(first[2]) or now) + minute - now)}
  end
  redis.call('ZADD', KEYS[1], string.format('%.6f', now), lease)
  redis.call('PEXPIRE', KEYS[1], math.ceil(minute * 1000))
end
if working >= 0 then
  redis.call('ZADD', KEYS[2], string.format('%.6f', now + seconds), lease)
  redis.call('PEXPIRE', KEYS[2], math.ceil(seconds * 2000))
end
return {0, '0'}
"""
# KEYS: leases, tokens. ARGV: this request, its tokens, seconds until the counters expire.
_LEAVE = """
redis.call('ZREM', KEYS[1], ARGV[1])
if tonumber(ARGV[2]) > 0 then
  redis.call('HINCRBY', KEYS[2], redis.call('TIME')[1], ARGV[2])
  redis.call('EXPIRE', KEYS[2], ARGV[3])
end
"""
# KEYS: leases. ARGV: seconds, and the running requests. Leases that were released meanwhile are not renewed.
_BEAT = """
local clock = redis.call('TIME')
local now = tonumber(clock[1]) + tonumber(clock[2]) / 1000000
local untilwhen = string.format('%.6f', now + tonumber(ARGV[1]))
for place = 2, #ARGV do redis.call('ZADD', KEYS[1], 'XX', untilwhen, ARGV[place]) end
redis.call('PEXPIRE', KEYS[1], math.ceil(tonumber(ARGV[1]) * 2000))
"""


class RedisMeters:
    """Limits of all gateways that share a Redis: redis://host:6379/0, rediss://… with TLS."""

    def __init__(self, url: str, timing: Timing | None = None) -> None:
        package = import_extra("redis.asyncio", "redis")
        self._problem: type[Exception] = import_extra("redis.exceptions", "redis").RedisError
        self._client: Any = package.from_url(
            url, socket_timeout=_PATIENCE, socket_connect_timeout=_PATIENCE, health_check_interval=15
        )
        self._timing = timing or Timing()
        self._enter, self._leave, self._beat = (
            self._client.register_script(script) for script in (_ENTER, _LEAVE, _BEAT)
        )
        self._leases: dict[str, set[str]] = {}

    async def prepare(self) -> None:
        """Check the connection before the first client asks."""
        await self._ask(self._client.ping())

    async def enter(self, grant: Grant) -> Ticket:
        lease = secrets.token_hex(8)
        limits = (grant.requests_per_minute, grant.tokens_per_minute, grant.concurrent)
        arguments = [_NONE if limit is None else limit for limit in limits]
        keys = [_redis_key(kind, grant.id) for kind in ("arrivals", "leases", "tokens")]
        refused, wait = await self._ask(self._enter(keys, [*arguments, self._timing.window, lease, self._timing.lease]))
        if refused:
            raise Exceeded(_REFUSED[refused - 1], float(wait))
        if grant.concurrent is None:
            return Ticket(grant.id, "", grant.tokens_per_minute is not None)
        self._leases.setdefault(grant.id, set()).add(lease)
        return Ticket(grant.id, lease, grant.tokens_per_minute is not None)

    async def leave(self, ticket: Ticket, tokens: int) -> None:
        leases = self._leases.get(ticket.key, set())
        leases.discard(ticket.lease)
        if not leases:
            self._leases.pop(ticket.key, None)
        counted = tokens if ticket.counts_tokens else 0
        if ticket.lease or counted:
            keys = [_redis_key(kind, ticket.key) for kind in ("leases", "tokens")]
            await self._ask(self._leave(keys, [ticket.lease, counted, math.ceil(self._timing.window) + 2]))

    async def beat(self) -> None:
        for key, leases in list(self._leases.items()):
            await self._ask(self._beat([_redis_key("leases", key)], [self._timing.lease, *leases]))

    async def _ask(self, asking: Awaitable[Any]) -> Any:
        with self._problems():
            return await asking

    @contextmanager
    def _problems(self) -> Iterator[None]:
        try:
            yield
        except (self._problem, OSError, TimeoutError) as error:
            raise Unavailable(f"Redis: {str(error).splitlines()[0] if str(error) else type(error).__name__}") from error

    async def close(self) -> None:
        await self._client.aclose()


def _redis_key(kind: str, key: str) -> str:
    """Return the Redis key; the braces keep everything of one API key on one node of a cluster."""
    return f"{_PREFIX}{kind}:{{{key}}}"
