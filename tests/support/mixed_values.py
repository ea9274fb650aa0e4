"""Values that combine what the other samples have one at a time, drawn by chance and always the same.

A golden page of single changes does not notice code that matters only where two of them meet. `merged_requests` and
`merged_answers` join constructed values with each other. `grafted` puts into a body what another body of its format has
under the same key, or beside the same keys. `moved` changes the order of events.
"""

import copy
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from random import Random
from typing import Any

from msgspec import structs

import dragoman
from dragoman import ir


class Chance:
    """Draws by `random()` alone, whose results are the same in every version of Python."""

    def __init__(self, about: str) -> None:
        self._random = Random(about)  # noqa: S311 - samples, no secrets

    def number(self, below: int) -> int:
        return int(self._random.random() * below)

    def one(self, items: Any) -> Any:
        return items[self.number(len(items))]


# ── the intermediate format ───────────────────────────────────────────────────────────────────────────────────


def _joined(values: list[Any], lists: dict[str, Any]) -> dict[str, Any]:
    """The fields of all of them, the last that says something; `lists` are given."""
    joined: dict[str, Any] = {}
    for value in values:
        for name in value.__struct_fields__:
            found = getattr(value, name)
            if name == "metadata" and found:
                joined[name] = {**(joined.get(name) or {}), **found}
            elif name not in joined or (found is not None and found != ()):
                joined[name] = found
    return {**joined, **lists}


def merged_requests(
    pool: list[ir.Request], models: tuple[str | None, ...], count: int, about: str
) -> Iterator[ir.Request]:
    """Of two or three requests each: their messages and tools together, for one of the models."""
    chance = Chance(about)
    for number in range(count):
        chosen = [chance.one(pool) for _ in range(2 + number % 2)]
        tools = {(type(tool), tool.name): tool for request in chosen for tool in request.tools}
        messages = tuple(message for request in chosen for message in request.messages)
        lists = {"messages": messages, "tools": tuple(tools.values())}
        yield ir.Request(**_joined(chosen, {**lists, "model": chance.one(models)}))


def merged_answers(pool: list[ir.Completion], count: int, about: str) -> Iterator[ir.Completion]:
    """Of two or three answers each: the parts of their first messages in one."""
    chance = Chance(about)
    pool = [answer for answer in pool if answer.messages]
    for number in range(count):
        chosen = [chance.one(pool) for _ in range(2 + number % 2)]
        heads = [answer.messages[0] for answer in chosen]
        message = ir.Message(**_joined(heads, {"parts": tuple(part for head in heads for part in head.parts)}))
        usages = [answer.usage for answer in chosen if answer.usage is not None]
        usage = ir.Usage(**_joined(usages, {})) if usages else None
        yield ir.Completion(**_joined(chosen, {"messages": (message,), "usage": usage, "finishes": ()}))


_ITEMS = dragoman.decode_request(
    {
        "model": "m",
        "input": "hi",
        "tools": [
            {"type": "local_shell"},
            {"type": "apply_patch"},
            {"type": "shell"},
            {"type": "namespace", "name": "n", "tools": [{"type": "custom", "name": "b"}]},
        ],
    },
    "openai-responses",
)
"""Tools that the client runs and a vendor defines: for other providers they are functions."""


def asking(names: Iterable[str]) -> dict[str, ir.Request]:
    """Requests whose tools have these names, as every kind of tool or spelled otherwise, with and without reasoning."""
    message, names = (ir.Message("user", "hi"),), tuple(names)
    functions, custom = map(ir.ToolDefinition, names), map(ir.CustomTool, names)
    spelled = (ir.ToolDefinition(name.replace("_", ".").replace("l", "l ")) for name in names)
    items = [tool for tool in _ITEMS.tools if isinstance(tool, ir.ProviderTool) and tool.functions]
    provided = [
        structs.replace(tool, functions=(structs.replace(tool.functions[-1], name=name),))
        for number, name in enumerate(names)
        for tool in [items[number % len(items)]]
    ]
    return {
        "functions": ir.Request("m", message, tuple(functions), reasoning=ir.ReasoningSettings("on", visible=True)),
        "custom": ir.Request("m", message, tuple(custom), reasoning=ir.ReasoningSettings("off")),
        "spelled otherwise": ir.Request("m", message, tuple(spelled)),
        "provided": ir.Request("m", message, tuple(provided), reasoning=ir.ReasoningSettings("on", visible=False)),
    }


# ── bodies ────────────────────────────────────────────────────────────────────────────────────────────────────


class Vocabulary:
    """What the bodies of a format have under each key, and which keys occur together."""

    def __init__(self, bodies: Iterable[Any]) -> None:
        values: dict[str, dict[str, Any]] = defaultdict(dict)
        beside: dict[str, dict[str, None]] = defaultdict(dict)
        for body in bodies:
            for found in objects(body):
                for key, value in found.items():
                    values[key].setdefault(json.dumps(value), value)
                    beside[key] |= dict.fromkeys(found)
        self.values = {key: list(found.values()) for key, found in values.items()}
        self.beside = {key: list(found) for key, found in beside.items()}


def objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from objects(inner)


def grafted(body: Any, words: Vocabulary, count: int, about: str) -> Iterator[tuple[str, Any]]:
    """(what was done, the body): so many bodies with one to three grafts each."""
    chance = Chance(about)
    for number in range(count):
        changed, done = copy.deepcopy(body), []
        for _ in range(1 + number % 3):
            places = [one for one in objects(changed) if one and one.keys() & words.beside.keys()]
            if not places:
                break
            place = chance.one(places)
            known = [key for key in place if key in words.beside]
            key = chance.one(words.beside[chance.one(known)])
            place[key] = copy.deepcopy(chance.one(words.values[key]))
            done.append(key)
        yield f"{number} {' '.join(done)}", changed


def moved(events: list[Any]) -> Iterator[tuple[int, str, list[Any]]]:
    """(number of the event, what was done, the events): each after the next one, again at the end, or as the last."""
    for number, event in enumerate(events):
        if number + 1 < len(events):
            yield number, "later", [*events[:number], events[number + 1], event, *events[number + 2 :]]
            yield number, "last", events[: number + 1]
        yield number, "again at the end", [*events, event]
