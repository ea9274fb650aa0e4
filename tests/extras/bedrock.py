"""Bedrock with requests that botocore signs."""

from botocore.credentials import Credentials  # type: ignore[import-untyped]

import dragoman
from dragoman.sim import Simulator

with Simulator() as sim:
    driver = dragoman.connect_sync(
        "bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0",
        base_url=sim.url,
        region="us-east-1",
        credentials=Credentials("AKIAEXAMPLE", "secret"),
    )
    with driver:
        assert driver.query("Hello").content
    assert "x-amz-date" in sim.requests[-1].headers, sim.requests[-1].headers
