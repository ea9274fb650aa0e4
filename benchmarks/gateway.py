"""Measures a gateway: requests per second, CPU time of its process, added latency per chunk, memory.

    python benchmarks/gateway.py [--seconds 0.6] [--rounds 8] [--peer-python PYTHON]...
    python benchmarks/gateway.py --instructions 300

Three kinds of processes: an upstream that answers with prepared bytes (in Chat format), the relay in between
(dragoman, bare relays, and other gateways where an interpreter given by --peer-python has them), and this one,
which sends the requests: a Chat or a Messages body with a tool. CPU time is that of the relay's process alone, from the
kernel's own account. All are measured alternately, several times, and the best of each counts, because noise only adds
time. With --instructions the processor's instructions for JSON requests are counted instead (valgrind): other work on
the machine does not change their number.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Final, TypeAlias

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # a script has only its own folder on the path

from benchmarks.instructions import can_count, count_instructions
from benchmarks.load import Result, delays, first_byte, json_load, measure, megabytes
from benchmarks.relays import (
    PACED,
    PIECES,
    RELAYS,
    TWO_WORKERS,
    Relay,
    chat,
    messages,
    peers,
    request,
    started,
    upstream,
)

CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"
_LIMITING: Final = 4
"""How many of the first relays have their instructions counted: dragoman, and those that its cost is compared with."""
Case: TypeAlias = tuple[str, str, Callable[..., bytes], bool]
CASES: Final[tuple[Case, ...]] = (
    ("JSON, the same bytes", CHAT, chat, False),
    ("JSON, translated", MESSAGES, messages, False),
    (f"{PIECES} chunks, the same bytes", CHAT, chat, True),
    (f"{PIECES} chunks, translated", MESSAGES, messages, True),
)


class Measured:
    """One relay, and its best results."""

    def __init__(self, relay: Relay, port: int, pid: int) -> None:
        self.relay = relay
        self.port = port
        self.pid = pid
        self.best: dict[str, Result] = {}
        self.first: dict[str, float] = {}
        self.delay: dict[str, tuple[float, float]] = {}

    def turn(self, case: Case, seconds: float, concurrency: int) -> None:
        title, path, body, stream = case
        if path != CHAT and not self.relay.translates:
            return
        sent = request(path, body(stream=stream))
        result = measure(self.port, self.pid, sent, seconds, concurrency, stream=stream)
        before = self.best.get(title, result)
        self.best[title] = Result(max(before.rate, result.rate), min(before.cpu, result.cpu))
        if stream:
            delay = delays(self.port, request(path, body(stream=True, words=PACED)), 1)
            self.delay[title] = min(self.delay.get(title, delay), delay)
        else:
            first = first_byte(self.port, sent, seconds / 4)
            self.first[title] = min(self.first.get(title, first), first)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=0.6, help="for each number and round")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--memory", type=int, default=10_000, help="requests after which memory is measured")
    parser.add_argument("--peer-python", type=Path, action="append", default=[], metavar="PYTHON")
    parser.add_argument("--instructions", type=int, default=0, metavar="REQUESTS", help="count instructions instead")
    arguments = parser.parse_args()
    if arguments.instructions:
        instructions(arguments.instructions, arguments.concurrency)
        return
    with ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory()))
        target = running.enter_context(upstream())
        relays = [*RELAYS, *peers(arguments.peer_python)]
        measured = [Measured(relay, *running.enter_context(started(relay, target, folder))) for relay in relays]
        direct = int(target.rpartition(":")[2])
        rates = {"JSON": 0.0, f"{PIECES} chunks": 0.0}
        for one in measured:  # some take seconds for their first answer
            json_load(one.port, request(CHAT, chat(stream=False)), 60.0, 1, 3)
        for number in range(arguments.rounds):
            print(f"round {number + 1}", file=sys.stderr)
            for title, stream in (("JSON", False), (f"{PIECES} chunks", True)):
                sent = request(CHAT, chat(stream=stream))
                seen = measure(direct, os.getpid(), sent, arguments.seconds, arguments.concurrency, stream=stream)
                rates[title] = max(rates[title], seen.rate)
            # Noise lasts for seconds, so compared relays are measured alternately.
            for case in CASES:
                for one in measured:
                    if number < one.relay.rounds:
                        one.turn(case, arguments.seconds, arguments.concurrency)
        show(measured, first_byte(direct, request(CHAT, chat(stream=False)), 1.0), piece_alone(direct))
        described = "; ".join(f"{title}: {rate:,.0f} a second" for title, rate in rates.items())
        print(f"with nothing in between: {described}")
        memory(measured[0], arguments.memory)
        workers(measured[0], target, folder, arguments)


def instructions(requests: int, concurrency: int) -> None:
    """A Markdown table of instructions per JSON request, of the first relays."""
    if not can_count():
        raise SystemExit("valgrind is needed to count instructions")
    cases = [case for case in CASES if not case[3]]
    print(f"| instructions, thousands | {' | '.join(title for title, *_ in cases)} |")
    print(f"|---|{'---:|' * len(cases)}", flush=True)
    for relay in RELAYS[:_LIMITING]:
        asked = [request(path, body(stream=False)) for _, path, body, _ in cases if path == CHAT or relay.translates]
        with tempfile.TemporaryDirectory() as folder, upstream() as target:
            found = count_instructions(relay, target, Path(folder), asked, requests, concurrency)
        print(f"| {relay.name} | {' | '.join(f'{one / 1e3:,.0f}' for one in found)} |", flush=True)


def piece_alone(port: int) -> float:
    return delays(port, request(CHAT, chat(stream=True, words=PACED)), 2)[0]


def show(measured: list[Measured], first: float, piece: float) -> None:
    """A Markdown table. The time without a relay is subtracted."""
    print("| | requests/s | CPU of the process, each | adds to an answer | adds to a chunk |")
    print("|---|---:|---:|---:|---:|")
    for one in measured:
        for title, result in one.best.items():
            late = f"{(one.first[title] - first) * 1e3:.2f} ms" if title in one.first else ""
            delay = f"{(one.delay[title][0] - piece) * 1e3:.2f} ms" if title in one.delay else ""
            name = title if one is measured[0] else f"*{one.relay.name}:* {title}"
            print(f"| {name} | {result.rate:,.0f} | {result.cpu * 1e3:.2f} ms | {late} | {delay} |")
    print()
    for other in measured[1:]:
        shares = "; ".join(f"{title}: {share:.2f}" for title, share in shares_of(measured[0], other).items())
        print(f"dragoman's CPU per request as a multiple of that of the {other.relay.name}: {shares}")


def shares_of(own: Measured, other: Measured) -> dict[str, float]:
    """CPU shares; relays that only pass bytes on are the baseline for translation too."""
    like = {
        title: title if other.relay.translates else title.replace("translated", "the same bytes") for title in own.best
    }
    return {title: own.best[title].cpu / other.best[like[title]].cpu for title in own.best}


def memory(one: Measured, count: int) -> None:
    """Memory after each quarter of the requests: flat, if the last three are the same."""
    sent = request(MESSAGES, messages(stream=False))
    before = megabytes(one.pid)
    quarters = []
    for _ in range(4):
        json_load(one.port, sent, 600.0, 16, count // 4)
        quarters.append(f"{megabytes(one.pid):.1f}")
    print(f"\nmemory: {before:.1f} MB before, {', '.join(quarters)} MB after each quarter of {count} requests more")


def workers(one: Measured, target: str, folder: Path, arguments: argparse.Namespace) -> None:
    """Compares several workers with one. Upstream and load need cores too, so two cores show little gain."""
    sent = request(MESSAGES, messages(stream=False))
    with started(TWO_WORKERS, target, folder) as (port, pid):
        rates: dict[int, list[float]] = {one.port: [], port: []}
        for _ in range(arguments.rounds):
            for address, number in ((one.port, one.pid), (port, pid)):
                result = measure(address, number, sent, arguments.seconds, arguments.concurrency, stream=False)
                rates[address].append(result.rate)
    single, double = (max(seen) for seen in rates.values())
    print(f"workers: {single:,.0f} translated JSON requests/s with one, {double:,.0f} with two")


if __name__ == "__main__":
    main()
