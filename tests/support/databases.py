"""A PostgreSQL and a Redis for tests, on free ports and in temporary folders."""

from __future__ import annotations

import ctypes
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.waiting import PATIENCE, until


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return int(sock.getsockname()[1])


def _answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False


_SYSTEM = ctypes.CDLL(None) if sys.platform == "linux" else None
_WHEN_THE_PARENT_DIES = 1  # PR_SET_PDEATHSIG


def _die_with_the_tests() -> None:
    """Ask the kernel to end this process with its parent, because tests that are killed cannot clean up."""
    if _SYSTEM is not None:
        _SYSTEM.prctl(_WHEN_THE_PARENT_DIES, signal.SIGQUIT)


# ── PostgreSQL ──


def _binaries() -> Path | None:
    """The folder of PostgreSQL's programs. Debian has one for each version, outside the path."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    found = shutil.which("initdb")
    return next((folder for folder in folders if (folder / "initdb").exists()), Path(found).parent if found else None)


def _unprivileged_user() -> str | None:
    """The user that PostgreSQL runs as where the tests run as root, which it refuses."""
    if os.getuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in ("postgres", "nobody") if name in names)


class Postgres:
    """A server that can be stopped, and started again with its data."""

    def __init__(self, binaries: Path, folder: Path) -> None:
        self._binaries = binaries
        self._data = folder / "data"
        self._user = _unprivileged_user()
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._databases = 0
        self.url = f"postgresql://gateway@127.0.0.1:{self._port}/postgres"
        if self._user is not None:
            shutil.chown(folder, self._user)
        given = ["-A", "trust", "-U", "gateway", "--no-sync", "-E", "UTF8", "--locale=C"]
        subprocess.run(  # noqa: S603
            [binaries / "initdb", "-D", self._data, *given],
            check=True,
            capture_output=True,
            user=self._user,
            cwd=folder,
        )

    def start(self) -> None:
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self._port),
            "unix_socket_directories": "",
            "fsync": "off",
            "max_connections": "60",
            "shared_buffers": "16MB",
        }
        given = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        self._process = subprocess.Popen(  # noqa: S603
            [self._binaries / "postgres", "-D", self._data, *given],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            user=self._user,
            cwd=self._data,
            preexec_fn=_die_with_the_tests,  # noqa: PLW1509 - it calls the system once
        )
        until(self._is_ready, "PostgreSQL does not start")

    def _is_ready(self) -> bool:
        probe = subprocess.run(  # noqa: S603
            [self._binaries / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self._port)], check=False
        )
        return probe.returncode == 0

    def fresh(self) -> str:
        """The address of a fresh database."""
        self._databases += 1
        name = f"fresh_{self._databases}"
        command = ["-q", "-d", self.url, "-c", f"CREATE DATABASE {name}"]
        subprocess.run([self._binaries / "psql", *command], check=True, capture_output=True)  # noqa: S603
        return self.url.removesuffix("postgres") + name

    def stop(self) -> None:
        """Stop at once, cutting off all connections."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)  # an immediate shutdown
            self._process.wait(PATIENCE)
            self._process = None


@contextmanager
def postgres() -> Iterator[Postgres]:
    binaries = _binaries()
    if binaries is None:
        pytest.skip("PostgreSQL is not installed here (apt install postgresql)")
    pytest.importorskip("psycopg", reason="psycopg, or its libpq, is not installed here", exc_type=ImportError)
    with tempfile.TemporaryDirectory(prefix="dragoman-", ignore_cleanup_errors=True) as folder:
        server = Postgres(binaries, Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.stop()


# ── Redis ──


class Redis:
    def __init__(self, program: str, folder: Path) -> None:
        self._program = program
        self._folder = folder
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._databases = -1
        self.url = f"redis://127.0.0.1:{self._port}"

    def start(self) -> None:
        given = [
            "--port",
            str(self._port),
            "--databases",
            "1000",
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "no",
        ]
        self._process = subprocess.Popen(  # noqa: S603
            [self._program, *given],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self._folder,
            preexec_fn=_die_with_the_tests,  # noqa: PLW1509 - it calls the system once
        )
        until(lambda: _answers(self._port), "Redis does not start")

    def fresh(self) -> str:
        """The address of a fresh database."""
        self._databases += 1
        return f"{self.url}/{self._databases}"

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(PATIENCE)
            self._process = None


@contextmanager
def redis() -> Iterator[Redis]:
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("Redis is not installed here (apt install redis-server)")
    pytest.importorskip("redis", reason="the package redis is not installed here", exc_type=ImportError)
    with tempfile.TemporaryDirectory(prefix="dragoman-") as folder:
        server = Redis(program, Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.stop()
