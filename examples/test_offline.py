"""A test of your own agent, without network and keys: `dragoman_sim` is a fixture that comes with dragoman.

pytest examples/test_offline.py
"""

import dragoman
from dragoman.sim import Simulator


@dragoman.tool
def get_weather(city: str) -> str:
    """Weather of a city."""
    return f"rain in {city}"


def ask_agent(base_url: str) -> str:
    driver = dragoman.connect("anthropic/claude-sonnet-5", base_url=base_url, api_key="any")
    return dragoman.Agent(driver, tools=[get_weather]).run_sync("Do I need an umbrella in Oslo?").text


def test_the_agent_looks_and_then_answers(dragoman_sim: Simulator) -> None:
    dragoman_sim.play(
        {"calls": [{"name": "get_weather", "arguments": {"city": "Oslo"}}]},
        {"text": "Yes: rain in Oslo."},
    )
    assert ask_agent(dragoman_sim.url) == "Yes: rain in Oslo."
    assert "rain in Oslo" in dragoman_sim.requests[-1].body.decode()
