"""A script in YAML, and a client that knows HTTP only."""

import json
import tempfile
import urllib.request
from pathlib import Path

from dragoman.sim import Simulator
from dragoman.sim.script import load_script
from dragoman.sim.service import Settings

with tempfile.TemporaryDirectory() as folder:
    file = Path(folder, "script.yaml")
    file.write_text("turns:\n  - text: As it is written.\n", encoding="utf-8")
    script = load_script(file)
with Simulator(Settings(script=script)) as sim:
    body = {"model": "claude-sonnet-5", "max_tokens": 50, "messages": [{"role": "user", "content": "Hello"}]}
    headers = {"x-api-key": "any", "anthropic-version": "2023-06-01", "content-type": "application/json"}
    request = urllib.request.Request(f"{sim.url}/v1/messages", json.dumps(body).encode(), headers)  # noqa: S310 - ours
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
        assert json.load(answer)["content"][0]["text"] == "As it is written."
