"""Refusals that real providers answered with, replayed: each becomes the right error, with the provider's words."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from dragoman import errors
from dragoman.drivers.connect import connect
from dragoman.drivers.replay import Replayed, ReplayTransport
from tests.drivers.partners import ONCE, GoogleCredentials
from tests.support import recordings

# Recordings -> who answered.
SOURCES: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("openai-chat", "openai-chat", {"api_key": "k"}),
    ("openai-responses", "openai", {"api_key": "k"}),
    ("anthropic-messages", "anthropic", {"api_key": "k"}),
    ("anthropic-vertex", "vertex-anthropic", {"credentials": GoogleCredentials()}),
    ("gemini-generate", "gemini", {"api_key": "k"}),
    ("vertex-generate", "vertex", {"credentials": GoogleCredentials()}),
    ("ollama-chat", "ollama", {}),
    ("cohere-chat", "cohere", {"api_key": "k"}),
    ("bedrock-converse", "bedrock", {"api_key": "k", "region": "us-east-1"}),
    ("groq-chat", "groq", {"api_key": "k"}),
    ("mistral-chat", "mistral", {"api_key": "k"}),
    ("deepseek-chat", "deepseek", {"api_key": "k"}),
    ("xai-chat", "xai", {"api_key": "k"}),
    ("openrouter-chat", "openrouter", {"api_key": "k"}),
    ("openai-compat-chat", "openai-compatible", {"base_url": "http://box/v1"}),
)
# What a status may mean. Where a body is more exact than its status, its word counts.
MEANINGS: dict[int, tuple[type[errors.ProviderError], ...]] = {
    400: (errors.InvalidRequest, errors.AuthenticationFailed, errors.BillingRefused, errors.NotFound),
    401: (errors.AuthenticationFailed,),
    402: (errors.BillingRefused,),
    403: (errors.PermissionRefused, errors.AuthenticationFailed, errors.BillingRefused),
    404: (errors.NotFound,),
    405: (errors.InvalidRequest,),
    408: (errors.TimedOut,),
    409: (errors.Conflict,),
    413: (errors.RequestTooLarge, errors.RateLimited),
    415: (errors.InvalidRequest,),
    418: (errors.InvalidRequest,),
    422: (errors.InvalidRequest,),
    424: (errors.InvalidRequest, errors.ServerFailed),
    429: (errors.RateLimited, errors.BillingRefused),
    500: (errors.ServerFailed,),
    502: (errors.ServerFailed,),
    503: (errors.Overloaded,),
    504: (errors.TimedOut,),
    529: (errors.Overloaded,),
}


def refusals(name: str) -> list[recordings.Record]:
    return [record for record in recordings.load(name) if record.status >= 400 and record.response is not None]


@pytest.mark.skipif(recordings.recordings_dir() is None, reason="recordings are not beside the repository")
@pytest.mark.parametrize(
    ("name", "provider", "options"), SOURCES, ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_recorded_refusal_is_the_right_error(name: str, provider: str, options: dict[str, Any]) -> None:
    wrong: list[str] = []

    async def run() -> None:
        for record in refusals(name):
            text = record.response if isinstance(record.response, str) else json.dumps(record.response)
            transport = ReplayTransport([Replayed(status=record.status, chunks=[text.encode()])])
            driver = connect(f"{provider}/m", transport=transport, retry=ONCE, environment={}, **options)
            with pytest.raises(errors.ProviderError) as caught:
                await driver.query("x")
            error = caught.value
            if type(error) not in MEANINGS[record.status] or error.status != record.status or not error.message:
                wrong.append(f"{record.id} {record.status} {error!r}")

    asyncio.run(run())
    assert wrong == []
