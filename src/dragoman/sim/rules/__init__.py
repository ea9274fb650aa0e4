"""What each provider's API accepts, as pure functions over plain JSON.

One module per wire format, each with the same two verbs::

    check_request(body, ...)  -> tuple[Violation, ...]   # what the server would refuse
    check_response(body)      -> tuple[Violation, ...]   # what a strict client of that format would trip over

Nothing here uses the intermediate format or a codec, so that a codec and its judge cannot share a misunderstanding.
"""

from dragoman.sim.rules.common import JsonObject, Violation

__all__ = ["JsonObject", "Violation"]
