"""Files of made-up conversations, and what a plain loop makes of them."""

import importlib.util
from functools import cache
from pathlib import Path
from types import ModuleType

from dragoman.detection import detect
from dragoman.errors import DragomanError
from dragoman.translate import translate_request

ROOT = Path(__file__).parents[2]


@cache
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_conversations", ROOT / "scripts" / "make_conversations.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def lines(count: int, source: str = "openai-chat", bad: int = 0) -> tuple[bytes, ...]:
    return tuple(generator().lines(count, source, bad))


def written(folder: Path, count: int, source: str = "openai-chat", bad: int = 0, name: str = "in.jsonl") -> Path:
    path = folder / name
    path.write_bytes(b"".join(line + b"\n" for line in lines(count, source, bad)))
    return path


def one_by_one(records: tuple[bytes, ...], target: str) -> bytes:
    """The output as the library alone gives it, record by record, without those it refuses."""
    converted = []
    for record in records:
        try:
            found = detect(record)
            if found is not None:
                converted.append(translate_request(record, source=found.format, target=target).json() + b"\n")
        except DragomanError:
            continue
    return b"".join(converted)
