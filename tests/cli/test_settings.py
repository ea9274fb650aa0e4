"""What commands know without options: stored keys, one configuration file, a default model; and clear errors."""

import io
import os
import socket
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli.main import main
from dragoman.drivers.key_store import KeyStore, KeyStoreError, environment_with_stored_keys
from dragoman.gateway.config import ConfigError, read_config
from dragoman.sim.server import Simulator
from tests.cli.command import COMMAND, environment
from tests.support.promises import promise

KEY = "sk-test-1234567890abcdef"


def run(
    folder: Path, *arguments: str, stdin: str = "", cwd: Path | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in environment().items() if not name.endswith(("_API_KEY", "_BASE_URL"))}
    return subprocess.run(  # noqa: S603
        [*COMMAND, *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        cwd=cwd or folder,
        env={**clean, "XDG_CONFIG_HOME": str(folder / "config"), "DRAGOMAN_KEYRING": "off", **variables},
        timeout=60,
        check=False,
    )


class Here:
    """The command line within this process, in a folder of its own."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, output: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._monkeypatch = monkeypatch
        self._output = output

    def fails(self, *arguments: str, stdin: str = "") -> str:
        """What it writes to stderr; it must end with an error of the user's, or of the provider's."""
        self._monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
        assert main(arguments) in {2, 4}
        return self._output.readouterr().err


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Here:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("DRAGOMAN_KEYRING", "off")
    for name in [name for name in os.environ if name.endswith(("_API_KEY", "_BASE_URL"))]:
        monkeypatch.delenv(name)
    return Here(tmp_path, monkeypatch, capsys)


# ── stored keys ──


@promise("command:key-store")
def test_a_stored_key_is_used_and_only_its_owner_can_read_it(tmp_path: Path, dragoman_sim: Simulator) -> None:
    dragoman_sim.play({"text": "Hello."})
    stored = run(tmp_path, "keys", "set", "anthropic", stdin=f"{KEY}\n")
    assert (stored.returncode, stored.stderr) == (0, "")
    assert KEY not in stored.stdout
    file = tmp_path / "config" / "dragoman" / "keys.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    answer = run(
        tmp_path, "ask", "anthropic/claude-sonnet-4-6", "Hi", ANTHROPIC_BASE_URL=f"{dragoman_sim.url}/anthropic"
    )
    assert (answer.returncode, answer.stdout) == (0, "Hello.\n")
    assert run(tmp_path, "keys", "stored").stdout.split() == ["anthropic", str(file)]
    assert "stored key" in run(tmp_path, "doctor", "--offline").stdout
    assert run(tmp_path, "keys", "unset", "anthropic").returncode == 0
    gone = run(tmp_path, "ask", "anthropic/claude-sonnet-4-6", "Hi")
    assert (gone.returncode, "dragoman keys set anthropic" in gone.stderr) == (2, True)


@promise("command:key-store")
@pytest.mark.parametrize(("name", "stdin", "words"), [
    ("nothing", KEY, "unknown provider 'nothing'"),
    ("local", KEY, "takes no key"),
    ("openai", "\n", "no key given"),
    ("openai", "two words\n", "not a key"),
])  # fmt: skip
def test_an_invalid_key_is_refused(here: Here, name: str, stdin: str, words: str) -> None:
    assert words in here.fails("keys", "set", name, stdin=stdin)
    assert not (here.folder / "config").exists()


@promise("command:key-store")
def test_a_variable_wins_and_children_do_not_inherit(tmp_path: Path) -> None:
    KeyStore(tmp_path / "dragoman").set("openai", KEY)
    found = environment_with_stored_keys({"XDG_CONFIG_HOME": str(tmp_path), "DRAGOMAN_KEYRING": "off"})
    assert found["OPENAI_API_KEY"] == KEY
    assert KEY not in os.environ.values()
    own = {"XDG_CONFIG_HOME": str(tmp_path), "DRAGOMAN_KEYRING": "off", "OPENAI_API_KEY": "mine"}
    assert environment_with_stored_keys(own)["OPENAI_API_KEY"] == "mine"


class FakeKeyring:
    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], str] = {}

    def set_password(self, service: str, name: str, value: str, /) -> None:
        self.kept[service, name] = value

    def get_password(self, service: str, name: str, /) -> str | None:
        return self.kept.get((service, name))

    def delete_password(self, service: str, name: str, /) -> None:
        del self.kept[service, name]


@promise("command:key-store")
def test_a_keyring_has_the_key_and_the_file_only_its_name(tmp_path: Path) -> None:
    keyring = FakeKeyring()
    store = KeyStore(tmp_path, keyring)
    store.set("gemini", KEY)
    assert KEY.encode() not in store.file.read_bytes()
    assert store.keys() == {"gemini": KEY}
    assert store.places() == {"gemini": "keyring"}
    assert store.remove("gemini")
    assert not keyring.kept
    assert not store.remove("gemini")


@promise("command:key-store")
def test_a_file_that_others_may_read_or_that_is_damaged_is_refused(tmp_path: Path) -> None:
    store = KeyStore(tmp_path)
    store.set("openai", KEY)
    store.file.chmod(0o644)
    with pytest.raises(KeyStoreError, match="chmod 600"):
        store.keys()
    store.file.chmod(0o600)
    store.file.write_text("{")
    with pytest.raises(KeyStoreError, match="damaged"):
        store.keys()


# ── one file, one default model ──


def config(url: str, *, key: str = f'api_key = "{KEY}"') -> str:
    return (
        '[defaults]\nmodel = "fast"\nsystem = "Be brief."\n'
        '[routes.fast]\nto = "mine/claude-sonnet-4-6"\n'
        f'[providers.mine]\nkind = "anthropic"\nbase_url = "{url}/anthropic"\n{key}\n'
        '[chat.models]\nfast = "fast"\n'
    )


@promise("command:one-configuration")
def test_ask_and_run_take_model_provider_and_system_prompt_from_the_file(
    tmp_path: Path, dragoman_sim: Simulator
) -> None:
    dragoman_sim.play({"text": "Hello.", "times": 0})
    (tmp_path / "dragoman.toml").write_text(config(dragoman_sim.url))
    for command in (
        ("ask",),
        ("ask", "fast"),
        ("run", "-m", "mine/claude-sonnet-4-6"),
    ):
        ended = run(tmp_path, *command, "Hi")
        assert (ended.returncode, ended.stdout) == (0, "Hello.\n"), ended.stderr
        body: Any = dragoman_sim.requests[-1].json
        assert body["messages"][-1]["content"] in ("Hi", [{"type": "text", "text": "Hi"}])
        assert "Be brief." in str(body["system"])
    chatted = run(tmp_path, "chat", stdin="@fast Hi\n", XDG_DATA_HOME=str(tmp_path / "data"))
    assert (chatted.returncode, "Hello." in chatted.stdout) == (0, True)


@promise("command:one-configuration")
def test_the_file_may_be_the_users_own_or_be_named(tmp_path: Path, dragoman_sim: Simulator) -> None:
    dragoman_sim.play({"text": "Hello.", "times": 0})
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "config" / "dragoman").mkdir(parents=True)
    own = elsewhere / "config" / "dragoman" / "dragoman.toml"
    own.write_text(config(dragoman_sim.url))
    assert run(elsewhere, "ask", "Hi").stdout == "Hello.\n"
    assert run(tmp_path, "ask", "Hi", DRAGOMAN_CONFIG=str(own)).stdout == "Hello.\n"
    assert run(tmp_path, "ask", "--config", str(own), "Hi").stdout == "Hello.\n"


@promise("command:one-configuration")
def test_a_file_that_lies_around_does_not_get_your_key(tmp_path: Path) -> None:
    text = '[providers.openai]\nbase_url = "https://collector.example.com"\n'
    (tmp_path / "dragoman.toml").write_text(text)
    ended = run(tmp_path, "ask", "openai/gpt-5.6", "Hi", OPENAI_API_KEY=KEY)
    assert (ended.returncode, "--config dragoman.toml" in ended.stderr) == (2, True)


@promise("command:one-configuration")
def test_a_default_model_that_does_not_exist_is_found_when_the_file_is_read() -> None:
    with pytest.raises(ConfigError, match=r"dragoman.toml:2:1: defaults.model: unknown provider 'antropic'"):
        read_config('[defaults]\nmodel = "antropic/claude"\n')
    with pytest.raises(ConfigError, match=r"chat.models.fast: 'quick' is neither"):
        read_config('[chat.models]\nfast = "quick"\n')


# ── clear errors ──


@promise("command:clear-errors")
@pytest.mark.parametrize(("arguments", "words"), [
    (("ask", "Why?"), "no model given: name one as provider/model"),
    (("run", "Why?"), "no model given: name one as provider/model"),
    (("ask", "gpt-5.6", "Why?"), "'gpt-5.6' has no provider: write openai/gpt-5.6"),
    (("run", "-m", "claude-sonnet-5", "Why?"), "'claude-sonnet-5' has no provider: write anthropic/claude-sonnet-5"),
    (("keys",), "the following arguments are required: ACTION (see: dragoman keys --help)"),
    (("ask", "openai/gpt-5.6", " "), "the question is empty"),
    (("ask", "antropic/x", "Hi"), "unknown provider 'antropic'"),
    (("ask", "openai/gpt-5.6", "Hi", "--reasoning", "much"), "'much' is not one of on, off"),
    (("ask", "openai/gpt-5.6", "Hi", "--max-tokens", "-3"), "'-3' is not a number of at least 1"),
    (("ask", "openai/gpt-5.6", "Hi", "--timeout", "0"), "'0' is not a number of seconds"),
    (("ask", "openai/gpt-5.6", "Hi", "--tool-choice", "look"), "there are no tools; add some with --tools FILE"),
    (("ask", "openai/gpt-5.6", "Hi", "--tools", "empty.json"), "the list is empty"),
    (("run", "-m", "openai/gpt-5.6", "Hi", "--tools", "empty.json"), "only describes tools"),
    (("run", "-m", "openai/gpt-5.6", "Hi", "--tools", "empty.py"), "has no tools"),
    (("ask", "ollama/qwen3", "Hi", "--base-url", "http://127.0.0.1:9"), "at http://127.0.0.1:9; is Ollama running?"),
    (("ask", "ollama/qwen3", "Hi", "--base-url", "http://nosuch.invalid"), "there is no host 'nosuch.invalid'"),
])  # fmt: skip
def test_mistakes_meet_one_line_that_helps(here: Here, arguments: tuple[str, ...], words: str) -> None:
    (here.folder / "empty.json").write_text("[]")
    (here.folder / "empty.py").write_text("x = 1\n")
    assert words in here.fails(*arguments).splitlines()[-1]


@promise("command:clear-errors")
@pytest.mark.parametrize("command", [("serve",), ("sim",), ("chat", "--web", "--demo")])
def test_a_port_in_use_suggests_another(tmp_path: Path, command: tuple[str, ...]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = run(tmp_path, *command, "--port", str(port), XDG_DATA_HOME=str(tmp_path / "data"))
    assert ended.returncode == 2
    assert f"port {port} is in use" in ended.stderr
    suggested = int(ended.stderr.split("try --port ")[1].split()[0])
    with socket.create_server(("127.0.0.1", suggested)):
        pass
