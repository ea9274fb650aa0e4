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
environment variables of the providers (see: dragoman doctor).
A model without a key says so when it is asked. Conversations are kept under
CHAT_HISTORY_DIR, or the XDG data directory.
"""
PORT = 8912


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-m",
        "--model",
        action="append",
        default=[],
        metavar="NAME[=MODEL]",
        help="add a model: name=provider/model, or a known name (repeatable)",
    )
    parser.add_argument(
        "--default",
        action="append",
        default=[],
        metavar="NAME",
        help="model for text without a mention; none stores it as a memo",
    )
    parser.add_argument("--share", action="store_true", help="let models see each other's answers")
    parser.add_argument("--system", metavar="TEXT", help="the system prompt")
    parser.add_argument("--tools", action="append", default=[], metavar="FILE", help="Python file or module with tools")
    parser.add_argument(
        "--mcp", type=Path, action="append", default=[], metavar="FILE", help="mcp.json file with MCP servers"
    )
    parser.add_argument(
        "--approve",
        choices=("ask", "all", "none"),
        default="ask",
        help="tools that change something: ask first, run all, or run none (default: %(default)s)",
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="TOML file with defaults, providers and models")
    parser.add_argument("--load", metavar="NAME", help="continue a saved conversation or a .json file")
    parser.add_argument(
        "--store", metavar="WHERE", help="where to keep conversations: a folder, sqlite:FILE or postgresql://..."
    )
    parser.add_argument(
        "--user", metavar="NAME", help="user who owns the conversations (default: $CHAT_HISTORY_USER_ID)"
    )
    parser.add_argument("--demo", action="store_true", help="simulated models and some tools; no keys, no cost")
    parser.add_argument("--web", action="store_true", help="serve a web page instead of chatting in the terminal")
    parser.add_argument("--host", default="127.0.0.1", help="address of the page (default: this machine only)")
    parser.add_argument("--port", type=port, default=PORT, help="port of the page, 0 for any (default: %(default)s)")
    parser.add_argument(
        "--password-file",
        type=Path,
        metavar="FILE",
        help="password of the page; required with --host beyond this machine",
    )


def run(arguments: argparse.Namespace) -> int:
    from dragoman.cli.chat_command import chat

    return chat(arguments)
