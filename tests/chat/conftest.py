"""Tests in a real browser are collected where there is one; a database is started where one is installed."""

from collections.abc import Iterator

import pytest

from tests.support.browser import chromium
from tests.support.databases import Postgres, postgres

collect_ignore = [] if chromium() else ["test_browser.py"]


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Postgres]:
    with postgres() as server:
        yield server
