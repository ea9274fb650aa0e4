"""`dragoman sim` as its users start it."""

import json
import re
import signal
import socket
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import COMMAND, environment, run
from tests.support.waiting import PATIENCE

BODY: dict[str, Any] = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}]}


def ask(url: str, key: str) -> Any:
    request = urllib.request.Request(  # noqa: S310 - our own server
        f"{url}/v1/chat/completions", json.dumps(BODY).encode(), {"authorization": f"Bearer {key}"}
    )
    with urllib.request.urlopen(request, timeout=PATIENCE) as response:  # noqa: S310 - as above
        return json.load(response)["choices"][0]["message"]["content"]


def test_the_simulators_serve_until_interrupted(tmp_path: Path) -> None:
    (tmp_path / "turns.json").write_text('[{"text": "From the script."}]')
    command = [*COMMAND, "sim", "--port", "0", "--script", "turns.json", "--key", "good-key"]
    with subprocess.Popen(  # noqa: S603
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path, env=environment()
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        url = process.stdout.readline().split()[0].decode()
        try:
            assert re.fullmatch(r"http://127\.0\.0\.1:\d+", url)
            assert ask(url, "good-key") == "From the script."
            with pytest.raises(urllib.error.HTTPError, match="401") as refused:
                ask(url, "other-key")
            refused.value.close()
        finally:
            process.send_signal(signal.SIGINT)
        # Not communicate(): the line above may have read ahead of it.
        printed, complaints = process.stdout.read(), process.stderr.read()
    assert complaints == b"dragoman: interrupted\n"
    assert b"bedrock" in printed
    assert b"good-key" not in printed + complaints


def test_mistakes_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text('[{"txt": "x"}]')
    for arguments, words in (
        (("--script", "missing.yaml"), b"cannot read missing.yaml"),
        (("--script", "bad.json"), b"unknown field `txt`"),
    ):
        done = run("sim", *arguments, cwd=tmp_path)
        assert done.returncode == 2
        assert words in done.stderr
        assert done.stderr.count(b"\n") == 1


def test_a_port_that_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run("sim", "--port", str(port))
    assert done.returncode == 2
    assert f"cannot listen: port {port} is in use".encode() in done.stderr
    assert b"try --port " in done.stderr
