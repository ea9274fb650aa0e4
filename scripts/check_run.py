"""Start `make run`, send the requests of the README, and stop it again.

    make check-run

Uses only the standard library, like a user who has nothing else installed.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
ADDRESS = re.compile(r"http://\S+")
PATIENCE = 60.0
HELLO = [{"role": "user", "content": "Hello"}]
QUESTIONS: tuple[tuple[str, str, Mapping[str, Any], str], ...] = (
    (
        "OpenAI's API, Claude answers",
        "/v1/chat/completions",
        {"model": "anthropic/claude-sonnet-5", "messages": HELLO},
        "choices",
    ),
    (
        "Anthropic's API, GPT answers",
        "/v1/messages",
        {"model": "openai/gpt-5.6", "max_tokens": 500, "messages": HELLO},
        "content",
    ),
    (
        "Google's API, Claude answers",
        "/v1beta/models/anthropic%2Fclaude-sonnet-5:generateContent",
        {"contents": [{"role": "user", "parts": [{"text": "Hello"}]}]},
        "candidates",
    ),
)


def main() -> int:
    with running() as url:
        page = fetched(f"{url}/", accept="text/html")
        report("the page", good="<!doctype html>" in page.lower())
        for name, path, body, expected in QUESTIONS:
            report(name, good=expected in json.loads(fetched(url + path, body)))
    return 0


@contextmanager
def running() -> Iterator[str]:
    """Starts `make run` on a free port; yields the printed URL."""
    command = ["make", "--no-print-directory", "run", "ARGS=--port 0"]
    process = subprocess.Popen(  # noqa: S603 - our own command
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=without_keys(),
        start_new_session=True,
    )
    watch = threading.Timer(PATIENCE, os.killpg, (process.pid, signal.SIGKILL))
    watch.start()
    try:
        assert process.stdout is not None  # noqa: S101 - it is a pipe
        found = next((match[0] for line in process.stdout if (match := ADDRESS.search(line))), None)
        if found is None:
            raise SystemExit(f"make run printed no URL within {PATIENCE:.0f} s")
        threading.Thread(target=process.stdout.read, daemon=True).start()
        yield found
        os.killpg(process.pid, signal.SIGINT)
        process.wait()
    finally:
        watch.cancel()
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def without_keys() -> dict[str, str]:
    """The environment without provider keys."""
    return {name: value for name, value in os.environ.items() if not name.endswith(("_API_KEY", "_TOKEN"))}


def fetched(url: str, body: Mapping[str, Any] | None = None, accept: str = "application/json") -> str:
    headers = {"content-type": "application/json", "authorization": "Bearer any", "accept": accept}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, headers)  # noqa: S310 - our own address
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:  # noqa: S310
            found: str = answer.read().decode()
            return found
    except urllib.error.HTTPError as error:
        raise SystemExit(f"{url}: {error.code} {error.read().decode()[:500]}") from error


def report(name: str, *, good: bool) -> None:
    print(f"  {'ok' if good else 'FAILED'}  {name}", flush=True)
    if not good:
        raise SystemExit(1)


if __name__ == "__main__":
    sys.exit(main())
