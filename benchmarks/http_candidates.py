"""Compares HTTP libraries for a gateway: the same bare relay on each of them.

    python benchmarks/http_candidates.py [--seconds 0.6] [--rounds 5]

Every relay passes `/v1/chat/completions` on as it is and translates `/v1/messages` with the same calls of dragoman, so
the difference between two rows is HTTP alone. Only the gateway itself has limits, keys and time-outs.
The table is in Markdown; docs/decisions/0021-gateway-http.md quotes it. The libraries are in the group `bench`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # a script has only its own folder on the path

from benchmarks.load import first_byte, measure, megabytes
from benchmarks.relay_programs import AIOHTTP, ASGI, GRANIAN, HTTPTOOLS, HYPERCORN, TRANSLATION, UVICORN
from benchmarks.relays import RELAYS, Relay, chat, messages, request, started, upstream


def program(name: str, *texts: str, more: tuple[str, ...] = ()) -> Relay:
    text = "".join((TRANSLATION, *texts))
    return Relay(name, lambda up, port, _: [sys.executable, "-c", text, up, str(port), *more])


CANDIDATES: Final = (
    RELAYS[0],
    program("granian + pyreqwest", GRANIAN),
    program("granian + pyreqwest, uvloop", GRANIAN, more=("uvloop",)),
    program("uvicorn (httptools, uvloop) + aiohttp", ASGI, UVICORN),
    program("hypercorn (uvloop) + aiohttp", ASGI, HYPERCORN),
    program("aiohttp + aiohttp, uvloop", AIOHTTP),
    program("httptools, asyncio", HTTPTOOLS),
    program("httptools, uvloop", HTTPTOOLS, more=("uvloop",)),
)
CASES: Final = tuple(
    (what + (" stream" if stream else " JSON"), path, body, stream)
    for stream in (False, True)
    for what, path, body in (("same", "/v1/chat/completions", chat), ("translated", "/v1/messages", messages))
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=0.6, help="for each number and round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--concurrency", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--only", default="", help="candidates whose name contains this")
    arguments = parser.parse_args()
    best: dict[tuple[str, str, int], tuple[float, float]] = {}
    late: dict[tuple[str, str], float] = {}
    with ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory()))
        target = running.enter_context(upstream())
        chosen = [one for one in CANDIDATES if arguments.only in one.name]
        places = {one.name: running.enter_context(started(one, target, folder)) for one in chosen}
        for number in range(arguments.rounds):
            print(f"round {number + 1}", file=sys.stderr)
            for title, path, body, stream in CASES:
                sent = request(path, body(stream=stream))
                for count in arguments.concurrency:
                    for name, (port, pid) in places.items():
                        seen = measure(port, pid, sent, arguments.seconds, count, stream=stream)
                        rate, cpu = best.get((name, title, count), (0.0, 1e9))
                        best[name, title, count] = max(rate, seen.rate), min(cpu, seen.cpu)
                for name, (port, _) in places.items():
                    seen_late = first_byte(port, sent, arguments.seconds / 3)
                    late[name, title] = min(late.get((name, title), 1e9), seen_late)
        memory = {name: megabytes(pid) for name, (_, pid) in places.items()}
    show(best, late, memory, arguments.concurrency)


def show(
    best: dict[tuple[str, str, int], tuple[float, float]],
    late: dict[tuple[str, str], float],
    memory: dict[str, float],
    counts: list[int],
) -> None:
    columns = [(title, count) for title, *_ in CASES for count in counts]
    print("CPU of the process per request, µs (requests/s)\n")
    print("| | " + " | ".join(f"{title}, c={count}" for title, count in columns) + " | MB |")
    print("|---|" + "---:|" * (len(columns) + 1))
    for name, size in memory.items():
        cells = [f"{best[name, *column][1] * 1e6:,.0f} ({best[name, *column][0]:,.0f})" for column in columns]
        print(f"| {name} | " + " | ".join(cells) + f" | {size:.0f} |")
    print("\nTime of a whole answer at c=1, µs\n")
    print("| | " + " | ".join(title for title, *_ in CASES) + " |")
    print("|---|" + "---:|" * len(CASES))
    for name in memory:
        print(f"| {name} | " + " | ".join(f"{late[name, title] * 1e6:,.0f}" for title, *_ in CASES) + " |")


if __name__ == "__main__":
    main()
