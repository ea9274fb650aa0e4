"""Bodies that name one model for the gateway and another for the upstream: a key must not reach the second one."""

import asyncio
import json
from collections.abc import Iterator

import aiohttp
import httpx
import pytest

from dragoman.multipart import MultipartError, find_field
from tests.gateway.running import RunningGateway, configured, send
from tests.gateway.scripted_upstream import ScriptedUpstream, reply, scripted
from tests.gateway.test_keys import create, key
from tests.support.costs import cpu_seconds, growth
from tests.support.promises import promise

pytestmark = promise("gateway:key-models", "gateway:attacks")

TYPE = "multipart/form-data; boundary=b"
END = "--b--\r\n"


def part(disposition: str, value: str) -> str:
    return f"--b\r\ncontent-disposition: {disposition}\r\n\r\n{value}\r\n"


def field(value: str, name: str = "model") -> str:
    return part(f'form-data; name="{name}"', value)


SMALL, LARGE = field("small"), field("large")
FILE = part('form-data; name="file"; filename="a.wav"', "x")
HIDDEN = (
    "form-data; name='model'",
    'form-data; name = "model"',
    "form-data; name*=utf-8''model",
    'form-data; name="mod\\el"',
    'form-data; name="%6dodel"',
    'form-data;\r\n name="model"',
    'form-data; name="x"; name="model"',
    'form-data; name="x"; filename="y\\"; name="model"',
    'form-data; name="model"; filename="y"',
    'attachment; name="model"',
    'form-data; name="x"\r\ncontent-disposition: form-data; name="model"',
)
FORMS: dict[str, tuple[str, str]] = {
    "two fields": (SMALL + LARGE + END, TYPE),
    "another case": (SMALL + field("large", "Model") + END, TYPE),
    "a delimiter within a line": (part('form-data; name="file"', f"x{SMALL}--bx") + LARGE + END, TYPE),
    "bare line feeds": (SMALL + LARGE.replace("\r\n", "\n") + END, TYPE),
    "a part before the first": ("x\r\n" + LARGE + SMALL + END, TYPE),
    "a form after the end": (SMALL + END + LARGE + END, TYPE),
    "no end": (SMALL + LARGE, TYPE),
    "a long head": (SMALL + part(f'form-data; name="x"\r\nx: {"y" * 20_000}', "1") + END, TYPE),
    "two boundaries": (SMALL + END, f"{TYPE}; boundary=c"),
    "another parameter": (SMALL + END, "multipart/form-data; xboundary=c; boundary=b"),
    "another kind": (SMALL + END, "multipart/mixed; boundary=b"),
    "no boundary": (SMALL + END, "multipart/form-data"),
    **{f"hidden: {one!r}": (SMALL + part(one, "large") + END, TYPE) for one in HIDDEN},
}
BODIES = {
    "twice": '{"model":"large","model":"small"}',
    "twice, the other way": '{"model":"small","model":"large"}',
    "another case": '{"model":"small","Model":"large"}',
    "escaped": '{"mod\\u0065l":"large","model":"small"}',
    "in capitals, escaped": '{"\\u004dodel":"large","model":"small"}',
}


@pytest.fixture(scope="module")
def upstream() -> Iterator[ScriptedUpstream]:
    with scripted(reply({"text": "ok"})) as running:
        yield running


@pytest.fixture(scope="module")
def gateway(upstream: ScriptedUpstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    address = str(tmp_path_factory.mktemp("keys") / "gateway.db")
    create(address, key("ada", models=["small"]))
    routes = '[routes.small]\nto = "p/small"\n[routes.large]\nto = "p/large"\n'
    text = f'[server]\ndatabase = "{address}"\n{upstream.table("p", "openai")}{routes}'
    with RunningGateway(configured(text)) as running:
        yield running


def status(gateway: RunningGateway, path: str, body: str, content_type: str) -> int:
    return send(gateway.url, path, body.encode(), {"x-api-key": "k-ada", "content-type": content_type}).status


@pytest.mark.parametrize("name", FORMS)
def test_forms_that_can_be_read_in_two_ways_are_refused(
    gateway: RunningGateway, upstream: ScriptedUpstream, name: str
) -> None:
    before = upstream.count
    assert status(gateway, "/v1/audio/transcriptions", *FORMS[name]) == 400
    assert upstream.count == before


@pytest.mark.parametrize(
    "body", [SMALL + FILE + END, FILE + SMALL + END[:-2], "\r\n" + SMALL.replace('"model"', "model") + FILE + END]
)
def test_unambiguous_forms_pass_unchanged(gateway: RunningGateway, upstream: ScriptedUpstream, body: str) -> None:
    assert status(gateway, "/v1/audio/transcriptions", body, TYPE) == 200
    assert upstream.bodies[-1] == body.encode()
    assert status(gateway, "/v1/audio/transcriptions", body.replace("small", "large"), TYPE) == 404


@pytest.mark.parametrize("path", ["/v1/images/generations", "/v1/embeddings", "/v1/chat/completions"])
@pytest.mark.parametrize("name", BODIES)
def test_keys_of_json_that_are_given_twice_are_refused(
    gateway: RunningGateway, upstream: ScriptedUpstream, name: str, path: str
) -> None:
    rest = ',"prompt":"x","input":"x","messages":[{"role":"user","content":"\\"model\\" {"}]}'
    before = upstream.count
    assert status(gateway, path, BODIES[name][:-1] + rest, "application/json") in {400, 404}
    assert upstream.count == before


def test_the_word_may_stand_elsewhere(gateway: RunningGateway) -> None:
    schema = {"type": "object", "properties": {"model": {"type": "string"}}, "required": ["model"]}
    tool = {"type": "function", "function": {"name": "f", "parameters": schema}}
    body = {"messages": [{"role": "user", "content": "model"}], "tools": [tool], "user": "model", "model": "small"}
    assert status(gateway, "/v1/chat/completions", json.dumps(body), "application/json") == 200


def test_forms_of_real_clients_are_read() -> None:
    """Whatever headers they add, and however they name files."""
    names = ("a.wav", 'quo"te.wav', "C:\\a.wav", "ü.wav", "a;name=model.wav")
    for name in names:
        request = httpx.Request(
            "POST", "http://x", data={"model": "small", "n": "1"}, files={"file": (name, b"\r\n--")}
        )
        place = find_field(request.read(), request.headers["content-type"], "model")
        assert place is not None
        assert request.content[slice(*place)] == b"small"

    async def written(name: str) -> tuple[bytes, str]:
        form = aiohttp.FormData()
        form.add_field("file", b"x", filename=name, content_type="audio/wav")
        form.add_field("model", "small")
        payload = form()
        return bytes(await payload.as_bytes()), payload.headers["content-type"]

    for name in names:
        body, kind = asyncio.run(written(name))
        place = find_field(body, kind, "model")
        assert place is not None
        assert body[slice(*place)] == b"small"


def test_fields_are_found_in_linear_time() -> None:
    many = {
        "parts": lambda n: (FILE * n + END).encode(),
        "delimiters": lambda n: b"--b" * n,
        "lines": lambda n: part('form-data; name="x"' + "\r\nx: y" * n, "1").encode() + END.encode(),
        "quotes": lambda n: part('form-data; name="x"; filename="' + "\\\\" * n, "1").encode() + END.encode(),
    }
    for name, made in many.items():

        def prepare(n: int, made: object = made) -> object:
            body = made(n)  # type: ignore[operator]

            def read() -> None:
                try:
                    find_field(body, TYPE, "model")
                except MultipartError:
                    return

            return read

        found = growth(prepare, 200, 20_000, cpu_seconds)  # type: ignore[arg-type]
        assert not found.is_steep, f"{name}: {found}"
