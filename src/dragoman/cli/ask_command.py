"""The work behind `dragoman ask` and `dragoman models`."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from typing import Any

import msgspec

from dragoman.catalogue import CatalogueError, Model, Prices, catalogue
from dragoman.cli.inputs import read_prompt
from dragoman.cli.problems import BAD_INPUT, OK, STREAM_FAILED, CommandError, one_line
from dragoman.cli.targets import Target, explain, find_target, model_and_words, settings_of
from dragoman.cli.toolfile import load_definitions
from dragoman.drivers.base import Defaults, QueryResult, RawExchange, StreamResult
from dragoman.drivers.connect import Options, is_local, open_channel
from dragoman.drivers.curl import curl_command
from dragoman.drivers.key_store import environment_with_stored_keys
from dragoman.drivers.model_listing import list_models
from dragoman.drivers.providers import PROVIDERS
from dragoman.drivers.query import build_request
from dragoman.drivers.remote import Channel, RemoteDriver
from dragoman.drivers.retries import RetryNotice
from dragoman.errors import DragomanError, NotConfigured, ProviderError
from dragoman.ir import AnyTool, PartDelta, PartStart, Reasoning, Text
from dragoman.ir.values import compact_text
from dragoman.terminal import Terminal, align_columns, stdout, terminal_of


def ask(arguments: argparse.Namespace) -> int:
    settings = settings_of(arguments)
    model, words = model_and_words(settings, arguments.model, arguments.words)
    prompt = read_prompt(words, "question")
    tools = [one for name in arguments.tools for one in load_definitions(name)]
    _check_tool_choice(arguments.tool_choice, tools)
    if arguments.system is None:
        arguments.system = settings.config.defaults.system or None
    target = find_target(settings, model)
    try:
        options = options_of(arguments, target, keyless=arguments.curl)
        channel = open_channel(target.provider, options)
        driver = RemoteDriver(channel, target.model, {})
        if arguments.curl:
            return _print_curl(driver, prompt, tools, arguments)
        return asyncio.run(_print_answer(driver, prompt, tools, arguments))
    except ProviderError as error:
        raise CommandError(str(error), STREAM_FAILED) from None
    except NotConfigured as error:
        raise CommandError(explain(error, target.provider.name)) from None
    except (DragomanError, TypeError, ValueError) as error:
        raise CommandError(str(error)) from None


def _check_tool_choice(choice: str | None, tools: Sequence[AnyTool]) -> None:
    """Refuses a choice that no provider could follow, before anything is sent."""
    if choice is None:
        return
    names = [name for one in tools if (name := getattr(one, "name", ""))]
    if choice in {"auto", "none"} or (choice == "required" and tools) or choice in names:
        return
    if not tools:
        raise CommandError(f"--tool-choice {choice}: there are no tools; add some with --tools FILE")
    raise CommandError(f"--tool-choice {choice}: no tool has this name; the tools are {', '.join(names)}")


def options_of(
    arguments: argparse.Namespace, target: Target | None = None, *, keyless: bool = False, tells_retries: bool = True
) -> Options:
    """Connection options: the command line overrides the configuration.

    A server on this machine needs no key, nor does a command that is only printed.
    """
    given: dict[str, Any] = {"environment": environment_with_stored_keys()} if target is None else {**target.options}
    given |= {
        name: getattr(arguments, name)
        for name in ("base_url", "region", "project", "location", "api_version")
        if getattr(arguments, name) is not None
    }
    given["headers"] = {**given.get("headers", {}), **dict(map(_header, arguments.header))}
    if tells_retries:
        given["on_retry"] = _print_retry
    if keyless:
        given["api_key"] = lambda: "not-sent"
    elif arguments.base_url is not None and is_local(arguments.base_url):
        given["api_key"] = "local"
    options: Options = given  # type: ignore[assignment]
    return options


def _header(word: str) -> tuple[str, str]:
    name, colon, value = word.partition(":")
    if not colon or not name.strip():
        raise CommandError(f"--header needs NAME:VALUE, got {word!r}")
    return name.strip().lower(), value.strip()


def _print_retry(notice: RetryNotice) -> None:
    print(one_line(f"dragoman: {notice.error}; again in {notice.delay:.1f} s"), file=sys.stderr)


def _settings(arguments: argparse.Namespace) -> dict[str, Any]:
    given = {
        "system": arguments.system,
        "max_output_tokens": arguments.max_tokens,
        "temperature": arguments.temperature,
        "timeout": arguments.timeout,
        "reasoning": arguments.reasoning,
    }
    return {name: value for name, value in given.items() if value is not None}


def _print_curl(driver: RemoteDriver, prompt: str, tools: list[AnyTool], arguments: argparse.Namespace) -> int:
    settings: Defaults = _settings(arguments)  # type: ignore[assignment]
    request = build_request(prompt, tools=tools, tool_choice=arguments.tool_choice, settings=settings)
    call = driver.prepare(request, settings, stream=not arguments.no_stream)
    print(curl_command(driver.channel, call), file=stdout())
    return OK


async def _print_answer(driver: RemoteDriver, prompt: str, tools: list[AnyTool], arguments: argparse.Namespace) -> int:
    settings: dict[str, Any] = {
        **_settings(arguments),
        "tools": tools,
        "tool_choice": arguments.tool_choice,
        "errors": "result",
        "raw": arguments.raw,
    }
    async with driver:
        if arguments.no_stream or arguments.raw:
            streams = not arguments.no_stream
            result = await (
                driver.stream_query(prompt, **settings).result if streams else driver.query(prompt, **settings)
            )
            _print_whole(result, raw=arguments.raw)
        else:
            result = await _print_stream(driver, prompt, settings)
    return _report_end(result, driver.name)


async def _print_stream(driver: RemoteDriver, prompt: str, settings: dict[str, Any]) -> QueryResult:
    """Streams text to stdout; reasoning is dimmed, and shown only on a terminal."""
    stream, screen = stdout(), terminal_of(sys.stdout)
    answer: StreamResult = driver.stream_query(prompt, **settings)
    kinds: dict[int, type] = {}
    async for event in answer.events():
        if isinstance(event, PartStart):
            kinds[event.index] = type(event.part)
            piece = event.part.text if isinstance(event.part, Text | Reasoning) else ""
        else:
            piece = event.text if isinstance(event, PartDelta) else ""
        kind = kinds.get(event.index) if isinstance(event, PartStart | PartDelta) else None
        if piece and (kind is Text or (kind is Reasoning and screen.colour)):
            stream.write(screen.paint(piece, "dim") if kind is Reasoning else piece)
            stream.flush()
    result = await answer.result
    if result.content and not result.content.endswith("\n"):
        stream.write("\n")
    _print_calls(result, screen)
    return result


def _print_whole(result: QueryResult, *, raw: bool) -> None:
    stream = stdout()
    if raw and result.raw is not None:
        _print_raw(result.raw)
        return
    if result.content:
        print(result.content, file=stream)
    _print_calls(result, terminal_of(stream))


def _print_calls(result: QueryResult, screen: Terminal) -> None:
    for call in result.tool_calls or ():
        shown = compact_text(call.arguments) if call.parsed else call.arguments_text or ""
        print(screen.paint(f"-> {call.name}", "cyan"), shown, file=stdout())


def _print_raw(raw: RawExchange) -> None:
    stream = stdout()
    print(f"> {raw.method} {raw.url}", file=stream)
    print(*(f"> {name}: {value}" for name, value in raw.request_headers.items()), ">", sep="\n", file=stream)
    print(raw.request_body.decode("utf-8", "backslashreplace"), end="\n\n", file=stream)
    print(f"< {raw.status}", file=stream)
    print(*(f"< {name}: {value}" for name, value in raw.response_headers.items()), "<", sep="\n", file=stream)
    print(raw.response_body.decode("utf-8", "backslashreplace"), file=stream)


def _report_end(result: QueryResult, name: str) -> int:
    if result.failure is not None:
        failure = result.failure
        status = "" if failure.status is None else f", status {failure.status}"
        print(one_line(f"dragoman: {name}: {failure.message} ({failure.kind}{status})"), file=sys.stderr)
        return STREAM_FAILED
    if result.finish_reason not in {"stop", "tool_calls"}:
        print(f"dragoman: the answer ended early: {result.finish_reason} ({result.finish_raw})", file=sys.stderr)
    return OK


# ── models ────────────────────────────────────────────────────────────────────────────────────────────────────


def list_providers() -> int:
    stream = stdout()
    rows = [
        (
            row.name,
            row.title,
            row.format,
            " or ".join(row.key_environment) or "-",
            f"{row.name}/{row.example or 'MODEL'}",
        )
        for row in PROVIDERS.values()
    ]
    heading, *lines = align_columns([("provider", "name", "format", "key from", "a model"), *rows])
    print(terminal_of(stream).paint(heading, "bold"), *lines, sep="\n", file=stream)
    return OK


def print_catalogue(provider: str | None, *, as_json: bool) -> int:
    """Prints the catalogue of all providers or of one; `-` means unknown."""
    try:
        rows = [row for row in catalogue().models if provider is None or row.provider == provider]
    except CatalogueError as error:
        raise CommandError(str(error), BAD_INPUT) from None
    stream = stdout()
    if as_json:
        for row in rows:
            print(_encode_row(row).decode(), file=stream)
        return OK
    if not rows:
        raise CommandError(f"the catalogue has no models of {provider!r}", BAD_INPUT)
    heading, *lines = align_columns([_CATALOGUE_HEADING, *map(_catalogue_row, rows)], widest=100)
    print(terminal_of(stream).paint(heading, "bold"), *lines, sep="\n", file=stream)
    print(f"prices for a million tokens; the file is of {catalogue().date}", file=stream)
    return OK


_encode_row = msgspec.json.Encoder(decimal_format="number").encode
_CATALOGUE_HEADING = ("model", "context", "output", "in", "out", "cached", "written", "can", "checked", "source")


def _catalogue_row(row: Model) -> tuple[str, ...]:
    prices = row.prices or Prices()
    money = [prices.input, prices.output, prices.cache_read, prices.cache_write]
    return (
        f"{row.provider}/{row.id}",
        *("-" if count is None else f"{count:,}" for count in (row.context_window, row.output_limit)),
        *("-" if price is None else f"{price} {row.currency}" for price in money),
        ",".join(name for name, has in row.capabilities.items() if has) or "-",
        row.checked or "-",
        row.source or "-",
    )


def list_models_of(arguments: argparse.Namespace) -> int:
    async def list_names(channel: Channel) -> list[str]:
        try:
            return await list_models(channel)
        finally:
            await channel.transport.close()

    try:
        target = settings_of(arguments).target(f"{arguments.provider}/-")
        names = asyncio.run(list_names(open_channel(target.provider, options_of(arguments, target))))
    except NotConfigured as error:
        raise CommandError(explain(error, arguments.provider), BAD_INPUT) from None
    except ProviderError as error:
        raise CommandError(str(error), STREAM_FAILED) from None
    for name in names:
        print(f"{arguments.provider}/{name}", file=stdout())
    return OK
