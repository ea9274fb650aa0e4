"""`dragoman ask`: one question to one model."""

from __future__ import annotations

import argparse
from pathlib import Path

from dragoman.cli.problems import REASONING_HELP, positive, reasoning, seconds

SUMMARY = "ask a model one question"
DESCRIPTION = """\
Sends one question to a model and prints the answer as it comes. The key is the
one you stored (dragoman keys set PROVIDER), or comes from the provider's
environment variable. Tool calls are shown, not run.

Without MODEL the default one is asked: $DRAGOMAN_MODEL, or model under
[defaults] in dragoman.toml. The first word is a model if it has a slash and no
blanks, or is the name of a route.
"""
EXAMPLES = """\
examples:
  dragoman ask anthropic/claude-sonnet-5 "Why is the sky blue?"
  dragoman ask openai/gpt-5.6 "Weather in Tokyo?" --tools tools.py
  dragoman ask "Why is the sky blue?"        (with a default model)
  git diff | dragoman ask gemini/gemini-3.8-flash --system "Review this change."
  dragoman ask ollama/qwen3 "Hello" --curl

offline, with `dragoman sim` running:
  dragoman ask anthropic/claude-sonnet-5 "Hello" --base-url http://127.0.0.1:8911

--tools takes a Python file or module, as `dragoman run` does (its TOOLS, the
functions marked with @dragoman.tool, or all public functions), and may be repeated;
or a JSON list of definitions: {"name", "description", "parameters"}.

exit codes: 0 answered, 2 bad input, 4 the provider failed
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("words", metavar="[MODEL] PROMPT", nargs="*", help="the question (default: stdin)")
    parser.add_argument("-m", "--model", metavar="MODEL", help="provider/model, or a route from the configuration")
    parser.add_argument("--system", metavar="TEXT", help="system prompt")
    parser.add_argument(
        "--tools",
        action="append",
        default=[],
        metavar="FILE",
        help="tools that the model may call: a .py or .json file, or a module",
    )
    parser.add_argument("--tool-choice", metavar="CHOICE", help="auto, none, required, or the name of a tool")
    parser.add_argument("--reasoning", type=reasoning, metavar="HOW", help=REASONING_HELP)
    parser.add_argument("--max-tokens", type=positive, metavar="N", help="limit of the answer, in tokens")
    parser.add_argument("--temperature", type=float, metavar="T", help="sampling temperature (default: the model's)")
    parser.add_argument("--timeout", type=seconds, metavar="SECONDS", help="time limit for the whole request")
    parser.add_argument("--no-stream", action="store_true", help="print the answer when it is complete")
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--raw", action="store_true", help="show the HTTP request and response, without keys")
    shown.add_argument("--curl", action="store_true", help="print the request as a curl command instead of sending it")
    add_connection(parser)


def add_connection(parser: argparse.ArgumentParser) -> None:
    """Adds the options of all commands that connect to a provider."""
    add = parser.add_argument_group("connection").add_argument
    add("--config", type=Path, metavar="FILE", help="TOML file with defaults, providers and routes")
    add("--base-url", metavar="URL", help="use this URL instead of the provider's")
    add("--header", action="append", default=[], metavar="NAME:VALUE", help="add a header to requests (repeatable)")
    add("--region", metavar="NAME", help="AWS region (Bedrock)")
    add("--project", metavar="ID", help="Google Cloud project (Vertex AI)")
    add("--location", metavar="NAME", help="Google Cloud location (Vertex AI)")
    add("--api-version", metavar="DATE", help="version of the API (Azure)")


def run(arguments: argparse.Namespace) -> int:
    from dragoman.cli.ask_command import ask

    return ask(arguments)
