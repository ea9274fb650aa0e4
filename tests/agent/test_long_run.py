"""A thousand steps."""

from benchmarks.agent import Row, measure
from tests.support.promises import promise


@promise("agent:flat")
def test_a_thousand_steps_are_flat_in_memory_and_cheap_in_time() -> None:
    rows: list[Row] = measure()
    assert len(rows) == 6
    assert [row for row in rows if not row.is_kept] == []
