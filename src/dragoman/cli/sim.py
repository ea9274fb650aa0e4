"""`dragoman sim`: simulators of the providers' APIs."""

from __future__ import annotations

import argparse
from pathlib import Path

from dragoman.cli.problems import CommandError, cannot_listen, not_installed, port, system_reason

SUMMARY = "serve strict simulators of the providers' APIs"
DESCRIPTION = """\
Serves OpenAI (Chat and Responses), Azure OpenAI, Anthropic, Gemini (also
Interactions), Vertex AI, Ollama, Bedrock and Cohere from one port: they refuse
what the real APIs refuse, and answer with a deterministic model that calls the
tools it is given. Any API key is accepted, unless you name keys with --key.
"""
EXAMPLES = """\
examples:
  dragoman sim
  dragoman sim --port 9000 --script turns.yaml
  OPENAI_BASE_URL=http://127.0.0.1:8911/v1 OPENAI_API_KEY=any python agent.py

requests can inject faults:  x-sim-fault: status=529; retry_after=2
                             x-sim-fault: cut=3   (garbage, stall, fail, drip, delay)
"""
PORT = 8911


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to listen on (default: %(default)s, this machine only)"
    )
    parser.add_argument("--port", type=port, default=PORT, help="port to listen on, 0 for any (default: %(default)s)")
    parser.add_argument("--script", type=Path, metavar="FILE", help="scripted answers: a .json, .toml or .yaml file")
    parser.add_argument(
        "--key", action="append", default=[], metavar="KEY", help="accept only this API key (repeatable)"
    )
    parser.add_argument("--any-model", action="store_true", help="accept unknown model names")
    parser.add_argument("--any-signature", action="store_true", help="accept signatures from other servers")
    parser.add_argument(
        "--new-account",
        action="store_true",
        help="accept Claude's thinking only in the conversation that it comes from",
    )
    parser.add_argument("--context-window", type=int, metavar="TOKENS", help="refuse longer prompts")
    parser.add_argument("--rate-limit", type=int, metavar="N", help="refuse more than N requests a minute")
    parser.add_argument(
        "--max-body", type=int, metavar="BYTES", help="refuse larger bodies (default: each API's limit)"
    )


def run(arguments: argparse.Namespace) -> int:
    import asyncio

    try:
        from dragoman.sim.server import serving
    except ImportError as error:
        raise not_installed(error, "sim") from None
    from dragoman.sim.script import Script, load_script
    from dragoman.sim.service import MOUNTS, Service, Settings

    try:
        script = load_script(arguments.script) if arguments.script else Script()
    except OSError as error:
        raise CommandError(f"cannot read {arguments.script}: {system_reason(error)}") from None
    except ValueError as error:
        raise CommandError(str(error)) from None
    settings = Settings(
        keys=frozenset(arguments.key),
        any_model=arguments.any_model,
        any_signature=arguments.any_signature,
        max_body=arguments.max_body,
        requests_per_minute=arguments.rate_limit,
        context_window=arguments.context_window,
        binds_thinking=arguments.new_account,
        script=script,
    )

    async def serve() -> None:
        async with serving(Service(settings), host=arguments.host, port=arguments.port) as url:
            print(f"{url}  simulated providers, until Ctrl-C", flush=True)
            for name in MOUNTS:
                print(f"  {name:<10} {_BASES[name].format(url=url)}", flush=True)
            print(f"\n{_FIRST_QUESTION.format(url=url)}", flush=True)
            await asyncio.Event().wait()

    try:
        asyncio.run(serve())
    except OSError as error:
        raise CommandError(cannot_listen(error, arguments.port)) from None
    return 0


_FIRST_QUESTION = """\
in another terminal:
  export ANTHROPIC_BASE_URL={url} ANTHROPIC_API_KEY=any
  dragoman ask anthropic/claude-sonnet-5 "My name is Ann. What is my name?\""""

# The base URL that each SDK expects.
_BASES = {
    "openai": "{url}/v1",
    "azure": "{url}",
    "anthropic": "{url}",
    "gemini": "{url}",
    "vertex": "{url}",
    "ollama": "{url}  (OpenAI-compatible: {url}/ollama/v1)",
    "bedrock": "{url}",
    "cohere": "{url}",
}
