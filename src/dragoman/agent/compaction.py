"""When the context window fills up, the model summarises the conversation, which then continues from the summary.

The new history is one message with the text to retain and the summary, then the last turns unchanged. Retained text is
carried over by this module, so that no later summary can lose it.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from msgspec import Raw, Struct

from dragoman.agent.conversation import FAMILY, Conversation
from dragoman.agent.events import AnyAgentEvent, CompactionCompleteEvent, CompactionStartEvent
from dragoman.agent.history_repair import heal
from dragoman.catalogue import lookup
from dragoman.drivers.base import QueryResult
from dragoman.errors import DragomanError, LimitExceeded, ProviderError
from dragoman.ir import Message, Text
from dragoman.ir.values import note

COMPACTED = "~compacted"
"""Note on the message that replaces an earlier part of the conversation: retained text first, then the summary."""

PROMPT = """\
The conversation is about to be shortened: only what you write now will be known of it, besides the last turns.
Write two blocks and nothing else.
<retain>
Facts that must survive word for word, one per line: names, paths, ids, numbers, decisions, wishes of the user.
</retain>
<summary>
What the user wants, what was done and found out, what is under way, and what comes next.
</summary>"""
_TAGS = {name: re.compile(rf"<(/?){name}>", re.IGNORECASE) for name in ("retain", "summary")}
_LOOKED_AT = 2_000
_HALVINGS = 4
_TOO_LONG = re.compile(
    r"context[ _]?(?:length|window|size)|(?:prompt|input|request|messages?)(?: is| are)? too (?:long|large)"
    r"|too many (?:input )?tokens|(?:maximum|limit)[^.]{0,40}tokens|tokens? (?:count|limit)[^.]{0,40}exceed",
    re.IGNORECASE,
)
_HEAD = "To be remembered from the conversation before:\n"
_BODY = "The conversation before, in short:\n"


class Compaction(Struct, frozen=True, kw_only=True):
    """At which share of the window to compact, and how many turns to keep unchanged."""

    ratio: float = 0.8
    context_window: int | None = None
    """In tokens. Default: that of the driver, or the catalogue's; if unknown, nothing is compacted automatically."""
    keep_turns: int = 2
    """A turn is one user message, or one answer with the results of its calls: pairs are never split."""
    prompt: str = PROMPT


AskModel: TypeAlias = Callable[[Sequence[Message]], Awaitable[QueryResult]]
Emit: TypeAlias = Callable[[AnyAgentEvent], Awaitable[None]]


class Compactor:
    """Compaction within one run."""

    def __init__(
        self,
        options: Compaction | None,
        conversation: Conversation,
        ask: AskModel,
        count: Callable[[QueryResult], Awaitable[None]],
        emit: Emit,
    ) -> None:
        self._options = options
        self._conversation = conversation
        self._ask = ask
        self._count = count
        self._emit = emit
        self._gave_up = False
        self._looked_up: tuple[str, int | None] = ("", None)
        """The name of the last driver and its window according to the catalogue."""

    async def compact_if_full(self) -> None:
        tokens = self._conversation.fill
        if self._options is None or tokens is None or self._gave_up:
            return
        window = self._window()
        if window is not None and tokens >= self._options.ratio * window:
            # A compaction that failed is not tried again at every turn.
            self._gave_up = not await self.compact(tokens)

    async def compact(self, tokens: int | None = None) -> bool:
        options = self._options or Compaction()
        messages = self._conversation.messages
        head, tail = split(messages, options.keep_turns)
        if not head or (len(head) == 1 and is_compacted(head[0])):
            return False
        await self._emit(CompactionStartEvent(len(messages), tokens))
        summary, reason = await self._summary(head, options.prompt)
        if summary is not None:
            self._conversation.rewrite([summary, *tail])
            self._conversation.tokens = None
        await self._emit(CompactionCompleteEvent(summary is not None, len(self._conversation.messages), reason))
        return summary is not None

    async def _summary(self, head: Sequence[Message], prompt: str) -> tuple[Message | None, str | None]:
        try:
            answer = await self._summarise_what_fits(list(head), prompt)
        except DragomanError as error:
            return None, str(error)
        await self._count(answer)
        text = answer.message.text.strip()
        if not text:
            return None, "the model gave no summary"
        earlier = [read_retained(message) for message in head if is_compacted(message)]
        return summary_message(earlier, text), None

    async def _summarise_what_fits(self, head: list[Message], prompt: str) -> QueryResult:
        """Return the summary; if the messages are too long for the model, of their later half, and so on."""
        for _ in range(_HALVINGS):
            try:
                return await self._ask([*head, Message("user", prompt)])
            except ProviderError as error:
                if not is_context_error(error) or len(head) == 1:
                    raise
            head = heal(head[len(head) // 2 :])
        return await self._ask([*head, Message("user", prompt)])

    def _window(self) -> int | None:
        if self._options is not None and self._options.context_window is not None:
            return self._options.context_window
        driver = self._conversation.driver
        window = getattr(driver, "context_window", None)
        if isinstance(window, int):
            return window
        if self._looked_up[0] != driver.name:
            self._looked_up = (driver.name, window_of(driver.name))
        return self._looked_up[1]


def is_context_error(error: ProviderError) -> bool:
    """Whether the provider refused because the conversation does not fit into the model's context window."""
    failure = error.failure
    if failure.kind == "too_large":
        return failure.raw_type != LimitExceeded.__name__  # then the answer was too large
    words = f"{failure.raw_type or ''} {failure.code or ''} {failure.message}"[:_LOOKED_AT]
    return failure.kind == "invalid_request" and _TOO_LONG.search(words) is not None


def window_of(name: str) -> int | None:
    """Return the context window, in tokens, of the driver `provider/model`; None if the catalogue does not have it."""
    provider, _, model = name.partition("/")
    found = lookup(provider, model)
    return None if found is None else found.context_window


def split(messages: Sequence[Message], keep: int) -> tuple[list[Message], list[Message]]:
    """Return (the messages to summarise, the last turns)."""
    starts = [index for index, message in enumerate(messages) if message.role != "tool"]
    place = starts[-keep] if 0 < keep <= len(starts) else 0 if keep else len(messages)
    return list(messages[:place]), list(messages[place:])


def summary_message(earlier: Sequence[str], text: str) -> Message:
    """Return the message that replaces the summarised part. Without tags, the whole answer is the summary."""
    within, outside = _blocks(text, "retain")
    lines = [line.strip() for block in (*earlier, *within) for line in block.splitlines() if line.strip()]
    retained = "\n".join(dict.fromkeys(lines))
    summaries, _ = _blocks(text, "summary")
    summary = (summaries[0] if summaries else outside).strip()
    parts = (Text(_HEAD + retained), Text(_BODY + summary)) if retained else (Text(_BODY + summary),)
    return Message("user", parts, metadata={FAMILY: {COMPACTED: Raw(b"true")}})


def _blocks(text: str, name: str) -> tuple[list[str], str]:
    """Return the texts between pairs of tags, and the text outside them; an unpaired tag is text."""
    within: list[str] = []
    outside: list[str] = []
    opened: re.Match[str] | None = None
    copied = 0
    for tag in _TAGS[name].finditer(text):
        if not tag[1]:
            opened = opened or tag
        elif opened is not None:
            within.append(text[opened.end() : tag.start()])
            outside.append(text[copied : opened.start()])
            copied, opened = tag.end(), None
    return within, "".join([*outside, text[copied:]])


def is_compacted(message: Message) -> bool:
    return note(message.metadata, FAMILY, COMPACTED) is True


def read_retained(message: Message) -> str:
    first = message.parts[0]
    return first.text.removeprefix(_HEAD) if isinstance(first, Text) and first.text.startswith(_HEAD) else ""
