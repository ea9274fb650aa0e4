"""Law 2 by construction: every field of every value, set alone, arrives in every format or is a loss, and the loss is
true.

The examples come from the types themselves (tests/support/ir_examples.py), so a new field that a codec forgets fails
here without another test being written. `KNOWN` lists today's failures; a row that no longer fails must go.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from msgspec import structs

import dragoman
from dragoman import ir
from dragoman.errors import DecodeError, EncodeError
from dragoman.ir.values import Value
from dragoman.loss import Loss
from dragoman.streams import StreamEncoder
from tests.laws.known_field_failures import KNOWN
from tests.support.cases import each
from tests.support.formats import FAMILY, FORMATS, VARIED_MODELS
from tests.support.ir_examples import EXAMPLES, MARK, example_fields, kinds, marks, resolved
from tests.support.promises import promise
from tests.support.trees import covers

pytestmark = promise("law:2-nothing-vanishes")

PARTS = (
    ir.Text, ir.Reasoning, ir.Refusal, ir.Image, ir.Document, ir.Audio, ir.ToolCall, ir.ToolResult, ir.ServerToolCall,
    ir.ServerToolResult, ir.Opaque,
)  # fmt: skip
INPUTS = (ir.Text, ir.Image, ir.Document, ir.Audio, ir.SearchResult, ir.Opaque)
OF_REQUESTS = (
    ir.Cache, ir.ToolResult, ir.ToolDefinition, ir.CustomTool, ir.ProviderTool, ir.ToolChoice, ir.ReasoningSettings,
    ir.StructuredOutput, ir.Request, ir.Document, ir.Location,
)  # fmt: skip
OF_ANSWERS = (ir.Usage, ir.Finish, ir.Logprobs, ir.TokenLogprob, ir.Completion)

# (kind, field): why it may change nothing in a body and still be no loss.
NOT_SAID = {
    ("Request", "origin"): "our own note of where a request came from",
    ("ToolCall", "invented_id"): "our own note; an id of ours is not sent to APIs that did not mint it",
    ("ToolResult", "name"): "the call it answers has the name",
    ("Opaque", "kind"): "our own note of the block's type, which the block itself names",
    ("ServerToolCall", "id"): "our own note; the block has it",
    ("ServerToolCall", "name"): "our own note; the block has it",
    ("ServerToolResult", "tool_call_id"): "our own note; the block has it",
    ("ServerToolResult", "name"): "our own note; the block has it",
    ("ProviderTool", "name"): "our own note; the definition has it, or the kind does",
    ("Finish", "raw"): "the wire's own word for `reason`, which every format has its own words for",
    ("StructuredOutput", "strict"): "formats without the switch always follow the schema",
}
# The same for one format, or for requests or answers only.
NOT_SAID_THERE = {
    ("Image", "media_type", "ollama-chat"): "images are bare bytes there, which show their type themselves",
    ("Audio", "media_type", "ollama-chat"): "the same for sound",
    ("Document", "cite", "cohere-chat"): "documents are always cited there",
    ("ToolCall", "id", "vertex"): "calls and results are paired by name and order there",
    ("ToolResult", "tool_call_id", "vertex"): "calls and results are paired by name and order there",
    ("Message", "role", "answer"): "an answer is the assistant's",
    ("ToolCall", "incomplete", "request"): "the answer is over: its result says what came of the call",
}
# Kinds that another format writes in a form of its own: the loss of the whole says so.
REWRITTEN = (ir.ServerToolCall, ir.ServerToolResult, ir.Location)
# (kind, field that is set already, field): why the second may change nothing and still be no loss. None is every kind.
BESIDE: dict[tuple[str, str, str | None], str] = {
    ("Opaque", "origin", None): "a block of the target's own family is sent as it is",
    ("ServerToolCall", "origin", None): "a block of the target's own family is sent as it is",
    ("ServerToolResult", "origin", None): "a block of the target's own family is sent as it is",
    ("ProviderTool", "origin", None): "a definition of the target's own family is sent as it is",
    ("ProviderTool", "definition", None): "a definition of the target's own family is sent as it is",
    ("ProviderTool", "functions", None): "a list of functions is no hosted tool, and has no options",
    ("Image", "url", "media_type"): "the server at the address names the type",
    ("Image", "file_id", "media_type"): "the file has its type",
    ("Document", "url", "media_type"): "the server at the address names the type",
    ("Document", "file_id", "media_type"): "the file has its type",
    ("Audio", "transcript", "data"): "the loss of the sound says that its transcript is sent",
    ("Audio", "transcript", "url"): "the loss of the sound says that its transcript is sent",
    ("Audio", "transcript", "file_id"): "the loss of the sound says that its transcript is sent",
    ("Audio", "transcript", "media_type"): "the loss of the sound says that its transcript is sent",
    ("Signature", "family", "id"): "an own signature has the id that its format gives it",
    ("ToolCall", "invented_id", "id"): "an id of ours is not sent to APIs without ids",
    ("Usage", "input", "total"): "the sum of both counts is sent",
    ("Usage", "output", "total"): "the sum of both counts is sent",
    ("Completion", "finishes", "finish"): "the endings of all candidates hold that of the first",
    ("Logprobs", "candidate", "tokens"): "they go with their candidate, which is a loss",
    ("Finish", "reason", "stop_sequence"): "only an answer that stopped has matched one",
    ("Finish", "stop_sequence", "reason"): "only an answer that stopped has matched one",
    ("Finish", "stop_sequence", "explanation"): "only refusals are explained",
    ("Request", "user", "safety_identifier"): "the same value",
    ("Request", "safety_identifier", "user"): "the same value",
    ("ReasoningSettings", "visible", "effort"): "the example's budget is the same amount",
    ("ReasoningSettings", "effort", "visible"): "an API that shows all reasoning has no switch for it",
}
# A loss that says degraded where what is sent is what would have been sent anyway.
SENT_ANYWAY = {("Usage", "total"): "the sum of both counts is sent"}
# Travel inside other values (a tag, another id), so their mark cannot be looked for; that something changes can.
HIDDEN = {"signature", "family", "id", "tool_call_id", "cache", "redacted"}


VANISHES = "vanishes without a loss"


@dataclass(frozen=True, slots=True)
class Written:
    """What an encoder wrote, whole, and what it reports."""

    text: str
    losses: tuple[Loss, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value stands: the whole around it, and its path there."""

    whole: Any
    path: str


# ── places ────────────────────────────────────────────────────────────────────────────────────────────────────


def in_request(value: Value) -> Place:  # noqa: PLR0911 - one place for each kind
    """A request that is legal around the value."""
    user, hello = ir.Message("user", "hello"), ir.Message("user", "go on")
    tools = (ir.ToolDefinition(name="look"), ir.ToolDefinition(name="other"))
    plain = ir.Request(model="some-model", messages=(hello,))
    match value:
        case ir.Request():
            return Place(value, "$")
        case ir.Message():
            return Place(structs.replace(plain, messages=(value, hello)), "$.messages[0]")
        case ir.ToolDefinition() | ir.CustomTool() | ir.ProviderTool():
            return Place(structs.replace(plain, tools=(value,)), "$.tools[0]")
        case ir.Location():
            search = ir.ProviderTool(name="web_search", kind="web_search", location=value)
            return Place(structs.replace(plain, tools=(search,)), "$.tools[0].location")
        case ir.ToolChoice():
            return Place(structs.replace(plain, tools=tools, tool_choice=value), "$.tool_choice")
        case ir.ReasoningSettings():
            return Place(structs.replace(plain, reasoning=value), "$.reasoning")
        case ir.StructuredOutput():
            return Place(structs.replace(plain, output=value), "$.output")
        case ir.ToolResult():
            call = ir.ToolCall(id=value.tool_call_id, name=value.name, arguments={})
            messages = (user, ir.Message("assistant", (call,)), ir.Message("tool", (value,)))
            return Place(structs.replace(plain, messages=messages, tools=(tools[0],)), "$.messages[2].parts[0]")
        case ir.ToolCall():
            result = ir.ToolResult(tool_call_id=value.id, name=value.name, kind="text", value="sunny")
            tool = ir.CustomTool(name=value.name) if value.custom else ir.ToolDefinition(name=value.name)
            messages = (user, ir.Message("assistant", (value,)), ir.Message("tool", (result,)))
            return Place(structs.replace(plain, messages=messages, tools=(tool,)), "$.messages[1].parts[0]")
        case ir.Text() | ir.Image() | ir.Document() | ir.Audio() | ir.Opaque() if not getattr(value, "citations", ()):
            message = ir.Message("user", (value, ir.Text("and this")))
            return Place(structs.replace(plain, messages=(message,)), "$.messages[0].parts[0]")
        case _:
            part, path, before = _as_part(value)
            messages = (user, ir.Message("assistant", (*before, part, ir.Text("done"))), hello)
            whole = structs.replace(plain, messages=messages)
            return Place(whole, f"$.messages[1].parts[{len(before)}]{path}")


def in_message(role: ir.Role, before: tuple[ir.Message, ...]) -> Callable[[Value], Place]:
    """A place in a message of that role, after others: what is kept in one message may be forgotten in another."""

    def place(value: Value) -> Place:
        inside = structs.replace(value, role=role) if isinstance(value, ir.Message) else None
        at = f"$.messages[{len(before)}]"
        if inside is None:
            part, path, others = _as_part(value)
            inside, at = ir.Message(role, (*others, part, ir.Text("and this"))), f"{at}.parts[{len(others)}]{path}"
        return Place(ir.Request(model="some-model", messages=(*before, inside, ir.Message("user", "go on"))), at)

    return place


def in_result(value: Value) -> Place:
    """A place in the result of a tool."""
    assert isinstance(value, INPUTS)
    call = ir.ToolCall(id="call_1", name="look", arguments={})
    result = ir.ToolResult("call_1", "look", kind="multimodal", parts=(value, ir.Text("and this")))
    messages = (ir.Message("user", "hello"), ir.Message("assistant", (call,)), ir.Message("tool", (result,)))
    whole = ir.Request(model="some-model", messages=messages, tools=(ir.ToolDefinition(name="look"),))
    return Place(whole, "$.messages[2].parts[0].parts[0]")


def in_answer(value: Value) -> Place:
    """A completion around the value."""
    message, finish = ir.Message("assistant", "done"), ir.Finish("stop")
    plain = ir.Completion(messages=(message,), finish=finish, usage=ir.Usage(input=5, output=5))
    match value:
        case ir.Completion():
            return Place(value, "$")
        case ir.Usage():
            return Place(structs.replace(plain, usage=value), "$.usage")
        case ir.Finish():
            return Place(structs.replace(plain, finish=value), "$.finish")
        case ir.Logprobs():
            both = structs.replace(plain, messages=(message, message), logprobs=(value,))
            return Place(both, "$.logprobs[0]")
        case ir.TokenLogprob():
            return Place(structs.replace(plain, logprobs=(ir.Logprobs((value,)),)), "$.logprobs[0].tokens[0]")
        case ir.Message():
            return Place(structs.replace(plain, messages=(structs.replace(value, role="assistant"),)), "$.messages[0]")
        case ir.ToolCall():
            answer = structs.replace(plain, finish=ir.Finish("length" if value.incomplete else "tool_calls"))
            return Place(
                structs.replace(answer, messages=(ir.Message("assistant", (value,)),)), "$.messages[0].parts[0]"
            )
        case _:
            part, path, before = _as_part(value)
            message = ir.Message("assistant", (*before, part, ir.Text("done")))
            return Place(structs.replace(plain, messages=(message,)), f"$.messages[0].parts[{len(before)}]{path}")


def in_stream(value: Value) -> Place:
    """The events of an answer whose part comes whole with its start."""
    part, path, before = _as_part(value)
    cut = isinstance(part, ir.ToolCall) and part.incomplete
    reason: ir.FinishReason = "length" if cut else "tool_calls" if isinstance(part, ir.ToolCall) else "stop"
    events: list[ir.AnyEvent] = [ir.StreamStart(id="id_1", model="some-model")]
    for index, one in enumerate((*before, part)):
        events += [ir.PartStart(index, one), ir.PartEnd(index, incomplete=cut)]
    events += [ir.UsageUpdate(ir.Usage(input=5, output=5)), ir.Finished(ir.Finish(reason))]
    return Place(events, f"$.parts[{len(before)}]{path}")


def _as_part(value: Any) -> tuple[ir.AnyPart, str, tuple[ir.AnyPart, ...]]:
    """The part that holds the value, the path to it inside that part, and the parts that must come before."""
    match value:
        case ir.Signature():
            return ir.Reasoning("some thoughts", signature=value), ".signature", ()
        case ir.Cache():
            return ir.Text("some text", cache=value), ".cache", ()
        case ir.Citation():
            return ir.Text("some text", citations=(value,)), ".citations[0]", ()
        case ir.ServerToolResult():
            call = ir.ServerToolCall(
                id=value.tool_call_id,
                name=value.name,
                origin=value.origin,
                block={"type": "call", "id": "ws_1"},
                kind=value.kind,
                input={"query": "rain"},
            )
            return value, "", (call,)
        case _:
            return value, "", ()


# ── the law ───────────────────────────────────────────────────────────────────────────────────────────────────


def written_request(request: ir.Request, target: str) -> Written:
    encoded = dragoman.encode_request(request, target)
    return Written(f"{encoded.json().decode()} {encoded.path} {encoded.headers}", encoded.losses)


def written_answer(completion: ir.Completion, target: str) -> Written:
    encoded = dragoman.encode_response(completion, target)
    return Written(encoded.json().decode(), encoded.losses)


def written_stream(events: list[ir.AnyEvent], target: str) -> Written:
    encoder = StreamEncoder(target)
    content = encoder.encode(events) + encoder.close()
    return Written(content.decode("utf-8", errors="replace"), encoder.losses)


WORLDS: dict[str, tuple[Callable[[Any], Place], Callable[[Any, str], Written], tuple[type[Value], ...]]] = {
    "request": (in_request, written_request, tuple(kind for kind in EXAMPLES if kind not in OF_ANSWERS)),
    "answer": (in_answer, written_answer, tuple(kind for kind in EXAMPLES if kind not in OF_REQUESTS)),
    "stream": (
        in_stream,
        written_stream,
        (*(part for part in PARTS if part not in OF_REQUESTS), ir.Signature, ir.Citation),
    ),
    "system message": (in_message("system", ()), written_request, (ir.Message, ir.Text, ir.Cache, ir.Opaque)),
    "later system message": (
        in_message("system", (ir.Message("user", "hello"), ir.Message("assistant", "yes"))),
        written_request,
        (ir.Message, ir.Text, ir.Cache, ir.Opaque),
    ),
    "user message": (in_message("user", ()), written_request, (*INPUTS, ir.Cache)),
    "assistant message": (
        in_message("assistant", (ir.Message("user", "hello"),)),
        written_request,
        (ir.Message, ir.Cache, *INPUTS),
    ),
    "result": (in_result, written_request, INPUTS),
}


def encoded_examples(target: str) -> Iterator[tuple[type[Value], str, bytes]]:
    """(kind, field, the body of a request with the example of that field) for every field that the format accepts."""
    for kind in WORLDS["request"][2]:
        base: Any = resolved(EXAMPLES[kind].plain, "openai", "anthropic")
        for field, changes in EXAMPLES[kind].fields.items():
            given = {key: resolved(value, "openai", "anthropic") for key, value in changes.items()}
            try:
                encoded = dragoman.encode_request(in_request(structs.replace(base, **given)).whole, target)
            except EncodeError:
                continue
            yield kind, field, encoded.json()


def faults(
    world: str, kind: type[Value], target: str, beside: str | None = None, model: str | None = None
) -> Iterator[tuple[str, str]]:
    """(field, what is wrong with it) for every field of the kind, alone or beside another, in a request to a model."""
    in_world, write, _ = WORLDS[world]

    def place(value: Value) -> Place:
        found = in_world(value)
        return found if model is None else Place(structs.replace(found.whole, model=model), found.path)

    family = FAMILY.get(target, "dragoman")  # stored histories have no family
    foreign = "anthropic" if family != "anthropic" else "google"
    plain: Any = resolved(EXAMPLES[kind].plain, family, foreign)
    first = {} if beside is None else EXAMPLES[kind].fields[beside]
    plain = structs.replace(plain, **{key: resolved(value, family, foreign) for key, value in first.items()})
    for name, changes in _variants(kind, world, target):
        if beside is not None and (not first.keys().isdisjoint(changes) or _is_nothing_beside(kind, beside, name)):
            continue
        given = {key: resolved(value, family, foreign) for key, value in changes.items()}
        base, changed = place(plain), place(structs.replace(plain, **given))
        try:
            before, after = write(base.whole, target), write(changed.whole, target)
            removed = _removed(changed)
            without = None if removed is None else write(removed, target)
            is_whole = kind in REWRITTEN or world == "stream" or name == "metadata (own)"
            holder = None if is_whole else _holder(changed.path)
        except EncodeError:
            continue  # refused with a reason
        hidden = name in HIDDEN or kind is ir.Signature or beside is not None
        difference = Difference(before, after, without, set() if hidden else set(marks(given)), holder)
        paths = tuple(path for key in given for path in _paths(changed.path, key))
        fault = difference.fault(paths)
        if fault is not None and not (fault.startswith("degraded") and (kind.__name__, name) in SENT_ANYWAY):
            yield name, fault


def _is_nothing_beside(kind: type[Value], beside: str, name: str) -> bool:
    rows = {(kind.__name__, beside, None), (kind.__name__, beside, name)}
    return name == "metadata (own)" or not rows.isdisjoint(BESIDE)


def _variants(kind: type[Value], world: str, target: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """What to set for each field; metadata once as another family's and once as the target's own."""
    for name, changes in EXAMPLES[kind].fields.items():
        is_silent = (kind.__name__, name) in NOT_SAID
        is_silent = is_silent or bool(
            {(kind.__name__, name, target), (kind.__name__, name, world)} & NOT_SAID_THERE.keys()
        )
        if is_silent or (kind is ir.Message and name == "role" and world != "request"):
            continue
        yield name, changes
        if name == "metadata":
            (entries,) = changes["metadata"].values()
            yield "metadata (own)", {"metadata": {FAMILY.get(target, "dragoman"): entries}}


_HOLDER = re.compile(r"\$\.tools\[0\]|\$\.messages\[(\d+)\]\.parts\[(\d+)\]")
_INNERMOST = re.compile(r"\$\.tools\[0\]|\$(\.messages\[\d+\])?(\.parts\[\d+\])+|\$\.messages\[\d+\]")


def _holder(path: str) -> str:
    """The path of the innermost tool, part or message that holds the value, or `$`."""
    found = _INNERMOST.match(path)
    return "$" if found is None else found[0]


def _removed(place: Place) -> Any:
    """The same whole without the tool or part that holds the value; None for what is not one of several."""
    if isinstance(place.whole, list):
        return (
            [event for event in place.whole if getattr(event, "index", None) is None] if "parts" in place.path else None
        )
    found = _HOLDER.match(place.path)
    if found is None:
        return None
    if found[1] is None:
        return structs.replace(place.whole, tools=())
    number, position = int(found[1]), int(found[2])
    messages = list(place.whole.messages)
    parts = messages[number].parts
    messages[number] = structs.replace(messages[number], parts=(*parts[:position], *parts[position + 1 :]))
    return structs.replace(place.whole, messages=tuple(messages))


@dataclass(frozen=True, slots=True)
class Difference:
    """What was written without the field, with it, and without the value that holds it."""

    before: Written
    after: Written
    without: Written | None
    wanted: set[str]
    holder: str | None
    """Path of the tool or part that holds the field; None where a loss of the whole says what becomes of the field."""

    @property
    def arrived(self) -> bool:
        if self.wanted:
            return all(mark in self.after.text for mark in self.wanted)
        return self.before.text != self.after.text

    def fault(self, paths: tuple[str, ...]) -> str | None:
        reported = [
            loss
            for loss in self.after.losses
            if any(_concerns(loss, path) for path in paths)
            # A loss of the whole (in streams all are) speaks of this value only if it goes with it.
            if loss.path != "$" or loss not in (self.without or self.before).losses
        ]
        new = [loss for loss in reported if loss not in self.before.losses]
        if not self.arrived and not any(loss in new or self._explains(loss) for loss in reported):
            return VANISHES
        for loss in reported:
            of_field = loss.path in paths or any(covers(path, loss.path) for path in paths)
            if loss.severity == "degraded" and of_field and loss in new and self.before.text == self.after.text:
                return f"degraded, but nothing of it is there: {loss}"
            of_holder = self.holder is None or covers(self.holder, loss.path)
            is_gone = self.without is not None and self.without.text == self.after.text
            if loss.severity == "degraded" and not of_field and of_holder and is_gone:
                return f"degraded, but nothing of the whole is there: {loss}"
            if loss.severity == "dropped" and loss.path in paths and loss in new and self.wanted and self.arrived:
                return f"dropped, but it is there: {loss}"
        return None

    def _explains(self, loss: Loss) -> bool:
        """Whether a loss that is there without the field too says that the field is gone."""
        if loss.severity == "dropped" or self.holder is None:
            return True
        return loss.path != self.holder and covers(self.holder, loss.path)


def _concerns(loss: Loss, path: str) -> bool:
    return covers(loss.path, path) or covers(path, loss.path)


def _paths(path: str, field: str) -> Iterator[str]:
    """Where a loss of the field may point. A key that only one vendor knows is reported at the object that had it."""
    yield f"{path}.{field}"
    if field == "metadata":
        yield f"{path}.{MARK}_key"
        yield f"{path.removesuffix('[0]')}.{MARK}_key"


@pytest.mark.parametrize("target", FORMATS)
@each(
    ("world", "kind"),
    [(world, kind) for world, (_, _, of) in WORLDS.items() for kind in of],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_every_field_set_alone_arrives_or_is_a_true_loss(world: str, kind: type[Value], target: str) -> None:
    found = dict(faults(world, kind, target))
    known = {row.field for row in KNOWN if (row.world, row.kind) == (world, kind.__name__) and target in row.targets}
    new = {name: fault for name, fault in found.items() if name not in known}
    assert not new, new
    assert known <= found.keys(), f"fixed, so remove from known_field_failures.py: {sorted(known - found.keys())}"


@pytest.mark.parametrize(("world", "kind"), [(world, kind) for world, (_, _, of) in WORLDS.items() for kind in of])
def test_every_field_arrives_or_is_a_loss_beside_every_other(world: str, kind: type[Value]) -> None:
    found = {
        f"{name} beside {beside}, {target}": fault
        for target in FORMATS
        for alone in [{name for name, _ in faults(world, kind, target)}]
        for beside in EXAMPLES[kind].fields
        for name, fault in faults(world, kind, target, beside)
        if fault == VANISHES and name not in alone
    }
    assert found == {}


SETTINGS = (
    ir.Request, ir.ReasoningSettings, ir.StructuredOutput, ir.ToolChoice, ir.ToolDefinition, ir.CustomTool,
    ir.ProviderTool, ir.Cache, ir.Image, ir.Document, ir.ToolResult,
)  # fmt: skip
_NEVER_THINKS = "this model does not reason, so there is nothing to turn off"
_FOLLOWS = "the loss says degraded; the switch is not sent"
KNOWN_BY_MODEL = {
    ("gpt-4.1", "ReasoningSettings", "mode"): _NEVER_THINKS,
    ("claude-3-5-haiku-latest", "ReasoningSettings", "mode"): _NEVER_THINKS,
    ("command-a-03-2025", "ReasoningSettings", "mode"): _NEVER_THINKS,
    ("us.amazon.nova-2-lite-v1:0", "ReasoningSettings", "budget_tokens"): "its loss names the effort",
    ("us.amazon.nova-2-lite-v1:0", "ToolDefinition", "strict"): _FOLLOWS,
    ("us.amazon.nova-pro-v1:0", "ToolDefinition", "strict"): _FOLLOWS,
    ("us.deepseek.r1-v1:0", "ToolDefinition", "strict"): _FOLLOWS,
}
"""(model, kind, field) -> why the field fails there."""


@pytest.mark.parametrize("target", FORMATS)
def test_every_setting_arrives_or_is_a_true_loss_whatever_the_model(target: str) -> None:
    """The rules of a format differ by model."""
    known = {(row.kind, row.field) for row in KNOWN if row.world == "request" and target in row.targets}
    new = {
        (model, kind.__name__, name): fault
        for model in VARIED_MODELS[target]
        for kind in SETTINGS
        for name, fault in faults("request", kind, target, model=model)
        if (kind.__name__, name) not in known and (kind, name) != (ir.Request, "model")
    }
    assert {row: fault for row, fault in new.items() if row not in KNOWN_BY_MODEL} == {}


MEDIA = (ir.Refusal, ir.Image, ir.Document, ir.Audio, ir.SearchResult, ir.ToolResult, ir.ToolCall, ir.Reasoning)
BARE_BYTES = {(ir.Audio, "ollama-chat")}
"""Sound and images are bare bytes there, and these are neither."""


@pytest.mark.parametrize("target", FORMATS)
@pytest.mark.parametrize("world", ["request", "answer"])
def test_what_comes_back_as_another_kind_is_a_loss(world: str, target: str) -> None:
    place, _, kinds = WORLDS[world]
    encode, decode = (
        (dragoman.encode_request, dragoman.decode_request)
        if world == "request"
        else (dragoman.encode_response, dragoman.decode_response)
    )
    silent = []
    for kind in (one for one in MEDIA if one in kinds and (one, target) not in BARE_BYTES):
        plain: Any = resolved(EXAMPLES[kind].plain, FAMILY[target], "dragoman")
        for name, changes in [("", {}), *EXAMPLES[kind].fields.items()]:
            given = {key: resolved(value, FAMILY[target], "dragoman") for key, value in changes.items()}
            put = place(structs.replace(plain, **given))
            try:
                written: Any = encode(put.whole, target)
                read = decode(written.json(), target)
            except (EncodeError, DecodeError):
                continue
            counts = [
                sum(type(part) is kind for one in whole.messages for part in one.parts) for whole in (put.whole, read)
            ]
            if counts[0] > counts[1] and not any(_concerns(loss, put.path) for loss in written.losses):
                silent.append((kind.__name__, name))
    assert silent == []


def test_every_kind_and_every_field_has_an_example() -> None:
    missing = {
        f"{kind.__name__}.{name}"
        for kind in kinds()
        for name in example_fields(kind)
        if (kind.__name__, name) not in NOT_SAID
        if kind not in EXAMPLES or name not in EXAMPLES[kind].fields
    }
    assert missing == set()
