"""Every driver and the simulator it talks to."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from botocore.credentials import Credentials  # type: ignore[import-untyped]

from dragoman.drivers.connect import Options, connect
from dragoman.drivers.http import HttpTransport
from dragoman.drivers.providers import PROVIDERS
from dragoman.drivers.remote import RemoteDriver
from dragoman.drivers.retries import RetryPolicy
from dragoman.sim.server import Simulator
from tests.support.waiting import PATIENCE

KEY = "sk-test-1234567890abcdef"
ONCE = RetryPolicy(attempts=1)


def _keyed() -> Options:
    return {"api_key": KEY}


@dataclass(frozen=True, slots=True)
class Partner:
    """A model that thinks, at a place where a simulator of its API stands."""

    model: str
    mount: str
    options: Callable[[], Options] = _keyed
    label: str = ""

    @property
    def provider(self) -> str:
        return self.model.partition("/")[0]

    @property
    def name(self) -> str:
        return self.label or self.provider


class GoogleCredentials:
    """What google-auth gives, as far as a driver looks at it."""

    token = KEY
    valid = True
    project_id = "my-project"
    quota_project_id = None


def _signed() -> Options:
    return {"credentials": Credentials("AKIDEXAMPLE", "a-secret-access-key", "a-session-token"), "region": "us-east-1"}


PARTNERS = (
    Partner("openai/gpt-5.1", "/openai/v1"),
    Partner("openai-chat/gpt-5.1", "/openai/v1"),
    Partner("anthropic/claude-sonnet-4-6", "/anthropic"),
    Partner("gemini/gemini-3-flash-preview", "/gemini"),
    Partner("vertex/gemini-3-flash-preview", "/vertex", lambda: {"credentials": GoogleCredentials()}),
    Partner("vertex/gemini-2.5-flash", "/vertex", label="vertex-express"),
    Partner("vertex-anthropic/claude-sonnet-4-6", "", lambda: {"credentials": GoogleCredentials()}),
    Partner("gemini-interactions/gemini-3-flash-preview", "/gemini"),
    Partner("vertex-interactions/gemini-3-flash-preview", "/vertex", lambda: {"credentials": GoogleCredentials()}),
    Partner("cohere/command-a-reasoning-08-2025", "/cohere"),
    Partner("ollama/qwen3", "/ollama"),
    Partner("bedrock/anthropic.claude-opus-4-8", "/bedrock", lambda: {"api_key": KEY, "region": "us-east-1"}),
    Partner("bedrock/anthropic.claude-opus-4-8", "/bedrock", _signed, label="bedrock-signed"),
    Partner("azure/gpt-5.1", "", lambda: {"api_key": KEY, "api_version": "2025-04-01-preview"}),
    Partner("azure-responses/gpt-5.1", ""),
    Partner("groq/gpt-oss-120b", "/openai/v1"),
    Partner("openrouter/gpt-5.1", "/openai/v1"),
    Partner("openai-compatible/gpt-4.1", "/openai/v1"),
)
# The rest: servers that speak Chat in their own way (`local` is a process of ours, not an address).
_SEEN = {one.provider for one in PARTNERS}
COMPATIBLE = tuple(
    Partner(f"{name}/gpt-4.1", "/openai/v1")
    for name, provider in PROVIDERS.items()
    if name not in _SEEN and provider.format == "openai-chat" and name != "local"
)
EACH = pytest.mark.parametrize("partner", PARTNERS, ids=lambda partner: partner.name)
STREAMED = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
# One per format, and Claude on Vertex: where the difference lies in what is said, not in how one gets there.
_FORMATS = {PROVIDERS[one.provider].format: one for one in reversed(PARTNERS)}
FORMATS = tuple(one for one in PARTNERS if one in _FORMATS.values() or one.name == "vertex-anthropic")
EVERY = pytest.mark.parametrize("partner", [*PARTNERS, *COMPATIBLE], ids=lambda partner: partner.name)
EACH_FORMAT = pytest.mark.parametrize("partner", FORMATS, ids=lambda partner: partner.name)


def driver_of(partner: Partner, simulator: Simulator, **more: Any) -> RemoteDriver:
    options: Options = {**partner.options(), "base_url": simulator.url + partner.mount, "environment": {}, **more}  # type: ignore[typeddict-item]
    return connect(partner.model, **options)


@asynccontextmanager
async def talking(partner: Partner, simulator: Simulator, **more: Any) -> AsyncIterator[RemoteDriver]:
    """A driver that must leave nothing behind: no task, no connection in use."""
    before = asyncio.all_tasks()
    driver = driver_of(partner, simulator, **more)
    try:
        yield driver
        await settled(driver, before)
    finally:
        await driver.close()


async def settled(driver: RemoteDriver, before: set[asyncio.Task[Any]]) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if connections_in_use(driver) == 0 and asyncio.all_tasks() <= before:
            return
        await asyncio.sleep(0.01)
    assert connections_in_use(driver) == 0
    assert asyncio.all_tasks() <= before


def connections_in_use(driver: RemoteDriver) -> int:
    transport = driver.channel.transport
    assert isinstance(transport, HttpTransport)
    return transport.connections_in_use


def fault(words: str) -> Mapping[str, str]:
    return {"x-sim-fault": words}
