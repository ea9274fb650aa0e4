import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.cli.documents import Document, read_documents
from dragoman.cli.problems import InputProblem
from dragoman.inspection.byte_positions import offset_of


def read(content: bytes) -> tuple[bool, list[Document]]:
    found = read_documents(io.BytesIO(content), "file")
    return found.several, list(found.items)


@pytest.mark.parametrize(
    ("content", "several", "expected"),
    [
        (b'{"a": 1}', False, [(b'{"a": 1}', 1)]),
        (b'\n\n{"a": 1}\n\n', False, [(b'{"a": 1}', 3)]),
        (b'\xef\xbb\xbf{"a": 1}\n', False, [(b'{"a": 1}', 1)]),
        (b'{\n"a": 1\n}\n', False, [(b'{\n"a": 1\n}', 1)]),
        (b'{\r\n"a": 1\r\n}\r\n', False, [(b'{\n"a": 1\n}', 1)]),
        (b"{}\n{}\n", True, [(b"{}", 1), (b"{}", 2)]),
        (b"{}\r\n\r\n{}", True, [(b"{}", 1), (b"{}", 3)]),
        (b'{\n"a": "}{"}\n\n{\n"b": "\\"}"}', True, [(b'{\n"a": "}{"}', 1), (b'{\n"b": "\\"}"}', 4)]),
        (b"{\n} {\n}{}", True, [(b"{\n}", 1), (b"{\n}", 2), (b"{}", 3)]),
        (b"[\n{}\n]", False, [(b"[\n{}\n]", 1)]),
        (b'{"a": [\n{"b": 1}\n]}\n', False, [(b'{"a": [\n{"b": 1}\n]}', 1)]),
        (b'{}\n{"a":\n1}\n{}', True, [(b"{}", 1), (b'{"a":\n1}', 2), (b"{}", 4)]),
        (b'{}\n{"a": "oops\n{}', True, [(b"{}", 1), (b'{"a": "oops\n{}', 2)]),
        (b"{\n]}\n", True, [(b"{\n]", 1), (b"}", 2)]),
        (b'{\n"unclosed', False, [(b'{\n"unclosed', 1)]),
        (b"1\n2\n", True, [(b"1", 1), (b"2", 2)]),
    ],
)
def test_json_and_json_lines_are_distinguished(
    content: bytes,
    several: bool,  # noqa: FBT001
    expected: list[tuple[bytes, int]],
) -> None:
    assert read(content) == (several, expected)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(st.dictionaries(st.text(), JSON, max_size=3), min_size=1, max_size=4), st.sampled_from([None, 0, 2]))
def test_what_is_written_is_read(bodies: list[object], indent: int | None) -> None:
    text = "\n".join(json.dumps(body, indent=indent) for body in bodies)
    several, documents = read(text.encode())
    assert several == (len(bodies) > 1)
    assert [json.loads(document.content) for document in documents] == bodies
    lines = text.split("\n")
    for document in documents:
        assert lines[document.line - 1].startswith("{")


@given(st.binary(max_size=60))
def test_any_bytes_are_split_without_loss(content: bytes) -> None:
    """Or refused in words: everything but white space ends up in some document."""
    try:
        _, documents = read(content)
    except InputProblem:
        return
    kept = b"".join(b"".join(document.content.split()) for document in documents)
    assert kept == b"".join(content.removeprefix(b"\xef\xbb\xbf").split())


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("$", '{"a'),
        ("$.a", "1,"),
        ("$.b", '[{"c": [1'),
        ("$.b[0].c", "[1, 2]"),
        ("$.b[0].c[1]", "2]"),
        ("$.b[1]", '"x}'),
        ("$.d.e", "null"),
        ("$.b[0].nope", '{"c": [1'),
        ("$.b[9]", '[{"c": [1'),
        ("$.nope.deeper", '{"a'),
        ("$.a.deeper", "1,"),
        ("$.b[...]", '[{"c": [1'),
    ],
)
def test_a_path_leads_to_its_place(path: str, expected: str) -> None:
    content = '{"a": 1, "b": [{"c": [1, 2]}, "x}\\"", {}], "d": {"e": null}}'
    assert content[offset_of(content.encode(), path) :].startswith(expected)


@given(st.binary(max_size=40), st.from_regex(r"\$(\.[a-z]{1,3}|\[[0-9]\]){0,4}", fullmatch=True))
def test_any_path_in_any_bytes_is_some_place(content: bytes, path: str) -> None:
    assert 0 <= offset_of(content, path) <= len(content)
