"""Counts the instructions that relays execute for a request, with callgrind (valgrind).

Unlike CPU time, their number does not depend on other work, so two versions can be compared on a busy machine.
Instructions of the kernel are not counted, and a relay is about fifty times slower meanwhile. Counting is off while a
relay starts and its caches are filled, which would take minutes otherwise.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from benchmarks.load import json_load
from benchmarks.relays import Relay, started

_WARMING: Final = 400
"""Requests before those that are counted: they fill caches, and release what is held of old requests."""
_SUMS: Final = re.compile(r"^(?:summary|totals): (\d+)", re.MULTILINE)
_PATIENCE: Final = 3_600.0


def can_count() -> bool:
    return shutil.which("valgrind") is not None and shutil.which("callgrind_control") is not None


def count_instructions(
    relay: Relay, target: str, folder: Path, sent: Sequence[bytes], requests: int, concurrency: int
) -> list[float]:
    """Return the instructions of the relay's process for one of each of these requests."""
    out = folder / "callgrind"
    valgrind = ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={out}"]
    counted = replace(relay, command=lambda up, port, place: [*valgrind, *relay.command(up, port, place)])
    found = []
    with started(counted, target, folder) as (port, pid):
        for one in sent:
            json_load(port, one, _PATIENCE, concurrency, _WARMING)
            _control(pid, "--instr=on")
            _dump(pid, out)
            count = json_load(port, one, _PATIENCE, concurrency, requests)
            found.append(_dump(pid, out) / count)
            _control(pid, "--instr=off")
    return found


def _dump(pid: int, out: Path) -> int:
    """Return the instructions since the last call: callgrind starts again from zero after each dump."""
    for file in out.parent.glob(f"{out.name}*"):
        file.unlink()
    _control(pid, "--dump")
    time.sleep(1.0)
    sums = [_SUMS.findall(file.read_text()) for file in out.parent.glob(f"{out.name}*")]
    return sum(int(found[-1]) for found in sums if found)


def _control(pid: int, option: str) -> None:
    subprocess.run(["callgrind_control", option, str(pid)], check=True, capture_output=True)  # noqa: S603, S607
