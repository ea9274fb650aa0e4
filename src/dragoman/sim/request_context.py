"""One request being served: what it may ask of the simulator while its answer is made."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dragoman.sim import caching, tokens
from dragoman.sim.conversation_view import Answer, Asked
from dragoman.sim.exchange import Exchange, Problem, Refused
from dragoman.sim.faults import NO_FAULT, Fault
from dragoman.sim.memory import Memory
from dragoman.sim.model import respond
from dragoman.sim.script import Prompter, ScriptedTurn

# Tokens of each piece of a stream, where no script says otherwise.
PIECE = 3


@dataclass(slots=True)
class Visit:
    exchange: Exchange
    api: str
    prompter: Prompter
    memory: Memory
    # Seconds since the epoch, as answers tell it.
    now: int
    any_model: bool = False
    any_seal: bool = False
    # Thinking is bound to the conversation it was thought in, as for accounts that are new.
    binds_thinking: bool = False
    # Tokens that a request may hold; None: as many as it likes.
    context_window: int | None = None
    fault: Fault = NO_FAULT
    turn: ScriptedTurn | None = None
    model: str = ""

    def answers(self, asked: Asked, number: int = 1) -> list[Answer]:
        """What the script says, or else the model; several answers differ by their seed."""
        self._check_length(asked)
        self.turn = self.prompter.next(self.api, asked)
        if self.turn is not None:
            self.fault = self.turn if self.fault == NO_FAULT else self.fault
            if self.turn.refusal is not None:
                raise Refused(self.turn.refusal)
            if self.turn.speaks:
                return [self.turn.answer(asked)] * number
        elif self.prompter.script.afterwards == "error":
            raise Refused(Problem("server", "The script of the simulator has no turn left for this request."))
        return [respond(replace(asked, seed=asked.seed + index)) for index in range(number)]

    def _check_length(self, asked: Asked) -> None:
        limit = self.context_window
        if limit is not None and (got := tokens.count_asked(asked)) > limit:
            raise Refused(Problem("too_long", numbers={"got": got, "limit": limit}))

    def answer_cached(self, asked: Asked, number: int = 1) -> list[Answer]:
        """Answers of an API whose cache works by itself."""
        read = caching.automatic(self.memory, asked)
        return [replace(one, counts=replace(one.counts, read=read)) for one in self.answers(asked, number)]

    def answer(self, asked: Asked) -> Answer:
        return self.answers(asked)[0]

    def chunks(self, text: str) -> list[str]:
        """The text in the pieces in which it is streamed."""
        if self.turn is not None and self.turn.chunk is not None:
            size = max(self.turn.chunk, 1)
            return [text[start : start + size] for start in range(0, len(text), size)]
        pieces = tokens.pieces(text)
        return ["".join(pieces[start : start + PIECE]) for start in range(0, len(pieces), PIECE)]
