"""The work behind `dragoman demo`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from importlib import resources

from dragoman import translate
from dragoman.cli.problems import OK
from dragoman.cli.report import count_losses
from dragoman.codecs.encoded import Encoded
from dragoman.codecs.registry import formats
from dragoman.errors import EncodeError
from dragoman.inspection.bodies import describe_request
from dragoman.inspection.tree import render
from dragoman.ir import Audio, Document, Image, Request, Text, ToolCall, ToolResult
from dragoman.ir.values import parse_json
from dragoman.loss import SEVERITIES, Loss
from dragoman.terminal import Style, Terminal, align_columns, stdout, terminal_of

SOURCE = "openai-chat"

_COLOURS: dict[str, Style] = {"dropped": "red", "degraded": "yellow", "invented": "blue", "noted": "dim"}
_COUNTED: dict[type, str] = {
    Text: "text",
    Image: "image",
    Document: "document",
    Audio: "audio",
    ToolCall: "call",
    ToolResult: "result",
}
_NEXT = """\
Now with your own:
  dragoman inspect chat.json                          what is in it
  dragoman convert chat.json --to gemini --report     convert it, and list what was lost
  dragoman convert logs.jsonl --to anthropic-messages -o converted.jsonl
  dragoman demo --transcript > chat.json              nothing at hand? take this conversation"""


def transcript() -> bytes:
    return resources.files("dragoman").joinpath("data", "transcript.json").read_bytes()


def print_transcript() -> int:
    sys.stdout.buffer.write(transcript())
    sys.stdout.buffer.flush()
    return OK


def show(*, short: bool = False) -> int:
    stream = stdout()
    terminal = terminal_of(stream)
    render = _short_lines if short else _full_lines
    for line in render(transcript(), terminal):
        print(line, file=stream)
    return OK


def _full_lines(body: bytes, terminal: Terminal) -> Iterator[str]:
    request = translate.decode_request(body, SOURCE)
    yield terminal.paint(f"A conversation with an {SOURCE} model, as dragoman reads it", "bold")
    yield ""
    yield from render(describe_request(request, SOURCE), terminal)
    yield ""
    yield terminal.paint("The same conversation for every API", "bold")
    for target in formats():
        yield ""
        yield from _conversion_lines(body, request, target, terminal)
    yield ""
    yield _NEXT


def _short_lines(body: bytes, terminal: Terminal) -> Iterator[str]:
    request = translate.decode_request(body, SOURCE)
    yield terminal.paint(
        f"A conversation with an {SOURCE} model ({len(request.messages)} messages) for every API", "bold"
    )
    rows = []
    for target in formats():
        encoded = translate.translate_request(body, source=SOURCE, target=target, model="MODEL")
        rows.append((target, _compare(request, encoded, target), count_losses(encoded.losses)))
    for row, line in zip(rows, align_columns(rows), strict=True):
        yield f"  {terminal.paint(row[0], 'cyan')}{line.removeprefix(row[0])}"
    yield terminal.paint("  dragoman demo shows what was lost on the way, and why\n", "dim")


def _conversion_lines(body: bytes, request: Request, target: str, terminal: Terminal) -> Iterator[str]:
    try:
        # Each provider has its own models: to send this for real, pass --model.
        model = None if target == SOURCE else "MODEL"
        encoded = translate.translate_request(body, source=SOURCE, target=target, model=model)
    except EncodeError as error:
        yield f"{terminal.paint(target, 'cyan')}  {terminal.paint('refused', 'red')}: {error}"
        return
    verdict = "the same JSON again" if parse_json(encoded.json()) == parse_json(body) else count_losses(encoded.losses)
    yield f"{terminal.paint(target, 'cyan')}  {terminal.paint(verdict, 'red' if encoded.losses else 'green')}"
    yield from _compare_lines(request, encoded, target, terminal)
    yield from loss_rows(encoded.losses, terminal)


def _compare_lines(request: Request, encoded: Encoded, target: str, terminal: Terminal) -> Iterator[str]:
    """What is in the new body, compared with the original."""
    yield terminal.paint(f"  converted: {_compare(request, encoded, target)}", "dim")
    headers = "".join(f"  {name}: {value}" for name, value in encoded.headers.items())
    yield terminal.paint(f"  send it: POST {encoded.path}{headers}", "dim")


def _compare(request: Request, encoded: Encoded, target: str) -> str:
    before, after = _inventory(request), _inventory(translate.decode_request(encoded.json(), target))
    return ", ".join(_count_kept(after[name], before[name], name) for name in before)


def _count_kept(after: int, before: int, name: str) -> str:
    few = f"{after}" if after == before else f"{after} of {before}"
    return f"{few} {name}" + ("" if before == 1 else "s")


def _inventory(request: Request) -> Counter[str]:
    found: Counter[str] = Counter()
    for message in request.messages:
        found.update(_COUNTED[type(part)] for part in message.parts if type(part) in _COUNTED)
    found["tool"] = len(request.tools)
    return found


def loss_rows(losses: tuple[Loss, ...], terminal: Terminal) -> Iterator[str]:
    rows = sorted(losses, key=lambda loss: (SEVERITIES.index(loss.severity), loss.path))
    if not rows:
        return
    for loss, line in zip(
        rows, align_columns([(loss.severity, loss.path, _explain_loss(loss)) for loss in rows]), strict=True
    ):
        yield f"  {terminal.paint(loss.severity, _COLOURS[loss.severity])}{line.removeprefix(loss.severity)}"


def _explain_loss(loss: Loss) -> str:
    """What was lost and why; for a setting, the path already says what."""
    named = loss.path.endswith("." + loss.what.replace(" ", "_"))
    return loss.why if named else f"{loss.what}: {loss.why}"
