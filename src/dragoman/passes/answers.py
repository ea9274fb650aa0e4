"""Adapts an answer to the client's format and request: reports losses, restores tools as the client declared them."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import UNSET, structs

from dragoman.ir import (
    AnyEvent,
    AnyPart,
    Completion,
    CustomTool,
    Finish,
    Finished,
    Message,
    PartDelta,
    PartEnd,
    PartStart,
    ProviderTool,
    Reasoning,
    Refusal,
    Request,
    StreamFailed,
    StreamStart,
    Text,
    ToolCall,
    ToolDefinition,
)
from dragoman.ir.notes import CLIENT_ITEM, FREE_TEXT, has_note
from dragoman.ir.values import exact_object
from dragoman.losses import LossLog
from dragoman.passes.names import name_alias
from dragoman.passes.private import report_counts, report_private_answer
from dragoman.profile import REASONING_OWED_MODELS, STRICTEST_NAMES, Profile


def legalise_answer(completion: Completion, profile: Profile, request: Request | None, log: LossLog) -> Completion:
    """Reports what only the answering family understands; restores the client's tools where its request is known."""
    report_private_answer(completion, profile, log)
    if completion.usage is not None:
        report_counts(completion, completion.usage, profile, log)
    if completion.logprobs and not profile.has_logprobs:
        log.drop(completion, "logprobs", "log probabilities", "answers of this API have no such list")
    if not profile.names_speakers and profile.family not in (completion.metadata or ()):
        for message in completion.messages:
            if message.name is not None:
                completion = _without_speakers(completion, log)
                break
    if not profile.blank_text and profile.family not in (completion.metadata or ()):
        completion = _without_empty_texts(completion, log)
    if hides_reasoning(request, profile) and not _is_owed(completion.model):
        completion = _without_unsigned_reasoning(completion, log)
    if completion.finish is None and completion.messages:
        completion = _finish_by_calls(completion, profile, log)
    if request is None or not request.tools or not any(message.tool_calls for message in completion.messages):
        return completion
    declared = _Declared(request)
    messages = tuple(_restore_message(message, declared, log) for message in completion.messages)
    return structs.replace(completion, messages=messages)


def _finish_by_calls(completion: Completion, profile: Profile, log: LossLog) -> Completion:
    """Adds a finish reason to an answer of another family that has calls and no finish reason.

    If the arguments of a call cannot be read, the answer was cut off: its calls must not look ready to be run.
    """
    message = completion.messages[0]
    is_own = any(profile.family in (metadata or ()) for metadata in (completion.metadata, message.metadata))
    calls = message.tool_calls
    if is_own or not calls:
        return completion
    if not all(call.parsed for call in calls):
        log.invent(completion, "finish", "finish reason length", "a call is incomplete and the answer gives no reason")
        return structs.replace(completion, finish=Finish("length"))
    log.invent(completion, "finish", "finish reason tool_calls", "the answer calls tools and gives no reason")
    return structs.replace(completion, finish=Finish("tool_calls"))


def _without_speakers(completion: Completion, log: LossLog) -> Completion:
    """Removes speaker names: answers of an API do not have them."""
    messages = []
    for message in completion.messages:
        nameless = message if message.name is None else structs.replace(message, name=None)
        if nameless is not message:
            log.drop(message, "name", "name of the speaker", "answers of this API have none")
            log.replaced(nameless, message)
        messages.append(nameless)
    return structs.replace(completion, messages=tuple(messages))


def _without_empty_texts(completion: Completion, log: LossLog) -> Completion:
    """Removes empty texts of another family's answer if the client's API refuses them; streams have none either.

    Many servers send `"content": ""` beside calls, and the client would return the empty text to its API.
    """
    messages = []
    for message in completion.messages:
        content = message.content_held
        if type(content) is tuple:
            kept = tuple([part for part in content if not _says_nothing(part, log)])
            messages.append(message if len(kept) == len(content) else log.replace(message, parts=kept))
        else:
            messages.append(message if content else log.replace(message, parts=()))
    if all(new is old for new, old in zip(messages, completion.messages, strict=True)):
        return completion
    return structs.replace(completion, messages=tuple(messages))


def _says_nothing(part: AnyPart, log: LossLog) -> bool:
    if type(part) is Text and not part.text and part.signature is None:
        if part.citations:
            log.drop(part, "citations", "citations", "this API refuses the empty text that has them")
        return True
    return type(part) is Refusal and not part.text


_UNASKED = "the client did not ask for thinking"


def hides_reasoning(request: Request | None, profile: Profile) -> bool:
    """Whether the client's request says that it expects no reasoning to read."""
    if request is None or profile.shows_reasoning_unasked:
        return False
    settings = request.reasoning
    return settings is None or settings.mode in {None, "off"} or settings.visible is False


def _is_owed(model: str | None) -> bool:
    return model is not None and REASONING_OWED_MODELS.search(model) is not None


def _without_unsigned_reasoning(completion: Completion, log: LossLog) -> Completion:
    """Removes reasoning without a signature; signed reasoning stays, because the client must return it."""
    messages = []
    for message in completion.messages:
        hidden = [part for part in message.parts if isinstance(part, Reasoning) and part.signature is None]
        signed = message
        if hidden:
            for part in hidden:
                log.note(part, "", "reasoning", _UNASKED)
            shown = tuple(part for part in message.parts if not isinstance(part, Reasoning) or part.signature)
            signed = log.replace(message, parts=shown)
        messages.append(signed)
    return structs.replace(completion, messages=tuple(messages))


class HiddenReasoning:
    """Removes unsigned reasoning from streams: holds reasoning back until its end shows whether it is signed."""

    def __init__(self, log: LossLog) -> None:
        self._log = log
        self._is_owed = False
        self.held: dict[int, list[AnyEvent]] = {}
        """Events of parts that are held back; text of all others passes unchanged."""

    def __call__(self, events: Iterable[AnyEvent]) -> list[AnyEvent]:
        shown: list[AnyEvent] = []
        for event in events:
            if isinstance(event, StreamStart):
                self._is_owed = _is_owed(event.model)
            elif isinstance(event, PartStart):
                if isinstance(event.part, Reasoning) and event.part.signature is None and not self._is_owed:
                    self.held[event.index] = [event]
                    continue
            elif isinstance(event, PartDelta):
                if event.index in self.held:
                    self.held[event.index].append(event)
                    continue
            elif isinstance(event, PartEnd) and event.index in self.held:
                waiting = self.held.pop(event.index)
                if event.signature is None:
                    self._log.note(_ANSWER, "", "reasoning", _UNASKED)
                    continue
                shown += waiting
            shown.append(event)
        return shown


_ANSWER = Completion(())


class _Declared:
    """The tools of a request by name."""

    def __init__(self, request: Request) -> None:
        self.names = {tool.name for tool in request.tools}
        self.custom = {tool.name for tool in request.tools if isinstance(tool, CustomTool)}
        self.functions: dict[str, ToolDefinition] = {}
        """The functions that replaced vendors' tools in the request."""
        for tool in request.tools:
            if isinstance(tool, ProviderTool) and tool.functions:
                self._add_functions(tool)
        self._originals: dict[str, str] | None = None

    def _add_functions(self, tool: ProviderTool) -> None:
        for function in tool.functions:
            self.names.add(function.name)
            self.functions[function.name] = function
            if has_note(function.metadata, FREE_TEXT):
                self.custom.add(function.name)

    def returns_whole(self, name: str) -> bool:
        """Whether calls of this tool can be written only when complete."""
        function = self.functions.get(name)
        return name in self.custom or (function is not None and has_note(function.metadata, CLIENT_ITEM))

    def with_notes(self, call: ToolCall) -> ToolCall:
        """The call with the notes of its function, so that it is written as the client declared it."""
        function = self.functions.get(call.name)
        if function is None or function.metadata is None:
            return call
        metadata = dict(call.metadata or {})
        for family, notes in function.metadata.items():
            metadata[family] = {**metadata.get(family, {}), **notes}
        return structs.replace(call, metadata=metadata)

    def original(self, name: str) -> str:
        """The declared name of a tool that may have been sent under an alias."""
        if name in self.names:
            return name
        if self._originals is None:  # of two names with one alias the first counts
            known = sorted(self.names, reverse=True)
            self._originals = {name_alias(one, STRICTEST_NAMES): one for one in known}
        return self._originals.get(name, name)


def _restore_message(message: Message, declared: _Declared, log: LossLog) -> Message:
    parts: list[AnyPart] = []
    for part in message.parts:
        if isinstance(part, ToolCall):
            name = declared.original(part.name)
            declared_call = declared.with_notes(_as_declared(part, name, custom=name in declared.custom))
            if declared_call is not part:
                log.replaced(declared_call, part)
            parts.append(declared_call)
        else:
            parts.append(part)
    return log.replace(message, parts=tuple(parts))


def _as_declared(call: ToolCall, name: str, *, custom: bool) -> ToolCall:
    """Turns a function with one text argument back into the custom tool it was."""
    if custom and not call.custom and call.arguments_held is not UNSET:
        text = call.arguments.get("input")
        if isinstance(text, str) and len(call.arguments) == 1:
            return structs.replace(call, name=name, custom=True, arguments_text=text)
    return call if name == call.name else structs.replace(call, name=name)


class RestoredEvents:
    """Restores the client's tools in a stream.

    Names are restored at the start of a call. Calls of custom tools are held back until they are complete, because only
    then is it known whether their arguments are one text; so are calls that become items of their own.
    """

    def __init__(self, request: Request) -> None:
        self._declared = _Declared(request)
        self.held: dict[int, tuple[PartStart, list[str]]] = {}
        """The start and the text of calls that are held back; text of all other parts passes unchanged."""

    def __call__(self, events: list[AnyEvent]) -> list[AnyEvent]:
        restored: list[AnyEvent] = []
        for event in events:
            if isinstance(event, PartStart):
                restored += self._restore_start(event)
            elif isinstance(event, PartDelta) and event.index in self.held:
                self.held[event.index][1].append(event.text)
            elif isinstance(event, PartEnd) and event.index in self.held:
                restored += self._restore_end(event)
            else:
                if isinstance(event, Finished | StreamFailed):
                    for index in list(self.held):
                        restored += self._restore_end(PartEnd(index, incomplete=True))
                restored.append(event)
        return restored

    def _restore_start(self, event: PartStart) -> list[AnyEvent]:
        call = event.part
        if not isinstance(call, ToolCall):
            return [event]
        name = self._declared.original(call.name)
        if name != call.name:
            call = structs.replace(call, name=name)
            event = structs.replace(event, part=call)
        if not self._declared.returns_whole(name) or call.custom:
            noted = self._declared.with_notes(call)
            return [event if noted is call else structs.replace(event, part=noted)]
        self.held[event.index] = (event, [])
        return []

    def _restore_end(self, event: PartEnd) -> list[AnyEvent]:
        start, pieces = self.held.pop(event.index)
        call: ToolCall = start.part  # type: ignore[assignment]
        text = "".join(pieces)
        arguments = exact_object(text)
        complete = (
            structs.replace(call, arguments=UNSET if arguments is None else arguments, arguments_text=text)
            if pieces
            else call
        )
        is_custom = call.name in self._declared.custom
        restored = complete if event.incomplete else _as_declared(complete, call.name, custom=is_custom)
        noted = self._declared.with_notes(restored)
        if not event.incomplete and has_note(noted.metadata, CLIENT_ITEM) and noted.parsed:
            return [structs.replace(start, part=noted), event]
        if not restored.custom:
            return [start, *([PartDelta(event.index, text)] if text else []), event]
        opened = structs.replace(noted, custom=True, arguments=UNSET, arguments_text=None)
        custom_text = restored.arguments_text or ""
        return [
            structs.replace(start, part=opened),
            *([PartDelta(event.index, custom_text)] if custom_text else []),
            event,
        ]
