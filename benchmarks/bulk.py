"""Bulk conversion against its limits: one core against the floor, two cores against one, Ray against the local engine.

    python benchmarks/bulk.py one              CPU time per record: floor, bare loop, convert_lines, engine
    python benchmarks/bulk.py sizes            the engine's share of the floor's rate, by length of the conversations
    python benchmarks/bulk.py sizes --file F   the same for a file of yours, in JSON Lines
    python benchmarks/bulk.py cores            wall time with one and two processes, and of two floors side by side
    python benchmarks/bulk.py ray              wall time on a local Ray cluster, without its start

`--records` sets how many conversations (scripts/make_conversations.py) the file has, `--target` the format. Rounds
alternate between the candidates, and the fastest round of each counts. `cores` also runs the floor twice at the same
time: two processes that share nothing show the most that any engine can gain on that machine.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import orjson

from dragoman.batch import RunOptions, convert, convert_lines
from dragoman.translate import translate_request

_AT_ONCE = 1 << 24


def _made(folder: Path, records: int, turns: int = 0) -> Path:
    path = folder / "conversations.jsonl"
    script = Path(__file__).parents[1] / "scripts" / "make_conversations.py"
    distinct = min(records, 20_000)
    command = [sys.executable, str(script), str(distinct), "--turns", str(turns)]
    made = subprocess.run(command, capture_output=True, check=True).stdout  # noqa: S603
    with path.open("wb") as stream:
        for _ in range(max(1, records // distinct)):
            stream.write(made)
    return path


def _floor(path: Path) -> None:
    """Decode and encode the same JSON, and do nothing else: nothing is written to a file."""
    with path.open("rb") as stream:
        for line in stream:
            orjson.dumps(orjson.loads(line))


def _loop(path: Path, target: str) -> None:
    with path.open("rb") as stream:
        for line in stream:
            encoded = translate_request(line, source="openai-chat", target=target)
            len(encoded.losses)


def _lines(path: Path, target: str) -> None:
    with path.open("rb") as stream:
        while lines := stream.readlines(_AT_ONCE):
            convert_lines(b"".join(lines), target=target)


def _engine(path: Path, target: str, run: RunOptions) -> None:
    convert(str(path), str(path.with_name("out")), run, target=target)


def _run(workers: int, engine: str = "local") -> RunOptions:
    return RunOptions(workers=workers, engine=engine, overwrite=True, restart=True)  # type: ignore[arg-type]


def _together(work: Callable[[], None]) -> None:
    """Run the work twice at the same time, in two processes."""
    context = get_context("fork")
    processes = [context.Process(target=work) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()


Clock = Callable[[], float]


def _measured(candidates: Mapping[str, Callable[[], None]], rounds: int, clock: Clock) -> dict[str, float]:
    best = dict.fromkeys(candidates, float("inf"))
    for _ in range(rounds):
        for name, work in candidates.items():
            started = clock()
            work()
            best[name] = min(best[name], clock() - started)
    return best


def _print_rows(best: dict[str, float], unit: str, factor: float = 1.0) -> None:
    for name, seconds in best.items():
        print(f"{name:14} {seconds * factor:7.2f} {unit}")


def _one(path: Path, target: str, records: int, rounds: int) -> None:
    candidates = {
        "floor": partial(_floor, path),
        "loop": partial(_loop, path, target),
        "convert_lines": partial(_lines, path, target),
        "engine": partial(_engine, path, target, _run(1)),
    }
    best = _measured(candidates, rounds, time.process_time)
    _print_rows(best, "us/record", 1e6 / records)
    print(f"engine / loop            {best['engine'] / best['loop']:.3f}  (target: at most 1.1)")
    print(f"convert_lines / engine   {best['convert_lines'] / best['engine']:.3f}  (limit: within 10 %)")
    print(f"engine, of the floor     {best['floor'] / best['engine']:.3f}  (limit: at least 0.45)")


TURNS = (0, 10, 24, 66)
"""Turns of talk that make conversations of 1.3, 4, 8 and 20 kB."""


def _share(path: Path, target: str, rounds: int) -> None:
    """Print one row: the size of a record, the times per record, and the engine's share of the floor's rate."""
    with path.open("rb") as stream:
        records = sum(1 for line in stream)
    candidates = {"floor": partial(_floor, path), "engine": partial(_engine, path, target, _run(1))}
    best = _measured(candidates, rounds, time.process_time)
    size, factor = path.stat().st_size / records / 1000, 1e6 / records
    times = f"{best['floor'] * factor:8.1f} {best['engine'] * factor:9.1f}"
    print(f"{size:9.1f} {times} {best['floor'] / best['engine']:7.2f}", flush=True)


def _sizes(folder: Path, given: argparse.Namespace) -> None:
    print("kB/record floor/us engine/us   share")
    if given.file is not None:
        _share(Path(shutil.copy(given.file, folder)), given.target, given.rounds)
        return
    for turns in TURNS:
        _share(_made(folder, given.records // (1 + turns // 3), turns), given.target, given.rounds)


def _cores(path: Path, target: str, rounds: int) -> None:
    floor, loop = partial(_floor, path), partial(_loop, path, target)
    candidates = {
        "one floor": floor,
        "two floors": partial(_together, floor),
        "one loop": loop,
        "two loops": partial(_together, loop),
        "engine, 1": partial(_engine, path, target, _run(1)),
        "engine, 2": partial(_engine, path, target, _run(2)),
    }
    best = _measured(candidates, rounds, time.perf_counter)
    _print_rows(best, "s")
    print(f"two floors side by side  {2 * best['one floor'] / best['two floors']:.2f} x")
    print(f"two loops side by side   {2 * best['one loop'] / best['two loops']:.2f} x")
    print(f"engine on two cores      {best['engine, 1'] / best['engine, 2']:.2f} x  (limit: at least 1.8)")


def _ray(path: Path, target: str, rounds: int) -> None:
    import ray  # noqa: PLC0415 - an extra

    started = time.perf_counter()
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    print(f"start of the cluster  {time.perf_counter() - started:7.2f} s")
    started = time.perf_counter()
    _engine(path, target, _run(2, "ray"))  # starts Ray's workers, which import dragoman
    print(f"first job             {time.perf_counter() - started:7.2f} s")
    candidates = {
        "local": partial(_engine, path, target, _run(2)),
        "ray": partial(_engine, path, target, _run(2, "ray")),
    }
    best = _measured(candidates, rounds, time.perf_counter)
    _print_rows(best, "s")
    print(f"Ray, of the local engine's rate  {best['local'] / best['ray']:.2f}  (limit: at least 0.7)")
    ray.shutdown()


def main() -> None:
    """Read the command line, make the file, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["one", "sizes", "cores", "ray"])
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--target", default="anthropic-messages")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--file", help="for `sizes`: your own JSON Lines, instead of made-up conversations")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if given.what == "sizes":
            _sizes(Path(folder), given)
            return
        path = _made(Path(folder), given.records)
        if given.what == "one":
            _one(path, given.target, given.records, given.rounds)
        elif given.what == "cores":
            _cores(path, given.target, given.rounds)
        else:
            _ray(path, given.target, given.rounds)


if __name__ == "__main__":
    main()
