"""Imports go in one direction, every codec folder has the same modules, and nothing is loaded that is not needed."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

import dragoman
from dragoman.codecs.registry import codec

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "dragoman"

# ── imports ───────────────────────────────────────────────────────────────────────────────────────────────────

# Nothing here may be loaded by the core: it is sans-IO, and importing it must stay cheap.
FORBIDDEN = (
    "asyncio", "ssl", "socket", "http", "urllib.request", "httpx", "requests", "aiohttp", "logging", "threading",
    "multiprocessing", "concurrent", "subprocess", "email", "unittest", "random", "secrets", "pydantic", "openai",
    "anthropic", "google",
)  # fmt: skip
CORE = (
    "dragoman",
    "dragoman.ir",
    "dragoman.errors",
    "dragoman.loss",
    "dragoman.losses",
    "dragoman.codecs.registry",
    "dragoman.passes.legalise",
    "dragoman.passes.answers",
    "dragoman.translate",
    "dragoman.detection",
    "dragoman.single_values",
)


@cache
def loaded_by(statements: str) -> set[str]:
    """Top-level names of the modules that a fresh interpreter has loaded after the statements, without its own."""
    script = f"import sys; before = set(sys.modules)\n{statements}\nprint(*(set(sys.modules) - before))"
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    ran = subprocess.run(  # noqa: S603
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    return set(ran.stdout.split())


def forbidden_in(modules: set[str]) -> set[str]:
    return {module for module in modules for name in FORBIDDEN if module == name or module.startswith(name + ".")}


@pytest.mark.parametrize("module", CORE)
def test_the_core_loads_no_network_no_clock_and_no_random_numbers(module: str) -> None:
    assert forbidden_in(loaded_by(f"import {module}")) - forbidden_in(loaded_by("import msgspec")) == set()


def test_conversions_load_no_network_no_clock_and_no_random_numbers() -> None:
    work = """
import dragoman
for source in dragoman.formats():
    for target in dragoman.formats():
        request = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]} if source in ("gemini", "vertex") else {
            "model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]}
        if source == "bedrock-converse":
            request = {"messages": [{"role": "user", "content": [{"text": "hi"}]}]}
        if source == "openai-responses":
            request = {"model": "m", "input": [{"role": "user", "content": "hi"}]}
        if source == "gemini-interactions":
            request = {"model": "m", "input": "hi"}
        dragoman.translate_request(request, source=source, target=target)
"""
    assert forbidden_in(loaded_by(work)) - forbidden_in(loaded_by("import msgspec")) == set()


def test_importing_the_package_loads_next_to_nothing() -> None:
    own = {module for module in loaded_by("import dragoman") if module.startswith("dragoman")}
    assert own == {"dragoman"}


# ── layers ────────────────────────────────────────────────────────────────────────────────────────────────────

# A layer may import itself and the layers in its row. A module belongs to the layer with the longest matching prefix.
LAYERS: dict[str, frozenset[str]] = {
    "errors": frozenset(),
    "ir": frozenset({"errors"}),
    "loss": frozenset(),
    "losses": frozenset({"errors", "ir", "loss"}),
    "profile": frozenset({"errors", "ir"}),
    "schema": frozenset({"errors", "ir"}),
    "catalogue": frozenset({"errors", "ir"}),
    "embeddings": frozenset({"errors", "ir", "loss", "losses"}),
    "codecs": frozenset({"errors", "ir", "loss", "losses", "profile", "schema", "catalogue"}),
    "passes": frozenset({"errors", "ir", "loss", "losses", "profile", "schema"}),
    "translate": frozenset({"errors", "ir", "loss", "losses", "profile", "codecs", "passes"}),
    "single_values": frozenset({"errors", "ir", "loss", "losses", "profile", "codecs", "passes", "translate"}),
    "detection": frozenset({"errors", "ir", "loss", "losses", "codecs", "translate"}),
    "sim": frozenset(),
    "installation": frozenset(),
    "terminal": frozenset(),
    "private_files": frozenset(),
    "file_locks": frozenset(),
    "event_reader": frozenset({"ir", "errors", "codecs"}),
    "event_writer": frozenset({"ir", "losses", "codecs", "passes", "event_reader"}),
    "multipart": frozenset(),
}
# Packages above the layers, which may import all of them.
ABOVE = (
    "cli",
    "__init__",
    "__main__",
    "streams",
    "gateway",
    "drivers",
    "local",
    "agent",
    "chat",
    "web",
    "inspection",
    "batch",
    "records",
    "testing",
    "fidelity",
)


# What layers import for type checkers alone, against the direction: exceptions carry values, which values must raise.
FOR_TYPES: dict[str, frozenset[str]] = {"errors": frozenset({"ir", "loss"})}


@cache
def imports_of(path: Path, *, for_types: bool = False) -> tuple[str, ...]:
    """Modules of ours that this file imports, without `dragoman.`, and without imports for type checkers alone.

    With those too if `for_types`. Cached: several tests need this of every file, and parsing them all takes seconds.
    """
    found: list[str] = []
    open_nodes: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while open_nodes:
        node = open_nodes.pop()
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("dragoman"):
            parent = node.module.removeprefix("dragoman").removeprefix(".")
            found += (_module_of(parent, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            found += (
                alias.name.removeprefix("dragoman.") for alias in node.names if alias.name.startswith("dragoman.")
            )
        elif isinstance(node, ast.stmt | ast.mod | ast.excepthandler | ast.match_case) and (
            for_types or not _is_type_checking(node)
        ):
            open_nodes += ast.iter_child_nodes(node)
    return tuple(found)


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _module_of(parent: str, name: str) -> str:
    folder = PACKAGE.joinpath(*parent.split(".")) if parent else PACKAGE
    is_module = (folder / f"{name}.py").exists() or (folder / name).is_dir()
    return f"{parent}.{name}".removeprefix(".") if is_module else parent


def layer_of(module: str) -> str | None:
    found = [name for name in LAYERS if module == name or module.startswith(name + ".")]
    return max(found, key=len, default=None)


def files() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py"))


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


@pytest.mark.parametrize("for_types", [False, True])
def test_imports_go_in_one_direction(*, for_types: bool) -> None:
    wrong = []
    for path in files():
        module = name_of(path)
        layer = layer_of(module)
        if layer is None:
            assert module.split(".")[0] in ABOVE, f"{module} belongs to no layer"
            continue
        allowed = LAYERS[layer] | (FOR_TYPES.get(layer, frozenset()) if for_types else frozenset())
        for imported in imports_of(path, for_types=for_types):
            inside = imported == layer or imported.startswith(layer + ".")
            below = any(imported == name or imported.startswith(name + ".") for name in allowed)
            if not inside and not below:
                wrong.append(f"{module} imports {imported}")
    assert wrong == []


# Packages above the layers -> the only packages that may import them. Nothing imports the command line.
IMPORTERS: dict[str, frozenset[str]] = {
    "cli": frozenset({"cli", "__main__"}),
    "chat": frozenset({"chat", "web", "cli", "gateway"}),
}


@pytest.mark.parametrize("package", IMPORTERS)
def test_a_package_above_the_layers_is_imported_by_few_others(package: str) -> None:
    wrong = [
        f"{name_of(path)} imports {imported}"
        for path in files()
        for imported in imports_of(path)
        if imported.split(".")[0] == package and name_of(path).split(".")[0] not in IMPORTERS[package]
    ]
    assert wrong == []


def test_no_module_below_the_command_line_imports_the_page() -> None:
    wrong = [
        f"{name_of(path)} imports {imported}"
        for path in files()
        if name_of(path).split(".")[0] not in {"cli", "web"}
        for imported in imports_of(path)
        if imported.split(".")[0] == "web"
    ]
    assert wrong == []


def test_codecs_do_not_import_each_other() -> None:
    folders = {path.name for path in (PACKAGE / "codecs").iterdir() if path.is_dir() and path.name != "__pycache__"}
    wrong = []
    for folder in folders:
        if folder == "datasets":  # stored conversations hold bodies of APIs, which their own codecs read
            continue
        for path in (PACKAGE / "codecs" / folder).glob("*.py"):
            others = {f"codecs.{other}" for other in folders - {folder}}
            wrong += [
                f"{name_of(path)} imports {imported}"
                for imported in imports_of(path)
                if any(imported == other or imported.startswith(f"{other}.") for other in others)
            ]
    assert wrong == []


def test_the_simulators_import_only_each_other() -> None:
    """A codec and the rules that judge it must not share a misunderstanding."""
    for path in (PACKAGE / "sim").rglob("*.py"):
        assert all(imported.startswith("sim") for imported in imports_of(path)), path


# The only modules of the layers that need a package of an extra.
WITH_EXTRAS = {"sim.server": {"aiohttp"}, "sim.pytest_plugin": {"pytest"}}


def test_the_core_imports_the_standard_library_and_msgspec_only() -> None:
    everywhere = set(sys.stdlib_module_names) | {"msgspec", "dragoman"}
    for path in files():
        if layer_of(name_of(path)) is None:
            continue
        allowed = everywhere | WITH_EXTRAS.get(name_of(path), set())
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert {str(name).split(".")[0] for name in names} <= allowed, path


# ── modules of a codec ────────────────────────────────────────────────────────────────────────────────────────

# Every codec folder has these files, with at least these public names.
MODULES_OF_A_CODEC: dict[str, frozenset[str]] = {
    "wire": frozenset(),
    "foreign_signatures": frozenset(),
    "hosted_tools": frozenset({"HostedTools", "HOSTED"}),
    "parts": frozenset(),
    "messages": frozenset({"MessageDecoder", "MessageEncoder"}),
    "thinking": frozenset({"decode_reasoning"}),
    "json_paths": frozenset({"request_paths", "response_paths"}),
    "stream_wire": frozenset(),
    "stream": frozenset({"PayloadDecoder"}),
    "stream_encoding": frozenset({"EventEncoder"}),
    "tools": frozenset(
        {
            "decode_tools",
            "encode_tools",
            "decode_tool_choice",
            "encode_tool_choice",
            "decode_output",
            "encode_output",
        }
    ),
    "request": frozenset({"decode_request", "encode_request"}),
    "response": frozenset(
        {
            "decode_response",
            "encode_response",
            "decode_finish",
            "encode_finish",
            "decode_usage",
            "encode_usage",
        }
    ),
    "errors": frozenset({"decode_error", "encode_error"}),
    "profile": frozenset({"PROFILE", "LAYOUT"}),
}


def public_names(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
    return {name for name in names if not name.startswith("_")}


FOLDERS = sorted(path.parent.name for path in (PACKAGE / "codecs").glob("*/request.py"))


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_codec_has_the_same_modules(folder: str) -> None:
    for module, names in MODULES_OF_A_CODEC.items():
        path = PACKAGE / "codecs" / folder / f"{module}.py"
        assert path.is_file(), path
        assert names <= public_names(path), path


def test_every_format_has_a_codec() -> None:
    for name in dragoman.formats():
        assert codec(name).name == name
        assert codec(name).profile.name == name


# ── public names ──────────────────────────────────────────────────────────────────────────────────────────────


def test_every_public_name_can_be_read() -> None:
    for name in dragoman.__all__:
        assert getattr(dragoman, name) is not None
    assert set(dragoman.__all__) <= set(dir(dragoman))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        dragoman.nonsense  # noqa: B018


def test_no_name_of_a_provider_decides_anything_outside_its_codec() -> None:
    """A difference such as `if name == "anthropic"` belongs in a profile."""
    words = {"openai", "anthropic", "google", "gemini", "vertex", "ollama", "cohere", *dragoman.formats()}
    wrong = []
    for path in files():
        module = name_of(path)
        if module.startswith(("codecs.", "sim", "cli", "detection")) and not module.startswith("codecs.registry"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Compare):
                continue
            constants = {inner.value for inner in ast.walk(node) if isinstance(inner, ast.Constant)}
            if constants & words:
                wrong.append(f"{module}:{node.lineno}")
    assert wrong == []


# ── the lock ──────────────────────────────────────────────────────────────────────────────────────────────────

HASHED = re.compile(r"^[\w.-]+==[\w.!+-]+((?: \\\n    --hash=sha256:[0-9a-f]{64})+)$", re.MULTILINE)
PINNED = re.compile(r"^([\w.-]+==[\w.!+-]+)", re.MULTILINE)


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-run.lock", "requirements-model.lock"])
def test_every_pin_has_hashes(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    bare = [pin for pin in PINNED.findall(text) if not re.search(re.escape(pin) + r" \\\n    --hash=", text)]
    assert not bare, f"python scripts/refresh_lock.py --hashes  # for {bare}"
    assert len(HASHED.findall(text)) == len(PINNED.findall(text))
    assert "://" not in text, "a lock does not say where packages come from"


def test_what_make_run_needs_is_a_part_of_the_lock() -> None:
    whole = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    part = (ROOT / "requirements-run.lock").read_text(encoding="utf-8")
    pins = PINNED.findall(part)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    own = project["project"]
    wanted = [*project["build-system"]["requires"], *own["dependencies"], *own["optional-dependencies"]["gateway"]]
    assert {re.split(r"[<>=;\[ ]", one)[0] for one in wanted} <= {pin.partition("==")[0] for pin in pins}
    assert set(pins) <= set(PINNED.findall(whole)), "python scripts/refresh_lock.py --hashes"


# ── contents of a folder ──────────────────────────────────────────────────────────────────────────────────────

PACKAGES = sorted(path.parent for path in PACKAGE.rglob("__init__.py"))


@pytest.mark.parametrize("folder", PACKAGES, ids=lambda folder: str(folder.relative_to(ROOT)))
def test_every_folder_describes_its_modules(folder: Path) -> None:
    docstring = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8")))
    assert docstring
    rows = [line.partition(":")[0] for line in docstring.splitlines() if line.startswith("- ")]
    named = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert [name for name in named if not ((folder / name).is_dir() or (folder / f"{name}.py").is_file())] == []
