"""An agent calls a tool of an MCP server, which is a process of its own."""

import asyncio
import sys
import tempfile
from pathlib import Path

import dragoman
from dragoman.agent.mcp import McpServers, read_servers
from dragoman.drivers import Scripted, ScriptedDriver

SERVER = """
from mcp.server import MCPServer
server = MCPServer("weather")
@server.tool()
def get_weather(city: str) -> str:
    return f"rain in {city}"
server.run("stdio")
"""


async def main(file: Path) -> None:
    servers = read_servers({"mcpServers": {"weather": {"command": sys.executable, "args": [str(file)]}}})
    driver = ScriptedDriver([Scripted(calls=[("get_weather", {"city": "Oslo"})]), "Take an umbrella."])
    async with McpServers(servers) as running:
        result = await dragoman.Agent(driver, tools=running.tools()).run("Do I need an umbrella?")
    assert result.text == "Take an umbrella.", result
    assert "rain in Oslo" in str(driver.requests[-1]), driver.requests


with tempfile.TemporaryDirectory() as folder:
    program = Path(folder, "server.py")
    program.write_text(SERVER, encoding="utf-8")
    asyncio.run(main(program))
