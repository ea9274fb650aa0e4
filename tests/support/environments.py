"""Virtual environments with dragoman and exactly the packages that one of its extras declares.

The packages are links to those of the environment that runs the tests, so nothing is downloaded: a package that an
extra forgets to declare is as absent as on a user's machine.
"""

from __future__ import annotations

import importlib.metadata
import sysconfig
import venv
from collections.abc import Iterable, Iterator
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


class NotInstalled(LookupError):
    """The environment of the tests lacks this package."""


def make_environment(place: Path, unpacked: Path, requirements: Iterable[str], alone: Iterable[str] = ()) -> Path:
    """An environment with an unpacked wheel, these requirements, and these packages without theirs.

    Returns its Python.
    """
    packages = empty_environment(place)
    for entry in unpacked.iterdir():
        (packages / entry.name).symlink_to(entry)
    for distribution in _needed(requirements):
        _link(distribution, packages)
    for name in alone:
        _link(_distribution(name), packages)
    return place / "bin" / "python"


def empty_environment(place: Path) -> Path:
    """Returns the folder for packages."""
    venv.create(place, with_pip=False, symlinks=True)
    return Path(sysconfig.get_path("purelib", vars={"base": str(place), "platbase": str(place)}))


def _needed(requirements: Iterable[str]) -> Iterator[importlib.metadata.Distribution]:
    """Everything that an installer would add, once."""
    waiting = [(Requirement(text), frozenset[str]()) for text in requirements]
    seen: set[tuple[str, frozenset[str]]] = set()
    yielded: set[str] = set()
    while waiting:
        requirement, extras = waiting.pop()
        if requirement.marker and not any(requirement.marker.evaluate({"extra": name}) for name in extras or {""}):
            continue
        name, wanted = canonicalize_name(requirement.name), frozenset(requirement.extras)
        if (name, wanted) in seen:
            continue
        seen.add((name, wanted))
        distribution = _distribution(name)
        waiting += [(Requirement(text), wanted) for text in distribution.requires or ()]
        if name not in yielded:
            yielded.add(name)
            yield distribution


def _distribution(name: str) -> importlib.metadata.Distribution:
    try:
        return importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        raise NotInstalled(name) from None


def _link(distribution: importlib.metadata.Distribution, packages: Path) -> None:
    """File by file, because packages such as `google` are shared by many distributions."""
    for file in distribution.files or ():
        if ".." in file.parts:  # programs
            continue
        target = packages / file
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            target.symlink_to(str(distribution.locate_file(file)))
