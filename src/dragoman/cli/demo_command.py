"""The work behind `dragoman demo`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from importlib import resources

from dragoman import translate
from dragoman.cli.problems import OK
from dragoman.cli.report import counted
from dragoman.cli.table import aligned
from dragoman.codecs.encoded import Encoded
from dragoman.codecs.registry import formats
from dragoman.errors import EncodeError
from dragoman.inspection.bodies import describe_request
from dragoman.inspection.tree import render
from dragoman.ir import Audio, Document, Image, Request, Text, ToolCall, ToolResult
from dragoman.ir.values import parse_json
from dragoman.loss import SEVERITIES, Loss
from dragoman.terminal import Style, Terminal, stdout, terminal_of

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
  dragoman convert chat.json --to gemini --report     convert it, and tell what did not fit
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
    tell = _summary if short else _story
    for line in tell(transcript(), terminal):
        print(line, file=stream)
    return OK


def _story(body: bytes, terminal: Terminal) -> Iterator[str]:
    request = translate.decode_request(body, SOURCE)
    yield terminal.paint(f"A conversation with an {SOURCE} model, as dragoman reads it", "bold")
    yield ""
    yield from render(describe_request(request, SOURCE), terminal)
    yield ""
    yield terminal.paint("The same conversation for every API", "bold")
    for target in formats():
        yield ""
        yield from _crossing(body, request, target, terminal)
    yield ""
    yield _NEXT


def _summary(body: bytes, terminal: Terminal) -> Iterator[str]:
    request = translate.decode_request(body, SOURCE)
    yield terminal.paint(
        f"A conversation with an {SOURCE} model ({len(request.messages)} messages) for every API", "bold"
    )
    rows = []
    for target in formats():
        encoded = translate.translate_request(body, source=SOURCE, target=target, model="MODEL")
        rows.append((target, _what_crossed(request, encoded, target), counted(encoded.losses)))
    for row, line in zip(rows, aligned(rows), strict=True):
        yield f"  {terminal.paint(row[0], 'cyan')}{line.removeprefix(row[0])}"
    yield terminal.paint("  dragoman demo tells what was lost on the way, and why\n", "dim")


def _crossing(body: bytes, request: Request, target: str, terminal: Terminal) -> Iterator[str]:
    try:
        # No API has the other's models: to really send this, name one of theirs.
        model = None if target == SOURCE else "MODEL"
        encoded = translate.translate_request(body, source=SOURCE, target=target, model=model)
    except EncodeError as error:
        yield f"{terminal.paint(target, 'cyan')}  {terminal.paint('refused', 'red')}: {error}"
        return
    verdict = "the same JSON again" if parse_json(encoded.json()) == parse_json(body) else counted(encoded.losses)
    yield f"{terminal.paint(target, 'cyan')}  {terminal.paint(verdict, 'red' if encoded.losses else 'green')}"
    yield from _crossed(request, encoded, target, terminal)
    yield from loss_rows(encoded.losses, terminal)


def _crossed(request: Request, encoded: Encoded, target: str, terminal: Terminal) -> Iterator[str]:
    """What a reader of the new body finds there, against what there was."""
    yield terminal.paint(f"  crossed: {_what_crossed(request, encoded, target)}", "dim")
    headers = "".join(f"  {name}: {value}" for name, value in encoded.headers.items())
    yield terminal.paint(f"  send it: POST {encoded.path}{headers}", "dim")


def _what_crossed(request: Request, encoded: Encoded, target: str) -> str:
    before, after = _inventory(request), _inventory(translate.decode_request(encoded.json(), target))
    return ", ".join(_crossed_of(after[name], before[name], name) for name in before)


def _crossed_of(after: int, before: int, name: str) -> str:
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
    for loss, line in zip(rows, aligned([(loss.severity, loss.path, _told(loss)) for loss in rows]), strict=True):
        yield f"  {terminal.paint(loss.severity, _COLOURS[loss.severity])}{line.removeprefix(loss.severity)}"


def _told(loss: Loss) -> str:
    """What and why; the path alone already says what a setting of that name is."""
    named = loss.path.endswith("." + loss.what.replace(" ", "_"))
    return loss.why if named else f"{loss.what}: {loss.why}"
