"""Runs a gateway in a separate process with `dragoman serve`: with uvloop, and memory that can be measured."""

from __future__ import annotations

import re
import socket
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from dragoman.drivers.providers import PROVIDERS
from tests.cli.command import COMMAND, environment
from tests.support.waiting import until

TIMEOUT = 60.0
_KEYS = {
    name for provider in PROVIDERS.values() for name in (*provider.key_environment, *provider.base_url_environment)
}


class Served:
    def __init__(self, url: str, process: subprocess.Popen[str]) -> None:
        self.url = url
        self.process = process
        self.lines: list[str] = []

    @property
    def megabytes(self) -> float:
        """Memory of the process."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        assert found
        return int(found[1]) / 1024

    @property
    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / 100

    def wait_for(self, word: str) -> None:
        """Wait until a line of its log contains this word."""
        until(lambda: any(word in line for line in list(self.lines)), f"no line of the log has {word!r}")

    def connect(self) -> socket.socket:
        parts = urlsplit(self.url)
        return socket.create_connection((parts.hostname or "", parts.port or 0), timeout=TIMEOUT)


@contextmanager
def served(folder: Path, text: str, *arguments: str, within: Sequence[str] = ()) -> Iterator[Served]:
    """Start the gateway. `within` is a command that is put in front of the gateway's own."""
    file = folder / "gateway.toml"
    file.write_text(text)
    clean = {name: value for name, value in environment().items() if name not in _KEYS}
    process = subprocess.Popen(  # noqa: S603 - our own command
        [*within, *COMMAND, "serve", "--port", "0", "--config", str(file), *arguments],
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=clean,
    )
    assert process.stderr is not None
    try:
        greeting = process.stderr.readline()
        found = re.match(r"(https?://127\.0\.0\.1:\d+) ", greeting)
        assert found, greeting + process.stderr.read()
        running = Served(found[1], process)
        reading = threading.Thread(target=lambda: running.lines.extend(process.stderr or ()), daemon=True)
        reading.start()
        yield running
    finally:
        process.terminate()
        process.wait(TIMEOUT)
        process.stderr.close()
