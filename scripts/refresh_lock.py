"""Write requirements.lock: every package for building, checking and measuring dragoman, with its hashes.

    make lock                                     resolve everything again
    python scripts/refresh_lock.py --add NAME     add a package, or take its newest version; all others stay
    python scripts/refresh_lock.py --hashes       add hashes to pins that have none; no version changes

The lock has names, versions and hashes, and says nothing about where packages are fetched from. The hashes are those of
all files of a version, for every platform and interpreter, as the package index that pip is configured with lists them.
With them pip installs nothing else: neither another file of the same name nor a package that is not listed.

`requirements-run.lock` is the part of it that `make run` needs, and `requirements-model.lock` a model for the tests.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements.lock"
RUN_LOCK = ROOT / "requirements-run.lock"
MODEL_LOCK = ROOT / "requirements-model.lock"
HEADER = "# {} Written by scripts/refresh_lock.py (`make lock`); do not edit.\n"
ABOUT = {
    LOCK: "Every package that building, checking and measuring dragoman takes, pinned.",
    RUN_LOCK: "The packages of requirements.lock that `make run` needs.",
    MODEL_LOCK: "A small model for the tests of `local/...`, without what it depends on (another way to run it).",
}
NAME = re.compile(r"[A-Za-z0-9._-]+")
PIN = re.compile(r"([A-Za-z0-9._-]+)==([A-Za-z0-9._!+-]+)")
HASH = re.compile(r"--hash=(sha256:[0-9a-f]{64})")

Pins = dict[str, tuple[str, str]]
"""Normalised name -> name as the project spells it, version."""
Hashes = dict[str, frozenset[str]]
"""Normalised name -> `sha256:…` of all files of the version."""


def normalised(requirement: str) -> str:
    """Give the normalised project name of a requirement (PEP 503)."""
    match = NAME.match(requirement)
    if match is None:
        raise SystemExit(f"not a requirement: {requirement!r}")
    return re.sub(r"[-_.]+", "-", match[0]).lower()


# ── what is declared ──


def declared_groups() -> dict[str, list[str]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"]
    return {
        "build": project["build-system"]["requires"],
        "runtime": project["project"]["dependencies"]
        + [
            requirement
            for name in ("all", "local", "postgres", "redis", "batch", "ray")
            for requirement in extras[name]
        ],
        **project["dependency-groups"],
    }


def run_requirements() -> list[str]:
    """Requirements of an editable install with `dragoman serve`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    own = project["project"]
    return [*project["build-system"]["requires"], *own["dependencies"], *own["optional-dependencies"]["gateway"]]


# ── what was locked ──


def read_lock(text: str) -> tuple[Pins, Hashes]:
    pins: Pins = {}
    hashes: Hashes = {}
    for line in text.replace("\\\n", " ").splitlines():
        pin = PIN.match(line)
        if pin is not None:
            name = normalised(pin[1])
            pins[name] = (pin[1], pin[2])
            hashes[name] = frozenset(HASH.findall(line))
    return pins, hashes


# ── what pip resolves ──


def resolve_all(requirements: Iterable[str]) -> Pins:
    """Install the newest versions into a fresh environment and list them."""
    with tempfile.TemporaryDirectory() as directory:
        venv.create(directory, with_pip=True)
        pip = [f"{directory}/bin/python", "-m", "pip", "--disable-pip-version-check", "--no-input"]
        subprocess.run([*pip, "install", *requirements], check=True)  # noqa: S603  (our own pyproject.toml)
        frozen = subprocess.run(  # noqa: S603  (our own arguments)
            [*pip, "freeze", "--all", "--exclude", "pip"],  # without --all it leaves setuptools out
            check=True,
            capture_output=True,
            text=True,
        )
    lines = frozen.stdout.splitlines()
    if located := [line for line in lines if not PIN.fullmatch(line)]:  # such as "name @ file:///somewhere"
        raise SystemExit(f"pip named a place instead of a version: {located}")
    return read_lock(frozen.stdout)[0]


def resolve_some(requirements: Iterable[str], fixed: Pins) -> Pins:
    """The versions that pip would install for these requirements, with all other versions fixed."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as constraints:
        constraints.write("".join(f"{name}=={version}\n" for name, version in fixed.values()))
        constraints.flush()
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input"]
        options = ["--quiet", "--dry-run", "--ignore-installed", "--report", "-", "-c", constraints.name]
        report = subprocess.run(  # noqa: S603  (our own pyproject.toml)
            [*pip, "install", *options, *requirements],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
    found = [one["metadata"] for one in json.loads(report.stdout)["install"]]
    return {normalised(one["name"]): (one["name"], one["version"]) for one in found}


def published(names: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """Name, version and hash of all files that pip's indexes list for these projects.

    pip itself asks the indexes, so its configuration (certificates, proxies, credentials) applies. It has no command
    for this, so its internal modules are used.
    """
    from pip._internal.commands import create_command  # noqa: PLC0415 - only where hashes are looked up
    from pip._internal.index.collector import parse_links  # noqa: PLC0415
    from pip._internal.models.link import Link  # noqa: PLC0415

    command: Any = create_command("download")
    options, _ = command.parse_args(["nothing"])
    with command.main_context():
        finder = command._build_package_finder(options=options, session=command.get_default_session(options))  # noqa: SLF001
        collector = finder._link_collector  # noqa: SLF001
        for name in names:
            for address in collector.search_scope.get_index_urls_locations(name):
                page = collector.fetch_response(Link(address))
                for link in () if page is None else parse_links(page):
                    version = version_of(link.filename)
                    if version is not None and link.hash_name == "sha256" and link.hash:
                        yield name, version, f"sha256:{link.hash}"


def version_of(file: str) -> str | None:
    """The version of a wheel or source archive, from its file name."""
    from pip._vendor.packaging import utils  # noqa: PLC0415 - see above

    try:
        found = utils.parse_wheel_filename(file) if file.endswith(".whl") else utils.parse_sdist_filename(file)
    except (utils.InvalidWheelFilename, utils.InvalidSdistFilename, ValueError):
        return None
    return str(found[1])


def hashes_of(pins: Pins, known: Hashes) -> Hashes:
    """The known hashes, and those of the index for all other projects."""
    from pip._vendor.packaging.version import Version  # noqa: PLC0415 - see above

    found: dict[str, set[str]] = {name: set() for name in pins if not known.get(name)}
    wanted = {name: Version(pins[name][1]) for name in found}
    for name, version, digest in published(found):
        if Version(version) == wanted[name]:
            found[name].add(digest)
    if missing := [name for name, digests in found.items() if not digests]:
        raise SystemExit(f"the package index has no hashes for {', '.join(missing)}")
    return {name: known.get(name) or frozenset(found[name]) for name in pins}


# ── what is written ──


def render(about: str, groups: Mapping[str, Iterable[str]], pins: Pins, hashes: Hashes) -> str:
    remaining = dict(pins)
    sections = []
    for group, requirements in groups.items():
        names = sorted({normalised(requirement) for requirement in requirements} & remaining.keys())
        sections.append((group, [_line(remaining.pop(name), hashes[name]) for name in names]))
    sections.append(("needed by the above", [_line(remaining[name], hashes[name]) for name in sorted(remaining)]))
    return HEADER.format(about) + "".join("\n".join((f"\n# {title}", *lines, "")) for title, lines in sections if lines)


def _line(pin: tuple[str, str], hashes: Iterable[str]) -> str:
    return " \\\n    ".join((f"{pin[0]}=={pin[1]}", *(f"--hash={digest}" for digest in sorted(hashes))))


def write(pins: Pins, hashes: Hashes) -> None:
    LOCK.write_text(render(ABOUT[LOCK], declared_groups(), pins, hashes), encoding="utf-8")
    wanted = run_requirements()
    needed = resolve_some(wanted, pins)
    run = {name: pins[name] for name in needed}
    RUN_LOCK.write_text(render(ABOUT[RUN_LOCK], {"run": wanted}, run, hashes), encoding="utf-8")


def write_model() -> None:
    pins, known = read_lock(MODEL_LOCK.read_text(encoding="utf-8"))
    text = render(ABOUT[MODEL_LOCK], {"model": pins}, pins, hashes_of(pins, known))
    MODEL_LOCK.write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--add", action="append", default=[], metavar="NAME", help="may be given again")
    parser.add_argument("--hashes", action="store_true", help="only add hashes to pins that have none")
    arguments = parser.parse_args()
    before, known = read_lock(LOCK.read_text(encoding="utf-8"))
    if arguments.add or arguments.hashes:
        changed = {normalised(name) for name in arguments.add}
        kept = {name: pin for name, pin in before.items() if name not in changed}
        pins = before | (resolve_some(arguments.add, kept) if arguments.add else {})
    else:
        pins = resolve_all(requirement for requirements in declared_groups().values() for requirement in requirements)
    unchanged = {name: known[name] for name, pin in pins.items() if before.get(name, ("", ""))[1] == pin[1]}
    write(pins, hashes_of(pins, unchanged))
    write_model()
    print(f"requirements.lock: {len(pins)} packages, resolved with Python {platform.python_version()}")


if __name__ == "__main__":
    main()
