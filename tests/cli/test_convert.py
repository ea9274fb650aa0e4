import json
from pathlib import Path
from typing import Any

import pytest

import dragoman
from dragoman.cli import main
from tests.cli.command import PLAIN, run
from tests.support.promises import promise

Captured = pytest.CaptureFixture[bytes]

LOSSY = {**PLAIN, "logit_bias": {"1": 2}}
CLAUDE = {"model": "claude-x", "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]}
ANSWER = {
    "id": "c",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "ho"}, "finish_reason": "stop"}],
}
ERROR = {"error": {"message": "slow down", "type": "rate_limit_error", "param": None, "code": None}}


def written(folder: Path, *bodies: Any, name: str = "in.json") -> str:
    path = folder / name
    path.write_text("\n".join(json.dumps(body) for body in bodies), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("target", dragoman.formats())
def test_a_request_becomes_what_the_library_makes_of_it(target: str, tmp_path: Path, capsysbinary: Captured) -> None:
    assert main(["convert", written(tmp_path, PLAIN), "--to", target]) == 0
    expected = dragoman.translate_request(PLAIN, source="openai-chat", target=target)
    assert capsysbinary.readouterr().out == expected.json() + b"\n"


def test_responses_and_errors_are_recognised(tmp_path: Path, capsysbinary: Captured) -> None:
    file = written(tmp_path, ANSWER, ERROR, PLAIN)
    assert main(["convert", file, "--to", "anthropic-messages"]) == 0
    answer, error, request = map(json.loads, capsysbinary.readouterr().out.splitlines())
    assert answer["type"] == "message"
    assert error["type"] == "error"
    assert request["messages"] == [{"role": "user", "content": "hi"}]


def test_a_named_format_beats_the_detected_one(tmp_path: Path, capsysbinary: Captured) -> None:
    file = written(tmp_path, PLAIN)
    assert main(["convert", file, "--from", "gemini", "--to", "openai-chat"]) == 2
    assert b"gemini/vertex request: " in capsysbinary.readouterr().err
    assert main(["convert", file, "--to", "openai-chat", "--kind", "response"]) == 2
    assert b"openai-chat response: " in capsysbinary.readouterr().err


def test_the_model_can_be_replaced(tmp_path: Path, capsysbinary: Captured) -> None:
    assert main(["convert", written(tmp_path, PLAIN), "--to", "openai-chat", "--model", "other"]) == 0
    assert json.loads(capsysbinary.readouterr().out)["model"] == "other"


@pytest.mark.parametrize(("option", "lines"), [("--pretty", 9), ("--compact", 1)])
def test_layout(option: str, lines: int, tmp_path: Path, capsysbinary: Captured) -> None:
    assert main(["convert", written(tmp_path, PLAIN), "--to", "openai-chat", option]) == 0
    output = capsysbinary.readouterr().out
    assert json.loads(output) == PLAIN
    assert output.count(b"\n") == lines


def test_compact_is_one_line_even_where_exact_json_has_line_breaks(tmp_path: Path, capsysbinary: Captured) -> None:
    (tmp_path / "in.json").write_text(
        '{"messages": [{"role": "user", "content": "hi"}], "metadata": {\n  "a": 1.0,\n  "a": 1e400\n}}'
    )
    assert main(["convert", str(tmp_path / "in.json"), "--to", "openai-chat"]) == 0
    assert capsysbinary.readouterr().out == (
        b'{"messages":[{"role":"user","content":"hi"}],"metadata":{"a":1.0,"a":1e400}}\n'
    )


# ── JSON Lines ────────────────────────────────────────────────────────────────────────────────────────────────


def test_lines_in_lines_out(tmp_path: Path, capsysbinary: Captured) -> None:
    file = written(tmp_path, PLAIN, CLAUDE, PLAIN)
    assert main(["convert", file, "--to", "openai-chat"]) == 0
    models = [json.loads(line)["model"] for line in capsysbinary.readouterr().out.splitlines()]
    assert models == ["m", "claude-x", "m"]


def test_documents_over_many_lines_become_lines(tmp_path: Path, capsysbinary: Captured) -> None:
    (tmp_path / "in.json").write_text(json.dumps(PLAIN, indent=2) + "\n" + json.dumps(CLAUDE, indent=2))
    assert main(["convert", str(tmp_path / "in.json"), "--to", "openai-chat", "--pretty"]) == 0
    assert len(capsysbinary.readouterr().out.splitlines()) == 2


def test_all_formats_of_a_line_are_one_object(tmp_path: Path, capsysbinary: Captured) -> None:
    assert main(["convert", written(tmp_path, PLAIN, PLAIN), "--to", "all"]) == 0
    first, second = map(json.loads, capsysbinary.readouterr().out.splitlines())
    assert first == second
    assert tuple(first) == dragoman.formats()
    assert first["openai-chat"] == PLAIN


# ── losses ────────────────────────────────────────────────────────────────────────────────────────────────────


@promise("law:2-nothing-vanishes")
def test_without_a_report_one_line_says_that_something_was_lost(tmp_path: Path, capsysbinary: Captured) -> None:
    assert main(["convert", written(tmp_path, LOSSY), "--to", "gemini"]) == 0
    error = capsysbinary.readouterr().err
    assert error.count(b"\n") == 1
    assert b"1 dropped" in error
    assert b"--report" in error


def test_without_losses_nothing_is_printed(tmp_path: Path, capsysbinary: Captured) -> None:
    assert main(["convert", written(tmp_path, PLAIN), "--to", "openai-chat"]) == 0
    assert main(["convert", written(tmp_path, PLAIN), "--to", "openai-chat", "--strict"]) == 0
    assert capsysbinary.readouterr().err == b""


@pytest.mark.parametrize("order", ["before", "after"])
def test_a_report_is_a_table(order: str, tmp_path: Path, capsysbinary: Captured) -> None:
    file = written(tmp_path, LOSSY)
    words = ["--report", file] if order == "before" else [file, "--report"]
    assert main(["convert", "--to", "gemini", *words]) == 0
    title, row = capsysbinary.readouterr().err.decode().splitlines()
    assert title == "openai-chat → gemini (request): 1 dropped"
    assert row.split()[:3] == ["dropped", "$.logit_bias", "logit_bias"]


def test_a_report_in_json_is_one_object(tmp_path: Path, capsysbinary: Captured) -> None:
    assert main(["convert", "--to", "gemini", "--report", "json", written(tmp_path, LOSSY)]) == 0
    report = json.loads(capsysbinary.readouterr().err)
    assert (report["from"], report["to"], report["kind"]) == ("openai-chat", "gemini", "request")
    assert report["send_to"] == dragoman.translate_request(PLAIN, source="openai-chat", target="gemini").path
    assert [(loss["path"], loss["severity"]) for loss in report["losses"]] == [("$.logit_bias", "dropped")]
    assert "line" not in report
    assert main(["convert", "--to", "anthropic-messages", "--report", "json", written(tmp_path, PLAIN)]) == 0
    assert "anthropic-version" in json.loads(capsysbinary.readouterr().err)["headers"]


def test_a_report_on_lines_names_each_line(tmp_path: Path, capsysbinary: Captured) -> None:
    (tmp_path / "in.jsonl").write_text(f"{json.dumps(LOSSY)}\n\n{json.dumps(PLAIN)}\n{json.dumps(LOSSY)}\n")
    assert main(["convert", str(tmp_path / "in.jsonl"), "--to", "gemini", "--report", "json"]) == 0
    reports = [json.loads(line) for line in capsysbinary.readouterr().err.splitlines()]
    assert [(report["line"], len(report["losses"])) for report in reports] == [(1, 1), (3, 0), (4, 1)]


def test_a_table_on_lines_counts_what_repeats(tmp_path: Path, capsysbinary: Captured) -> None:
    file = written(tmp_path, LOSSY, PLAIN, LOSSY, {**PLAIN, "prediction": {"type": "content", "content": "x"}})
    assert main(["convert", file, "--to", "gemini", "--report"]) == 0
    title, *rows = capsysbinary.readouterr().err.decode().splitlines()
    assert title == "→ gemini, 4 lines: 3 dropped"
    assert rows[0].startswith("2 times from line 1")
    assert rows[1].startswith("line 4")


@promise("law:2-nothing-vanishes")
@pytest.mark.parametrize("bodies", [(LOSSY,), (PLAIN, LOSSY, LOSSY)], ids=["JSON", "JSON Lines"])
def test_strict_refuses_all_of_it(bodies: tuple[Any, ...], tmp_path: Path, capsysbinary: Captured) -> None:
    file, out = written(tmp_path, *bodies), tmp_path / "out.json"
    out.write_text("before")
    assert main(["convert", file, "--to", "gemini", "--strict", "-o", str(out)]) == 3
    captured = capsysbinary.readouterr()
    assert captured.out == b""
    assert b"$.logit_bias" in captured.err
    assert out.read_text() == "before"


def test_strict_reports_the_losses_of_every_line(tmp_path: Path, capsysbinary: Captured) -> None:
    file = written(tmp_path, LOSSY, PLAIN, {**PLAIN, "prediction": {"type": "content", "content": "x"}})
    assert main(["convert", file, "--to", "gemini", "--strict", "--report", "json"]) == 3
    reports = [json.loads(line) for line in capsysbinary.readouterr().err.splitlines()]
    assert [len(report["losses"]) for report in reports] == [1, 0, 1]


# ── side by side ──────────────────────────────────────────────────────────────────────────────────────────────


def sections(output: bytes) -> dict[str, tuple[str, str]]:
    found = {}
    for section in ("\n" + output.decode()).split("\n== ")[1:]:
        title, _, body = section.partition("\n")
        name, _, verdict = title.partition(" == ")
        found[name] = (verdict, body)
    return found


def test_all_formats_side_by_side(tmp_path: Path, capsysbinary: Captured) -> None:
    assert main(["convert", written(tmp_path, LOSSY), "--to", "all"]) == 0
    found = sections(capsysbinary.readouterr().out)
    assert tuple(found) == dragoman.formats()
    assert found["openai-chat"][0] == "nothing lost"
    assert found["vertex"][0] == "1 dropped"
    for target, (_, body) in found.items():
        expected = dragoman.translate_request(LOSSY, source="openai-chat", target=target)
        assert json.loads(body) == expected.body
        assert body.count("\n") > 5


# Every reference leads to itself: there is no schema to write out in its place.
LOOP = {"$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"}
REFUSED = {**PLAIN, "tools": [{"type": "function", "function": {"name": "f", "parameters": LOOP}}]}


def test_a_target_that_refuses_does_not_hide_the_others(tmp_path: Path, capsysbinary: Captured) -> None:
    assert main(["convert", written(tmp_path, REFUSED), "--to", "all", "--report", "json"]) == 3
    captured = capsysbinary.readouterr()
    found = sections(captured.out)
    assert tuple(found) == dragoman.formats()
    assert found["anthropic-messages"][0].startswith("refused: anthropic-messages: ")
    assert json.loads(found["openai-chat"][1]) == REFUSED
    reports = {report["to"]: report for report in map(json.loads, captured.err.splitlines())}
    assert "refused" in reports["anthropic-messages"]
    assert "refused" not in reports["openai-chat"]


@pytest.mark.parametrize("bodies", [(REFUSED,), (PLAIN, REFUSED)], ids=["JSON", "JSON Lines"])
def test_a_refusal_names_its_line_and_does_not_count_as_bad_input(
    bodies: tuple[Any, ...], tmp_path: Path, capsysbinary: Captured
) -> None:
    file = written(tmp_path, *bodies)
    assert main(["convert", file, "--to", "anthropic-messages"]) == 3
    captured = capsysbinary.readouterr()
    assert captured.out == b""
    assert captured.err.decode().startswith(f"dragoman: {file}:{len(bodies)}: anthropic-messages: ")
    assert captured.err.count(b"\n") == 1


# ── output ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_output_to_a_file_replaces_it_and_keeps_its_permissions(tmp_path: Path, capsysbinary: Captured) -> None:
    out = tmp_path / "out.json"
    out.write_text("something much longer than what is written now " * 50)
    out.chmod(0o640)
    assert main(["convert", written(tmp_path, PLAIN), "--to", "openai-chat", "-o", str(out)]) == 0
    assert json.loads(out.read_bytes()) == PLAIN
    assert out.stat().st_mode & 0o777 == 0o640
    assert capsysbinary.readouterr().out == b""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.json", "out.json"]


def test_a_file_can_be_converted_in_place(tmp_path: Path) -> None:
    file = written(tmp_path, PLAIN, PLAIN)
    assert main(["convert", file, "--to", "anthropic-messages", "-o", file]) == 0
    assert main(["convert", file, "--from", "anthropic-messages", "--to", "openai-chat", "-o", file]) == 0
    lines = Path(file).read_bytes().splitlines()
    assert [json.loads(line)["messages"] for line in lines] == [PLAIN["messages"]] * 2


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.json").write_text("x")
    (tmp_path / "link.json").symlink_to("real.json")
    file = written(tmp_path, PLAIN)
    assert main(["convert", file, "--to", "openai-chat", "-o", str(tmp_path / "link.json")]) == 0
    assert (tmp_path / "link.json").is_symlink()
    assert json.loads((tmp_path / "real.json").read_bytes()) == PLAIN


def test_a_device_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    assert main(["convert", written(tmp_path, PLAIN), "--to", "openai-chat", "-o", "/dev/null"]) == 0
    assert Path("/dev/null").is_char_device()


# ── as a process ──────────────────────────────────────────────────────────────────────────────────────────────


def test_stdin_to_stdout() -> None:
    for arguments in (("convert",), ("convert", "-")):
        done = run(*arguments, "--to", "openai-chat", stdin=json.dumps(PLAIN).encode())
        assert (done.returncode, json.loads(done.stdout), done.stderr) == (0, PLAIN, b"")


def test_the_worked_example_there_and_back() -> None:
    body = {
        "model": "m",
        "messages": [
            {"role": "user", "content": "Weather in Tokyo?"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "call_123",
                        "type": "function",
                        "function": {"name": "get_weather", "arguments": '{"location":"Tokyo"}'},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "call_123", "content": '{"temp":22,"condition":"sunny"}'},
        ],
        "tools": [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}],
        "max_tokens": 100,
    }
    there = run("convert", "--to", "anthropic-messages", stdin=json.dumps(body).encode())
    assert there.returncode == 0
    back = run("convert", "--to", "openai-chat", stdin=there.stdout)
    assert back.returncode == 0
    call = json.loads(back.stdout)["messages"][1]["tool_calls"][0]
    assert call["id"] == "call_123"
    assert json.loads(call["function"]["arguments"]) == {"location": "Tokyo"}
