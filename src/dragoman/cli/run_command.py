"""The work behind `dragoman run`."""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

from dragoman.agent import Agent, OutputCache, PermissionRequest, Rules, Session, SessionStore, SqliteStore
from dragoman.agent.mcp import McpServers, read_servers
from dragoman.agent.permissions import Deny, Hook
from dragoman.agent.sessions import default_folder
from dragoman.agent.threads import in_thread
from dragoman.cli.ask_command import options_of
from dragoman.cli.inputs import read_prompt
from dragoman.cli.problems import INTERRUPTED, OK, STREAM_FAILED, UNFINISHED, CommandError, one_line, system_reason
from dragoman.cli.rendering import Renderer, renderer_of
from dragoman.cli.targets import Settings, explain, find_target, settings_of
from dragoman.cli.toolfile import load_tools
from dragoman.drivers.connect import open_channel
from dragoman.drivers.remote import RemoteDriver
from dragoman.errors import DragomanError, NotConfigured, ProviderError
from dragoman.ir.values import compact_text

_CODES = {
    "answer": OK,
    "done": OK,
    "cancelled": INTERRUPTED,
    "max_iterations": UNFINISHED,
    "stopped": UNFINISHED,
    "blocked": UNFINISHED,
    "limit": UNFINISHED,
    "pending": UNFINISHED,
    "invalid_output": UNFINISHED,
}


def run_task(arguments: argparse.Namespace) -> int:
    try:
        return asyncio.run(_run(arguments))
    except ProviderError as error:
        raise CommandError(str(error), STREAM_FAILED) from None
    except (DragomanError, TypeError, ValueError) as error:
        raise CommandError(str(error)) from None


async def _run(arguments: argparse.Namespace) -> int:
    settings = settings_of(arguments)
    prompt = " ".join(arguments.prompt)
    own = [one for name in arguments.tools for one in load_tools(name)]
    async with AsyncExitStack() as stack:
        session, cache = _session(arguments.session, stack)
        if not prompt and not (session and session.messages and sys.stdin is not None and sys.stdin.isatty()):
            prompt = read_prompt((), "task")
        renderer = stack.enter_context(renderer_of(as_json=arguments.json, expand=arguments.expand))
        servers = await stack.enter_async_context(McpServers(mcp_servers(arguments.mcp)))
        asker = Asker(renderer)
        agent = Agent(
            driver_for(arguments, settings, arguments.model),
            tools=[*own, *servers.tools(taken=[one.name for one in own])],
            system_prompt=arguments.system or settings.config.defaults.system or None,
            max_iterations=arguments.max_turns,
            tool_timeout=arguments.tool_timeout,
            permissions=APPROVALS[arguments.approve],
            ask=asker,
            output_cache=cache,
            session=session,
            settings=_settings(arguments),
        )
        await stack.enter_async_context(agent)
        code = await _run_interruptibly(agent, prompt or None, renderer)
        return asker.exit_code(code)


async def _run_interruptibly(agent: Agent, prompt: str | None, renderer: Renderer) -> int:
    """The first Ctrl-C cancels gracefully, the second immediately."""
    presses = 0

    def interrupt() -> None:
        nonlocal presses
        presses += 1
        if presses > 1:
            raise KeyboardInterrupt
        agent.cancel()

    with suppress(NotImplementedError):  # Windows: Ctrl-C raises KeyboardInterrupt
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, interrupt)
    async for event in agent.run_stream(prompt):
        renderer.show(event)
    result = agent.last_result
    return INTERRUPTED if result is None else _CODES[result.reason]


def driver_for(arguments: argparse.Namespace, settings: Settings, model: str | None) -> RemoteDriver:
    """The driver for the model named on the command line, or for the default model."""
    target = find_target(settings, settings.model(model))
    try:
        channel = open_channel(target.provider, options_of(arguments, target, tells_retries=False))
    except NotConfigured as error:
        raise CommandError(explain(error, target.provider.name)) from None
    return RemoteDriver(channel, target.model, {})


def _settings(arguments: argparse.Namespace) -> Any:
    given = {"max_output_tokens": arguments.max_tokens, "reasoning": arguments.reasoning}
    return {name: value for name, value in given.items() if value is not None}


def _session(name: str | None, stack: AsyncExitStack) -> tuple[Session | None, OutputCache]:
    if name is None:
        return None, OutputCache()
    try:
        store = stack.enter_context(SessionStore())
        outputs = SqliteStore(default_folder() / "outputs.sqlite")
    except OSError as error:
        raise CommandError(f"cannot keep sessions in {default_folder()}: {system_reason(error)}") from None
    stack.callback(outputs.close)
    return store.open(name), OutputCache(outputs)


def mcp_servers(paths: list[Path]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for path in paths:
        try:
            found |= read_servers(path)
        except OSError as error:
            raise CommandError(f"cannot read {path}: {system_reason(error)}") from None
        except json.JSONDecodeError as error:
            raise CommandError(f"{path} is not JSON: {error}") from None
        except ValueError as error:
            raise CommandError(f"{path}: {error}") from None
    return found


# ── approval ──────────────────────────────────────────────────────────────────────────────────────────────────

APPROVALS: dict[str, Hook] = {
    "ask": Rules(),
    "all": Rules(otherwise="allow"),
    "none": Rules(otherwise="deny"),
}
_ANSWERS = {"y": True, "yes": True, "n": False, "no": False, "": False}


class Asker:
    """Asks the user about a call. Without a terminal it refuses, and records the tool."""

    def __init__(self, renderer: Renderer) -> None:
        self._renderer = renderer
        self._refused: dict[str, None] = {}

    async def __call__(self, request: PermissionRequest) -> bool | Deny:
        name = request.call.name
        if sys.stdin is None or not sys.stdin.isatty():
            self._refused[name] = None
            return Deny("it needs approval, and there is no terminal to ask at")
        question = one_line(f"run {name} {compact_text(request.arguments)}?") + " [y]es, [n]o, [s]top: "
        with self._renderer.pause():
            while True:
                answer = (await in_thread(_answer, question)).strip().lower()
                if answer in _ANSWERS:
                    return _ANSWERS[answer]
                if answer in {"s", "stop"}:
                    return Deny("the user said stop", stop=True)

    def exit_code(self, code: int) -> int:
        """The exit code of the run; if a tool was not allowed, prints how to allow it."""
        if not self._refused:
            return code
        print(
            f"dragoman: not run, because there is no terminal to ask at: {', '.join(self._refused)}. To allow it: "
            "--approve all. A tool that changes nothing never asks: @dragoman.tool(read_only=True)",
            file=sys.stderr,
        )
        return code or UNFINISHED


def _answer(question: str) -> str:
    print(question, end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    return line or "stop"  # end of file
