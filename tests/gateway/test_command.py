"""The commands as users run them: in real processes."""

import json
import re
import shlex
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli.main import main
from dragoman.drivers.providers import PROVIDERS
from dragoman.gateway.recipes import RECIPES, recipe
from tests.cli.command import COMMAND, environment, run
from tests.gateway.running import connected, send
from tests.gateway.test_failures import chat, stream_of
from tests.support.promises import promise
from tests.support.waiting import PATIENCE

_KEYS = {
    name for provider in PROVIDERS.values() for name in (*provider.key_environment, *provider.base_url_environment)
}


@contextmanager
def served(*arguments: str, cwd: Path) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    clean = {name: value for name, value in environment().items() if name not in _KEYS}
    process = subprocess.Popen(  # noqa: S603
        [*COMMAND, "serve", "--port", "0", *arguments], stderr=subprocess.PIPE, text=True, cwd=cwd, env=clean
    )
    assert process.stderr is not None
    try:
        greeting = process.stderr.readline()
        found = re.match(r"(http://127\.0\.0\.1:\d+) ", greeting)
        assert found, greeting
        yield found[1], process
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(PATIENCE)
        process.stderr.close()


@promise("front:pages-are-true")
def test_the_greeting_is_the_one_that_the_documentation_shows(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "gateway.md").read_text(encoding="utf-8")
    shown = page.partition("$ dragoman serve\n")[2].partition("```")[0].splitlines()
    with served(cwd=tmp_path) as (url, process):
        assert process.stderr is not None
        lines = [process.stderr.readline().rstrip()]
        while not lines[-1].startswith("  OpenAI: "):
            lines.append(process.stderr.readline().rstrip())
    # Models and servers on this machine are not on the page.
    lines = [line.replace(", local,", ",") for line in lines if "on this machine" not in line]
    printed = [line.replace(url, "http://127.0.0.1:8787") for line in lines]
    assert printed == shown[1:]


def test_the_greeting_of_simulate_does_not_report_missing_keys(tmp_path: Path) -> None:
    with served("--simulate", cwd=tmp_path) as (_, process):
        assert process.stderr is not None
        process.stderr.readline()
        assert process.stderr.readline() == "  simulators answer (--simulate)\n"


@promise("gateway:command", "gateway:no-config", "gateway:shutdown", "gateway:reload")
def test_a_first_run_answers_at_once(tmp_path: Path) -> None:
    file = tmp_path / "dragoman.toml"
    file.write_text('[routes.mine]\nto = "anthropic/claude-sonnet-5"\n')
    with served(cwd=tmp_path) as (url, process):
        assert send(url, "/v1/chat/completions", chat("mine")).status == 200
        assert send(
            url, "/v1/messages", {"model": "openai/gpt-5", "max_tokens": 99, "messages": chat("")["messages"]}
        ).json
        assert send(url, "/v1/chat/completions", chat("my-model")).status == 200
        nobody = send(url, "/v1/chat/completions", chat("nobody/x"))
        assert (nobody.status, nobody.json["error"]["code"]) == (404, "model_not_found")
        assert "known providers: mine, openai, " in nobody.json["error"]["message"]
        with connected(url) as sock:
            sock.sendall(stream_of("gemini/gemini-3.6-flash"))
            assert sock.recv(15) == b"HTTP/1.1 200 OK"
        file.write_text("[routes.mine]\nto = 5\n")
        process.send_signal(signal.SIGHUP)
        assert process.stderr is not None
        lines = iter(process.stderr.readline, "")
        refused = next(line for line in lines if "reload_refused" in line)
        assert "dragoman.toml:2:1: routes.mine.to" in json.loads(refused)["error"]
        assert send(url, "/v1/chat/completions", chat("mine")).status == 200
        file.write_text('[routes.other]\nto = "anthropic/claude-sonnet-5"\n')
        process.send_signal(signal.SIGHUP)
        assert next(line for line in lines if '"reloaded"' in line)
        assert send(url, "/v1/chat/completions", chat("other")).status == 200
        process.terminate()
        assert process.wait(25) == 0, "earlier than requests in progress would be cut off"


@promise("gateway:command", "gateway:keys")
@pytest.mark.parametrize("home", ["sqlite", "postgres"])
def test_keys_and_usage(
    tmp_path: Path,
    home: str,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    address = "gateway.db" if home == "sqlite" else request.getfixturevalue("postgres_server").fresh()
    monkeypatch.chdir(tmp_path)

    def output_of(*arguments: str) -> str:
        assert main([*arguments]) == 0
        return capsys.readouterr().out

    def rows(*arguments: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in output_of(*arguments, "--json").splitlines()]

    key = output_of("keys", "create", "ada", "--database", address, "--models", "anthropic/*").strip()
    assert key.startswith("dgm-")
    assert main(["keys", "create", "ada", "--database", address]) == 2
    (tmp_path / "dragoman.toml").write_text(f'[server]\ndatabase = "{address}"\n')
    with served("--quiet", cwd=tmp_path) as (url, _):
        headers = {"authorization": f"Bearer {key}"}
        assert send(url, "/v1/chat/completions", chat("anthropic/claude-sonnet-5"), headers).status == 200
        assert send(url, "/v1/chat/completions", chat("anthropic/claude-sonnet-5")).status == 401
    capsys.readouterr()
    assert "all models" not in output_of("keys", "list")
    (new,) = rows("keys", "rotate", "ada")
    assert (new["name"], new["key"] != key) == ("ada", True)
    assert "revoked" in output_of("keys", "revoke", "ada")
    (listed,) = rows("keys", "list")
    assert (listed["name"], listed["state"], listed["models"]) == ("ada", "revoked", ["anthropic/*"])
    assert not {"digest", "key"} & listed.keys()
    (row,) = [row for row in rows("usage") if row["key"]]
    assert (row["requests"], row["model"], row["day"]) == (1, "claude-sonnet-5", "")
    assert [day["requests"] for day in rows("usage", "--by", "day")] == [2]
    assert "claude-sonnet-5" in output_of("usage")


@promise("gateway:command")
@pytest.mark.parametrize("command", [("usage",), ("keys", "list"), ("keys", "revoke", "ada")])
def test_a_database_that_does_not_exist_is_not_created_by_reading_it(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([*command, "--database", "typo.db"]) == 2
    assert "dragoman: there is no database typo.db" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@promise("gateway:command", "gateway:loopback")
def test_configuration_errors_end_the_command_with_one_line(tmp_path: Path) -> None:
    bad = tmp_path / "bad.toml"
    bad.write_text("[server]\nprot = 1\n")
    completed = run("serve", "--config", str(bad))
    assert (completed.returncode, completed.stderr.decode()) == (
        2,
        f"dragoman: {bad}:2:1: server.prot: unknown setting; did you mean 'port'?\n",
    )
    assert b"refusing to listen on 0.0.0.0 without keys" in run("serve", "--host", "0.0.0.0", cwd=tmp_path).stderr  # noqa: S104
    assert run("serve", "--config", str(tmp_path / "none.toml")).returncode == 2
    good = tmp_path / "good.toml"
    good.write_text('[routes.a]\nto = "openai/x"\n')
    assert b"1 route, no mistakes" in run("serve", "--config", str(good), "--check").stdout


@promise("gateway:command")
@pytest.mark.parametrize("client", RECIPES)
def test_recipes_contain_the_address(client: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--print-env", client, "--model", "gemini/m"]) == 0
    assert "127.0.0.1:8787" in capsys.readouterr().out


@promise("gateway:command")
def test_a_recipe_has_a_placeholder_for_the_key_if_one_may_be_required(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "gateway.toml"
    for text, host, key in (
        ("[server]\n", "127.0.0.1", "any"),
        ('[server]\nhost = "0.0.0.0"\nkeys = ["sesame"]\n', "127.0.0.1", "YOUR_KEY"),
        ('[server]\nhost = "::"\ndatabase = "gateway.db"\n', "[::1]", "YOUR_KEY"),
    ):
        file.write_text(text)
        assert main(["serve", "--config", str(file), "--print-env", "openai"]) == 0
        assert capsys.readouterr().out.splitlines() == [
            f"export OPENAI_BASE_URL={shlex.quote(f'http://{host}:8787/v1')}",
            f"export OPENAI_API_KEY={key}",
        ]


@promise("gateway:command")
@pytest.mark.parametrize("client", RECIPES)
def test_names_in_recipes_are_quoted_for_the_shell(client: str, tmp_path: Path) -> None:
    """The lines are for a shell, which must not run any part of a model's name."""
    text = "\n".join(recipe(client, url="http://127.0.0.1:1", key="a'b", model="x'$(touch gone)`touch gone`;\"y"))
    (tmp_path / "llm").write_text("#!/bin/sh\necho ./logs.db\n")
    (tmp_path / "llm").chmod(0o755)
    clean = {"PATH": f"{tmp_path}:/usr/bin:/bin", "HOME": str(tmp_path)}
    subprocess.run(["bash", "-euc", text], cwd=tmp_path, env=clean, check=True, capture_output=True)  # noqa: S603, S607
    assert not (tmp_path / "gone").exists()


@promise("gateway:command")
def test_the_check_names_targets_of_routes_that_lack_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _KEYS:
        monkeypatch.setenv(name, "")
    file = tmp_path / "dragoman.toml"
    file.write_text(
        '[providers.anthropic]\napi_key = "k"\nbase_url = "http://127.0.0.1:9"\n'
        '[routes.other]\nto = "anthropic/y"\n'
        '[routes.fast]\nto = ["openai/x", "anthropic/y"]\nfallback = ["cohere/z", "other"]\n'
    )
    checked = run("serve", "--config", str(file), "--check")
    lines = [line for line in checked.stdout.decode().splitlines() if line.startswith("  route ")]
    assert sorted(lines) == [
        "  route fast: cohere/z: cohere has no api_key: set COHERE_API_KEY or CO_API_KEY",
        "  route fast: openai/x: openai has no api_key: set OPENAI_API_KEY",
    ]
    assert checked.returncode == 6
