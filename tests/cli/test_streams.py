"""Recorded streams on the command line: `convert --stream`, and `inspect` as a timeline."""

import io
import json
import subprocess
from contextlib import redirect_stderr
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman
from dragoman.cli import main
from dragoman.detection import detect_stream
from tests.cli.command import COMMAND, PLAIN, environment, run
from tests.support.calls import all_calls
from tests.support.promises import promise

Captured = pytest.CaptureFixture[bytes]

FIXTURES = Path(__file__).parent / "fixtures"
CHAT = (FIXTURES / "chat.sse").read_bytes()
CHAT_LINES = (FIXTURES / "chat.ndjson").read_bytes()
MESSAGES = (FIXTURES / "messages.sse").read_bytes()
GEMINI = (FIXTURES / "gemini.json").read_bytes()
SOURCES = {"openai-chat": CHAT, "anthropic-messages": MESSAGES, "gemini": GEMINI}
OVERLOADED = b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n'


def completion_of(stream: bytes, source: str) -> dragoman.StreamTranslator:
    """The stream read whole. Same format on both sides: only the completion is of interest."""
    translator = dragoman.StreamTranslator(source=source, target=source)
    translator.feed(stream)
    translator.close()
    return translator


def calls_of(stream: bytes, source: str) -> list[tuple[str, object]]:
    return [(call.name, call.arguments) for call in completion_of(stream, source).completion.tool_calls]


def cut(stream: bytes, event: int) -> bytes:
    return b"".join(part + b"\n\n" for part in stream.split(b"\n\n")[:event])


def written(folder: Path, content: bytes, name: str = "in.sse") -> str:
    (folder / name).write_bytes(content)
    return str(folder / name)


# ── convert ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("target", dragoman.formats())
@pytest.mark.parametrize("source", SOURCES)
def test_a_stream_becomes_what_the_library_makes_of_it(
    source: str, target: str, tmp_path: Path, capsysbinary: Captured
) -> None:
    stream = SOURCES[source]
    assert main(["convert", "--stream", written(tmp_path, stream), "--to", target]) == 0
    translator = dragoman.StreamTranslator(source=source, target=target)
    expected = translator.feed(stream) + translator.close()
    output = capsysbinary.readouterr().out
    assert output == expected
    assert calls_of(output, target) == calls_of(stream, source)


def test_from_stdin_to_stdout_as_a_process() -> None:
    done = run("convert", "--stream", "--to", "anthropic-messages", stdin=CHAT)
    assert done.returncode == 0
    answer = completion_of(done.stdout, "anthropic-messages").completion
    assert answer.text == "I will ask both cities."
    assert [(call.id, call.arguments) for call in answer.tool_calls] == [
        ("call_tokyo", {"location": "Tokyo"}),
        ("call_oslo", {"location": "Oslo"}),
    ]


def test_one_format_passes_unchanged(tmp_path: Path, capsysbinary: Captured) -> None:
    assert main(["convert", "--stream", written(tmp_path, CHAT), "--to", "openai-chat"]) == 0
    captured = capsysbinary.readouterr()
    assert (captured.out, captured.err) == (CHAT, b"")


PRETTY_LINES = b"\n".join(
    json.dumps(json.loads(line), indent=2).encode() for line in CHAT_LINES.splitlines() if line.startswith(b"{")
)
CHAT_ARRAY = b"[" + b",".join(line for line in CHAT_LINES.splitlines() if line.startswith(b"{")) + b"]"
FRAMINGS = {
    "lines": CHAT_LINES,
    "lines with a byte order mark": b"\xef\xbb\xbf" + CHAT_LINES,
    "lines that end in CRLF": CHAT_LINES.replace(b"\n", b"\r\n"),
    "lines, the last one not ended": CHAT_LINES.rstrip(),
    "an array on one line": CHAT_ARRAY,
    "an array on many lines": json.dumps(json.loads(CHAT_ARRAY), indent=2).encode(),
    "objects on many lines": PRETTY_LINES,
    "server-sent events that end in CRLF": CHAT.replace(b"\n", b"\r\n"),
    "server-sent events, the last one not ended": CHAT.rstrip(),
}


@pytest.mark.parametrize("target", ["gemini", "openai-chat"])
@pytest.mark.parametrize("content", FRAMINGS.values(), ids=FRAMINGS.keys())
def test_a_stream_is_converted_in_every_framing_it_may_be_saved_in(
    content: bytes, target: str, tmp_path: Path, capsysbinary: Captured
) -> None:
    assert main(["convert", "--stream", written(tmp_path, content), "--to", target]) == 0
    output = capsysbinary.readouterr().out
    assert output.startswith((b"data: ", CHAT[:20]))
    assert calls_of(output, target) == calls_of(CHAT, "openai-chat")


def test_answers_of_gemini_one_per_line(tmp_path: Path, capsysbinary: Captured) -> None:
    lines = b"".join(json.dumps(chunk).encode() + b"\n" for chunk in json.loads(GEMINI))
    assert main(["convert", "--stream", written(tmp_path, lines), "--to", "openai-chat"]) == 0
    assert calls_of(capsysbinary.readouterr().out, "openai-chat") == [("get_weather", {"location": "Tokyo"})]


# ── losses ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_losses_are_reported_as_for_bodies(tmp_path: Path, capsysbinary: Captured) -> None:
    file = written(tmp_path, CHAT)
    assert main(["convert", "--stream", file, "--to", "anthropic-messages"]) == 0
    assert b"1 noted; list them with --report" in capsysbinary.readouterr().err
    assert main(["convert", "--stream", file, "--to", "anthropic-messages", "--report"]) == 0
    title, row = capsysbinary.readouterr().err.decode().splitlines()
    assert title == "openai-chat → anthropic-messages (stream): 1 noted"
    assert row.split()[:2] == ["noted", "$.created"]
    assert main(["convert", "--stream", file, "--to", "anthropic-messages", "--report", "json"]) == 0
    report = json.loads(capsysbinary.readouterr().err)
    assert (report["from"], report["to"], report["kind"]) == ("openai-chat", "anthropic-messages", "stream")
    assert [loss["severity"] for loss in report["losses"]] == ["noted"]
    assert "failed" not in report


@promise("law:2-nothing-vanishes")
def test_strict_writes_nothing_if_anything_would_be_lost(tmp_path: Path, capsysbinary: Captured) -> None:
    refused = (
        b'data: {"id":"1","created":7,"model":"m","choices":[{"index":0,"delta":{"refusal":"No."}}]}\n\n'
        b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    )
    file, out = written(tmp_path, refused), tmp_path / "out.sse"
    assert main(["convert", "--stream", file, "--to", "anthropic-messages", "--strict", "-o", str(out)]) == 3
    captured = capsysbinary.readouterr()
    assert captured.out == b""
    assert b"degraded" in captured.err
    assert not out.exists()


def test_bookkeeping_is_not_a_reason_to_refuse(tmp_path: Path, capsysbinary: Captured) -> None:
    file, out = written(tmp_path, CHAT), tmp_path / "out.sse"
    assert main(["convert", "--stream", file, "--to", "anthropic-messages", "--strict", "-o", str(out)]) == 0
    assert capsysbinary.readouterr().err == b""
    assert b"message_stop" in out.read_bytes()


def test_strict_and_nothing_lost(tmp_path: Path, capsysbinary: Captured) -> None:
    assert main(["convert", "--stream", written(tmp_path, CHAT), "--to", "gemini", "--strict"]) == 0
    assert capsysbinary.readouterr().err == b""


# ── streams that failed ───────────────────────────────────────────────────────────────────────────────────────


@promise("law:5-streams-tell-the-same-story")
def test_a_cut_stream_is_converted_and_sets_the_exit_status(tmp_path: Path) -> None:
    (tmp_path / "in.sse").write_bytes(cut(CHAT, 8))
    done = run("convert", "--stream", "in.sse", "--to", "anthropic-messages", "-o", "out.sse", cwd=tmp_path)
    assert done.returncode == 4
    *_, line = done.stderr.decode().splitlines()
    assert line.startswith("dragoman: in.sse:15: the stream ended early: ")
    translated = completion_of((tmp_path / "out.sse").read_bytes(), "anthropic-messages")
    assert translated.failure is not None
    assert translated.completion.text == "I will ask both cities."
    assert all(call.incomplete for call in all_calls(translated.completion))


@pytest.mark.parametrize("target", dragoman.formats())
def test_an_error_inside_a_stream(target: str, tmp_path: Path, capsysbinary: Captured) -> None:
    file = written(tmp_path, cut(MESSAGES, 9) + OVERLOADED)
    assert main(["convert", "--stream", file, "--to", target]) == 4
    captured = capsysbinary.readouterr()
    *_, line = captured.err.decode().splitlines()
    assert line == f"dragoman: {file}:29: the stream failed (overloaded): Overloaded; what came before is converted"
    assert completion_of(captured.out, target).failure is not None


def test_an_error_before_anything_else_is_a_stream_that_failed(tmp_path: Path, capsysbinary: Captured) -> None:
    assert main(["convert", "--stream", written(tmp_path, OVERLOADED), "--to", "openai-chat"]) == 4
    assert b"Overloaded" in capsysbinary.readouterr().out


def test_an_event_that_is_not_json_ends_the_stream_there(tmp_path: Path, capsysbinary: Captured) -> None:
    file = written(tmp_path, cut(CHAT, 4) + b"data: {oops\n\n" + CHAT)
    assert main(["convert", "--stream", file, "--to", "gemini"]) == 4
    captured = capsysbinary.readouterr()
    assert f"{file}:9: the stream failed (server): openai-chat stream: " in captured.err.decode()
    assert b"both cities." in captured.out


def test_a_report_in_json_includes_the_failure(tmp_path: Path, capsysbinary: Captured) -> None:
    file = written(tmp_path, cut(MESSAGES, 9))
    assert main(["convert", "--stream", file, "--to", "gemini", "--report", "json"]) == 4
    report = json.loads(capsysbinary.readouterr().err)
    assert report["failed"] == f"{file}:26: the stream ended early: the stream ended without message_stop"


# ── bad input ─────────────────────────────────────────────────────────────────────────────────────────────────

BAD: dict[str, tuple[bytes, tuple[str, ...], str]] = {
    "empty": (b"", (), "{file}: empty input, expected a recorded stream"),
    "blank": (b" \n\n\t\n", (), "{file}: empty input"),
    "no stream": (b"hello\n", (), "{file}:1: cannot detect the format of this stream; name it with --from"),
    "no known format": (b'data: {"hello": "world"}\n\n', (), "{file}:1: cannot detect the format"),
    "a request": (json.dumps(PLAIN).encode(), (), "{file}:1: cannot detect the format"),
    "UTF-16": (CHAT.decode().encode("utf-16"), (), "{file}:1: expected UTF-8 text, got UTF-16"),
    "no events": (b"hello\n", ("--from", "gemini"), "{file}: expected the events of a stream in gemini, got none"),
    "another format": (CHAT, ("--from", "anthropic-messages"), "{file}:3: anthropic-messages stream: expected"),
    "too many brackets": (b"[" + CHAT_LINES.partition(b"\n")[0] + b"]]", (), "{file}:1: openai-chat stream: "),
}


@promise("law:10-bad-input-good-words")
@pytest.mark.parametrize(("content", "arguments", "words"), BAD.values(), ids=BAD.keys())
def test_bad_input_is_one_clear_line_and_nothing_written(
    content: bytes, arguments: tuple[str, ...], words: str, tmp_path: Path, capsysbinary: Captured
) -> None:
    file, out = written(tmp_path, content), tmp_path / "out.sse"
    for command in (("convert", "--to", "openai-chat", "-o", str(out)), ("inspect",)):
        assert main([*command, "--stream", file, *arguments]) == 2
        captured = capsysbinary.readouterr()
        message = captured.err.decode()
        assert captured.out == b""
        assert message[:-1].isprintable(), "one line, nothing a terminal would obey"
        assert message.startswith("dragoman: " + words.format(file=file))
    assert not out.exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--to", "all"), "--to all is for bodies"),
        (("--to", "gemini", "--pretty"), "--pretty is for bodies"),
        (("--to", "gemini", "--kind", "response"), "--kind is for bodies"),
        (("--to", "gemini", "--model", "m"), "--model is for bodies"),
        (("--to", "gemni"), "did you mean 'gemini'?"),
        (("--from", "opnai-chat", "--to", "gemini"), "did you mean 'openai-chat'?"),
    ],
)
def test_options_that_make_no_sense(
    arguments: tuple[str, ...], words: str, tmp_path: Path, capsysbinary: Captured
) -> None:
    assert main(["convert", "--stream", written(tmp_path, CHAT), *arguments]) == 2
    captured = capsysbinary.readouterr()
    assert captured.out == b""
    assert words in captured.err.decode()


@pytest.mark.parametrize("content", [CHAT, CHAT_LINES, MESSAGES], ids=["chat", "chat lines", "messages"])
def test_a_stream_taken_for_bodies_is_hinted_at(content: bytes, tmp_path: Path, capsysbinary: Captured) -> None:
    assert main(["convert", written(tmp_path, content), "--to", "gemini"]) == 2
    message = capsysbinary.readouterr().err
    assert message.count(b"\n") == 1
    assert b"if it is a recorded stream, add --stream" in message


def damaged(body: bytes, start: int, length: int, instead: bytes) -> bytes:
    return body[:start] + instead + body[start + length :]


DAMAGED = st.sampled_from(list(SOURCES.values())).flatmap(
    lambda body: st.builds(
        damaged, st.just(body), st.integers(0, len(body)), st.integers(0, 400), st.binary(max_size=8)
    )
)


@promise("law:10-bad-input-good-words")
@given(st.binary() | DAMAGED, st.sampled_from(dragoman.formats()))
def test_no_bytes_whatever_crash_it(content: bytes, target: str) -> None:
    stdout = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with TemporaryDirectory() as folder, redirect_stderr(stdout):
        file, out = Path(folder, "in.sse"), Path(folder, "out.sse")
        file.write_bytes(content)
        code = main(["convert", "--stream", str(file), "--to", target, "-o", str(out)])
        assert code in {0, 2, 4}
        assert out.exists() == (code != 2)
        assert main(["inspect", "--stream", str(file)]) == (2 if code == 2 else 0)


# ── inspect ───────────────────────────────────────────────────────────────────────────────────────────────────


def inspected(content: bytes, *arguments: str) -> list[str]:
    done = run("inspect", *arguments, stdin=content)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode().splitlines()


def test_a_stream_is_recognised_and_shown_as_a_timeline() -> None:
    lines = inspected(CHAT)
    assert lines[:7] == [
        "openai-chat stream finished: tool_calls",
        "|- line 3       start model gpt-test, chatcmpl-7",
        '|- lines 5-7    text "I will ask both cities."  2 pieces',
        "|- line 23      usage input 40, output 21, total 61",
        '|- lines 9-17   call get_weather {"location":"Tokyo"}  call_tokyo, 2 pieces',
        '|- lines 11-19  call get_weather {"location":"Oslo"}  call_oslo, 2 pieces',
        "|- line 25      finish tool_calls",
    ]
    assert lines[7] == "`- the answer model gpt-test, chatcmpl-7"
    assert '   |  |- call get_weather {"location":"Tokyo"}  call_tokyo' in lines
    assert lines[-1] == "   `- usage input 40, output 21, total 61"


def test_reasoning_with_its_signature_and_usage_that_is_sent_twice() -> None:
    lines = inspected(MESSAGES)
    assert '|- lines 11-14  reasoning "Two cities, two calls."  signed by anthropic, 2 pieces' in lines
    assert "|- lines 2-44   usage input 40, output 33  sent 2 times" in lines
    assert "|- line 47      finish tool_calls  reported as tool_use" in lines


def test_an_array_is_recognised_and_lines_of_chunks_too() -> None:
    assert inspected(GEMINI)[0] == "gemini stream finished: tool_calls"
    assert inspected(CHAT_LINES)[0] == "openai-chat stream finished: tool_calls"


def test_answers_one_per_line_are_bodies_unless_an_option_says_otherwise() -> None:
    lines = b"".join(json.dumps(chunk).encode() + b"\n" for chunk in json.loads(GEMINI))
    assert inspected(lines)[0].startswith("line 1: gemini response")
    assert inspected(lines, "--stream")[0] == "gemini stream finished: tool_calls"


def test_a_stream_that_broke_off_shows_where() -> None:
    lines = inspected(cut(CHAT, 8))
    assert lines[0] == "openai-chat stream ended early"
    broken = '|- lines 9-13   call get_weather "{"location":"  call_tokyo  arguments are not a JSON object, cut off'
    assert broken in lines
    assert "|- line 15      end  the stream ended early: the stream ended without a finish reason" in lines


def test_further_candidates_are_named() -> None:
    chunk = {
        "candidates": [
            {"content": {"role": "model", "parts": [{"text": word}]}, "index": index, "finishReason": "STOP"}
            for index, word in enumerate(("yes", "no"))
        ]
    }
    lines = inspected(b"data: " + json.dumps(chunk).encode() + b"\n\n")
    assert '|- line 1  candidate 1: text "no"' in lines


def test_long_texts_are_shortened_unless_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    long = CHAT.replace(b"both cities.", b"word " * 100)
    assert max(map(len, inspected(long))) <= 100
    assert any("word " * 100 in line for line in inspected(long, "--full"))


def test_a_kind_is_for_bodies(tmp_path: Path, capsysbinary: Captured) -> None:
    assert main(["inspect", written(tmp_path, CHAT), "--stream", "--kind", "response"]) == 2
    assert b"--kind is for bodies" in capsysbinary.readouterr().err


def test_a_reader_that_goes_away_does_not_crash_the_command(tmp_path: Path) -> None:
    many = b"".join(b"data: " + line + b"\n\n" for line in CHAT_LINES.splitlines()[1:3]) * 20_000
    (tmp_path / "in.sse").write_bytes(many)
    process = subprocess.Popen(  # noqa: S603
        [*COMMAND, "convert", "--stream", "in.sse", "--to", "gemini"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=tmp_path,
        env=environment(),
    )
    assert process.stdout is not None
    process.stdout.read(10)
    process.stdout.close()
    assert process.wait(60) == 141


# ── detection ─────────────────────────────────────────────────────────────────────────────────────────────────

VERTEX = b'data: {"candidates": [], "createTime": "2026-01-01T00:00:00Z"}\n\n'
RESPONSES = b'event: response.created\ndata: {"type":"response.created","response":{"id":"resp_1"}}\n\n'
BEGINNINGS: dict[str, tuple[bytes, str | None, str | None]] = {
    "chat": (CHAT, "openai-chat", "openai-chat"),
    "chat, one per line": (CHAT_LINES, "openai-chat", "openai-chat"),
    "messages": (MESSAGES, "anthropic-messages", "anthropic-messages"),
    "a ping first": (b'event: ping\ndata: {"type": "ping"}\n\n', "anthropic-messages", "anthropic-messages"),
    "an error of Anthropic": (OVERLOADED, "anthropic-messages", "anthropic-messages"),
    "an array of Gemini": (GEMINI, "gemini", "gemini"),
    "Vertex": (VERTEX, "vertex", "vertex"),
    "an answer of Gemini": (b'{"candidates": []}\n{"candidates": []}\n', "gemini", None),
    "an answer of Chat": (b'{"choices": [{"message": {}}]}', "openai-chat", None),
    "an error in a list": (b'[{"error": {"code": 400, "status": "X"}}]', "gemini", None),
    "a chunk without its kind": (b'{"choices": [{"delta": {}}]}', "openai-chat", "openai-chat"),
    "a message": (b'{"type": "message", "content": []}', None, None),
    "a request": (b'{"messages": []}', None, None),
    "Responses": (RESPONSES + OVERLOADED, "openai-responses", "openai-responses"),
    "a comment": (b": hello\n\n", None, None),
    "an event not yet whole": (CHAT[:60], None, None),
    "half a character": (b'data: {"choices": [], "x": "\xc3\n\n', None, None),
    "nothing": (b"", None, None),
}


@pytest.mark.parametrize(("start", "lax", "certain"), BEGINNINGS.values(), ids=BEGINNINGS.keys())
def test_the_format_of_a_stream_is_detected_from_its_first_event(
    start: bytes, lax: str | None, certain: str | None
) -> None:
    assert detect_stream(start) == lax
    assert detect_stream(start, certain=True) == certain
