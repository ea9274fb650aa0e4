"""What operators see: health, readiness, the log, the OpenAPI description, and the files of deploy/."""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml  # type: ignore[import-untyped]
from msgspec import Struct, structs

from dragoman.cli.main import build_parser
from dragoman.drivers.providers import PROVIDERS
from dragoman.gateway import config as configuration
from dragoman.gateway.access import Access
from dragoman.gateway.config import Config, read_config
from dragoman.gateway.endpoints import Operation, match_endpoint
from dragoman.gateway.http_request import Head
from dragoman.gateway.metrics import Metrics
from dragoman.gateway.openapi import DESCRIBED, description
from dragoman.gateway.request_log import Log, LogFile, TextLog, open_log
from dragoman.gateway.request_records import Record
from dragoman.gateway.serve_command import ServeOptions, check_configuration
from dragoman.gateway.state.base import Timing, Unavailable
from dragoman.gateway.state.ledger import Ledger
from dragoman.gateway.state.memory import MemoryMeters
from dragoman.ir import Usage
from dragoman.sim.server import Simulator
from scripts import reference_docs
from tests.gateway.running import RunningGateway, configured, send, simulated
from tests.gateway.test_failures import chat
from tests.support.promises import promise
from tests.support.waiting import PATIENCE

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"


# ── health ──


@promise("gateway:operations")
def test_health_reports_upstreams_with_their_breakers() -> None:
    down = '[providers.openai-chat]\napi_key = "x"\nbase_url = "http://127.0.0.1:9/v1"\nbreaker = { failures = 1 }\n'
    with RunningGateway(configured(down)) as gateway:
        assert send(gateway.url, "/health", method="GET").json == {"status": "healthy", "in_flight": 0, "upstreams": {}}
        assert send(gateway.url, "/v1/chat/completions", chat("openai-chat/x")).status == 502
        health = send(gateway.url, "/health", method="GET").json
        assert health["upstreams"] == {"openai-chat": {"status": "unhealthy", "breaker": "open"}}
        assert health["status"] == "healthy", "the gateway is, though one upstream is not"
        assert send(gateway.url, "/ready", method="GET").json == {"status": "healthy"}


@promise("gateway:operations")
def test_a_gateway_whose_database_is_unreachable_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    with Simulator() as simulator, RunningGateway(simulated(simulator.url)) as gateway:
        monkeypatch.setattr(Access, "problem", property(lambda _self: "the database does not answer"))
        ready = send(gateway.url, "/ready", method="GET")
        assert (ready.status, ready.json) == (503, {"status": "unhealthy", "problem": "the database does not answer"})
        health = send(gateway.url, "/health", method="GET")
        assert (health.status, health.json["status"]) == (200, "unhealthy"), "alive, so it should not be restarted"


class _Away:
    """A database with keys that can be made unreachable."""

    shared = True
    broken = False

    async def any_keys(self) -> bool:
        if self.broken:
            raise Unavailable("the database does not answer")
        return True

    async def close(self) -> None:
        pass


@promise("gateway:operations")
def test_an_unreachable_database_is_detected_without_requests() -> None:
    async def watched() -> list[str]:
        store, timing = _Away(), Timing(lease=0.06)
        ledger = Ledger(store, MemoryMeters(timing), timing)  # type: ignore[arg-type]
        await ledger.refresh()
        access, seen = Access((), {}, ledger, ""), []
        tending = asyncio.ensure_future(ledger.tend())
        for broken in (False, True, False):
            store.broken = broken
            async with asyncio.timeout(PATIENCE):
                while bool(access.problem) != broken:  # noqa: ASYNC110 - polled, as by a health probe
                    await asyncio.sleep(0.005)
            seen.append(access.problem)
        tending.cancel()
        return seen

    assert asyncio.run(watched()) == ["", "the database does not answer", ""]


# ── the log ──


def record(**changes: Any) -> Record:
    base = Record(id="r", client="openai-chat", operation="generate", model="smart", started=0.0, status=200)
    return structs.replace(base, upstream="anthropic", target="claude", seconds=1.234, **changes)


class _Kept:
    encoding = "utf-8"

    def __init__(self, *, terminal: bool = False) -> None:
        self.text, self._terminal = "", terminal

    def isatty(self) -> bool:
        return self._terminal

    def write(self, text: str, /) -> None:
        self.text += text

    def flush(self) -> None:
        pass


@promise("gateway:operations")
def test_log_lines_for_a_terminal() -> None:
    kept = _Kept()
    log = TextLog(kept)  # type: ignore[arg-type]
    log.request(record(usage=Usage(12, 34), cost=0.5, key="ada", attempts=2))
    log.request(structs.replace(record(), status=502, error="upstream \x1b[31mbroke\nbadly", losses=()))
    log.event("reloaded", file="dragoman.toml")
    first, second, third = kept.text.splitlines()
    assert first[9:] == (
        "200  openai-chat smart -> anthropic/claude  1.23 s  12 + 34 tokens  cost 0.5000  key ada  2 attempts"
    )
    assert second[9:] == "502  openai-chat smart -> anthropic/claude  1.23 s  upstream �[31mbroke⏎badly"
    assert third[9:] == "reloaded: file dragoman.toml"


@promise("gateway:operations")
def test_colour_sequences_of_clients_are_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    kept = _Kept(terminal=True)
    TextLog(kept).request(structs.replace(record(), model="\x1b[2Jx", status=200))  # type: ignore[arg-type]
    assert "\x1b[32m200\x1b[0m" in kept.text
    assert "\x1b[2J" not in kept.text


@promise("gateway:operations")
def test_the_style_of_the_log_follows_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for terminal, expected in ((True, TextLog), (False, Log)):
        monkeypatch.setattr("sys.stderr", _Kept(terminal=terminal))
        assert type(open_log("auto")) is expected
    assert type(open_log("json")) is Log
    assert type(open_log("text")) is TextLog
    assert open_log("off").silent


@promise("gateway:operations")
def test_log_rotation_loses_no_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "gateway.log"
    log = open_log("auto", str(file))
    log.event("first")
    assert file.stat().st_mode & 0o777 == 0o600
    file.rename(tmp_path / "gateway.log.1")
    log.event("second")  # within the second: still the old file
    log.reopen()  # as SIGHUP does
    log.event("third")
    file.unlink()
    monkeypatch.setattr("dragoman.gateway.request_log._CHECK_SECONDS", 0.0)
    log.event("fourth")  # noticed without a signal
    events = [json.loads(line)["event"] for line in (tmp_path / "gateway.log.1").read_text().splitlines()]
    assert events == ["first", "second"]
    assert [json.loads(line)["event"] for line in file.read_text().splitlines()] == ["fourth"]
    assert log.lost == 0
    log.close()
    with pytest.raises(OSError, match="directory"):
        LogFile(tmp_path)


# ── the OpenAPI description ──


@promise("gateway:operations")
def test_every_path_of_the_description_is_served_and_every_operation_described() -> None:
    for row in DESCRIBED:
        path = re.sub(r"{\w+}", "x", row.path)
        found = match_endpoint(Head(row.method, path, "", {}))
        assert found.operation == row.operation, row.path
        assert not row.format or found.format == row.format, row.path
    # Operations that answer mistakes, and WebSockets, which OpenAPI cannot describe.
    undescribed = {"preflight", "none", "method", "websocket", "realtime"}
    assert {row.operation for row in DESCRIBED} == set(get_args(Operation)) - undescribed


@promise("gateway:operations")
def test_the_description_is_served_and_consistent() -> None:
    with Simulator() as simulator, RunningGateway(simulated(simulator.url)) as gateway:
        served = send(gateway.url, "/openapi.json", method="GET").json
        health = send(gateway.url, "/health", method="GET").json
    assert served == description()
    schemas = served["components"]["schemas"]
    named = re.findall(r'"#/components/schemas/(\w+)"', json.dumps(served))
    assert set(named) <= set(schemas)
    operations = [one for path in served["paths"].values() for one in path.values()]
    ids = [one["operationId"] for one in operations]
    assert len(ids) == len(set(ids)) == len(DESCRIBED)
    assert set(health) <= set(schemas["Health"]["properties"])


# ── checking ──


@promise("gateway:operations")
def test_the_check_asks_every_upstream(tmp_path: Path) -> None:
    file = tmp_path / "dragoman.toml"
    with Simulator() as simulator:
        good = f'[providers.a]\nkind = "openai-chat"\napi_key = "k"\nbase_url = "{simulator.url}/openai/v1"\n'
        file.write_text(good)
        found = check_configuration(ServeOptions(file=file))
        assert found.reachable
        assert found.lines[1].startswith("  a: works: ")
        file.write_text(good + '[providers.b]\nkind = "anthropic"\napi_key = "k"\nbase_url = "http://127.0.0.1:9"\n')
        found = check_configuration(ServeOptions(file=file))
        assert not found.reachable
        assert "  b: silent: nothing answers at http://127.0.0.1:9" in found.lines
        assert check_configuration(ServeOptions(file=file), offline=True).reachable


# ── the files of deploy/ ──


def manifests() -> list[dict[str, Any]]:
    files = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
    return [one for file in files for one in yaml.safe_load_all(file.read_text()) if one]


def kind(name: str) -> dict[str, Any]:
    (found,) = [one for one in manifests() if one["kind"] == name]
    return found


def understood(words: list[str]) -> None:
    """Check that the command line accepts these arguments; `dragoman` itself is the entry point."""
    build_parser().parse_args(words)


@promise("gateway:operations")
def test_the_configuration_of_the_deployment_is_read() -> None:
    config: Config = read_config((DEPLOY / "dragoman.toml").read_text())
    named = {config.server.database, config.server.limits}
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    secret = kind("Secret")["stringData"]
    for name in named:
        assert name.removeprefix("env:") in compose["services"]["gateway"]["environment"]
        assert name.removeprefix("env:") in secret
    wanted = re.findall(r"\${(\w+)", (DEPLOY / "compose.yaml").read_text())
    assert set(wanted) == {line.partition("=")[0] for line in _lines("example.env")}


def _lines(name: str) -> list[str]:
    lines = (DEPLOY / name).read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


@promise("gateway:operations")
def test_the_manifests_match_the_gateway() -> None:
    server = tomllib.loads((DEPLOY / "dragoman.toml").read_text())["server"]
    pod = kind("Deployment")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    understood(container["args"])
    assert container["ports"][0]["containerPort"] == server["port"]
    for probe, operation in (("livenessProbe", "health"), ("readinessProbe", "ready"), ("startupProbe", "ready")):
        path = container[probe]["httpGet"]["path"]
        assert match_endpoint(Head("GET", path, "", {})).operation == operation
    slept = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
    assert pod["terminationGracePeriodSeconds"] > server["drain_seconds"] + slept
    labels = kind("Deployment")["spec"]["selector"]["matchLabels"]
    assert (
        kind("Service")["spec"]["selector"] == labels == kind("PodDisruptionBudget")["spec"]["selector"]["matchLabels"]
    )
    assert kind("HorizontalPodAutoscaler")["spec"]["scaleTargetRef"]["name"] == kind("Deployment")["metadata"]["name"]
    customised = yaml.safe_load((DEPLOY / "kustomization.yaml").read_text())
    for name in (*customised["resources"], *customised["configMapGenerator"][0]["files"]):
        assert (DEPLOY / name).is_file()


@promise("gateway:operations")
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kustomize_builds_the_manifests() -> None:
    command = ["kubectl", "kustomize", str(DEPLOY)]
    built = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
    kinds = [one["kind"] for one in yaml.safe_load_all(built.stdout)]
    assert "ConfigMap" in kinds
    assert "Deployment" in kinds


@promise("gateway:operations")
def test_commands_and_paths_of_the_image_and_services_exist() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    understood(json.loads(re.findall(r"^CMD (\[.*\])$", text, re.MULTILINE)[-1]))
    assert json.loads(re.findall(r"^ENTRYPOINT (\[.*\])$", text, re.MULTILINE)[0]) == ["dragoman"]
    (address,) = re.findall(r"http://127.0.0.1:8787(/\w+)", text)
    assert match_endpoint(Head("GET", address, "", {})).operation == "ready"
    for copied in re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.MULTILINE):
        assert all((ROOT / name).exists() for name in copied.split()), copied
    (select,) = re.findall(r"^RUN (sed .*) > stores.lock$", text, re.MULTILINE)
    stores = subprocess.run(["bash", "-c", select], cwd=ROOT, check=True, capture_output=True, text=True).stdout  # noqa: S603, S607
    assert re.findall(r"^(\w+)==", stores, re.MULTILINE) == ["psycopg", "redis"]
    assert stores.count("--hash=") >= 2
    assert stores.rstrip()[-1] != "\\"
    for line in (DEPLOY / "dragoman.service").read_text().splitlines():
        if line.startswith(("ExecStart=", "ExecStartPre=")):
            understood(line.partition("=")[2].split()[1:])
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    assert set(compose["services"]) == {"gateway", "postgres", "redis"}
    for command in re.findall(r"run --rm gateway (.*)", (DEPLOY / "compose.yaml").read_text()):
        understood(command.split())


@promise("gateway:operations")
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_accepts_the_unit() -> None:
    unit = str(DEPLOY / "dragoman.service")
    found = subprocess.run(["systemd-analyze", "verify", unit], check=False, capture_output=True, text=True)  # noqa: S603, S607
    complaints = [line for line in found.stderr.splitlines() if "is not executable" not in line]
    assert complaints == []


@promise("gateway:operations")
def test_nginx_accepts_the_configuration(tmp_path: Path) -> None:
    text = (DEPLOY / "nginx.conf").read_text()
    assert text.count("{") == text.count("}")
    assert "proxy_buffering off;" in text
    assert "proxy_set_header X-Forwarded-Proto $scheme;" in text
    nginx = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    if nginx is None:
        pytest.skip("nginx is not installed")
    version = subprocess.run([nginx, "-v"], check=True, capture_output=True, text=True).stderr  # noqa: S603
    if tuple(map(int, re.findall(r"\d+", version)[:3])) < (1, 25, 1):
        text = re.sub(r"http2 on;.*", "", text)
    certificate = tmp_path / "own.pem"
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    made += ["-keyout", str(certificate), "-out", str(tmp_path / "chain.pem"), "-subj", "/CN=x"]
    subprocess.run(made, check=True, capture_output=True)  # noqa: S603
    text = re.sub(r"(ssl_certificate_key +)\S+;", rf"\1{certificate};", text)
    text = re.sub(r"(ssl_certificate +)\S+;", rf"\1{tmp_path / 'chain.pem'};", text)
    whole = tmp_path / "whole.conf"
    whole.write_text(f"pid {tmp_path}/pid;\nerror_log stderr;\nevents {{}}\nhttp {{ access_log off;\n{text}\n}}\n")
    tested = subprocess.run([nginx, "-t", "-c", str(whole)], check=False, capture_output=True, text=True)  # noqa: S603
    assert "syntax is ok" in tested.stderr, tested.stderr


@promise("gateway:operations")
def test_files_for_caddy_and_logrotate_match_the_gateway() -> None:
    caddy = "\n".join(line.partition("#")[0] for line in (DEPLOY / "Caddyfile").read_text().splitlines())
    depth = 0
    for word in caddy.split():
        depth += (word == "{") - (word == "}")
        assert depth >= 0
    assert depth == 0
    (address,) = re.findall(r"reverse_proxy (\S+)", caddy)
    assert address == f"127.0.0.1:{Config().server.port}"
    assert "flush_interval -1" in caddy
    rotate = "\n".join(_lines("logrotate.conf"))
    found = re.fullmatch(r"(\S+) \{\n((?: +[a-z]+(?: \d+)?\n)+)\}", rotate)
    assert found is not None
    known = {"daily", "weekly", "rotate", "missingok", "notifempty", "compress", "delaycompress", "nocreate", "dateext"}
    assert {line.split()[0] for line in found[2].splitlines()} <= known


@promise("gateway:operations")
def test_every_file_of_deploy_is_read_by_a_test() -> None:
    names = {str(file.relative_to(DEPLOY)) for file in DEPLOY.rglob("*") if file.is_file()}
    read = {"dragoman.toml", "compose.yaml", "example.env", "kustomization.yaml", "Dockerfile", "dragoman.service"}
    read |= {"nginx.conf", "Caddyfile", "logrotate.conf", "grafana/gateway.json", "README.md"}
    assert names == read | {f"kubernetes/{file.name}" for file in (DEPLOY / "kubernetes").glob("*.yaml")}
    mentioned = (DEPLOY / "README.md").read_text()
    assert [name for name in ("compose.yaml", "nginx.conf", "Caddyfile", "grafana") if name not in mentioned] == []


@promise("gateway:operations")
def test_the_comparison_of_gateways_is_dated_and_sourced() -> None:
    page = (ROOT / "docs" / "gateways.md").read_text()
    assert re.search(r"read on 20\d\d-\d\d-\d\d", page)
    (heading,) = re.findall(r"^\| +\|(.*)\|$", page, re.MULTILINE)
    compared = [name.strip() for name in heading.split("|")]
    sources = page.partition("## Sources")[2]
    for name in compared:
        assert re.search(rf"^- {re.escape(name.split()[0])}", sources, re.MULTILINE), name
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    assert {row.count("|") for row in rows} == {len(compared) + 2}
    assert f"dragoman has {len(PROVIDERS)} " in page


@promise("gateway:operations")
def test_the_dashboard_queries_existing_metrics() -> None:
    metrics = Metrics()
    metrics.add(record(usage=Usage(1, 1), cost=0.1, cache="hit", failure="server", attempts=2, first_byte=0.1))
    text = metrics.text({"x": "open"}, {("x", "m"): "open"}, {"usage_waiting": 0, "usage_lost": 0, "log_lines_lost": 0})
    served = set(re.findall(r"^# TYPE (\w+)", text, re.MULTILINE))
    names: set[str] = set()
    dashboard = json.loads((DEPLOY / "grafana" / "gateway.json").read_text())
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            names |= set(re.findall(r"dragoman_\w+", target["expr"]))
            assert target["expr"].count("(") == target["expr"].count(")")
    assert {re.sub(r"_bucket$", "", name) for name in names} <= served
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])


# ── the references ──


@promise("gateway:operations", "gateway:documented")
def test_the_reference_pages_are_current() -> None:
    """If this fails: python scripts/reference_docs.py."""
    assert (ROOT / "docs" / "configuration.md").read_text() == reference_docs.configuration()


@promise("gateway:operations", "gateway:documented")
def test_every_setting_of_every_table_is_in_the_reference() -> None:
    page = reference_docs.configuration()
    tables = {one for one in vars(configuration).values() if isinstance(one, type) and issubclass(one, Struct)}
    for table in tables - {Struct, Config} - {one for one in tables if not structs.fields(one)}:
        for name in (field.name for field in structs.fields(table)):
            assert f"| `{name}` |" in page, (table.__name__, name)


@promise("gateway:documented")
def test_every_environment_variable_of_our_own_is_in_the_reference() -> None:
    page = reference_docs.configuration()
    built_from = {"DRAGOMAN_COMPILE", "DRAGOMAN_KEY"}  # read by the build, and by Codex
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    names = set(re.findall(r"\bDRAGOMAN_[A-Z_]+|\bCHAT_HISTORY_[A-Z_]+", sources)) - built_from
    assert {name for name in names if f"`{name}`" not in page} == set()


@promise("gateway:documented")
@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="argparse words its help differently in each version")
def test_the_commands_page_is_current() -> None:
    """If this fails: python scripts/reference_docs.py."""
    assert (ROOT / "docs" / "commands.md").read_text() == reference_docs.commands()
