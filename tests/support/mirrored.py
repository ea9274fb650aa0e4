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

    A file that not every folder has is a difference as a whole, named "*".
    """
    names: dict[str, dict[str, set[str]]] = defaultdict(dict)
    for folder in FOLDERS:
        for path in sorted((CODECS / folder).glob("*.py")):
            if path.name not in VENDOR_NAMED:
                names[path.name][folder] = _public(path)
    found = {}
    for file, by_folder in names.items():
        if len(by_folder) < len(FOLDERS):
            found.update({f"{folder}/{file}": ["*"] for folder in by_folder})
            continue
        common = set.intersection(*by_folder.values())
        found.update({f"{folder}/{file}": sorted(own - common) for folder, own in by_folder.items() if own - common})
    return dict(sorted(found.items()))


def _public(path: Path) -> set[str]:
    return {
        node.name
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
    }
