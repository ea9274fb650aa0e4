"""Numbered traps of a kind of file: each row has a number, a sentence and a test of its own."""

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., None])


class Traps:
    """Rows of one table. `missing` names the numbers without a row."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.rows: dict[int, tuple[str, Callable[..., None]]] = {}

    def __call__(self, number: int, sentence: str) -> Callable[[F], F]:
        """Register the decorated function as the test of this trap."""

        def register(test: F) -> F:
            assert number not in self.rows, f"trap {number} has two rows"
            self.rows[number] = (sentence, test)
            return test

        return register

    @property
    def missing(self) -> list[int]:
        return [number for number in range(1, self.count + 1) if number not in self.rows]

    def run(self, number: int, *arguments: Any) -> None:
        sentence, test = self.rows[number]
        assert sentence.endswith(".")
        test(*arguments)
