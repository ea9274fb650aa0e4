"""The work behind `dragoman demo`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from importlib import resources

from dragoman import translate
from dragoman.cli.describe import describe_request
from dragoman.cli.problems import OK
from dragoman.cli.report import SEVERITIES, counted
from dragoman.cli.table import aligned
from dragoman.cli.terminal import Style, Terminal, columns, shortened, stdout, terminal_of
from dragoman.cli.tree import render
from dragoman.codecs.encoded import Encoded
from dragoman.codecs.registry import formats
from dragoman.errors import EncodeError
from dragoman.ir import Audio, Document, Image, Request, ToolCall, ToolResult
from dragoman.ir.values import parse_json
from dragoman.losses import Loss

SOURCE = "openai-chat"

_COLOURS: dict[str, Style] = {"dropped": "red", "degraded": "yellow", "invented": "blue"}
_COUNTED: dict[type, str] = {
    ToolCall: "calls",
    ToolResult: "results",
    Image: "images",
    Document: "documents",
    Audio: "audio",
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


def show() -> int:
    stream = stdout()
    terminal = terminal_of(stream)
    for line in _story(transcript(), terminal):
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


def _crossing(body: bytes, request: Request, target: str, terminal: Terminal) -> Iterator[str]:
    try:
        encoded = translate.translate_request(body, source=SOURCE, target=target)
    except EncodeError as error:
        yield f"{terminal.paint(target, 'cyan')}  {terminal.paint('refused', 'red')}: {error}"
        return
    verdict = "the same JSON again" if parse_json(encoded.json()) == parse_json(body) else counted(encoded.losses)
    yield f"{terminal.paint(target, 'cyan')}  {terminal.paint(verdict, 'red' if encoded.losses else 'green')}"
    yield from _crossed(request, encoded, target, terminal)
    yield from loss_rows(encoded.losses, terminal)


def _crossed(request: Request, encoded: Encoded, target: str, terminal: Terminal) -> Iterator[str]:
    """What a reader of the new body finds there, against what there was."""
    before, after = _inventory(request), _inventory(translate.decode_request(encoded.json(), target))
    found = ", ".join(
        f"{name} {after[name]}" if after[name] == before[name] else f"{name} {after[name]} of {before[name]}"
        for name in before
    )
    yield terminal.paint(f"  there: {found}", "dim")
    headers = "".join(f"  {name}: {value}" for name, value in encoded.headers.items())
    yield terminal.paint(f"  send:  POST {encoded.path}{headers}  ({len(encoded.json())} bytes)", "dim")


def _inventory(request: Request) -> Counter[str]:
    found: Counter[str] = Counter()
    found["messages"] = len(request.messages)
    found["tools"] = len(request.tools)
    for message in request.messages:
        for part in message.parts:
            if type(part) in _COUNTED:
                found[_COUNTED[type(part)]] += 1
    return found


def loss_rows(losses: tuple[Loss, ...], terminal: Terminal) -> Iterator[str]:
    rows = sorted(losses, key=lambda loss: (SEVERITIES.index(loss.severity), loss.path))
    if not rows:
        return
    lines = aligned([(loss.severity, loss.path, f"{loss.what}: {loss.why}") for loss in rows], widest=40)
    for loss, line in zip(rows, lines, strict=True):
        word = terminal.paint(loss.severity, _COLOURS[loss.severity])
        rest = shortened(line[len(loss.severity) :], terminal.width - 2 - columns(loss.severity))
        yield f"  {word}{rest}"
