"""`dragoman run` with a tool, shown by rich."""

import os
import tempfile
from pathlib import Path

import rich

from dragoman.cli import main
from dragoman.sim import Simulator

TOOLS = '''
import dragoman
@dragoman.tool
def get_weather(city: str) -> str:
    """Weather of a city."""
    return f"rain in {city}"
'''
with Simulator() as sim, tempfile.TemporaryDirectory() as folder:
    tools = Path(folder, "tools.py")
    tools.write_text(TOOLS, encoding="utf-8")
    os.environ |= {"ANTHROPIC_BASE_URL": sim.url, "ANTHROPIC_API_KEY": "any"}
    command = ["run", "-m", "anthropic/claude-sonnet-5", "What is the weather in Oslo?", "--tools", str(tools)]
    assert main([*command, "--approve", "all"]) == 0
    assert b"rain in Oslo" in sim.requests[-1].body
assert rich.get_console().width
