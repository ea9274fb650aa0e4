"""The MCP server of the tests over HTTP: one process for a worker, because importing its SDK takes most of a second."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.waiting import until

SERVER = Path(__file__).parent / "fixtures" / "mcp_server.py"


@pytest.fixture(scope="session")
def mcp_server_url() -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen([sys.executable, str(SERVER), str(port)], stderr=subprocess.DEVNULL)  # noqa: S603
    try:
        until(lambda: _is_open(port), "the server did not start")
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        process.wait()


def _is_open(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True
