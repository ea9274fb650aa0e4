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


FURTHER: dict[str, object] = {
    "fallbacks of OpenRouter": {"models": ["large"]},
    "fallbacks of Anthropic": {"fallbacks": [{"model": "large"}]},
    "fallbacks that the vendor chooses": {"fallbacks": "default"},
    "fallbacks of others": {"fallback_models": ["large"]},
    "in capitals": {"Models": ["large"]},
    "an advisor of Anthropic": {"tools": [{"type": "advisor_20260301", "name": "advisor", "model": "large"}]},
    "an advisor of OpenRouter": {"tools": [{"type": "openrouter:advisor", "parameters": {"model": "large"}}]},
    "several of OpenRouter": {"tools": [1, {"type": "openrouter:fusion", "parameters": {"models": ["large"]}}]},
    "images of OpenAI": {"tools": [{"type": "image_generation", "model": "large"}]},
    "a plugin": {"plugins": [{"id": "web", "Model": "large"}]},
}
ADVISOR = '[{"type":"advisor_20260301","name":"advisor","model":"large"}]'
TWICE = (f'"tools":{ADVISOR},"tools":[]', f'"tool\\u0073":{ADVISOR},"tool\\u0073":[]', '"models":["large"],"models":[]')
CLIENTS = {
    "/v1/chat/completions": '{"model":"small","max_tokens":9,"messages":[{"role":"user","content":"x"}]',
    "/v1/messages": '{"model":"small","max_tokens":9,"messages":[{"role":"user","content":"x"}]',
    "/v1/responses": '{"model":"small","input":"x"',
}


@pytest.fixture(scope="module")
def upstream() -> Iterator[ScriptedUpstream]:
    answers = {"text": "ok", "choices": [{"message": {"role": "assistant", "content": "ok"}}], "output": [], "data": []}
    with scripted(reply(answers)) as running:
        yield running


@pytest.fixture(scope="module")
def gateway(upstream: ScriptedUpstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    address = str(tmp_path_factory.mktemp("keys") / "gateway.db")
    create(
        address,
        key("ada", models=["small"]),
        key("bob", budget=1.0),
        key("cyd", models=["p/*"]),
        key("eve"),
    )
    routes = '[routes.small]\nto = "p/small"\n[routes.large]\nto = "p/large"\n'
    text = (
        f'[server]\ndatabase = "{address}"\n{upstream.table("p", "openai")}{upstream.table("a", "anthropic")}{routes}'
    )
    with RunningGateway(configured(text)) as running:
        yield running


def status(gateway: RunningGateway, path: str, body: str, content_type: str) -> int:
    return send(gateway.url, path, body.encode(), {"x-api-key": "k-ada", "content-type": content_type}).status


@pytest.mark.parametrize("name", FORMS)
def test_ambiguous_forms_are_refused(gateway: RunningGateway, upstream: ScriptedUpstream, name: str) -> None:
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
def test_json_bodies_with_two_models_are_refused(
    gateway: RunningGateway, upstream: ScriptedUpstream, name: str, path: str
) -> None:
    rest = ',"prompt":"x","input":"x","messages":[{"role":"user","content":"\\"model\\" {"}]}'
    before = upstream.count
    assert status(gateway, path, BODIES[name][:-1] + rest, "application/json") in {400, 404}
    assert upstream.count == before


@pytest.mark.parametrize("who", ["ada", "bob"])
@pytest.mark.parametrize("path", CLIENTS)
def test_a_restricted_key_may_not_name_further_models(
    gateway: RunningGateway, upstream: ScriptedUpstream, path: str, who: str
) -> None:
    """A provider would call these models too: ones that the key may not use, and whose cost would not be counted."""
    before = upstream.count
    named = [f",{json.dumps(more)[1:-1]}}}" for more in FURTHER.values()] + [f",{more}}}" for more in TWICE]
    for more in named:
        got = send(gateway.url, path, (CLIENTS[path] + more).encode(), {"x-api-key": f"k-{who}"})
        assert got.status == 400, more
        assert b"one model" in got.body, more
    assert upstream.count == before
    for more in ('"models":[],"fallbacks":null}', '"tools":[]}', '"tools":null}'):
        got = send(gateway.url, path, f"{CLIENTS[path]},{more}".encode(), {"x-api-key": f"k-{who}"})
        assert b"one model" not in got.body, more


def test_an_unrestricted_key_may_name_further_models(gateway: RunningGateway, upstream: ScriptedUpstream) -> None:
    raw = f"{CLIENTS['/v1/responses']},{json.dumps(FURTHER['a plugin'])[1:-1]}}}".encode()
    send(gateway.url, "/v1/responses", raw, {"x-api-key": "k-eve"})
    assert b'"plugins"' in upstream.bodies[-1]


def batch_file(*lines: str) -> bytes:
    content = "".join(f"{line}\n" for line in lines)
    file = part('form-data; name="file"; filename="a.jsonl"', content)
    return f"{field('batch', 'purpose')}{file}{END}".encode()


UNREAD = (
    '{"custom_id":"1","method":"POST","url":"/v1/chat/completions","body":{"model":"large","model":"small"}}',
    '{"custom_id":"2","method":"POST","url":"/v1/chat/completions","body":{"model":"large","seed":NaN}}',
    '{"custom_id":"3","method":"POST","url":"/v1/chat/completions","body":{"model":"small","models":["large"]}}',
)


@pytest.mark.parametrize("who", ["ada", "bob"])
@pytest.mark.parametrize("headers", [{}, {"x-dragoman-provider": "p"}])
def test_batches_of_restricted_keys_are_not_forwarded(
    gateway: RunningGateway, upstream: ScriptedUpstream, who: str, headers: dict[str, str]
) -> None:
    """The gateway cannot be sure to find the models and the cost of all their requests."""
    headers = {"authorization": f"Bearer k-{who}", **headers}
    small = UNREAD[0].replace('"model":"large",', "")
    made = send(gateway.url, "/v1/files", batch_file(small, *UNREAD), {**headers, "content-type": TYPE})
    id = made.json.get("id", "file-upstream")
    about = {"input_file_id": id, "endpoint": "/v1/chat/completions", "completion_window": "24h"}
    send(gateway.url, "/v1/batches", about, headers)
    send(gateway.url, "/v1/batches", about, {**headers, "x-dragoman-provider": "p"})
    assert not any("/batches" in head for head in upstream.heads)


@pytest.mark.parametrize("who", ["ada", "bob"])
@pytest.mark.parametrize("headers", [{}, {"x-dragoman-provider": "a"}])
def test_message_batches_of_restricted_keys_are_not_forwarded(
    gateway: RunningGateway, upstream: ScriptedUpstream, who: str, headers: dict[str, str]
) -> None:
    one = {"max_tokens": 9, "messages": [{"role": "user", "content": "x"}], "model": "a/small"}
    body = {"requests": [{"custom_id": "1", "params": {**one, "fallbacks": [{"model": "large"}]}}]}
    send(gateway.url, "/v1/messages/batches", body, {"x-api-key": f"k-{who}", **headers})
    assert not any("/batches" in head for head in upstream.heads)


def test_batches_of_a_key_for_all_models_of_a_provider_are_forwarded(
    gateway: RunningGateway, upstream: ScriptedUpstream
) -> None:
    headers = {"authorization": "Bearer k-cyd"}
    line = UNREAD[0].replace('"model":"large","model":"small"', '"model":"p/small"')
    upstream.replies.insert(0, reply({"id": "file-1", "object": "file"}))
    made = send(gateway.url, "/v1/files", batch_file(line), {**headers, "content-type": TYPE})
    assert made.json["id"] == "file-1"
    about = {"input_file_id": "file-1", "endpoint": "/v1/chat/completions", "completion_window": "24h"}
    assert send(gateway.url, "/v1/batches", about, headers).status == 200
    assert "/batches" in upstream.heads[-1]
    upstream.heads.clear()


def test_the_word_model_is_allowed_elsewhere_in_a_body(gateway: RunningGateway) -> None:
    schema = {"type": "object", "properties": {"model": {"type": "string"}}, "required": ["model"]}
    tool = {"type": "function", "function": {"name": "f", "parameters": schema}}
    body = {"messages": [{"role": "user", "content": "model"}], "tools": [tool], "user": "model", "model": "small"}
    assert status(gateway, "/v1/chat/completions", json.dumps(body), "application/json") == 200


def test_forms_of_real_clients_are_read() -> None:
    """With the headers that they add, and with unusual names of files."""
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


def test_form_fields_are_found_in_linear_time() -> None:
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
