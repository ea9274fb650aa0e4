import json
import re

import pytest

import dragoman
from dragoman.cli import main
from dragoman.cli.demo_command import transcript
from dragoman.codecs.registry import codec
from dragoman.ir.schema import schema_text

Captured = pytest.CaptureFixture[bytes]


def test_the_demo_shows_every_format_and_what_to_do_next(capsysbinary: Captured) -> None:
    assert main(["demo"]) == 0
    captured = capsysbinary.readouterr()
    text = captured.out.decode()
    assert captured.err == b""
    assert "\x1b" not in text
    assert re.search(r"^openai-chat  the same JSON again$", text, re.MULTILINE)
    for target in set(dragoman.formats()) - {"openai-chat"}:
        assert re.search(rf"^{target}  .*\d dropped", text, re.MULTILINE), target
        losses = dragoman.translate_request(transcript(), source="openai-chat", target=target, model="MODEL").losses
        for loss in losses:
            assert loss.path in text
    for severity in ("dropped", "degraded", "invented"):
        assert re.search(rf"^  {severity} ", text, re.MULTILINE), severity
    assert "dragoman convert chat.json --to gemini --report" in text


def test_the_short_demo_has_one_line_for_each_format(capsysbinary: Captured) -> None:
    assert main(["demo", "--short"]) == 0
    lines = capsysbinary.readouterr().out.decode().splitlines()
    rows = [line for line in lines if " 2 calls, 2 results" in line]
    assert tuple(row.split()[0] for row in rows) == dragoman.formats()
    assert rows[0].endswith("nothing lost")
    assert all("dropped" in row for row in rows[1:])
    assert len(lines) < 15


def test_the_transcript_has_what_a_demo_needs() -> None:
    """Both kinds of results, parallel calls, a picture, a forced tool, and settings that do not cross."""
    request = dragoman.decode_request(transcript(), "openai-chat")
    results = [result for message in request.messages for result in message.tool_results]
    assert [len(message.tool_calls) for message in request.messages if message.tool_calls] == [2]
    assert [result.is_error for result in results] == [False, True]
    assert request.tool_choice is not None
    assert any(type(part).__name__ == "Image" for message in request.messages for part in message.parts)


@pytest.mark.parametrize("target", dragoman.formats())
def test_what_matters_crosses_to_every_format(target: str) -> None:
    before = dragoman.decode_request(transcript(), "openai-chat")
    there = dragoman.translate_request(transcript(), source="openai-chat", target=target)
    after = dragoman.decode_request(there.json(), target)
    for name in ("tool_calls", "tool_results"):
        count = [sum(len(getattr(message, name)) for message in request.messages) for request in (before, after)]
        assert count[0] == count[1] == 2
    # Where there is no tool choice, the tools that it does not name are left out, which is reported.
    left_out = {int(loss.path[len("$.tools[") : -1]) for loss in there.losses if loss.what.startswith("tool ")}
    kept = [tool.name for index, tool in enumerate(before.tools) if index not in left_out]
    assert [tool.name for tool in after.tools] == kept


def test_the_transcript_can_be_had(capsysbinary: Captured) -> None:
    assert main(["demo", "--transcript"]) == 0
    output = capsysbinary.readouterr().out
    assert output == transcript()
    assert json.loads(output)["model"]


def test_formats_are_listed(capsysbinary: Captured) -> None:
    assert main(["formats"]) == 0
    heading, *listed = capsysbinary.readouterr().out.decode().splitlines()
    assert heading.startswith("format")
    rows = [row for row in listed if row.split()[0] in dragoman.formats(None)]  # tests/records: the other ones
    assert tuple(row.split()[0] for row in rows) == dragoman.formats(None)
    assert "/chat/completions" in rows[0]
    column = heading.index("family")
    families = [codec(name).profile.family for name in dragoman.formats(None)]
    assert [row[column:].split()[0] for row in rows] == families


def test_the_schema_is_printed(capsysbinary: Captured) -> None:
    assert main(["schema"]) == 0
    output = capsysbinary.readouterr().out
    assert output == schema_text()
    assert json.loads(output)["version"] == "1"
