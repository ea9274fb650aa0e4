"""Every sample body that is not about its size, usual and ugly ones."""

import json
from typing import Any

import pytest

from tests.support.bodies import REQUESTS, RESPONSES
from tests.support.ugly import UGLY_ANSWERS, UGLY_REQUESTS

LARGE = 20_000
"""Bodies beyond this size are about their size."""


def small_bodies(kind: str) -> list[Any]:
    """The format and the body of each, as cases of a test. `kind`: request or response."""
    samples = {"request": REQUESTS, "response": RESPONSES}[kind]
    ugly = {"request": UGLY_REQUESTS, "response": UGLY_ANSWERS}[kind]
    found = [(sample.format, sample.name, sample.body) for sample in samples]
    found += [(name, of, body) for name, named in ugly.items() for of, body in named.items()]
    return [pytest.param(name, body, id=f"{name}: {of}") for name, of, body in found if len(json.dumps(body)) < LARGE]
