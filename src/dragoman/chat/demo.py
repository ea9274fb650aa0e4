"""The chat without keys: four simulated models on this machine, and tools for them to call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dragoman.agent import Tool, tool
from dragoman.chat.participants import DEFAULTS, Participant, participant

_WEATHER = {"paris": "18 °C, light rain", "tokyo": "25 °C, clear", "oslo": "7 °C, snow showers"}
_BASES = {"openai": "/v1"}


@tool(read_only=True)
def get_weather(city: str) -> str:
    """Current weather of a city.

    Args:
        city: Name of the city.

    """
    return f"{city}: {_WEATHER.get(city.casefold(), '20 °C, fair')}"


@tool
def save_note(text: str) -> str:
    """Save a note for the user.

    Args:
        text: What to remember.

    """
    return f"saved: {text}"


TOOLS: tuple[Tool, ...] = (get_weather, save_note)


def demo_user(user: str) -> str:
    """User name for conversations with simulated models, which are stored apart from real ones."""
    return f"{user} (demo)"


@contextmanager
def simulated_models() -> Iterator[list[Participant]]:
    """Starts simulators of Gemini, ChatGPT, Claude and Ollama; yields one participant for each."""
    from dragoman.sim.server import Simulator  # noqa: PLC0415 - needs an extra

    with Simulator() as simulator:
        yield [
            participant(
                name,
                model,
                options={"base_url": simulator.url + _BASES.get(model.partition("/")[0], ""), "api_key": "demo"},
                is_simulated=True,
            )
            for name, model in DEFAULTS.items()
        ]
