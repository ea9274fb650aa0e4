"""What every sample becomes in every format: the pages of tests/golden.

A page is a text. Pages of samples have each body and its losses in full. Pages of constructed values and of edited
bodies have a digest for each group of cases, and below them every loss that occurred, with its number, so that a change
shows which groups differ and which words changed; `python scripts/golden.py --against REVISION` shows these cases in
full. Pages are made from the repository alone, so they do not depend on recordings.
"""

import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import chain, islice, product
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec
from msgspec import structs

import dragoman
from dragoman import ir
from dragoman.codecs.accumulate import Accumulator
from dragoman.codecs.datasets.catalogue import dataset
from dragoman.codecs.openai_responses.echo import echo_of
from dragoman.codecs.unified_chunks import ChunkWriter
from dragoman.errors import DragomanError, StreamError
from dragoman.fidelity.echo import CONTINUE
from dragoman.ir.values import encode_json, to_raw
from dragoman.loss import Loss
from dragoman.streams import StreamDecoder, StreamEncoder, StreamTranslator
from tests.datasets.public_shapes import SHAPES
from tests.datasets.stories import STORIES
from tests.laws.test_every_field import WORLDS
from tests.laws.test_every_stream_edit import decoded, edited, own_streams
from tests.laws.test_whole_and_streamed import answers, small_pieces, stream_of, whole_parts
from tests.support import converse_streams, varied_values
from tests.support.bodies import ERRORS, PIXEL
from tests.support.clients import OPENING
from tests.support.collected_cases import FOLDER as COLLECTED
from tests.support.collected_cases import Collected, collected
from tests.support.edits import cut_texts, edits, everywhere, reordered
from tests.support.formats import FAMILY, FORMATS, FURTHER_MODELS, MODELS, VARIED_MODELS
from tests.support.ir_examples import EXAMPLES, resolved
from tests.support.mixed_values import Vocabulary, asking, grafted, merged_answers, merged_requests, moved
from tests.support.modelled_values import numbers, with_functions, with_members, with_words
from tests.support.records import RECORDS, SAMPLES
from tests.support.sample_streams import STREAMS, framed
from tests.support.small_bodies import small_bodies

COMPATIBLE = tuple(name for name in dragoman.formats("compatible") if name != "vertex-interactions")
STORED = (*RECORDS, *(name for name in dragoman.formats("dataset") if dataset(name).write is not None))
EVERY = 6
"""Of the edits of larger streams one in so many is tried."""
SOME = 4
"""Of the changed streams one in so many is also read up to the middle."""
GRAFTS = 60
"""Bodies with values of other bodies, for each sample."""
MERGED = 250
"""Values joined from others, for each format and pool."""
_MARKS = re.compile(r"\bmk\d+x\b")
READ = 200
"""Bytes of a collected stream that arrive together."""
EDITED = 12
"""Edits of each collected body."""
NUMBERED, COUNTED = 2, 30
"""Models for which every number is tried, and up to which number there are so many tools."""
CALLED = ("get_weather", "look", "f", "g", "sql", "sh", "shell", "apply_patch", "code_exec", "search")
"""Tools that the samples call."""
STATUSES = (200, 400, 401, 402, 403, 404, 408, 409, 413, 418, 422, 424, 429, 499, 500, 501, 502, 503, 504, 529, 599)
HEADERS: tuple[dict[str, str], ...] = (
    {"retry-after": "7", "retry-after-ms": "1500"}, {"retry-after": "0"}, {"retry-after": "0.5"}, {"retry-after": "-1"},
    {"retry-after": "soon"}, {"retry-after-ms": "0"}, {"retry-after-ms": "odd", "retry-after": "3"},
    {"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"},
    {"x-request-id": "r1", "request-id": "r2", "x-amzn-requestid": "r3"}, {"x-amzn-errortype": "ThrottlingException"},
    {"x-amzn-errortype": "ValidationException:http://x/"}, {"x-amzn-errortype": ""}, {"x-amzn-errortype": "odd"},
)  # fmt: skip
"""Headers of errors that a codec reads, with values of every form."""
ODD = "zq odd"
"""A text that no vocabulary has."""

Case = tuple[str, str, str]
"""Group, title and text."""


# ── texts ─────────────────────────────────────────────────────────────────────────────────────────────────────


def attempt(shown: Callable[[Any], str], make: Callable[..., Any], *given: Any, **named: Any) -> str:
    """What is made, as text, or that it is refused."""
    try:
        return shown(make(*given, **named))
    except DragomanError as refused:
        return f"refused: {type(refused).__name__} {getattr(refused, 'path', '')}"


def renumbered(text: str) -> str:
    """The running marks of ugly bodies, counted for each body: another body before them changes nothing."""
    marks: dict[str, str] = {}
    return _MARKS.sub(lambda found: marks.setdefault(found[0], f"mk{len(marks)}x"), text) if "mk" in text else text


def of_losses(losses: Iterable[Loss]) -> list[str]:
    return [f"- {loss.severity} {loss.what} ({loss.why}) at {loss.path}" for loss in losses]


def of_encoded(encoded: dragoman.Encoded) -> str:
    """One line for each entry of the body, and for each element of its lists of objects."""
    about = {"path": encoded.path, **encoded.headers, "status": getattr(encoded, "status", None)}
    shown = " ".join(f"{key}={value}" for key, value in about.items() if value is not None)
    return "\n".join([*([shown] if shown else []), *_lines(json.loads(encoded.json())), *of_losses(encoded.losses)])


def _lines(body: Any) -> Iterator[str]:
    for key, value in body.items() if isinstance(body, dict) else enumerate(body):
        if isinstance(value, list) and any(isinstance(one, dict) for one in value):
            yield from (f"{key}[{number}] {_json(one)}" for number, one in enumerate(value))
        else:
            yield f"{key} {_json(value)}"


_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def of_value(value: Any) -> str:
    return encode_json(value).decode()


def of_bytes(target: str, data: bytes) -> str:
    """The events of a stream, one in a line."""
    if target == "bedrock-converse":
        return "\n".join(f"{name} {_json(payload)}" for name, payload in converse_streams.payloads(data))
    return "\n".join(line.strip() for line in data.decode().split("\n") if line.strip())


# ── requests, answers and errors ──────────────────────────────────────────────────────────────────────────────


def _rotated(title: str, names: tuple[str, ...] = FORMATS) -> str:
    """One of the formats, always the same for a title: edits are many, and each goes to one format only."""
    return names[crc32(title.encode()) % len(names)]


def _another(title: str, source: str) -> str:
    return _rotated(title, tuple(name for name in FORMATS if name != source))


def _translated(kind: str, raw: Any, source: str, target: str) -> str:
    translate = getattr(dragoman, f"translate_{kind}")
    named = {"model": MODELS.get(target, "some-model")} if kind == "request" else {}
    return attempt(of_encoded, translate, raw, source=source, target=target, **named)


def _bodies(kind: str, source: str) -> Iterator[tuple[str, Any]]:
    for row in small_bodies(kind):
        name, body = row.values
        if name == source:
            yield str(row.id).removeprefix(f"{source}: "), json.loads(renumbered(json.dumps(body)))


def bodies_of(kind: str, name: str) -> list[Any]:
    """The samples of a format, or of a kind of stored conversations."""
    if name in FORMATS:
        return [body for _, body in _bodies(kind, name)]
    return list(_stored_samples(name).values()) if kind == "request" else []


def crossed(kind: str, source: str) -> Iterator[Case]:
    for title, body in _bodies(kind, source):
        raw = json.dumps(body).encode()
        for target in FORMATS:
            if target != source:
                yield title, target, _translated(kind, raw, source, target)


def errors(source: str) -> Iterator[Case]:
    for sample in ERRORS:
        if sample.format == source:
            for target in FORMATS:
                named = {"source": source, "target": target, "status": sample.status}
                yield sample.name, target, attempt(of_encoded, dragoman.translate_error, sample.json(), **named)


def changed_errors(source: str) -> Iterator[Case]:
    """What an error is read as, with its status, without, and with the words that the code names."""
    samples = {sample.name: sample for sample in ERRORS if sample.format == source}
    for title, sample in samples.items():
        for edit, body in chain([("as it is", sample.body)], every_edit(sample.body)):
            yield title, edit, _read_error(body, source, (sample.status, None))
        for status in STATUSES:
            yield title, str(status), _read_error(sample.body, source, (status,))
        for number, headers in enumerate(HEADERS):
            read = attempt(of_value, dragoman.decode_error, sample.json(), source, status=429, headers=headers)
            yield title, f"headers {number}", read
    bodies = {title: sample.body for title, sample in samples.items()}
    for case, body in with_words(bodies, source):
        yield "words", case, _read_error(body, source, (None, STATUSES[crc32(case.encode()) % len(STATUSES)]))


def _read_error(body: Any, source: str, statuses: tuple[int | None, ...]) -> str:
    raw, target = json.dumps(body).encode(), _rotated(json.dumps(body))
    return "\n".join(
        attempt(of_value, dragoman.decode_error, raw, source, status=status)
        + "\n"
        + attempt(of_encoded, dragoman.translate_error, raw, source=source, target=target, status=status)
        for status in statuses
    )


def detected(name: str) -> Iterator[Case]:
    """The format that a body is recognised as, and with every edit."""
    for kind in ("request", "response"):
        for title, body in enumerate(bodies_of(kind, name)):
            for edit, changed in chain([("as it is", body)], every_edit(body)):
                yield f"{kind} {title}", edit, attempt(str, dragoman.detect, json.dumps(changed).encode())
    for sample in ERRORS:
        if sample.format == name:
            for edit, changed in chain([("as it is", sample.body)], every_edit(sample.body)):
                yield sample.name, edit, attempt(str, dragoman.detect, json.dumps(changed).encode())


def odd_edits(value: Any, path: str = "$") -> Iterator[tuple[str, Any]]:
    """Every text replaced by one that no vocabulary has, every number by the next, and a key added to every object."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        place = f"{path}.{key}"
        found = list(odd_edits(inner, place)) if isinstance(inner, dict | list) else []
        if isinstance(inner, str):
            found = [(f"{place} odd", ODD)]
        elif isinstance(inner, int | float) and not isinstance(inner, bool):
            found = [(f"{place} next", inner + 1)]
        for title, one in found:
            changed = value.copy()
            changed[key] = one
            yield title, changed
    if isinstance(value, dict):
        yield f"{path} with another key", {**value, "zq_key": 1}


def every_edit(body: Any) -> Iterator[tuple[str, Any]]:
    yield from ((str(edit), edit.body) for edit in edits(body))
    yield from chain(odd_edits(body), everywhere(body), reordered(body), cut_texts(body))


def mixed_bodies(kind: str, source: str) -> Iterator[Case]:
    bodies = list(_bodies(kind, source))
    words = Vocabulary(body for _, body in bodies)
    for title, body in bodies:
        for graft, changed in grafted(body, words, GRAFTS, title):
            yield title, graft, _changed(kind, json.dumps(changed).encode(), source, f"{title} {graft}")


def modelled_bodies(kind: str, source: str) -> Iterator[Case]:
    """With every member and every word that the code names."""
    bodies = dict(_bodies(kind, source))
    for group, found in (("members", with_members), ("words", with_words)):
        for case, changed in found(bodies, source):
            yield group, case, _changed(kind, json.dumps(changed).encode(), source, case)


def joined_words(kind: str, source: str) -> Iterator[Case]:
    """With the words that a function of the code looks for together."""
    bodies = {
        str(number): json.loads(renumbered(json.dumps(body))) for number, body in enumerate(bodies_of(kind, source))
    }
    for case, changed in with_functions(bodies, source):
        yield case.partition(":")[0], case, _changed(kind, json.dumps(changed).encode(), source, case)


def changed_bodies(kind: str, source: str) -> Iterator[Case]:
    for title, body in _bodies(kind, source):
        for edit, changed in every_edit(body):
            yield title, edit, _changed(kind, json.dumps(changed).encode(), source, f"{title} {edit}")


def _changed(kind: str, raw: bytes, source: str, title: str) -> str:
    """What is read, what becomes of it in the same format again, and in another."""
    read = attempt(of_value, getattr(dragoman, f"decode_{kind}"), raw, source)
    again = _translated_again(kind, raw, source) if _is_written(kind, source) else ""
    return f"{read}\n{again}\n{_translated(kind, raw, source, _rotated(title))}"


def _is_written(kind: str, name: str) -> bool:
    """Whether bodies of this kind are written in the format: of most stored conversations there are only requests."""
    return name in FORMATS or name in (RECORDS if kind == "response" else STORED)


def _translated_again(kind: str, raw: bytes, source: str) -> str:
    return attempt(of_encoded, getattr(dragoman, f"translate_{kind}"), raw, source=source, target=source)


# ── the intermediate format ───────────────────────────────────────────────────────────────────────────────────


def fields(target: str) -> Iterator[Case]:
    """Every field of every value, alone and beside every other, in every place."""
    family = FAMILY.get(target, "dragoman")
    foreign = "anthropic" if family != "anthropic" else "google"
    worlds = WORLDS if target in FORMATS else {name: WORLDS[name] for name in ("request",)}
    for world, (place, write, kinds) in worlds.items():
        for kind in kinds:
            plain: Any = resolved(EXAMPLES[kind].plain, family, foreign)
            changes = {
                name: {key: resolved(value, family, foreign) for key, value in given.items()}
                for name, given in EXAMPLES[kind].fields.items()
            }
            if "metadata" in changes:
                (entries,) = changes["metadata"]["metadata"].values()
                changes["own metadata"] = {"metadata": {family: entries}}
            for name, beside in product(changes, ("", *changes)):
                if beside <= name:
                    given = {**changes[name], **changes.get(beside, {})}
                    whole = place(structs.replace(plain, **given)).whole
                    yield (
                        f"{world}, {kind.__name__}",
                        f"{name} beside {beside}",
                        attempt(_written, write, whole, target),
                    )


def _written(written: Any) -> str:
    return "\n".join([written.text, *of_losses(written.losses)])


def varied_requests(target: str) -> Iterator[Case]:
    models = VARIED_MODELS.get(target, ("some-model",))
    groups = varied_values.ABOUT_SERVERS if target in COMPATIBLE else varied_values.ALL
    groups = varied_values.ABOUT_MESSAGES if target in STORED else groups
    for group, title, request in varied_values.requests(models, groups):
        yield group, title, attempt(of_encoded, dragoman.encode_request, request, target)


def numbered_requests(target: str) -> Iterator[Case]:
    """Every number that the code names, and its neighbours, as each setting and as the number of some things."""
    message, tool = ir.Message("user", "hi"), ir.ToolDefinition("look", strict=True)
    for number, model in product(numbers(target), VARIED_MODELS[target][:NUMBERED]):
        settings: dict[str, dict[str, Any]] = {
            name: {name: number}
            for name in ("max_output_tokens", "top_k", "seed", "top_logprobs", "candidates", "max_tool_calls")
        }
        on, high = ir.ReasoningSettings("on", budget_tokens=number), ir.ReasoningSettings("on", "high")
        for name, limit in (("no limit", None), ("the limit", number), ("a higher limit", number + 1)):
            settings[f"budget below {name}"] = {"reasoning": on, "max_output_tokens": limit}
        settings["effort below the limit"] = {"reasoning": high, "max_output_tokens": number}
        settings["temperature"] = {"temperature": number / 100, "top_p": number / 100}
        if 0 < number <= COUNTED:
            settings["stop"] = {"stop": tuple(f"end {place}" for place in range(number))}
            settings["strict tools"] = {
                "tools": tuple(structs.replace(tool, name=f"look_{place}") for place in range(number))
            }
        for name, given in settings.items():
            yield (
                name,
                f"{number} {model}",
                attempt(of_encoded, dragoman.encode_request, ir.Request(model, (message,), **given), target),
            )


def decoded_samples(kind: str) -> list[Any]:
    """What the samples of every format are read as."""
    return [value for source in FORMATS for _, value in _decoded(kind, source)]


def _decoded(kind: str, source: str) -> Iterator[tuple[str, Any]]:
    for title, body in _bodies(kind, source):
        with suppress(DragomanError):
            yield title, getattr(dragoman, f"decode_{kind}")(body, source)


def mixed_requests(target: str) -> Iterator[Case]:
    models = VARIED_MODELS.get(target, ("some-model",))
    groups = varied_values.ABOUT_MESSAGES if target in STORED else varied_values.ALL
    constructed = [request for *_, request in varied_values.requests(models, groups)]
    pools = {"constructed": constructed, "decoded": decoded_samples("request")}
    pools["both"] = [*constructed[:: len(constructed) // len(pools["decoded"])], *pools["decoded"]]
    every_model = (None, *models, *FURTHER_MODELS.get(target, ()))
    for name, pool in pools.items():
        count = MERGED if target in FORMATS else MERGED // 3
        for number, request in enumerate(merged_requests(pool, every_model, count, f"{name} {target}")):
            yield name, str(number), attempt(of_encoded, dragoman.encode_request, request, target)


def mixed_answers(target: str) -> Iterator[Case]:
    constructed = [answer for *_, answer in varied_values.answers()]
    pools = {"constructed": constructed, "decoded": decoded_samples("response")}
    pools["both"] = [*constructed[:: len(constructed) // len(pools["decoded"])], *pools["decoded"]]
    for name, pool in pools.items():
        for number, answer in enumerate(merged_answers(pool, MERGED, f"{name} {target}")):
            yield name, str(number), attempt(of_encoded, dragoman.encode_response, answer, target)
            if target in FORMATS:
                for parts in (whole_parts, small_pieces):
                    yield (
                        f"{name}, streamed",
                        f"{number} {parts.__name__}",
                        _encoded_stream(stream_of(answer, parts(answer)), target),
                    )


def varied_answers(target: str) -> Iterator[Case]:
    request = ir.Request("m", (ir.Message("user", "hi"),), tools=(ir.CustomTool("sh"), ir.ToolDefinition("look")))
    asked = partial(dragoman.encode_response, request=request, speaker="ann")
    for group, title, answer in varied_values.answers():
        yield group, title, attempt(of_encoded, dragoman.encode_response, answer, target)
        yield f"{group}, asked", title, attempt(of_encoded, asked, answer, target)
        if len(answer.messages) == 1:
            for name, parts in (("whole", whole_parts), ("pieces", small_pieces)):
                events = stream_of(answer, parts(answer))
                yield f"{group}, streamed", f"{title}, {name}", _encoded_stream(events, target)
    for group, title, failure in varied_values.failures():
        yield group, title, attempt(of_encoded, dragoman.encode_error, failure, target)
        text = ir.PartStart(0, ir.Text("hi"))
        failed: list[ir.AnyEvent] = [ir.StreamStart("a", "m"), text, ir.StreamFailed(failure)]
        yield f"{group}, streamed", title, _encoded_stream(failed, target)


def _answers_to_clients() -> Iterator[tuple[str, str | None, str, ir.Completion]]:
    """(group, the format of the vendor, title, answer)."""
    for source in FORMATS:
        for title, answer in _decoded("response", source):
            yield f"from {source}", source, title, answer
    for _, title, answer in varied_values.answers():
        if title.endswith(" None"):
            yield "contents", None, title, answer
    for title, part in varied_values.signed_parts():
        parts = (part, ir.Text("done")) if crc32(title.encode()) % 2 else (ir.Text("first"), part)
        yield "signed", None, title, ir.Completion((ir.Message("assistant", parts),), ir.Finish("stop"))


def returned(client: str) -> Iterator[Case]:
    """The next request of a client that echoes an answer: what is read from it, and what the vendor gets back.

    And the same answer as a stream that is read again, as behind another gateway.
    """
    for group, vendor, title, answer in _answers_to_clients():
        about = f"{group} {title}"
        if len(answer.messages) == 1:
            parts = (whole_parts, small_pieces)[crc32(about.encode()) % 2]
            encoder = StreamEncoder(client)
            with suppress(DragomanError):
                data = encoder.encode(stream_of(answer, parts(answer))) + encoder.close()
                yield f"{group}, streamed", title, _read_stream(data, client, about)
        echoed = _next_request(client, answer)
        if echoed is not None:
            raw = json.dumps(echoed).encode()
            yield group, title, _changed("request", raw, client, about)
            orders = list(reordered(echoed))
            case, changed = orders[crc32(title.encode()) % len(orders)]
            yield group, f"{title}, {case}", _changed("request", json.dumps(changed).encode(), client, title)
            if vendor is not None:
                yield group, f"{title}, back", _translated("request", raw, client, vendor)


def _next_request(client: str, answer: ir.Completion) -> dict[str, Any] | None:
    """None if the answer has nothing that a client of this API appends to its history."""
    try:
        return CONTINUE[client](dict(OPENING[client]), dragoman.encode_response(answer, client).body)
    except (DragomanError, KeyError, IndexError, TypeError):
        return None


# ── streams ───────────────────────────────────────────────────────────────────────────────────────────────────


def _encoded_stream(events: list[ir.AnyEvent], target: str, **options: Any) -> str:
    encoder = StreamEncoder(target, **options)
    written = attempt(partial(of_bytes, target), lambda: encoder.encode(events) + encoder.close())
    return "\n".join([written, *of_losses(encoder.losses)])


def asked(source: str) -> Iterator[Case]:
    """Answers and streams to a client whose request is known."""
    streams = {"sample": STREAMS[source], **(dict(own_streams(source)) if source != "bedrock-converse" else {})}
    for case, request in asking(CALLED).items():
        for title, body in _bodies("response", source):
            raw = json.dumps(body).encode()
            for target in FORMATS:
                named = {"source": source, "target": target, "request": request}
                text = attempt(of_encoded, dragoman.translate_response, raw, **named)
                yield f"answers, {case}", f"{title} {target}", text
        for title, events in streams.items():
            for target in FORMATS:
                text = _translated_stream(framed(source, events), source, target, request)
                yield f"streams, {case}", f"{title} {target}", text


def _translated_stream(data: bytes, source: str, target: str, request: ir.Request | None = None) -> str:
    translator = StreamTranslator(source=source, target=target, request=request)
    written = attempt(partial(of_bytes, target), lambda: translator.feed(data) + translator.close())
    return "\n".join([written, *of_losses(translator.losses)])


def sample_streams(source: str) -> Iterator[Case]:
    for target in FORMATS:
        yield "stream", target, _translated_stream(framed(source, STREAMS[source]), source, target)


def changed_streams(source: str) -> Iterator[Case]:
    yield from _changed_stream(source, "sample", STREAMS[source], 1)
    if source != "bedrock-converse":
        for title, events in own_streams(source):
            yield from _changed_stream(source, title, events, EVERY)


def _changed_stream(source: str, stream: str, events: list[Any], every: int) -> Iterator[Case]:
    """Of the edits one in `every`."""
    for number, edit, data in islice(chain(edited(source, events), _odd_events(source, events)), None, None, every):
        case = f"{number} {edit}"
        yield stream, case, _read_stream(data, source, f"{stream} {case}")
    for case, changed in chain(everywhere(events), _of_one_type(events)):
        yield stream, case, _read_stream(framed(source, changed), source, f"{stream} {case}")


def _of_one_type(events: list[Any]) -> Iterator[tuple[str, list[Any]]]:
    """Keys removed from or set to null in all events of a type: some servers never send them there."""
    types = [str(event.get("type", event.get("event_type", [*event][:1]))) for event in events]
    for kind in dict.fromkeys(types):
        places = [number for number, one in enumerate(types) if one == kind]
        for case, changed in everywhere([events[number] for number in places]):
            by_place = dict(zip(places, changed, strict=True))
            yield f"{kind}: {case}", [by_place.get(number, event) for number, event in enumerate(events)]


def mixed_streams(source: str) -> Iterator[Case]:
    """Events in another order, behind the end, with values of other streams, and with all that the code names."""
    streams = {"sample": STREAMS[source], **(dict(own_streams(source)) if source != "bedrock-converse" else {})}
    words = Vocabulary(streams.values())
    for stream, events in streams.items():
        found = [(f"{number} {what}", changed) for number, what, changed in moved(events)]
        for case, changed in [*found, *grafted(events, words, GRAFTS, f"{source} {stream}")]:
            yield stream, case, _read_stream(framed(source, changed), source, f"{stream} {case}")
        for number, event in enumerate(events):
            data = framed(source, events) + framed(source, [event])
            yield stream, f"{number} behind the end", _read_stream(data, source, f"{stream} {number}")
    for group, named in (("members", with_members), ("words", with_words)):
        for case, changed in named(streams, source):
            yield group, case, _read_stream(framed(source, changed), source, case)


def _read_stream(data: bytes, source: str, title: str) -> str:
    """The events of a stream that arrives in two reads, the answer that they are, and the stream written again.

    It is written in its own format, where all that its vendor sent returns, and in another. Of some streams also the
    answer as far as it has come after some of the events.
    """
    chance = crc32(title.encode())
    read = decoded(source, data, 1 + chance % (len(data) or 1))
    half = Accumulator()
    half.add(read[: chance % (len(read) + 1)] if chance % SOME == 0 else ())
    try:
        answer = of_value(dragoman.accumulate(read))
    except StreamError as failed:
        answer = f"{type(failed).__name__} {of_value(failed.partial)}"
    written = f"{_encoded_stream(read, source)}\n{_translated_stream(data, source, _another(title, source))}"
    return f"{of_value(read)}\n{of_value(half.so_far())}\n{answer}\n{written}"


def _odd_events(source: str, events: list[Any]) -> Iterator[tuple[int, str, bytes]]:
    for number, event in enumerate(events):
        for title, changed in odd_edits(event):
            yield number, title, framed(source, [*events[:number], changed, *events[number + 1 :]])


_TOOLS = (
    {"type": "function", "name": "look"}, {"type": "custom", "name": "sh"}, "odd",
    {"type": "mcp", "server_label": "s", "authorization": "secret", "headers": {"x": "secret"}},
)  # fmt: skip
_REQUESTED: dict[str, Any] = {
    "instructions": "Be brief.", "temperature": 0.5, "text": {"verbosity": "low"}, "reasoning": {"effort": "low"},
    "service_tier": "flex", "user": None, "model": "odd", "tools": _TOOLS,
}  # fmt: skip


def _options(target: str) -> dict[str, dict[str, Any]]:
    """Options of stream encoders."""
    match target:
        case "openai-chat":
            return {"without usage": {"include_usage": False}}
        case "openai-responses":
            echo = echo_of({key: to_raw(value) for key, value in _REQUESTED.items()})
            return {"echo": {"echo": echo, "clock": lambda: 1_700_000_009}}
        case "gemini" | "vertex":
            return {"array": {"array": True}}
        case "gemini-interactions":
            return {"stored": {"stores": True}, "not stored": {"stores": False}}
        case _:
            return {}


def streams_with_options(target: str) -> Iterator[Case]:
    """What the options of an encoder and of a decoder change, and streams that break off where they are translated."""
    for option, given in _options(target).items():
        for title, answer in answers().items():
            parts = (whole_parts, small_pieces)[crc32(title.encode()) % 2]
            events = stream_of(answer, parts(answer))
            yield option, title, _encoded_stream(events, target, **given)
            if "array" in given:
                data = StreamEncoder(target, **given).encode(events)
                yield "read as an array", title, _read_stream(data + b"]", target, title)
        for group, title, failure in varied_values.failures():
            failed: list[ir.AnyEvent] = [ir.StreamStart("a", "m"), ir.StreamFailed(failure)]
            yield option, f"{group} {title}", _encoded_stream(failed, target, **given)
    streams = {"sample": STREAMS[target], **(dict(own_streams(target)) if target != "bedrock-converse" else {})}
    for stream, sent in streams.items():
        for number in range(len(sent)):
            begun = sent[: number + 1]
            yield "lost", f"{stream} {number}", _lost_stream(framed(target, begun), target, f"{stream} {number}")
        yield "as it arrives", stream, _as_it_arrives([framed(target, [event]) for event in sent], target)


def _lost_stream(data: bytes, source: str, title: str) -> str:
    """A stream whose connection is lost, in another format, and the answer as far as it had come."""
    target = _another(title, source)
    translator = StreamTranslator(source=source, target=target)
    failure = ir.Failure("server", "The connection was lost.", 502)
    written = attempt(partial(of_bytes, target), lambda: translator.feed(data) + translator.fail(failure))
    return "\n".join([written, of_value(translator.completion), *of_losses(translator.losses)])


def _as_it_arrives(pieces: list[bytes], source: str) -> str:
    """The events of a reader that shows calls as soon as they are complete, and joins pieces of calls of one name."""
    decoder = StreamDecoder(source, joins_calls=True)
    rows = [(decoder.feed(piece), decoder.settle(), decoder.clean) for piece in pieces]
    shown = [f"{of_value(read)} {of_value(calls)} {clean}" for read, calls, clean in rows]
    return "\n".join([*shown, of_value(decoder.close())])


def chunks() -> Iterator[Case]:
    """Answers as the chunks of a chat, whole and in pieces."""
    for group, title, answer in varied_values.answers():
        if len(answer.messages) == 1:
            for parts, in_order in product((whole_parts, small_pieces), (True, False)):
                written = ChunkWriter(in_order=in_order).write(stream_of(answer, parts(answer)))
                yield group, f"{title}, {parts.__name__} {in_order}", "\n".join(map(_json, written))


def streamed_answers(target: str) -> Iterator[Case]:
    for title, answer in answers().items():
        for name, parts in (("whole", whole_parts), ("pieces", small_pieces)):
            yield title, name, _encoded_stream(stream_of(answer, parts(answer)), target)


# ── stored conversations ──────────────────────────────────────────────────────────────────────────────────────


def stored(name: str) -> Iterator[Case]:
    """What is read from a stored conversation and its edits, and what is written of every sample request."""
    for title, body in _stored_samples(name).items():
        yield title, "", _changed("request", json.dumps(body).encode(), name, title)
        for edit, changed in every_edit(body):
            yield title, edit, _changed("request", json.dumps(changed).encode(), name, f"{title} {edit}")
    if name not in STORED:
        return
    for source in FORMATS:
        for title, body in _bodies("request", source):
            yield f"from {source}", title, _translated("request", json.dumps(body).encode(), source, name)


def mixed_stored(name: str) -> Iterator[Case]:
    samples = _stored_samples(name)
    words = Vocabulary(samples.values())
    for title, body in samples.items():
        for target in FORMATS:
            yield title, target, _translated("request", json.dumps(body).encode(), name, target)
        for graft, changed in grafted(body, words, GRAFTS, f"{name} {title}"):
            yield title, graft, _changed("request", json.dumps(changed).encode(), name, f"{title} {graft}")


def _stored_samples(name: str) -> dict[str, Any]:
    samples: dict[str, Any] = {f"sample {number}": body for number, body in enumerate(SAMPLES.get(name, ()))}
    samples |= {"story": STORIES[name]} if name in STORIES else {}
    return samples | {title: shape.record for title, shape in SHAPES.items() if shape.format == name}


def stored_answers(name: str) -> Iterator[Case]:
    """Answers as records: written, read again with every edit, and sent on."""
    seen: set[bytes] = set()
    for group, title, answer in varied_values.answers():
        yield group, title, attempt(of_encoded, dragoman.encode_response, answer, name)
    for source in FORMATS:
        for title, body in _bodies("response", source):
            yield f"from {source}", title, _translated("response", json.dumps(body).encode(), source, name)
            record = attempt(
                lambda made: made.json().decode(), dragoman.translate_response, body, source=source, target=name
            )
            if record.startswith(("{", "[")) and (first := json.loads(record)):
                for edit, changed in every_edit(first):
                    raw = json.dumps(changed).encode()
                    if raw not in seen:
                        seen.add(raw)
                        yield (
                            f"changed, from {source}",
                            f"{title} {edit}",
                            _changed("response", raw, name, f"{title} {edit}"),
                        )


# ── collected cases ───────────────────────────────────────────────────────────────────────────────────────────

COLLECTING = {
    "request": {*FORMATS, *RECORDS, *dragoman.formats("dataset")},
    "response": {*FORMATS, *RECORDS},
    "error": {*FORMATS},
    "stream": {*FORMATS},
    "written-request": {*FORMATS, *COMPATIBLE, *STORED},
    "written-response": {*FORMATS, *RECORDS},
}
"""Formats that cases of a kind may have."""


def collected_cases(name: str) -> Iterator[Case]:
    """What becomes of cases that tests of single rules have, and of some edits of them."""
    for case in collected(name):
        for about, text in of_collected(case, name):
            yield case.kind, f"{case.title} {about}", text


def of_collected(case: Collected, name: str) -> Iterator[tuple[str, str]]:
    match case.kind:
        case "request" | "response":
            for about, raw in (("", case.raw), *_some_edits(case)):
                yield about, _changed(case.kind, raw, name, f"{case.title} {about}")
        case "error":
            named = {"status": case.status, "headers": case.headers}
            yield "read", attempt(of_value, dragoman.decode_error, case.raw, name, **named)
            for target in (name, _rotated(case.title)):
                crossing = {"source": name, "target": target, **named}
                yield target, attempt(of_encoded, dragoman.translate_error, case.raw, **crossing)
        case "stream":
            yield "", _read_stream(case.raw, name, case.title)
            pieces = [case.raw[start : start + READ] for start in range(0, len(case.raw), READ)]
            yield "as it arrives", _as_it_arrives(pieces, name)
            yield "lost", _lost_stream(case.raw[: crc32(case.raw) % len(case.raw)], name, case.title)
        case "written-request":
            request = msgspec.json.decode(case.raw, type=ir.Request)
            yield "", attempt(of_encoded, dragoman.encode_request, request, name)
        case _:
            answer = msgspec.json.decode(case.raw, type=ir.Completion)
            yield "", attempt(of_encoded, dragoman.encode_response, answer, name)


def _some_edits(case: Collected) -> Iterator[tuple[str, bytes]]:
    try:
        body = json.loads(case.raw)
    except ValueError:
        return
    found = list(every_edit(body)) if isinstance(body, dict | list) else []
    for number in sorted(
        {crc32(f"{case.title} {turn}".encode()) % len(found) for turn in range(EDITED if found else 0)}
    ):
        edit, changed = found[number]
        yield edit, json.dumps(changed).encode()


# ── pages ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _pages() -> Iterator[tuple[str, tuple[Callable[[], Iterator[Case]], bool]]]:
    for source in FORMATS:
        yield f"requests/{source}", (partial(crossed, "request", source), True)
        yield f"answers/{source}", (partial(crossed, "response", source), True)
        yield f"errors/{source}", (partial(errors, source), True)
        yield f"changed-errors/{source}", (partial(changed_errors, source), False)
        yield f"changed-requests/{source}", (partial(changed_bodies, "request", source), False)
        yield f"changed-answers/{source}", (partial(changed_bodies, "response", source), False)
        yield f"varied-answers/{source}", (partial(varied_answers, source), False)
        yield f"mixed-bodies/{source}", (partial(mixed_bodies, "request", source), False)
        yield f"mixed-answer-bodies/{source}", (partial(mixed_bodies, "response", source), False)
        yield f"modelled-requests/{source}", (partial(modelled_bodies, "request", source), False)
        yield f"modelled-answers/{source}", (partial(modelled_bodies, "response", source), False)
        yield f"joined-requests/{source}", (partial(joined_words, "request", source), False)
        yield f"joined-answers/{source}", (partial(joined_words, "response", source), False)
        yield f"mixed-answers/{source}", (partial(mixed_answers, source), False)
        yield f"streamed-answers/{source}", (partial(streamed_answers, source), False)
        yield f"returned/{source}", (partial(returned, source), False)
        yield f"numbered/{source}", (partial(numbered_requests, source), False)
    for target in (*FORMATS, *COMPATIBLE, *STORED):
        yield f"fields/{target}", (partial(fields, target), False)
        yield f"varied-requests/{target}", (partial(varied_requests, target), False)
        yield f"mixed-requests/{target}", (partial(mixed_requests, target), False)
    for source in STREAMS:
        yield f"streams/{source}", (partial(sample_streams, source), True)
        yield f"asked/{source}", (partial(asked, source), False)
        yield f"changed-streams/{source}", (partial(changed_streams, source), False)
        yield f"mixed-streams/{source}", (partial(mixed_streams, source), False)
        yield f"optional-streams/{source}", (partial(streams_with_options, source), False)
    yield "chunks/chat", (chunks, False)
    for name in RECORDS:
        yield f"stored-answers/{name}", (partial(stored_answers, name), False)
    for name in (*FORMATS, *RECORDS, *dragoman.formats("dataset")):
        yield f"detected/{name}", (partial(detected, name), False)
    for file in sorted(COLLECTED.glob("*.jsonl")):
        yield f"collected/{file.stem}", (partial(collected_cases, file.stem), False)
    for name in (*RECORDS, *dragoman.formats("dataset")):
        yield f"stored/{name}", (partial(stored, name), False)
        yield f"mixed-stored/{name}", (partial(mixed_stored, name), False)
        yield f"joined-stored/{name}", (partial(joined_words, "request", name), False)


PAGES = dict(_pages())


FOLDER = Path(__file__).resolve().parent.parent / "golden"
_HEAD = "=== "


def reviewed(kind: str) -> dict[str, str]:
    """The pages of a kind as they are in the repository: the format -> its text."""
    file = FOLDER / f"{kind}.txt"
    text = file.read_text() if file.exists() else ""
    rows = (row.partition("\n") for row in f"\n{text}".removesuffix("\n").split(f"\n{_HEAD}")[1:])
    return {name: f"{found}\n" for name, _, found in rows}


def review(kind: str, pages: dict[str, str]) -> None:
    """Writes the pages of a kind to the repository."""
    FOLDER.mkdir(exist_ok=True)
    text = "\n".join(f"{_HEAD}{name}\n{found[:-1]}" for name, found in pages.items())
    (FOLDER / f"{kind}.txt").write_text(f"{text}\n")


def page(name: str, *, whole: bool = False) -> str:
    """The text of a page; `whole`: in full also where the page has digests."""
    return text_of(name, cases_of(name), whole=whole)


def cases_of(name: str) -> Iterator[Case]:
    for group, title, text in PAGES[name][0]():
        yield group, title, renumbered(text)


def text_of(name: str, cases: Iterable[Case], *, whole: bool = False) -> str:
    groups: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for group, title, text in cases:
        groups[group].append((title, text))
    if whole or PAGES[name][1]:
        return "".join(f"{line}\n" for group, rows in groups.items() for line in _in_full(group, rows))
    lines: list[str] = []
    words: Counter[str] = Counter()
    for group, rows in groups.items():
        digest = hashlib.sha256()
        for title, text in rows:
            digest.update(f"{title}\n{text}\n".encode("utf-8", "surrogatepass"))
            words.update(line[2:].rpartition(" at ")[0] for line in text.splitlines() if line.startswith("- "))
        lines.append(f"{digest.hexdigest()[:10]} {group}")
    return "\n".join([*lines, *(f"{count} {text}" for text, count in sorted(words.items())), ""])


def _in_full(group: str, rows: list[tuple[str, str]]) -> Iterator[str]:
    """The cases of a group. A text that an earlier case has is not repeated."""
    yield f"# {group}"
    seen: dict[str, str] = {}
    for title, text in rows:
        first = seen.setdefault(text, title)
        yield f"> {title}" if first == title else f"> {title}: like {first}"
        if first == title:
            yield text.replace(PIXEL, "<pixel>")
