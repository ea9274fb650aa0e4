"""The built page belongs to its sources."""

import hashlib
import subprocess
import sys
import tarfile
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.promises import promise

ROOT = Path(__file__).parents[2]
SOURCES = ("src", "public", "index.html", "package.json", "package-lock.json", "vite.config.ts")


def digest(folder: Path) -> str:
    """As web/digest.ts counts."""
    given = [folder / name for name in SOURCES]
    files = [file for path in given for file in (path.rglob("*") if path.is_dir() else (path,)) if file.is_file()]
    names = sorted(file.relative_to(folder).as_posix() for file in files)
    lines = [f"{name}\n{hashlib.sha256((folder / name).read_bytes()).hexdigest()}\n" for name in names]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


@promise("web:built")
def test_the_page_that_ships_was_built_from_the_sources_here() -> None:
    built = (ROOT / "src/dragoman/web/static/digest.txt").read_text(encoding="utf-8").strip()
    assert built == digest(ROOT / "web"), "the page in src/dragoman/web/static is not of web/: run `make web`"


@promise("web:built")
def test_the_lock_names_no_registry() -> None:
    text = (ROOT / "web/package-lock.json").read_text(encoding="utf-8")
    assert '"resolved"' not in text


@promise("web:built")
@pytest.mark.skipif(find_spec("hatchling") is None, reason="hatchling is not installed: packages were not built")
def test_the_wheel_ships_the_built_page_and_the_sources_ship_without_their_tools(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)  # noqa: S603
    (wheel,), (source,) = tmp_path.glob("*.whl"), tmp_path.glob("*.tar.gz")
    shipped = set(zipfile.ZipFile(wheel).namelist())
    static = {f"dragoman/web/static/{file.name}" for file in (ROOT / "src/dragoman/web/static").iterdir()}
    assert static <= shipped
    assert not any(name.startswith("web/") for name in shipped)
    with tarfile.open(source) as archive:
        names = archive.getnames()
    assert any(name.endswith("/web/src/main.ts") for name in names)
    assert not any("node_modules" in name or "/web/build/" in name for name in names)
