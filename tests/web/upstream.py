"""A gateway with its page, and an upstream that says what the test wants, as slowly as it wants."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from dragoman.gateway.serving import Running, serving
from dragoman.sim.server import Simulator
from dragoman.web.serving import page_before
from tests.gateway.running import Lines, configured, simulated

KEY = "sk-upstream-secret-0123456789"
CONFIG = """
[providers.stub]
kind = "openai-compatible"
base_url = "{url}/v1"
api_key = "env:STUB_KEY"
models = ["large"]

[providers.broken]
kind = "openai-compatible"
base_url = "{url}/broken"
api_key = "env:STUB_KEY"

[routes.smart]
to = "broken/large"
fallback = ["stub/large"]
"""


class Upstream:
    """Speaks OpenAI Chat. Streams word by word, and waits between words until it may go on."""

    def __init__(self) -> None:
        self.words = "Hello from the upstream."
        self.pause = 0.0
        self.breaks = False
        """Off in the middle of a stream."""
        self.may_end = asyncio.Event()
        self.may_end.set()
        self.requests: list[dict[str, Any]] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.requests.append(body)
        if not body.get("stream"):
            message = {"role": "assistant", "content": self.words}
            choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
            return web.json_response({**self._about("chat.completion"), "choices": choices, "usage": self._usage()})
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        for word in self.words.split(" "):
            await self._put(response, {"role": "assistant", "content": f"{word} "})
            await asyncio.sleep(self.pause)
        await self.may_end.wait()
        if self.breaks:
            assert request.transport is not None
            request.transport.abort()
            return response
        await self._put(response, {}, "stop")
        await response.write(b"data: [DONE]\n\n")
        return response

    async def _put(self, response: web.StreamResponse, delta: dict[str, Any], finish: str | None = None) -> None:
        choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
        chunk = {**self._about("chat.completion.chunk"), "choices": choices}
        await response.write(f"data: {json.dumps(chunk)}\n\n".encode())

    def _about(self, kind: str) -> dict[str, Any]:
        return {"id": "chatcmpl-1", "object": kind, "created": 1_760_000_000, "model": "large"}

    def _usage(self) -> dict[str, int]:
        return {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}

    async def refuse(self, request: web.Request) -> web.Response:
        del request
        return web.json_response({"error": {"message": f"overloaded, says {KEY}", "type": "server_error"}}, status=503)


@asynccontextmanager
async def page_and_upstream(
    server: str = "", environment: Mapping[str, str] | None = None
) -> AsyncIterator[tuple[Running, Upstream]]:
    """`server` is more for the configuration."""
    upstream = Upstream()
    application = web.Application()
    application.router.add_post("/v1/chat/completions", upstream.answer)
    application.router.add_post("/broken/chat/completions", upstream.refuse)
    runner = web.AppRunner(application, shutdown_timeout=1.0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    url = "http://{}:{}".format(*runner.addresses[0][:2])
    try:
        setting = configured(CONFIG.format(url=url) + server, {"STUB_KEY": KEY, **(environment or {})})
        async with serving(setting, log=Lines(), front=page_before) as running:
            yield running, upstream
    finally:
        await runner.cleanup()


@asynccontextmanager
async def page_and_simulators() -> AsyncIterator[Running]:
    """As `dragoman serve` starts for the first time, without any key."""
    with Simulator() as simulator:
        async with serving(simulated(simulator.url), log=Lines(), front=page_before) as running:
            yield running


MESSAGES = {
    "model": "stub/large",
    "max_tokens": 300,
    "top_k": 5,
    "system": "Be brief.",
    "messages": [{"role": "user", "content": [{"type": "text", "text": "What is the sea?"}]}],
}
GEMINI = {
    "contents": [{"role": "user", "parts": [{"text": "What is the sky?"}]}],
    "safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_ONLY_HIGH"}],
}
GEMINI_PATH = "/v1beta/models/stub/large:generateContent"
GEMINI_STREAM = "/v1beta/models/openai/gpt-5.6:streamGenerateContent?alt=sse"
CONVERSE = {"messages": [{"role": "user", "content": [{"text": "What is the snow?"}]}], "inferenceConfig": {"topP": 1}}
CHAT = {"messages": [{"role": "user", "content": "What is the wind?"}]}
EVERY: tuple[tuple[str, dict[str, Any]], ...] = (
    ("/v1/chat/completions", {**CHAT, "model": "claude-sonnet-5", "stream": True, "seed": 7}),
    ("/v1/responses", {"model": "gemini/gemini-3.8-flash", "input": "What is the rain?", "stream": True}),
    ("/v1/messages", {**CHAT, "max_tokens": 300, "model": "claude-sonnet-5", "stream": True}),
    ("/v1/messages", {**MESSAGES, "model": "nobody/small"}),
    (GEMINI_STREAM, GEMINI),
    ("/api/chat", {**CHAT, "model": "anthropic/claude-sonnet-5", "stream": False, "keep_alive": "5m"}),
    ("/model/openai%2Fgpt-5.6/converse", CONVERSE),
)
"""A request of each family to another one, one that stays in its format, and one without a provider."""
WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL_LOOP: dict[str, Any] = {
    "model": "openai-chat/gpt-5.6",
    "max_tokens": 800,
    "temperature": 0.2,
    "top_k": 40,
    "system": [{"type": "text", "text": "You know the weather.", "cache_control": {"type": "ephemeral"}}],
    "messages": [
        {"role": "user", "content": "What is the weather in Paris?"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "I have a tool for that.", "signature": "c2lnbmVk"},
                {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Paris"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": '{"celsius": 18, "sky": "clear"}'}
            ],
        },
    ],
    "tools": [{"name": "get_weather", "description": "The weather of a city", "input_schema": WEATHER}],
}
