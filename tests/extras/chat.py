"""Four simulated models answer in the terminal; the page is served."""

import os
import re
import subprocess
import sys
import tempfile
import urllib.request

with tempfile.TemporaryDirectory() as folder:
    environment = {**os.environ, "CHAT_HISTORY_DIR": folder, "HOME": folder}
    chat = [sys.executable, "-I", "-m", "dragoman", "chat", "--demo"]
    talk = subprocess.run(  # noqa: S603 - ours
        chat, env=environment, input="@all Hello\n", capture_output=True, text=True, check=True, timeout=60
    )
    assert talk.stdout.strip(), talk.stderr
    page = subprocess.Popen([*chat, "--web", "--port", "0"], env=environment, stdout=-1, stderr=-2, text=True)  # noqa: S603
    try:
        assert page.stdout is not None
        found = next(match for line in page.stdout if (match := re.search(r"http://\S+", line)))
        with urllib.request.urlopen(found[0], timeout=30) as answer:  # noqa: S310 - ours
            assert b"<!doctype html>" in answer.read().lower()
    finally:
        page.terminate()
        page.communicate()
