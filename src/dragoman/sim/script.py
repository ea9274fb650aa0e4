"""Scripts: prepared turns that replace the model's answers.

    turns:
      - when: {api: anthropic-messages, model: "claude-*", says: weather}
        reasoning: I should look.
        text: One moment.
        calls:
          - {name: get_weather, arguments: {city: Paris}}
      - error: overloaded
        retry_after: 1
      - text: A long answer that breaks off.
        chunk: 4
        cut: 3
    afterwards: model

Each request takes the first remaining turn that matches. Scripts are JSON, TOML, or YAML if PyYAML is installed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

import msgspec

from dragoman.sim.conversation_view import Answer, Counts, Finish, Part, Prompt, TextPart, ThoughtPart, call_of
from dragoman.sim.faults import Fault
from dragoman.sim.model import apply_limits
from dragoman.sim.tokens import count_prompt


class When(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    api: str = "*"
    model: str = "*"
    # A part of the user's newest text, or of the results that came after it.
    says: str = ""
    # Matches after this many rounds of calls.
    rounds: int | None = None
    # Matches if a tool of this name is offered. Agents also send requests without tools, for titles or summaries.
    tool: str = ""

    def fits(self, api: str, prompt: Prompt) -> bool:
        rounds = sum(1 for turn in prompt.turns if turn.calls)
        return (
            fnmatchcase(api, self.api)
            and fnmatchcase(prompt.model, self.model)
            and self.says.lower() in _newest_text(prompt).lower()
            and self.rounds in (None, rounds)
            and (not self.tool or any(fnmatchcase(tool.name, self.tool) for tool in prompt.tools))
        )


def _newest_text(prompt: Prompt) -> str:
    turns = [turn for turn in prompt.turns if turn.role == "user"]
    newest = turns[-1] if turns else None
    return "\n".join([newest.text, *(result.text for result in newest.results)]) if newest else ""


class ScriptedCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    arguments: dict[str, object] = {}
    # Arguments as text, which may be invalid JSON.
    text: str | None = None


class ScriptedUsage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    input: int | None = None
    output: int | None = None
    thought: int | None = None


class ScriptedTurn(Fault, frozen=True, kw_only=True, forbid_unknown_fields=True):
    when: When = When()
    # How often this turn may be taken; 0 means always.
    times: int = 1
    reasoning: str | None = None
    text: str | None = None
    calls: tuple[ScriptedCall, ...] = ()
    finish: Finish | None = None
    # Wire value of the finish reason: `pause_turn`, `MALFORMED_FUNCTION_CALL`, or an unknown one.
    finish_word: str | None = None
    usage: ScriptedUsage | None = None
    # Characters of each piece of a stream.
    chunk: int | None = None

    @property
    def has_answer(self) -> bool:
        return self.text is not None or self.reasoning is not None or bool(self.calls)

    def answer(self, prompt: Prompt) -> Answer:
        answer = apply_limits(
            prompt, self._parts(prompt), counts=Counts(input=count_prompt(prompt)), finish=self.finish
        )
        answer = replace(answer, word=self.finish_word)
        if self.usage is None:
            return answer
        given = {name: value for name, value in msgspec.structs.asdict(self.usage).items() if value is not None}
        return replace(answer, counts=replace(answer.counts, **given))

    def _parts(self, prompt: Prompt) -> list[Part]:
        parts: list[Part] = [ThoughtPart(self.reasoning)] if self.reasoning is not None else []
        if self.text is not None:
            parts.append(TextPart(self.text))
        free = {tool.name for tool in prompt.tools if tool.free_text}
        for call in self.calls:
            called = call_of(call.name, call.arguments, free_text=call.name in free)
            parts.append(called if call.text is None else replace(called, text=call.text))
        return parts


class Script(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    turns: tuple[ScriptedTurn, ...] = ()
    # If no remaining turn matches: the simulated model answers, or the request fails.
    afterwards: Literal["model", "error"] = "model"


def read_script(value: object) -> Script:
    """A mapping with `turns`, or the list of turns alone. Raises msgspec.ValidationError."""
    if isinstance(value, Script):
        return value
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return Script(
            tuple(one if isinstance(one, ScriptedTurn) else msgspec.convert(one, ScriptedTurn) for one in value)
        )
    return msgspec.convert(value, Script)


_DECODERS: Mapping[str, Callable[[bytes], object]] = {
    ".json": msgspec.json.decode,
    ".toml": msgspec.toml.decode,
    ".yaml": msgspec.yaml.decode,
    ".yml": msgspec.yaml.decode,
}


def load_script(path: Path) -> Script:
    decode = _DECODERS.get(path.suffix.lower())
    if decode is None:
        raise ValueError(f"{path}: a script is .json, .toml, .yaml or .yml")
    try:
        return read_script(decode(path.read_bytes()))
    except ImportError:
        raise ValueError(f"{path}: YAML needs PyYAML, of the extra `sim`; JSON and TOML do not") from None
    except msgspec.DecodeError as error:
        raise ValueError(f"{path}: {error}") from None


class ScriptPlayer:
    """Hands out the turns of a script, each as often as it may be taken."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self._taken = [0] * len(script.turns)

    def next(self, api: str, prompt: Prompt) -> ScriptedTurn | None:
        for index, turn in enumerate(self.script.turns):
            if (turn.times == 0 or self._taken[index] < turn.times) and turn.when.fits(api, prompt):
                self._taken[index] += 1
                return turn
        return None

    @property
    def left(self) -> int:
        """Number of turns left."""
        return sum(1 for turn, taken in zip(self.script.turns, self._taken, strict=True) if taken < turn.times)
