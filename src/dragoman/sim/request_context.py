"""Context of one request: what an operation may use while it answers."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dragoman.sim import caching, tokens
from dragoman.sim.conversation_view import Answer, Prompt
from dragoman.sim.exchange import Exchange, Problem, Refused
from dragoman.sim.faults import NO_FAULT, Fault
from dragoman.sim.memory import Memory
from dragoman.sim.model import respond
from dragoman.sim.script import ScriptedTurn, ScriptPlayer

# Tokens per piece of a stream, unless a script sets it.
PIECE = 3


@dataclass(slots=True)
class RequestContext:
    exchange: Exchange
    api: str
    prompter: ScriptPlayer
    memory: Memory
    # Unix time used in answers.
    now: int
    any_model: bool = False
    any_signature: bool = False
    # Thinking is bound to its conversation, as for new accounts.
    binds_thinking: bool = False
    # Limit of a request in tokens; None: no limit.
    context_window: int | None = None
    fault: Fault = NO_FAULT
    turn: ScriptedTurn | None = None
    model: str = ""

    def answers(self, prompt: Prompt, number: int = 1) -> list[Answer]:
        """Answers of the script, or of the model; several answers differ by their seed."""
        self._check_length(prompt)
        self.turn = self.prompter.next(self.api, prompt)
        if self.turn is not None:
            self.fault = self.turn if self.fault == NO_FAULT else self.fault
            if self.turn.refusal is not None:
                raise Refused(self.turn.refusal)
            if self.turn.has_answer:
                return [self.turn.answer(prompt)] * number
        elif self.prompter.script.afterwards == "error":
            raise Refused(Problem("server", "The script of the simulator has no turn left for this request."))
        return [respond(replace(prompt, seed=prompt.seed + index)) for index in range(number)]

    def _check_length(self, prompt: Prompt) -> None:
        limit = self.context_window
        if limit is not None and (got := tokens.count_prompt(prompt)) > limit:
            raise Refused(Problem("too_long", numbers={"got": got, "limit": limit}))

    def answer_cached(self, prompt: Prompt, number: int = 1) -> list[Answer]:
        """Answers of an API with automatic caching."""
        read = caching.count_automatic(self.memory, prompt)
        return [replace(one, counts=replace(one.counts, read=read)) for one in self.answers(prompt, number)]

    def answer(self, prompt: Prompt) -> Answer:
        return self.answers(prompt)[0]

    def chunks(self, text: str) -> list[str]:
        """The text in the pieces in which it is streamed."""
        if self.turn is not None and self.turn.chunk is not None:
            size = max(self.turn.chunk, 1)
            return [text[start : start + size] for start in range(0, len(text), size)]
        pieces = tokens.pieces(text)
        return ["".join(pieces[start : start + PIECE]) for start in range(0, len(pieces), PIECE)]
