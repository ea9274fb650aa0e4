"""Run real coding agents through the gateway against the simulators of every family: a complete tool loop.

    python scripts/try_agents.py [--only claude,codex,gemini,opencode] [--targets gemini,ollama-chat]

The agents are npm packages; missing ones are installed into `.clients` (DRAGOMAN_CLIENTS names another folder). Each
runs without a terminal, in a shell that has evaluated the output of `dragoman serve --print-env`: see
tests/gateway/agents.py. Agents that cannot be installed are named, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from dragoman.sim.server import Simulator  # noqa: E402 - found by the lines above
from tests.gateway.agents import AGENTS, Agent, run, turns  # noqa: E402
from tests.gateway.installing import CannotInstall, npm_packages  # noqa: E402
from tests.gateway.running import RunningGateway, every_format, simulated  # noqa: E402
from tests.sim.test_sim_pairs import MODELS  # noqa: E402


def program_of(agent: Agent) -> Path | None:
    try:
        return next(iter(sorted(npm_packages().glob(agent.program))), None)
    except CannotInstall as error:
        print(error)
        return None


def tried(name: str, program: Path, target: str, gateway: RunningGateway) -> bool:
    gateway.log.clear()
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as home:
        model = f"as-{target}/{MODELS[target]}"
        ended = run(AGENTS[name], program, url=gateway.url, model=model, home=Path(home))
    seconds = time.monotonic() - started
    print(f"{'PASS' if ended.good else 'FAIL'} {name} -> {target} {seconds:.1f} s", flush=True)
    if not ended.good:
        print(ended.output[-1000:], *(line for line in gateway.log.lines if line.get("error")), sep="\n", flush=True)
    return ended.good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(AGENTS))
    parser.add_argument("--targets", default=",".join(MODELS))
    arguments = parser.parse_args()
    good = True
    with Simulator() as simulator:
        simulator.play(*turns())
        with RunningGateway(simulated(simulator.url, every_format(simulator.url))) as gateway:
            for name in arguments.only.split(","):
                program = program_of(AGENTS[name])
                if program is None:
                    print(f"MISSING {name}: NOTHING WAS TRIED")
                    good = False
                    continue
                for target in arguments.targets.split(","):
                    good &= tried(name, program, target, gateway)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
