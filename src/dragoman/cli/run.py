"""`dragoman run`: one task for one model, with tools."""

from __future__ import annotations

import argparse
from pathlib import Path

from dragoman.cli.ask import add_connection
from dragoman.cli.problems import REASONING_HELP, positive, reasoning, seconds

SUMMARY = "let a model do one task, with tools"
DESCRIPTION = """\
Gives a task to a model and runs the tools it calls, until it has an answer. The
answer goes to standard output, everything else to standard error.
"""
EXAMPLES = """\
examples:
  dragoman run -m anthropic/claude-sonnet-5 "What is the weather in Tokyo?" --tools weather.py
  dragoman run -m openai/gpt-5.6 "Tidy up the notes" --mcp mcp.json --session notes
  dragoman run "And now sort them" --session notes      (with DRAGOMAN_MODEL set)
  dragoman run -m ollama/qwen3 "Hello" --json | jq -r 'select(.type == "final").content'

--tools takes a Python file or module: its TOOLS, the functions marked with
@dragoman.tool, or else all public functions. Tools marked
@dragoman.tool(read_only=True) run without asking; for others you are asked.
Without a terminal, such calls do not run, and the command exits with 5 and says
so; --approve all runs them.

exit codes: 0 done, 2 bad input, 4 the provider failed, 5 stopped before
the task was done or a tool was not allowed to run, 130 cancelled by Ctrl-C
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("prompt", metavar="PROMPT", nargs="*", help="the task (default: stdin)")
    parser.add_argument(
        "-m", "--model", metavar="MODEL", help="provider/model or a route (default: $DRAGOMAN_MODEL, or [defaults])"
    )
    parser.add_argument(
        "--tools", action="append", default=[], metavar="FILE", help="Python file or module with tools (repeatable)"
    )
    parser.add_argument(
        "--mcp", type=Path, action="append", default=[], metavar="FILE", help="mcp.json file with MCP servers"
    )
    parser.add_argument("--system", metavar="TEXT", help="system prompt")
    parser.add_argument("--session", metavar="NAME", help="continue this conversation, or start it")
    parser.add_argument(
        "--approve",
        choices=("ask", "all", "none"),
        default="ask",
        help="tools that change something: ask first, run all, or run none (default: %(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="write events to stdout, one JSON object per line")
    parser.add_argument("--expand", action="store_true", help="show the full output of tools")
    parser.add_argument(
        "--max-turns", type=positive, default=200, metavar="N", help="limit of model calls (default: 200)"
    )
    parser.add_argument("--max-tokens", type=positive, metavar="N", help="limit of one answer, in tokens")
    parser.add_argument("--reasoning", type=reasoning, metavar="HOW", help=REASONING_HELP)
    parser.add_argument("--tool-timeout", type=seconds, metavar="SECONDS", help="time limit of each tool call")
    add_connection(parser)


def run(arguments: argparse.Namespace) -> int:
    from dragoman.cli.run_command import run_task

    return run_task(arguments)
