"""Hostile forms, files, uploads and batches neither block the gateway, nor fill its memory, nor evade its limits."""

import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from dragoman.errors import DecodeError
from dragoman.gateway.answer_cache import directives
from dragoman.gateway.http_request import Head, collect_headers, header_name, known_names
from dragoman.gateway.pass_through import UsageReader, model_in
from dragoman.multipart import MultipartError, read_form
from tests.gateway.running import RunningGateway, configured, connected, send
from tests.gateway.scripted_upstream import Reply, ScriptedUpstream, reply
from tests.gateway.test_keys import create, key
from tests.support.costs import cpu_seconds, growth
from tests.support.databases import Postgres
from tests.support.promises import promise

pytestmark = promise("gateway:attacks")

FORM = "multipart/form-data; boundary=a"
HEAD = Head("POST", "/v1/audio/transcriptions", "", {"content-type": FORM})
FIELD = b'content-disposition: form-data; name="file"'
HOSTILE_FORMS: dict[str, Callable[[int], bytes]] = {
    "spaces in a header": lambda n: b"--a\r\ncontent-disposition: x" + b" " * n + b"y\r\n\r\n\r\n--a--",
    "spaces in a type": lambda n: b"--a\r\n" + FIELD + b"\r\ncontent-type: x" + b" " * n + b"y\r\n\r\n\r\n--a--",
    "delimiters before the end of a head": lambda n: b"--a" * n + b"\r\n\r\n",
    "parts": lambda n: (b"--a\r\n" + FIELD + b"\r\n\r\n\r\n") * n + b"--a--",
    "semicolons": lambda n: b"--a\r\ncontent-disposition: form-data" + b"; " * n + b"name=x\r\n\r\n\r\n--a--",
    "parameters": lambda n: b"--a\r\ncontent-disposition: form-data" + b';name="' * n + b"\r\n\r\n\r\n--a--",
    "line ends in a head": lambda n: b"--a\r\ncontent-disposition:;" + b"\r\n " * n + b"\r\n\r\n\r\n--a--",
}


@pytest.mark.parametrize("kind", HOSTILE_FORMS)
def test_forms_are_read_in_linear_time(kind: str) -> None:
    def prepare(n: int) -> Callable[[], None]:
        body = HOSTILE_FORMS[kind](n)

        def read() -> None:
            with suppress(DecodeError):
                model_in(body, HEAD)
            try:
                read_form(body, FORM)
            except MultipartError:
                return

        return read

    found = growth(prepare, 500, 20_000, cpu_seconds)
    assert not found.is_steep, f"{kind}: {found}"


def test_a_form_has_no_more_than_a_thousand_parts() -> None:
    with pytest.raises(MultipartError):
        read_form(HOSTILE_FORMS["parts"](1_100), FORM)
    assert len(read_form(HOSTILE_FORMS["parts"](900), FORM)) == 900


# ── invented token counts ──


@pytest.mark.parametrize("count", ["-5", "true", "1e3", '"7"', "9" * 400])
def test_impossible_counts_are_ignored(count: str) -> None:
    reader = UsageReader()
    reader.feed(b'{"usage":{"input_tokens":%b,"output_tokens":2}}' % count.encode())
    usage = reader.usage()
    assert usage is None or (usage.input, usage.output) == (0, 2)


def test_nested_token_counts_are_parsed_in_linear_time() -> None:
    def prepare(n: int) -> Callable[[], object]:
        def read() -> object:
            reader = UsageReader()
            reader.feed(b'"usage":{' * n)
            return reader.usage()

        return read

    assert not growth(prepare, 100, 1_700, cpu_seconds).is_steep


class Files(ScriptedUpstream):
    """Returns a file whose content looks like token counts."""

    def _choose(self, line: str, _body: bytes) -> Reply:
        if "/content" in line:
            return reply(b'{"usage":{"input_tokens":-1000000,"output_tokens":5}}')
        return reply({"id": "file-1", "object": "file", "usage": {"input_tokens": 9, "output_tokens": 9}})


@pytest.fixture(scope="module")
def files() -> Iterator[Files]:
    server = Files()
    yield server
    server.close()


@pytest.fixture(scope="module")
def gateway(files: Files) -> Iterator[RunningGateway]:
    tables = files.table("openai", "openai-chat") + files.table("anthropic", "anthropic")
    with RunningGateway(configured(tables)) as running:
        yield running


def test_token_counts_in_the_content_of_a_file_are_ignored(gateway: RunningGateway) -> None:
    assert send(gateway.url, "/v1/files/file-1/content", method="GET").status == 200
    assert "dragoman_tokens_total{" not in send(gateway.url, "/metrics", method="GET").body.decode()


# ── addresses ──


@pytest.mark.parametrize("path", ["/v1/files/..", "/v1/files/../content", "/v1/files/.", "/v1/fine_tuning/jobs/.."])
def test_ids_lead_to_no_other_folder(gateway: RunningGateway, files: Files, path: str) -> None:
    count_before = len(files.heads)
    assert send(gateway.url, path, method="GET").status == 404
    assert len(files.heads) == count_before


@pytest.mark.parametrize("host", ['a"b', r"a\g<9>", r"a\1", "a b", "a/b?c"])
def test_an_invalid_host_is_replaced_by_localhost(host: str) -> None:
    from dragoman.gateway.batch_formats import address_of  # noqa: PLC0415

    assert address_of(Head("GET", "/", "", {"host": host, "x-forwarded-proto": "javascript"})) == "http://localhost"
    assert address_of(Head("GET", "/", "", {"host": "[::1]:8", "x-forwarded-proto": "https"})) == "https://[::1]:8"


# ── files that the gateway stores itself ──

HERE = {"x-dragoman-provider": "dragoman"}
HUGE = "9" * 5_000


def test_long_numbers_in_headers_and_queries_are_answered(gateway: RunningGateway) -> None:
    assert send(gateway.url, f"/v1/batches?limit={HUGE}", headers=HERE, method="GET").status == 200
    start = {**HERE, "x-goog-upload-header-content-length": HUGE, "x-goog-upload-command": "start"}
    assert send(gateway.url, "/upload/v1beta/files", {"file": {}}, headers=start).status == 200


def test_chunks_of_an_upload_must_be_large(gateway: RunningGateway) -> None:
    start = send(gateway.url, "/upload/v1beta/files", {"file": {}}, headers={**HERE, "x-goog-upload-command": "start"})
    path = start.headers["x-goog-upload-url"].partition(gateway.url)[2]
    piece = {"x-goog-upload-command": "upload", "x-goog-upload-offset": "0"}
    assert send(gateway.url, path, b"x", headers=piece).status == 400
    size = int(start.headers["x-goog-upload-chunk-granularity"])
    assert send(gateway.url, path, b"x" * size, headers=piece).status == 200
    state = send(gateway.url, path, b"", headers={**piece, "x-goog-upload-command": "query"} | _at(size))
    assert state.headers["x-goog-upload-size-received"] == str(size)
    last = send(gateway.url, path, b"yz", headers={"x-goog-upload-command": "upload, finalize"} | _at(size))
    assert last.json["file"]["sizeBytes"] == str(size + 2)


def _at(offset: int) -> dict[str, str]:
    return {"x-goog-upload-offset": str(offset)}


def test_descriptions_count_towards_the_storage_limit(files: Files) -> None:
    table = files.table("own", "openai-compatible")
    with RunningGateway(configured(f"[server]\nbatch_bytes = 5000\n{table}")) as small:
        statuses = []
        for _ in range(4):
            body = {"file": {"displayName": "x" * 2_000}}
            statuses.append(send(small.url, "/upload/v1beta/files", body, headers=HERE).status)
    assert statuses[0] == 200
    assert statuses[-1] == 413


def test_files_that_arrive_together_do_not_exceed_the_storage_limit(files: Files, tmp_path: Path) -> None:
    """Each alone would fit."""
    form = b'--a\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nbatch\r\n--a\r\n'
    form += FIELD + b'; filename="f"\r\n\r\n' + b"x" * 600_000 + b"\r\n--a--\r\n"
    table = f'[server]\ndatabase = "{tmp_path / "gateway.db"}"\nbatch_bytes = 1000000\n'
    with (
        RunningGateway(configured(table + files.table("own", "openai-compatible"))) as small,
        ThreadPoolExecutor(30) as clients,
    ):
        headers = {**HERE, "content-type": FORM}
        made = list(clients.map(lambda _: send(small.url, "/v1/files", form, headers).status, range(30)))
        assert sorted(made) == [200] + [413] * 29
        (stored,) = send(small.url, "/v1/files", headers=HERE, method="GET").json["data"]
    assert stored["bytes"] == 600_000


def test_of_equal_chunks_of_an_upload_that_arrive_together_one_is_taken(gateway: RunningGateway) -> None:
    start = send(gateway.url, "/upload/v1beta/files", {"file": {}}, headers={**HERE, "x-goog-upload-command": "start"})
    path = start.headers["x-goog-upload-url"].partition(gateway.url)[2]
    piece = {"x-goog-upload-command": "upload", "x-goog-upload-offset": "0"}
    with ThreadPoolExecutor(8) as clients:
        taken = list(clients.map(lambda _: send(gateway.url, path, b"x" * (1 << 20), headers=piece).status, range(8)))
    assert sorted(taken) == [200] + [400] * 7


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_stored_files_are_sent_completely_in_chunks(
    files: Files, database: str, request: pytest.FixtureRequest
) -> None:
    server: Postgres | None = request.getfixturevalue("postgres_server") if database == "postgres" else None
    address = "" if server is None else f'[server]\ndatabase = "{server.fresh()}"\n'
    content = bytes(range(256)) * 10_000
    form = b'--a\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nbatch\r\n--a\r\n'
    form += b'content-disposition: form-data; name="file"; filename="f"\r\n\r\n' + content + b"\r\n--a--\r\n"
    with RunningGateway(configured(address + files.table("own", "openai-compatible"))) as running:
        made = send(running.url, "/v1/files", form, headers={**HERE, "content-type": FORM})
        fetched = send(running.url, f"/v1/files/{made.json['id']}/content", method="GET")
    assert fetched.body == content
    assert fetched.headers.get("transfer-encoding") == "chunked"


def test_creating_a_file_counts_as_a_request(files: Files, tmp_path: Path) -> None:
    address = str(tmp_path / "gateway.db")
    create(address, key("slow", requests_per_minute=2))
    table = files.table("own", "openai-compatible")
    headers = {**HERE, "authorization": "Bearer k-slow"}
    with RunningGateway(configured(f'[server]\ndatabase = "{address}"\n{table}')) as limited:
        statuses = [send(limited.url, "/upload/v1beta/files", {}, headers=headers).status for _ in range(3)]
        looked = [send(limited.url, "/v1/batches", headers=headers, method="GET").status for _ in range(3)]
    assert statuses == [200, 200, 429]
    assert looked == [200, 200, 200]


@pytest.mark.parametrize(
    "body", [b'{"items":' + b"[" * 5_000, b'{"metadata":{"a":"\xff"}}', b'{"items":[{"a":' + b"[" * 3_000]
)
def test_invalid_conversations_are_refused(gateway: RunningGateway, body: bytes) -> None:
    assert send(gateway.url, "/v1/conversations", body).status == 400


def test_the_size_of_a_history_is_limited(gateway: RunningGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("responses_endpoints", "stored_responses"):
        monkeypatch.setattr(f"dragoman.gateway.{module}.LARGEST_HISTORY", 10_000)
    made = send(gateway.url, "/v1/conversations", {}).json["id"]
    items = {"items": [{"type": "message", "role": "user", "content": "x" * 4_000}]}
    statuses = [send(gateway.url, f"/v1/conversations/{made}/items", items).status for _ in range(4)]
    assert statuses == [200, 200, 413, 413]


# ── WebSockets ──


def opened(sock: socket.socket) -> None:
    head = "GET /v1/responses HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
    sock.sendall(f"{head}sec-websocket-version: 13\r\nsec-websocket-key: {'A' * 22}==\r\n\r\n".encode())
    assert sock.recv(4_000).startswith(b"HTTP/1.1 101")


def frame(data: bytes, *, opcode: int = 1, last: bool = True) -> bytes:
    """Return a frame, masked (with zeros) as those of clients must be."""
    size = bytes([0x80 | len(data)]) if len(data) < 126 else bytes([0x80 | 126]) + len(data).to_bytes(2, "big")
    return bytes([(0x80 if last else 0) | opcode]) + size + bytes(4) + data


@pytest.mark.parametrize("noise", [frame(b"nothing of this API"), frame(b"x" * 100, opcode=9)])
def test_answers_for_a_client_that_does_not_read_are_bounded(gateway: RunningGateway, noise: bytes) -> None:
    with connected(gateway.url) as sock:
        opened(sock)
        sock.settimeout(2.0)
        sent, block = 0, noise * 2_000
        with suppress(TimeoutError):
            while sent < 60 << 20:
                sock.sendall(block)
                sent += len(block)
    assert sent < 60 << 20
    assert send(gateway.url, "/health", method="GET").status == 200


def test_the_number_of_unfinished_turns_is_limited(files: Files) -> None:
    files_slow = files.table("own", "openai-compatible")
    turn = frame(b'{"type":"response.create","model":"own/m","input":"hi"}')
    with RunningGateway(configured(files_slow)) as running, connected(running.url) as sock:
        opened(sock)
        sock.sendall(turn * 300)
        received = b""
        while b"at most 100 responses" not in received and len(received) < 10 << 20:
            received += sock.recv(1 << 16)
    assert b"at most 100 responses" in received


def test_a_message_may_arrive_in_frames_of_one_byte_and_empty_ones(gateway: RunningGateway) -> None:
    with connected(gateway.url) as sock:
        opened(sock)
        words = b'{"type":"response.unknown"}'
        pieces = [frame(words[:1], last=False), *(frame(bytes([one]), opcode=0, last=False) for one in words[1:])]
        empty = frame(b"", opcode=0, last=False)
        sock.sendall(empty.join(pieces) + empty * 1_000 + frame(b"", opcode=0))
        assert b"Unknown event type: 'response.unknown'" in sock.recv(4_000)


@pytest.mark.parametrize("odd", ["a{}!", "{}!", "a={}1!", "{},", "a,{}!"])
def test_directives_are_read_in_linear_time(odd: str) -> None:
    def prepare(n: int) -> Callable[[], object]:
        header = odd.format(" " * n)
        return lambda: directives(header)

    assert not growth(prepare, 1_000, 30_000, cpu_seconds).is_steep


# ── MCP ──


def test_mcp_messages_are_limited_and_streams_are_refused() -> None:
    headers = {"accept": "application/json, text/event-stream"}
    with RunningGateway(configured("[mcp]\nserve = true\n")) as running:
        assert send(running.url, "/mcp", headers=headers, method="GET").status == 405
        assert send(running.url, "/mcp", b"x" * (5 << 20), headers=headers).status == 413
        assert send(running.url, "/mcp", b"[" * 100_000, headers=headers).status == 400
        arguments = {"model": "m", "prompt": "p", "max_output_tokens": "many"}
        call = {"name": "ask_model", "arguments": arguments}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        assert send(running.url, "/mcp", message, headers=headers).json["result"]["isError"]


# ── names ──


def test_long_names_of_headers_are_not_remembered() -> None:
    before = len(known_names)
    assert header_name(b"X" * 5_000) == "x" * 5_000
    collect_headers([(b"Y" * 5_000, b"1")])
    assert len(known_names) == before
