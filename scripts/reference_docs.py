"""Write docs/configuration.md and docs/commands.md from the code: `python scripts/reference_docs.py`.

The first comes from the tables of gateway/config.py and their docstrings, the second from the command line's parsers.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import json
import typing
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import NODEFAULT, structs

from dragoman.cli.main import COMMANDS, Parser
from dragoman.gateway import config

DOCS = Path(__file__).resolve().parent.parent / "docs"
_WIDTH = 100
_SECTIONS: tuple[tuple[str, type[msgspec.Struct]], ...] = (
    ("[server]", config.Server),
    ("[log]", config.LogTable),
    ("[telemetry]", config.TelemetryTable),
    ("[cache]", config.CacheTable),
    ("[mcp]", config.McpTable),
    ("[mcp.servers.NAME]", config.McpServerTable),
    ("[providers.NAME]", config.ProviderTable),
    ("[providers.NAME.timeouts]", config.TimeLimits),
    ("[providers.NAME.breaker]", config.BreakerTable),
    ("[routes.NAME]", config.RouteTable),
    ("an entry of `to`", config.Weighted),
    ("[prices.NAME]", config.Price),
    ("[defaults]", config.DefaultsTable),
    ("[chat]", config.ChatTable),
)
_CONFIGURATION = """\
# Configuration

<!-- Written by `python scripts/reference_docs.py` from `src/dragoman/gateway/config.py`; do not edit. -->

`dragoman serve`, `ask`, `run`, `chat`, `keys` and `usage` read one TOML file: the one that `--config` or
`$DRAGOMAN_CONFIG` names, else `dragoman.toml` of the current folder, else `~/.config/dragoman/dragoman.toml`.

`ask`, `run` and `chat` use `[defaults]`, `[chat]`, `[providers]` and `[routes]` (the first target of a route). A
`dragoman.toml` that was found in the current folder may come from others. So your own keys are not sent to its
`base_url`, unless that is on this machine or you name the file with `--config`.

`dragoman serve --check` checks the file and contacts every upstream. Unknown settings and wrong types are errors with
line and column. `SIGHUP` makes `serve` read the file again. An example with comments:
[the gateway](gateway.md#configuration).
"""
_ENVIRONMENT = """\
## Environment variables

Keys and URLs of providers have the variables of the vendors' SDKs: see [providers](providers.md#all-of-them).

| variable | |
|---|---|
| `DRAGOMAN_CONFIG` | The configuration file, unless `--config` names one. |
| `DRAGOMAN_MODEL` | The default model of `ask` and `run`: `provider/model` or a route. |
| `DRAGOMAN_PAGE_PASSWORD` | The administrator's password for the gateway's page. |
| `DRAGOMAN_CHAT_PASSWORD` | The password of `dragoman chat --web`, unless `--password-file` names a file. |
| `DRAGOMAN_KEYRING` | `off` keeps stored keys in a file, even if there is a keyring. |
| `DRAGOMAN_CATALOGUE` | Files with further rows of the catalogue of models, separated like the entries of `PATH`. |
| `DRAGOMAN_LOCAL_CONTEXT`, `DRAGOMAN_LOCAL_THREADS` | Context window and threads of `local/…`. |
| `CHAT_MODEL_NAME` | The model of a default participant of the chat, such as `CHAT_MODEL_CLAUDE`. |
| `CHAT_CONTEXT`, `CHAT_CONTEXT_NAME` | The context window of all participants, or of one. |
| `CHAT_HISTORY_DIR`, `CHAT_HISTORY_USER_ID` | The folder of conversations, and the user who owns them. |
| `OTEL_…` | See [monitoring](gateway.md#monitoring). |
| `NO_COLOR`, `FORCE_COLOR` | Turn colours off, or on in a pipe. |
| `XDG_CONFIG_HOME`, `XDG_DATA_HOME` | Replace `~/.config` and `~/.local/share`. |
"""
_COMMANDS = """\
# Commands

<!-- Written by `python scripts/reference_docs.py` from the command line's own help; do not edit. -->

Every command with its options, as `dragoman COMMAND --help` prints them.
"""


def described(table: type[msgspec.Struct]) -> dict[str, str]:
    """Field -> the docstring below it."""
    body = ast.parse(inspect.getsource(table)).body[0]
    assert isinstance(body, ast.ClassDef)  # noqa: S101 - the source of a class
    found: dict[str, str] = {}
    for statement, following in zip(body.body, [*body.body[1:], None], strict=True):
        if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
            continue
        if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
            found[statement.target.id] = " ".join(str(following.value.value).split())
    return found


def configuration() -> str:
    return "\n".join([_CONFIGURATION, *(_section(name, table) for name, table in _SECTIONS), _ENVIRONMENT])


def _section(name: str, table: type[msgspec.Struct]) -> str:
    words = described(table)
    rows = [
        f"| `{field.name}` | {_type(field.type)} | {_default(field)} | {words[field.name]} |"
        for field in structs.fields(table)
    ]
    title = f"`{name}`" if name.startswith("[") else name.capitalize()
    return "\n".join(
        [
            f"## {title}",
            "",
            *([inspect.cleandoc(table.__doc__), ""] if table.__doc__ else []),
            "| setting | type | default | |",
            "|---|---|---|---|",
            *rows,
            "",
        ]
    )


_TYPES = {str: "text", int: "number", float: "number", bool: "true or false"}


def _type(annotation: object) -> str:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:  # with limits
        return _type(arguments[0])
    if origin is typing.Literal:
        return ", ".join(f"`{value}`" for value in arguments)
    if origin is tuple:
        return f"list of {_type(arguments[0])}"
    if origin is dict:
        value = _type(arguments[1])
        return "table of tables" if value == "table" else f"table of {value}"
    if arguments:
        return " or ".join(dict.fromkeys(_type(one) for one in arguments if one is not type(None)))
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return "table"
    return _TYPES[typing.cast("type", annotation)]


def _default(field: structs.FieldInfo) -> str:
    value = field.default if field.default is not NODEFAULT else None
    if field.required:
        return "needed"
    if value is None or value in ("", ()) or isinstance(value, msgspec.Struct):
        return ""
    return f"`{json.dumps(value, ensure_ascii=False) if isinstance(value, bool | tuple) else value}`"


def commands() -> str:
    return "\n".join([_COMMANDS, *(_command(name) for name in COMMANDS)])


def _command(name: str) -> str:
    module = COMMANDS[name]
    parser = Parser(
        prog=f"dragoman {name}",
        description=module.DESCRIPTION,
        epilog=module.EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    module.add_arguments(parser)
    summary = f"{module.SUMMARY[:1].upper()}{module.SUMMARY[1:]}."
    return f"## dragoman {name}\n\n{summary}\n\n{_help(parser)}" + "".join(
        f"\n### {action.prog}\n\n{_help(action)}" for action in _actions(parser)
    )


def _help(parser: argparse.ArgumentParser) -> str:
    formatter = parser.formatter_class
    parser.formatter_class = lambda prog: formatter(prog, width=_WIDTH)  # type: ignore[call-arg]
    text = "\n".join(line.rstrip() for line in parser.format_help().splitlines())
    return f"```text\n{text}\n```\n"


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """The parsers of subcommands, such as `dragoman batch convert`."""
    for group in parser._subparsers._group_actions if parser._subparsers else ():  # noqa: SLF001 - argparse has no other way
        yield from typing.cast("dict[str, argparse.ArgumentParser]", group.choices).values()


def pages() -> Iterator[tuple[Path, str]]:
    yield DOCS / "configuration.md", configuration()
    yield DOCS / "commands.md", commands()


if __name__ == "__main__":
    for path, text in pages():
        path.write_text(text, encoding="utf-8")
