"""The rule that judges costs (law 11) on artificial costs, with and without noise, by a fake clock and the real one."""

from collections.abc import Callable
from itertools import count
from random import Random

import pytest

from tests.support.costs import FAR, NEAR, Growth, Prepare, Work, cpu_seconds, growth
from tests.support.promises import promise

pytestmark = promise("law:11-linear-cost")

SIZES = {NEAR: (128, 2_048), FAR: (64, 512)}
"""The smallest input and the largest small one, for each width of the first step."""
ITEM = 10e-6
"""CPU seconds of one message, call or tool in a slow row; a fast one takes a tenth of it."""

Cost = Callable[[int], float]


def judged(cost: Cost, leap: int, noise: Callable[[], float] = lambda: 1.0) -> Growth:
    """As `growth` judges work of this cost, when each run takes `noise` times as long as it should."""
    return growth(lambda n: lambda: cost(n), *SIZES[leap], lambda work: work() * noise(), leap=leap)


def hidden(share: float, item: float = ITEM) -> Cost:
    """A linear cost with a quadratic term that has this share of the whole at 512 items."""
    square = share / (1 - share) * item / 512
    return lambda n: item * n + square * n * n


def cliff(place: int, factor: float, item: float = ITEM) -> Cost:
    """Items cost more from some size on: they no longer fit into a memo, or into a cache of the processor."""
    return lambda n: item * n * (factor if n > place else 1.0)


STEEP: dict[str, Cost] = {
    "a square": lambda n: 1e-8 * n * n,
    "a square of large items": lambda n: 1e-5 * n * n,
    "a cube": lambda n: 1e-10 * n**3,
    "n to the power of 1.7": lambda n: 1e-6 * n**1.7,
    "half of the cost at 512": hidden(0.5),
    "a third of the cost at 512": hidden(0.34),
    "a third of the cost at 512, fast items": hidden(0.34, ITEM / 10),
    "a square after a cliff": lambda n: cliff(300, 3.0)(n) + hidden(0.6)(n),
    "a square beside fixed costs": lambda n: 1e-4 + hidden(0.5)(n),
}
LINEAR: dict[str, Cost] = {
    "linear": lambda n: ITEM * n,
    "linear beside fixed costs": lambda n: 1e-3 + ITEM * n,
    "n log n": lambda n: ITEM * n * n.bit_length() / 7,
    "constant": lambda _: 5e-4,
    **{
        f"a cliff of {factor:g} at {place}": cliff(place, factor)
        for factor in (1.5, 3.0, 10.0, 30.0)
        for place in (150, 511, 600, 2_047, 3_000, 8_191, 10_000)
    },
    "two cliffs, one after the other": lambda n: cliff(300, 4.0)(n) * (2.0 if n > 1_500 else 1.0),
    "two cliffs, far apart": lambda n: cliff(300, 4.0)(n) * (3.0 if n > 9_000 else 1.0),
}


def busy(seed: int) -> Callable[[], float]:
    """Noise only adds: most runs are 5 % off, a fifth share their core with others and take up to twice as long."""
    random = Random(seed)  # noqa: S311 - noise
    return lambda: 1 + random.random() * 0.05 + (random.random() if random.random() < 0.2 else 0.0)


@pytest.mark.parametrize("leap", SIZES)
@pytest.mark.parametrize("name", STEEP)
def test_a_steep_cost_is_noticed(name: str, leap: int) -> None:
    assert judged(STEEP[name], leap).is_steep
    missed = [seed for seed in range(100) if not judged(STEEP[name], leap, busy(seed)).is_steep]
    assert missed == []


@pytest.mark.parametrize("leap", SIZES)
@pytest.mark.parametrize("name", LINEAR)
def test_a_linear_cost_passes_whatever_its_steps(name: str, leap: int) -> None:
    assert not judged(LINEAR[name], leap).is_steep
    wrong = [seed for seed in range(100) if judged(LINEAR[name], leap, busy(seed)).is_steep]
    assert wrong == []


def test_a_wide_first_step_notices_smaller_terms() -> None:
    """A quarter of the cost at 512 is within the noise of a short one."""
    missed = [seed for seed in range(100) if not judged(hidden(0.25), FAR, busy(seed)).is_steep]
    assert missed == []


@pytest.mark.parametrize("leap", SIZES)
def test_most_linear_costs_are_measured_at_two_sizes_only(leap: int) -> None:
    assert len(judged(LINEAR["linear"], leap).costs) == 2
    assert len(judged(LINEAR["n log n"], leap).costs) <= 3


# ── real time ──


def pure(n: int) -> Work:
    return lambda: sum(1 for _ in range(n // 4) for _ in range(n))


def scanning(n: int) -> Work:
    """Each item is looked for in a list, beside work of its own that is linear."""
    names = [f"name {number}" for number in range(n)]

    def work() -> None:
        seen: list[str] = []
        for name in names:
            sum(range(100))
            if name not in seen:
                seen.append(name)

    return work


def joining(n: int) -> Work:
    def work() -> None:
        buffer = Buffer()
        for _ in range(n):
            buffer.data += b"x" * 100

    return work


class Buffer:
    data = b""


def plain(n: int) -> Work:
    return lambda: sum(range(40 * n))


def remembering(most: int) -> Prepare:
    """A memo that is too small for larger inputs: each of their items costs ten times as much."""
    numbers = count()

    def prepare(n: int) -> Work:
        known: dict[int, int] = {}
        first = next(numbers)

        def work() -> None:
            for item in range(first, first + n):
                if item not in known:
                    if n <= most:
                        known[item] = item
                    sum(range(400))
                sum(range(20))

        return work

    return prepare


@pytest.mark.parametrize("leap", SIZES)
@pytest.mark.parametrize(("prepare", "size"), [(pure, 16), (scanning, 16), (joining, 32)])
def test_real_quadratic_work_is_noticed(prepare: Prepare, size: int, leap: int) -> None:
    size = size if leap == FAR else 2 * size
    assert growth(prepare, size, size, cpu_seconds, leap=leap).is_steep


@pytest.mark.parametrize("leap", SIZES)
@pytest.mark.parametrize(
    "prepare", [plain, remembering(700), remembering(3_000), remembering(10_000)], ids=["plain", "700", "3000", "10000"]
)
def test_real_linear_work_passes(prepare: Prepare, leap: int) -> None:
    assert not growth(prepare, *SIZES[leap], cpu_seconds, leap=leap).is_steep
