"""Running dragoman as its users do."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import dragoman

PLAIN = {"messages": [{"role": "user", "content": "hi"}], "model": "m"}
COMMAND = (sys.executable, "-m", "dragoman")


def environment(**further: str) -> Mapping[str, str]:
    """Ours, with the package found from any directory, and nothing that changes how output looks."""
    kept = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "COLUMNS", "PYTHONPATH"}}
    return {**kept, "PYTHONPATH": str(Path(dragoman.__file__).parents[1]), **further}


def run(*arguments: str, stdin: bytes = b"", cwd: Path | None = None) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(  # noqa: S603
        [*COMMAND, *arguments], input=stdin, capture_output=True, cwd=cwd, env=environment(), timeout=60, check=False
    )
