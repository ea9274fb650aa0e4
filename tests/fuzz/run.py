"""`make fuzz`: structure-aware fuzzing of every decoder, with a corpus that grows.

Each target runs in a process of its own. Where atheris is installed, libFuzzer chooses which inputs to mutate by the
coverage of our code and keeps those that reach something new in the corpus folder. Otherwise (and with `--plain`) an
input whose outcome no earlier input had (a new refusal, a new set of losses) joins the seeds: that is a fifth of the
cost of counting branches, so it is how 10^6 executions per target are made. The mutants are made by
tests/fuzz/mutation.py in both cases. A finding is made smaller, saved and printed, and the run goes on; the command
fails at the end.

`--until 1000000` runs slices of `--executions` inputs, each with a seed of its own, until every target has had that
many. The counts are kept in the folder, so a run that was interrupted goes on where it ended.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import re
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from threading import Lock

from tests.fuzz.mutation import slots, written
from tests.fuzz.targets import TARGETS, Target

FOLDER = Path(__file__).resolve().parents[2] / ".fuzz"
LONGEST = 1 << 14
SLOW = 2.0
"""CPU seconds for one input of at most 16 KiB. The usual one takes a thousandth of a second."""
FROM_NEW = 0.3
"""Share of mutants that are made of inputs found in this run."""
MOST_OUTCOMES = 5_000
LONGEST_KEPT = 3_000
MOST_KEPT = 40
"""Inputs of one run that are added to the corpus."""


class Findings:
    """Inputs that did what no input may do, one per kind of failure."""

    def __init__(self, target: Target, folder: Path) -> None:
        self.target = target
        self.folder = folder / "findings" / target.name.replace(":", "-")
        self.kinds: set[str] = set()

    def run(self, data: bytes) -> str:
        """Try one input; returns its outcome in a few words."""
        began = time.process_time()
        outcome = kind = ""
        try:
            outcome = self.target.run(data) or ""
        except Exception as error:  # noqa: BLE001 - that is what is looked for
            kind = kind_of(error)
        if time.process_time() - began > SLOW:
            self._note("slow", data)
        if kind:
            self._note(kind, data)
        return outcome

    def run_guided(self, data: bytes) -> None:
        """Try one input that libFuzzer chose."""
        self.run(data)

    def _note(self, kind: str, data: bytes) -> None:
        if kind in self.kinds:
            return
        self.kinds.add(kind)
        small = data if kind == "slow" else shrink(data, lambda one: self._kind(one) == kind)
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / sha256(small).hexdigest()[:16]
        path.write_bytes(small)
        print(f"FINDING {self.target.name}: {kind}\n  {small[:600]!r}\n  {path}", flush=True)

    def _kind(self, data: bytes) -> str:
        try:
            self.target.run(data)
        except Exception as error:  # noqa: BLE001 - that is what is looked for
            return kind_of(error)
        return ""


def kind_of(error: Exception) -> str:
    """The class of a failure, and the function of ours that it came from."""
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if "dragoman" in frame.filename.split("/")[-4:]
    ]
    place = f"{Path(frames[-1].filename).name}:{frames[-1].name}" if frames else "fuzz target"
    words = f": {error}" if isinstance(error, AssertionError) else ""
    return f"{type(error).__name__} in {place}{words}"[:160]


def shrink(data: bytes, still_fails: Callable[[bytes], bool], most: int = 3_000) -> bytes:
    """A smaller input that fails the same way: values are removed, then bytes."""
    tries = 0
    changed = True
    while changed and tries < most:
        changed = False
        for candidate in (*_smaller_json(data), *_smaller_bytes(data)):
            tries += 1
            if len(candidate) < len(data) and still_fails(candidate):
                data, changed = candidate, True
                break
            if tries >= most:
                break
    return data


def _smaller_json(data: bytes) -> list[bytes]:
    found: list[bytes] = []
    try:
        count = len(slots(json.loads(data)))
    except (ValueError, TypeError, RecursionError):
        return found
    for number in range(min(count, 400)):
        value = json.loads(data)
        holder, key = slots(value)[number]
        del holder[key]
        found.append(written(value))
    return found


def _smaller_bytes(data: bytes) -> list[bytes]:
    found: list[bytes] = []
    size = len(data) // 2
    while size and len(found) < 400:
        found += [data[:start] + data[start + size :] for start in range(0, len(data), size)][:60]
        size //= 2
    return found


# ── one target ────────────────────────────────────────────────────────────────────────────────────────────────


def fuzz_plainly(target: Target, findings: Findings, corpus: Path, executions: int, seed: int) -> None:
    """Mutants of seeds, and of mutants that had a new outcome."""
    seeds = _seeds(target, corpus)
    chance = random.Random(seed)  # noqa: S311
    known = {findings.run(data) for data in seeds}
    new: list[bytes] = []
    gc.freeze()  # modules, schemas and seeds stay: the collector need not visit them again and again
    for _ in range(executions):
        data = chance.choice(new if new and chance.random() < FROM_NEW else seeds)
        data = target.mutant(data, chance)[:LONGEST]
        outcome = findings.run(data)
        if outcome not in known and len(known) < MOST_OUTCOMES and len(data) <= LONGEST_KEPT:
            known.add(outcome)
            new.append(data)
    corpus.mkdir(parents=True, exist_ok=True)
    for data in new[-MOST_KEPT:]:
        (corpus / sha256(data).hexdigest()[:20]).write_bytes(data)


def _seeds(target: Target, corpus: Path) -> list[bytes]:
    seeds = target.seeds()
    target.learn(seeds)
    grown = [path.read_bytes() for path in sorted(corpus.iterdir())] if corpus.is_dir() else []
    return seeds + grown


def fuzz_by_coverage(target: Target, findings: Findings, corpus: Path, executions: int, seed: int) -> None:
    """Hand over to libFuzzer, which ends the process."""
    import atheris  # noqa: PLC0415 - absent where it has no wheel

    corpus.mkdir(parents=True, exist_ok=True)
    for data in _seeds(target, corpus):
        (corpus / sha256(data).hexdigest()[:20]).write_bytes(data)

    def mutate(data: bytes, longest: int, number: int) -> bytes:
        return target.mutant(data, random.Random(number))[:longest]  # noqa: S311

    argv = ["fuzz", str(corpus), f"-runs={executions}", f"-seed={seed}", f"-max_len={LONGEST}", "-rss_limit_mb=2048"]
    argv += ["-timeout=20", "-print_final_stats=1", "-verbosity=0", f"-artifact_prefix={findings.folder}-"]
    findings.folder.parent.mkdir(parents=True, exist_ok=True)
    atheris.Setup(argv, findings.run_guided, custom_mutator=mutate)
    atheris.Fuzz()


def _run_one(options: argparse.Namespace) -> None:
    target = TARGETS[options.target]
    findings = Findings(target, options.folder)
    corpus = options.folder / "corpus" / target.name.replace(":", "-")
    work = fuzz_plainly if options.plain else fuzz_by_coverage
    work(target, findings, corpus, options.executions, options.seed)
    sys.exit(1 if findings.kinds else 0)


# ── all targets ───────────────────────────────────────────────────────────────────────────────────────────────


def _run_all(options: argparse.Namespace) -> int:
    names = [name for name in TARGETS if re.search(options.only, name)]
    counts = Counts(options.folder / "executions.json")
    findings = 0
    while names:
        with ThreadPoolExecutor(options.jobs) as pool:
            findings += sum(pool.map(lambda name: _spawn(name, options, counts), names))
        names = [name for name in names if counts.of(name) < options.until]
    print(f"{findings} findings")
    return 1 if findings else 0


class Counts:
    """Executions of each target since the file was created."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._counts: dict[str, int] = json.loads(path.read_bytes()) if path.is_file() else {}
        self._lock = Lock()

    def of(self, name: str) -> int:
        return self._counts.get(name, 0)

    def add(self, name: str, executions: int) -> None:
        with self._lock:
            self._counts[name] = self.of(name) + executions
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.write_text(json.dumps(self._counts, indent=1))


def _spawn(name: str, options: argparse.Namespace, counts: Counts) -> int:
    """Run one target; returns the number of its findings, or 1 for a process that failed."""
    began = time.monotonic()
    seed = options.seed + counts.of(name)  # another one for each slice
    module = "tests.fuzz.run" if options.plain else "tests.fuzz.guided"
    command = [sys.executable, "-m", module, "--target", name, "--executions", str(options.executions)]
    command += ["--seed", str(seed), "--folder", str(options.folder), *(["--plain"] if options.plain else [])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    text = done.stdout + done.stderr
    found = text.count("FINDING ")
    seconds = time.monotonic() - began
    if found or not done.returncode:
        counts.add(name, options.executions)
    print(
        f"{name}: {options.executions} executions, {found} findings, {seconds:.0f} s, {counts.of(name)} in all",
        flush=True,
    )
    if found or done.returncode:
        print(text[-6_000:], flush=True)
    return found or int(done.returncode != 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--executions", type=int, default=20_000, help="inputs per target (a long run: 1000000)")
    parser.add_argument("--until", type=int, default=0, help="repeat with other seeds until each target had so many")
    parser.add_argument("--only", default="", help="targets whose name matches, such as stream: or ^batch:|openai")
    parser.add_argument("--jobs", type=int, default=2, help="targets at the same time")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plain", action="store_true", help="without coverage guidance (no atheris needed)")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the corpus and the findings are kept")
    parser.add_argument("--target", choices=sorted(TARGETS), help="one target, in this process")
    options = parser.parse_args()
    if options.target:
        _run_one(options)
    if not options.plain and not _has_atheris():
        print("atheris is not installed: mutants are not guided by coverage", flush=True)
        options.plain = True
    return _run_all(options)


def _has_atheris() -> bool:
    from importlib.util import find_spec  # noqa: PLC0415

    return find_spec("atheris") is not None


if __name__ == "__main__":
    sys.exit(main())
