# What an installed dragoman brings to pytest by itself; here also where it is only on the path.
from collections.abc import Iterator

import pytest

from dragoman.sim.pytest_plugin import dragoman_sim, dragoman_simulator, pytest_configure
from dragoman.sim.server import Simulator
from tests.gateway.running import RunningGateway, every_format, simulated
from tests.support.databases import Postgres, Redis, postgres, redis

__all__ = ["dragoman_sim", "dragoman_simulator", "pytest_configure"]


@pytest.fixture(scope="session")
def shared_gateway(dragoman_simulator: Simulator) -> Iterator[RunningGateway]:
    with RunningGateway(simulated(dragoman_simulator.url, every_format(dragoman_simulator.url))) as gateway:
        yield gateway


@pytest.fixture
def gateway(shared_gateway: RunningGateway, dragoman_sim: Simulator) -> RunningGateway:  # noqa: ARG001 - made fresh
    """A gateway without configuration, in front of all simulators."""
    shared_gateway.log.clear()
    return shared_gateway


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Postgres]:
    with postgres() as server:
        yield server


@pytest.fixture(scope="session")
def redis_server() -> Iterator[Redis]:
    with redis() as server:
        yield server
