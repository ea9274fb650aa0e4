"""How this copy of dragoman was built, and the commands that add a package to it or build it in the other way.

`pip install 'dragoman[http]'` is right only for a copy from an index whose environment is active. A clone, `make run`,
pipx and `uv tool` each need another command, and the files that installers leave behind say which.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
import tomllib
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

_EXTRAS = re.compile(r"\[([^\]]*)\]")


class _Origin(NamedTuple):
    """What to install again. The extras go between `name` and `address`."""

    name: str
    address: str = ""
    editable: bool = False

    def requirement(self, extras: set[str]) -> str:
        wanted = f"[{','.join(sorted(extras))}]" if extras else ""
        return _quote(f"{self.name}{wanted}{self.address}")

    @property
    def is_folder(self) -> bool:
        return self.name != "dragoman"

    @property
    def flag(self) -> str:
        return "-e " if self.editable else ""


def is_compiled() -> bool:
    """Whether the core of this copy is machine code (docs/decisions/0028-compiled-wheels.md)."""
    found = find_spec("dragoman.translate")
    return found is not None and str(found.origin).endswith(tuple(EXTENSION_SUFFIXES))


def install_command(*extras: str) -> str:
    """The command that adds these extras of dragoman."""
    return _install_command(_origin(), set(extras))


def other_core_command() -> str:
    """The command that builds and installs this copy again: compiled if it is source, as source if it is compiled."""
    origin = _origin()._replace(editable=False)
    if origin.address.endswith(".whl"):  # built already
        origin = _Origin("dragoman")
    command = _install_command(origin, set(), again=True)
    if is_compiled():
        return command
    return f'set "DRAGOMAN_COMPILE=1" && {command}' if os.name == "nt" else f"DRAGOMAN_COMPILE=1 {command}"


def _install_command(origin: _Origin, wanted: set[str], *, again: bool = False) -> str:
    """`again` builds what is installed already, and takes it neither from an index nor from a cache of built wheels."""
    pipx = _pipx_package()
    if pipx is not None:
        name, installed = pipx
        action = "install --force" if name == "dragoman" else f"inject --force {name}"
        options = "--pip-args='--no-cache-dir --no-binary dragoman' " if again and not origin.is_folder else ""
        return f"pipx {action} {options}{origin.flag}{origin.requirement(wanted | installed)}"
    installed_by_uv = _uv_tool_extras()
    if installed_by_uv is not None:
        options = "--no-cache --no-binary-package dragoman " if again else ""
        return f"uv tool install --force {options}{origin.flag}{origin.requirement(wanted | installed_by_uv)}"
    options = _options_to_build(origin) if again else ""
    return f"{_pip()} {options}{origin.flag}{origin.requirement(wanted)}"


def _options_to_build(origin: _Origin) -> str:
    if find_spec("pip") is None:
        return "--no-deps --reinstall-package dragoman --no-cache --no-binary dragoman "
    # pip always builds a folder again.
    return "" if origin.is_folder else "--no-deps --force-reinstall --no-cache-dir --no-binary dragoman "


def install_package_command(package: str, *options: str) -> str:
    """The command that adds another package beside dragoman."""
    pipx = _pipx_package()
    pip = _pip() if pipx is None else f"pipx runpip {pipx[0]} install"
    return " ".join((pip, *options, _quote(package)))


# ── where this copy came from ──


def _origin() -> _Origin:
    # Loads `email` and more: only when a package is missing.
    from importlib.metadata import PackageNotFoundError, distribution  # noqa: PLC0415

    try:
        written = distribution("dragoman").read_text("direct_url.json")
    except PackageNotFoundError:  # run from its source, by PYTHONPATH
        root = Path(__file__).parents[2]
        is_clone = (root / "pyproject.toml").is_file()
        return _Origin(_shown_folder(root), editable=True) if is_clone else _Origin("dragoman")
    return _origin_of_url(json.loads(written)) if written else _Origin("dragoman")


def _origin_of_url(record: dict[str, Any]) -> _Origin:
    """From `direct_url.json` (PEP 610), which is there unless the package came from an index."""
    url: str = record["url"]
    if version_control := record.get("vcs_info"):
        revision = version_control.get("requested_revision") or version_control["commit_id"]
        return _Origin("dragoman", f" @ {version_control['vcs']}+{url}@{revision}")
    path = _path_of(url) if url.startswith("file:") else None
    if path is not None and not path.exists():
        return _Origin("dragoman")
    if path is not None and "dir_info" in record:
        return _Origin(_shown_folder(path), editable=record["dir_info"].get("editable", False))
    return _Origin("dragoman", f" @ {url}")


def _path_of(url: str) -> Path:
    path = unquote(urlsplit(url).path)
    return Path(path.lstrip("/") if os.name == "nt" else path)  # file:///C:/clone


# ── which installer looks after this environment ──


def _pipx_package() -> tuple[str, set[str]] | None:
    """The package that pipx made this environment for, and the extras it was installed with."""
    file = Path(sys.prefix, "pipx_metadata.json")
    if not file.is_file():
        return None
    main = json.loads(file.read_text(encoding="utf-8"))["main_package"]
    return main["package"], _extras_of(main["package_or_url"]) if main["package"] == "dragoman" else set()


def _uv_tool_extras() -> set[str] | None:
    """The extras that `uv tool install` was given, or None in any other environment."""
    file = Path(sys.prefix, "uv-receipt.toml")
    if not file.is_file():
        return None
    requirements = tomllib.loads(file.read_text(encoding="utf-8"))["tool"]["requirements"]
    first = requirements[0]
    return set(first.get("extras", ())) if first["name"] == "dragoman" else None


def _extras_of(requirement: str) -> set[str]:
    found = _EXTRAS.search(requirement)
    return {name.strip() for name in found[1].split(",")} if found else set()


def _pip() -> str:
    python = Path(sys.executable)
    if find_spec("pip") is None:  # environments of uv have none
        return f"uv pip install --python {_quote(_shown_program(python))}"
    on_path = shutil.which("pip")
    if on_path is not None and Path(on_path).parent == python.parent:
        return "pip install"
    return f"{_quote(_shown_program(python))} -m pip install"


# ── how it is written ──


def _shown_folder(path: Path) -> str:
    # Without a slash it would be the name of a package, so only the current folder is shortened.
    return "." if path == _current_folder() else str(path)


def _shown_program(path: Path) -> str:
    folder = _current_folder()
    if folder is None or not path.is_relative_to(folder):
        return str(path)
    return str(path.relative_to(folder)) if path.parent != folder else str(path)


def _current_folder() -> Path | None:
    try:
        return Path.cwd()
    except OSError:  # it was deleted
        return None


def _quote(text: str) -> str:
    if os.name != "nt":
        return shlex.quote(text)
    return f'"{text}"' if re.search(r"[^\w.:\\/-]", text) else text
