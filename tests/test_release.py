"""The two files of a release: the same bytes each time, complete, and a core that needs msgspec alone."""

from __future__ import annotations

import email
import importlib.metadata
import os
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from email.message import Message
from pathlib import Path

import msgspec
import pytest

import dragoman
from tests.support.promises import promise

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
_PROGRAM = """
import sys
import dragoman
body = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}
encoded = dragoman.translate_request(body, source="openai-chat", target="gemini")
assert encoded.body["contents"], encoded.body
foreign = {name.partition(".")[0] for name in sys.modules} - sys.stdlib_module_names - {"dragoman", "msgspec"}
print(sorted(name for name in foreign if not name.startswith("_")), dragoman.__version__)
"""


def _build(target: Path) -> dict[str, Path]:
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-t", "wheel", "-d", str(target)]
    subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)  # noqa: S603 - our own project
    return {file.suffix: file for file in target.iterdir() if file.is_file()}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return _build(tmp_path_factory.mktemp("dist"))


@promise("front:release")
def test_the_same_commit_gives_the_same_bytes(built: dict[str, Path], tmp_path: Path) -> None:
    again = _build(tmp_path)
    assert sorted(again) == sorted(built) == [".gz", ".whl"]
    for suffix, file in built.items():
        assert file.name == again[suffix].name
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
def test_the_metadata(built: dict[str, Path]) -> None:
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
def test_the_core_runs_with_msgspec_alone(built: dict[str, Path], tmp_path: Path) -> None:
    place = tmp_path / "empty"
    venv.create(place, with_pip=False, symlinks=True)
    own = {"base": str(place), "platbase": str(place)}
    packages = Path(sysconfig.get_path("purelib", vars=own))
    (packages / "msgspec").symlink_to(Path(msgspec.__file__).parent)
    with zipfile.ZipFile(built[".whl"]) as wheel:
        wheel.extractall(packages)  # noqa: S202 - our own, and what installing a pure wheel does
    python = place / "bin" / "python"
    ran = subprocess.run([python, "-I", "-c", _PROGRAM], capture_output=True, text=True, check=False)  # noqa: S603
    assert ran.stdout.split() == ["[]", PROJECT["version"]], ran.stderr
    told = subprocess.run([python, "-I", "-m", "dragoman", "serve"], capture_output=True, text=True, check=False)  # noqa: S603
    assert told.returncode != 0
    assert "dragoman[gateway]" in told.stderr, told.stderr
    assert "Traceback" not in told.stderr


def test_no_dependency_of_an_extra_is_forgotten_in_all() -> None:
    extras = PROJECT["optional-dependencies"]
    # Large, or in need of a system library: said beside each of them.
    apart = {"local", "postgres", "redis", "batch", "ray", "docs", "all"}
    everything = set(extras["all"])
    missing = {name: sorted(set(needs) - everything) for name, needs in extras.items() if name not in apart}
    assert {name: needs for name, needs in missing.items() if needs} == {}
    assert importlib.metadata.version("msgspec")
