"""The simulated model: which tools it takes, what it writes into them, what it makes of what comes back."""

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.sim import tokens
from dragoman.sim.conversation_view import Call, Choice, Prompt, Result, ThoughtPart, Tool, Turn
from dragoman.sim.model import respond
from dragoman.sim.regex_examples import matching_text
from dragoman.sim.schema_examples import Hints, arguments_for, instance_of
from tests.sim.validity import faults


def schema(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


TEXT = {"type": "string"}
UNIT = {"type": "string", "enum": ["celsius", "fahrenheit"]}
WEATHER = Tool("get_weather", "Current weather of a city", schema("city", city=TEXT, unit=UNIT))
TIME = Tool("get_time", "Local time", schema("zone", zone=TEXT))
MAIL = Tool(
    "send_email",
    "Send a message to somebody",
    schema("to", "subject", to={"type": "string", "format": "email"}, subject=TEXT),
)
SEARCH = Tool("search_flights", "Find flights", schema("cities", cities={"type": "array", "items": TEXT}))
ADD = Tool("add", "Add two numbers", schema("a", "b", a={"type": "number"}, b={"type": "integer"}))
TOOLS = (WEATHER, TIME, MAIL, SEARCH, ADD)


def prompt_of(text: str, *more: Turn, **settings: Any) -> Prompt:
    return Prompt("m", (Turn("user", text), *more), **{"tools": TOOLS, **settings})


def calls(text: str, **settings: Any) -> list[tuple[str, Any]]:
    return [(call.name, call.arguments) for call in respond(prompt_of(text, **settings)).calls]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What is the weather in Paris?", [("get_weather", {"city": "Paris"})]),
        (
            "What's the weather in Paris and in Oslo, in fahrenheit?",
            [
                ("get_weather", {"city": "Paris", "unit": "fahrenheit"}),
                ("get_weather", {"city": "Oslo", "unit": "fahrenheit"}),
            ],
        ),
        (
            "Weather in New York, São Paulo and Rome please",
            [("get_weather", {"city": city}) for city in ("New York", "São Paulo", "Rome")],
        ),
        (
            "Tell me the weather in Paris and the time in Tokyo",
            [("get_weather", {"city": "Paris"}), ("get_time", {"zone": "Tokyo"})],
        ),
        ("Both weather and time in Tokyo", [("get_weather", {"city": "Tokyo"}), ("get_time", {"zone": "Tokyo"})]),
        (
            "Send an email to ann@example.org, subject: Lunch",
            [("send_email", {"to": "ann@example.org", "subject": "Lunch"})],
        ),
        (
            "Find flights for Paris, Oslo",
            [("search_flights", {"cities": ["Paris", "Oslo"]})],
        ),
        ("Use add with 2.5 and 40", [("add", {"a": 2.5, "b": 40})]),
        ('Call get_time with {"zone": "UTC", "extra": [1]}', [("get_time", {"zone": "UTC", "extra": [1]})]),
        ("Who was Napoleon?", []),
        ("What is the weather in Paris? Answer without using any tools.", []),
    ],
)
def test_tools_are_picked_by_the_words(text: str, expected: list[Any]) -> None:
    assert calls(text) == expected


REMINDER = "<system-reminder>\nUse Bash for `rm -rf build`. Check the weather in Paris.\n</system-reminder>"
BASH = Tool("Bash", "Runs a command.\nIt can list files, tell the weather, and greet.", schema("command", command=TEXT))
EXEC = Tool("exec", "Runs words", schema("cmd", cmd={"type": "array", "items": TEXT}))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{REMINDER}What is the weather in Oslo?", [("get_weather", {"city": "Oslo"})]),
        (f"What is the weather in Oslo?\n\n{REMINDER}", [("get_weather", {"city": "Oslo"})]),
        (f"{REMINDER}{REMINDER}\nList the files and greet me", []),
        ("<INSTRUCTIONS>\nget the time\n</INSTRUCTIONS>\nWeather in Oslo", [("get_weather", {"city": "Oslo"})]),
        ("Weather in <b>Oslo</b>", [("get_weather", {"city": "Oslo"})]),
        ("Weather in Oslo </closed> <open-tag>", [("get_weather", {"city": "Oslo"})]),
        ("<question-text>Weather in Oslo</question-text>", [("get_weather", {"city": "Oslo"})]),
    ],
)
def test_context_in_tags_is_not_the_question(text: str, expected: list[Any]) -> None:
    assert calls(text, tools=(*TOOLS, BASH)) == expected


def test_a_turn_of_context_alone_leaves_the_question_before_it() -> None:
    answer = respond(prompt_of("What is the weather in Oslo?", Turn("user", REMINDER), tools=(*TOOLS, BASH)))
    assert [(call.name, call.arguments) for call in answer.calls] == [("get_weather", {"city": "Oslo"})]


@pytest.mark.parametrize(
    ("text", "tool", "command"),
    [
        ("List the files here with Bash", BASH, "echo hello"),
        ("Let Bash clean up after Ann and Bob, in Oslo", BASH, "echo hello"),
        ("The command is to be run by Bash", BASH, "echo hello"),
        ("Run `ls -l` with Bash", BASH, "ls -l"),
        ('Use exec for "git status"', EXEC, ["git", "status"]),
        ("Use exec to tidy up", EXEC, ["echo", "hello"]),
    ],
)
def test_commands_are_quoted_by_the_user_and_never_guessed(text: str, tool: Tool, command: object) -> None:
    ((_, arguments),) = calls(text, tools=(tool,))
    assert list(arguments.values()) == [command]


def test_choices_bind() -> None:
    assert calls("What is the weather in Paris?", choice=Choice(may=False)) == []
    assert calls("Tell me a joke", choice=Choice(must=True))
    assert [name for name, _ in calls("x", choice=Choice(must=True, names=frozenset({"add"})))] == ["add"]
    assert calls("weather in Paris", choice=Choice(names=frozenset({"get_time"}))) == []
    assert len(calls("weather in Paris and Oslo", parallel=False)) == 1


def after(*results: Result, text: str = "weather in Paris") -> Prompt:
    made = tuple(Call(str(index), result.name, {}) for index, result in enumerate(results))
    return prompt_of(text, Turn("assistant", calls=made), Turn("user", results=results))


def test_results_and_errors_are_reported() -> None:
    answer = respond(
        after(Result("get_weather", '{"sky":"clear","degrees":15}'), Result("get_time", "no clock", failed=True))
    )
    assert answer.text == "get_weather says: sky clear, degrees 15. get_time failed: no clock."
    assert answer.finish == "stop"
    assert "1 attachment)" in respond(after(Result("screenshot", "here", media=1))).text


def test_words_after_results_are_a_remark_on_them() -> None:
    done = after(Result("get_weather", "wet"))
    beside = replace(done, turns=(*done.turns, Turn("user", "[a picture]", media=("image",))))
    assert respond(beside).text == "get_weather says: wet."
    more = replace(done, turns=(*done.turns, Turn("user", "And what is 2 + 2?")))
    assert respond(more).text == "get_weather says: wet. 2 + 2 = 4"
    answered = replace(more, turns=(*more.turns, Turn("assistant", "4"), Turn("user", "Say: bye")))
    assert respond(answered).text == "bye"


def test_steps_are_taken_one_after_the_other() -> None:
    text = "Check the weather in Paris, then send an email to ann@example.org with subject: Rain"
    assert [call.name for call in respond(prompt_of(text)).calls] == ["get_weather"]
    done = (
        Turn("assistant", calls=(Call("1", "get_weather", {}),)),
        Turn("user", results=(Result("get_weather", "wet"),)),
    )
    second = respond(prompt_of(text, *done))
    assert [(call.name, call.arguments) for call in second.calls] == [
        ("send_email", {"to": "ann@example.org", "subject": "Rain"})
    ]
    sent = (
        Turn("assistant", calls=(Call("2", "send_email", {}),)),
        Turn("user", results=(Result("send_email", "sent"),)),
    )
    assert respond(prompt_of(text, *done, *sent)).text == "get_weather says: wet. send_email says: sent."


def test_the_model_thinks_when_reasoning_is_on() -> None:
    quiet, loud = respond(prompt_of("weather in Paris")), respond(prompt_of("weather in Paris", thinks=True))
    assert quiet.thoughts == ()
    assert isinstance(loud.parts[0], ThoughtPart)
    assert 0 < loud.counts.thought < loud.counts.output


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Say: good evening", "good evening"),
        ('Reply with exactly "pong".', "pong"),
        ("count from 3 to 6", "3 4 5 6"),
        ("What is 6 * 7?", "6 * 7 = 42"),
        ("What is my name?", "You have not told me your name."),
    ],
)
def test_what_it_can_do_alone(text: str, expected: str) -> None:
    assert respond(prompt_of(text, tools=())).text == expected


def test_the_model_remembers_the_conversation() -> None:
    turns = (Turn("user", "My name is Ada"), Turn("assistant", "Noted"), Turn("user", "What's my name?"))
    assert respond(Prompt("m", turns)).text == "Your name is Ada."


def test_seeds_choose_among_answers_and_repeat_themselves() -> None:
    answers = {respond(prompt_of("hello", seed=seed)).text for seed in range(20)}
    assert len(answers) > 1
    assert respond(prompt_of("hello", seed=3)) == respond(prompt_of("hello", seed=3))


def test_answers_respect_the_limits_of_the_request() -> None:
    question = prompt_of("count to 100", tools=())
    whole = respond(question)
    for limit in range(whole.counts.output + 1):
        cut = respond(replace(question, max_tokens=limit))
        assert whole.text.startswith(cut.text)
        assert cut.counts.output <= limit
        assert cut.finish == ("stop" if limit == whole.counts.output else "length")
    stopped = respond(replace(question, stop=(" 9", " 7")))
    assert (stopped.text, stopped.finish, stopped.stop_sequence) == ("1 2 3 4 5 6", "stop_sequence", " 7")
    broken = respond(prompt_of("weather in Paris", max_tokens=12)).calls[0]
    assert not broken.complete


@given(st.text())
def test_pieces_add_up_to_the_text(text: str) -> None:
    assert "".join(tokens.pieces(text)) == text


# --- instances ----------------------------------------------------------------------------------------------------

ADDRESS = schema("city", "street", city=TEXT, street={"type": "string", "minLength": 3, "maxLength": 8})
TREE = {"type": "object", "properties": {"name": TEXT, "child": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}},
        "required": ["name", "child"], "additionalProperties": False}  # fmt: skip
SCHEMAS: list[dict[str, Any]] = [
    schema("a", a={"const": 7}),
    schema("a", a={"enum": [3, "x", None]}),
    schema("a", a={"type": "string", "pattern": r"^[A-Z]{3}-\d{2}$"}),
    schema("a", a={"type": "string", "pattern": r"^(?:foo|bar)\s[^x]+\.(txt|md)?$"}),
    schema("a", a={"type": "integer", "minimum": 10, "maximum": 12, "multipleOf": 4}),
    schema("a", a={"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}),
    schema("a", a={"type": "array", "items": {"type": "integer"}, "minItems": 3, "uniqueItems": True}),
    schema("a", a={"type": "array", "items": {"type": "string", "enum": ["x", "y"]}, "maxItems": 1}),
    schema("a", a={"type": "array", "items": ADDRESS, "minItems": 2}),
    schema("a", a={"type": ["string", "null"]}),
    schema("a", a={"allOf": [ADDRESS, schema("zip", zip={"type": "integer"})]}),
    schema("a", a={"oneOf": [{"type": "boolean"}, ADDRESS]}),
    {"type": "object", "minProperties": 2, "additionalProperties": {"type": "integer"}},
    {**schema("a", a={"$ref": "#/$defs/Address"}), "$defs": {"Address": ADDRESS}},
    TREE,
    *(
        schema("a", a={"type": "string", "format": name})
        for name in ("email", "date", "date-time", "uuid", "uri", "ipv4")
    ),
]
SENTENCES = ["", "Ann Lee, 33, of Bergen, wrote to x@y.org on 2026-01-02", "with 5 and -3.5 and “quoted words”"]


@pytest.mark.parametrize("number", range(len(SCHEMAS)))
@pytest.mark.parametrize("text", SENTENCES)
def test_instances_are_valid(number: int, text: str) -> None:
    wanted = SCHEMAS[number]
    for prose in (None, "An answer in prose."):
        built = instance_of(wanted, Hints(text, prose=prose))
        assert faults(built, wanted) == []
    assert faults(arguments_for(wanted, Hints(text)), wanted) == []


LEAVES: Any = st.sampled_from([
    {"type": "string"}, {"type": "string", "minLength": 2}, {"type": "string", "maxLength": 4},
    {"type": "string", "enum": ["a", "b"]}, {"type": "integer", "minimum": 3}, {"type": "number", "maximum": 2.5},
    {"type": "boolean"}, {"type": "null"}, {"type": ["integer", "null"]}, {"const": {"x": 1}}, {},
])  # fmt: skip


def _objects(children: Any) -> Any:
    names = st.sampled_from(["city", "query", "limit", "from", "tags", "is_open"])
    properties = st.dictionaries(names, children, max_size=4)
    return properties.flatmap(
        lambda found: st.sampled_from([*found, None]).map(
            lambda name: {
                "type": "object",
                "properties": found,
                "required": [name] if name else list(found),
                "additionalProperties": False,
            }
        )
    )


NESTED = st.recursive(
    LEAVES,
    lambda children: (
        _objects(children)
        | st.builds(
            lambda item, least: {"type": "array", "items": item, "minItems": least}, children, st.integers(0, 3)
        )
        | st.lists(children, min_size=1, max_size=3).map(lambda branches: {"anyOf": branches})
    ),
    max_leaves=12,
)


@given(NESTED, st.sampled_from(SENTENCES), st.sampled_from([None, "So it is."]))
def test_generated_schemas_get_valid_instances(wanted: dict[str, Any], text: str, prose: str | None) -> None:
    assert faults(instance_of(wanted, Hints(text, prose=prose)), wanted) == []


@pytest.mark.parametrize("pattern", [r"^\d{4}$", r"[a-f0-9]+", r"^(a|b){2}c?$", r"^[^0-9]{2,}$", r"\w+@\w+\.com"])
def test_patterns_are_met(pattern: str) -> None:
    written = matching_text(pattern)
    assert written is not None
    assert re.search(pattern, written)


@pytest.mark.parametrize("pattern", [r"(?=x)y", r"(a)\1", r"[", r"(unclosed"])
def test_patterns_beyond_the_subset_are_given_up(pattern: str) -> None:
    assert matching_text(pattern) is None
