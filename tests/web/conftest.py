"""One browser for all tests of a file."""

from collections.abc import Iterator

import pytest

from tests.support.browser import browser


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with browser() as found:
        yield found
