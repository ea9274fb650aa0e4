"""A provider that takes a key is asked, whole and streamed; the simulator stands in for it."""

import dragoman
from dragoman.sim import Simulator

with Simulator() as sim:
    for model, address in (("anthropic/claude-sonnet-5", sim.url), ("openai/gpt-5.6", f"{sim.url}/v1")):
        with dragoman.connect_sync(model, base_url=address, api_key="any") as driver:
            assert driver.query("Hello").content
            assert "".join(driver.stream_query("Hello"))
