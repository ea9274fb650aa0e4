"""A small conversion by Ray Data, on a cluster of this machine."""

import json
import tempfile
from pathlib import Path

from dragoman.cli import main

BODY = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}
with tempfile.TemporaryDirectory() as folder:
    source, target = Path(folder, "in.jsonl"), Path(folder, "out.jsonl")
    source.write_text("\n".join([json.dumps(BODY)] * 3), encoding="utf-8")
    convert = ["batch", "convert", str(source), "--to", "gemini", "-o", str(target), "--ray", "local", "--quiet"]
    assert main(convert) == 0
    assert len(target.read_text(encoding="utf-8").splitlines()) == len("abc")
