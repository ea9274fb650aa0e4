"""Vertex AI with credentials of google-auth."""

from google.oauth2.credentials import Credentials

import dragoman
from dragoman.sim import Simulator

with Simulator() as sim:
    driver = dragoman.connect_sync(
        "vertex/gemini-3.8-flash",
        base_url=f"{sim.url}/vertex",
        project="p",
        location="global",
        credentials=Credentials(token="ya29.token"),  # type: ignore[no-untyped-call]
    )
    with driver:
        assert driver.query("Hello").content
    assert "authorization" in sim.requests[-1].headers
