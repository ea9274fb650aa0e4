"""Public names of the codec folders, file by file, and those that not every folder has."""

import ast
from collections import defaultdict
from pathlib import Path

CODECS = Path(__file__).resolve().parents[2] / "src" / "dragoman" / "codecs"
FOLDERS = tuple(sorted(path.parent.name for path in CODECS.glob("*/request.py")))
VENDOR_NAMED = frozenset({"wire.py", "stream_wire.py", "__init__.py"})
"""Files whose classes are named after the vendor's objects and therefore differ."""


def differences() -> dict[str, list[str]]:
    """`folder/file` -> functions and classes, public there, that the same file of another folder does not have.

    A function may also be a value there (`decode_tools = ToolReader(...).read`). A file that not every folder has is a
    difference as a whole, named "*".
    """
    names: dict[str, dict[str, set[str]]] = defaultdict(dict)
    values: dict[str, list[set[str]]] = defaultdict(list)
    for folder in FOLDERS:
        for path in sorted((CODECS / folder).glob("*.py")):
            if path.name not in VENDOR_NAMED:
                tree = ast.parse(path.read_text())
                names[path.name][folder] = _public(tree)
                values[path.name].append(_public(tree) | _assigned(tree))
    found = {}
    for file, by_folder in names.items():
        if len(by_folder) < len(FOLDERS):
            found.update({f"{folder}/{file}": ["*"] for folder in by_folder})
            continue
        common = set.intersection(*values[file])
        found.update({f"{folder}/{file}": sorted(own - common) for folder, own in by_folder.items() if own - common})
    return dict(sorted(found.items()))


def _public(tree: ast.Module) -> set[str]:
    return {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
    }


def _assigned(tree: ast.Module) -> set[str]:
    return {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
