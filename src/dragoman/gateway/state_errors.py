"""Errors of requests that refer to state which is not stored, with OpenAI's messages."""

from __future__ import annotations

from dragoman.ir import Failure

_INVALID = "invalid_request_error"


class UnknownResponse(Exception):
    """A request refers to a response, an item or a conversation, and cannot be served."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        super().__init__(failure.message)


def _missing(what: str, id: str, parameter: str | None = None) -> UnknownResponse:
    message = f"{what} with id '{id}' not found."
    return UnknownResponse(Failure("not_found", message, 404, parameter=parameter, raw_type=_INVALID))


def _invalid(message: str, *, code: str | None = None, parameter: str | None = None) -> UnknownResponse:
    failure = Failure("invalid_request", message, 400, code=code, parameter=parameter, raw_type=_INVALID)
    return UnknownResponse(failure)


def not_found(id: str) -> UnknownResponse:
    return _missing("Response", id)


def no_item(id: str, place: int | None = None) -> UnknownResponse:
    return _missing("Item", id, None if place is None else f"input[{place}].id")


def no_conversation(id: str) -> UnknownResponse:
    return _missing("Conversation", id)


def no_previous(id: str) -> UnknownResponse:
    message = f"Previous response with id '{id}' not found."
    return _invalid(message, code="previous_response_not_found", parameter="previous_response_id")


LARGEST_HISTORY = 128 << 20
"""Maximum bytes of a conversation, or of a response with all before it, that the gateway keeps."""


def too_long_a_history() -> UnknownResponse:
    words = f"The conversation has more than the {LARGEST_HISTORY} bytes that this gateway keeps of one."
    return UnknownResponse(Failure("too_large", words, 413, raw_type=_INVALID))


def too_many_responses(most: int) -> UnknownResponse:
    words = f"More than {most} responses come before this one; this gateway continues no more. Send them as input."
    return UnknownResponse(Failure("too_large", words, 413, raw_type=_INVALID))


def two_histories() -> UnknownResponse:
    words = "Mutually exclusive parameters: 'previous_response_id' and 'conversation'."
    return _invalid(words, parameter="conversation")


def not_cancellable() -> UnknownResponse:
    return _invalid("Cannot cancel a synchronous response.")


def not_streamable(id: str) -> UnknownResponse:
    return _invalid(
        f"Response with id '{id}' cannot be streamed: this gateway streams a response only while it is created. "
        "Retrieve it without stream=true.",
        parameter="stream",
    )


def invalid_items(message: str, parameter: str) -> UnknownResponse:
    return _invalid(message, parameter=parameter)
