"""`dragoman chat`: several models in one conversation."""

from __future__ import annotations

import argparse
from pathlib import Path

from dragoman.cli.problems import port

SUMMARY = "talk to several models at once, in the terminal or in the browser"
DESCRIPTION = """\
One conversation with several models. A message that starts with @gemini,
@chatgpt, @claude, @ollama or any name you give goes to that model, @all to all
of them at once; other text goes to the default model. `/memo TEXT` stores a note
that models see later.
"""
EXAMPLES = """\
examples:
  dragoman chat --demo                       four simulated models, no keys
  dragoman chat --web --demo                 the same in the browser
  dragoman chat -m claude -m fast=gemini/gemini-3.8-flash --tools tools.py
  echo "@all Why is the sky blue?" | dragoman chat

Keys are those you stored (dragoman keys set PROVIDER) or come from the
environment variables of the providers (see: dragoman doctor);
a model without one says so when it is asked. Conversations are kept under
CHAT_HISTORY_DIR, or the data directory of XDG.
"""
PORT = 8912


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-m", "--model", action="append", default=[], metavar="NAME[=MODEL]", help="a model: name=provider/model"
    )
    parser.add_argument(
        "--default",
        action="append",
        default=[],
        metavar="NAME",
        help="who answers without a mention; none makes it a memo",
    )
    parser.add_argument("--share", action="store_true", help="models see each other's answers")
    parser.add_argument("--system", metavar="TEXT", help="the system prompt")
    parser.add_argument("--tools", action="append", default=[], metavar="FILE", help="tools: a Python file or module")
    parser.add_argument(
        "--mcp", type=Path, action="append", default=[], metavar="FILE", help="MCP servers: an mcp.json"
    )
    parser.add_argument(
        "--approve",
        choices=("ask", "all", "none"),
        default="ask",
        help="calls of tools that change something: ask, run all, or run none (default: %(default)s)",
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="TOML file with defaults, providers and models")
    parser.add_argument("--load", metavar="NAME", help="begin with this conversation, or file")
    parser.add_argument("--store", metavar="WHERE", help="a folder, sqlite:FILE or postgresql://...")
    parser.add_argument("--user", metavar="NAME", help="whose conversations (default: $CHAT_HISTORY_USER_ID)")
    parser.add_argument("--demo", action="store_true", help="simulated models and some tools; no keys, no cost")
    parser.add_argument("--web", action="store_true", help="serve the page instead of talking here")
    parser.add_argument("--host", default="127.0.0.1", help="address of the page (default: this machine only)")
    parser.add_argument("--port", type=port, default=PORT, help="port of the page, 0 for any (default: %(default)s)")
    parser.add_argument(
        "--password-file", type=Path, metavar="FILE", help="the page asks for it; a must beyond loopback"
    )


def run(arguments: argparse.Namespace) -> int:
    from dragoman.cli.chat_command import chat

    return chat(arguments)
