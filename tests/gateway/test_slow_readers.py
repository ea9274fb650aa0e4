"""Clients that do not read their answers keep neither memory nor connections, and do not affect other clients."""

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from h2.connection import H2Connection
from h2.events import StreamReset
from h2.settings import SettingCodes

from dragoman.gateway.exchange import ServerLimits
from tests.gateway.running import RunningGateway, configured, send
from tests.gateway.served import Served, served
from tests.support.promises import promise
from tests.support.waiting import PATIENCE, until

pytestmark = promise("gateway:slow-readers")
MEBIBYTE = 1 << 20
LOCKED = '[server]\nkeys = ["sesame"]\n'
LONG = "/openapi.json"
"""The longest answer that needs no key."""
GET = f"GET {LONG} HTTP/1.1\r\nhost: a\r\n".encode()
PIPELINED = 60


def reluctant(url: str, buffer: int = 2_048) -> socket.socket:
    """Open a connection with a small receive buffer."""
    parts = urlsplit(url)
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    sock.settimeout(PATIENCE)
    sock.connect((parts.hostname, parts.port))
    return sock


def read_for(sock: socket.socket, count: int) -> int:
    """Read as many bytes; fewer if the gateway closes."""
    received = 0
    try:
        while received < count and (data := sock.recv(min(count - received, MEBIBYTE))):
            received += len(data)
    except ConnectionResetError:
        pass
    return received


def is_closed(sock: socket.socket) -> bool:
    """Whether the gateway has closed the connection; no further data is expected."""
    try:
        return sock.recv(65_536) == b""
    except ConnectionResetError:
        return True


# ── memory ──


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Served]:
    text = f'{LOCKED}max_buffered = {16 * MEBIBYTE}\n[providers.openai]\napi_key = "x"\n'
    with served(tmp_path, text, "--quiet") as gateway:
        assert send(gateway.url, LONG, method="GET").status == 200
        yield gateway


def streams_without_windows(count: int) -> bytes:
    client = H2Connection()
    client.initiate_connection()
    client.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 0})
    pseudo = [(":method", "GET"), (":path", LONG), (":scheme", "http"), (":authority", "a")]
    for number in range(count):
        client.send_headers(2 * number + 1, pseudo, end_stream=True)
    return client.data_to_send()


@pytest.mark.parametrize(
    ("data", "connections"),
    [(streams_without_windows(100), 40), ((GET + b"\r\n") * PIPELINED, 100)],
    ids=["HTTP/2", "HTTP/1.1"],
)
def test_answers_that_are_not_read_take_no_memory(small: Served, data: bytes, connections: int) -> None:
    before = highest = small.megabytes
    with ExitStack() as stack:
        for _ in range(connections):
            sock = stack.enter_context(reluctant(small.url))
            sock.sendall(data)
            highest = max(highest, small.megabytes)
        for _ in range(30):
            time.sleep(0.1)
            highest = max(highest, small.megabytes)
            assert send(small.url, "/health", method="GET").status == 200
    # The limit, plus what arrives before it is checked, plus the allocator's reserve; 40 x 100 answers would be 240 MB.
    assert highest - before < 80, f"{before:.0f} MB became {highest:.0f} MB"


# ── time ──

QUICK = ServerLimits(idle_seconds=0.7, write_seconds=1.5, head_seconds=1.0)


@pytest.fixture
def quick() -> Iterator[RunningGateway]:
    with RunningGateway(configured(LOCKED), QUICK) as gateway:
        yield gateway


@pytest.mark.parametrize("ending", [b"", b"BAD\r\n\r\n", GET + b"connection: close\r\n\r\n"], ids=["", "bad", "close"])
def test_a_client_that_resumes_reading_still_has_time_limits(quick: RunningGateway, ending: bytes) -> None:
    """Reading again must not end the time limits of the connection."""
    size = len(send(quick.url, LONG, method="GET").body)
    with reluctant(quick.url) as sock:
        sock.sendall((GET + b"\r\n") * PIPELINED + ending)
        time.sleep(0.5)  # answers pile up, and the gateway stops writing
        assert read_for(sock, PIPELINED * size) == PIPELINED * size
        until(lambda: is_closed(sock), "the connection stays open for ever")


@pytest.mark.parametrize("ending", [b"", b"BAD\r\n\r\n", GET + b"connection: close\r\n\r\n"], ids=["", "bad", "close"])
def test_a_client_that_never_reads_is_cut_off(quick: RunningGateway, ending: bytes) -> None:
    size = len(send(quick.url, LONG, method="GET").body)
    with accepted(quick) as sock:
        sock.sendall((GET + b"\r\n") * PIPELINED + ending)
        until(lambda: not connections(quick), "the connection is held for ever")
        assert read_for(sock, PIPELINED * size) < PIPELINED * size


def test_http2_pings_that_are_not_read_do_not_hold_the_connection(quick: RunningGateway) -> None:
    client = H2Connection()
    client.initiate_connection()
    with accepted(quick) as sock:
        sock.sendall(client.data_to_send())
        client.ping(b"12345678")
        ping = client.data_to_send()
        sock.settimeout(0)
        try:
            for _ in range(100):
                sock.send(ping * 90)
        except BlockingIOError:
            pass
        until(lambda: not connections(quick), "the connection is held for ever")


def test_http2_windows_of_a_byte_do_not_hold_the_stream(quick: RunningGateway) -> None:
    client = H2Connection()
    client.initiate_connection()
    client.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 1})
    pseudo = [(":method", "GET"), (":path", LONG), (":scheme", "http"), (":authority", "a")]
    client.send_headers(1, pseudo, end_stream=True)
    began, reset = time.monotonic(), False
    with accepted(quick) as sock:
        sock.settimeout(0.1)
        while not reset:
            assert time.monotonic() - began < PATIENCE, "the stream is held for ever"
            sock.sendall(client.data_to_send())
            try:
                events = client.receive_data(sock.recv(65_536))
            except TimeoutError:
                client.increment_flow_control_window(1, 1)
                continue
            reset = any(isinstance(event, StreamReset) for event in events)
    assert time.monotonic() - began < 4 * QUICK.write_seconds


def test_a_client_that_reads_slowly_gets_its_whole_answer() -> None:
    """It takes longer than the time limit for a client that does not read at all."""
    patient = ServerLimits(write_seconds=4.0)
    with RunningGateway(configured(LOCKED), patient) as gateway:
        size = PIPELINED * len(send(gateway.url, LONG, method="GET").body)
        with reluctant(gateway.url, 65_536) as sock:
            sock.sendall((GET + b"\r\n") * PIPELINED)
            began, received = time.monotonic(), 0
            while received < size and (data := read_for(sock, min(100_000, size - received))):
                received += data
                time.sleep(0.18)
    assert received >= size
    assert time.monotonic() - began > patient.write_seconds


def accepted(gateway: RunningGateway) -> socket.socket:
    """Open the only connection, and wait until the gateway has accepted it."""
    until(lambda: not connections(gateway), "an earlier connection stays open")
    sock = reluctant(gateway.url)
    until(lambda: connections(gateway), "the connection is not accepted")
    return sock


def connections(gateway: RunningGateway) -> int:
    """The number of open connections."""
    assert gateway.running is not None
    return len(gateway.running.server.connections)
