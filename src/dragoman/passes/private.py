"""Reports what only one family understands as losses (law 2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import msgspec
from msgspec import Raw, structs

from dragoman.ir import (
    AnyEvent,
    AnyPart,
    Audio,
    Citation,
    Completion,
    Document,
    Finished,
    Image,
    LogprobsDelta,
    Message,
    Metadata,
    Opaque,
    PartDelta,
    PartEnd,
    PartStart,
    ProviderTool,
    Request,
    SearchResult,
    StreamStart,
    Text,
    ToolCall,
    ToolResult,
    Usage,
    UsageUpdate,
)
from dragoman.ir.completions import USAGE_DETAILS
from dragoman.ir.notes import CITED_PLACE, CORRECTED, NAMED, SPELLINGS, WITHIN, has_note, inner_extra, is_spelling
from dragoman.ir.values import Value, parse_json
from dragoman.loss import Severity
from dragoman.losses import LossLog, field_of_key
from dragoman.profile import Profile

_EMPTY_JSON = (Raw(b"null"), Raw(b"[]"), Raw(b"{}"))
_LONGEST_EMPTY = 4

BOOKKEEPING: Mapping[type[Value], frozenset[str]] = {
    Completion: frozenset(
        {
            "base_resp",  # an error in it is read; otherwise it says "success"
            "billing",
            "eval_duration",
            "load_duration",
            "metrics",
            "performanceConfig",
            "prompt",  # repeated from the request
            "prompt_eval_duration",
            "provider",
            "serviceTier",
            "service_tier",
            "system_fingerprint",
            "tool_usage",
            "total_duration",
            "updated",
            "usage_breakdown",
            "x_groq",
        }
    ),
    # Of a candidate: its probability, the original wording of its finish reason, and the token that ended it. (A stop
    # sequence in these keys is not among a message's keys: the finish has it.)
    Message: frozenset(
        {"avgLogprobs", "finishMessage", "matched_stop", "native_finish_reason", "score", "stop_reason"}
    ),
    ToolCall: frozenset({"index"}),
    Image: frozenset({"index"}),
    Audio: frozenset({"expires_at", "id"}),
    # Positions of a citation in what the provider read, and its numbers of places, which only that provider can use;
    # the site of a page beside its address, and how sure the provider is.
    Text: frozenset(
        {"document_index", "encrypted_index", "end_block_index", "end_char_index", "end_page_number"}
        | {"search_result_index", "start_block_index", "start_char_index", "start_page_number"}
        | {"confidenceScores", "domain", "placeId"}
    ),
}
"""Keys about how an answer was made, not about its content. One list for all formats: servers that use the format of
another copy its names, and no name here has two meanings."""

_QUOTED: Mapping[type[Value], frozenset[str]] = {kind: BOOKKEEPING[kind] for kind in (Text, ToolCall, Image)}
"""The same for requests, which repeat the citations, calls and images of earlier answers."""
_NONE: Mapping[type[Value], frozenset[str]] = {}
_NO_KEYS: frozenset[str] = frozenset()

_COUNTS = "usage."
"""Further keys of usage are bookkeeping."""


def report_private_settings(request: Request, profile: Profile, log: LossLog) -> Request:
    """Reports wire keys of the request, its tools and its settings that only their own family understands."""
    if request.metadata is not None:
        _report_node(request, request.metadata, "", profile, log)
    for tool in request.tools:
        if type(tool) is not ProviderTool and tool.metadata is not None:
            _report_node(tool, tool.metadata, "", profile, log)
    for name in ("tool_choice", "reasoning", "output"):
        settings = getattr(request, name)
        if settings is not None and settings.metadata is not None:
            _report_node(request, settings.metadata, f"{name}.", profile, log)
    return request


def report_private_content(request: Request, profile: Profile, log: LossLog) -> Request:
    """Reports wire keys of messages and their parts that only their own family understands."""
    _report_messages(request.messages, profile, log, _QUOTED)
    return request


def report_speakers(request: Request, profile: Profile, log: LossLog) -> Request:
    """Reports the names of speakers that the target's messages cannot have; its encoder does not look at them."""
    if not profile.message_names:
        for message in request.messages:
            if message.name is not None:
                log.drop(message, "name", "name of the speaker", "messages of this API have none")
    return request


def report_private_answer(completion: Completion, profile: Profile, log: LossLog) -> None:
    """Reports wire keys of an answer that only its family understands. Those about how it was made are notes."""
    finish, usage = completion.finish, completion.usage
    if completion.metadata:
        _report_node(completion, completion.metadata, "", profile, log, BOOKKEEPING)
    _report_messages(completion.messages, profile, log, BOOKKEEPING)
    if finish is not None and finish.metadata is not None:
        _report_node(completion, finish.metadata, "finish.", profile, log, BOOKKEEPING)
    if usage is not None and usage.metadata is not None:
        _report_node(completion, usage.metadata, _COUNTS, profile, log, BOOKKEEPING)


COUNTED = (
    # Chat, and servers that use its format
    *("prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details", "completion_tokens_details"),
    *("server_tool_use_details", "server_side_tool_usage_details"),
    # Responses, Anthropic
    *("input_tokens", "output_tokens", "input_tokens_details", "output_tokens_details", "cache_creation"),
    *("cache_creation_input_tokens", "cache_read_input_tokens", "server_tool_use", "service_tier"),
    # Bedrock
    *("inputTokens", "outputTokens", "totalTokens", "cacheReadInputTokens", "cacheWriteInputTokens", "cacheDetails"),
    *("cacheReadInputTokenCount", "cacheWriteInputTokenCount"),
    # Interactions, Cohere
    *("total_input_tokens", "total_output_tokens", "total_thought_tokens", "total_tool_use_tokens"),
    *("total_cached_tokens", "tokens", "billed_units", "cached_tokens"),
    # DeepSeek
    "prompt_cache_hit_tokens",
)
"""Members of a usage object that the intermediate format models. One list for all, like `BOOKKEEPING`."""
_COUNTED = frozenset(COUNTED)
_read_members = msgspec.json.Decoder(dict[str, Raw]).decode
_NO_COUNTS = frozenset({b"null", b"0", b"0.0", b"{}", b"[]", b'""', b"false"})
_USAGE = "~usage"


def _report_members(node: Completion, metadata: Metadata, profile: Profile, log: LossLog) -> None:
    """Notes members of the provider's usage object that no count of the intermediate format holds, such as its cost."""
    for family, notes in metadata.items():
        held = notes.get(_USAGE)
        if held is None:
            continue
        members: dict[str, Raw] = _read_members(held)
        if _COUNTED.issuperset(members):
            continue
        for key, member in members.items():
            if key not in _COUNTED and bytes(member) not in _NO_COUNTS and key not in profile.usage_members:
                log.note(node, field_of_key(_COUNTS, key), key, f"only {family} reports it")


def report_counts(node: Completion, usage: Usage, profile: Profile, log: LossLog) -> None:
    """Reports counts that this API does not have. Its own family gets its usage unchanged (law 1)."""
    if usage.metadata is not None:
        if profile.family in usage.metadata:
            return
        _report_members(node, usage.metadata, profile, log)
    if usage.searches and not profile.counts_searches:
        log.note(node, "usage", f"{usage.searches} web searches", "this API does not count them")
    if usage.cached is not None and usage.cached > usage.input:
        what = f"{usage.cached} cached tokens"
        log.note(node, "usage.cached", what, f"more than the whole input, which has {usage.input}")
    if usage.service_tier is not None and usage.service_tier not in profile.answer_tiers:
        what = f"service tier {usage.service_tier!r}"
        why = "answers of this API know no such tier" if profile.answer_tiers else "answers of this API name no tier"
        log.note(node, "usage.service_tier", what, why)
    if usage.details is not None:
        names = [USAGE_DETAILS.get(name, name) for name in usage.details if name not in profile.usage_details]
        if names:
            log.note(node, "usage", ", ".join(names), "this API does not count them separately")


Bookkeeping: TypeAlias = Mapping[type[Value], frozenset[str]]

# In a stream, the keys of a candidate arrive with its finish reason.
_STREAMED: Bookkeeping = {**BOOKKEEPING, Completion: BOOKKEEPING[Completion] | BOOKKEEPING[Message]}
_THE_ANSWER = Completion(())
_TOO_LATE = "the stream had sent the first version already"
_MARKED = frozenset({Text, Image, Document, Audio, SearchResult, ToolCall})


class PrivateEvents:
    """`report_private_answer` for streams: reports each part as it arrives, and the answer when it ends.

    Marks of a prompt cache belong to requests: a part that has one loses it here.
    """

    profile: Profile
    log: LossLog
    _metadata: Metadata | None = None
    _usage: Usage | None = None
    _parts: dict[int, AnyPart]
    _logprobs_reported: bool = False

    def __init__(self, profile: Profile, log: LossLog) -> None:
        self.profile = profile
        self.log = log
        self._parts = {}

    def report(self, events: list[Any]) -> list[AnyEvent]:
        """Reports the losses of these events, and returns the events without them."""
        is_marked = False
        for event in events:
            kind = type(event)
            if kind is PartDelta:
                if event.citation is not None and event.citation.metadata is not None:
                    self._report(self._parts[event.index], _private_of(event.citation, self.profile), "citations.")
            elif kind is PartStart:
                part = self._parts[event.index] = event.part
                if type(part) is not Opaque and self._report_start(part):
                    is_marked = True
            elif kind is PartEnd:
                if event.metadata is not None:
                    self._report_part_end(self._parts[event.index], event.metadata)
                del self._parts[event.index]
            elif kind is StreamStart:
                self._metadata = event.metadata
            elif kind is UsageUpdate:
                self._usage = event.usage
            elif kind is LogprobsDelta:
                self._report_logprobs()
            elif kind is Finished:
                self._report_end(event)
        return [_without_mark(event) for event in events] if is_marked else events

    def _is_corrected(self, metadata: Metadata) -> bool:
        """Whether the provider corrected a text, and its own format is not the target: that one repeats it."""
        return any(CORRECTED in notes for family, notes in metadata.items() if family != self.profile.family)

    def _report_part_end(self, part: AnyPart, metadata: Metadata) -> None:
        if self._is_corrected(metadata):
            field = "arguments" if type(part) is ToolCall else "text"
            self.log.degrade(part, field, f"corrected {field}", _TOO_LATE)
        self._report(part, metadata, "")

    def _report_start(self, part: Any) -> bool:
        """Report the losses of a part that begins; return whether it has a cache mark, which must be removed."""
        _report_part(part, self.profile, self.log, _STREAMED)
        if type(part) not in _MARKED or part.cache is None:
            return False
        self.log.drop(part, "cache", "cache mark", "only prompts are cached, and this is an answer")
        return True

    def _report_logprobs(self) -> None:
        """Report them once, although they arrive with every fragment."""
        if not self.profile.has_logprobs and not self._logprobs_reported:
            self.log.drop(_THE_ANSWER, "logprobs", "log probabilities", "answers of this API have no such list")
        self._logprobs_reported = True

    def _report_end(self, event: Finished) -> None:
        early, late = self._metadata, event.metadata
        if early and late:
            early = {family: {**early.get(family, {}), **late.get(family, {})} for family in {**early, **late}}
        reported = early or late
        if reported:
            if self._is_corrected(reported):
                self.log.degrade(_THE_ANSWER, "output", "corrected text", _TOO_LATE)
            self._report(_THE_ANSWER, reported, "")
        if event.finish.metadata is not None:
            self._report(_THE_ANSWER, event.finish.metadata, "finish.")
        if self._usage is not None:
            report_counts(_THE_ANSWER, self._usage, self.profile, self.log)
            if self._usage.metadata is not None:
                self._report(_THE_ANSWER, self._usage.metadata, _COUNTS)

    def _report(self, node: Value, metadata: Metadata, within: str) -> None:
        _report_node(node, metadata, within, self.profile, self.log, _STREAMED)


def _without_mark(event: Any) -> AnyEvent:
    """Return the event, without the cache mark of a part that begins."""
    if type(event) is PartStart and type(event.part) in _MARKED:
        event = structs.replace(event, part=structs.replace(event.part, cache=None))
    unmarked: AnyEvent = event
    return unmarked


def _report_messages(messages: Iterable[Message], profile: Profile, log: LossLog, bookkeeping: Bookkeeping) -> None:
    for message in messages:
        if message.metadata is not None:
            _report_node(message, message.metadata, "", profile, log, bookkeeping)
        content = message.content_held
        if type(content) is tuple:
            for part in content:
                if type(part) is not Opaque:
                    _report_part(part, profile, log, bookkeeping)


def _report_part(part: Any, profile: Profile, log: LossLog, bookkeeping: Bookkeeping) -> None:
    if part.metadata is not None:
        _report_node(part, part.metadata, "", profile, log, bookkeeping)
    if type(part) is Text:
        for citation in part.citations:
            if citation.metadata is not None:
                _report_node(part, _private_of(citation, profile), "citations.", profile, log, bookkeeping)
    elif type(part) is ToolResult:
        for inner in part.parts:
            if type(inner) is not Opaque:
                _report_part(inner, profile, log, bookkeeping)


def _private_of(citation: Citation, profile: Profile) -> Metadata:
    """Return the notes on a citation without its place in a document, if the target has places too."""
    metadata = citation.metadata or {}
    if not profile.citation_keys or not has_note(metadata, CITED_PLACE):
        return metadata
    known, none = profile.citation_keys, frozenset[str]()
    return {
        family: {key: value for key, value in notes.items() if key not in known.get(family, none)}
        for family, notes in metadata.items()
    }


def _report_node(
    node: Value, metadata: Metadata, within: str, profile: Profile, log: LossLog, bookkeeping: Bookkeeping = _NONE
) -> None:
    """Reports keys of `metadata` (at path `within` of the node) that the target does not understand."""
    for family, entries in metadata.items():
        if family == profile.family:
            continue
        translated = profile.translates.get(family)
        why, noted = "", _NO_KEYS
        for key, entry in entries.items():
            if key in SPELLINGS or (translated is not None and within + key in translated):
                continue
            if key[:1] != "~":
                if len(entry) > _LONGEST_EMPTY or entry not in _EMPTY_JSON:
                    if not why:
                        why = f"only {family} understands it" if translated is None else "this API has no such field"
                        noted = bookkeeping.get(type(node), _NO_KEYS)
                    severity: Severity = "noted" if key in noted or within == _COUNTS else "dropped"
                    named = entries.get(NAMED + key)
                    what = key if named is None else str(parse_json(named))
                    log.entries.append((node, field_of_key(within, key), what, severity, why))
            elif not is_spelling(key):
                name = key.removeprefix(WITHIN)
                inner = {family: inner_extra(entries, name) or {}}
                _report_node(node, inner, f"{within}{name}.", profile, log, bookkeeping)
