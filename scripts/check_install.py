"""Build the wheel, install it with each extra in turn from a package index, and run a program that uses the extra.

    make check-install                                          every extra, with the Python of .venv
    make check-install ARGS='--python python3.14 core http'     some of them, with another Python

Each extra gets an environment of its own, which is removed afterwards. The programs are those of tests/extras; `make
test` runs them too, with linked packages instead of an index, so that it needs no network.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
JOBS = {file.stem: file for file in sorted((ROOT / "tests" / "extras").glob("*.py"))}
# `all` is tried with the programs of a few extras that are in it.
EVERYTHING = ("gateway", "mcp", "otel", "vertex", "bedrock")


def main() -> int:
    parser = argparse.ArgumentParser(description="Installs each extra from an index and runs a program that uses it.")
    parser.add_argument("extras", nargs="*", metavar="EXTRA", help=f"{', '.join(JOBS)}, all (default: each of them)")
    parser.add_argument("--python", action="append", metavar="PYTHON", help="the interpreter to try (repeatable)")
    arguments = parser.parse_args()
    unknown = set(arguments.extras) - {*JOBS, "all"}
    if unknown:
        parser.error(f"no such extra: {', '.join(sorted(unknown))}")
    pythons, extras = arguments.python or [sys.executable], arguments.extras or [*JOBS, "all"]
    with tempfile.TemporaryDirectory() as folder:
        wheel = _build(Path(folder))
        tried = [_try(python, wheel, extra, Path(folder, "environment")) for python in pythons for extra in extras]
    print("all good" if all(tried) else f"{tried.count(False)} failed")
    return 0 if all(tried) else 1


def _build(folder: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    environment = {name: value for name, value in os.environ.items() if name != "DRAGOMAN_COMPILE"}
    subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - our own
    (wheel,) = folder.glob("*.whl")
    return wheel


def _try(python: str, wheel: Path, extra: str, place: Path) -> bool:
    started = time.monotonic()
    inside = place / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(inside), "install", "--quiet"]
    steps = [
        [python, "-m", "venv", "--clear", "--without-pip", str(place)],
        [*pip, str(wheel) if extra == "core" else f"{wheel}[{extra}]"],
        *([str(inside), "-I", str(JOBS[job])] for job in (EVERYTHING if extra == "all" else (extra,))),
    ]
    problem = ""
    for step in steps:
        ran = subprocess.run(step, capture_output=True, text=True, check=False)  # noqa: S603 - our own programs
        if ran.returncode:
            problem = (ran.stderr or ran.stdout)[-2000:]
            break
    version = subprocess.run([inside, "-V"], capture_output=True, text=True, check=False).stdout.strip()  # noqa: S603
    state = "FAILED" if problem else "ok"
    print(f"{version:14} {extra:10} {state} ({time.monotonic() - started:.0f} s)", flush=True)
    if problem:
        print(problem, flush=True)
    return not problem


if __name__ == "__main__":
    sys.exit(main())
