"""Entry point: parses the command line, runs the command, reports errors in one line."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from itertools import pairwise
from types import ModuleType
from typing import Any, NoReturn

from dragoman.cli import (
    ask,
    batch,
    chat,
    convert,
    demo,
    doctor,
    evaluate,
    fidelity,
    formats,
    inspect,
    keys,
    models,
    run,
    schema,
    serve,
    sim,
    tour,
    usage,
)
from dragoman.cli.problems import (
    BAD_INPUT,
    INTERRUPTED,
    PIPE_CLOSED,
    CommandError,
    InputProblem,
    system_reason,
    unknown,
)

# Command modules import the rest of dragoman only when they run, so that --help is fast.
COMMANDS: dict[str, ModuleType] = {
    "convert": convert,
    "batch": batch,
    "inspect": inspect,
    "formats": formats,
    "schema": schema,
    "fidelity": fidelity,
    "ask": ask,
    "run": run,
    "eval": evaluate,
    "chat": chat,
    "serve": serve,
    "keys": keys,
    "usage": usage,
    "models": models,
    "doctor": doctor,
    "sim": sim,
    "demo": demo,
    "tour": tour,
}
_REPORT_STYLES = frozenset({"json", "table", "none"})


class Parser(argparse.ArgumentParser):
    """Reports errors in one line instead of printing the whole usage."""

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_INPUT, f"{self.prog}: {message} (see: {self.prog} --help)\n")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Refuses unknown arguments here, where the command is known; argparse would leave that to the top parser."""
        namespace, rest = super().parse_known_args(args, namespace)
        if rest and rest[0].startswith("-"):
            from difflib import get_close_matches

            name = rest[0].partition("=")[0]
            options = [option for action in self._actions for option in action.option_strings]
            close = get_close_matches(name, options, n=1)
            self.error(f"unknown option {name}" + (f": did you mean {close[0]}?" if close else ""))
        if rest:
            self.error(f"unexpected argument {rest[0]!r}")
        return namespace, rest


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from dragoman import __version__
        from dragoman.installation import is_compiled

        print(f"dragoman {__version__} ({'compiled' if is_compiled() else 'source'})")
        parser.exit()


def build_parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="dragoman",
        description="The interpreter between LLM APIs.",
        epilog="Options and examples: dragoman COMMAND --help\nNew here? Start with: dragoman demo",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--version",
        action=_Version,
        nargs=0,
        help="show the version, and whether the core is compiled or source, and exit",
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands", parser_class=Parser)
    for name, module in COMMANDS.items():
        command = commands.add_parser(
            name,
            help=module.SUMMARY,
            description=module.DESCRIPTION,
            epilog=module.EXAMPLES,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        module.add_arguments(command)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit code."""
    if sys.stderr is None:  # started with `2>&-`: stderr is closed
        return BAD_INPUT
    if sys.stdout is None:
        print("dragoman: cannot write stdout: it is closed", file=sys.stderr)
        return BAD_INPUT
    try:
        return _run(list(sys.argv[1:] if argv is None else argv))
    except InputProblem as error:
        print(f"dragoman: {error}", file=sys.stderr)
        return error.exit_code if isinstance(error, CommandError) else BAD_INPUT
    except KeyboardInterrupt:
        print("dragoman: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        _discard_stdout()
        return PIPE_CLOSED
    except OSError as error:  # most likely stdout on a full disk
        _discard_stdout()
        print(f"dragoman: cannot write: {system_reason(error)}", file=sys.stderr)
        return BAD_INPUT


def _run(argv: list[str]) -> int:
    if argv and not argv[0].startswith("-") and argv[0] not in COMMANDS:
        raise CommandError(unknown("command", argv[0], tuple(COMMANDS), "dragoman --help lists them"))
    parser = build_parser()
    try:
        arguments = parser.parse_args(_spell_out_report(argv))
    except SystemExit as stop:  # argparse exits after --help and after errors
        return stop.code if isinstance(stop.code, int) else 0
    if arguments.command is None:
        parser.print_help()
        return 0
    code: int = COMMANDS[arguments.command].run(arguments)
    sys.stdout.flush()
    return code


def _spell_out_report(argv: list[str]) -> list[str]:
    """Rewrites `--report FILE` to a table report and a file; argparse would read the file as the report's style."""
    return [
        "--report=table" if word == "--report" and following not in _REPORT_STYLES else word
        for word, following in pairwise([*argv, ""])
    ]


def _discard_stdout() -> None:
    # The reader is gone; avoids an error when the interpreter flushes stdout at exit.
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
