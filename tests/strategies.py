"""Generated values of the whole intermediate format: conversations as users have them, and damaged ones.

Everything is small (a failing example must fit on a screen) and drawn by Hypothesis alone (a failing example must be
reproducible). `REQUESTS` are legal conversations, `UGLY_REQUESTS` damaged ones, `WILD_REQUESTS` have any part in any
message. Strategies are built once, as constants, because building them takes most of the time.
"""

import base64
import string
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import msgspec
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from msgspec import Raw, structs

from dragoman import ir
from dragoman.codecs.arguments import read_arguments
from dragoman.ir.values import Value, encode_json
from tests.support.formats import FAMILIES

# ── scalars ───────────────────────────────────────────────────────────────────────────────────────────────────

_TEXTS = (
    "hi",
    "Wetter in Zürich?",
    "東京の天気",
    "a\nb",
    'say "hi"',
    "👩‍🚀",
    "<b>&amp;</b>",
    "\\u0041",
    "{not json",
    "null",
)
_ALPHABET = string.ascii_letters + string.digits + " .,:;{}[]\"'\\/\n\té漢🙂\x7f\u2028"

WORDS: SearchStrategy[str] = st.sampled_from(_TEXTS) | st.text(_ALPHABET, max_size=8).map("w{}".format)
"""Text that is not blank."""

BLANKS = st.sampled_from(("", " ", "\n\t"))
ANY_TEXT: SearchStrategy[str] = BLANKS | st.just(" end ") | WORDS

NAMES = st.sampled_from(("get_weather", "search", "f", "T", "read_file", "a1", "x" * 64))
"""Tool names every API takes."""

ODD_NAMES = st.sampled_from(("server:tool", "a.b", "with space", "天気", "x" * 80, "dash-name", "9lives", "f"))

ODD_IDS = st.sampled_from(
    ("functions.Bash:0", "call|x", "x" * 80, "id with space", "идентификатор", "toolu_01A", "dgm_0123456789ab_0", "1")
)

DATA: SearchStrategy[str] = st.binary(min_size=1, max_size=9).map(lambda raw: base64.b64encode(raw).decode())
COUNTS = st.integers(0, 10**6)


def _maybe(strategy: SearchStrategy[Any]) -> SearchStrategy[Any]:
    return st.none() | strategy


def _some(strategy: SearchStrategy[Any], *, least: int = 0, most: int = 2) -> SearchStrategy[tuple[Any, ...]]:
    return st.lists(strategy, min_size=least, max_size=most).map(tuple)


def _one_in(count: int) -> SearchStrategy[bool]:
    return st.sampled_from((False,) * (count - 1) + (True,))


_RARELY = _one_in(8)

# ── JSON ──────────────────────────────────────────────────────────────────────────────────────────────────────

_NUMBERS = st.sampled_from((0, 1, -1, 2**53 + 1, 10**30, 1.0, 0.5, -2.25, 1e-7, 1e22)) | st.integers(-(2**70), 2**70)
JSON_SCALARS: SearchStrategy[Any] = st.none() | st.booleans() | _NUMBERS | ANY_TEXT
_FLAT: SearchStrategy[Any] = st.one_of(
    st.lists(JSON_SCALARS, max_size=2), st.dictionaries(ANY_TEXT, JSON_SCALARS, max_size=2)
)
JSON_VALUES: SearchStrategy[Any] = st.one_of(
    JSON_SCALARS, _FLAT, st.lists(_FLAT, max_size=2), st.dictionaries(ANY_TEXT, _FLAT, max_size=2)
)
JSON_OBJECTS: SearchStrategy[dict[str, Any]] = st.dictionaries(WORDS, JSON_VALUES, max_size=2)

EXACT_OBJECTS: SearchStrategy[Raw] = st.sampled_from(
    (b'{"a": 1.0,  "b":1e400}', b'{"a":1,"a":2}', b"{ }", b'{"n":123456789012345678901234567890}', b'{"u":"\\u00e9"}')
).map(Raw)
"""Objects as a body may spell them: spaces, repeated keys, numbers beyond a double."""

ARGUMENTS: SearchStrategy[Any] = JSON_OBJECTS | EXACT_OBJECTS

BROKEN_TEXTS = st.sampled_from(
    ('{"city": "Par', '{"a":1}{"b":2}', "city=Paris", "[1,2]", '"text"', "42", "true", '{"a":NaN}', "{'a':1}", "}{")
)
"""Arguments that models write and that are not a JSON object."""

_LEAF_SCHEMAS = (
    {"type": "string"},
    {"type": "string", "description": "a city", "enum": ["Paris", "Oslo"]},
    {"type": "integer", "minimum": 1},
    {"type": "boolean"},
    {"type": "array", "items": {"type": "string"}},
    {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]},
)


def _object_schema(properties: dict[str, Any]) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties}
    return {**schema, "required": sorted(properties)[:1]} if properties else schema


SCHEMAS: SearchStrategy[dict[str, Any]] = st.dictionaries(
    st.sampled_from(("city", "days", "unit")), st.sampled_from(_LEAF_SCHEMAS), max_size=2
).map(_object_schema)
"""Parameters of ordinary tools: an object with typed properties."""


def _private(family: str, key: str, text: str) -> ir.Metadata:
    return {family: {key: Raw(encode_json(text))}}


METADATA: SearchStrategy[ir.Metadata | None] = st.one_of(
    st.none(),
    st.none(),
    st.builds(_private, st.sampled_from(FAMILIES), st.sampled_from(("x_vendor", "x_trace")), WORDS),
)
"""Wire keys of a vendor that we do not model, under its family's name."""

# What OpenAI encrypts is a Fernet token: 0x80 first, and then only characters that all base64 alphabets share.
_SECRETS = st.binary(min_size=12, max_size=18).map(
    lambda raw: base64.b64encode(b"\x80\x00\x00\x00\x00" + raw.hex().encode()).decode()
)
SIGNATURES: SearchStrategy[ir.Signature] = st.builds(ir.Signature, st.sampled_from(FAMILIES), _SECRETS)
CACHES = st.sampled_from((None, None, None, ir.Cache(), ir.Cache("1h"), ir.Cache("5m")))

# ── parts ─────────────────────────────────────────────────────────────────────────────────────────────────────

_CITATIONS = st.builds(
    ir.Citation,
    url=st.sampled_from(("https://example.org/a", "https://example.org/b")),
    title=WORDS,
    cited_text=_maybe(WORDS),
)
PLAIN_TEXTS: SearchStrategy[ir.Text] = st.builds(ir.Text, WORDS)
TEXTS: SearchStrategy[ir.Text] = PLAIN_TEXTS | st.builds(ir.Text, WORDS, cache=CACHES)
CITED_TEXTS: SearchStrategy[ir.Text] = PLAIN_TEXTS | st.builds(ir.Text, WORDS, _some(_CITATIONS))

_DETAILS = st.sampled_from((None, None, "low", "high"))
IMAGES: SearchStrategy[ir.Image] = st.one_of(
    st.builds(ir.Image, st.sampled_from(("image/png", "image/jpeg")), DATA, detail=_DETAILS),
    st.builds(ir.Image, url=st.just("https://example.org/picture.png"), detail=_DETAILS),
    st.just(ir.Image(file_id="file_abc")),
)
_TITLES = st.sampled_from((None, "report.pdf"))
DOCUMENTS: SearchStrategy[ir.Document] = st.one_of(
    st.builds(ir.Document, st.just("application/pdf"), DATA, title=_TITLES),
    st.builds(ir.Document, url=st.just("https://example.org/report.pdf"), title=_TITLES),
    st.builds(ir.Document, file_id=st.just("file_abc"), title=_TITLES),
    st.builds(ir.Document, st.just("text/plain"), text=WORDS, title=_TITLES),
)
AUDIOS: SearchStrategy[ir.Audio] = st.builds(ir.Audio, st.sampled_from(("audio/wav", "audio/mpeg")), DATA)


def _opaque(origin: str, text: str) -> ir.Opaque:
    return ir.Opaque(origin, "future_block", {"type": "future_block", "futureBlock": {"text": text}})


SEARCH_RESULTS: SearchStrategy[ir.SearchResult] = st.builds(
    ir.SearchResult,
    st.sampled_from(("https://example.org/a", "kb://1")),
    WORDS,
    _some(WORDS, least=1),
    _maybe(st.booleans()),
    CACHES,
)
OPAQUES: SearchStrategy[ir.Opaque] = st.builds(_opaque, st.sampled_from(FAMILIES), WORDS)
REASONINGS: SearchStrategy[ir.Reasoning] = st.one_of(
    st.builds(ir.Reasoning, WORDS),
    st.builds(ir.Reasoning, st.just("") | WORDS, SIGNATURES),
    SIGNATURES.map(lambda signature: ir.Reasoning(signature=signature, redacted=True)),
)


def _spelled_call(name: str, text: str) -> ir.ToolCall:
    return ir.ToolCall("", name, read_arguments(text), text)


_SPELLINGS = st.sampled_from(('{"city":"Paris"}', '{ "city" : "Paris" }', "{}", ""))
CALLS: SearchStrategy[ir.ToolCall] = st.one_of(
    st.builds(lambda name, value: ir.ToolCall("", name, value), NAMES, ARGUMENTS),
    st.builds(_spelled_call, NAMES, _SPELLINGS),
    st.builds(_spelled_call, NAMES, BROKEN_TEXTS),
    st.builds(lambda name, signature: ir.ToolCall("", name, {"city": "Paris"}, signature=signature), NAMES, SIGNATURES),
)
"""Calls with an argument object, exact text, text that is not JSON, and a signature. Their id is set later."""

_PIECES = _some(PLAIN_TEXTS | IMAGES, least=1)
RESULTS: SearchStrategy[ir.ToolResult] = st.one_of(
    st.builds(lambda value: ir.ToolResult("", "", "text", value), ANY_TEXT),
    st.builds(lambda value: ir.ToolResult("", "", "data", value), JSON_VALUES),
    st.builds(lambda value: ir.ToolResult("", "", "error", value), WORDS | JSON_OBJECTS),
    st.builds(lambda parts: ir.ToolResult("", "", "multimodal", None, parts), _PIECES),
    st.builds(lambda parts: ir.ToolResult("", "", "error", None, parts), _PIECES),
    st.builds(lambda mark: ir.ToolResult("", "", "text", "22", cache=mark), CACHES),
)
"""Results of every kind. The call that they answer is set later."""


def _answer(call: ir.ToolCall, result: ir.ToolResult) -> ir.ToolResult:
    return structs.replace(result, tool_call_id=call.id, name=call.name)


def _anthropic_search(query: str) -> tuple[Any, ...]:
    call = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": query}}
    answer = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    return (
        ir.ServerToolCall("srvtoolu_1", "web_search", "anthropic", call),
        ir.ServerToolResult("srvtoolu_1", "web_search", "anthropic", answer),
    )


def _google_code(code: str) -> tuple[Any, ...]:
    call = {"executableCode": {"language": "PYTHON", "code": code}}
    outcome = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}
    return (
        ir.ServerToolCall("", "code_execution", "google", call),
        ir.ServerToolResult("", "code_execution", "google", outcome),
    )


SERVER_PAIRS: SearchStrategy[tuple[Any, ...]] = WORDS.map(_anthropic_search) | WORDS.map(_google_code)
"""A call that a provider ran itself, with its result."""

# ── messages ──────────────────────────────────────────────────────────────────────────────────────────────────

SYSTEM_MESSAGES: SearchStrategy[ir.Message] = st.builds(ir.Message, st.just("system"), WORDS | _some(TEXTS, least=1))
USER_MESSAGES: SearchStrategy[ir.Message] = st.one_of(
    st.builds(ir.Message, st.just("user"), WORDS),
    st.builds(
        ir.Message,
        st.just("user"),
        _some(st.one_of(TEXTS, IMAGES, DOCUMENTS, AUDIOS, SEARCH_RESULTS, OPAQUES), least=1),
        metadata=METADATA,
    ),
)

_CALL_LISTS = st.lists(CALLS, max_size=2)
_THOUGHTS = st.lists(REASONINGS, max_size=2)
_SPEECH = st.lists(CITED_TEXTS, max_size=2)
_REFUSALS = st.builds(ir.Refusal, WORDS)
_CALLS_FIRST = _one_in(4)


_A_FAMILY = st.sampled_from(FAMILIES)


def _minted(part: Any, family: str) -> Any:
    """All signatures of an answer come from one vendor."""
    if part.signature is None:
        return part
    return structs.replace(part, signature=structs.replace(part.signature, family=family))


@st.composite
def answers(draw: DrawFn, numbers: Iterable[int] = (1, 2), prefix: str = "call_") -> ir.Message:
    """An assistant message: reasoning, text, provider-run tools, refusals and calls, not always in that order."""
    ids = iter(numbers)
    family = draw(_A_FAMILY)
    tools: list[Any] = [_minted(structs.replace(call, id=f"{prefix}{next(ids)}"), family) for call in draw(_CALL_LISTS)]
    parts: list[Any] = [*(_minted(thought, family) for thought in draw(_THOUGHTS)), *draw(_SPEECH)]
    if draw(_RARELY):
        parts += draw(SERVER_PAIRS)
    if not tools and draw(_RARELY):
        parts.append(draw(_REFUSALS))
    calls_first: bool = draw(_CALLS_FIRST)
    if tools and parts and calls_first:
        parts = [*tools[:1], *parts, *tools[1:]]
    else:
        parts += tools
    if not parts:
        return ir.Message("assistant", draw(WORDS))
    return ir.Message("assistant", tuple(parts), metadata=draw(METADATA))


_PREFIXES = st.sampled_from(("call_", "toolu_", "c"))
_LEADING = st.lists(SYSTEM_MESSAGES, max_size=1)
_ROUNDS = st.sampled_from((0, 1, 1, 2))


@st.composite
def conversations(draw: DrawFn) -> list[ir.Message]:
    """Turns as an agent has them: every call answered, in order, by the next message."""
    numbers = iter(range(1, 1000))
    prefix = draw(_PREFIXES)
    messages = [*draw(_LEADING), draw(USER_MESSAGES)]
    for _ in range(draw(_ROUNDS)):
        message = draw(answers(numbers, prefix))
        messages.append(message)
        if message.tool_calls:
            messages.append(ir.Message("tool", tuple(_answer(call, draw(RESULTS)) for call in message.tool_calls)))
        if not message.tool_calls or draw(st.booleans()):
            messages.append(draw(USER_MESSAGES))
    return messages


# ── accidents ─────────────────────────────────────────────────────────────────────────────────────────────────


def _pick(draw: DrawFn, messages: list[ir.Message], *roles: str) -> int | None:
    places = [index for index, message in enumerate(messages) if message.role in roles and message.parts]
    return places[draw(st.integers(0, len(places) - 1))] if places else None


def _place(draw: DrawFn, messages: list[ir.Message]) -> int:
    return draw(st.integers(0, len(messages)))


def _lose_result(draw: DrawFn, messages: list[ir.Message]) -> None:
    if (index := _pick(draw, messages, "tool")) is not None:
        kept = messages[index].parts[1:]
        messages[index : index + 1] = [ir.Message("tool", kept)] if kept else []


def _repeat_result(draw: DrawFn, messages: list[ir.Message]) -> None:
    if (index := _pick(draw, messages, "tool")) is not None:
        again = structs.replace(messages[index].tool_results[0], kind="text", value="second", parts=())
        messages.insert(index + 1, ir.Message("tool", (again,)))


def _swap_results(draw: DrawFn, messages: list[ir.Message]) -> None:
    if (index := _pick(draw, messages, "tool")) is not None:
        messages[index] = ir.Message("tool", messages[index].parts[::-1])


def _scatter_results(draw: DrawFn, messages: list[ir.Message]) -> None:
    if (index := _pick(draw, messages, "tool")) is not None:
        messages[index : index + 1] = [ir.Message("tool", (part,)) for part in messages[index].parts]


def _delay_results(draw: DrawFn, messages: list[ir.Message]) -> None:
    if (index := _pick(draw, messages, "tool")) is not None:
        messages.insert(index, draw(USER_MESSAGES))


def _stray_result(draw: DrawFn, messages: list[ir.Message]) -> None:
    nobody = ir.ToolCall(draw(st.sampled_from(("call_lost", ""))), draw(NAMES), {})
    messages.insert(_place(draw, messages), ir.Message("tool", (_answer(nobody, draw(RESULTS)),)))


def _odd_id(draw: DrawFn, messages: list[ir.Message]) -> None:
    """Puts the same odd id on a call and its result; possibly one that another call has too."""
    if (index := _pick(draw, messages, "tool")) is None:
        return
    old = messages[index].tool_results[0].tool_call_id
    taken = [call.id for message in messages for call in message.tool_calls] or ["x"]
    new = draw(ODD_IDS) if draw(st.booleans()) else taken[-1]
    for place, message in enumerate(messages):
        messages[place] = structs.replace(message, parts=tuple(_with_id(part, old, new) for part in message.parts))


def _with_id(part: Any, old: str, new: str) -> Any:
    if isinstance(part, ir.ToolCall) and part.id == old:
        return structs.replace(part, id=new)
    if isinstance(part, ir.ToolResult) and part.tool_call_id == old:
        return structs.replace(part, tool_call_id=new)
    return part


def _odd_name(draw: DrawFn, messages: list[ir.Message]) -> None:
    odd = draw(ODD_NAMES)
    for place, message in enumerate(messages):
        messages[place] = structs.replace(message, parts=tuple(_with_name(part, odd) for part in message.parts))


def _with_name(part: Any, name: str) -> Any:
    return structs.replace(part, name=name) if isinstance(part, ir.ToolCall | ir.ToolResult) else part


def _blank_text(draw: DrawFn, messages: list[ir.Message]) -> None:
    if (index := _pick(draw, messages, "system", "user", "assistant")) is not None:
        blank = ir.Text(draw(BLANKS))
        content: tuple[Any, ...] = (blank,) if draw(st.booleans()) else (*messages[index].parts, blank)
        messages[index] = structs.replace(messages[index], parts=content)


def _system_in_the_middle(draw: DrawFn, messages: list[ir.Message]) -> None:
    messages.insert(_place(draw, messages), draw(SYSTEM_MESSAGES))


def _assistant_first(draw: DrawFn, messages: list[ir.Message]) -> None:
    messages.insert(0, ir.Message("assistant", draw(WORDS)))


def _assistant_last(draw: DrawFn, messages: list[ir.Message]) -> None:
    messages.append(ir.Message("assistant", draw(WORDS | st.just("prefill "))))


def _empty_message(draw: DrawFn, messages: list[ir.Message]) -> None:
    role: Any = draw(st.sampled_from(("user", "assistant")))
    messages.insert(_place(draw, messages), ir.Message(role, ()))


def _same_role_twice(draw: DrawFn, messages: list[ir.Message]) -> None:
    if (index := _pick(draw, messages, "user", "system")) is not None:
        messages.insert(index, messages[index])


def _no_user(draw: DrawFn, messages: list[ir.Message]) -> None:
    del draw
    messages[:] = [message for message in messages if message.role != "user"]


ACCIDENTS: tuple[Callable[[DrawFn, list[ir.Message]], None], ...] = (
    _lose_result,
    _repeat_result,
    _swap_results,
    _scatter_results,
    _delay_results,
    _stray_result,
    _odd_id,
    _odd_name,
    _blank_text,
    _system_in_the_middle,
    _assistant_first,
    _assistant_last,
    _empty_message,
    _same_role_twice,
    _no_user,
)
_BAD_DAYS = st.lists(st.sampled_from(ACCIDENTS), min_size=1, max_size=2)
_CONVERSATIONS = conversations()


@st.composite
def ugly_conversations(draw: DrawFn) -> list[ir.Message]:
    messages = draw(_CONVERSATIONS)
    for accident in draw(_BAD_DAYS):
        accident(draw, messages)
    return messages


# ── tools and settings ────────────────────────────────────────────────────────────────────────────────────────

TOOL_DEFINITIONS: SearchStrategy[ir.ToolDefinition] = st.builds(
    ir.ToolDefinition,
    NAMES,
    _maybe(WORDS),
    _maybe(SCHEMAS),
    st.sampled_from((None, None, False)),
    CACHES,
    METADATA,
)
CUSTOM_TOOLS: SearchStrategy[ir.CustomTool] = st.builds(
    ir.CustomTool, st.sampled_from(("free_sql", "free_patch")), _maybe(WORDS)
)
PROVIDER_TOOLS: SearchStrategy[ir.ProviderTool] = st.sampled_from(
    (
        ir.ProviderTool(
            "web_search", "anthropic", {"type": "web_search_20250305", "name": "web_search", "max_uses": 3}
        ),
        ir.ProviderTool("googleSearch", "google", {"googleSearch": {}}),
        ir.ProviderTool("codeExecution", "google", {"codeExecution": {}}),
    )
)
_FURTHER_TOOLS = st.lists(TOOL_DEFINITIONS | CUSTOM_TOOLS, max_size=2)


@st.composite
def _toolboxes(draw: DrawFn, called: list[str]) -> tuple[ir.AnyTool, ...]:
    """Definitions of all tools that the history calls, and possibly more; names are unique."""
    tools: dict[str, ir.AnyTool] = {}
    for name in called:
        if name not in tools:
            tools[name] = structs.replace(draw(TOOL_DEFINITIONS), name=name)
    for tool in draw(_FURTHER_TOOLS):
        tools.setdefault(tool.name, tool)
    if draw(_RARELY):
        provided = draw(PROVIDER_TOOLS)
        tools.setdefault(provided.name, provided)
    return tuple(tools.values())


_MODES = st.sampled_from((None, "auto", "none", "required", "one", "some"))


@st.composite
def _choices(draw: DrawFn, tools: tuple[ir.AnyTool, ...]) -> ir.ToolChoice | None:
    mode = draw(_MODES)
    own = tuple(tool.name for tool in tools if not isinstance(tool, ir.ProviderTool))
    if mode is None:
        return None
    if mode in {"one", "some"}:
        chosen = own[:1] if mode == "one" else own[:2]
        return ir.ToolChoice("auto" if mode == "some" and draw(st.booleans()) else "required", chosen) if own else None
    return ir.ToolChoice(mode)  # type: ignore[arg-type]


REASONING_SETTINGS: SearchStrategy[ir.ReasoningSettings] = st.one_of(
    st.builds(ir.ReasoningSettings, st.just("on"), budget_tokens=st.sampled_from((1024, 2048, 8000))),
    st.builds(ir.ReasoningSettings, effort=st.sampled_from(("low", "medium", "high"))),
    st.just(ir.ReasoningSettings("off")),
    st.builds(ir.ReasoningSettings, st.just("adaptive"), visible=st.sampled_from((None, True, False))),
)
_ANSWER_SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
STRUCTURED_OUTPUTS: SearchStrategy[ir.StructuredOutput] = st.one_of(
    st.builds(
        ir.StructuredOutput, st.just("schema"), st.just(_ANSWER_SCHEMA), _maybe(NAMES), _maybe(WORDS), st.booleans()
    ),
    st.just(ir.StructuredOutput("json")),
)
_SETTINGS: dict[str, SearchStrategy[Any]] = {
    "max_output_tokens": st.sampled_from((10000, 16384)),
    "temperature": st.sampled_from((0.0, 0.5, 1.0)),
    "top_p": st.sampled_from((0.5, 0.95)),
    "top_k": st.sampled_from((1, 40)),
    "stop": _some(WORDS, least=1, most=3),
    "seed": st.integers(0, 2**31 - 1),
    "presence_penalty": st.sampled_from((-1.0, 0.5)),
    "frequency_penalty": st.sampled_from((-1.0, 0.5)),
    "candidates": st.sampled_from((1, 2)),
    "reasoning": REASONING_SETTINGS,
    "output": STRUCTURED_OUTPUTS,
    "stream": st.booleans(),
    "user": NAMES,
    "cache": st.sampled_from((ir.Cache(), ir.Cache("1h"))),
    "verbosity": st.sampled_from(("low", "medium", "high")),
    "labels": st.sampled_from(({"team": "a"}, {"Team": "x" * 300, "b": ""})),
    "safety_identifier": st.sampled_from(("u-1", "u" * 100)),
    "service_tier": st.sampled_from(("auto", "default", "flex", "priority")),
    "store": st.booleans(),
    "prompt_cache_key": NAMES,
    "prompt_cache_options": st.sampled_from(({"mode": "explicit"}, {"mode": "implicit", "ttl": "30m"})),
    "logprobs": st.booleans(),
    "modalities": st.sampled_from((("text",), ("text", "audio"), ("image",))),
}
_SETTING_NAMES = st.lists(st.sampled_from(sorted(_SETTINGS)), max_size=3, unique=True)

# ── requests ──────────────────────────────────────────────────────────────────────────────────────────────────

_PARALLEL = st.sampled_from((None, None, True, False))


def _distinct_searches(messages: list[ir.Message]) -> list[ir.Message]:
    """Gives each call of a provider's tool an id of its own: no API uses an id twice."""
    searches = iter(range(1, 1_000))
    number = 0

    def renamed(part: Any) -> Any:
        nonlocal number
        number = next(searches) if isinstance(part, ir.ServerToolCall) else number
        if not isinstance(part, ir.ServerToolCall | ir.ServerToolResult) or part.origin != "anthropic":
            return part
        text = msgspec.json.encode(part).replace(b"srvtoolu_1", f"srvtoolu_{number}".encode())
        return msgspec.json.decode(text, type=type(part))

    return [
        structs.replace(message, parts=tuple(renamed(part) for part in message.parts))
        if any(isinstance(part, ir.ServerToolCall) for part in message.parts)
        else message
        for message in messages
    ]


@st.composite
def _requests(draw: DrawFn, of: SearchStrategy[list[ir.Message]], *, odd: bool = False) -> ir.Request:
    messages = _distinct_searches(draw(of))
    called = [call.name for message in messages for call in message.tool_calls]
    tools = () if odd and draw(_RARELY) else draw(_toolboxes(called))
    return ir.Request(
        "some-model",
        tuple(messages),
        tools,
        draw(_choices(tools)) if tools or odd else None,
        draw(_PARALLEL) if tools or odd else None,
        metadata=draw(METADATA),
        **{name: draw(_SETTINGS[name]) for name in draw(_SETTING_NAMES)},
    )


REQUESTS: SearchStrategy[ir.Request] = _requests(conversations())
"""Requests as users send them."""

UGLY_REQUESTS: SearchStrategy[ir.Request] = _requests(ugly_conversations(), odd=True)
"""Damaged requests: lost, repeated or misplaced results, odd ids and names, blanks, stray system text."""

ANY_REQUESTS: SearchStrategy[ir.Request] = REQUESTS | UGLY_REQUESTS


N = TypeVar("N", bound=Value)


def public(request: ir.Request, family: str) -> ir.Request:
    """The request without invented keys and blocks of this family, because its own API would refuse them."""
    messages = tuple(_public_message(message, family) for message in request.messages)
    tools = tuple(_public_node(tool, family) for tool in request.tools)
    changed = structs.replace(request, messages=messages, tools=tools)
    return _public_node(changed, family)


def _public_message(message: ir.Message, family: str) -> ir.Message:
    known = tuple(
        ir.Text(part.kind) if isinstance(part, ir.Opaque) and part.origin == family else part for part in message.parts
    )
    changed = message if known == message.parts else structs.replace(message, parts=known)
    return _public_node(changed, family)


def _public_node(node: N, family: str) -> N:
    mine = family in (getattr(node, "metadata", None) or {})
    return structs.replace(node, metadata=None) if mine else node


_ANY_PART: SearchStrategy[Any] = st.one_of(
    TEXTS, CITED_TEXTS, IMAGES, DOCUMENTS, AUDIOS, OPAQUES, REASONINGS, _REFUSALS
)
_ANY_ROLE = st.sampled_from(("system", "user", "assistant"))
_WILD_MESSAGES: SearchStrategy[ir.Message] = st.one_of(
    st.builds(ir.Message, _ANY_ROLE, _some(_ANY_PART, most=3)),
    st.builds(ir.Message, st.just("assistant"), _some(CALLS | _ANY_PART)),
    st.builds(ir.Message, st.just("tool"), _some(RESULTS)),
)
WILD_REQUESTS: SearchStrategy[ir.Request] = _requests(st.lists(_WILD_MESSAGES, min_size=1, max_size=4), odd=True)
"""Any part in any message, calls and results at random: no client builds such requests, but they must not crash."""

# ── answers ───────────────────────────────────────────────────────────────────────────────────────────────────


@st.composite
def _usages(draw: DrawFn) -> ir.Usage:
    fresh, output = draw(COUNTS), draw(COUNTS)
    cached, written = draw(_MAYBE_COUNTS), draw(_MAYBE_COUNTS)
    reasoning = draw(st.none() | st.integers(0, output))
    return ir.Usage(fresh + (cached or 0) + (written or 0), output, cached, written, reasoning)


_MAYBE_COUNTS = st.none() | COUNTS
USAGES: SearchStrategy[ir.Usage] = _usages()
"""Counts that add up: cached and written tokens are part of the input, reasoning is part of the output."""

_REASONS: SearchStrategy[ir.FinishReason] = st.sampled_from(("stop", "stop", "stop", "length", "content_filter"))
_ANSWERS = answers()
_ANSWER_IDS = st.sampled_from(("resp_1", "msg_é", "x"))
_CREATED = st.sampled_from((None, 1700000000))


@st.composite
def _completions(draw: DrawFn) -> ir.Completion:
    message = structs.replace(draw(_ANSWERS), metadata=None)
    reason: ir.FinishReason = draw(_REASONS)
    if message.tool_calls and reason == "stop":
        reason = "tool_calls"
    elif message.refusal is not None:
        reason = "refusal"
    return ir.Completion((message,), ir.Finish(reason), draw(USAGES), draw(_ANSWER_IDS), "some-model", draw(_CREATED))


COMPLETIONS: SearchStrategy[ir.Completion] = _completions()

# ── failures ──────────────────────────────────────────────────────────────────────────────────────────────────

FAILURE_KINDS: tuple[ir.FailureKind, ...] = (
    "invalid_request",
    "authentication",
    "billing",
    "permission",
    "not_found",
    "conflict",
    "too_large",
    "rate_limit",
    "server",
    "overloaded",
    "timeout",
    "cancelled",
)
FAILURES: SearchStrategy[ir.Failure] = st.builds(
    ir.Failure,
    st.sampled_from(FAILURE_KINDS),
    WORDS,
    retry_after=st.sampled_from((None, 0.5, 30.0)),
    request_id=st.sampled_from((None, "req_1")),
    parameter=st.sampled_from((None, "messages")),
)
