"""The same drivers by waiting."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import dragoman
from dragoman.drivers import EchoDriver
from dragoman.drivers.sync import SyncDriver
from dragoman.errors import AnswerCut, CallCancelled, RateLimited
from dragoman.ir import Finished
from dragoman.sim.server import Simulator
from tests.drivers.partners import ONCE, fault

LONG = "Tell me a very long story about the sea, please."


def connected(simulator: Simulator) -> SyncDriver:
    return dragoman.connect_sync(
        "anthropic/claude-sonnet-4-6", base_url=simulator.url, api_key="k", retry=ONCE, environment={}
    )


def test_questions_streams_and_events(dragoman_sim: Simulator) -> None:
    with connected(dragoman_sim) as driver:
        result = driver.query(LONG)
        assert result.finish_reason == "stop"
        stream = driver.stream_query(LONG)
        assert "".join(stream) == stream.result.content == result.content
        assert isinstance(list(driver.stream_query(LONG).events())[-1], Finished)


def test_errors_are_raised_where_one_waits(dragoman_sim: Simulator) -> None:
    with connected(dragoman_sim) as driver:
        with pytest.raises(RateLimited):
            driver.query(LONG, headers=fault("status=429"))
        with pytest.raises(AnswerCut):
            list(driver.stream_query(LONG, headers=fault("cut=5")))
        with driver.stream_query(LONG, headers=fault("drip=0.05")) as stream:
            assert next(iter(stream))
        with pytest.raises(CallCancelled):
            _ = stream.result


def test_threads_share_one_driver(dragoman_sim: Simulator) -> None:
    with connected(dragoman_sim) as driver, ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: driver.query(LONG).content, range(24)))
        assert len(set(answers)) == 1


def test_any_driver_can_be_waited_for() -> None:
    before = threading.active_count()
    driver = SyncDriver(EchoDriver())
    assert driver.query("hello").content == "hello"
    assert list(driver.stream_query("a b")) == ["a", " b"]
    assert SyncDriver(EchoDriver()).query("x").content == "x"
    assert threading.active_count() <= before + 1
