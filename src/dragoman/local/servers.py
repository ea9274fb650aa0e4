"""Servers of local models: each is started once, shared, and stopped with its last user."""

from __future__ import annotations

import atexit
import secrets
import subprocess
import sys
import tempfile
import threading
from typing import IO

import msgspec

from dragoman.errors import NotConfigured
from dragoman.local.models import Plan
from dragoman.local.serving import Order, Ready

_PATIENCE = 5.0
"""Seconds to wait for a server to exit."""
_SHOWN = 500


class Server:
    """One model in its process. Methods block: call them in a thread."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.key = secrets.token_urlsafe()
        self.users = 0
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._ready: Ready | None = None

    def start(self) -> Ready:
        """Starts the server if it is not running, or again if it has died; returns its address."""
        with self._lock:
            if self._ready is None or self._process is None or self._process.poll() is not None:
                self._ready = self._begin()
            return self._ready

    def stop(self) -> None:
        with self._lock:
            process, self._process, self._ready = self._process, None, None
        if process is not None:
            _end(process)

    @property
    def process_id(self) -> int | None:
        return None if self._process is None else self._process.pid

    def _begin(self) -> Ready:
        if self._process is not None:
            _end(self._process)
        with tempfile.TemporaryFile() as log:
            command = [sys.executable, "-m", "dragoman.local.serving"]
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)  # noqa: S603
            self._process = process
            try:
                return self._ask(process)
            except (msgspec.DecodeError, OSError) as error:
                _end(process)
                raise _not_loaded(self.plan, log) from error

    def _ask(self, process: subprocess.Popen[bytes]) -> Ready:
        source, answers = process.stdin, process.stdout
        if source is None or answers is None:
            raise OSError("the process has no pipes")
        source.write(msgspec.json.encode(Order(self.plan, self.key)) + b"\n")
        source.flush()
        return msgspec.json.decode(answers.readline(), type=Ready)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Stops the process: closing its stdin asks it to exit."""
    try:
        process.communicate(timeout=_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


def _not_loaded(plan: Plan, log: IO[bytes]) -> NotConfigured:
    """Not a `ProviderError`: those are retried, and loading would fail again."""
    log.seek(0)
    output = " ".join(log.read().decode("utf-8", "replace").split())[-_SHOWN:]
    return NotConfigured(f"llama.cpp could not load {plan.path}: {output or 'no output'}", missing=plan.path)


class Servers:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._servers: dict[Plan, Server] = {}

    def join(self, plan: Plan) -> Server:
        """The server of this plan, with one more user. Does not start it."""
        with self._lock:
            if not self._servers:
                atexit.register(self.stop_all)
            server = self._servers.setdefault(plan, Server(plan))
            server.users += 1
            return server

    def leave(self, server: Server) -> None:
        with self._lock:
            server.users -= 1
            unused = server.users == 0
            if unused:
                self._servers.pop(server.plan, None)
        if unused:
            server.stop()

    @property
    def running(self) -> list[Server]:
        return list(self._servers.values())

    def stop_all(self) -> None:
        with self._lock:
            servers, self._servers = list(self._servers.values()), {}
        for server in servers:
            server.stop()


SERVERS = Servers()
