"""A gateway in front of all simulators, started once for all tests of this folder."""

from collections.abc import Iterator

import pytest

from dragoman.sim.server import Simulator
from tests.gateway.running import RunningGateway, every_format, simulated


@pytest.fixture(scope="session")
def shared_gateway(dragoman_simulator: Simulator) -> Iterator[RunningGateway]:
    with RunningGateway(simulated(dragoman_simulator.url, every_format(dragoman_simulator.url))) as gateway:
        yield gateway


@pytest.fixture
def gateway(shared_gateway: RunningGateway, dragoman_sim: Simulator) -> RunningGateway:  # noqa: ARG001 - made fresh
    """A gateway without configuration, in front of all simulators."""
    shared_gateway.log.clear()
    return shared_gateway
