"""Resolve every dependency anew and write requirements.lock.

    make lock

The newest versions that fit pyproject.toml are installed into a fresh virtual environment, and what `pip freeze` then
finds is written down: names and versions only, so the lock says nothing about where packages are fetched from.
"""

from __future__ import annotations

import platform
import re
import subprocess
import tempfile
import tomllib
import venv
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADER = """\
# Every package that building, checking and measuring dragoman takes, pinned. Written by `make lock`; do not edit.
"""
NAME = re.compile(r"[A-Za-z0-9._-]+")
PIN = re.compile(r"[A-Za-z0-9._-]+==[A-Za-z0-9._!+-]+")


def normalised(requirement: str) -> str:
    """Give the project name of a requirement in the one spelling that compares (PEP 503)."""
    match = NAME.match(requirement)
    if match is None:
        raise SystemExit(f"not a requirement: {requirement!r}")
    return re.sub(r"[-_.]+", "-", match[0]).lower()


def declared_groups() -> dict[str, list[str]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"]
    return {
        "build": project["build-system"]["requires"],
        "runtime": project["project"]["dependencies"]
        + [requirement for name in ("all", "local", "postgres", "redis") for requirement in extras[name]],
        **project["dependency-groups"],
    }


def resolve(requirements: Iterable[str]) -> list[str]:
    with tempfile.TemporaryDirectory() as directory:
        venv.create(directory, with_pip=True)
        pip = [f"{directory}/bin/python", "-m", "pip", "--disable-pip-version-check", "--no-input"]
        subprocess.run([*pip, "install", *requirements], check=True)  # noqa: S603  (our own pyproject.toml)
        frozen = subprocess.run([*pip, "freeze"], check=True, capture_output=True, text=True)  # noqa: S603
    pins = frozen.stdout.splitlines()
    if located := [pin for pin in pins if not PIN.fullmatch(pin)]:  # such as "name @ file:///somewhere"
        raise SystemExit(f"pip named a place instead of a version: {located}")
    return pins


def render(groups: Mapping[str, Iterable[str]], pins: Iterable[str]) -> str:
    remaining = {normalised(pin): pin for pin in pins}
    sections = []
    for group, requirements in groups.items():
        names = sorted({normalised(requirement) for requirement in requirements} & remaining.keys())
        sections.append((group, [remaining.pop(name) for name in names]))
    sections.append(("needed by the above", [remaining[name] for name in sorted(remaining)]))
    return HEADER + "".join("\n".join((f"\n# {title}", *lines, "")) for title, lines in sections if lines)


def main() -> None:
    groups = declared_groups()
    pins = resolve(requirement for requirements in groups.values() for requirement in requirements)
    (ROOT / "requirements.lock").write_text(render(groups, pins), encoding="utf-8")
    print(f"requirements.lock: {len(pins)} packages, resolved with Python {platform.python_version()}")


if __name__ == "__main__":
    main()
