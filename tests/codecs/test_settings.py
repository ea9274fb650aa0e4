"""The settings table: what follows from its rows."""

from typing import Any

import pytest
from msgspec import UNSET, Raw, UnsetType

from dragoman import ir
from dragoman.codecs.reading import WireReader
from dragoman.codecs.settings import BY_HAND, CONTENT, NO_SUCH_SETTING, Setting, Settings, collect_keys
from dragoman.codecs.wire_values import MaybeInt, MaybeStr, Wire
from dragoman.ir.values import parse_json
from dragoman.losses import LossLog, intermediate_paths
from tests.support.cases import each
from tests.support.promises import promise

pytestmark = promise("core:settings-table")


class Body(Wire, frozen=True, omit_defaults=True):
    messages: list[Raw]
    model: MaybeStr = None
    limit: MaybeInt = None
    stops: list[str] | UnsetType = UNSET
    seed: int | UnsetType = UNSET
    effort: str | UnsetType = UNSET
    tools: Raw | UnsetType = UNSET
    tier: Raw | UnsetType = UNSET


def _write_stops(stop: Any, request: ir.Request, log: LossLog) -> list[str]:
    log.note(request, "stop", "written", "to see that it was called")
    return list(stop)


TABLE = Settings(
    Body,
    "some",
    (
        Setting("model"),
        Setting("max_output_tokens", "limit"),
        Setting("stop", "stops", tuple, _write_stops),
        Setting("seed"),
        Setting("reasoning", "effort", BY_HAND, BY_HAND, "config.effort"),
    ),
)
KEYS = collect_keys(Body, ("tier",))
READER = WireReader(Body, "some request")


def test_a_request_is_read_by_the_rows_of_the_table() -> None:
    wire = READER.read(b'{"messages":[],"model":"m","limit":5,"stops":["a"],"seed":7,"tier":"x","new":1}')
    request = TABLE.read(wire, (), (), {"some": KEYS(wire)}, ir.ReasoningSettings(effort="low"))
    assert request == ir.Request(
        "m",
        (),
        max_output_tokens=5,
        stop=("a",),
        seed=7,
        reasoning=ir.ReasoningSettings(effort="low"),
        metadata={"some": {"new": Raw(b"1"), "tier": Raw(b'"x"')}},
        origin="some",
    )


def test_absent_keys_are_defaults() -> None:
    wire = READER.read(b'{"messages":[]}')
    assert KEYS(wire) is None
    assert TABLE.read(wire, (), (), None, None) == ir.Request(None, (), origin="some")


def test_a_request_is_written_by_the_rows_of_the_table() -> None:
    log = LossLog()
    wire = TABLE.write(ir.Request("m", (), stop=("a",), seed=0, max_output_tokens=1), log, [], UNSET, "high")
    assert wire == Body([], "m", 1, ["a"], 0, "high")
    assert [entry[1] for entry in log.entries] == ["stop"]
    assert TABLE.write(ir.Request(None, ()), LossLog(), [], UNSET, UNSET) == Body([])


VALUES: dict[str, Any] = {
    "tool_choice": ir.ToolChoice("auto"),
    "output": ir.StructuredOutput("json"),
    "cache": ir.Cache(),
    "stop": ("a",),
    "reasoning": ir.ReasoningSettings(effort="low"),
    "model": "m",
    "user": "u",
}


@each("field", [name for name in ir.Request.__struct_fields__ if name not in CONTENT])
def test_a_field_without_a_row_is_a_loss_by_construction(field: str) -> None:
    log = LossLog()
    request = ir.Request(**{"model": None, "messages": (), field: VALUES.get(field, 1)})
    wire = TABLE.write(request, log, [], UNSET, UNSET)
    rows = {"model", "max_output_tokens", "stop", "seed", "reasoning"}
    found = [loss.path for loss in log.resolve(request, intermediate_paths) if loss.why == NO_SUCH_SETTING]
    assert found == ([] if field in rows else [f"$.{field}"])
    assert isinstance(wire, Body)


@pytest.mark.parametrize(
    ("field", "path"),
    [
        ("max_output_tokens", "$.limit"),
        ("reasoning", "$.config.effort"),
        ("reasoning.mode", "$.config.effort.mode"),
        ("tier", "$.tier"),
        ("", "$"),
    ],
)
def test_paths_of_settings_follow_from_the_rows(field: str, path: str) -> None:
    assert TABLE.path(field) == path


# ── keys beside the struct ──


class ConfigBody(Body, frozen=True, omit_defaults=True):
    config: Raw | UnsetType = UNSET


BESIDE = Settings(
    ConfigBody,
    "some",
    (
        Setting("model"),
        Setting("user", "end_user"),
        Setting("top_k", "config.k"),
        Setting("temperature", "config.heat", lambda heat: heat / 100 if heat else None, lambda heat, *_: heat * 100),
        Setting("modalities", "other_config.words"),
    ),
    content=("messages", "tools", "config"),
)


def _read_beside(extra: dict[str, Raw]) -> ir.Request:
    request: ir.Request = BESIDE.read(READER.read(b'{"messages":[]}'), (), (), {"some": extra} if extra else None)
    return request


@pytest.mark.parametrize(
    ("extra", "expected"),
    [
        ({"end_user": Raw(b'"u"')}, {"user": "u"}),
        ({"~in:config": Raw(b'{"k":5,"heat":50}')}, {"top_k": 5, "temperature": 0.5}),
        (
            {"other": Raw(b"1"), "~in:config": Raw(b'{"k":5,"further":{}}')},
            {"top_k": 5, "metadata": {"some": {"other": Raw(b"1"), "~in:config": Raw(b'{"further":{}}')}}},
        ),
        # An object that the codec does not write itself is kept whole.
        ({"other_config": Raw(b'{"words":["text"]}')}, {"modalities": ("text",)}),
        (
            {"other_config": Raw(b'{"words":["text"],"x":1}')},
            {"modalities": ("text",), "metadata": {"some": {"other_config": Raw(b'{"x":1}')}}},
        ),
        ({"other_config": Raw(b"5")}, {"metadata": {"some": {"other_config": Raw(b"5")}}}),
        ({"other_config": Raw(b'{"words":[]}')}, {"metadata": {"some": {"other_config": Raw(b'{"words":[]}')}}}),
        # What the field cannot hold stays as the wire said it.
        ({"end_user": Raw(b"null")}, {"metadata": {"some": {"end_user": Raw(b"null")}}}),
        ({"end_user": Raw(b"5")}, {"metadata": {"some": {"end_user": Raw(b"5")}}}),
        ({"~in:config": Raw(b'{"heat":0}')}, {"metadata": {"some": {"~in:config": Raw(b'{"heat":0}')}}}),
        ({"other": Raw(b"1")}, {"metadata": {"some": {"other": Raw(b"1")}}}),
        ({}, {}),
    ],
)
def test_keys_beside_the_struct_are_read_and_written_back(extra: dict[str, Raw], expected: dict[str, Any]) -> None:
    before = dict(extra)
    request = _read_beside(extra)
    assert request == ir.Request(None, (), origin="some", **expected)
    assert extra == before, "the given keys may be shared"
    own = (request.metadata or {}).get("some")
    keys = BESIDE.add_keys(request, LossLog(), own)
    read = {key: parse_json(raw) for key, raw in (keys or {}).items()}
    assert read == {key: parse_json(raw) for key, raw in extra.items()}


def test_without_such_settings_the_same_keys_are_handed_on() -> None:
    request, own = ir.Request(None, ()), {"other": Raw(b"1")}
    assert BESIDE.add_keys(request, LossLog(), own) is own
    assert BESIDE.add_keys(request, LossLog(), None) is None


def test_paths_of_keys_beside_the_struct() -> None:
    assert BESIDE.path("user") == "$.end_user"
    assert BESIDE.path("top_k") == "$.config.k"
    assert list(BESIDE.keys_beside.items())[:2] == [("user", "end_user"), ("top_k", "config.k")]


def test_what_an_api_does_anyway_is_not_a_loss() -> None:
    table = Settings(Body, "some", (Setting("model"), Setting("store", None, lost="none", anyway=False)))
    for value, count in ((None, 0), (False, 0), (True, 1)):
        log = LossLog()
        table.write(ir.Request(None, (), store=value), log, [], UNSET)
        assert len(log.entries) == count


def test_a_writer_may_leave_a_setting_out() -> None:
    def _write(value: str, request: ir.Request, log: LossLog) -> Any:
        log.drop(request, "user", f"user {value}", "too long")
        return UNSET

    table = Settings(Body, "some", (Setting("model"), Setting("user", "end_user", write=_write)))
    log = LossLog()
    assert table.add_keys(ir.Request(None, (), user="u"), log, None) == {}
    assert [entry[1] for entry in log.entries] == ["user"]
