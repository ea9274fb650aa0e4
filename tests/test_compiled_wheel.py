"""The compiled wheel of `make compile` is complete, has no paths of this machine, and is the one that pip chooses."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import msgspec
import pytest
from packaging.tags import sys_tags
from packaging.utils import parse_wheel_filename

import dragoman
from compiling.generated import MODULE
from compiling.modules import compiled_modules
from tests.support.environments import empty_environment
from tests.support.promises import promise

if os.environ.get("DRAGOMAN_COMPILED") != "1":
    pytest.skip("tests of the compiled wheel run in `make check-compiled`, which builds it", allow_module_level=True)

ROOT = Path(__file__).parents[1]
SUFFIX = str(sysconfig.get_config_var("EXT_SUFFIX"))


@pytest.fixture(scope="module")
def wheel() -> Path:
    (found,) = (ROOT / "build" / "compiled-wheel").glob("*.whl")
    return found


@promise("front:release")
def test_the_compiled_wheel_has_source_and_machine_code(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    sources = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src/dragoman").rglob("*.py")}
    machine_code = {module.replace(".py", SUFFIX) for module in (*compiled_modules(ROOT / "src"), MODULE)}
    folder = f"dragoman-{dragoman.__version__}.dist-info"
    assert {*sources, *machine_code, "dragoman/py.typed", f"{folder}/licenses/LICENSE"} - names == set()
    *_, tags = parse_wheel_filename(wheel.name)
    assert tags <= set(sys_tags())
    assert not {tag.interpreter for tag in tags} & {"py3"}


@promise("front:release")
def test_the_compiled_wheel_contains_no_paths_of_this_machine(wheel: Path) -> None:
    """They would differ from build to build, and the loader would look for libraries there."""
    paths = [str(path).encode() for path in (ROOT, Path(sys.base_prefix), Path(sys.prefix)) if len(path.parts) > 2]
    with zipfile.ZipFile(wheel) as archive:
        found = {
            name: path
            for name in archive.namelist()
            if name.endswith(SUFFIX)
            for path in paths
            if re.search(re.escape(path), archive.read(name))
        }
    assert found == {}


@promise("front:release")
def test_pip_chooses_the_compiled_wheel_and_it_converts(wheel: Path, tmp_path: Path) -> None:
    """The pure wheel lies beside it; the environment has msgspec and nothing else."""
    shelf = tmp_path / "shelf"
    # Without the compiled package that this process has on its path.
    clean = {name: value for name, value in os.environ.items() if name not in {"DRAGOMAN_COMPILE", "PYTHONPATH"}}
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(shelf)]
    subprocess.run(build, cwd=ROOT, env=clean, check=True, capture_output=True)  # noqa: S603 - our own project
    (shelf / wheel.name).symlink_to(wheel)
    packages = empty_environment(tmp_path / "env")
    (packages / "msgspec").symlink_to(Path(msgspec.__file__).parent)
    programs = tmp_path / "env" / "bin"
    pip = [sys.executable, "-m", "pip", "--python", str(programs / "python"), "install", "--no-index", "--no-deps"]
    subprocess.run([*pip, "--find-links", str(shelf), "dragoman"], env=clean, check=True, capture_output=True)  # noqa: S603
    commands: tuple[tuple[list[Path | str], str], ...] = (
        ([programs / "dragoman", "--version"], f"dragoman {dragoman.__version__} (compiled)\n"),
        ([programs / "dragoman", "doctor", "--offline"], "core: compiled (to run the source: "),
        ([programs / "python", "-I", ROOT / "tests" / "extras" / "core.py"], ""),
    )
    for command, expected in commands:
        ran = subprocess.run(command, env=clean, capture_output=True, text=True, check=False, timeout=60)  # noqa: S603
        assert (ran.returncode, expected in ran.stdout) == (0, True), ran.stdout[-1000:] + ran.stderr[-2000:]
