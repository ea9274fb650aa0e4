"""Endpoints whose bytes pass unchanged: the choice of the upstream, keys, and the error if no upstream has them."""

import io
import re
from collections.abc import Iterator

import anthropic
import cohere
import httpx
import openai
import pytest
from google import genai
from google.genai import types
from openai import AzureOpenAI, OpenAI

from dragoman.errors import DecodeError
from dragoman.gateway.endpoints import match_endpoint
from dragoman.gateway.http_request import Head
from dragoman.gateway.pass_through import UsageReader, model_in, with_routed_model
from dragoman.gateway.passed_endpoints import PASSED
from tests.gateway.running import RunningGateway, configured, send
from tests.gateway.scripted_upstream import Reply, ScriptedUpstream, reply
from tests.support.promises import promise

pytestmark = promise("gateway:pass-through")

SOUND = bytes(range(256)) * 700  # more than one read
KEYS = ("first-key-of-a-client", "other-key-of-a-client")
USAGE = {"input_tokens": 7, "output_tokens": 11, "total_tokens": 18}


class Everything(ScriptedUpstream):
    """Serves all the endpoints, each with a different answer; created objects are numbered."""

    made = 0

    def _choose(self, line: str, _body: bytes) -> Reply:
        method, target, _ = line.split(" ")
        path = target.partition("?")[0]
        if path.endswith(("/content", "/audio/speech")):
            kind = {"content-type": "audio/mpeg", "content-disposition": 'attachment; filename="a.mp3"'}
            return reply(SOUND, headers=kind)
        if method == "POST" and path.endswith(("/files", "/fine_tuning/jobs", "/cachedContents")):
            return self._create(path, self.heads[-1])
        if method == "GET" and path.endswith(("/files", "/fine_tuning/jobs")):
            data = [{"id": f"thing-{number}", "object": "file"} for number in range(1, self.made + 1)]
            return reply({"object": "list", "data": data, "has_more": False})
        if method == "GET" and path.endswith("/cachedContents"):
            return reply({"cachedContents": [{"name": f"cachedContents/{n}"} for n in range(1, self.made + 1)]})
        if path.endswith("/rerank"):
            return reply({"id": "r", "results": [{"index": 1, "relevance_score": 0.9}], "meta": {"billed_units": {}}})
        if path.endswith("/broken"):
            return reply({"error": {"message": "no such thing"}}, "404 Not Found")
        return reply({"created": 1, "text": "said", "data": [{"b64_json": "aGk="}], "results": [], "usage": USAGE})

    def _create(self, path: str, head: str) -> Reply:
        if "upload-command: start" in head.lower():
            return reply({}, headers={"x-goog-upload-url": f"{self.url}{path}?upload_id=u1"})
        self.made += 1
        if "cachedContents" in path:
            return reply({"name": f"cachedContents/{self.made}", "model": "models/m"})
        if path.startswith("/upload"):
            named = {"name": f"files/{self.made}", "mimeType": "text/plain", "sizeBytes": "2", "state": "ACTIVE"}
            return reply({"file": named}, headers={"x-goog-upload-status": "final"})
        return reply({"id": f"thing-{self.made}", "type": "file", "object": "file", "bytes": 2, "usage": None})


@pytest.fixture(scope="module")
def upstream() -> Iterator[Everything]:
    server = Everything()
    yield server
    server.close()


def table(server: ScriptedUpstream) -> str:
    kinds = {"openai": "openai-chat", "cohere": "cohere", "anthropic": "anthropic", "gemini": "gemini"}
    tables = [server.table(name, kind) for name, kind in kinds.items()]
    routes = '[routes.voice]\nto = "openai/tts-1"\n[routes.listen]\nto = "openai/whisper-1"\n'
    return "\n".join([*tables, routes])


@pytest.fixture(scope="module")
def open_gateway(upstream: Everything) -> Iterator[RunningGateway]:
    with RunningGateway(configured(table(upstream))) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def keyed_gateway(upstream: Everything) -> Iterator[RunningGateway]:
    keys = f"[server]\nkeys = {list(KEYS)}\n"
    with RunningGateway(configured(keys.replace("'", '"') + table(upstream))) as gateway:
        yield gateway


def client(gateway: RunningGateway, key: str = KEYS[0]) -> OpenAI:
    return OpenAI(base_url=f"{gateway.url}/v1", api_key=key, max_retries=0)


def header(head: str, name: str) -> str | None:
    found = re.search(rf"^{name}: (.*)$", head, re.IGNORECASE | re.MULTILINE)
    return found[1] if found else None


# ── unchanged bytes ──


def test_bodies_pass_unchanged_in_both_directions(open_gateway: RunningGateway, upstream: Everything) -> None:
    body = b'{ "model":"tts-1",\t"input": "h\\u00e9", "voice":"alloy", "unknown": 1e2 }'
    answer = send(open_gateway.url, "/v1/audio/speech", body)
    assert (answer.status, answer.body) == (200, SOUND)
    assert answer.headers["content-disposition"] == 'attachment; filename="a.mp3"'
    assert answer.headers["content-type"] == "audio/mpeg"
    assert answer.headers["x-dragoman-upstream"] == "openai/tts-1"
    assert upstream.bodies[-1] == body
    assert upstream.heads[-1].startswith("POST /audio/speech HTTP/1.1")


def test_only_the_name_of_a_routed_model_is_replaced(open_gateway: RunningGateway, upstream: Everything) -> None:
    send(open_gateway.url, "/v1/audio/speech", b'{"input":"voice", "model" : "voice","voice":"x"}')
    assert upstream.bodies[-1] == b'{"input":"voice", "model" : "tts-1","voice":"x"}'
    form = httpx.Request(
        "POST", "http://x/", data={"language": "model", "model": "listen"}, files={"file": ("model.wav", SOUND)}
    )
    body, kind = form.read(), form.headers["content-type"]
    assert send(open_gateway.url, "/v1/audio/transcriptions", body, {"content-type": kind}).status == 200
    assert upstream.bodies[-1] == body.replace(b"\r\n\r\nlisten\r\n", b"\r\n\r\nwhisper-1\r\n")
    assert header(upstream.heads[-1], "content-type") == kind


def test_no_key_of_a_client_reaches_an_upstream(keyed_gateway: RunningGateway, upstream: Everything) -> None:
    for headers, query in (
        ({"authorization": f"Bearer {KEYS[0]}"}, ""),
        ({"x-api-key": KEYS[0], "cookie": "session=1"}, ""),
        ({}, f"?key={KEYS[0]}&limit=3"),
    ):
        answer = send(keyed_gateway.url, f"/v1/files{query}", None, headers, method="GET")
        assert answer.status == 200
        assert KEYS[0] not in upstream.heads[-1]
        assert "session=1" not in upstream.heads[-1]
        assert "upstream-key" in upstream.heads[-1]
    assert "?limit=3" in upstream.heads[-1]
    before = upstream.count
    refused = send(keyed_gateway.url, "/v1/images/generations", {"prompt": "x", "model": "gpt-image-1"})
    assert refused.status == 401
    assert upstream.count == before


def test_an_error_of_the_upstream_passes_unchanged(open_gateway: RunningGateway) -> None:
    answer = send(open_gateway.url, "/v1/files/broken", None, method="GET")
    assert (answer.status, answer.json) == (404, {"error": {"message": "no such thing"}})


def test_a_body_beyond_the_limit_is_not_forwarded(upstream: Everything) -> None:
    text = f"[server]\nmax_body = 1000\n{table(upstream)}"
    with RunningGateway(configured(text)) as gateway:
        before = upstream.count
        answer = send(gateway.url, "/v1/files", b"x" * 2000, {"content-type": "multipart/form-data; boundary=b"})
        assert answer.status == 413
        assert upstream.count == before


# ── the vendors' clients ──


def test_openais_client(open_gateway: RunningGateway, upstream: Everything) -> None:
    with client(open_gateway) as openai_client:
        assert openai_client.images.generate(model="gpt-image-1", prompt="x").data[0].b64_json == "aGk="  # type: ignore[index]
        assert openai_client.images.edit(model="gpt-image-1", prompt="x", image=io.BytesIO(b"png")).created == 1
        assert openai_client.audio.speech.create(model="voice", input="x", voice="alloy").read() == SOUND
        transcript = openai_client.audio.transcriptions.create(model="listen", file=("a.wav", SOUND))
        assert transcript.text == "said"
        assert b'"model"\r\n\r\nwhisper-1' in upstream.bodies[-1]
        assert openai_client.moderations.create(input="x").results == []
        file = openai_client.files.create(file=("a.txt", b"hi"), purpose="user_data")
        assert openai_client.files.content(file.id).read() == SOUND
        job = openai_client.fine_tuning.jobs.create(model="gpt-4.1-mini", training_file=file.id)
        openai_client.fine_tuning.jobs.retrieve(job.id)
    with AzureOpenAI(azure_endpoint=open_gateway.url, api_key="any", api_version="2025-01-01") as azure:
        assert azure.audio.transcriptions.create(model="listen", file=("a.wav", SOUND)).text == "said"


def test_coheres_client_reranks(open_gateway: RunningGateway) -> None:
    found = cohere.ClientV2(api_key="any", base_url=open_gateway.url).rerank(
        model="rerank-v4", query="q", documents=["a", "b"]
    )
    assert found.results[0].index == 1


def test_anthropics_client_uses_files(open_gateway: RunningGateway, upstream: Everything) -> None:
    with anthropic.Anthropic(base_url=open_gateway.url, api_key="any", max_retries=0) as messages:
        file = messages.beta.files.upload(file=("a.txt", b"hi", "text/plain"))
        assert header(upstream.heads[-1], "x-api-key") == "upstream-key"
        assert messages.beta.files.download(file.id).read() == SOUND


def test_googles_client_caches_contents_and_uploads(keyed_gateway: RunningGateway, upstream: Everything) -> None:
    google = genai.Client(api_key=KEYS[0], http_options=types.HttpOptions(base_url=keyed_gateway.url))
    config = types.CreateCachedContentConfig(contents="long text")
    cached = google.caches.create(model="gemini-3.8-flash", config=config)
    google.caches.get(name=cached.name or "")
    file = google.files.upload(file=io.BytesIO(b"hi"), config={"mime_type": "text/plain"})
    assert upstream.bodies[-1] == b"hi"
    assert KEYS[0] not in upstream.heads[-1]
    assert header(upstream.heads[-1], "x-goog-api-key") == "upstream-key"
    google.files.get(name=file.name or "")


# ── ownership ──


def test_stored_objects_are_visible_only_to_the_key_that_created_them(keyed_gateway: RunningGateway) -> None:
    with client(keyed_gateway, KEYS[0]) as first, client(keyed_gateway, KEYS[1]) as other:
        mine = first.files.create(file=("a.txt", b"hi"), purpose="user_data")
        theirs = other.files.create(file=("a.txt", b"hi"), purpose="user_data")
        assert theirs.id in {one.id for one in other.files.list()}
        assert mine.id not in {one.id for one in other.files.list()}
        assert first.files.content(mine.id).read() == SOUND
        for ask in (other.files.content, other.files.retrieve, other.files.delete):
            with pytest.raises(openai.NotFoundError):
                ask(mine.id)


# ── metered ──


def test_passed_requests_are_logged_and_counted(upstream: Everything) -> None:
    prices = '[prices."gpt-image-1"]\ninput = 1000000\noutput = 1000000\n'
    with RunningGateway(configured(table(upstream) + prices)) as gateway:
        send(gateway.url, "/v1/images/generations", {"model": "gpt-image-1", "prompt": "x"})
        (line,) = gateway.requests(1)
        assert line["operation"] == "pass"
        assert (line["model"], line["upstream"], line["tokens"]["input"], line["cost"]) == (
            "gpt-image-1",
            "openai",
            7,
            18,
        )
        metrics = send(gateway.url, "/metrics", None, method="GET").body.decode()
    assert 'dragoman_tokens_total{upstream="openai",kind="output"} 11' in metrics


@pytest.mark.parametrize(
    ("answer", "counted"),
    [
        (b'{"data":[],"usage":{"input_tokens":1,"output_tokens":2}}', (1, 2)),
        (b'{"usage":{"total_tokens":5}}', (5, 0)),
        (b'{"meta":{"billed_units":{"input_tokens":3}}}', (3, 0)),
        (
            b'data: {"usage":null}\n\ndata: {"b64_json":"'
            + b"x" * 40_000
            + b'","usage":{"input_tokens":4,"output_tokens":0}}\n\n',
            (4, 0),
        ),
        (SOUND, None),
        (b'{"usage":{"input_tokens":1', None),
    ],
)
def test_token_counts_are_found_at_the_end_of_any_answer(answer: bytes, counted: tuple[int, int] | None) -> None:
    for size in (997, len(answer)):
        reader = UsageReader()
        for start in range(0, len(answer), size):
            reader.feed(answer[start : start + size])
        usage = reader.usage()
        assert (None if usage is None else (usage.input, usage.output)) == counted


# ── no provider ──


def examples() -> dict[str, str]:
    """Return a path for each row, made from its pattern."""
    found = {}
    for row in PASSED:
        text = row.path.pattern
        if text.endswith(":batchGenerateContent)"):  # names a model, and without providers there is none
            continue
        for old, new in (
            (r"(?:(?:/openai)?(?:/v1)?|/openai/deployments/(?P<model>[^/]+))", "/v1"),
            (r"(?:/openai)?(?:/v1)?", "/v1"),
            (r"(?P<version>/v1(?:beta1)?)/(?:projects/[^/]+/locations/[^/]+)", "/v1/projects/p/locations/l"),
            (r"/v1(?:beta|alpha)?", "/v1beta"),
            (r"(?P<id>[\w-][\w.-]*)", "an-id"),
            (r"(?P<id>[\w-]+)", "an-id"),
        ):
            text = text.replace(old, new)
        text = re.sub(r"\(\?:(\w+)\|[^)]*\)", r"\1", text).replace("(?P<path>", "").replace(")", "")
        found[f"{row.method} {text} {row.format}"] = row.name
    return found


@pytest.mark.parametrize("place", examples())
def test_without_an_upstream_a_501_names_those_that_have_it(alone: RunningGateway, place: str) -> None:
    method, path, format = place.split(" ")
    headers = {"anthropic-version": "2023-06-01"} if format == "anthropic-messages" else {}
    assert match_endpoint(Head(method, path, "", headers)).format == format
    answer = send(alone.url, path, b"" if method != "POST" else b"{}", headers, method=method)
    assert answer.status == 501, answer.body
    row = next(row for row in PASSED if row.method == method and row.format == format and row.path.fullmatch(path))
    assert f"These providers have it: {', '.join(row.providers)}" in answer.body.decode()
    assert answer.headers["x-should-retry"] == "false"


@pytest.fixture(scope="module")
def alone(upstream: Everything) -> Iterator[RunningGateway]:
    """A gateway that runs no batches itself, whose only provider has none of these endpoints."""
    table = upstream.table("bedrock", "bedrock", 'region = "us-east-1"')
    with RunningGateway(configured(f"[server]\nbatch_concurrency = 0\n{table}")) as gateway:
        yield gateway


def test_sdks_understand_the_501(open_gateway: RunningGateway, alone: RunningGateway) -> None:
    with client(open_gateway) as sdk, pytest.raises(openai.InternalServerError, match="anthropic has no endpoint"):
        sdk.moderations.create(input="x", model="anthropic/claude-sonnet-5")
    with client(alone) as sdk, pytest.raises(openai.InternalServerError) as raised:
        sdk.with_options(max_retries=5).images.generate(prompt="x", model="bedrock/m")
    assert raised.value.status_code == 501
    assert len([line for line in alone.log.lines if line.get("model") == "bedrock/m"]) <= 1


def test_a_header_selects_the_provider_of_requests_without_a_model(
    open_gateway: RunningGateway, upstream: Everything
) -> None:
    answer = send(open_gateway.url, "/v1/files", None, {"x-dragoman-provider": "openai"}, method="GET")
    assert answer.headers["x-dragoman-upstream"] == "openai"
    assert header(upstream.heads[-1], "x-dragoman-provider") is None
    unknown = send(open_gateway.url, "/v1/files", None, {"x-dragoman-provider": "nobody"}, method="GET")
    assert unknown.status == 501


def test_another_method_is_a_405(open_gateway: RunningGateway) -> None:
    assert send(open_gateway.url, "/v1/moderations", None, method="DELETE").status == 405


# ── forms ──


@pytest.mark.parametrize("quoted", [False, True])
def test_the_model_field_is_found_in_any_form(*, quoted: bool) -> None:
    name = '"model"' if quoted else "model"
    parts = [("file", 'name="file"; filename="model"', b"\r\nmodel\r\n"), ("model", f"name={name}", b"whisper")]
    for order in (parts, parts[::-1]):
        body = b"".join(
            b"--b\r\nContent-Disposition: form-data; %b\r\n\r\n%b\r\n" % (value.encode(), content)
            for _, value, content in order
        )
        body += b"--b--\r\n"
        head = Head("POST", "/", "", {"content-type": "multipart/form-data; boundary=b"})
        assert model_in(body, head) == "whisper"
        assert with_routed_model(body, head, "whisper", "other") == body.replace(b"whisper", b"other")


def test_a_form_that_names_no_model() -> None:
    head = Head("POST", "/", "", {"content-type": "multipart/form-data; boundary=b"})
    for body in (b"--b--", b'--b\r\ncontent-disposition: form-data; name="x"\r\n\r\nx\r\n--b--\r\n'):
        assert model_in(body, head) == ""
        assert with_routed_model(body, head, "a", "b") == body
    for body in (b"", b"--b", b'--b\r\ncontent-disposition: form-data; name="model"\r\n\r\nx'):
        with pytest.raises(DecodeError):  # an upstream might find a model in it
            model_in(body, head)
