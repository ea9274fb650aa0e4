"""What `POST /v1beta/interactions` refuses, and what a strict client of it expects to read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from dragoman.sim.rules.common import (
    ROOT,
    SCHEMA_SINGLES,
    JsonObject,
    Path,
    Violation,
    bad_answer,
    json_path,
    number_at,
    object_at,
    objects_at,
    read,
    text_at,
    texts_at,
    walk_schema,
)
from dragoman.sim.rules.gemini_interactions_shapes import ANSWER_DIALECT, CONTENTS, DIALECT, REQUEST, RESPONSE
from dragoman.sim.rules.gemini_request import generation_of
from dragoman.sim.rules.gemini_shapes import INVALID_ARGUMENT

Rule: TypeAlias = Callable[[JsonObject, str], Iterator[Violation]]

UNNAMED = "Request contains an invalid argument."


def refuse(path: Path, message: str) -> Violation:
    return Violation(json_path(path), message, INVALID_ARGUMENT)


def steps_of(body: JsonObject) -> Sequence[tuple[Path, JsonObject]]:
    """The steps of the input; one user step for a string or for contents."""
    given = body.get("input")
    if isinstance(given, str):
        return [(("input",), {"type": "user_input", "content": [{"type": "text", "text": given}]})]
    items = [given] if isinstance(given, Mapping) else objects_at(body, "input")
    if items and items[0].get("type") in CONTENTS:
        return [(("input",), {"type": "user_input", "content": list(items)})]
    alone = isinstance(given, Mapping)
    return [(("input",) if alone else ("input", index), step) for index, step in enumerate(items)]


# --- requests -----------------------------------------------------------------------------------------------------


def model_or_agent(body: JsonObject, _model: str) -> Iterator[Violation]:
    if ("model" in body) == ("agent" in body):
        yield refuse(ROOT, "Exactly one of 'model' and 'agent' must be set.")
    if "agent" in body and "generation_config" in body:
        yield refuse(("generation_config",), "generation_config is not supported for agents.")


def input_is_there(body: JsonObject, _model: str) -> Iterator[Violation]:
    if "input" not in body and "continuation_token" not in body:
        yield refuse(("input",), "Input must not be empty.")
    if "input" in body and not steps_of(body):
        yield refuse(("input",), "Input must not be empty.")


def turns_say_something(body: JsonObject, _model: str) -> Iterator[Violation]:
    for path, step in steps_of(body):
        if step.get("type") == "user_input" and not objects_at(step, "content"):
            yield refuse((*path, "content"), "User input must have content.")


def media_have_one_source(body: JsonObject, _model: str) -> Iterator[Violation]:
    for path, step in steps_of(body):
        if step.get("type") not in {"user_input", "model_output", "function_result"}:
            continue
        contents = step.get("content", step.get("result"))
        for index, content in enumerate(contents if isinstance(contents, list) else ()):
            if not isinstance(content, Mapping) or content.get("type") == "text":
                continue
            if ("data" in content) == ("uri" in content):
                yield refuse((*path, "content", index), "Exactly one of 'data' and 'uri' must be set.")


def results_answer_calls(body: JsonObject, _model: str) -> Iterator[Violation]:
    """Without a stored history, every result answers a call of the timeline, and every call is answered."""
    if "previous_interaction_id" in body:
        return
    steps = steps_of(body)
    waiting: dict[str, Path] = {}
    for path, step in steps:
        kind = step.get("type")
        if kind == "function_call":
            waiting[text_at(step, "id")] = path
        elif kind == "function_result":
            if waiting.pop(text_at(step, "call_id"), None) is None:
                yield refuse((*path, "call_id"), "function_result does not match any function_call.")
        elif kind == "user_input" and waiting:
            yield refuse(next(iter(waiting.values())), "Every function_call needs a function_result.")
            waiting = {}
    if waiting and steps and steps[-1][1].get("type") != "function_call":
        yield refuse(next(iter(waiting.values())), "Every function_call needs a function_result.")


def calls_are_signed(body: JsonObject, model: str) -> Iterator[Violation]:
    """Gemini 3 wants a signed thought before the first call of each of its turns."""
    generation = generation_of(model)
    if generation is None or generation < (3, 0) or "previous_interaction_id" in body:
        return
    signed = called = False
    for path, step in steps_of(body):
        kind = step.get("type")
        if kind in {"user_input", "function_result"}:
            signed = called = False
        elif kind == "thought":
            signed = signed or bool(text_at(step, "signature"))
        elif kind == "function_call":
            if not called and not signed and not text_at(step, "signature"):
                yield refuse(path, UNNAMED)
            called = True


def ends_with_the_user(body: JsonObject, model: str) -> Iterator[Violation]:
    generation, steps = generation_of(model), steps_of(body)
    if generation is not None and generation >= (3, 6) and steps:
        path, last = steps[-1]
        if last.get("type") not in {"user_input", "function_result"}:
            yield refuse(path, "Requests ending with a model turn are not supported.")


def state_is_kept(body: JsonObject, _model: str) -> Iterator[Violation]:
    if body.get("store") is False and body.get("background") is True:
        yield refuse(("background",), "background requires store to be true.")


def functions_have_names(body: JsonObject, _model: str) -> Iterator[Violation]:
    names: set[str] = set()
    for index, tool in enumerate(objects_at(body, "tools")):
        if tool.get("type") != "function":
            continue
        name = text_at(tool, "name")
        if not name or name in names:
            yield refuse(("tools", index, "name"), "Function names must be set and unique.")
        names.add(name)


def schemas_have_no_tuples(body: JsonObject, _model: str) -> Iterator[Violation]:
    """The complaint names no tool."""
    for index, tool in enumerate(objects_at(body, "tools")):
        for path, node in walk_schema(tool.get("parameters"), ("tools", index, "parameters")):
            for keyword in SCHEMA_SINGLES:
                if keyword == "items" and isinstance(node.get(keyword), list):
                    message = "invalid_request: Invalid JSON payload: syntax error in request body."
                    yield refuse((*path, keyword), message)


def choice_names_functions(body: JsonObject, _model: str) -> Iterator[Violation]:
    allowed = texts_at(body, "generation_config", "tool_choice", "allowed_tools", "tools")
    declared = {text_at(tool, "name") for tool in objects_at(body, "tools")}
    for name in allowed:
        if name not in declared:
            yield refuse(("generation_config", "tool_choice"), f"Allowed tool {name!r} is not declared.")


_NO_MINIMAL = ("gemini-2.5", "gemini-3-pro", "gemini-3.1-pro", "gemini-3.7-flash", "gemini-3.8-flash")


def levels_fit_the_model(body: JsonObject, model: str) -> Iterator[Violation]:
    level = text_at(body, "generation_config", "thinking_level")
    if level == "minimal" and model.startswith(_NO_MINIMAL):
        yield refuse(("generation_config", "thinking_level"), "Thinking level MINIMAL is not supported for this model.")


RULES: tuple[Rule, ...] = (
    model_or_agent,
    input_is_there,
    turns_say_something,
    media_have_one_source,
    results_answer_calls,
    calls_are_signed,
    ends_with_the_user,
    state_is_kept,
    functions_have_names,
    schemas_have_no_tuples,
    choice_names_functions,
    levels_fit_the_model,
)


def check_request(
    body: JsonObject,
    *,
    model: str | None = None,
    version: str | None = None,  # noqa: ARG001 - the versions take the same bodies; all judges are called alike
) -> tuple[Violation, ...]:
    """`model` is used if the body has none."""
    named = body if model is None or "agent" in body else {**body, "model": model}
    _, faults = read(REQUEST, DIALECT, named)
    if faults:
        return faults
    name = text_at(named, "model")
    return tuple(violation for rule in RULES for violation in rule(named, name))


# --- responses ----------------------------------------------------------------------------------------------------


def usage_adds_up(body: JsonObject) -> Iterator[Violation]:
    usage = object_at(body, "usage")
    names = [f"total_{name}_tokens" for name in ("input", "output", "thought", "tool_use")]
    if "total_tokens" in usage and number_at(usage, "total_tokens") != sum(number_at(usage, name) for name in names):
        yield bad_answer(("usage", "total_tokens"), f"expected the sum of {', '.join(names)}")
    if number_at(usage, "total_cached_tokens") > number_at(usage, "total_input_tokens"):
        yield bad_answer(("usage", "total_cached_tokens"), "expected a part of total_input_tokens")


def calls_have_ids(body: JsonObject) -> Iterator[Violation]:
    ids = [text_at(step, "id") for step in objects_at(body, "steps") if step.get("type") == "function_call"]
    if "" in ids or len(set(ids)) != len(ids):
        yield bad_answer(("steps",), "expected an id of its own for each call")


def action_is_required_by_a_call(body: JsonObject) -> Iterator[Violation]:
    kinds = [step.get("type") for step in objects_at(body, "steps")]
    if body.get("status") == "requires_action" and "function_call" not in kinds:
        yield bad_answer(("status",), "expected a function_call beside status 'requires_action'")


def ended_answers_have_steps(body: JsonObject) -> Iterator[Violation]:
    if body.get("status") in {"completed", "requires_action"} and not isinstance(body.get("steps"), list):
        yield bad_answer(("steps",), "missing required key")


ANSWER_RULES: tuple[Callable[[JsonObject], Iterator[Violation]], ...] = (
    usage_adds_up,
    calls_have_ids,
    action_is_required_by_a_call,
    ended_answers_have_steps,
)


def check_response(body: JsonObject) -> tuple[Violation, ...]:
    if "error" in body:
        return (bad_answer(ROOT, "expected an interaction, got an error body"),)
    _, faults = read(RESPONSE, ANSWER_DIALECT, body)
    return faults or tuple(violation for rule in ANSWER_RULES for violation in rule(body))
