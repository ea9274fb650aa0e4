"""The configuration: allowed values, positions of errors, routing of model names, and reloading."""

import json
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from dragoman.gateway.client_protocols import CLIENT_PROTOCOLS
from dragoman.gateway.config import ConfigError, read_config
from dragoman.gateway.routing import NoSuchModel, Router
from dragoman.gateway.serving import simulators_at
from dragoman.gateway.toml_positions import position_of
from dragoman.sim.server import Simulator
from tests.gateway.running import RunningGateway, configured, connected, send
from tests.gateway.served import served
from tests.gateway.test_failures import chat, provider, stream_of
from tests.support.promises import promise

MISTAKES = [
    ('[server]\nport = "x"\n', "2:1: server.port: expected `int`, got `str`"),
    ("[server]\nhost = 1\n", "2:1: server.host: expected `str`, got `int`"),
    ("[server]\n\n  prot = 1\n", "3:3: server.prot: unknown setting"),
    ("[server]\nport = 99999\n", "2:1: server.port: a port is a number from 0 to 65535"),
    ("[serve]\n", "1:1: serve: unknown setting"),
    ("[server\n", "1:8: Expected ']' at the end of a table declaration"),
    ('[providers.x]\nkind = "nope"\n', "2:1: providers.x.kind: unknown provider 'nope'"),
    ("[providers.nope]\n", "1:1: providers.nope: unknown provider 'nope'"),
    (
        '[providers.a]\nkind = "openai"\n[providers.b]\nkind = "openai"\ntimeouts = { connect = "soon" }\n',
        "5:14: providers.b.timeouts.connect: expected `float`, got `str`",
    ),
    (
        '[routes.a]\nto = "openai/x"\ndrop = ["color"]\n',
        "3:1: routes.a.drop: 'color' is not a setting that can be dropped",
    ),
    ("[routes.a]\nstrict = true\n", "1:1: routes.a: to is missing"),
    ('[routes.a]\nto = "gpt-5"\n', "1:1: routes.a: 'gpt-5' is neither provider/model nor a route"),
    (
        '[routes."a b"]\nto = ["openai/x", { model = "openai/y", weight = "much" }]\n',
        "2:41: routes.a b.to.1.weight: expected `float`, got `str`",
    ),
    (
        'routes = { a = { to = "openai/x", reasoning = "hard" } }\n',
        "1:35: routes.a.reasoning: invalid enum value 'hard'",
    ),
]

LIMITS = {
    "server.max_body": ("-1", "0", "nan", "10000000000000000000000"),
    "server.request_seconds": ("-1", "0", "nan", "inf"),
    "server.body_rate": ("-1", "nan"),
    "server.max_requests": ("-1",),
    "server.drain_seconds": ("-1", "nan", "inf"),
    "server.signature_seconds": ("-1", "nan"),
    "server.lease_seconds": ("0", "nan"),
    "server.batch_concurrency": ("-1",),
    "server.batch_bytes": ("-1",),
    "providers.openai.timeouts.connect": ("-1", "nan"),
    "providers.openai.timeouts.total": ("0", "nan"),
    "providers.openai.breaker.failures": ("0", "-1"),
    "providers.openai.breaker.seconds": ("-1", "nan"),
    "prices.x.input": ("-1", "nan", "inf"),
    "prices.x.cached": ("-1", "nan"),
    "routes.a.max_output_tokens": ("-5", "0"),
    "routes.a.attempts": ("0", "-1"),
    "cache.seconds": ("-1", "nan"),
    "cache.max_bytes": ("-1",),
    "mcp.rounds": ("-1",),
    "mcp.call_seconds": ("nan", "0"),
    "log.max_body": ("-1",),
}
"""Numbers with which a limit would limit nothing, or everything: TOML has `nan` and `inf`."""
REST = {"prices": "output = 1\n", "routes": 'to = "openai/x"\n'}

UNUSABLE = [
    *(
        (f'[server]\nkeys = ["good", "{key}"]\n', "2:17: server.keys.1: a key is plain, env:NAME, or sha256: with")
        for key in ("", "  ", " a", "sha256:", "sha256:é", "sha256:" + "0" * 63, "env:")
    ),
    *(
        (f'[providers."{name}"]\nkind = "openai"\n', f"1:1: providers.{name}: a provider needs a name of printable")
        for name in ("a/b", "a#b", "")
    ),
    ('[providers."a\\n"]\nkind = "openai"\n', "1:1: providers.'a\\n': a provider needs a name of printable"),
    *(
        (f'[providers.openai]\nbase_url = "{url}"\n', "2:1: providers.openai.base_url: a base URL begins with http://")
        for url in ("", "example.com/v1", "ftp://x", "https://", "https:///v1", "file:///etc/passwd")
    ),
    (
        '[providers.openai]\nheaders = { "a b" = "c" }\n',
        "2:13: providers.openai.headers.a b: not a header that can be sent",
    ),
    (
        '[providers.openai]\nheaders = { a = "b\\r\\nc: d" }\n',
        "2:13: providers.openai.headers.a: not a header that can be sent",
    ),
    (
        '[routes.a]\nto = [{ model = "openai/x", weight = -1 }]\n',
        "2:29: routes.a.to.0.weight: expected `float` >= 0",
    ),
]


@promise("gateway:config-errors")
@pytest.mark.parametrize("setting", LIMITS)
def test_numbers_that_limit_nothing_or_everything_are_refused(setting: str) -> None:
    table, _, name = setting.rpartition(".")
    for value in LIMITS[setting]:
        text = f"[{table}]\n{name} = {value}\n{REST.get(table.partition('.')[0], '')}"
        with pytest.raises(ConfigError, match=rf"^x:2:1: {re.escape(setting)}: expected `"):
            read_config(text, "x")


SLIPS = [
    ("[server]\nprot = 1\n", "server.prot: unknown setting; did you mean 'port'?"),
    ("[sever]\n", "sever: unknown setting; did you mean 'server'?"),
    ("[server]\nTLS_Cert = 'x'\n", "server.TLS_Cert: unknown setting; did you mean 'tls_cert'?"),
    ('[providers.openai]\napi-key = "k"\n', "providers.openai.api-key: unknown setting; did you mean 'api_key'?"),
    (
        "[providers.openai.timeouts]\nfirst_bytes = 1.0\n",
        "providers.openai.timeouts.first_bytes: unknown setting; did you mean 'first_byte'?",
    ),
    (
        '[routes.a]\nto = [{ model = "openai/y", wieght = 1 }]\n',
        "routes.a.to.0.wieght: unknown setting; did you mean 'weight'?",
    ),
    ('[mcp.servers.x]\ncomand = "x"\n', "mcp.servers.*.comand: unknown setting; did you mean 'command'?"),
    ("[server]\ncolour = 1\n", "server.colour: unknown setting; known: host, port,"),
    ("[routes.a]\ntargets = 1\n", "routes.a.targets: unknown setting; known: to, fallback,"),
    (
        "[providers.mine]\n",
        (
            "providers.mine: unknown provider 'mine'; a server of your own needs a kind, such as "
            '"openai-compatible"; known providers: openai,'
        ),
    ),
    (
        "[providers.opnai]\n",
        "providers.opnai: unknown provider 'opnai'; did you mean 'openai'? known providers: openai,",
    ),
]


@promise("gateway:config-errors")
@pytest.mark.parametrize(("text", "expected"), SLIPS)
def test_errors_about_unknown_names_suggest_a_similar_one(text: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_config(text, "x")
    _, _, words = str(caught.value).partition(": ")
    assert words == expected or (expected.endswith(",") and words.startswith(expected))


@promise("gateway:config-errors")
@pytest.mark.parametrize(("text", "expected"), [*MISTAKES, *UNUSABLE])
def test_a_configuration_error_names_its_position(text: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_config(text, "gateway.toml")
    assert str(caught.value).startswith(f"gateway.toml:{expected}")


TOML = '''
# [not] = "this"
title = """ [server]
port = 1 """
[a."b.c"] # x
k = [1, [2, 3], { z = 'q]' }, 2026-01-01 00:00:00, "]"]
l.m = 1
[[t]]
n = 1
[[t]]
n = { o = { p = 2 } }
'''


@pytest.mark.parametrize(
    ("path", "place"),
    [
        (("a", "b.c"), (5, 1)),
        (("a", "b.c", "k", 1, 1), (6, 13)),
        (("a", "b.c", "k", 2, "z"), (6, 19)),
        (("a", "b.c", "k", 4), (6, 52)),
        (("a", "b.c", "l", "m"), (7, 1)),
        (("t", 1, "n", "o", "p"), (11, 13)),
        (("server", "port"), (1, 1)),
    ],
)
def test_positions_in_toml(path: tuple[str | int, ...], place: tuple[int, int]) -> None:
    assert position_of(TOML, path) == place


# ── names ──


KEYS = {"OPENAI_API_KEY": "a", "ANTHROPIC_API_KEY": "b", "GEMINI_API_KEY": "c"}


def planned(text: str, model: str, format: str, environment: dict[str, str] | None = None) -> list[str]:
    plan = Router(read_config(text), KEYS if environment is None else environment).plan(model, format)
    return [f"{one.upstream.name}/{one.model}" for one in plan.candidates]


@promise("gateway:names", "gateway:no-config")
@pytest.mark.parametrize(
    ("model", "format", "expected"),
    [
        ("anthropic/claude-sonnet-5", "openai-chat", "anthropic/claude-sonnet-5"),
        ("claude-sonnet-5", "openai-chat", "anthropic/claude-sonnet-5"),
        ("openai/gpt-5", "openai-responses", "openai/gpt-5"),
        ("openai/gpt-5", "openai-chat", "openai-chat/gpt-5"),
        ("openai/gpt-5", "anthropic-messages", "openai/gpt-5"),
        ("gpt-5", "openai-chat", "openai-chat/gpt-5"),
        ("gemini-3.6-flash", "anthropic-messages", "gemini/gemini-3.6-flash"),
        ("models/gemini-3.6-flash", "gemini", "gemini/gemini-3.6-flash"),
        ("google/gemini-3.6-flash", "openai-chat", "gemini/gemini-3.6-flash"),
        ("llama3.2:latest", "openai-chat", "ollama/llama3.2:latest"),
        ("unheard-of", "anthropic-messages", "anthropic/unheard-of"),
    ],
)
def test_the_model_name_selects_the_provider(model: str, format: str, expected: str) -> None:
    assert planned("", model, format) == [expected]


@promise("gateway:names")
def test_an_unusable_provider_is_reported_with_what_is_missing() -> None:
    with pytest.raises(NoSuchModel) as caught:
        planned("", "anthropic/claude-sonnet-5", "openai-chat", {})
    assert "ANTHROPIC_API_KEY" in caught.value.hint


@promise("gateway:names")
@pytest.mark.parametrize("format", CLIENT_PROTOCOLS)
def test_an_unknown_provider_is_not_replaced_by_another(format: str) -> None:
    router = Router(
        read_config('[routes.fast]\nto = "openai/gpt-5"'), {}, simulated=simulators_at("http://127.0.0.1:1")
    )
    assert router.plan("my-model", format).candidates
    with pytest.raises(NoSuchModel) as caught:
        router.plan("nobody/x", format)
    assert caught.value.hint.startswith("unknown provider 'nobody'; known providers: fast, openai, ")


OWN_SERVER = '[providers.openai]\nbase_url = "http://127.0.0.1:1"\napi_key = "k"\n'


@promise("gateway:names")
@pytest.mark.parametrize(
    ("text", "environment", "format", "expected"),
    [
        ("", {"OPENAI_BASE_URL": "http://127.0.0.1:1", "OPENAI_API_KEY": "k"}, "openai-chat", "openai-chat"),
        ('[providers.anthropic]\nbase_url = "http://127.0.0.1:1"', KEYS, "anthropic-messages", "anthropic"),
        ("", {}, "ollama-chat", "ollama"),
        # Whichever of OpenAI's APIs is configured, it serves clients of both.
        (OWN_SERVER, {}, "openai-chat", "openai"),
        (OWN_SERVER.replace("openai", "openai-chat"), {}, "openai-responses", "openai-chat"),
    ],
)
def test_models_of_self_hosted_servers_may_have_slashes_in_their_names(
    text: str, environment: dict[str, str], format: str, expected: str
) -> None:
    assert planned(text, "Qwen/Qwen3-8B", format, environment) == [f"{expected}/Qwen/Qwen3-8B"]


@promise("gateway:no-config", "gateway:no-ssrf")
def test_only_installed_local_models_may_be_used() -> None:
    router = Router(read_config(""), {}, local={"local": ("smollm2",), "ollama": ("qwen3",)})
    assert {place.name for place in router.available()} == {"local", "ollama"}
    assert router.plan("ollama/qwen3", "openai-chat").candidates
    for name in ("local/some/file.gguf", "local/file.gguf", "ollama/other"):
        with pytest.raises(NoSuchModel):
            router.plan(name, "openai-chat")


ROUTES = """
[routes.fast]
to = "gemini/gemini-3.6-flash"
fallback = ["openai/gpt-5"]
[routes."claude-*"]
to = "fast"
[routes.both]
to = [{ model = "anthropic/a", weight = 0 }, "openai/b"]
"""


@promise("gateway:routes")
def test_aliases_patterns_and_weights() -> None:
    assert planned(ROUTES, "fast", "openai-chat") == ["gemini/gemini-3.6-flash", "openai-chat/gpt-5"]
    assert planned(ROUTES, "claude-opus-5-5", "anthropic-messages") == ["gemini/gemini-3.6-flash", "openai/gpt-5"]
    assert planned(ROUTES, "both", "gemini") == ["openai/b", "anthropic/a"]


@promise("gateway:routes", "gateway:same-bytes")
def test_settings_of_a_route_are_applied_and_an_alias_is_renamed(dragoman_sim: Simulator) -> None:
    text = provider("p", dragoman_sim.url, kind="openai-chat") + (
        '[routes.alias]\nto = "p/gpt-5"\n'
        '[routes.set]\nto = "p/gpt-5"\nmax_output_tokens = 64\nreasoning = "low"\ndrop = ["temperature", "stop"]\n'
    )
    raw = (
        b'{ "metadata": {"model": "alias"},\n "model"  : "alias",\n "messages": [{"role":"user","content":"\\u00e9"}]}'
    )
    with RunningGateway(configured(text)) as gateway:
        assert send(gateway.url, "/v1/chat/completions", raw).status == 200
        assert dragoman_sim.requests[-1].body == raw.replace(b'"model"  : "alias"', b'"model"  : "gpt-5"')
        got = send(
            gateway.url, "/v1/chat/completions", chat("set", temperature=1, stop=["x"], max_completion_tokens=999)
        )
        assert got.status == 200, got.body
    sent: Any = dragoman_sim.requests[-1].json
    assert (sent["max_completion_tokens"], sent["reasoning_effort"]) == (64, "low")
    assert not {"temperature", "stop"} & sent.keys()


@promise("gateway:reload")
def test_reloading_the_configuration_ends_no_stream(dragoman_simulator: Simulator) -> None:
    slow = provider("p", dragoman_simulator.url, fault="drip=0.003")
    with RunningGateway(configured(slow)) as gateway, connected(gateway.url) as sock:
        sock.sendall(stream_of("p/claude-sonnet-5"))
        received = sock.recv(1000)
        with pytest.raises(ConfigError):
            read_config("[server]\nport = true\n")
        gateway.reload(provider("q", dragoman_simulator.url))
        assert send(gateway.url, "/v1/chat/completions", chat("q/claude-sonnet-5")).status == 200
        assert send(gateway.url, "/v1/chat/completions", chat("p/claude-sonnet-5")).status == 404
        while not received.endswith(b"0\r\n\r\n"):
            received += sock.recv(65536)
    assert b"p#" not in received


@promise("gateway:reload", "gateway:attacks")
def test_a_reload_without_keys_does_not_open_the_gateway(tmp_path: Path, dragoman_simulator: Simulator) -> None:
    text = f'[server]\nkeys = ["first-key-of-a-client"]\n{provider("p", dragoman_simulator.url)}'
    with served(tmp_path, text) as gateway:
        for part in ("", "[server]\n", provider("p", dragoman_simulator.url)):
            (tmp_path / "gateway.toml").write_text(part)
            gateway.process.send_signal(signal.SIGHUP)
            gateway.wait_for("reload_refused")
            gateway.lines.clear()
            assert send(gateway.url, "/v1/chat/completions", chat("p/claude-sonnet-5")).status == 401
        (tmp_path / "gateway.toml").write_text(text.replace("first", "other"))
        gateway.process.send_signal(signal.SIGHUP)
        gateway.wait_for("reloaded")
        headers = {"x-api-key": "other-key-of-a-client"}
        assert send(gateway.url, "/v1/chat/completions", chat("p/claude-sonnet-5"), headers).status == 200


def test_simulators_are_at_the_paths_of_the_table(dragoman_simulator: Simulator) -> None:
    for url in simulators_at(dragoman_simulator.url).values():
        assert url.startswith(dragoman_simulator.url)
    assert json.dumps(simulators_at("x"))
