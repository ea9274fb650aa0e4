"""What only a real process shows: help that loads nothing, signals, closed pipes, encodings."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import dragoman
from tests.cli.command import COMMAND, PLAIN, environment, run

LINE = json.dumps(PLAIN).encode() + b"\n"


def test_version() -> None:
    done = run("--version")
    assert (done.returncode, done.stdout) == (0, f"dragoman {dragoman.__version__} (source)\n".encode())


def test_no_command_shows_the_help() -> None:
    done = run()
    assert done.returncode == 0
    assert done.stdout == run("--help").stdout
    for command in (b"convert", b"inspect", b"formats", b"schema", b"demo"):
        assert command in done.stdout


def test_help_of_a_command_has_examples() -> None:
    done = run("convert", "--help")
    assert done.returncode == 0
    assert b"dragoman convert chat.json --to" in done.stdout


def test_help_loads_nothing_it_does_not_need() -> None:
    code = (
        "import sys; from dragoman.cli import main; main(['--help']);"
        "print(sorted(name for name in sys.modules if name.split('.')[0] in {'msgspec', 'asyncio', 'difflib', 'ssl'}"
        " or name.startswith(('dragoman.codecs', 'dragoman.ir', 'dragoman.translate'))), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=environment(), timeout=60, check=True)  # noqa: S603
    assert done.stderr == b"[]\n"


def test_a_reader_that_goes_away_does_not_crash_the_command(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(LINE * 20_000)  # more than any pipe holds
    for command in (("convert", "in.jsonl", "--to", "openai-chat"), ("inspect", "in.jsonl")):
        process = subprocess.Popen(  # noqa: S603
            [*COMMAND, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path, env=environment()
        )
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
        process.stderr.close()
        assert process.wait(60) == 141


def test_an_interruption_leaves_nothing_behind(tmp_path: Path) -> None:
    process = subprocess.Popen(  # noqa: S603
        [*COMMAND, "convert", "--to", "openai-chat", "-o", "out.jsonl"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env=environment(),
    )
    assert process.stdin is not None
    process.stdin.write(LINE * 3)
    process.stdin.flush()
    for _ in range(600):  # it has begun when its temporary file is there
        if list(tmp_path.iterdir()):
            break
        time.sleep(0.05)
    assert [path.suffix for path in tmp_path.iterdir()] == [".part"]
    process.send_signal(signal.SIGINT)
    output, error = process.communicate(timeout=60)
    assert (process.returncode, output, error) == (130, b"", b"dragoman: interrupted\n")
    assert list(tmp_path.iterdir()) == []


def test_bad_input_from_stdin_names_it() -> None:
    done = run("convert", "--to", "openai-chat", stdin=LINE + b"{oops\n")
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"dragoman: stdin:2: ")


def test_strict_ends_with_three() -> None:
    body = json.dumps({**PLAIN, "logit_bias": {"1": 2}}).encode()
    done = run("convert", "--to", "anthropic-messages", "--strict", stdin=body)
    assert (done.returncode, done.stdout) == (3, b"")
    assert b"$.logit_bias" in done.stderr


def test_a_poor_encoding_does_not_end_the_program() -> None:
    body = json.dumps({"messages": [{"role": "user", "content": "天気"}]}).encode()
    done = subprocess.run(  # noqa: S603
        [*COMMAND, "inspect"],
        input=body,
        capture_output=True,
        env=environment(PYTHONIOENCODING="ascii"),
        timeout=60,
        check=False,
    )
    assert done.returncode == 0
    assert rb"\u5929\u6c17" in done.stdout


def test_convert_writes_utf8_whatever_the_encoding() -> None:
    body = json.dumps({"messages": [{"role": "user", "content": "天気"}]}, ensure_ascii=False).encode()
    done = subprocess.run(  # noqa: S603
        [*COMMAND, "convert", "--to", "all", "--report"],
        input=body,
        capture_output=True,
        env=environment(PYTHONIOENCODING="ascii"),
        timeout=60,
        check=False,
    )
    assert done.returncode == 0
    assert "天気".encode() in done.stdout


def shell(line: str) -> subprocess.CompletedProcess[bytes]:
    command = f"{sys.executable} -m dragoman {line}"
    return subprocess.run(["sh", "-c", command], capture_output=True, env=environment(), timeout=60, check=False)  # noqa: S603, S607


def test_closed_and_full_streams_are_reported() -> None:
    closed_input = shell("convert --to gemini <&-")
    assert (closed_input.returncode, closed_input.stderr) == (2, b"dragoman: cannot read stdin: it is closed\n")
    full_disk = shell("schema > /dev/full")
    assert (full_disk.returncode, full_disk.stderr) == (2, b"dragoman: cannot write: No space left on device\n")
    closed_output = shell("schema >&-")
    assert (closed_output.returncode, closed_output.stderr) == (2, b"dragoman: cannot write stdout: it is closed\n")
