"""The gateway remembers vendors' signatures for clients that lose them: per key, for a while, with a maximum number."""

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from dragoman import ir
from dragoman.gateway.config import read_config
from dragoman.gateway.signature_memory import (
    SignatureMemory,
    UnsignedEvents,
    hide_foreign_signatures,
    restore_signatures,
)
from dragoman.gateway.state.connect import open_store
from dragoman.sim.server import Simulator
from tests.gateway.running import RunningGateway, every_format, simulated
from tests.laws.test_law_06_owed_back import minted, signed_answers
from tests.support.cases import each
from tests.support.promises import promise

pytestmark = promise("gateway:signature-memory")

GEMINI = "as-gemini/gemini-3.6-flash"
TOOL = {"name": "look", "parameters": {"type": "object", "properties": {}}}
CALLS = {"reasoning": "Hm.", "text": "I look.", "calls": [{"name": "look", "arguments": {}}]}


def chat(gateway: RunningGateway, messages: list[Any], key: str = "any") -> httpx.Response:
    body = {"model": GEMINI, "messages": messages, "tools": [{"type": "function", "function": TOOL}]}
    headers = {"authorization": f"Bearer {key}"}
    return httpx.post(f"{gateway.url}/v1/chat/completions", json=body, headers=headers)


def bare(message: dict[str, Any]) -> dict[str, Any]:
    """Return what a client keeps that knows only the documented keys of Chat."""
    calls = [{key: call[key] for key in ("id", "type", "function")} for call in message["tool_calls"]]
    return {"role": "assistant", "content": message["content"], "tool_calls": calls}


def loop(gateway: RunningGateway, simulator: Simulator, keys: tuple[str, str] = ("any", "any")) -> httpx.Response:
    simulator.play(CALLS, {"text": "Seen."})
    user = {"role": "user", "content": "Look!"}
    first = chat(gateway, [user], keys[0]).json()["choices"][0]["message"]
    result = {"role": "tool", "tool_call_id": first["tool_calls"][0]["id"], "content": "a tree"}
    return chat(gateway, [user, bare(first), result], keys[1])


def test_remembered_signatures_replace_the_placeholder(gateway: RunningGateway, dragoman_sim: Simulator) -> None:
    answer = loop(gateway, dragoman_sim)
    assert answer.status_code == 200, answer.text
    assert "signature" not in answer.headers.get("x-dragoman-lost", "")
    sent: Any = dragoman_sim.requests[-1].json
    call = sent["contents"][1]["parts"][-1]
    assert call["functionCall"]["name"] == "look"
    assert not call["thoughtSignature"].startswith("skip")


@pytest.fixture
def made(dragoman_simulator: Simulator) -> Iterator[Callable[[str], RunningGateway]]:
    opened: list[RunningGateway] = []

    def make(server: str) -> RunningGateway:
        config = structs.replace(
            every_format(dragoman_simulator.url), server=read_config(f"[server]\n{server}\n").server
        )
        opened.append(RunningGateway(simulated(dragoman_simulator.url, config)).__enter__())
        return opened[-1]

    yield make
    for gateway in opened:
        gateway.__exit__()


def test_without_memory_a_placeholder_is_used_and_reported(
    made: Callable[[str], RunningGateway], dragoman_sim: Simulator
) -> None:
    answer = loop(made("signature_seconds = 0.0"), dragoman_sim)
    assert answer.status_code == 200
    assert "placeholder signature" in answer.headers["x-dragoman-lost"]


def test_signatures_are_remembered_per_key(made: Callable[[str], RunningGateway], dragoman_sim: Simulator) -> None:
    gateway = made('keys = ["sesame", "parsley"]')
    assert "x-dragoman-lost" not in loop(gateway, dragoman_sim, ("sesame", "sesame")).headers
    assert "placeholder" in loop(gateway, dragoman_sim, ("sesame", "parsley")).headers["x-dragoman-lost"]


def completion(*parts: ir.AnyPart) -> ir.Completion:
    return ir.Completion((ir.Message("assistant", parts),), ir.Finish("stop"), ir.Usage(), "r", "m", 1)


def signed_call(number: int) -> ir.ToolCall:
    return ir.ToolCall(f"call_{number}", "f", {}, signature=ir.Signature("google", f"sig{number}"))


def test_the_memory_is_bounded_and_expires() -> None:
    async def remembered() -> tuple[list[int], list[int]]:
        store, database = await open_store("")
        store._most_signatures = 60  # noqa: SLF001
        memory = SignatureMemory(store, 3600.0)
        for number in range(100):
            await memory.remember(completion(signed_call(number)), "me")
        found = [number for number in range(100) if await memory.recall(asking(number), "me")]
        await database.rows("UPDATE gateway_signatures SET created = ?", (time.time() - 4000,))
        old = [number for number in range(100) if await memory.recall(asking(number), "me")]
        await store.close()
        return found, old

    def asking(number: int) -> ir.Request:
        call = structs.replace(signed_call(number), signature=None)
        return ir.Request("m", (ir.Message("assistant", (call,)),))

    found, old = asyncio.run(remembered())
    assert found == list(range(40, 100))
    assert old == []


# ── changes that clients make to messages ──


def _drop(parts: list[Any]) -> list[Any]:
    """Keep only what every format has: text and calls."""
    return [structs.replace(part, signature=None) for part in parts if isinstance(part, ir.Text | ir.ToolCall) and (
        isinstance(part, ir.ToolCall) or part.text)]  # fmt: skip


def _calls_last(parts: list[Any]) -> list[Any]:
    return sorted(parts, key=lambda part: isinstance(part, ir.ToolCall))


def _thoughts_last(parts: list[Any]) -> list[Any]:
    return sorted(parts, key=lambda part: isinstance(part, ir.Reasoning))


def _merge(parts: list[Any]) -> list[Any]:
    text = "".join(part.text for part in parts if isinstance(part, ir.Text))
    return [*([ir.Text(text)] if text else []), *(part for part in _drop(parts) if isinstance(part, ir.ToolCall))]


def _split(parts: list[Any]) -> list[Any]:
    pieces: list[Any] = []
    for part in _drop(parts):
        words = [part.text[:1], part.text[1:]] if isinstance(part, ir.Text) else []
        pieces += [ir.Text(word) for word in words if word] or [part]
    return pieces


MANGLED = [list, _drop, _calls_last, _thoughts_last, _merge, _split]


@promise("law:6-owed-back")
@given(answer=signed_answers(), mangle=st.sampled_from(MANGLED))
@each("family", ["anthropic", "google"])
def test_signatures_are_restored_in_changed_messages(
    family: str, answer: ir.Completion, mangle: Callable[[list[Any]], list[Any]]
) -> None:
    message = answer.messages[0]
    ids = [call.id for call in message.tool_calls]
    kept = mangle(list(message.parts))
    if len(set(ids)) != len(ids) or not any(isinstance(part, ir.Text | ir.ToolCall) for part in kept):
        return

    async def recalled() -> ir.Message:
        store, _ = await open_store("")
        memory = SignatureMemory(store, 3600.0)
        await memory.remember(answer, "me")
        request = ir.Request("m", (ir.Message("user", "go"), structs.replace(message, parts=tuple(kept))))
        again = restore_signatures(request, await memory.recall(request, "me"), family)
        await store.close()
        return again.messages[1]

    found = asyncio.run(recalled())
    assert minted(found, family) == minted(message, family)
    assert [call.id for call in found.tool_calls] == ids
    assert found.text.split() == message.text.split() or "".join(found.text.split()) == "".join(message.text.split())


@given(answer=signed_answers())
def test_clients_get_no_foreign_signatures(answer: ir.Completion) -> None:
    shown = hide_foreign_signatures(answer, "another").messages[0]
    assert all(getattr(part, "signature", None) is None for part in shown.parts)
    assert shown.text == answer.messages[0].text
    assert len(shown.tool_calls) == len(answer.messages[0].tool_calls)


def test_clients_get_no_foreign_signatures_in_streams() -> None:
    signature = ir.Signature("anthropic", "s")
    events: list[ir.AnyEvent] = [
        ir.PartStart(0, ir.Reasoning("")),
        ir.PartEnd(0, signature),
        ir.PartStart(1, ir.Reasoning("")),
        ir.PartDelta(1, "hm"),
        ir.PartEnd(1, signature),
        ir.PartStart(2, ir.ToolCall("c", "f", {}, signature=signature)),
        ir.PartEnd(2),
    ]
    assert UnsignedEvents("google")(events) == [
        ir.PartStart(1, ir.Reasoning("")),
        ir.PartDelta(1, "hm"),
        ir.PartEnd(1),
        ir.PartStart(2, ir.ToolCall("c", "f", {})),
        ir.PartEnd(2),
    ]
    assert UnsignedEvents("anthropic")(events) == events
