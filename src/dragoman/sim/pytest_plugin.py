"""Pytest fixtures: `dragoman_sim` is an offline simulator of the providers.

    def test_my_agent(dragoman_sim):
        dragoman_sim.play({"text": "Hello"}, {"error": "overloaded"})
        run(base_url=dragoman_sim.url)
        assert dragoman_sim.requests[0].json["model"] == "gpt-5"

    @pytest.mark.dragoman_script([{"text": "Hello"}])
    def test_with_a_script(dragoman_sim): ...

The server is started once and reset before each test. It is imported when a test first uses it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from dragoman.sim.server import Simulator

MARKER = "dragoman_script"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", f"{MARKER}(script): turns for `dragoman_sim`: a list of them, a script, or the path of one"
    )


@pytest.fixture(scope="session")
def dragoman_simulator() -> Iterator[Simulator]:
    """The running server, for your own fixtures; tests use `dragoman_sim`, which is reset each time."""
    from dragoman.sim.server import Simulator  # noqa: PLC0415 - aiohttp is an extra

    with Simulator() as simulator:
        yield simulator


@pytest.fixture
def dragoman_sim(dragoman_simulator: Simulator, request: pytest.FixtureRequest) -> Simulator:
    dragoman_simulator.reset()
    marker = request.node.get_closest_marker(MARKER)
    if marker is not None:
        dragoman_simulator.service.play(_script(marker.args[0], request.path.parent))
    return dragoman_simulator


def _script(given: object, folder: Path) -> object:
    from dragoman.sim.script import load_script  # noqa: PLC0415 - see above

    return load_script(folder / given) if isinstance(given, str | Path) else given
