"""Lifting: bytes become typed wire values, and keys that the types do not have are kept in `extra`."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Raw, UnsetType

import dragoman
from dragoman import ir
from dragoman.codecs.reading import WireReader, body_bytes, keep, spliced
from dragoman.codecs.wire_values import Unmodelled, Wire
from dragoman.errors import DecodeError, LimitExceeded
from dragoman.ir.notes import inner_extra
from tests import strategies
from tests.support.promises import promise
from tests.support.trees import difference, plain


class Inner(Wire, frozen=True):
    name: str
    size: int | UnsetType = UNSET


class Leaf(Wire, frozen=True, tag="leaf"):
    text: str


class Branch(Wire, frozen=True, tag="branch"):
    leaves: list["Leaf | Branch | Unmodelled"]


class Outer(Wire, frozen=True):
    inner: Inner | UnsetType = UNSET
    many: list[Inner] | UnsetType = UNSET
    tree: "Leaf | Branch | Unmodelled | UnsetType" = UNSET
    free: Raw | UnsetType = UNSET
    maybe: str | None | UnsetType = UNSET
    longName: str | UnsetType = UNSET  # noqa: N815


reader = WireReader(Outer, "test", aliases={"long_name": "longName"})


def read(value: Any) -> Outer:
    return reader.read(json.dumps(value).encode())


def extras(wire: Wire) -> dict[str, Any]:
    return {} if wire.extra is UNSET else {key: json.loads(bytes(value)) for key, value in wire.extra.items()}


# ── known keys ────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_ordinary_body_is_read_as_it_is() -> None:
    outer = read({"inner": {"name": "a", "size": 1}, "maybe": None})
    assert outer == Outer(inner=Inner(name="a", size=1), maybe=None)
    assert outer.extra is UNSET


def test_free_json_is_not_examined() -> None:
    outer = reader.read(b'{"free": {"name": 5, "a":1.0, "a":2}}')
    assert isinstance(outer.free, Raw)
    assert bytes(outer.free) == b'{"name": 5, "a":1.0, "a":2}'


# ── unknown keys ──────────────────────────────────────────────────────────────────────────────────────────────


def test_a_key_beyond_the_type_moves_into_extra_of_its_own_object() -> None:
    outer = read({"inner": {"name": "a", "x": [1]}, "y": {"z": None}})
    assert isinstance(outer.inner, Inner)
    assert extras(outer) == {"y": {"z": None}}
    assert extras(outer.inner) == {"x": [1]}
    assert outer.inner.name == "a"


def test_a_null_that_no_type_allows_is_an_extra() -> None:
    outer = read({"inner": None, "maybe": None, "longName": None})
    assert outer.inner is UNSET
    assert outer.maybe is None
    assert extras(outer) == {"inner": None, "longName": None}


def test_a_block_of_an_unknown_type_is_kept_whole() -> None:
    outer = reader.read(b'{"tree": {"type": "future", "deep": {"n": 1.0}}}')
    assert isinstance(outer.tree, Unmodelled)
    assert bytes(outer.tree.raw) == b'{"type": "future", "deep": {"n": 1.0}}'


@pytest.mark.parametrize("tag", [None, 5, [], {}, "", "~unknown"], ids=repr)
def test_a_block_whose_type_is_not_a_string_is_kept_whole(tag: Any) -> None:
    outer = read({"tree": {"type": tag, "text": "x"}})
    assert isinstance(outer.tree, Unmodelled)


def test_an_unknown_block_inside_a_known_one_is_kept_whole() -> None:
    outer = read({"tree": {"type": "branch", "leaves": [{"type": "leaf", "text": "a", "x": 1}, {"type": "new"}]}})
    assert isinstance(outer.tree, Branch)
    first, second = outer.tree.leaves
    assert isinstance(first, Leaf)
    assert extras(first) == {"x": 1}
    assert isinstance(second, Unmodelled)


def test_other_spellings_are_understood_and_noted() -> None:
    outer = read({"long_name": "a"})
    assert outer.longName == "a"
    assert plain(bytes(spliced(outer, outer.extra or {}))) == {"long_name": "a"}


def test_both_spellings_at_once_are_both_kept() -> None:
    outer = read({"longName": "a", "long_name": "b"})
    assert outer.longName == "a"
    assert plain(bytes(spliced(outer, outer.extra or {}))) == {"longName": "a", "long_name": "b"}


def test_a_lone_element_is_a_list_of_one_and_goes_back_alone() -> None:
    outer = read({"many": {"name": "a"}})
    assert outer.many == [Inner(name="a")]
    assert plain(bytes(spliced(outer, outer.extra or {}))) == {"many": {"name": "a"}}


def test_keys_that_look_like_our_notes_are_ordinary_keys() -> None:
    body = {"~raw:x": 1, "~as:longName": "y", "~": 2, "~in:inner": {}, "~single:many": True, "longName": "a"}
    outer = read(body)
    assert outer.longName == "a"
    assert plain(bytes(spliced(outer, outer.extra or {}))) == body


@pytest.mark.parametrize("key", ["~extra", "~extra-0123456789abcdef", "extra", "raw"])
def test_a_body_cannot_use_our_own_internal_names(key: str) -> None:
    again = read({key: {"a": 1}})
    assert plain(bytes(spliced(again, again.extra or {}))) == {key: {"a": 1}}


# ── and back ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_spliced_puts_extras_behind_what_is_known() -> None:
    assert bytes(spliced(Inner(name="a"), {"x": Raw(b"1.0"), "~note": Raw(b"true")})) == b'{"name":"a","x":1.0}'
    assert bytes(spliced(Raw(b"{}"), {"x": Raw(b"1")})) == b'{"x":1}'
    assert bytes(spliced(Inner(name="a"), {})) == b'{"name":"a"}'
    assert bytes(spliced(Inner(name="a"), {"~raw:modelled": Raw(b"[]")})) == b'{"name":"a","modelled":[]}'


def test_keep_and_inner_extra_are_inverse() -> None:
    kept = keep("family", {"a": Raw(b"1")}, function={"b": Raw(b"2.0")}, empty=UNSET)
    assert kept is not None
    assert inner_extra(kept["family"], "function") == {"b": Raw(b"2.0")}
    assert inner_extra(kept["family"], "empty") is None
    assert keep("family", UNSET, function=UNSET) is None


INNERS = st.fixed_dictionaries(
    {"name": st.just("a")}, optional={"size": st.integers(0, 9), "x": strategies.JSON_SCALARS}
)
VALUES = {
    "inner": INNERS | st.none(),
    "many": st.lists(INNERS, max_size=2) | INNERS,
    "free": strategies.JSON_VALUES,
    "maybe": st.none() | st.just("m"),
    "longName": st.just("l") | st.none(),
    "x": strategies.JSON_VALUES,
    "~z": strategies.JSON_SCALARS,
}


@given(body=st.fixed_dictionaries({}, optional=VALUES))
def test_what_was_lifted_can_be_put_back(body: dict[str, Any]) -> None:
    outer = read(body)
    inner = outer.inner
    pieces: dict[str, Any] = {}
    if isinstance(inner, Inner):
        pieces["inner"] = spliced(inner, inner.extra or {})
    if outer.many is not UNSET:
        pieces["many"] = [spliced(each, each.extra or {}) for each in outer.many]
    rebuilt = Outer(
        inner=pieces.get("inner", UNSET),
        many=pieces.get("many", UNSET),
        free=outer.free,
        maybe=outer.maybe,
        longName=outer.longName,
    )
    again = plain(bytes(spliced(rebuilt, outer.extra or {})))
    assert difference(body, again) is None


# ── errors ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("body", "path", "expected", "got"),
    [
        (b'{"inner": {"name": 5}}', "$.inner.name", "str", "int"),
        (b'{"inner": {"name": 5, "x": 1}}', "$.inner.name", "str", "int"),
        (b'{"inner": {"size": 1}}', "$.inner", "name", "missing"),
        (b'{"many": [{"name": "a"}, {"name": null}]}', "$.many[1]", "name", "missing"),
        (b'{"many": "a"}', "$.many", "array", "str"),
        (b'{"tree": {"type": "leaf", "text": []}}', "$.tree.text", "str", "array"),
        (b'{"tree": 5}', "$.tree", "", "int"),
        (b"[]", "$", "object", "array"),
    ],
)
def test_faults_have_a_path_an_expectation_and_a_finding(body: bytes, path: str, expected: str, got: str) -> None:
    with pytest.raises(DecodeError) as raised:
        reader.read(body)
    assert raised.value.path == path
    assert expected in str(raised.value)
    assert got in str(raised.value)
    assert raised.value.source == "test"


def test_deep_nesting_is_an_error_and_not_a_crash() -> None:
    with pytest.raises(LimitExceeded, match="nesting"):
        reader.read(b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}")


@pytest.mark.parametrize(
    "given_as",
    [b'{"a":1}', '{"a":1}', bytearray(b'{"a":1}'), memoryview(b'{"a":1}'), {"a": 1}],
    ids=lambda v: type(v).__name__,
)
def test_a_body_may_be_bytes_text_or_an_object(given_as: Any) -> None:
    assert body_bytes(given_as, "test") == b'{"a":1}'


def test_a_byte_order_mark_is_not_part_of_the_body() -> None:
    assert body_bytes(b"\xef\xbb\xbf{}", "test") == b"{}"


# ── one object at a time ──────────────────────────────────────────────────────────────────────────────────────


class CountingReader(WireReader[Outer]):
    """Counts how often the strict decoder runs."""

    def __init__(self) -> None:
        super().__init__(Outer, "test")
        self.decodes = 0
        strict = self._strict

        class Strict:
            def decode(_, body: Any) -> Outer:  # noqa: N805
                self.decodes += 1
                return strict.decode(body)

        self._strict = self._widest = Strict()  # type: ignore[assignment]


@promise("core:lifts-one-object")
def test_only_the_odd_object_is_lifted() -> None:
    reader = CountingReader()
    body = {"many": [{"name": "a"}, {"name": "b", "new": 1}, {"name": "c"}], "inner": {"name": "d"}}
    read = reader.read(json.dumps(body).encode())
    assert reader.decodes == 2
    assert [inner.extra for inner in read.many] == [UNSET, {"new": Raw(b"1")}, UNSET]  # type: ignore[union-attr]
    assert read.extra is UNSET


@promise("core:lifts-one-object")
@pytest.mark.parametrize("count", [1, 2, 3, 4, 50, 2000])
def test_however_many_objects_are_odd_the_body_is_decoded_a_few_times(count: int) -> None:
    reader = CountingReader()
    body = {"many": [{"name": str(index), "new": index} for index in range(count)]}
    read = reader.read(json.dumps(body).encode())
    assert reader.decodes <= 6
    assert [inner.extra["new"] for inner in read.many] == [Raw(str(index).encode()) for index in range(count)]  # type: ignore[union-attr, index]


# ── pieces that are carried unparsed ──────────────────────────────────────────────────────────────────────────

_CALLED = ir.Request(
    "some-model",
    (
        ir.Message("user", "天気は?"),
        ir.Message("assistant", (ir.ToolCall("call_1", "get_weather", {"city": "東京"}),)),
        ir.Message("tool", (ir.ToolResult("call_1", "get_weather", "text", "sunny"),)),
    ),
    (ir.ToolDefinition("get_weather", "Weather", {"type": "object", "properties": {"city": {"type": "string"}}}),),
)


@pytest.mark.parametrize("name", dragoman.formats())
def test_chunks_that_are_not_text_are_refused(name: str) -> None:
    body = dragoman.encode_request(_CALLED, name).json()
    assert "東京".encode() in body
    broken = body.replace("東京".encode(), "東京".encode()[:-1])
    with pytest.raises(dragoman.DecodeError, match="UTF-8"):
        dragoman.decode_request(broken, name)


def test_losses_of_a_body_are_resolved_when_they_are_read() -> None:
    encoded = dragoman.encode_request(_CALLED, "anthropic-messages")
    assert [(loss.path, loss.severity) for loss in encoded.losses] == [("$.max_output_tokens", "invented")]
    with pytest.raises(dragoman.LossRefused):
        dragoman.encode_request(_CALLED, "anthropic-messages", strict=True)
