"""Agents against the simulators, which end answers with calls in words that block them: nothing runs."""

from __future__ import annotations

import asyncio

import pytest

from dragoman.agent import Agent, tool
from dragoman.sim.server import Simulator
from tests.drivers.partners import EACH_FORMAT, Partner, talking
from tests.support.promises import promise

TURN = {"text": "I will.", "calls": [{"name": "rm", "arguments": {"p": "/"}}]}
BLOCKING = {
    "openai-chat": "content_filter",
    "anthropic": "refusal",
    "vertex-anthropic": "refusal",
    "gemini": "SAFETY",
    "vertex": "PROHIBITED_CONTENT",
    "bedrock": "guardrail_intervened",
}


@promise("agent:withheld-calls")
@EACH_FORMAT
@pytest.mark.parametrize("deltas", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("how", ["blocked", "cut", "unknown"])
def test_an_agent_on_a_simulator_runs_no_withheld_call(
    partner: Partner,
    how: str,
    deltas: bool,  # noqa: FBT001
    dragoman_sim: Simulator,
) -> None:
    ran: list[str] = []

    @tool
    def rm(p: str) -> str:
        """Remove."""
        ran.append(p)
        return "removed"

    word = BLOCKING.get(partner.name) if how == "blocked" else "reason_of_tomorrow"
    if word is None or (how == "unknown" and partner.name == "openai"):
        pytest.skip("this API has no such word")
    ending = {"finish": "length"} if how == "cut" else {"finish_word": word}
    dragoman_sim.service.play([{**TURN, **ending}, {"text": "Done."}])

    async def run() -> tuple[Agent, str]:
        async with talking(partner, dragoman_sim) as driver:
            agent = Agent(driver, tools=[rm], deltas=deltas, output_cache=None)
            first = await agent.run("Clean up.")
            if how != "cut":
                await agent.run("And now?")  # the history is one that the provider takes
            return agent, first.reason

    agent, reason = asyncio.run(run())
    assert ran == []
    assert reason == ("answer" if how == "cut" else "blocked")
    (result,) = [one for message in agent.history for one in message.tool_results]
    assert result.is_error
    assert [recorded.status for recorded in dragoman_sim.requests] == [200, 200]
