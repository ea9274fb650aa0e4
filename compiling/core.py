"""Compiles the modules of `modules.py` to extension modules with mypyc and a C compiler."""

import hashlib
import os
import shutil
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from compiling.generated import MODULE, generated_module
from compiling.modules import compiled_modules

REQUIREMENTS: Final = ("mypy==2.4.1", "setuptools>=65.5", "msgspec>=0.19", "httptools>=0.7")
"""Build requirements besides hatchling. mypyc is part of mypy, in the version of requirements.lock. Compiled modules
import msgspec and httptools: mypyc reads their types, and the build imports the modules to run their tables."""

_HEADERS: Final = sorted(Path(__file__).parent.glob("*.h"))  # for the C that mypyc writes
_GROUP: Final = "dragoman_core"
_OPTIMISATION: Final = "s"  # code is resident once it has run: 1 makes a third more of it, and none of them is faster
_HIDDEN: Final = "-fvisibility=hidden"  # modules find each other's functions through tables, not by exported names


def missing_tool() -> str | None:
    """A missing build tool, or None."""
    compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]
    if shutil.which(compiler) is None:
        return f"C compiler ({compiler})"
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        return "C headers of this Python"
    return None


def compile_core(source: Path, work: Path) -> dict[Path, str]:
    """Compiles the core below `source` into `work`: extension module -> its place in the wheel.

    pip builds a wheel twice, the first time for its metadata: unchanged sources are not compiled again.
    """
    digest, done = _digest(source), work / "digest"
    if not done.exists() or done.read_text() != digest:
        _compile(source, work)
        done.write_text(digest)
    built = sorted((work / "lib").rglob(f"*{sysconfig.get_config_var('EXT_SUFFIX')}"))
    return {path: path.relative_to(work / "lib").as_posix() for path in built}


def _digest(source: Path) -> str:
    """Digest of everything that the result depends on: all modules, because native classes depend on each other."""
    digest = hashlib.sha256(sys.version.encode())
    for path in (*sorted(source.rglob("*.py")), *sorted(Path(__file__).parent.glob("*.[ph]*"))):
        if path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _compile(source: Path, work: Path) -> None:
    import setuptools  # type: ignore[import-untyped]  # noqa: F401, PLC0415 - mypyc looks whether it is there
    from mypyc.build import mypycify  # noqa: PLC0415 - only a build has it
    from setuptools.dist import Distribution  # type: ignore[import-untyped]  # noqa: PLC0415

    shutil.rmtree(work, ignore_errors=True)
    copied = work / "src"  # a copy, to which the generated module is added
    shutil.copytree(source / "dragoman", copied / "dragoman", ignore=shutil.ignore_patterns("__pycache__"))
    (copied / MODULE).write_text(generated_module(copied), encoding="utf-8")
    modules = [*compiled_modules(copied), MODULE]
    before = Path.cwd()
    os.chdir(copied)  # mypy names modules by their paths
    try:
        extensions = mypycify(
            ["--config-file", str(_mypy_settings(work)), *modules],
            only_compile_paths=modules,
            opt_level=_OPTIMISATION,
            debug_level="0",
            multi_file=True,
            target_dir=str(work / "c"),
            group_name=_GROUP,
        )
        command = _parallel_build()(Distribution({"name": _GROUP, "ext_modules": extensions}))
        command.build_lib, command.build_temp = str(work / "lib"), str(work / "objects")
        command.ensure_finalized()
        command.run()
    finally:
        os.chdir(before)


def _mypy_settings(work: Path) -> Path:
    """Settings with which mypy only reads types; `make lint` checks them."""
    path = work / "mypy.ini"
    path.write_text(
        "[mypy]\nstrict = True\nfollow_imports = silent\nwarn_unused_ignores = False\nwarn_unreachable = False\n"
        f"namespace_packages = True\nexplicit_package_bases = True\ncache_dir = {work / 'mypy'}\n"
    )
    return path


def _parallel_build() -> type[Any]:
    """`build_ext` that compiles one C file per core at a time, the generated ones with our headers."""
    from setuptools.command.build_ext import build_ext  # type: ignore[import-untyped]  # noqa: PLC0415

    class ParallelBuild(build_ext):  # type: ignore[misc]
        def build_extensions(self) -> None:
            # A Python that was built with a path to its own library writes that path into every extension, which
            # would make the wheel depend on where Python was. Extensions do not link to that library.
            linker = [word for word in self.compiler.linker_so if not word.startswith("-Wl,-rpath")]
            self.compiler.linker_so = [*linker, *(["-Wl,-s"] if self.compiler.compiler_type == "unix" else [])]
            hidden = [_HIDDEN] if self.compiler.compiler_type == "unix" else []
            one_by_one = self.compiler.compile

            def compile_one(path: str, arguments: list[str], options: dict[str, Any]) -> list[str]:
                headers = _HEADERS if Path(path).name.startswith("__native_") else ()
                included = [word for header in headers for word in ("-include", str(header))]
                objects: list[str] = one_by_one([path], extra_postargs=[*arguments, *hidden, *included], **options)
                return objects

            def compile_all(sources: list[str], **options: Any) -> list[str]:
                arguments = options.pop("extra_postargs", None) or []
                with ThreadPoolExecutor(os.cpu_count()) as pool:
                    found = pool.map(lambda path: compile_one(path, arguments, options), sources)
                    return [name for names in found for name in names]

            self.compiler.compile = compile_all
            super().build_extensions()

    return ParallelBuild
