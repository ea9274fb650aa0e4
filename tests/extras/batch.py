"""Lines to Parquet, Parquet to zstd, and a file system of fsspec."""

import json
import tempfile
from pathlib import Path

from dragoman.cli import main

BODY = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}
with tempfile.TemporaryDirectory() as folder:
    lines, table, packed = Path(folder, "in.jsonl"), Path(folder, "t.parquet"), Path(folder, "out.jsonl.zst")
    lines.write_text("\n".join([json.dumps(BODY)] * 3), encoding="utf-8")
    convert = ["batch", "convert", "--workers", "1", "--quiet"]
    assert main([*convert, lines.as_uri(), "--to", "anthropic-messages", "-o", str(table)]) == 0
    assert table.read_bytes()[:4] == b"PAR1"
    assert main([*convert, str(table), "--to", "gemini", "-o", str(packed)]) == 0
    assert packed.read_bytes()[:4] == b"\x28\xb5\x2f\xfd"
