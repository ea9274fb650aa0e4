"""Streams in frames on the command line: read and written as on the wire, recognised by the CRC of a prelude."""

import io
import json
from contextlib import redirect_stderr
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman
from dragoman.cli import main
from dragoman.detection import detect_stream, looks_streamed
from tests.cli.command import run
from tests.cli.test_streams import CHAT, calls_of, completion_of, damaged, inspected, written
from tests.support import converse_streams
from tests.support.promises import promise

Captured = pytest.CaptureFixture[bytes]
Event = tuple[str, dict[str, object]]

EVENTS: tuple[Event, ...] = (
    ("messageStart", {"role": "assistant", "p": "abc"}),
    ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "I will ask\n"}, "p": "abcdefgh"}),
    ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "Tokyo."}, "p": "ab"}),
    ("contentBlockStop", {"contentBlockIndex": 0}),
    (
        "contentBlockStart",
        {"contentBlockIndex": 1, "start": {"toolUse": {"toolUseId": "tooluse_1", "name": "get_weather"}}},
    ),
    ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"toolUse": {"input": '{"location":'}}}),
    ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"toolUse": {"input": '"Tokyo"}'}}}),
    ("contentBlockStop", {"contentBlockIndex": 1}),
    ("messageStop", {"stopReason": "tool_use"}),
    (
        "metadata",
        {"usage": {"inputTokens": 40, "outputTokens": 21, "totalTokens": 61}, "metrics": {"latencyMs": 10}},
    ),
)
FRAMES = converse_streams.stream(*EVENTS)
THROTTLED = converse_streams.stream(("throttlingException", {"message": "Too many requests"}))


# ── convert ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("target", dragoman.formats())
def test_frames_become_what_the_library_makes_of_them(target: str, tmp_path: Path, capsysbinary: Captured) -> None:
    assert main(["convert", "--stream", written(tmp_path, FRAMES, "in.bin"), "--to", target]) == 0
    translator = dragoman.StreamTranslator(source="bedrock-converse", target=target)
    expected = translator.feed(FRAMES) + translator.close()
    output = capsysbinary.readouterr().out
    assert output == expected
    assert calls_of(output, target) == [("get_weather", {"location": "Tokyo"})]
    assert completion_of(output, target).completion.text == "I will ask\nTokyo."


def test_text_becomes_frames_and_text_again_as_a_process(tmp_path: Path) -> None:
    done = run("convert", "--stream", "--to", "bedrock-converse", "-o", "out.bin", stdin=CHAT, cwd=tmp_path)
    assert done.returncode == 0
    frames = (tmp_path / "out.bin").read_bytes()
    names = [name for name, _ in converse_streams.payloads(frames)]
    assert (names[0], names[-2:]) == ("messageStart", ["messageStop", "metadata"])
    back = run("convert", "--stream", "--to", "openai-chat", stdin=frames)
    assert back.returncode == 0
    assert calls_of(back.stdout, "openai-chat") == calls_of(CHAT, "openai-chat")


def test_frames_pass_unchanged_to_their_own_format() -> None:
    done = run("convert", "--stream", "--to", "bedrock-converse", stdin=FRAMES)
    assert (done.returncode, done.stdout, done.stderr) == (0, FRAMES, b"")


@pytest.mark.parametrize("size", [70_000, 3_000_000])
def test_a_frame_may_be_long_and_hold_line_breaks(size: int, tmp_path: Path, capsysbinary: Captured) -> None:
    body = {"contentBlockIndex": 0, "delta": {"text": "x" * size}}
    payload = json.dumps(body, indent=1).encode() + b"\n" * 1000
    frames = converse_streams.split(FRAMES)
    frames[1] = converse_streams.frame("contentBlockDelta", payload)
    assert main(["convert", "--stream", written(tmp_path, b"".join(frames)), "--to", "openai-chat"]) == 0
    text = completion_of(capsysbinary.readouterr().out, "openai-chat").completion.text
    assert text == "x" * size + "Tokyo."


AS_OBJECTS = [{name: payload} for name, payload in EVENTS]
SAVED = {
    "lines": b"".join(json.dumps(event).encode() + b"\n" for event in AS_OBJECTS),
    "an array": json.dumps(AS_OBJECTS, indent=2).encode(),
}


@pytest.mark.parametrize("content", SAVED.values(), ids=SAVED.keys())
def test_events_as_the_sdks_give_them(content: bytes, tmp_path: Path, capsysbinary: Captured) -> None:
    assert main(["convert", "--stream", written(tmp_path, content), "--to", "openai-chat"]) == 0
    assert calls_of(capsysbinary.readouterr().out, "openai-chat") == [("get_weather", {"location": "Tokyo"})]


# ── what is wrong with it ─────────────────────────────────────────────────────────────────────────────────────


def test_a_cut_frame_ends_the_stream_there(tmp_path: Path, capsysbinary: Captured) -> None:
    file = written(tmp_path, b"".join(converse_streams.split(FRAMES)[:3]) + converse_streams.split(FRAMES)[3][:-9])
    assert main(["convert", "--stream", file, "--to", "openai-chat"]) == 4
    captured = capsysbinary.readouterr()
    *_, line = captured.err.decode().splitlines()
    assert line.startswith(f"dragoman: {file}: frame 4: the stream ended early: ")
    assert completion_of(captured.out, "openai-chat").completion.text == "I will ask\nTokyo."


def test_a_frame_that_does_not_fit_its_crc_is_named(tmp_path: Path, capsysbinary: Captured) -> None:
    frames = converse_streams.split(FRAMES)
    frames[2] = frames[2].replace(b"Tokyo", b"Osaka")
    file = written(tmp_path, b"".join(frames))
    assert main(["convert", "--stream", file, "--to", "gemini"]) == 4
    captured = capsysbinary.readouterr()
    assert f"{file}: frame 3: the stream failed (server): bedrock-converse stream: " in captured.err.decode()
    assert b"Osaka" not in captured.out


def test_an_exception_before_anything_else_is_a_stream_that_failed(tmp_path: Path, capsysbinary: Captured) -> None:
    file = written(tmp_path, THROTTLED)
    assert main(["convert", "--stream", file, "--to", "anthropic-messages"]) == 4
    captured = capsysbinary.readouterr()
    assert b"frame 1: the stream failed (rate_limit): Too many requests" in captured.err
    assert b"Too many requests" in captured.out


@promise("law:10-bad-input-good-words")
def test_what_only_looks_like_a_frame_is_of_no_known_format(tmp_path: Path, capsysbinary: Captured) -> None:
    file = written(tmp_path, FRAMES[:8] + b"\0\0\0\0" + FRAMES[12:])
    for command in (("convert", "--to", "openai-chat"), ("inspect",)):
        assert main([*command, "--stream", file]) == 2
        message = capsysbinary.readouterr().err.decode()
        assert message.startswith(f"dragoman: {file}:1: cannot detect the format of this stream")
        assert message[:-1].isprintable()


def test_frames_of_another_service_are_of_no_known_format(tmp_path: Path, capsysbinary: Captured) -> None:
    file = written(tmp_path, converse_streams.stream(("chunk", {"bytes": "e30="})))
    for command in (("convert", "--stream", "--to", "openai-chat"), ("inspect",)):
        assert main([*command, file]) == 2
        assert b"cannot detect the format of this stream" in capsysbinary.readouterr().err


def test_frames_taken_for_bodies_are_hinted_at(tmp_path: Path, capsysbinary: Captured) -> None:
    assert main(["convert", written(tmp_path, FRAMES), "--to", "gemini"]) == 2
    message = capsysbinary.readouterr().err
    assert message.count(b"\n") == 1
    assert b"if it is a recorded stream, add --stream" in message


@promise("law:10-bad-input-good-words")
@given(
    st.builds(damaged, st.just(FRAMES), st.integers(0, len(FRAMES)), st.integers(0, 400), st.binary(max_size=8)),
    st.sampled_from(dragoman.formats()),
)
def test_no_damage_to_frames_crashes_it(content: bytes, target: str) -> None:
    output = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with TemporaryDirectory() as folder, redirect_stderr(output):
        file, out = Path(folder, "in.bin"), Path(folder, "out.bin")
        file.write_bytes(content)
        code = main(["convert", "--stream", str(file), "--to", target, "-o", str(out)])
        assert code in {0, 2, 4}
        assert out.exists() == (code != 2)
        assert main(["inspect", "--stream", str(file)]) == (2 if code == 2 else 0)


# ── inspect ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_frames_are_recognised_and_counted() -> None:
    lines = inspected(FRAMES)
    assert lines[0] == "bedrock-converse stream finished: tool_calls"
    assert lines[1].split() == ["|-", "frame", "1", "start"]
    assert any(line.startswith("|- frames 2-3") and "2 pieces" in line for line in lines)
    assert any(line.startswith("|- frames 5-7") and "get_weather" in line for line in lines)
    assert "|- frame 10    usage input 40, output 21, total 61" in lines


def test_an_exception_alone_is_shown_too() -> None:
    assert inspected(THROTTLED)[0] == "bedrock-converse stream failed: rate_limit"


# ── detection ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_frames_are_recognised_by_the_crc_of_their_prelude() -> None:
    first = converse_streams.split(FRAMES)[0]
    assert detect_stream(FRAMES) == detect_stream(FRAMES, certain=True) == detect_stream(first) == "bedrock-converse"
    assert looks_streamed(first[:12])
    assert detect_stream(first[:-1]) is None
    for place in range(12):
        other = first[:place] + bytes([first[place] ^ 1]) + first[place + 1 :]
        assert not looks_streamed(other)
        assert detect_stream(other) is None
