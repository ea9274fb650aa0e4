"""How an answer that failed, was blocked or is not finished reaches a client: never as a success (law 5)."""

from typing import Any

import dragoman
from dragoman import ir
from tests.support.formats import Verdict, complaints

_FIRST_ERROR = 400
_NO_SUCCESS: frozenset[ir.FinishReason] = frozenset({"error", "content_filter"})


def is_success(body: dict[str, Any], target: str) -> bool:
    """What a client of the API takes for an answer that is whole."""
    match target:
        case "openai-chat":
            return "error" not in body and body["choices"][0]["finish_reason"] in {"stop", "tool_calls"}
        case "openai-responses":
            return bool(body["status"] == "completed")
        case "anthropic-messages":
            return body["type"] == "message" and body["stop_reason"] in {"end_turn", "tool_use", "stop_sequence"}
        case "gemini" | "vertex":
            return any(one.get("finishReason") == "STOP" for one in body.get("candidates", ()))
        case "gemini-interactions":
            return body.get("status") in {"completed", "requires_action"}
        case "cohere-chat":
            return body.get("finish_reason") in {"COMPLETE", "TOOL_CALL", "STOP_SEQUENCE"}
        case "bedrock-converse":
            return body["stopReason"] in {"end_turn", "tool_use", "stop_sequence"}
        case _:
            return "error" not in body and body["done_reason"] == "stop"


def succeeded(answer: ir.Completion) -> bool:
    if answer.finish is None:
        return bool(answer.messages)
    if answer.finish.reason == "refusal":  # what a classifier stopped is no answer; what the model declined is one
        return any(message.refusal is not None for message in answer.messages)
    return answer.finish.reason not in _NO_SUCCESS


def reads_as_success(answer: ir.Completion) -> bool:
    """Whether a client takes it for whole: it was not refused, blocked or cut."""
    return answer.finish is not None and answer.finish.reason in {"stop", "tool_calls"}


def failure_of(answer: ir.Completion) -> ir.Failure:
    """The error that an answer is which did not succeed: the provider's words about it, or the reason of its end."""
    finish = answer.finish or ir.Finish("error", "no answer")
    word = finish.raw or finish.reason
    message = finish.explanation or f"the answer did not succeed: {word}"
    return ir.Failure("cancelled" if word == "cancelled" else "server", message)


def failure_expected(answer: ir.Completion) -> ir.Failure | None:
    """The error that may stand in place of the answer: only of one that did not succeed and has no content."""
    parts = [part for message in answer.messages for part in message.parts]
    if succeeded(answer) or any(part != ir.Text("") for part in parts):
        return None
    return failure_of(answer)


def is_error(encoded: dragoman.Encoded) -> bool:
    return encoded.status >= _FIRST_ERROR


def unfair(encoded: dragoman.Encoded, target: str, answer: ir.Completion) -> Verdict:
    """What is wrong with `answer` as a client of `target` gets it.

    An answer that a strict client reads; one that did not succeed reads so, or is an error with the provider's words,
    which is reported.
    """
    if not is_error(encoded):
        if not succeeded(answer) and is_success(encoded.body, target):
            return ("an answer that did not succeed reads as a success",)
        return complaints(encoded, target)
    expected = failure_expected(answer)
    if expected is None:
        return ("an error in place of an answer",)
    found = dragoman.decode_error(encoded.json(), target, status=encoded.status)
    wrong = []
    if (found.kind, found.message) != (expected.kind, expected.message):
        wrong.append(f"expected {expected}, got {found}")
    if not any(loss.severity == "degraded" and loss.what.startswith("finish reason") for loss in encoded.losses):
        wrong.append("the error is not reported")
    return tuple(wrong)
