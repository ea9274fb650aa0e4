"""What each provider's API accepts, as pure functions over plain JSON.

One module per wire format, each with the same two verbs::

    check_request(body, ...)  -> tuple[Violation, ...]   # what the server would answer with an error
    check_response(body)      -> tuple[Violation, ...]   # what a strict client of that format would trip over

Nothing here knows the intermediate format or a codec: a codec and its judge must not share a misunderstanding.
"""

from dragoman.sim.rules.common import JsonObject, Violation

__all__ = ["JsonObject", "Violation"]
