"""Installs clients that are not in requirements.lock into `.clients`: npm packages, and a layer of Python packages.

    python -m tests.gateway.installing

installs them beforehand; otherwise the first test worker does while the others wait. If they cannot be installed, tests
are skipped with a reason that begins with `NOT TRIED`, which the test summary repeats (tests/conftest.py).
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import time
import venv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.not_tried import NOT_TRIED

HERE = Path(__file__).parent / "clients"
ROOT = Path(__file__).parents[2]
FOLDER = Path(os.environ.get("DRAGOMAN_CLIENTS") or ROOT / ".clients")
PATIENCE = 300
# All workers of one test run have the same id, so that a failed installation is not repeated by each of them.
_RUN = os.environ.get("PYTEST_XDIST_TESTRUNUID") or str(os.getpid())


class CannotInstall(Exception):
    pass


def npm_packages(folder: Path = FOLDER, pins: Path = HERE, name: str = "npm") -> Path:
    """Return `node_modules` with the pins of package-lock.json. None of the packages needs its install scripts."""
    sources = (pins / "package.json", pins / "package-lock.json")

    def install(place: Path) -> None:
        npm = shutil.which("npm")
        if npm is None:
            raise CannotInstall("npm is not installed")
        for source in sources:
            shutil.copy(source, place)
        _run([npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], place)

    return _once(name, sources, install, folder) / "node_modules"


def front_end_packages(folder: Path = FOLDER) -> Path:
    """The clients of an agent's event streams."""
    return npm_packages(folder, ROOT / "tests" / "agent" / "clients", "front-ends")


def python_packages(folder: Path = FOLDER, name: str = "python") -> Path:
    """Return `bin` of a virtual environment with the pins of python.lock.

    It is layered on the tests' own environment, so that pip fetches only packages of other versions.
    """
    lock = HERE / f"{name}.lock"

    def install(place: Path) -> None:
        venv.create(place, with_pip=False, symlinks=True, clear=True)
        python = place / "bin" / "python"
        own = {"base": str(place), "platbase": str(place)}
        beneath = Path(sysconfig.get_path("purelib", vars=own)) / "beneath.pth"
        beneath.write_text(f"{sysconfig.get_path('purelib')}\n", encoding="utf-8")
        pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check", "--no-input"]
        _run([*pip, "install", "--quiet", "--no-deps", "--no-compile", "-r", str(lock)], place)

    return _once(name, (lock, ROOT / "requirements.lock"), install, folder) / "bin"


def more_python_packages(folder: Path = FOLDER) -> Path:
    """Return the same for frameworks that need other versions of the dependencies than those in python.lock."""
    return python_packages(folder, "python-more")


def storage_packages(folder: Path = FOLDER) -> Path:
    """The clients of Google's and Azure's object storage."""
    return python_packages(folder, "storage")


def _once(name: str, sources: tuple[Path, ...], install: Callable[[Path], None], folder: Path) -> Path:
    """Install once. One file records the digest of the pins, another one the run in which it failed, and why."""
    interpreter = f"{sys.prefix} {sys.version}".encode()
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources) + interpreter).hexdigest()
    place, stamp, failure = folder / name, folder / f"{name}.stamp", folder / f"{name}.failure"
    with _alone(folder / f"{name}.lock"):
        if stamp.exists() and stamp.read_text(encoding="utf-8") == digest:
            return place
        if failure.exists() and failure.read_text(encoding="utf-8").startswith(_RUN):
            raise CannotInstall(failure.read_text(encoding="utf-8").removeprefix(_RUN).strip())
        stamp.unlink(missing_ok=True)
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        try:
            install(place)
        except CannotInstall as error:
            failure.write_text(f"{_RUN} {error}", encoding="utf-8")
            raise
        stamp.write_text(digest, encoding="utf-8")
        return place


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _run(command: list[str], place: Path) -> None:
    try:
        subprocess.run(command, cwd=place, check=True, capture_output=True, text=True, timeout=PATIENCE)  # noqa: S603
    except subprocess.TimeoutExpired:
        raise CannotInstall(f"{command[0]} had not finished after {PATIENCE} s") from None
    except subprocess.CalledProcessError as error:
        raise CannotInstall(f"{command[0]} failed: {(error.stderr or error.stdout)[-300:]}") from None


def installed(client: str, packages: Callable[[], Path], program: str) -> Path:
    """Return the path of a client's program. Skips the test if it cannot be installed."""
    try:
        folder = packages()
    except CannotInstall as error:
        pytest.skip(f"{NOT_TRIED} {client}: {error}")
    found = next(iter(sorted(folder.glob(program))), None)
    if found is None:
        pytest.skip(f"{NOT_TRIED} {client}: there is no package of it for this machine")
    return found


def main() -> int:
    failed = 0
    for packages in (npm_packages, front_end_packages, python_packages, more_python_packages, storage_packages):
        started = time.monotonic()
        try:
            sys.stdout.write(f"{packages()}: {time.monotonic() - started:.0f} s\n")
        except CannotInstall as error:
            sys.stdout.write(f"{NOT_TRIED} {error}\n")
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
