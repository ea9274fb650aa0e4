"""Bad input: one clear line with file, line and path, exit code 2, nothing half-written."""

import io
import json
from contextlib import redirect_stderr
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.cli import main
from dragoman.cli.demo_command import transcript
from tests.cli.command import PLAIN
from tests.support.promises import promise

Captured = pytest.CaptureFixture[bytes]

GOOD = json.dumps(PLAIN)
WRONG = '{"messages": [{"role": "user", "content": "hi"}, {"role": "user", "content": 3}]}'

CASES: dict[str, tuple[bytes, tuple[str, ...]]] = {
    "empty": (b"", ("{file}: empty input",)),
    "blank": (b" \n\n\t\n", ("{file}: empty input",)),
    "not JSON": (b"hello\n", ("{file}:1: ", "expected JSON", "at $")),
    "cut off": (b'{"messages": [\n{"role":\n', ("{file}:2: ", "truncated", "at $")),
    "bad syntax on line 3": (b'{"messages": [\n{"role": "user",\n"content": x}]}', ("{file}:3: ", "at $")),
    "trailing junk": (GOOD.encode() + b" junk", ("{file}:1: ", "expected JSON")),
    "wrong type": (WRONG.encode(), ("{file}:1: openai-chat request: ", "got `int`", "at $.messages[1].content")),
    "wrong type, line 4": (
        b'{"messages": [\n{"role": "user", "content": "hi"},\n{"role": "user",\n"content": 3}]}',
        ("{file}:4: openai-chat request: ", "at $.messages[1].content"),
    ),
    "wrong type in the second document": (
        b'{\n"messages": []}\n\n{\n"messages": [\n3]}',
        ("{file}:6: openai-chat request: ", "at $.messages[0]"),
    ),
    "bad line 2": (f"{GOOD}\n{WRONG}\n{GOOD}\n".encode(), ("{file}:2: ", "at $.messages[1].content")),
    "broken line 1": (f'{{"messages": [3\n{GOOD}\n'.encode(), ("{file}:2: ", "expected JSON")),
    "a string cut off in line 2": (f'{GOOD}\n{{"messages": ["ab\n{GOOD}\n'.encode(), ("{file}:2: ", "expected JSON")),
    "a list cut off in line 2": (
        f'{GOOD}\n{{"messages": [3\n{GOOD}\n'.encode(),
        ("{file}:3: ", "expected JSON", "(in the document that begins on line 2)"),
    ),
    "broken line 3 after a blank": (f"{GOOD}\n\n{{oops\n".encode(), ("{file}:3: ", "expected JSON")),
    "not UTF-8": (b'{"messages": [\n"\xe9"]}', ("{file}:2: ", "expected UTF-8 text, got the byte 0xe9 (byte ")),
    "not UTF-8 in line 2": (GOOD.encode() + b'\n{"messages": ["\xe9"]}\n', ("{file}:2: ", "expected UTF-8 text")),
    "UTF-16": (GOOD.encode("utf-16"), ("{file}:1: expected UTF-8 text, got UTF-16",)),
    "a lone surrogate": (b'{"messages": [{"role": "user", "content": "\\ud800 and on"}]}', ("{file}:1: ", "surrogate")),
    "too deep": (b'{"messages": ' + b"[" * 100_000, ("{file}:1: ", "nesting too deep")),
    "no format": (b'{"hello": "world"}', ("{file}:1: cannot detect what this body is", "--from")),
    "a number": (b"3", ("{file}:1: cannot detect what this body is",)),
    "control characters": (b'{"messages": [{"role": "\\u001b[31m\\nx"}]}', ("{file}:1: ", "at $.messages[0].role")),
}


@promise("law:10-bad-input-good-words")
@pytest.mark.parametrize(("content", "words"), CASES.values(), ids=CASES.keys())
def test_one_clear_line_and_nothing_written(
    content: bytes, words: tuple[str, ...], tmp_path: Path, capsysbinary: Captured
) -> None:
    file, out = tmp_path / "in.json", tmp_path / "out.json"
    file.write_bytes(content)
    for output in ((), ("-o", str(out))):
        assert main(["convert", str(file), "--to", "openai-chat", "--report", *output]) == 2
        captured = capsysbinary.readouterr()
        message = captured.err.decode()
        assert captured.out == b""
        assert message.startswith("dragoman: ")
        assert message.endswith("\n")
        assert message[:-1].isprintable(), "one line, nothing a terminal would obey"
        for word in words:
            assert word.format(file=file) in message
    assert [path.name for path in tmp_path.iterdir()] == ["in.json"]


@pytest.mark.parametrize(("content", "words"), CASES.values(), ids=CASES.keys())
def test_inspect_says_the_same(content: bytes, words: tuple[str, ...], tmp_path: Path, capsysbinary: Captured) -> None:
    file = tmp_path / "in.json"
    file.write_bytes(content)
    assert main(["inspect", str(file)]) == 2
    message = capsysbinary.readouterr().err.decode()
    assert message[:-1].isprintable()
    for word in words:
        assert word.format(file=file) in message


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("convert", "missing.json", "--to", "gemini"), "cannot read missing.json: No such file or directory"),
        (("convert", ".", "--to", "gemini"), "cannot read .: Is a directory"),
        (("convert", "\0", "--to", "gemini"), "cannot read"),
        (("convert", "in.json", "--to", "gemini", "-o", "."), "cannot write .: it is a directory"),
        (("convert", "in.json", "--to", "gemini", "-o", "no/out.json"), "cannot write no/out.json: No such file"),
        (("convert", "in.json", "--to", "gemni"), "unknown format 'gemni': did you mean 'gemini'?"),
        (("convert", "in.json", "--to", "openai"), "did you mean 'openai-chat'?"),
        (("convert", "in.json", "--to", "Anthropic_Messages"), "did you mean 'anthropic-messages'?"),
        (("convert", "in.json", "--to", "zzz"), "unknown format 'zzz' (known: all, openai-chat"),
        (("convert", "in.json", "--to", "zzz"), "gemini-interactions, …; dragoman formats lists them)"),
        (("convert", "in.json", "--to", "claude"), "unknown format 'claude': did you mean 'anthropic-messages'?"),
        (("convert", "in.json", "--to", "Google"), "did you mean 'gemini'?"),
        (("convert", "in.json", "--to", "auto"), "unknown format 'auto'"),
        (("convert", "in.json", "--from", "all", "--to", "gemini"), "unknown format 'all'"),
        (("inspect", "in.json", "--from", "vertx"), "did you mean 'vertex'?"),
        (("inspect", "missing.json"), "cannot read missing.json"),
        (
            ("convert", "in.json", "--to", "gemini", "--repotr"),
            "dragoman convert: unknown option --repotr: did you mean --report? (see: dragoman convert --help)",
        ),
        (("batch", "convert", "in.json", "--sampel=1", "--to", "gemini", "-o", "out"), "did you mean --sample?"),
        (("inspect", "in.json", "--zzz"), "dragoman inspect: unknown option --zzz (see: dragoman inspect --help)"),
        (("--verison",), "dragoman: unknown option --verison: did you mean --version?"),
        (("inspect", "in.json", "in.json"), "dragoman inspect: unexpected argument 'in.json' (see:"),
        (("keys", "set", "openai", "sk-secret"), "keys set asks for the key, or reads it from a pipe"),
        (("keys", "list", "alice", "bob"), "unexpected argument 'bob' (see: dragoman keys --help)"),
        (("serve", "--workers", "0"), "'0' is not a number of at least 1"),
    ],
)
def test_what_cannot_be_read_written_or_named(
    arguments: tuple[str, ...], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: Captured
) -> None:
    (tmp_path / "in.json").write_text(GOOD)
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    captured = capsysbinary.readouterr()
    assert captured.out == b""
    assert captured.err.count(b"\n") == 1
    assert words in captured.err.decode()
    assert [path.name for path in tmp_path.iterdir()] == ["in.json"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("convret",),
        ("convert",),
        ("convert", "--to"),
        ("convert", "--to", "gemini", "--kind", "letter"),
        ("convert", "--to", "gemini", "--nonsense"),
        ("convert", "--to", "gemini", "--pretty", "--compact"),
        ("convert", "a", "b", "--to", "gemini"),
        ("schema", "extra"),
    ],
)
def test_a_command_line_that_is_not_understood(arguments: tuple[str, ...], capsysbinary: Captured) -> None:
    assert main(arguments) == 2
    captured = capsysbinary.readouterr()
    assert captured.out == b""
    assert captured.err.startswith(b"dragoman")
    assert captured.err.count(b"\n") == 1
    assert b"--help" in captured.err


def damaged(body: bytes, start: int, length: int, instead: bytes) -> bytes:
    return body[:start] + instead + body[start + length :]


BODY = transcript()
DAMAGED = st.builds(damaged, st.just(BODY), st.integers(0, len(BODY)), st.integers(0, 400), st.binary(max_size=8))


@promise("law:10-bad-input-good-words")
@given(st.binary() | DAMAGED, st.sampled_from(["all", "gemini"]))
def test_no_bytes_whatever_crash_it(content: bytes, target: str) -> None:
    stdout = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with TemporaryDirectory() as folder, redirect_stderr(stdout):
        file, out = Path(folder, "in.json"), Path(folder, "out.json")
        file.write_bytes(content)
        code = main(["convert", str(file), "--to", target, "-o", str(out)])
        assert code in {0, 2, 3}
        assert out.exists() == (code == 0 or (code == 3 and target == "all"))
        stdout.flush()
        if code == 2:
            assert stdout.buffer.getvalue().count(b"\n") == 1
