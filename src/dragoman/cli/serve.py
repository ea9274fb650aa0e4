"""`dragoman serve`: the gateway."""

from __future__ import annotations

import argparse
from pathlib import Path

from dragoman.cli.problems import OK, UNREACHABLE, CommandError, cannot_listen, not_installed, port, positive

SUMMARY = "serve a gateway: any client in, any model out"
DESCRIPTION = """\
Serves clients of OpenAI (Chat and Responses), Anthropic, Gemini (also
Interactions), Vertex AI, Ollama, Cohere and Bedrock; the model name,
provider/model, selects the provider. Keys of the providers are the stored ones
(dragoman keys set PROVIDER) or come from their environment variables. Without
any key, the simulators answer, and any model server on this machine.
"""
EXAMPLES = """\
examples:
  dragoman serve
  dragoman serve --config dragoman.toml --port 8787
  dragoman serve --agent app:agent
  dragoman serve --print-env claude-code --model gemini/gemini-3.8-flash

  curl http://127.0.0.1:8787/v1/chat/completions -H 'content-type: application/json' \\
    -d '{"model": "anthropic/claude-sonnet-5", "messages": [{"role": "user", "content": "Hello"}]}'

SIGHUP reloads the configuration; SIGTERM waits for open streams, then stops.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="TOML file (default: dragoman.toml, if there is one)"
    )
    parser.add_argument("--host", help="address to listen on (default: 127.0.0.1, this machine only)")
    parser.add_argument("--port", type=port, help="port to listen on, 0 for any (default: 8787)")
    parser.add_argument("--tls-cert", metavar="FILE", help="certificate chain (PEM): serve HTTPS")
    parser.add_argument("--tls-key", metavar="FILE", help="private key (PEM), if in another file")
    parser.add_argument(
        "--workers", type=positive, default=1, metavar="N", help="processes that share the port (default: 1)"
    )
    parser.add_argument(
        "--agent",
        action="append",
        default=[],
        metavar="MODULE:NAME",
        help="serve your agent as a model of that name (repeatable)",
    )
    parser.add_argument("--simulate", action="store_true", help="let the simulators answer, even if there are keys")
    parser.add_argument("--check", action="store_true", help="check the configuration and its upstreams, then exit")
    parser.add_argument("--offline", action="store_true", help="with --check: do not contact upstreams")
    parser.add_argument(
        "--print-env", metavar="CLIENT", help="print the settings for a client, then exit; `list` lists the clients"
    )
    parser.add_argument("--model", default="anthropic/claude-sonnet-5", help="the model for --print-env")
    parser.add_argument("--quiet", action="store_true", help="no log of requests")


def run(arguments: argparse.Namespace) -> int:
    try:
        from dragoman.gateway import serve_command
        from dragoman.gateway.config import ConfigError
        from dragoman.gateway.config_file import find_config_file
        from dragoman.web.serving import page_before
    except ImportError as error:
        raise not_installed(error, "gateway") from None
    file = find_config_file(arguments.config).path
    options = serve_command.ServeOptions(
        file=file,
        host=arguments.host,
        port=arguments.port,
        tls_cert=arguments.tls_cert,
        tls_key=arguments.tls_key,
        workers=arguments.workers,
        agents=tuple(arguments.agent),
        simulate=arguments.simulate,
        quiet=arguments.quiet,
        front=page_before,
    )
    try:
        if arguments.print_env:
            print(serve_command.environment_for(arguments.print_env, options, arguments.model))
            return 0
        if arguments.check:
            found = serve_command.check_configuration(options, offline=arguments.offline)
            print("\n".join(found.lines))
            return OK if found.reachable else UNREACHABLE
        return serve_command.serve(options)
    except ConfigError as error:
        raise CommandError(str(error)) from None
    except OSError as error:
        raise CommandError(cannot_listen(error, options.config().server.port)) from None
