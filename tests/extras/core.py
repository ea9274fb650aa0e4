"""Nothing but the core: bodies, streams and files are converted, and nothing else is loaded."""

import contextlib
import io
import json
import sys
import tempfile
from pathlib import Path

import dragoman
from dragoman.cli import main

body = {"model": "m", "messages": [{"role": "user", "content": "Hello"}], "logit_bias": {"1": 1}}
encoded = dragoman.translate_request(body, source="openai-chat", target="gemini")
assert encoded.body["contents"] == [{"role": "user", "parts": [{"text": "Hello"}]}], encoded.body
assert [loss.path for loss in encoded.losses] == ["$.logit_bias"], encoded.losses

chunk = {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"content": "Hi"}, "finish_reason": "stop"}]}
translator = dragoman.StreamTranslator(source="openai-chat", target="anthropic-messages")
stream = translator.feed(f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode()) + translator.close()
assert b"message_stop" in stream, stream

with tempfile.TemporaryDirectory() as folder:
    source, target = Path(folder, "in.json"), Path(folder, "out.json")
    source.write_text(json.dumps(body), encoding="utf-8")
    assert main(["convert", str(source), "--to", "anthropic-messages", "-o", str(target)]) == 0
    assert json.loads(target.read_text(encoding="utf-8"))["messages"][0]["role"] == "user"

ours = {"dragoman", "dragoman_core__mypyc"}  # the second one is part of a compiled wheel
foreign = {name.partition(".")[0] for name in sys.modules} - sys.stdlib_module_names - ours - {"msgspec"}
assert {name for name in foreign if not name.startswith("_")} == set(), foreign

for command, extra in (("serve", "gateway"), ("sim", "sim"), ("tour", "sim"), ("usage", "gateway")):
    stderr = io.StringIO()
    with contextlib.redirect_stderr(stderr):
        code = main([command])
    assert code != 0, command
    assert "is not installed" in stderr.getvalue(), stderr.getvalue()
    assert extra in stderr.getvalue().rpartition("[")[2], stderr.getvalue()
