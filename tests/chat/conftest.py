"""A database is started where one is installed."""

from collections.abc import Iterator

import pytest

from tests.support.databases import Postgres, postgres


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Postgres]:
    with postgres() as server:
        yield server
