import asyncio

from tests.gateway.soak import soak
from tests.support.promises import promise


@promise("gateway:disconnect", "gateway:own-words-midstream", "gateway:log")
def test_a_short_soak() -> None:
    """Runs tests/gateway/soak.py for a few seconds: no event or request is lost, duplicated or left unfinished."""
    outcome, _, _ = asyncio.run(soak(3.0, 30))
    assert outcome["right"] > 20
    assert outcome["left"] > 5
    assert (outcome["wrong"], outcome["untold"]) == (0, 0)
    assert outcome["logged"] == outcome["asked"]
    assert (outcome["in flight"], outcome["held upstream"], outcome["connections"]) == (0, 0, 0)
