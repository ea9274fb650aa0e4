"""The measured conversations, independent of any wire format; bodies.py writes them in each format.

Seeds are fixed: the same code gives the same bytes on every machine and Python version.
"""

from dataclasses import dataclass
from typing import TypeVar

from benchmarks.tools import AGENT_TOOLS, WEATHER, Tool


@dataclass(frozen=True, slots=True)
class Call:
    name: str
    arguments: dict[str, object]


@dataclass(frozen=True, slots=True)
class User:
    text: str


@dataclass(frozen=True, slots=True)
class Assistant:
    text: str | None
    calls: tuple[Call, ...] = ()


@dataclass(frozen=True, slots=True)
class Results:
    """Results of the previous assistant turn, in call order: text, or an object (a JSON result)."""

    values: tuple[str | dict[str, object], ...]


Turn = User | Assistant | Results
_Choice = TypeVar("_Choice")


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    system: str | None = None
    turns: tuple[Turn, ...]
    tools: tuple[Tool, ...] = ()


def small() -> Conversation:
    """Three messages, one tool: a question, the call, its result."""
    return Conversation(
        turns=(
            User("What is the weather in Tokyo, and do I need an umbrella tomorrow?"),
            Assistant(None, (Call("get_weather", {"location": "Tokyo, Japan", "unit": "celsius", "days": 2}),)),
            Results(({"temperature": 22, "condition": "sunny", "humidity": 0.41, "tomorrow": "light rain"},)),
        ),
        tools=(WEATHER,),
    )


def history() -> Conversation:
    """An agent at work: 200 messages as OpenAI Chat counts them, where each result is a message of its own."""
    dice = _Dice(19)  # a seed that ends after exactly 200 messages
    turns: list[Turn] = []
    left = 200 - 1  # the system message
    while left > 0:
        for turn in _task(dice):
            turns.append(turn)
            left -= len(turn.values) if isinstance(turn, Results) else 1
            # A history may end after any complete turn except between calls and their results.
            if left <= 0 and not (isinstance(turn, Assistant) and turn.calls):
                break
    return Conversation(system=_SYSTEM, turns=tuple(turns), tools=AGENT_TOOLS)


def big_text(characters: int = 2_000_000) -> Conversation:
    """One question about one very long text: prose, code and quotations, broken into lines."""
    dice = _Dice(2)
    pieces: list[str] = []
    length = 0
    while length < characters:
        piece = dice.pick((_paragraph, _code))(dice)
        pieces.append(piece)
        length += len(piece) + 2
    text = "\n\n".join(pieces)[:characters]
    return Conversation(turns=(User(f"Summarise this in five sentences.\n\n{text}"),))


ANSWER = Assistant(
    'The log says "connection reset" three times. I will look at the configuration before I change anything.',
    (Call("read_file", {"path": "src/server/config.py", "offset": 120, "limit": 80}),),
)


def streamed() -> Assistant:
    """An answer that takes a while: a long text, and three parallel calls with long arguments."""
    dice = _Dice(3)
    text = "\n\n".join(_paragraph(dice) for _ in range(24))
    edits = [_edit(dice)[0] for _ in range(3)]
    return Assistant(text, tuple(edits))


def assistant_turn(pieces: int) -> Assistant:
    """An answer without calls, of about seven characters for each piece it will be cut into."""
    dice = _Dice(4)
    length = 7 * pieces
    words: list[str] = []
    while length > 0:
        words.append(_sentence(dice))
        length -= len(words[-1]) + 1
    return Assistant(" ".join(words))


class _Dice:
    """A linear congruential generator: the same numbers everywhere, unlike the helpers of `random`."""

    def __init__(self, seed: int) -> None:
        self._state = seed

    def below(self, limit: int) -> int:
        self._state = (self._state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        return (self._state >> 33) % limit

    def pick(self, choices: tuple[_Choice, ...]) -> _Choice:
        return choices[self.below(len(choices))]


_SYSTEM = """You are a careful engineer who works in the repository of the user.
Read before you write. Say what you are going to do in one sentence, then do it with the tools.
Never invent the output of a command. When a test fails, quote the first failing line.
Independent calls go into one turn. When you are done, summarise what changed and what is left."""

_VOCABULARY = """
the request server handler returns value before cache after timeout because client message index when buffer should
retry connection of a list for each token in order and then result but only if path or schema changes worker queue reads
state from disk while another thread holds lock so tests fail under load with error
"""
_WORDS = tuple(_VOCABULARY.split())
_NAMES = ("config", "session", "router", "parser", "encoder", "storage", "metrics", "scheduler", "pool", "stream")
_BEYOND_ASCII = ("naïve", "Jürgen → Zoë", "東京", "≤ 3 ms", "“quoted” — twice", "👍")
_FOLDERS = ("src/server", "src/client", "tests/unit", "tests/integration", "scripts", "docs/guides")


def _sentence(dice: _Dice) -> str:
    words = [dice.pick(_WORDS) for _ in range(7 + dice.below(12))]
    if dice.below(4) == 0:
        words[2] = f'"{words[2]} {dice.pick(_NAMES)}"'
    return " ".join(words).capitalize() + "."


def _remark(dice: _Dice) -> str:
    """Outside the very long text, people write names and signs beyond ASCII."""
    return _sentence(dice) if dice.below(6) else f"{_sentence(dice)} ({dice.pick(_BEYOND_ASCII)})"


def _paragraph(dice: _Dice) -> str:
    sentences = [_sentence(dice) for _ in range(2 + dice.below(4))]
    return "\n".join(" ".join(sentences[start : start + 2]) for start in range(0, len(sentences), 2))


def _path(dice: _Dice) -> str:
    return f"{dice.pick(_FOLDERS)}/{dice.pick(_NAMES)}.py"


def _code(dice: _Dice) -> str:
    lines: list[str] = []
    for _ in range(1 + dice.below(3)):
        name, other = dice.pick(_NAMES), dice.pick(_NAMES)
        lines += [
            f"def {dice.pick(_WORDS)}_{name}(self, {other}: str, *, limit: int = {dice.below(500)}) -> dict[str, int]:",
            f'    """{_sentence(dice)}"""',
            f"    if {other} not in self._{name}:  # {dice.pick(_WORDS)} {dice.pick(_WORDS)}",
            f'        raise KeyError(f"no {name} for {{{other}!r}}")',
            f"    return {{key: len(value) for key, value in self._{name}[{other}].items() if len(value) < limit}}",
            "",
        ]
    return "\n".join(lines)


def _numbered_lines(dice: _Dice) -> str:
    first = dice.below(400)
    lines = f"{_code(dice)}\n{_code(dice)}".split("\n")
    return "\n".join(f"{number:6d}\t{line}" for number, line in enumerate(lines, first))


def _command_output(dice: _Dice) -> str:
    return "\n".join(
        f"{_path(dice)}:{dice.below(900)}: {dice.pick(('warning', 'error', 'note'))}: {_sentence(dice)}"
        for _ in range(2 + dice.below(12))
    )


def _rows(dice: _Dice) -> dict[str, object]:
    rows: list[dict[str, object]] = [
        {
            "id": 10_000 + dice.below(90_000),
            "name": f"{dice.pick(_NAMES)}-{dice.below(100)}",
            "active": dice.below(2) == 0,
            "share": dice.below(10_000) / 10_000,
            "owner": {"login": dice.pick(_WORDS), "team": None if dice.below(3) == 0 else dice.pick(_NAMES)},
            "tags": [dice.pick(_NAMES) for _ in range(dice.below(4))],
        }
        for _ in range(2 + dice.below(9))
    ]
    return {"rows": rows, "count": len(rows), "truncated": False}


def _read(dice: _Dice) -> tuple[Call, str | dict[str, object]]:
    return Call("read_file", {"path": _path(dice), "offset": dice.below(400)}), _numbered_lines(dice)


def _search(dice: _Dice) -> tuple[Call, str | dict[str, object]]:
    arguments: dict[str, object] = {"pattern": rf"def {dice.pick(_WORDS)}_\w+\(", "include": ["*.py", "*.pyi"]}
    return Call("search_text", arguments), _command_output(dice)


def _run(dice: _Dice) -> tuple[Call, str | dict[str, object]]:
    command = f'python -m pytest {_path(dice)} -q -k "{dice.pick(_NAMES)} and not slow"'
    return Call("run_command", {"command": command, "timeout_seconds": 90.5}), _command_output(dice)


def _query(dice: _Dice) -> tuple[Call, str | dict[str, object]]:
    filters = [{"column": "owner", "operator": "like", "value": f"{dice.pick(_WORDS)}%"}]
    return Call("query_database", {"table": dice.pick(_NAMES), "filters": filters, "limit": 20}), _rows(dice)


def _edit(dice: _Dice) -> tuple[Call, str | dict[str, object]]:
    edits = [{"old_text": _code(dice), "new_text": _code(dice)}]
    return Call("edit_file", {"path": _path(dice), "edits": edits}), {"changed": True, "edits": 1, "diff": _code(dice)}


_STEPS = (_read, _read, _search, _run, _query, _edit)


def _task(dice: _Dice) -> list[Turn]:
    """A question, some rounds of one to three calls with their results, and a closing answer."""
    turns: list[Turn] = [User(f"{_remark(dice)}\n{_paragraph(dice)}")]
    for _ in range(3 + dice.below(5)):
        steps = [dice.pick(_STEPS)(dice) for _ in range(dice.pick((1, 1, 1, 2, 3)))]
        text = _remark(dice) if dice.below(3) else None
        turns.append(Assistant(text, tuple(call for call, _ in steps)))
        turns.append(Results(tuple(value for _, value in steps)))
    turns.append(Assistant(_paragraph(dice)))
    return turns
