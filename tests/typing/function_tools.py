"""A function that became a tool is called as the function it was, with the type of its result."""

from typing import assert_type

import dragoman
from dragoman.agent import Tool


@dragoman.tool
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


@dragoman.tool(read_only=True)
async def greet(name: str) -> str:
    """Greet."""
    return f"Hello, {name}"


def shout(text: str) -> str:
    return text.upper()


TOOLS: list[Tool] = [add, greet, dragoman.tool(shout, name="shout_it")]
more_tools = [add, greet]
AGENTS = [dragoman.Agent("ollama/qwen3", tools=more_tools), dragoman.Agent("ollama/qwen3", tools=[add, shout])]


async def main() -> None:
    assert_type(add(1, b=2), int)
    assert_type(await greet("Ada"), str)
    assert_type(dragoman.tool(shout)("hi"), str)
