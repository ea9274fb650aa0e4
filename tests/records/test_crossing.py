"""From every record format to every API, judged by that API's own rules; and from every API into a record and back."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

import dragoman
from dragoman import ir
from dragoman.errors import EncodeError
from tests import strategies
from tests.support.cases import each
from tests.support.formats import FORMATS, MODELS, refusals
from tests.support.promises import promise
from tests.support.records import RECORDS, SAMPLES, histories

pytestmark = promise("law:3-legality")


@each("source", RECORDS)
@each("target", FORMATS)
def test_samples_reach_every_api_legally(source: str, target: str) -> None:
    for sample in SAMPLES[source]:
        model = MODELS[target]
        encoded = dragoman.translate_request(sample, source=source, target=target, model=model)
        assert refusals(encoded, target, model=model) == ()


@given(data=st.data())
@each("target", FORMATS)
def test_any_history_reaches_every_api_legally(target: str, data: st.DataObject) -> None:
    source = data.draw(st.sampled_from(RECORDS))
    body = data.draw(histories(source))
    model = MODELS[target]
    try:
        encoded = dragoman.translate_request(body, source=source, target=target, model=model)
    except EncodeError:
        return
    assert refusals(encoded, target, model=model) == (), encoded.json()


def turns_of(request: ir.Request) -> list[tuple[str, str]]:
    """Who said what: the words, the calls and the results, in order."""
    pairs: list[tuple[str, str]] = []
    for message in request.messages:
        for part in message.parts:
            if isinstance(part, ir.Text) and part.text.strip():
                pairs.append((message.role, part.text))
            elif isinstance(part, ir.ToolCall) and part.parsed:
                pairs.append(("call", f"{part.name} {part.arguments}"))
            elif isinstance(part, ir.ToolResult) and not part.parts:
                pairs.append(("error" if part.is_error else "result", f"{part.name} {part.value}"))
    return pairs


@given(data=st.data())
@each("store", RECORDS)
def test_a_request_comes_back_from_the_store(store: str, data: st.DataObject) -> None:
    wire = data.draw(st.sampled_from(FORMATS))
    model = MODELS[wire]
    try:
        request = structs.replace(data.draw(strategies.REQUESTS), model=model)
        body = dragoman.encode_request(request, wire).json()
    except EncodeError:
        return
    stored = dragoman.translate_request(body, source=wire, target=store)
    try:
        back = dragoman.translate_request(stored.json(), source=store, target=wire, model=model)
    except EncodeError:
        assert stored.losses  # nothing was left that this format could hold
        return
    # Blocks that only their vendor understands return to it unchanged, so its own rules do not judge them here.
    assert refusals(back, wire, model=model) == () or refusals(dragoman.Encoded(body), wire, model=model)
    here, there = dragoman.decode_request(body, wire), dragoman.decode_request(back.json(), wire)
    assert [tool.name for tool in there.tools] == [
        tool.name for tool in here.tools if not isinstance(tool, ir.ProviderTool)
    ] or any("tool" in loss.what for loss in stored.losses)
    assert there.model == here.model
    lost = [pair for pair in turns_of(here) if pair not in turns_of(there)]
    assert not lost or stored.losses or back.losses, lost
    calls = [(call.name, call.id) for message in here.messages for call in message.tool_calls]
    again = [(call.name, call.id) for message in there.messages for call in message.tool_calls]
    assert [name for name, _ in again] == [name for name, _ in calls]


@each("first", RECORDS)
@each("second", RECORDS)
def test_one_record_becomes_another(first: str, second: str) -> None:
    for sample in SAMPLES[first]:
        there = dragoman.translate_request(sample, source=first, target=second)
        here, stored = dragoman.decode_request(sample, first), dragoman.decode_request(there.json(), second)
        kept = [pair for pair in turns_of(here) if pair in turns_of(stored)]
        assert kept == turns_of(here) or any(loss.severity != "invented" for loss in there.losses)
