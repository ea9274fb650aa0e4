"""`dragoman ask`, `dragoman models` and `dragoman doctor`, as their users run them."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli.toolfile import load_tools
from dragoman.sim.server import Simulator
from tests.cli.command import COMMAND, environment
from tests.support.promises import promise

KEY = "sk-test-1234567890abcdef"
TOOLS = '''
from typing import Literal

def get_weather(city: str, unit: Literal["c", "f"] = "c") -> str:
    """The weather of a city.

    Not shown to anybody.
    """
    raise RuntimeError("must not run")

def _helper() -> None: ...
'''


def run(*arguments: str, stdin: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in environment().items() if not name.endswith(("_API_KEY", "_BASE_URL"))}
    return subprocess.run(  # noqa: S603
        [*COMMAND, *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        env={**clean, **variables},
        timeout=60,
        check=False,
    )


def ask(simulator: Simulator, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    keyed = {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": simulator.url + "/anthropic"}
    return run("ask", "anthropic/claude-sonnet-4-6", *arguments, stdin=stdin, **keyed)


def test_an_answer_is_printed(dragoman_sim: Simulator) -> None:
    dragoman_sim.play({"reasoning": "Hm.", "text": "Because of the air.", "times": 0})
    for further in ((), ("--no-stream",)):
        ran = ask(dragoman_sim, "Why", "blue?", "--system", "Be brief.", "--max-tokens", "2000", *further)
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, "Because of the air.\n", "")
    body = dragoman_sim.requests[0].json
    assert body["messages"] == [{"role": "user", "content": "Why blue?"}]
    assert (body["system"], body["max_tokens"], body["stream"]) == ("Be brief.", 2000, True)


def test_the_question_may_come_through_a_pipe(dragoman_sim: Simulator) -> None:
    ran = ask(dragoman_sim, stdin="From a pipe")
    assert ran.returncode == 0
    assert dragoman_sim.requests[0].json["messages"] == [{"role": "user", "content": "From a pipe"}]


def test_calls_are_shown_and_not_run(dragoman_sim: Simulator, tmp_path: Path) -> None:
    file = tmp_path / "tools.py"
    file.write_text(TOOLS)
    ran = ask(dragoman_sim, "Weather in Tokyo?", "--tools", str(file))
    assert ran.returncode == 0
    assert '-> get_weather {"city":"Tokyo"}' in ran.stdout
    tools: Any = dragoman_sim.requests[0].json["tools"]
    (sent,) = tools
    (runs,) = load_tools(str(file))  # as `dragoman run` declares it
    assert sent == {
        "name": "get_weather",
        "description": runs.definition.description,
        "input_schema": runs.definition.parameters,
    }


@promise("seed:002-front-door")
def test_tools_may_be_in_several_files_and_be_what_run_takes(dragoman_sim: Simulator, tmp_path: Path) -> None:
    marked = tmp_path / "marked.py"
    marked.write_text(
        "import dragoman\n\n@dragoman.tool(name='get_weather')\ndef weather(city: str) -> str:\n    return city\n"
        "\ndef not_marked(city: str) -> str:\n    return city\n"
    )
    listed = tmp_path / "listed.py"
    listed.write_text("TOOLS = [{'type': 'web_search_20250305', 'name': 'web_search'}]\n")
    ran = ask(dragoman_sim, "Weather in Tokyo?", "--tools", str(marked), "--tools", str(listed))
    assert ran.returncode == 0, ran.stderr
    assert '-> get_weather {"city":"Tokyo"}' in ran.stdout
    sent: Any = dragoman_sim.requests[0].json["tools"]
    assert [tool["name"] for tool in sent] == ["get_weather", "web_search"]
    assert sent[1] == {"type": "web_search_20250305", "name": "web_search"}


def test_tools_may_be_json(dragoman_sim: Simulator, tmp_path: Path) -> None:
    file = tmp_path / "tools.json"
    file.write_text(json.dumps([{"name": "get_time", "description": "The time of a city"}]))
    ran = ask(dragoman_sim, "What time?", "--tools", str(file), "--tool-choice", "get_time")
    assert "-> get_time {}" in ran.stdout


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("tools.py", "def f(:", "SyntaxError"),
        ("tools.py", "import nothing_of_that_name", "ModuleNotFoundError"),
        ("tools.json", "[{}]", "no name"),
        ("tools.json", "{", "truncated"),
        ("tools.txt", "", "expected a .py file, a .json file or a module"),
    ],
)
def test_bad_files_of_tools_meet_one_line(name: str, text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    ran = run("ask", "anthropic/m", "x", "--tools", str(tmp_path / name), ANTHROPIC_API_KEY=KEY)
    assert ran.returncode == 2
    assert words in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_raw_shows_both_directions_without_the_key(dragoman_sim: Simulator) -> None:
    ran = ask(dragoman_sim, "Say hello.", "--raw")
    assert ran.stdout.startswith(f"> POST {dragoman_sim.url}/anthropic/v1/messages\n")
    assert "> x-api-key: [hidden]" in ran.stdout
    assert '"content":"Say hello."' in ran.stdout
    assert "< 200" in ran.stdout
    assert "event: message_stop" in ran.stdout
    assert KEY not in ran.stdout + ran.stderr


def test_curl_is_a_command_that_works(dragoman_sim: Simulator) -> None:
    ran = ask(dragoman_sim, 'It\'s me, $HOME & "all"', "--curl")
    assert ran.returncode == 0
    assert KEY not in ran.stdout
    assert dragoman_sim.requests == []
    words = shlex.split(ran.stdout)
    assert words[:2] == ["curl", "-N"]
    assert "x-api-key: $ANTHROPIC_API_KEY" in words
    body = json.loads(words[words.index("-d") + 1])
    assert body["messages"][0]["content"] == 'It\'s me, $HOME & "all"'


@pytest.mark.parametrize(
    ("model", "further", "words"),
    [
        ("openai/gpt-5.6", (), '-H "authorization: Bearer $OPENAI_API_KEY"'),
        ("gemini/gemini-3.8-flash", (), '-H "x-goog-api-key: $GEMINI_API_KEY"'),
        ("vertex/gemini-3.8-flash", ("--project", "p"), "gcloud auth print-access-token"),
        ("vertex-anthropic/claude-sonnet-5", ("--project", "p"), "/projects/p/locations/global/publishers/anthropic/"),
        ("bedrock/amazon.nova-lite-v1:0", ("--region", "eu-central-1"), "--aws-sigv4 aws:amz:eu-central-1:bedrock"),
        ("ollama/qwen3", ("--no-stream",), "curl http://127.0.0.1:11434/api/chat"),
        ("azure/d", ("--base-url", "https://r.openai.azure.com"), '-H "api-key: $AZURE_OPENAI_API_KEY"'),
    ],
)
def test_curl_needs_no_key(model: str, further: tuple[str, ...], words: str) -> None:
    ran = run("ask", model, "Hi", "--curl", *further)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert words in ran.stdout


def test_failures_are_one_line_and_an_exit_code(dragoman_sim: Simulator) -> None:
    missing = run("ask", "anthropic/m", "x")
    assert (missing.returncode, missing.stderr.count("\n")) == (2, 1)
    assert "set ANTHROPIC_API_KEY" in missing.stderr
    unknown = run("ask", "nobody/m", "x")
    assert (unknown.returncode, "unknown provider" in unknown.stderr) == (2, True)
    refused = run("ask", "anthropic/nope", "x", "--base-url", dragoman_sim.url + "/anthropic")
    assert refused.returncode == 4
    assert refused.stderr == "dragoman: anthropic/nope: model: nope (not_found, status 404)\n"
    dragoman_sim.play({"text": "Once upon a time there was a sea.", "chunk": 5, "cut": 6})
    broken = ask(dragoman_sim, "x")
    assert broken.returncode == 4
    assert broken.stdout.startswith("Once")
    assert "broke inside the answer" in broken.stderr


def test_a_retry_is_reported(dragoman_sim: Simulator) -> None:
    dragoman_sim.play({"status": 529}, {"text": "Here."})
    ran = ask(dragoman_sim, "x")
    assert ran.stdout == "Here.\n"
    assert "again in 0." in ran.stderr


def test_providers_and_their_models_are_listed(dragoman_sim: Simulator) -> None:
    everybody = run("models")
    assert everybody.returncode == 0
    assert "vertex-anthropic" in everybody.stdout
    for provider, mount, name in (
        ("openai", "/openai/v1", "gpt-5.6"),
        ("anthropic", "/anthropic", "claude-sonnet-5"),
        ("gemini", "/gemini", "gemini-3.8-flash"),
        ("vertex", "/vertex", "gemini-3.8-flash"),
        ("ollama", "/ollama", "qwen3:latest"),
    ):
        ran = run("models", provider, "--base-url", dragoman_sim.url + mount)
        assert f"{provider}/{name}\n" in ran.stdout, ran.stderr
    none = run("models", "vertex-anthropic", "--base-url", dragoman_sim.url)
    assert (none.returncode, "no list of its models" in none.stderr) == (2, True)


def test_the_doctor_sees_what_is_there(dragoman_sim: Simulator) -> None:
    where = {
        "ANTHROPIC_API_KEY": KEY,
        "ANTHROPIC_BASE_URL": dragoman_sim.url + "/anthropic",
        "OLLAMA_HOST": dragoman_sim.url + "/ollama",
        "GROQ_API_KEY": KEY,
        "AWS_EC2_METADATA_DISABLED": "true",
        "NO_GCE_CHECK": "true",
    }
    ran = run("doctor", "--offline", **where)
    assert ran.returncode == 0
    assert KEY not in ran.stdout
    rows = {line.split()[0]: line.split()[1] for line in ran.stdout.splitlines() if line}
    assert (rows["anthropic"], rows["ollama"], rows["groq"], rows["mistral"]) == ("works", "works", "not", "-"), (
        "asked offline: servers here"
    )
    assert rows["http"] == "aiohttp"
    assert (rows["core:"], "DRAGOMAN_COMPILE=1 " in ran.stdout) == ("source", True)
    del where["GROQ_API_KEY"]
    answer = run("doctor", "--timeout", "3", **where)
    rows = {line.split()[0]: line.split()[1] for line in answer.stdout.splitlines() if line}
    assert (rows["anthropic"], rows["ollama"], rows["vllm"]) == ("works", "works", "-")


def test_the_tour_visits_every_provider() -> None:
    for further in ((), ("--whole",)):
        ran = run("tour", *further)
        assert (ran.returncode, ran.stderr) == (0, "")
        assert ran.stdout.count("  stop, ") == 9
        assert ran.stdout.count('-> get_weather {"city":"Tokyo"}') == 9
        assert ran.stdout.count("says: 18 degrees, light rain. get_time (Tokyo) says: 14:05.") == 9
        # What crossed, in the words of each API.
        for spelled in (
            '"type":"function_call_output"',
            '"arguments":"{\\"city\\":',
            '"args":{',
            '"tool_use_id":',
            '"toolUseId":',
        ):
            assert spelled in ran.stdout, spelled


@pytest.mark.parametrize(
    ("provider", "option"), [("bedrock", "--region"), ("openai-compatible", "--base-url"), ("azure", "--base-url")]
)
def test_what_a_provider_lacks_is_an_option_of_the_command_and_in_its_help(provider: str, option: str) -> None:
    ran = run("ask", f"{provider}/model", "Hello", AZURE_OPENAI_API_KEY=KEY, AWS_BEARER_TOKEN_BEDROCK=KEY)
    assert ran.returncode == 2
    assert ran.stderr.endswith(f", or give {option}\n"), ran.stderr
    assert f"  {option} " in run("ask", "--help").stdout
