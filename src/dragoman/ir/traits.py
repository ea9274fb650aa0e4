"""Traits: features of a conversation that some targets cannot accept unchanged, one bit each.

Decoders look at every part anyway, so they note the traits while they read and leave them on the request they build.
A pass of a target then runs only if one of its traits is present (passes/legalise.py). The traits are a hint beside the
fields: they are not compared, not stored, and lost when the request is changed (`structs.replace`); a request without
them is surveyed (passes/survey.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import TypeAlias

from msgspec.structs import force_setattr, replace

from dragoman.ir.messages import Message
from dragoman.ir.notes import ADDED, SPELLINGS, Extra, Spelling, has_note, is_spelling
from dragoman.ir.parts import AnyPart, Opaque, Text, ToolCall
from dragoman.ir.requests import AnyTool, ProviderTool, Request, ToolDefinition
from dragoman.ir.values import Metadata

MISPLACED_PART = 1 << 0
"""A call outside an assistant message, a result outside a tool message, or anything else inside one."""
NO_MESSAGES = 1 << 1
PRIVATE_SETTING = 1 << 2
"""Metadata of the request, a tool, the tool choice, reasoning or output holds an unmodelled wire key."""
PRIVATE_CONTENT = 1 << 3
"""The same for metadata of a message, a part, a citation or a piece of a result."""
UNPAIRED = 1 << 4
"""Some result does not directly follow its call, in call order; or an id is used twice; or a call has no result
although the conversation continues."""
BLANK_TEXT = 1 << 5
"""Text that is empty or only white space."""
EMPTY_MESSAGE = 1 << 6
"""A message without any part."""
LATE_SYSTEM = 1 << 7
"""System text after the first message of another role."""
ADJACENT_ASSISTANT = 1 << 8
FIRST_ASSISTANT = 1 << 9
"""The first message that is not system text is the assistant's."""
LAST_ASSISTANT = 1 << 10
ONLY_SYSTEM = 1 << 11

# These depend on the target too: passes/legalise.py determines them.
SAME_TOOL_NAMES = 1 << 12
ODD_ID = 1 << 13
ODD_NAME = 1 << 14
CALLS_WITHOUT_TOOLS = 1 << 15
ODD_SETTING = 1 << 16

VENDOR_TOOL = 1 << 17
"""A tool that a provider runs or defines, that the model must look up, or that was declared in the middle."""
UNANSWERED_END = 1 << 18
"""The last message calls tools, and the conversation ends there, as many stored ones do."""
NAMED_SPEAKER = 1 << 19
"""A message names its speaker."""
UNKNOWN_PART = 1 << 20
"""A part that the format of the source does not know."""


Traits: TypeAlias = tuple[int, Mapping[str, str], AbstractSet[str]]
"""Bits; id of each call -> name of its tool; names of the declared tools. (A plain tuple: every request makes one.)"""


def traits_of(request: Request) -> Traits | None:
    """The traits noted by the decoder; None for a request that was built or changed by hand."""
    try:
        return request._traits  # type: ignore[attr-defined, no-any-return]  # noqa: SLF001
    except AttributeError:
        return None


def for_model(request: Request, model: str) -> Request:
    """The same request for another model, with the traits that were noted: a model's name is not one of them."""
    if request.model == model:
        return request
    renamed, traits = replace(request, model=model), traits_of(request)
    if traits is not None:
        force_setattr(renamed, "_traits", traits)
    return renamed


class TraitNotes:
    """Notes the traits of a conversation, message by message, in the order in which it is read.

    `turn` when a message other than a tool message begins, `call` and `result` for each of these; `text` and `metadata`
    where a part has some. `noted_on` at the end.
    """

    bits: int
    _waiting: list[str] | tuple[()]
    _answered: int
    _previous: str
    """The role of the previous turn; empty while there has been only system text."""
    call_names: dict[str, str]

    def __init__(self) -> None:
        # Read for every message: a default of the class would take three times as long to read in the interpreter.
        self.bits = 0
        self._waiting = ()
        self._answered = 0
        self._previous = ""
        self.call_names = {}

    def turn(self, role: str) -> None:
        if self._answered or self._waiting:
            self.end_results()
        previous = self._previous
        if role == "user":
            self._previous = role
        elif role == "assistant":
            self._previous = role
            if not previous:
                self.bits |= FIRST_ASSISTANT
            elif previous == role:
                self.bits |= ADJACENT_ASSISTANT
        elif previous:
            self._previous = role
            self.bits |= LATE_SYSTEM

    def user_text(self, text: str) -> None:
        """A turn of the user that is one text: what `turn` and `text` note."""
        if self._answered or self._waiting:
            self.end_results()
        self._previous = "user"
        if not text or text.isspace():
            self.bits |= BLANK_TEXT

    def end_results(self) -> None:
        """Ends the results of the previous calls."""
        if self._answered != len(self._waiting):
            self.bits |= UNPAIRED
        self._waiting = ()
        self._answered = 0

    def call(self, call_id: str, name: str) -> None:
        if call_id in self.call_names:
            self.bits |= UNPAIRED
        self.call_names[call_id] = name
        if self._waiting:
            self._waiting.append(call_id)
        else:
            self._waiting = [call_id]

    def result(self, call_id: str, name: str) -> None:
        index = self._answered
        self._answered = index + 1
        self._previous = "tool"
        if index >= len(self._waiting) or self._waiting[index] != call_id or self.call_names[call_id] != name:
            self.bits |= UNPAIRED

    def text(self, text: str) -> None:
        if not text or text.isspace():
            self.bits |= BLANK_TEXT

    def metadata(self, metadata: Metadata) -> None:
        if not self.bits & PRIVATE_CONTENT and type(metadata) is not Spelling and has_private(metadata):
            self.bits |= PRIVATE_CONTENT

    def keep_notes(self, family: str, notes: Extra) -> Metadata | None:
        """Returns a codec's notes on a node as its metadata, with their traits noted."""
        if not notes:
            return None
        metadata: Metadata = {family: notes}
        self.metadata(metadata)
        return metadata

    def message(self, message: Message) -> None:
        """Notes the traits of a message other than a tool message, whose turn has begun."""
        if message.metadata is not None:
            self.metadata(message.metadata)
        content = message.content_held
        if type(content) is str:
            self.text(content)
            return
        if not content:
            self.bits |= EMPTY_MESSAGE
        for part in content:
            if type(part) is ToolCall:
                self.call(part.id, part.name)
                if part.metadata is not None:
                    self.metadata(part.metadata)
            else:
                self.part(part)  # type: ignore[arg-type]

    def part(self, part: AnyPart) -> None:
        """Notes the traits of a part other than a call or a result."""
        metadata = getattr(part, "metadata", None)
        if metadata is not None:
            self.metadata(metadata)
        if type(part) is Text:
            self.text(part.text)
            for citation in part.citations:
                if citation.metadata is not None:
                    self.metadata(citation.metadata)
        elif type(part) is Opaque:
            self.bits |= UNKNOWN_PART

    def noted_on(self, request: Request, tool_names: AbstractSet[str], tool_bits: int) -> Request:
        """The request with its traits attached. Tools are examined separately (`tool_traits`)."""
        if self._answered:
            self.end_results()
        bits, previous = self.bits | tool_bits, self._previous
        if not previous:
            bits |= ONLY_SYSTEM if request.messages else NO_MESSAGES
        elif self._waiting:
            bits |= UNANSWERED_END
        elif previous == "assistant":
            bits |= LAST_ASSISTANT
        metadata, choice, reasoning, output = request.metadata, request.tool_choice, request.reasoning, request.output
        if (
            (metadata is not None and type(metadata) is not Spelling and has_private(metadata))
            or (choice is not None and choice.metadata is not None and has_private(choice.metadata))
            or (reasoning is not None and reasoning.metadata is not None and has_private(reasoning.metadata))
            or (output is not None and output.metadata is not None and has_private(output.metadata))
        ):
            bits |= PRIVATE_SETTING
        force_setattr(request, "_traits", (bits, self.call_names, tool_names))
        return request


def has_private(metadata: Metadata) -> bool:
    """Whether metadata holds more than spelling notes: a wire key that the intermediate format does not model."""
    for entries in metadata.values():
        if not SPELLINGS.issuperset(entries):
            for key in entries:
                if not is_spelling(key):
                    return True
    return False


def tool_traits(tools: Iterable[AnyTool]) -> int:
    """The bits of these tools."""
    bits = 0
    for tool in tools:
        metadata = tool.metadata
        if type(tool) is ProviderTool or (type(tool) is ToolDefinition and tool.deferred):
            bits |= VENDOR_TOOL
        if type(tool) is not ProviderTool and metadata is not None and has_private(metadata):
            bits |= PRIVATE_SETTING
        if metadata is not None and has_note(metadata, ADDED):
            bits |= VENDOR_TOOL
    return bits
