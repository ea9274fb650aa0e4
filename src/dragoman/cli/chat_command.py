"""The work behind `dragoman chat`."""

from __future__ import annotations

import argparse
import asyncio
import os
import sqlite3
import sys
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path

from msgspec import structs

from dragoman.agent import Tool
from dragoman.agent.mcp import McpServers
from dragoman.agent.permissions import Hook
from dragoman.chat.demo import TOOLS, demo_user, simulated_models
from dragoman.chat.entries import Conversation, now
from dragoman.chat.importing import read_file
from dragoman.chat.mentions import ALL
from dragoman.chat.participants import Participant, configured_models, participant
from dragoman.chat.service import ChatService, Options
from dragoman.chat.stores import ConversationStore, default_folder, open_store, user_from
from dragoman.chat.stores.base import file_stem
from dragoman.chat.stores.files import PRIVATE
from dragoman.cli.problems import OK, STREAM_FAILED, CommandError, cannot_listen, not_installed, system_reason
from dragoman.cli.run_command import APPROVALS, mcp_servers
from dragoman.cli.targets import Settings, find_target, settings_of
from dragoman.cli.toolfile import load_tools
from dragoman.errors import DragomanError
from dragoman.terminal import stdout

_NO_MODEL = "none"
"""Value of `--default` that makes text without a mention a memo."""


def chat(arguments: argparse.Namespace) -> int:
    _warn_of_legacy_settings()
    _apply_settings(arguments)
    try:
        with ExitStack() as stack:
            models = _models(arguments, stack)
            return _web(arguments, models) if arguments.web else _terminal(arguments, models)
    except (DragomanError, LookupError, ValueError) as error:
        raise CommandError(str(error)) from None
    except ImportError as error:
        raise not_installed(error, "chat") from None


def _apply_settings(arguments: argparse.Namespace) -> None:
    """Fills in options from the configuration that the command line leaves out."""
    config = settings_of(arguments).config
    if arguments.system is None and config.defaults.system:
        arguments.system = config.defaults.system
    arguments.default = arguments.default or list(config.chat.default)
    arguments.share = arguments.share or config.chat.share


def _warn_of_legacy_settings() -> None:
    """Warns about variables of the earlier program that no longer have an effect."""
    if os.environ.get("MULTI_LLM_CHAT_MCP_ENABLED"):
        print("dragoman: MULTI_LLM_CHAT_MCP_ENABLED has no effect; use --mcp mcp.json", file=sys.stderr)


def _models(arguments: argparse.Namespace, stack: ExitStack) -> list[Participant]:
    if arguments.demo:
        return stack.enter_context(simulated_models())
    settings = settings_of(arguments)
    chosen = arguments.model or [f"{name}={model}" for name, model in settings.config.chat.models.items()]
    return [
        _participant(settings, name, model) for name, model in configured_models(chosen, settings.environment).items()
    ]


def _participant(settings: Settings, name: str, model: str) -> Participant:
    """A model that cannot be reached reports an error when it is asked; the others still answer."""
    target = find_target(settings, model)
    return participant(name, target.name, options=target.options)


def _tools(arguments: argparse.Namespace) -> list[Tool]:
    own = [one for name in arguments.tools for one in load_tools(name)]
    return [*TOOLS, *own] if arguments.demo else own


def _options(arguments: argparse.Namespace, models: list[Participant]) -> Options:
    default = tuple(name.lstrip("@") for name in arguments.default) or _first_ready(models)
    if default == (_NO_MODEL,):
        default = ()
    known = {ALL, *(one.name for one in models)}
    if not known.issuperset(default):
        raise CommandError(f"--default must be a model of this chat: one of {', '.join(sorted(known))}")
    return Options(share=arguments.share, default=default)


def _first_ready(models: list[Participant]) -> tuple[str, ...]:
    """The first model that can be asked now, such as one with a key; otherwise the first."""
    for one in models:
        try:
            one.connect()
        except DragomanError:
            continue
        return (one.name,)
    return tuple(one.name for one in models[:1])


def _approval(arguments: argparse.Namespace) -> Hook:
    return APPROVALS[arguments.approve]


def _store(arguments: argparse.Namespace) -> tuple[ConversationStore, Path]:
    """The store, and the folder for drafts, which always stay on this machine."""
    user = arguments.user or user_from()
    if arguments.demo and not arguments.store:  # conversations with simulators are kept apart from real ones
        user = demo_user(user)
    try:
        store = open_store(arguments.store, user)
        folder = getattr(store, "folder", None) or default_folder() / file_stem(user)
        folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(f"cannot keep conversations in {error.filename}: {system_reason(error)}") from None
    except sqlite3.Error as error:
        raise CommandError(f"cannot keep conversations in {arguments.store}: {error}") from None
    return store, folder


def _conversation(arguments: argparse.Namespace, store: ConversationStore) -> Conversation:
    if not arguments.load:
        return Conversation(created=now(), system_prompt=arguments.system or "")
    path = Path(arguments.load)
    found = read_file(path) if path.suffix == ".json" and path.is_file() else store.load(arguments.load)
    return found if arguments.system is None else structs.replace(found, system_prompt=arguments.system)


def _terminal(arguments: argparse.Namespace, models: list[Participant]) -> int:
    from dragoman.chat.terminal.app import TerminalChat
    from dragoman.chat.terminal.screens import screen_of

    store, folder = _store(arguments)
    conversation = _conversation(arguments, store)
    tools, options = _tools(arguments), _options(arguments, models)
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        servers = runner.run(stack.enter_async_context(McpServers(mcp_servers(arguments.mcp))))
        service = ChatService(
            models,
            conversation=conversation,
            tools=[*tools, *servers.tools(taken=[one.name for one in tools])],
            permissions=_approval(arguments),
            options=options,
        )
        screen = screen_of(stdout())
        screen.entries(conversation.entries)
        if arguments.demo and sys.stdin.isatty():
            screen.line("Simulated models: no keys, no cost. Try: @all What is the weather in Paris?", "green")
        try:
            running = TerminalChat(service, store, screen, folder).run(runner)
        finally:
            runner.run(service.close())
            runner.run(stack.aclose())
    return OK if running or sys.stdin.isatty() else STREAM_FAILED


def _web(arguments: argparse.Namespace, models: list[Participant]) -> int:
    from dragoman.web.conversation_hub import ConversationHub, HubSettings
    from dragoman.web.serving import serve_forever

    store, folder = _store(arguments)
    settings = HubSettings(permissions=_approval(arguments))
    serving = serve_forever(
        ConversationHub(models, store, folder, settings=settings, options=_options(arguments, models)),
        tools=_tools(arguments),
        servers=mcp_servers(arguments.mcp),
        address=(arguments.host, arguments.port),
        password=_password(arguments.password_file),
    )
    try:
        return asyncio.run(serving)
    except OSError as error:
        raise CommandError(cannot_listen(error, arguments.port)) from None


def _password(path: Path | None) -> str | None:
    if path is None:
        return os.environ.get("DRAGOMAN_CHAT_PASSWORD") or None
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise CommandError(f"cannot read {path}: {system_reason(error)}") from None
