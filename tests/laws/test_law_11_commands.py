"""Law 11 at the command line: the cost of a command grows linearly with the file that it reads."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from dragoman.cli import main
from dragoman.cli.main import COMMANDS
from tests.laws.test_law_11_linear_cost import EVENTS, FRAMES, ODD_BODIES, REQUESTS, body_of, stream_of
from tests.support.costs import Work, forget, growth
from tests.support.promises import promise

pytestmark = promise("law:11-linear-cost")
SMALL, LARGEST = 256, 2_048
LINE = b'{"model":"m","messages":[{"role":"user","content":"hi"}]}'


def _cases(n: int) -> bytes:
    case = {"input": "hi", "expect": {"contains": "x"}}
    return b"".join(json.dumps({**case, "id": f"c{number}"}).encode() + b"\n" for number in range(n))


FILES: dict[str, Callable[[int], bytes]] = {
    **{
        name: lambda n, name=name: body_of(REQUESTS[name](n), "openai-chat")  # type: ignore[misc]
        for name in ("messages", "calls", "tools", "losses", "repeated ids in parallel", "one long text", "images")
    },
    **{name: lambda n, spoil=spoil: spoil(LINE, n) for name, spoil in ODD_BODIES.items()},  # type: ignore[misc]
    "lines": lambda n: (LINE + b"\n") * n,
    "lines that are not JSON": lambda n: LINE + b"\n" + b"{\n" * n,
    "blank lines": lambda n: LINE + b"\n" * 20 * n + LINE,
    "an array": lambda n: b"[" + (LINE + b",") * n + LINE + b"]",
    "an array without end": lambda n: b"[" + (LINE + b",") * n,
    "one long line": lambda n: b"x" * 60 * n,
}
STREAMS: dict[str, Callable[[int], bytes]] = {
    **{name: lambda n, name=name: stream_of("openai-chat", name, n) for name in EVENTS},  # type: ignore[misc]
    **FRAMES,
}
READS: dict[str, tuple[tuple[str, ...], dict[str, Callable[[int], bytes]]]] = {
    "convert": (("convert", "IN", "--to", "anthropic-messages", "-o", "OUT"), FILES),
    "convert --stream": (("convert", "IN", "--stream", "--to", "gemini", "-o", "OUT"), STREAMS),
    "inspect": (("inspect", "IN", "--full"), FILES),
    "inspect --stream": (("inspect", "IN", "--stream", "--full"), STREAMS),
    "batch": (("batch", "convert", "IN", "--to", "gemini", "-o", "OUT", "--workers", "1"), FILES),
    "eval": (("eval", "IN", "-m", "nothing/nothing"), {"cases": _cases, "one long line": FILES["one long line"]}),
}
"""Commands that read files which someone else may have written: their arguments, and dimensions of the file."""
WITHOUT_FILE = {
    "formats": "reads nothing",
    "schema": "reads nothing",
    "fidelity": "reads nothing but recordings of the project",
    "ask": "sends a prompt of its user; answers are read by drivers, whose decoders have rows",
    "run": "as ask",
    "chat": "as ask; its page has rows in test_law_11_endpoints.py",
    "serve": "has rows in test_law_11_endpoints.py",
    "keys": "reads the operator's database",
    "usage": "reads the operator's database",
    "models": "reads the lists of providers, whose decoder has rows",
    "doctor": "reads the user's configuration",
    "sim": "serves on the same HTTP server as the gateway, for development",
    "demo": "reads nothing",
    "tour": "reads nothing",
}


def all_cpu_seconds(work: Work) -> float:
    """CPU time of all threads."""
    forget()
    started = time.process_time()
    work()
    return time.process_time() - started


def rows(name: str, folder: Path) -> Iterator[tuple[str, Callable[[int], Work]]]:
    arguments, dimensions = READS[name]
    for number, (dimension, content) in enumerate(dimensions.items()):

        def prepare(n: int, number: int = number, content: Callable[[int], bytes] = content) -> Work:
            kind = "txt" if "--stream" in arguments else "jsonl" if name in {"batch", "eval"} else "json"
            file = folder / f"{name.replace(' ', '')}-{number}-{n}.{kind}"
            file.write_bytes(content(n))
            turn = iter(range(10_000))

            def work() -> int:
                places = {"IN": str(file), "OUT": str(file.with_name(f"{file.stem}-out-{next(turn)}.jsonl"))}
                quiet = TextIOWrapper(BytesIO())
                with redirect_stdout(quiet), redirect_stderr(quiet):
                    return main([places.get(one, one) for one in arguments])

            return work

        yield dimension, prepare


@pytest.mark.parametrize("name", READS)
def test_cost_grows_linearly(name: str, tmp_path: Path) -> None:
    steep = []
    for dimension, prepare in rows(name, tmp_path):
        found = growth(prepare, SMALL, LARGEST, measure=all_cpu_seconds)
        if found.is_steep:
            steep.append(f"{name}, {dimension}: {found}")
    assert steep == []


@pytest.mark.parametrize("name", [name for name in READS if name != "eval"])  # that one needs a provider
def test_the_commands_read_what_they_are_given(name: str, tmp_path: Path) -> None:
    dimension, prepare = next(rows(name, tmp_path))
    assert prepare(8)() == 0, dimension


def test_every_command_has_its_rows() -> None:
    assert {name.partition(" ")[0] for name in READS} | set(WITHOUT_FILE) == set(COMMANDS)
