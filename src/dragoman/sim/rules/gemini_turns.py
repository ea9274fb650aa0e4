"""Rules between contents: roles, what a part holds, calls and their responses, thought signatures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from dragoman.sim.rules.common import JsonObject, Path, Violation, objects_at, text_at
from dragoman.sim.rules.gemini_request import Request, Rule, Step, refuse, role_of
from dragoman.sim.rules.gemini_shapes import PART_DATA

ROLES = ("user", "model")


def roles_are_known(request: Request) -> Iterator[Violation]:
    for path, content in request.contents:
        missing = not text_at(content, "role")
        if (missing and request.backend.role_required) or role_of(content) not in ROLES:
            yield refuse((*path, "role"), "Please use a valid role: user, model.")


def contents_have_parts(request: Request) -> Iterator[Violation]:
    for path, content in request.contents:
        if request.backend.silent_model_passes and role_of(content) == "model":
            continue
        if not objects_at(content, "parts"):
            yield refuse((*path, "parts"), "* GenerateContentRequest.{where}: contents.parts must not be empty.")


# A part may hold nothing but these (recordings a2219f651bd3, 70c0f769e86a; de1d3a9687d6).
STAND_FOR_DATA = ("thoughtSignature", "videoMetadata")


def parts_have_one_kind(request: Request) -> Iterator[Violation]:
    for path, part in request.parts:
        found = [name for name in PART_DATA if name in part]
        if not found and not any(name in part for name in STAND_FOR_DATA):
            yield refuse((*path, "data"), "* {where}: required oneof field 'data' must have one initialized field")
        elif len(found) > 1:
            message = (
                f"Invalid value at '{{where}}' (oneof), oneof field 'data' is already set. Cannot set '{found[1]}'"
            )
            yield refuse((*path, found[1]), message)


def system_instruction_is_text(request: Request) -> Iterator[Violation]:
    for index, part in enumerate(objects_at(request.body, "systemInstruction", "parts")):
        if "text" not in part:
            where = ("systemInstruction", "parts", index)
            yield refuse(
                where, "* GenerateContentRequest.{where}: only text parts are supported in system_instruction."
            )


# --- calls and responses ------------------------------------------------------------------------------------------

COUNT_MISMATCH = (
    "Please ensure that the number of function response parts is equal to the number of function call parts "
    "of the function call turn."
)
CALL_OUT_OF_TURN = (
    "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
)
RESPONSE_OUT_OF_TURN = "Please ensure that function response turn comes immediately after a function call turn."


def calls_come_after_the_user(request: Request) -> Iterator[Violation]:
    if request.steps and request.steps[0].role == "model":
        for path, _ in request.steps[0].holding("functionCall")[:1]:
            yield refuse(path, CALL_OUT_OF_TURN)


def _server_runs_functions(request: Request) -> bool:
    """MCP servers answer calls within the model's own content (recordings 3a92ffbadccd, 85af64f1fcd7)."""
    return any("mcpServers" in tool for tool in objects_at(request.body, "tools"))


def calls_and_responses_fit_their_role(request: Request) -> Iterator[Violation]:
    """Calls are the model's, responses are the user's."""
    for step in request.steps:
        if step.role == "user":
            for path, _ in step.holding("functionCall"):
                yield refuse(path, CALL_OUT_OF_TURN)
        elif not _server_runs_functions(request):
            for path, _ in step.holding("functionResponse"):
                yield refuse(path, RESPONSE_OUT_OF_TURN)


def open_calls(step: Step) -> list[tuple[Path, JsonObject]]:
    """The calls a step leaves to the client."""
    calls = step.holding("functionCall") if step.role == "model" else []
    return calls[len(step.holding("functionResponse")) :]


def answering_step(request: Request, step: Step | None) -> Step:
    """The part of a user step that may hold responses: its first Content."""
    if step is None:
        return Step("user", ())
    gathers = request.backend.old_models_gather_results and request.below(3)
    return step if gathers else Step(step.role, step.contents[:1])


def calls_are_answered(request: Request) -> Iterator[Violation]:
    """One Content right after the calls answers all of them."""
    for step, following in zip(request.steps, (*request.steps[1:], None), strict=True):
        calls = open_calls(step)
        answers = answering_step(request, following).holding("functionResponse")
        # Before Gemini 3 the user may go on without answering at all (13 recordings, e.g. 682af044c52c, a80e8cb79c0a).
        if calls and len(answers) != len(calls) and not (request.below(3) and following and not answers):
            yield refuse(calls[0][0], COUNT_MISMATCH)


def responses_follow_calls(request: Request) -> Iterator[Violation]:
    for previous, step in zip((None, *request.steps), request.steps, strict=False):
        if step.role != "user":
            continue
        after_calls = previous is not None and bool(open_calls(previous))
        welcome = (
            {path for path, _ in answering_step(request, step).holding("functionResponse")} if after_calls else set()
        )
        for path, _ in step.holding("functionResponse"):
            if path not in welcome:
                yield refuse(path, RESPONSE_OUT_OF_TURN)


def responses_name_their_calls(request: Request) -> Iterator[Violation]:
    """`name` equals the call's name; an id, when given, is one of the calls'."""
    for previous, step in zip(request.steps, request.steps[1:], strict=False):
        calls = [part for _, part in open_calls(previous)]
        answers = answering_step(request, step).holding("functionResponse")
        if len(calls) != len(answers):
            continue
        names = Counter(text_at(call, "functionCall", "name") for call in calls)
        ids = {text_at(call, "functionCall", "id") for call in calls}
        for path, answer in answers:
            name, identifier = text_at(answer, "functionResponse", "name"), text_at(answer, "functionResponse", "id")
            if not names[name]:
                yield refuse(
                    (*path, "functionResponse", "name"), "Function response name must match the function call name."
                )
            elif identifier and ids != {""} and identifier not in ids:
                yield refuse((*path, "functionResponse", "id"), "Function response id must match the function call id.")
            names[name] -= 1


def responses_stand_alone(request: Request) -> Iterator[Violation]:
    """Vertex: text beside a response is answered with this misleading complaint."""
    if not request.backend.results_stand_alone or request.below(3):
        return
    for path, content in request.contents:
        parts = objects_at(content, "parts")
        results = sum("functionResponse" in part for part in parts)
        if 0 < results < len(parts):
            yield refuse(path, "Requests ending with a model turn are not supported.")


def ids_are_supported(request: Request) -> Iterator[Violation]:
    if request.version not in request.backend.versions_without_ids:
        return
    for path, part in request.parts:
        for member in ("functionCall", "functionResponse"):
            if text_at(part, member, "id"):
                message = "Invalid JSON payload received. Unknown name \"id\" at '{where}': Cannot find field."
                yield refuse((*path, member), message)


def last_content_is_the_users(request: Request) -> Iterator[Violation]:
    last = request.steps[-1]
    empty = all(part.get("text") == "" for _, part in last.parts)
    if last.role == "model" and not empty and request.at_least(3, 6):
        yield refuse(last.contents[-1][0], "Requests ending with a model turn are not supported.")


def responses_refer_to_parts(request: Request) -> Iterator[Violation]:
    """Gemini 3 reads `{"$ref": ...}` anywhere in a response as the name of one of its parts."""
    if request.below(3):
        return
    for path, part in request.parts:
        response = part.get("functionResponse")
        if not isinstance(response, Mapping):
            continue
        names = Counter(
            text_at(inner, member, "displayName")
            for inner in objects_at(response, "parts")
            for member in ("inlineData", "fileData")
        )
        for reference in _references(response.get("response")):
            if not names[reference]:
                message = f"Function response reference '{reference}' does not match to a display_name of its parts."
                yield refuse((*path, "functionResponse", "response"), message)


def _references(value: object) -> Iterator[str]:
    waiting = [value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Mapping):
            if isinstance(node.get("$ref"), str):
                yield text_at(node, "$ref")
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)


# --- thought signatures -------------------------------------------------------------------------------------------


def current_turn(request: Request) -> int:
    """Where the turn starts: the newest user Content with something else than function responses."""
    ordinary = [
        index
        for index, (_, content) in enumerate(request.contents)
        if role_of(content) == "user" and any("functionResponse" not in part for part in objects_at(content, "parts"))
    ]
    return ordinary[-1] if ordinary else 0


def first_calls_are_signed(request: Request) -> Iterator[Violation]:
    """Gemini 3 and later: in every step of the current turn the first call carries a signature."""
    if not request.at_least(3) or "image" in request.model:
        return
    start = current_turn(request)
    for step in request.steps:
        calls = [
            (path, part)
            for path, part in step.holding("functionCall")
            if step.role == "model" and isinstance(path[1], int) and path[1] >= start
        ]
        if calls and not text_at(calls[0][1], "thoughtSignature"):
            path, part = calls[0]
            name = text_at(part, "functionCall", "name")
            message = f"Function call `{name}` in the `{path[1]}.` content block is missing a `thought_signature`."
            yield refuse(path, message)


# --- media --------------------------------------------------------------------------------------------------------


def files_are_reachable(request: Request) -> Iterator[Violation]:
    for path, part in request.parts:
        places = [(path, part)]
        for index, inner in enumerate(objects_at(part, "functionResponse", "parts")):
            places.append(((*path, "functionResponse", "parts", index), inner))
        for place, holder in places:
            uri = text_at(holder, "fileData", "fileUri")
            if request.backend.foreign_files.match(uri):
                yield refuse((*place, "fileData", "fileUri"), "Invalid or unsupported file uri.")


def response_parts_are_supported(request: Request) -> Iterator[Violation]:
    """Media inside a functionResponse came with Gemini 3; each part holds one of two things."""
    for path, part in request.parts:
        for index, inner in enumerate(objects_at(part, "functionResponse", "parts")):
            where = (*path, "functionResponse", "parts", index)
            if request.below(3):
                yield refuse(where, "Multimodal function response is not supported for this model.")
            if ("inlineData" in inner) == ("fileData" in inner):
                yield refuse(where, "* {where}: required oneof field 'data' must have one initialized field")


def image_models_call_nothing(request: Request) -> Iterator[Violation]:
    if "image" not in request.model:
        return
    for path, part in request.parts:
        if "functionCall" in part or "functionResponse" in part:
            yield refuse(path, "Function calling is not enabled for this model.")


RULES: tuple[Rule, ...] = (
    roles_are_known,
    contents_have_parts,
    parts_have_one_kind,
    system_instruction_is_text,
    calls_and_responses_fit_their_role,
    calls_come_after_the_user,
    calls_are_answered,
    responses_follow_calls,
    responses_name_their_calls,
    responses_stand_alone,
    ids_are_supported,
    last_content_is_the_users,
    responses_refer_to_parts,
    first_calls_are_signed,
    files_are_reachable,
    response_parts_are_supported,
    image_models_call_nothing,
)
