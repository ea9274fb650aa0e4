"""Real coding agents through the gateway to the strict simulators of every family: a tool loop, to its end.

    python scripts/try_agents.py --folder DIR [--install] [--only claude,codex,gemini] [--targets gemini,ollama]

The agents are npm packages and lie in DIR; `--install` puts them there. Each runs headless, with a key that is none,
its telemetry off and a HOME of its own. The simulated model asks for a shell command; the agent runs it and sends the
result; only then does the model say the word that counts. An agent that is not there is named, and the end is 1.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"
COMMAND = "seq -f rig-%g 42 42"
RESULT = "rig-42"
WORD = f"the answer is {RESULT}, done"
QUESTION = "Use the shell to compute 40+2 and tell me"
PATIENCE = 120


@dataclass(frozen=True)
class Agent:
    package: str
    program: str
    tool: str
    argument: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    files: Mapping[str, str]


CODEX = """
model = "{model}"
model_provider = "dragoman"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
[model_providers.dragoman]
name = "dragoman"
base_url = "{url}/v1"
env_key = "DRAGOMAN_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
[analytics]
enabled = false
"""
GEMINI = (
    '{{"security": {{"auth": {{"selectedType": "gemini-api-key"}}}}, "privacy": {{"usageStatisticsEnabled": false}}, '
    '"telemetry": {{"enabled": false}}, "general": {{"enableAutoUpdate": false}}}}'
)
AGENTS: Mapping[str, Agent] = {
    "claude": Agent(
        "@anthropic-ai/claude-code-linux-x64",
        "node_modules/@anthropic-ai/claude-code-linux-x64/claude",
        "Bash",
        "command",
        ("-p", QUESTION, "--allowedTools", "Bash", "--output-format", "json", "--max-turns", "4", "--model", "{model}"),
        {
            "ANTHROPIC_BASE_URL": "{url}",
            "ANTHROPIC_API_KEY": "any",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_ERROR_REPORTING": "1",
        },
        {},
    ),
    "codex": Agent(
        "@openai/codex",
        "node_modules/.bin/codex",
        "exec_command",
        "cmd",
        ("exec", "--skip-git-repo-check", "--json", QUESTION),
        {"DRAGOMAN_KEY": "any", "CODEX_HOME": "{home}/.codex"},
        {".codex/config.toml": CODEX},
    ),
    "gemini": Agent(
        "@google/gemini-cli",
        "node_modules/.bin/gemini",
        "run_shell_command",
        "command",
        ("-m", "{model}", "--yolo", "-p", QUESTION, "--output-format", "json"),
        {"GEMINI_API_KEY": "any", "GOOGLE_GEMINI_BASE_URL": "{url}", "GEMINI_CLI_TRUST_WORKSPACE": "true"},
        {".gemini/settings.json": GEMINI},
    ),
}
# Provider, what stands between its address and the simulator's, and a model that thinks and signs where there is one.
TARGETS: Mapping[str, tuple[str, str, str]] = {
    "openai-chat": ("openai-chat", "/openai/v1", "gpt-5"),
    "openai-responses": ("openai", "/openai/v1", "gpt-5"),
    "anthropic": ("anthropic", "/anthropic", "claude-sonnet-5"),
    "gemini": ("gemini", "/gemini", "gemini-3.6-flash"),
    "vertex": ("vertex", "/vertex", "gemini-3.6-flash"),
    "ollama": ("ollama", "/ollama", "qwen3"),
    "bedrock": ("bedrock", "/bedrock", "anthropic.claude-opus-4-8"),
}
# To its own family an agent speaks as it does to its vendor: nothing of ours is in between.
OWN = {"claude": {"anthropic"}, "codex": {"openai-responses"}, "gemini": {"gemini", "vertex"}}


def script(agent: Agent) -> str:
    call = {"name": agent.tool, "arguments": {agent.argument: COMMAND}}
    turns = [{"when": {"says": RESULT}, "times": 0, "text": WORD}, {"times": 0, "text": "I look.", "calls": [call]}]
    return json.dumps({"turns": turns})


def config(url: str, port: int) -> str:
    tables = [f'[server]\nport = {port}\nlog = "json"\n']
    for name, (kind, mount, _) in TARGETS.items():
        region = 'region = "us-east-1"\n' if kind == "bedrock" else ""
        tables.append(f'[providers.to-{name}]\nkind = "{kind}"\nbase_url = "{url}{mount}"\napi_key = "any"\n{region}')
    return "\n".join(tables)


@contextmanager
def dragoman(*arguments: str, log: Path) -> Iterator[str]:
    """A command that serves, and the address it prints."""
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONUNBUFFERED": "1"}
    with log.open("w") as output:
        command = [sys.executable, "-m", "dragoman", *arguments]
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment)  # noqa: S603 - our own
    try:
        while not (found := re.search(r"^http://\S+", log.read_text(), re.MULTILINE)):
            if process.poll() is not None:
                raise SystemExit(log.read_text())
            time.sleep(0.05)
        yield found[0]
    finally:
        process.terminate()
        process.wait()


def run(agent: Agent, folder: Path, home: Path, url: str, model: str) -> tuple[bool, str]:
    values = {"url": url, "model": model, "home": str(home)}
    for name, text in agent.files.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text.format(**values))
    given = {name: value.format(**values) for name, value in agent.environment.items()}
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "TERM": "dumb", **given}
    command = [str(folder / agent.program), *(word.format(**values) for word in agent.arguments)]
    work = home / "work"
    work.mkdir(exist_ok=True)
    try:
        ended = subprocess.run(  # noqa: S603 - named above
            command, capture_output=True, text=True, env=environment, cwd=work, timeout=PATIENCE, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return False, f"nothing within {PATIENCE} s"
    return ended.returncode == 0 and WORD in ended.stdout, (ended.stdout + ended.stderr)[-600:]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--install", action="store_true")
    parser.add_argument("--only", default=",".join(AGENTS))
    parser.add_argument("--targets", default=",".join(TARGETS))
    arguments = parser.parse_args()
    bad = 0
    for name in arguments.only.split(","):
        agent = AGENTS[name]
        folder = arguments.folder / name
        if arguments.install:
            folder.mkdir(parents=True, exist_ok=True)
            subprocess.run(["npm", "--prefix", str(folder), "install", agent.package], check=False)  # noqa: S603, S607
        if not (folder / agent.program).exists():
            print(f"MISSING {name}: no {folder / agent.program}; NOTHING WAS TRIED (see --install)")
            bad += 1
            continue
        bad += tried(name, agent, folder, [one for one in arguments.targets.split(",") if one not in OWN[name]])
    return 1 if bad else 0


def tried(name: str, agent: Agent, folder: Path, targets: list[str]) -> int:
    bad = 0
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        (place / "script.json").write_text(script(agent))
        with dragoman("sim", "--port", "0", "--script", str(place / "script.json"), log=place / "sim.log") as simulated:
            (place / "gateway.toml").write_text(config(simulated, 0))
            with dragoman("serve", "--config", str(place / "gateway.toml"), log=place / "gateway.log") as url:
                for target in targets:
                    model = f"to-{target}/{TARGETS[target][2]}"
                    home = place / f"home-{target}"
                    home.mkdir()
                    started = time.monotonic()
                    good, told = run(agent, folder, home, url, model)
                    print(
                        f"{'PASS' if good else 'FAIL'} {name} -> {target} {time.monotonic() - started:.1f} s",
                        flush=True,
                    )
                    if not good:
                        bad += 1
                        refused = [
                            line for line in (place / "gateway.log").read_text().splitlines() if '"error"' in line
                        ]
                        print(told, *refused[-3:], sep="\n", flush=True)
    return bad


if __name__ == "__main__":
    sys.exit(main())
