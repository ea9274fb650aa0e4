"""The compiled wheel: what may be compiled, and (DRAGOMAN_COMPILED=1, `make check-compiled`) that it is what runs."""

import ast
import ctypes
import importlib
import inspect
import os
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest

from compiling.core import REQUIREMENTS
from compiling.generated import generated_module
from compiling.modules import compiled_modules
from dragoman import translate
from dragoman.codecs.openai_chat.request import SETTINGS
from dragoman.ir import Request

ROOT = Path(__file__).resolve().parent.parent
MODULES = compiled_modules(ROOT / "src")


def _text(module: str) -> str:
    return (ROOT / "src" / module).read_text(encoding="utf-8")


def test_compiled_modules_define_no_structs() -> None:
    """Msgspec reads the annotations of a struct when its class is made, and mypyc removes them."""
    structs = [
        f"{module}: {node.name}"
        for module in MODULES
        for node in ast.parse(_text(module)).body
        if isinstance(node, ast.ClassDef) and {ast.unparse(base) for base in node.bases} & {"Struct", "Wire"}
    ]
    assert structs == []


def _type_only(tree: ast.Module) -> set[str]:
    """The names that a module imports for the type checker alone."""
    blocks = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    imports = [node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom | ast.Import)]
    return {(name.asname or name.name).partition(".")[0] for node in imports for name in node.names}


def test_compiled_modules_import_what_their_annotations_name() -> None:
    """Mypyc evaluates annotations in the body of a module or class; Python does not."""
    found = []
    for module in MODULES:
        tree = ast.parse(_text(module))
        bodies = [tree.body, *(node.body for node in ast.walk(tree) if isinstance(node, ast.ClassDef))]
        annotations = [node.annotation for body in bodies for node in body if isinstance(node, ast.AnnAssign)]
        names = {node.id for one in annotations for node in ast.walk(one) if isinstance(node, ast.Name)}
        found += [f"{module}: {name}" for name in sorted(names & _type_only(tree))]
    assert found == []


def _aliases() -> dict[str, ast.expr]:
    """The values of all type aliases, by name."""
    found = {}
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias" and node.value:
                quoted = isinstance(node.value, ast.Constant)
                value = ast.parse(ast.literal_eval(node.value), mode="eval").body if quoted else node.value
                found[ast.unparse(node.target)] = value
    return found


def _members(annotation: ast.expr, aliases: dict[str, ast.expr]) -> int:
    """The number of members of a union; 1 for any other type."""
    if isinstance(annotation, ast.BinOp):
        return _members(annotation.left, aliases) + _members(annotation.right, aliases)
    alias = aliases.get(ast.unparse(annotation))
    return 1 if alias is None else _members(alias, aliases)


def test_compiled_classes_have_no_default_that_mypyc_omits() -> None:
    """Such a default is None for a class attribute whose type is a union of more than two: it would be undefined."""
    aliases, found = _aliases(), []
    for module in MODULES:
        tree = ast.parse(_text(module))
        own = {ast.unparse(node.targets[0]): node.value for node in tree.body if isinstance(node, ast.Assign)}
        classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
        for node in [one for made in classes for one in made.body if isinstance(one, ast.AnnAssign)]:
            is_none = isinstance(node.value, ast.Constant) and node.value.value is None
            if is_none and _members(node.annotation, {**aliases, **own}) > 2:
                found.append(f"{module}: {ast.unparse(node)}")
    assert found == []


_WAITING = (ast.Await, ast.Yield, ast.YieldFrom, ast.AsyncFor, ast.AsyncWith)


def _waits_while_handling(tree: ast.AST) -> Iterator[int]:
    """The lines where a coroutine waits while an exception is handled."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Try):
            blocks = [*node.finalbody, *(line for handler in node.handlers for line in handler.body)]
            yield from (inner.lineno for block in blocks for inner in ast.walk(block) if isinstance(inner, _WAITING))
        elif isinstance(node, ast.AsyncWith):  # its exit is awaited; the exit of a time limit never waits
            managers = [ast.unparse(item.context_expr) for item in node.items]
            if not all(manager.startswith("asyncio.timeout") for manager in managers):
                yield node.lineno


def test_compiled_coroutines_do_not_wait_while_they_handle_an_exception() -> None:
    """Compiled coroutines have no exception state of their own, so other tasks would see the exception.

    A compiled `finally` that awaits even raises the exception it finds there, which may be that of another task.
    """
    found = [f"{module}:{line}" for module in MODULES for line in _waits_while_handling(ast.parse(_text(module)))]
    assert found == []


def test_a_coroutine_that_waits_while_it_handles_an_exception_is_found() -> None:
    for text in (
        "try:\n    pass\nfinally:\n    await note()",
        "try:\n    pass\nexcept OSError:\n    if late:\n        await note()",
        "async with lock:\n    pass",
    ):
        body = "".join(f"    {line}\n" for line in text.splitlines())
        assert list(_waits_while_handling(ast.parse(f"async def run():\n{body}")))


def test_each_codec_has_compiled_modules() -> None:
    folders = {path.parent.name for path in (ROOT / "src/dragoman/codecs").glob("*/wire.py")}
    for name in ("messages.py", "request.py", "response.py", "stream.py", "stream_encoding.py"):
        assert {Path(module).parent.name for module in MODULES if Path(module).name == name} >= folders


def test_the_build_generates_what_the_tables_would_execute() -> None:
    """Each function is found by the source that its table gives, and takes the same arguments."""
    names: dict[str, Any] = {}
    exec(generated_module(ROOT / "src"), names)  # noqa: S102 - our own text
    makers = names["MAKERS"]
    sources = {SETTINGS._read_source(), SETTINGS._write_source(), SETTINGS._add_keys_source()}  # noqa: SLF001
    assert sources <= makers.keys()
    assert len(makers) > 50
    for source, make in makers.items():
        executed: dict[str, Any] = {}
        exec(source, executed)  # noqa: S102 - our own text
        expected, made = executed["generated"], make(defaultdict(object))
        assert inspect.getfullargspec(made).args == inspect.getfullargspec(expected).args
        assert set(made.__code__.co_names) | set(made.__code__.co_freevars) == set(expected.__code__.co_names)


def test_the_build_uses_the_locked_compiler() -> None:
    locked = re.findall(r"^(mypy==[\d.]+)", (ROOT / "requirements.lock").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(locked) <= set(REQUIREMENTS)
    assert locked


def test_the_core_is_compiled_only_when_that_was_asked_for() -> None:
    """Compiled under `make check-compiled`, otherwise source: no compiled module shadows an edited one."""
    wanted = os.environ.get("DRAGOMAN_COMPILED") == "1"
    files = {
        module: importlib.import_module(module.removesuffix(".py").replace("/", ".")).__file__ for module in MODULES
    }
    compiled = {module for module, file in files.items() if str(file).endswith(tuple(EXTENSION_SUFFIXES))}
    assert compiled == (set(MODULES) if wanted else set())
    functions = (SETTINGS.read, SETTINGS.write, SETTINGS.add_keys)
    assert [isinstance(function, FunctionType) for function in functions] == [not wanted] * 3


def _change_by_a_function(module: ModuleType) -> None:
    exec("def change():\n    global name\n    name = object()\nchange()", module.__dict__)  # noqa: S102 - our own text


def _merge_in_place(module: ModuleType) -> None:
    names = module.__dict__
    names |= {"name": object()}


_CHANGES: tuple[Callable[[ModuleType], object], ...] = (
    lambda module: setattr(module, "name", object()),
    lambda module: delattr(module, "name"),
    lambda module: module.__dict__.__setitem__("name", object()),
    lambda module: module.__dict__.pop("name"),
    lambda module: module.__dict__.popitem(),
    lambda module: module.__dict__.update(name=object()),
    lambda module: module.__dict__.setdefault("other", object()),
    lambda module: module.__dict__.clear(),
    lambda module: module.__dict__.__init__(name=object()),  # type: ignore[misc]
    _merge_in_place,
    _change_by_a_function,
)


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="dictionaries have no versions, and names are looked up")
def test_every_change_of_a_module_gives_its_dictionary_another_version() -> None:
    """The condition under which compiled code reads a name from its cache (compiling/inline_caches.h)."""
    seen = set()
    for change in _CHANGES:
        module = ModuleType("tried")
        module.__dict__["name"] = object()
        # PyDictObject: reference count, type, number of items, version.
        version = ctypes.c_uint64.from_address(id(module.__dict__) + 3 * ctypes.sizeof(ctypes.c_void_p))
        before = version.value
        change(module)
        assert version.value != before
        seen |= {before, version.value}
    assert len(seen) == 2 * len(_CHANGES), "no dictionary has the version of another one"


def test_a_name_that_is_replaced_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
    asked: list[str] = []

    def codec(name: str) -> Any:
        asked.append(name)
        return real(name)

    real = translate.codec  # type: ignore[attr-defined]
    for _ in range(3):
        first = translate.decode_request(body, "openai-chat")
        with monkeypatch.context() as replaced:
            replaced.setattr(translate, "codec", codec)
            assert translate.decode_request(body, "openai-chat") == first
        translate.decode_request(body, "openai-chat")
    assert asked == ["openai-chat"] * 3


def test_a_field_that_is_replaced_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The condition for cached attributes: a class that changed has another version."""
    request = translate.decode_request({"model": "m", "messages": [{"role": "user", "content": "Hi"}]}, "openai-chat")
    for _ in range(3):
        assert translate.encode_request(request, "anthropic-messages").body["model"] == "m"
        with monkeypatch.context() as replaced:
            replaced.setattr(Request, "model", property(lambda _: "another"))
            assert translate.encode_request(request, "anthropic-messages").body["model"] == "another"
