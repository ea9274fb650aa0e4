"""The configuration file: TOML, read into checked values; mistakes are reported with line and column.

docs/configuration.md is made from the docstrings here (scripts/reference_docs.py).
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path as FilePath
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct

from dragoman.codecs.settings import SETTING_NAMES
from dragoman.drivers.providers import ALIASES, PROVIDERS
from dragoman.gateway.toml_positions import Path, position_of


class ConfigError(Exception):
    """`file:line:column: what is wrong`."""


# Limits also refuse `nan` and `inf`, which TOML has: compared with either, no time or count is ever too large.
_MOST_SECONDS, _MOST_COUNT = 1e9, 1 << 53
_Seconds: TypeAlias = Annotated[float, Meta(gt=0, le=_MOST_SECONDS)]
_SecondsOrZero: TypeAlias = Annotated[float, Meta(ge=0, le=_MOST_SECONDS)]
_Count: TypeAlias = Annotated[int, Meta(ge=1, le=_MOST_COUNT)]
_CountOrZero: TypeAlias = Annotated[int, Meta(ge=0, le=_MOST_COUNT)]
_Amount: TypeAlias = Annotated[float, Meta(ge=0, le=1e12)]
Effort: TypeAlias = Literal["off", "none", "minimal", "low", "medium", "high", "xhigh", "max"]


class _Table(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class Server(_Table, frozen=True, kw_only=True):
    """The gateway itself: where it listens, which clients may use it, and its limits."""

    host: str = "127.0.0.1"
    """The address to listen on. Addresses that other machines reach are refused without keys."""
    port: int = 8787
    """The port to listen on; 0 chooses a free one."""
    keys: tuple[str, ...] = ()
    """Keys that clients must send: plain, `env:NAME`, or `sha256:HEX`. Without keys here and in the database, none is
    required."""
    max_body: _Count = 64 << 20
    """Maximum bytes of one request, compressed and decompressed; larger ones get a 413."""
    max_buffered: _Count = 256 << 20
    """Maximum bytes of all request bodies in memory; further requests get a 503. The same limit applies to answers
    that clients do not read; beyond it, the connections with the most unread bytes are closed."""
    request_seconds: _Seconds = 300.0
    """Seconds for a client to send a whole request; slower ones get a 408."""
    body_rate: _Amount = 1024.0
    """Minimum bytes per second at which a request body must arrive, over ten seconds; slower ones get a 408."""
    tls_cert: str = ""
    """A file with the certificate chain (PEM), to serve HTTPS; empty serves HTTP."""
    tls_key: str = ""
    """The file with the private key (PEM); empty if the file of the certificate contains it."""
    max_requests: _CountOrZero = 2_000
    """Maximum number of requests in progress; further ones get a 503."""
    drain_seconds: _SecondsOrZero = 30.0
    """Seconds for answers in progress to end after SIGTERM."""
    database: str = ""
    """Store of keys, usage and stored responses: a SQLite file, `postgresql://…` or `env:NAME`; empty: in memory."""
    usage: bool = True
    """Whether usage of requests without a key is written to the database, too."""
    signature_seconds: _SecondsOrZero = 7 * 86_400.0
    """Seconds that vendors' signatures are stored for clients of other formats; 0 sends them to clients instead."""
    limits: str = ""
    """Store of rates and concurrency: `redis://…`, `env:NAME`, or `memory` per process; empty: the `database`."""
    lease_seconds: _Seconds = 15.0
    """Seconds for which a running request still counts after its gateway died."""
    batch_concurrency: _CountOrZero = 4
    """Concurrent requests, per process, of batches that the gateway runs itself; 0 turns these batches off."""
    batch_seconds: _SecondsOrZero = 86_400.0
    """Seconds after which requests of a batch that have not started expire."""
    batch_bytes: _CountOrZero = 1 << 30
    """Maximum bytes of files and batches that are stored for one key."""
    chat_bytes: _CountOrZero = 64 << 20
    """Maximum bytes of conversations on the page that are stored for one key, each at most 16 MiB."""
    log: Literal["auto", "json", "text", "off"] = "auto"
    """How requests are logged to standard error: `auto` is `text` on a terminal and `json` elsewhere."""
    origins: tuple[str, ...] = ()
    """Origins of web pages that may call the gateway, such as `https://app.example.com`; `*` allows all."""
    page: bool = True
    """Whether there is a page at `/`. It shows the last requests, which are held in memory."""


class TimeLimits(_Table, frozen=True, kw_only=True):
    """Time limits for requests to a provider, in seconds."""

    connect: _Seconds = 10.0
    """Until the connection is open."""
    first_byte: _Seconds = 600.0
    """Until the first byte of the answer."""
    between_bytes: _Seconds = 120.0
    """Between two chunks of the answer."""
    total: _Seconds | None = None
    """For the whole answer; unlimited by default."""


class BreakerTable(_Table, frozen=True, kw_only=True):
    """The circuit breaker. Each model of the provider has its own."""

    failures: _Count = 5
    """Failures in a row that open it."""
    seconds: _SecondsOrZero = 10.0
    """Seconds that it stays open before one request may try the model again."""


class ProviderTable(_Table, frozen=True, kw_only=True):
    """A provider, under its own name or one of your choice."""

    kind: str = ""
    """The provider, as `dragoman models` lists it; defaults to the name of the table."""
    base_url: str | None = None
    """Replaces the provider's own URL."""
    api_key: str | None = None
    """Its key, plain or as `env:NAME`; defaults to the environment variable of the vendor's SDK."""
    api_keys: tuple[str, ...] = ()
    """Several keys, instead of `api_key`; requests use them in turn."""
    region: str | None = None
    """Bedrock: the AWS region."""
    project: str | None = None
    """Vertex AI: the project."""
    location: str | None = None
    """Vertex AI: the location."""
    api_version: str | None = None
    """Azure: the version of the API."""
    profile: str | None = None
    """What a compatible server accepts: the profile of a known one, such as `groq` or `vllm`."""
    headers: dict[str, str] = {}
    """Sent with each request."""
    timeouts: TimeLimits = TimeLimits()
    """See `[providers.NAME.timeouts]`."""
    breaker: BreakerTable = BreakerTable()
    """See `[providers.NAME.breaker]`."""
    models: tuple[str, ...] = ()
    """The models that clients see in lists, instead of those that the provider lists."""


class Weighted(_Table, frozen=True, kw_only=True):
    """One of several targets of a route."""

    model: str
    """`provider/model`, or the name of another route."""
    weight: _Amount = 1.0
    """How often it is chosen, relative to the others."""


class RouteTable(_Table, frozen=True, kw_only=True):
    """A model name that clients use; `*`, `?` and `[…]` are wildcards."""

    to: str | tuple[str | Weighted, ...]
    """`provider/model`, another route, or several of them, of which one is chosen by weight."""
    fallback: tuple[str, ...] = ()
    """Models to try in order when the target fails."""
    strict: bool = False
    """Refuse requests whose translation would lose something."""
    max_output_tokens: _Count | None = None
    """The maximum output tokens; also the default if the client sets none."""
    reasoning: Effort | None = None
    """The reasoning effort if the client sets none."""
    cache: Literal["5m", "1h"] | None = None
    """Mark requests for the prompt cache of Anthropic and Bedrock with this lifetime, if the client sets no mark."""
    drop: tuple[str, ...] = ()
    """Settings that are never forwarded, by their names in the intermediate format."""
    attempts: _Count = 3
    """Total attempts at the same model, if a request was provably not processed."""


class Price(_Table, frozen=True, kw_only=True):
    """What a model costs for a million tokens, by `provider/model` or by the model alone."""

    input: _Amount
    """Tokens of the request."""
    output: _Amount
    """Tokens of the answer."""
    cached: _Amount | None = None
    """Tokens read from the provider's cache; defaults to `input`."""
    cache_written: _Amount | None = None
    """Tokens written to the provider's cache; defaults to `input`."""


class CacheTable(_Table, frozen=True, kw_only=True):
    """The response cache: equal requests to the same model get the same answer, even in different formats."""

    seconds: _SecondsOrZero = 0.0
    """Seconds for which an answer is reused; 0 turns the cache off."""
    store: str = "memory"
    """`memory` per process, `database` (that of `server.database`), `redis://…` or `env:NAME`."""
    shared: bool = False
    """Whether clients with different keys get each other's answers; if not, each key has its own."""
    max_bytes: _CountOrZero = 64 << 20
    """Maximum bytes of all answers, in memory or in the database. For Redis, set its `maxmemory`."""
    max_answer: _CountOrZero = 1 << 20
    """Maximum bytes of one answer; larger ones are not cached."""


class McpServerTable(_Table, frozen=True, kw_only=True):
    """An MCP server whose tools clients of the gateway may use, under a name of your choice."""

    command: str = ""
    """A program that uses the stdio transport."""
    args: tuple[str, ...] = ()
    """Its arguments."""
    env: dict[str, str] = {}
    """Its environment; a value may be `env:NAME`."""
    cwd: str = ""
    """The folder it starts in."""
    url: str = ""
    """Instead of a command: the URL of a server that uses streamable HTTP."""
    headers: dict[str, str] = {}
    """Sent to it with each request; a value may be `env:NAME`."""
    allow: tuple[str, ...] = ("*",)
    """Tools that are offered, by name or pattern."""
    keys: tuple[str, ...] = ()
    """Names or patterns of the keys that may use it; empty allows all clients."""


class McpTable(_Table, frozen=True, kw_only=True):
    """Tools of MCP servers for clients, and the gateway as an MCP server."""

    serve: bool = False
    """Serve the gateway itself as an MCP server at `/mcp`: ask a model, convert a body, and the tools of `servers`."""
    rounds: _CountOrZero = 8
    """Maximum rounds of tool calls of one request; after them the model has to answer without tools."""
    calls: _CountOrZero = 32
    """Maximum tool calls of one request, in all rounds together."""
    call_seconds: _Seconds = 60.0
    """Time limit of one call."""
    connect_seconds: _Seconds = 30.0
    """Time limit for a server to start."""
    max_result: _CountOrZero = 65_536
    """Maximum characters of one result; longer ones are truncated."""
    servers: dict[str, McpServerTable] = {}
    """The servers, each as a table: `[mcp.servers.NAME]`."""


class LogTable(_Table, frozen=True, kw_only=True):
    """Where the log is written, and whether it contains bodies. `server.log` sets its format."""

    file: str = ""
    """Write lines of JSON to this file instead of standard error. It may be moved at any time (log rotation)."""
    bodies: bool = False
    """Also log what clients sent and received. Keys are removed; prompts and answers are not."""
    max_body: _CountOrZero = 16_384
    """Maximum characters of each body in the log."""


class TelemetryTable(_Table, frozen=True, kw_only=True):
    """Spans for an OpenTelemetry collector."""

    endpoint: str = ""
    """URL of the collector, such as `http://127.0.0.1:4318`; defaults to `$OTEL_EXPORTER_OTLP_ENDPOINT`. Without
    either, nothing is sent."""
    headers: dict[str, str] = {}
    """Headers for the collector; a value may be `env:NAME`."""
    service: str = "dragoman"
    """The name of the service in the spans."""
    ratio: float = 1.0
    """Sampled share of the traces that begin here. For traces that a client began, the client decides."""


class DefaultsTable(_Table, frozen=True, kw_only=True):
    """What `ask`, `run` and `chat` use unless the command line says otherwise."""

    model: str = ""
    """`provider/model` or the name of a route; `$DRAGOMAN_MODEL` takes precedence."""
    system: str = ""
    """Instructions before each question."""


class ChatTable(_Table, frozen=True, kw_only=True):
    """The models of `dragoman chat` and of the chat in the browser."""

    models: dict[str, str] = {}
    """Names of participants, each with its `provider/model` or route, instead of the default ones."""
    default: tuple[str, ...] = ()
    """The models that answer a message without a mention; `all` means every model."""
    share: bool = False
    """Whether models see each other's answers."""


class Config(_Table, frozen=True, kw_only=True):
    server: Server = Server()
    log: LogTable = LogTable()
    telemetry: TelemetryTable = TelemetryTable()
    cache: CacheTable = CacheTable()
    mcp: McpTable = McpTable()
    providers: dict[str, ProviderTable] = {}
    routes: dict[str, RouteTable] = {}
    prices: dict[str, Price] = {}
    defaults: DefaultsTable = DefaultsTable()
    chat: ChatTable = ChatTable()


DROPPABLE = frozenset({*SETTING_NAMES, "metadata"} - {"model", "stream"})


def load_config(file: FilePath | None) -> Config:
    """Read the file, or return the defaults if there is none. Raises `ConfigError`."""
    if file is None:
        return Config()
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot read {file}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: not UTF-8 (byte {error.start})") from None
    return read_config(text, str(file))


def read_config(text: str, file: str = "dragoman.toml") -> Config:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(_syntax(str(error), text, file)) from None
    except RecursionError:
        raise ConfigError(f"{file}: nested too deeply") from None
    except ValueError as error:  # a number with thousands of digits
        raise ConfigError(f"{file}: {str(error).partition(';')[0]}") from None
    for place, value, kind in _tables(data):
        try:
            msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            path, words = _validation(str(error))
            if words == _UNKNOWN_SETTING:
                known = _settings_at(kind, path[:-1])
                words += _did_you_mean(str(path[-1]), known) or (f"; known: {', '.join(known)}" if known else "")
            raise _wrong(text, file, (*place, *path), words) from None
    config = msgspec.convert(data, Config)
    for path, words in _mistakes(config):
        raise _wrong(text, file, path, words)
    return config


def _tables(data: dict[str, Any]) -> Iterator[tuple[Path, Any, type]]:
    """Yield user-named tables one by one, because msgspec's errors name the setting but not the table."""
    for section, kind in (("providers", ProviderTable), ("routes", RouteTable), ("prices", Price)):
        tables = data.get(section)
        if isinstance(tables, dict):
            yield from (((section, name), value, kind) for name, value in tables.items())
    yield (), data, Config


_AT = re.compile(r" \(at line (\d+), column (\d+)\)$")


def _syntax(message: str, text: str, file: str) -> str:
    found = _AT.search(message)
    if found:
        return f"{file}:{found[1]}:{found[2]}: {message[: found.start()]}"
    lines = text.splitlines() or [""]
    return f"{file}:{len(lines)}:{len(lines[-1]) + 1}: {message.partition(' (at end')[0]}"


def _wrong(text: str, file: str, path: Path, words: str) -> ConfigError:
    line, column = position_of(text, path)
    where = ".".join(one if (one := str(step)).isprintable() else ascii(one) for step in path)
    return ConfigError(f"{file}:{line}:{column}: {where + ': ' if where else ''}{words}")


_UNKNOWN_SETTING = "unknown setting"
_UNKNOWN = re.compile(r"Object contains unknown field `([^`]+)`")
_MISSING = re.compile(r"Object missing required field `([^`]+)`")
_STEP = re.compile(r"\.([A-Za-z_]\w*)|\[(\d+)\]|\[\.\.\.\]")


def _validation(message: str) -> tuple[Path, str]:
    """Split msgspec's message into path and text. In its path, `$.providers[...].port`, keys of mappings become `*`."""
    words, _, where = message.partition(" - at `")
    path: Path = tuple(
        int(found[2]) if found[2] else (found[1] or "*") for found in _STEP.finditer(where.rstrip("`").lstrip("$"))
    )
    unknown = _UNKNOWN.match(words)
    if unknown:
        return (*path, unknown[1]), _UNKNOWN_SETTING
    missing = _MISSING.match(words)
    if missing:
        return path, f"{missing[1]} is missing"
    return path, words[:1].lower() + words[1:]


def _settings_at(kind: type, path: Path) -> Iterable[str]:
    """Return the names of the settings of the table at this path; none if it has no fixed names."""
    found: Any = msgspec.inspect.type_info(kind)
    for step in path:
        if isinstance(found, msgspec.inspect.UnionType):
            found = next((one for one in found.types if _has_step(one, step)), None)
        if isinstance(found, msgspec.inspect.StructType):
            found = next((field.type for field in found.fields if field.encode_name == step), None)
        elif isinstance(found, msgspec.inspect.DictType):
            found = found.value_type
        else:
            found = getattr(found, "item_type", None)
    options = found.types if isinstance(found, msgspec.inspect.UnionType) else (found,)
    return [field.encode_name for one in options for field in getattr(one, "fields", ())]


def _has_step(kind: Any, step: str | int) -> bool:
    return hasattr(kind, "item_type") if isinstance(step, int) else hasattr(kind, "fields")


_SIMILARITY = 0.7


def _did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a hint at the known name that is most similar; empty if none is close."""
    near = difflib.get_close_matches(name.lower(), list(known), n=1, cutoff=_SIMILARITY)
    return f"; did you mean {near[0]!r}?" if near else ""


_KEY = re.compile(r"sha256:[0-9a-fA-F]{64}|env:\S+|(?!sha256:|env:)\S(?:.*\S)?")
_URL = re.compile(r"(?:https?|local)://[^\s/?#]", re.IGNORECASE)
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")


def _mistakes(config: Config) -> list[tuple[Path, str]]:
    found: list[tuple[Path, str]] = []
    for name, table in config.providers.items():
        found += [(("providers", name, *path), words) for path, words in _provider_mistakes(name, table)]
    found += [
        (("server", "keys", place), "a key is plain, env:NAME, or sha256: with 64 hexadecimal digits")
        for place, key in enumerate(config.server.keys)
        if not _KEY.fullmatch(key)
    ]
    known = {*PROVIDERS, *ALIASES, *config.providers}
    for name, route in config.routes.items():
        place: Path = ("routes", name)
        found += [(place, words) for words in _targets(route, known, config)]
        found += [
            ((*place, "drop"), f"{word!r} is not a setting that can be dropped")
            for word in route.drop
            if word not in DROPPABLE
        ]
    found += _loops(config)
    models: list[tuple[Path, str]] = [(("chat", "models", name), one) for name, one in config.chat.models.items()]
    if config.defaults.model:
        models.append((("defaults", "model"), config.defaults.model))
    found += [(place, words) for place, model in models for words in _wrong_target(model, known, config)]
    if not 0.0 <= config.telemetry.ratio <= 1.0:
        found.append((("telemetry", "ratio"), "a ratio is a number from 0 to 1"))
    for name, server in config.mcp.servers.items():
        if bool(server.command) == bool(server.url):
            found.append((("mcp", "servers", name), "either command or url"))
    if config.cache.seconds and config.cache.store == "database" and not config.server.database:
        found.append((("cache", "store"), "there is no server.database"))
    if not 0 <= config.server.port < 1 << 16:
        found.append((("server", "port"), "a port is a number from 0 to 65535"))
    return found


def _provider_mistakes(name: str, table: ProviderTable) -> Iterator[tuple[Path, str]]:
    kind = table.kind or name
    if ALIASES.get(kind, kind) not in PROVIDERS:
        yield ("kind",) if table.kind else (), _no_provider(kind)
    if table.api_key is not None and table.api_keys:
        yield ("api_keys",), "either api_key or api_keys"
    if not name or not name.isprintable() or set(name) & set("/#"):
        yield (), "a provider needs a name of printable characters without / and #"
    if table.base_url is not None and not _URL.match(table.base_url):
        yield ("base_url",), "a base URL begins with http:// or https:// and a host"
    for header, value in table.headers.items():
        if not _HEADER.fullmatch(header) or not _HEADER_VALUE.fullmatch(value):  # every request would fail
            yield ("headers", header), "not a header that can be sent"


def _no_provider(kind: str) -> str:
    hint = _did_you_mean(kind, (*PROVIDERS, *ALIASES))
    own = "" if hint else '; a server of your own needs a kind, such as "openai-compatible"'
    return f"unknown provider {kind!r}{own}{hint}{'' if hint else ';'} known providers: {', '.join(PROVIDERS)}"


def _models(route: RouteTable) -> list[str]:
    given = (route.to,) if isinstance(route.to, str) else route.to
    return [one if isinstance(one, str) else one.model for one in given]


def _loops(config: Config) -> list[tuple[Path, str]]:
    """Return an error for the first loop of routes: a request for one of them would never reach a model.

    A depth-first search without recursion, because a file may have thousands of routes in a row.
    """
    routes = {
        name: [one for one in reversed((*_models(route), *route.fallback)) if one in config.routes]
        for name, route in config.routes.items()
    }
    done: set[str] = set()
    for first in routes:
        way = [] if first in done else [first]
        on_way = set(way)
        while way:
            here = way[-1]
            following = routes[here].pop() if routes[here] else None
            if following is None:
                done.add(here)
                on_way.remove(way.pop())
            elif following in on_way:
                loop = [*way[way.index(following) :], following]
                return [(("routes", following, "to"), f"the route leads back to itself: {_describe_loop(loop)}")]
            elif following not in done:
                way.append(following)
                on_way.add(following)
    return []


def _describe_loop(loop: list[str]) -> str:
    most = 20
    names = loop if len(loop) <= most else [*loop[: most // 2], "…", *loop[-most // 2 :]]
    return " -> ".join(names)


def _targets(route: RouteTable, known: set[str], config: Config) -> list[str]:
    models = _models(route)
    words = [] if models else ["`to` names no model"]
    for model in (*models, *route.fallback):
        words += _wrong_target(model, known, config)
    return words


def _wrong_target(model: str, known: set[str], config: Config) -> list[str]:
    provider, slash, rest = model.partition("/")
    if not slash or not rest:
        return [] if model in config.routes else [f"{model!r} is neither provider/model nor a route"]
    return [] if provider in known else [_no_provider(provider)]


def schema() -> dict[str, Any]:
    return msgspec.json.schema(Config)
