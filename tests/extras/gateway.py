"""The gateway answers clients of two formats with compressed bodies; the simulators are its upstream."""

import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.request

import zstandard

HELLO = {"model": "anthropic/claude-sonnet-5", "max_tokens": 200, "messages": [{"role": "user", "content": "Hello"}]}

with tempfile.TemporaryDirectory() as folder:
    environment = {key: value for key, value in os.environ.items() if not key.endswith("_API_KEY")} | {"HOME": folder}
    command = [sys.executable, "-I", "-m", "dragoman", "serve", "--port", "0", "--simulate", "--quiet"]
    served = subprocess.Popen(command, env=environment, cwd=folder, stdout=-1, stderr=-2, text=True)  # noqa: S603 - ours
    try:
        assert served.stdout is not None
        found = next(match for line in served.stdout if (match := re.search(r"http://[\d.:]+", line)))
        for path, expected in (("/v1/chat/completions", "choices"), ("/v1/messages", "content")):
            body = zstandard.ZstdCompressor().compress(json.dumps(HELLO).encode())
            headers = {"content-type": "application/json", "content-encoding": "zstd"}
            request = urllib.request.Request(found[0] + path, body, headers)  # noqa: S310 - ours
            with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
                assert expected in json.load(answer)
    finally:
        served.terminate()
        served.communicate()
