"""A test that loops over its cases tries all of them, and names each that fails."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.cases import SHOWN, each


def failing(check: object) -> ExceptionGroup[Exception]:
    with pytest.raises(ExceptionGroup) as caught:
        check()  # type: ignore[operator]
    return caught.value


def test_every_failing_case_is_named_and_every_case_is_tried() -> None:
    seen: list[tuple[int, str]] = []

    @each("number", [1, 2, 3])
    @each("word", ["a", "b"])
    def check(number: int, word: str) -> None:
        seen.append((number, word))
        assert (number, word) not in {(1, "b"), (3, "a")}, "wrong"

    group = failing(check)
    assert group.message == "2 of 6 cases failed: 1-b, 3-a"
    assert [error.__notes__ for error in group.exceptions] == [["case: 1-b"], ["case: 3-a"]]
    assert seen == [(1, "a"), (1, "b"), (2, "a"), (2, "b"), (3, "a"), (3, "b")]


def test_pairs_have_both_names_and_ids_may_be_given() -> None:
    @each(("number", "word"), [(1, "a"), (2, "b")], ids=["first", "second"])
    def check(number: int, word: str) -> None:
        assert (number, word) == (1, "a")

    assert failing(check).message == "1 of 2 cases failed: second"


def test_many_failures_are_all_named_and_some_are_shown() -> None:
    @each("number", range(30))
    def check(number: int) -> None:
        pytest.fail(f"no {number}")

    group = failing(check)
    assert group.message.endswith("27, 28, 29")
    assert len(group.exceptions) == SHOWN


def test_a_case_may_be_a_param_with_an_id_but_without_marks() -> None:
    @each(("number", "word"), [pytest.param(1, "a", id="one"), pytest.param(2, "b"), (3, "c")])
    def check(number: int, word: str) -> None:
        assert (number, word) == (0, "")

    assert failing(check).message == "3 of 3 cases failed: one, 2-b, 3-c"
    with pytest.raises(TypeError, match="no marks of its own"):
        each("number", [pytest.param(1, marks=pytest.mark.skip)])


def test_a_case_that_is_skipped_is_a_failure() -> None:
    @each("number", [1])
    def check(number: int) -> None:
        pytest.skip(f"not {number}")

    assert "cannot be skipped" in str(failing(check).exceptions[0])


def test_a_test_without_cases_or_without_the_argument_cannot_be_written() -> None:
    with pytest.raises(ValueError, match="no case for number"):
        each("number", [])
    with pytest.raises(TypeError, match="does not take number"):
        each("number", [1])(test_pairs_have_both_names_and_ids_may_be_given)


@each("number", [1, 2])
def test_fixtures_reach_every_case(number: int, tmp_path: object) -> None:
    assert number
    assert tmp_path


def test_examples_are_shared_by_the_cases_below_given() -> None:
    seen: list[tuple[int, str]] = []

    @settings(max_examples=5, database=None)
    @given(number=st.integers())
    @each("word", ["a", "b"])
    def check(word: str, number: int) -> None:
        seen.append((number, word))

    check()
    assert len(seen) == 10
    assert all(seen[at][0] == seen[at + 1][0] for at in range(0, 10, 2))
