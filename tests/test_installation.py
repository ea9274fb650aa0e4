"""Errors about a missing package name the command that adds it, in the way this copy of dragoman was installed."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pip
import pytest

import dragoman
from dragoman.installation import install_command
from tests.support.environments import empty_environment
from tests.support.promises import promise

ROOT = Path(__file__).parents[1]
_PROGRAM = (
    "from dragoman.installation import *; print(install_command('sim')); print(install_package_command('p', '-U'));"
    "print(other_core_command())"
)


class Situation(NamedTuple):
    """How dragoman came into an environment, and the commands that belong to it.

    In the texts, CLONE is a folder with a space in its name, WHEEL a file and ENV the environment in it.
    """

    name: str
    url: Mapping[str, object] | None
    """`direct_url.json`, which installers write unless the package came from an index."""
    extra: str
    package: str
    compiled: str
    """Builds the copy again with its core compiled; DRAGOMAN_COMPILE=1 comes before it."""
    receipt: tuple[str, str] = ("", "")
    """A file of pipx or of `uv tool` at the top of the environment."""
    folder: str = "ELSEWHERE"
    """The folder in which the command is printed."""
    has_pip: bool = True
    active: bool = False


def _pipx(package: str, installed: str) -> tuple[str, str]:
    return "pipx_metadata.json", json.dumps({"main_package": {"package": package, "package_or_url": installed}})


def _uv(name: str, *extras: str) -> tuple[str, str]:
    return "uv-receipt.toml", f'[tool]\nrequirements = [{{ name = "{name}", extras = {json.dumps(extras)} }}]\n'


_PIP, _UV = "'ENV/bin/python' -m pip install", "uv pip install --python 'ENV/bin/python'"
_NEAR = ".venv/bin/python -m pip install"
_BUILD = "--no-deps --force-reinstall --no-cache-dir --no-binary dragoman"
_BUILD_UV = "--no-deps --reinstall-package dragoman --no-cache --no-binary dragoman"
_EDITABLE = {"url": "file://CLONE", "dir_info": {"editable": True}}
_FOLDER: Mapping[str, object] = {"url": "file://CLONE", "dir_info": {}}
_FILE: Mapping[str, object] = {"url": "file://WHEEL", "archive_info": {}}
_GIT = {"url": "https://host/d.git", "vcs_info": {"vcs": "git", "commit_id": "abc", "requested_revision": "v1"}}
SITUATIONS = (
    Situation(
        "published, environment active",
        None,
        "pip install 'dragoman[sim]'",
        "pip install -U p",
        f"pip install {_BUILD} dragoman",
        active=True,
    ),
    Situation(
        "published, environment not active",
        None,
        f"{_PIP} 'dragoman[sim]'",
        f"{_PIP} -U p",
        f"{_PIP} {_BUILD} dragoman",
    ),
    Situation("clone", _EDITABLE, f"{_PIP} -e 'CLONE[sim]'", f"{_PIP} -U p", f"{_PIP} 'CLONE'"),
    Situation(
        "clone, from its folder", _EDITABLE, f"{_NEAR} -e '.[sim]'", f"{_NEAR} -U p", f"{_NEAR} .", folder="CLONE"
    ),
    Situation("folder", _FOLDER, f"{_PIP} 'CLONE[sim]'", f"{_PIP} -U p", f"{_PIP} 'CLONE'"),
    Situation("file", _FILE, f"{_PIP} 'dragoman[sim] @ file://WHEEL'", f"{_PIP} -U p", f"{_PIP} {_BUILD} dragoman"),
    Situation(
        "git",
        _GIT,
        f"{_PIP} 'dragoman[sim] @ git+https://host/d.git@v1'",
        f"{_PIP} -U p",
        f"{_PIP} {_BUILD} 'dragoman @ git+https://host/d.git@v1'",
    ),
    Situation(
        "a folder that is gone",
        {"url": "file:///nowhere/at/all", "dir_info": {}},
        f"{_PIP} 'dragoman[sim]'",
        f"{_PIP} -U p",
        f"{_PIP} {_BUILD} dragoman",
    ),
    Situation(
        "environment of uv",
        _EDITABLE,
        f"{_UV} -e 'CLONE[sim]'",
        f"{_UV} -U p",
        f"{_UV} {_BUILD_UV} 'CLONE'",
        has_pip=False,
    ),
    Situation(
        "uv tool",
        _FOLDER,
        "uv tool install --force 'CLONE[redis,sim]'",
        f"{_UV} -U p",
        "uv tool install --force --no-cache --no-binary-package dragoman 'CLONE[redis]'",
        receipt=_uv("dragoman", "redis"),
        has_pip=False,
    ),
    Situation(
        "beside another tool of uv",
        None,
        f"{_UV} 'dragoman[sim]'",
        f"{_UV} -U p",
        f"{_UV} {_BUILD_UV} dragoman",
        receipt=_uv("llm"),
        has_pip=False,
    ),
    Situation(
        "pipx",
        _EDITABLE,
        "pipx install --force -e 'CLONE[chat,redis,sim]'",
        "pipx runpip dragoman install -U p",
        "pipx install --force 'CLONE[chat,redis]'",
        receipt=_pipx("dragoman", "CLONE[redis, chat]"),
    ),
    Situation(
        "injected by pipx",
        None,
        "pipx inject --force llm 'dragoman[sim]'",
        "pipx runpip llm install -U p",
        "pipx inject --force llm --pip-args='--no-cache-dir --no-binary dragoman' dragoman",
        receipt=_pipx("llm", "llm[x]"),
    ),
)


@promise("front:install-advice")
@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda one: one.name)
def test_the_command_fits_the_way_it_was_installed(situation: Situation, tmp_path: Path) -> None:
    clone, environment = tmp_path / "clone of mine", tmp_path / "clone of mine" / ".venv"
    clone.mkdir()
    (clone / "d.whl").touch()
    (tmp_path / "elsewhere").mkdir()
    names = {"CLONE": str(clone), "WHEEL": str(clone / "d.whl"), "ENV": str(environment)}
    names["ELSEWHERE"] = str(tmp_path / "elsewhere")

    def filled(text: str) -> str:
        for name, value in names.items():
            text = text.replace(name, value)
        return text

    packages = empty_environment(environment)
    record = packages / "dragoman-0.1.0.dist-info"
    record.mkdir()
    (record / "METADATA").write_text("Metadata-Version: 2.1\nName: dragoman\nVersion: 0.1.0\n", encoding="utf-8")
    if situation.url is not None:
        (record / "direct_url.json").write_text(filled(json.dumps(situation.url)), encoding="utf-8")
    (packages / "dragoman").symlink_to(Path(dragoman.__file__).parent)
    if situation.has_pip:
        (packages / "pip").symlink_to(Path(pip.__file__).parent)
        (environment / "bin" / "pip").touch(mode=0o755)
    if situation.receipt[0]:
        (environment / situation.receipt[0]).write_text(filled(situation.receipt[1]), encoding="utf-8")
    path = f"{environment / 'bin'}:{os.environ['PATH']}" if situation.active else os.environ["PATH"]
    ran = subprocess.run(  # noqa: S603 - our own program
        [environment / "bin" / "python", "-I", "-c", _PROGRAM],
        cwd=filled(situation.folder),
        env={"PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    commands = [situation.extra, situation.package, f"DRAGOMAN_COMPILE=1 {situation.compiled}"]
    assert ran.stdout.splitlines() == [filled(command) for command in commands], ran.stderr


@promise("front:install-advice")
def test_without_an_installation_the_command_names_the_clone(tmp_path: Path) -> None:
    empty_environment(tmp_path / "env")
    (tmp_path / "clone" / "src").mkdir(parents=True)
    (tmp_path / "clone" / "pyproject.toml").touch()
    (tmp_path / "clone" / "src" / "dragoman").symlink_to(Path(dragoman.__file__).parent)
    python = tmp_path / "env" / "bin" / "python"
    ran = subprocess.run(  # noqa: S603 - our own program
        [python, "-c", _PROGRAM],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path / "clone" / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.splitlines()[0].endswith(f"-e '{tmp_path / 'clone'}[sim]'"), ran.stdout


@promise("front:install-advice")
def test_no_module_writes_an_install_command_itself() -> None:
    """Only `install_command` finds out which one works."""
    found = [
        f"{file.relative_to(ROOT)}:{number}"
        for file in sorted((ROOT / "src").rglob("*.py"))
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if "pip install" in line and file.name != "installation.py"
    ]
    assert found == []
    assert "[sim]" in install_command("sim")
