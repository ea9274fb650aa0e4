"""`dragoman convert`: a body of one format as a body of another."""

from __future__ import annotations

import argparse

SUMMARY = "convert requests, responses and recorded streams between formats"
DESCRIPTION = """\
Converts a body (JSON) or many bodies (JSON Lines, one per line) from one format
to another. Unless you name them, the format of the input and its kind (request,
response, error) are detected.

Output appears when the whole input has been converted, so nothing is ever
half-written. Losses are counted in one line on stderr; --report lists what was
lost and why.

--stream converts one recorded stream instead: server-sent events, JSON Lines, a
JSON array or binary event-stream frames, as they were saved. The output is what
the target API would send. A stream that broke off or ended in an error is
converted up to that point; one line on stderr says so, and the exit code is 4.
"""
EXAMPLES = """\
examples:
  dragoman convert chat.json --to anthropic-messages
  dragoman convert --to gemini --report < chat.json > gemini.json
  dragoman convert history.jsonl --to openai-chat --report json -o converted.jsonl 2> losses.jsonl
  dragoman convert chat.json --to all
  curl -sN ... | dragoman convert --stream --to anthropic-messages > answer.sse

exit codes:
  0  converted
  2  bad input, or a bad command line
  3  refused: the target cannot express it, or --strict and something would be lost
  4  --stream, and the stream broke off or ended in an error: converted up to there
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", default="-", metavar="FILE", help="JSON or JSON Lines (default: stdin)")
    parser.add_argument("--stream", action="store_true", help="FILE is one recorded stream")
    parser.add_argument(
        "--from", dest="source", default="auto", metavar="FORMAT", help="source format (default: detected)"
    )
    parser.add_argument("--to", dest="target", required=True, metavar="FORMAT", help="target format, or all")
    parser.add_argument(
        "--kind",
        choices=("auto", "request", "response", "error"),
        default="auto",
        help="kind of body (default: detected)",
    )
    parser.add_argument("--model", metavar="NAME", help="set the model of the request")
    parser.add_argument(
        "--strict", action="store_true", help="write nothing and exit with 3 if there is any loss except notes"
    )
    parser.add_argument(
        "--report",
        choices=("none", "table", "json"),
        default="none",
        metavar="json",
        help="list losses on stderr, as a table; `--report json`: one JSON object per conversion",
    )
    layout = parser.add_mutually_exclusive_group()
    for name, words in (
        ("pretty", "indent the JSON (default on a terminal)"),
        ("compact", "write the JSON on one line (default elsewhere)"),
    ):
        layout.add_argument(f"--{name}", dest="layout", action="store_const", const=name, default="auto", help=words)
    parser.add_argument("-o", "--output", metavar="OUT", help="write to this file, all at once at the end")


def run(arguments: argparse.Namespace) -> int:
    from dragoman.cli.convert_command import Options, convert

    options = Options(**{name: getattr(arguments, name) for name in Options._fields})
    if not arguments.stream:
        return convert(options)

    from dragoman.cli.convert_stream import convert_stream

    return convert_stream(options)
