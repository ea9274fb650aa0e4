"""A conversation with several models, without any front end.

`send` stores what the user says and asks the models it is for, all of them at once and from the same snapshot.
Subscribers get events; answers are stored when they end, however they end.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from msgspec import Struct, structs

from dragoman.agent import Agent, PermissionRequest, Rules, Tool
from dragoman.agent.permissions import Deny, Hook
from dragoman.chat.answers import STOPPED, LastAnswerDriver, LiveAnswer
from dragoman.chat.entries import Conversation, Entry, Part, Status, new_id, now
from dragoman.chat.events import (
    Activity,
    AnswerEnded,
    AnswerStarted,
    AnyChatEvent,
    Changed,
    Notice,
    PermissionAsked,
    PermissionSettled,
    Said,
    TurnEnded,
)
from dragoman.chat.history import text_part
from dragoman.chat.mentions import UnknownMention, resolve_mentions, unknown_mention
from dragoman.chat.participants import Participant
from dragoman.chat.tokens import (
    DoesNotFit,
    Fitted,
    Gauge,
    Measure,
    calibrate,
    counter_of,
    estimate,
    oldest,
)
from dragoman.chat.views import entries_for_model, messages_of
from dragoman.drivers.base import Driver, Settings
from dragoman.drivers.key_store import explain_missing_key
from dragoman.errors import DragomanError, NotConfigured
from dragoman.ir.values import compact_text


class Busy(RuntimeError):
    """Answers are in progress: wait for them, or stop them."""


class Keeper(Protocol):
    """Stores a draft of the conversation (see `drafts`)."""

    def note(self, line: dict[str, Any]) -> None: ...
    def snapshot(self, conversation: Conversation, *, running: bool) -> None: ...


class Options(Struct, frozen=True, kw_only=True):
    share: bool = False
    """Models see each other's answers, with the name of the model."""
    default: tuple[str, ...] = ()
    """The models that messages without a mention go to; if empty, such messages are memos."""
    max_iterations: int = 50
    tool_timeout: float | None = 300.0
    settings: Settings = {}


class ChatService:
    """One conversation in memory. Everything happens in one event loop."""

    def __init__(
        self,
        participants: Iterable[Participant],
        *,
        conversation: Conversation | None = None,
        tools: Sequence[Tool] = (),
        permissions: Hook | None = None,
        options: Options = Options(),  # noqa: B008 - a frozen value
        keeper: Keeper | None = None,
    ) -> None:
        self.participants: dict[str, Participant] = {one.name: one for one in participants}
        self.conversation = conversation or Conversation(created=now(), updated=now())
        self.tools = tuple(tools)
        self.options = options
        self.keeper = keeper
        self._permissions = Rules() if permissions is None else permissions
        self._always: set[str] = set()
        self._drivers: dict[tuple[str, str], Driver] = {}
        self._retired: list[Driver] = []
        self._live: dict[str, LiveAnswer] = {}
        self._open_questions: dict[str, tuple[PermissionAsked, asyncio.Future[bool]]] = {}
        self._readers: list[Callable[[AnyChatEvent], None]] = []

    # ── subscribers ───────────────────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def watch(self, reader: Callable[[AnyChatEvent], None]) -> Iterator[None]:
        """Events go to `reader` as they happen."""
        self._readers.append(reader)
        try:
            yield
        finally:
            self._readers.remove(reader)

    @property
    def watchers(self) -> int:
        return len(self._readers)

    async def events(self) -> AsyncIterator[AnyChatEvent]:
        """Events as they happen, as an iterator. Those before its first step are not included."""
        queue: asyncio.Queue[AnyChatEvent] = asyncio.Queue()
        with self.watch(queue.put_nowait):
            while True:
                yield await queue.get()

    def _publish(self, event: AnyChatEvent) -> None:
        for reader in [*self._readers]:
            reader(event)

    def notice(self, text: str, *, warning: bool = False, model: str = "") -> None:
        self._publish(Notice(text, "warning" if warning else "info", model))

    # ── state ─────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def running(self) -> tuple[LiveAnswer, ...]:
        return tuple(self._live.values())

    @property
    def open_questions(self) -> tuple[PermissionAsked, ...]:
        return tuple(question for question, _ in self._open_questions.values())

    def change(self, **fields: Any) -> None:
        """Set the name, the system prompt or settings."""
        self._keep(structs.replace(self.conversation, updated=now(), **fields))
        self._publish(Changed())

    def replace(self, conversation: Conversation) -> None:
        """Go on with another conversation."""
        self._refuse_if_busy()
        self.conversation = conversation
        self._publish(Changed())

    def set_participant(self, participant: Participant) -> None:
        """Replaces the model of this name, or adds one; takes effect with the next question."""
        self.participants[participant.name] = participant
        for key in [one for one in self._drivers if one[0] == participant.name]:  # it may still be answering
            self._retired.append(self._drivers.pop(key))
        self._publish(Changed())

    def configure(self, **options: Any) -> None:
        self.options = structs.replace(self.options, **options)
        self._publish(Changed())

    def _keep(self, conversation: Conversation) -> None:
        self.conversation = conversation
        if self.keeper is None:
            return
        try:
            self.keeper.snapshot(conversation, running=bool(self._live))
        except OSError as error:
            self.keeper = None  # one warning, and the chat goes on
            self.notice(f"the draft can no longer be saved: {error.strerror or error}", warning=True)

    def _refuse_if_busy(self) -> None:
        if self._live:
            names = [one.name for one in self.running]
            verb, them = ("is", "it") if len(names) == 1 else ("are", "them")
            raise Busy(f"{', '.join(names)} {verb} still answering: wait for {them}, or stop {them}")

    # ── talking ───────────────────────────────────────────────────────────────────────────────────────────────

    async def send(self, text: str, attachments: Sequence[Part] = (), *, memo: bool = False) -> tuple[Entry, ...]:
        """Stores the user's message, waits for all answers and returns the new entries.

        Cancelling stops the answers.
        """
        return await self.wait(self.start(text, attachments, memo=memo))

    def addressees(self, text: str) -> tuple[str, ...]:
        """The models that a message goes to. Raises `UnknownMention`."""
        names = tuple(self.participants)
        if (unknown := unknown_mention(text, names)) is not None:
            raise UnknownMention(unknown, names)
        return resolve_mentions(text, names, self.options.default)

    def start(
        self,
        text: str,
        attachments: Sequence[Part] = (),
        *,
        memo: bool = False,
        instead: Mapping[str, Participant] | None = None,
    ) -> str:
        """Like `send`, without waiting for answers; returns the id of the turn. A memo is stored and sent to no model.

        Participants in `instead` replace those of the same name for this turn. Raises `DoesNotFit` if the message is
        too long for the only model, and `UnknownMention`.
        """
        self._refuse_if_busy()
        entry_id = new_id()
        content = [*([text_part(text)] if text else []), *attachments]
        if not content:
            raise ValueError("there is nothing to send")
        entry = Entry(role="user", content=content, id=entry_id, turn=entry_id, time=now())
        models = () if memo else self.addressees(text)
        asked_participants = {**self.participants, **(instead or {})}
        snapshot = (*self.conversation.entries, entry)
        if len(models) == 1:  # of several models, those with room answer and the others report why they cannot
            self.fit(self.participants[models[0]], snapshot)
        self._keep(structs.replace(self.conversation, entries=snapshot, updated=now()))
        self._publish(Said(entry, models))
        for name in models:
            self._begin(asked_participants[name], entry_id, snapshot)
        if not models:
            self._publish(TurnEnded(entry_id))
        return entry_id

    def retry(self, answer: str) -> str:
        """Asks again from the same snapshot. The old answer is kept and marked as replaced."""
        self._refuse_if_busy()
        old = [entry for entry in self.conversation.entries if entry.answer == answer and not entry.replaced]
        if not old or old[0].speaker not in self.participants:
            raise LookupError(f"there is no answer {answer!r} to retry")
        turn = old[0].turn
        place = next((i for i, entry in enumerate(self.conversation.entries) if entry.id == turn), None)
        if place is None:
            raise LookupError("the question is no longer in this conversation")
        marked = tuple(
            structs.replace(entry, replaced=True) if entry.answer == answer else entry
            for entry in self.conversation.entries
        )
        snapshot = self.conversation.entries[: place + 1]
        self._keep(structs.replace(self.conversation, entries=marked, updated=now()))
        self._begin(self.participants[old[0].speaker], turn, snapshot, replaces=answer)
        return turn

    async def wait(self, turn: str) -> tuple[Entry, ...]:
        tasks = [one.task for one in self.running if one.turn == turn and one.task is not None]
        try:
            for task in tasks:
                await asyncio.shield(task)
        except asyncio.CancelledError:
            await self.halt()
            raise
        return tuple(entry for entry in self.conversation.entries if entry.turn == turn and not entry.replaced)

    def stop(self, *answers: str) -> None:
        """Stops these answers, or all. The text so far is kept and marked as stopped."""
        for one in self.running:
            if not answers or one.id in answers:
                one.stop()

    async def halt(self) -> None:
        """Stop all answers, and wait until they have ended."""
        tasks = [one.task for one in self.running if one.task is not None]
        self.stop()
        if tasks:
            await asyncio.wait(tasks)

    async def close(self) -> None:
        await self.halt()
        for driver in (*self._retired, *self._drivers.values()):
            await driver.close()
        self._retired.clear()
        self._drivers.clear()

    # ── one answer ────────────────────────────────────────────────────────────────────────────────────────────

    def _begin(self, participant: Participant, turn: str, snapshot: Sequence[Entry], replaces: str = "") -> None:
        live = LiveAnswer(participant, turn, self.keeper, replaces)
        self._live[live.id] = live
        self._publish(AnswerStarted(live.id, turn, live.name, replaces))
        live.task = asyncio.create_task(self._answer(live, tuple(snapshot)))

    async def _answer(self, live: LiveAnswer, snapshot: tuple[Entry, ...]) -> None:
        status: Status
        try:
            status, error = await self._run(live, snapshot)
        except asyncio.CancelledError:
            status, error = "stopped", STOPPED
        except (DragomanError, DoesNotFit) as failure:
            status, error = "error", _reason(failure, live.participant)
        except Exception as failure:  # noqa: BLE001 - no failure of one model may stop the others
            status, error = "error", f"{type(failure).__name__}: {failure}"
        self._finish(live, status, error)

    async def _run(self, live: LiveAnswer, snapshot: tuple[Entry, ...]) -> tuple[Status, str]:
        fitted = self.fit(live.participant, snapshot)
        if fitted.dropped_turns:
            self.notice(f"{live.name}: no room for {oldest(fitted.dropped_turns)}, left out", model=live.name)
        live.counted = fitted.counted
        driver = LastAnswerDriver(self._driver(live.participant))
        live.messages = messages_of(fitted.entries)
        live.agent = self._agent(live, driver)
        async for event in live.agent.run_stream(None):
            self._publish(Activity(live.id, live.name, event))
        if live.stopped:
            return "stopped", STOPPED
        return live.judge(await driver.last())

    def _driver(self, participant: Participant) -> Driver:
        key = (participant.name, participant.format)
        if key not in self._drivers:
            self._drivers[key] = participant.connect()
        return self._drivers[key]

    def unready(self) -> dict[str, str]:
        """Models that cannot be asked yet, such as those without a key, with the reason."""
        found: dict[str, str] = {}
        for one in self.participants.values():
            try:
                self._driver(one)
            except DragomanError as error:
                found[one.name] = _reason(error, one)
        return found

    def _agent(self, live: LiveAnswer, driver: LastAnswerDriver) -> Agent:
        async def ask(request: PermissionRequest) -> bool | Deny:
            return await self._ask(live, request)

        return Agent(
            driver,
            tools=self.tools,
            system_prompt=self.conversation.system_prompt or None,
            max_iterations=self.options.max_iterations,
            tool_timeout=self.options.tool_timeout,
            permissions=self._permissions,
            ask=ask,
            output_cache=None,
            compaction=None,
            deltas=True,
            history=live.messages,
            session=live,
            settings=self.options.settings,
        )

    def _finish(self, live: LiveAnswer, status: Status, error: str) -> None:
        entries = live.finish(status, error)
        del self._live[live.id]
        self._keep(structs.replace(self.conversation, entries=self._insert_answer(entries, live), updated=now()))
        self._publish(AnswerEnded(live.id, live.turn, live.name, status, error, entries))
        if not any(one.turn == live.turn for one in self.running):
            self._publish(TurnEnded(live.turn))

    def _insert_answer(self, entries: tuple[Entry, ...], live: LiveAnswer) -> tuple[Entry, ...]:
        """Inserts the answer in the order of the models, not of arrival, so that files do not depend on the network."""
        ranks: Mapping[str, int] = {name: rank for rank, name in enumerate(self.participants)}
        own = ranks.get(live.name, len(ranks))
        kept = self.conversation.entries
        place = len(kept)
        for index, entry in enumerate(kept):
            if entry.turn == live.turn and (not entry.speaker or ranks.get(entry.speaker, -1) <= own):
                place = index + 1
        return (*kept[:place], *entries, *kept[place:])

    # ── permissions ───────────────────────────────────────────────────────────────────────────────────────────

    async def _ask(self, live: LiveAnswer, request: PermissionRequest) -> bool | Deny:
        if request.call.name in self._always:
            return True
        asked_permission = PermissionAsked(
            new_id(), live.id, live.name, request.call.name, request.arguments, request.call.id
        )
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._open_questions[asked_permission.id] = (asked_permission, answer)
        self._publish(asked_permission)
        try:
            return await answer
        finally:
            self._open_questions.pop(asked_permission.id, None)
            allowed = answer.done() and not answer.cancelled() and answer.result()
            self._publish(PermissionSettled(asked_permission.id, allowed))

    def permit(self, question: str, *, allow: bool, always: bool = False) -> bool:
        """Answers a permission question; `always` covers this tool until the program ends. False: not open."""
        asked_permission, answer = self._open_questions.get(question, (None, None))
        if asked_permission is None or answer is None or answer.done():
            return False
        answer.set_result(allow)
        if always and allow:
            self._always.add(asked_permission.tool)
            for other, waiting in self._open_questions.values():
                if other.tool == asked_permission.tool and not waiting.done():
                    waiting.set_result(True)
        return True

    # ── tokens ────────────────────────────────────────────────────────────────────────────────────────────────

    def fit(self, participant: Participant, entries: Sequence[Entry]) -> Fitted:
        """The entries that the model would be sent; raises `DoesNotFit`."""
        return self._measure(participant).fit_turns(
            entries_for_model(entries, participant.name, share=self.options.share)
        )

    def _measure(self, participant: Participant) -> Measure:
        counter = counter_of(participant.model)
        declared = [tool.definition for tool in self.tools]
        tools = sum(
            (counter or estimate)(f"{one.name} {one.description or ''} {compact_text(one.parameters)}")
            for one in declared
        )
        return Measure(
            name=participant.name,
            window=participant.window,
            fixed=tools + (counter or estimate)(self.conversation.system_prompt),
            counter=counter or estimate,
            exact=counter is not None,
            scale=calibrate(self.conversation.entries, participant.name, participant.model, exact=counter is not None),
        )

    def gauges(self, text: str = "") -> list[Gauge]:
        """How full each model's window is, including the text about to be sent."""
        more = (Entry(role="user", content=[text_part(text)]),) if text else ()
        return [self.gauge(one, more) for one in self.participants.values()]

    def gauge(self, participant: Participant, more: tuple[Entry, ...] = ()) -> Gauge:
        entries = (*self.conversation.entries, *more)
        return self._measure(participant).gauge(entries_for_model(entries, participant.name, share=self.options.share))


def _reason(error: Exception, participant: Participant) -> str:
    if isinstance(error, NotConfigured):
        return explain_missing_key(error, participant.model.partition("/")[0])
    return str(error)
