"""`@promise("report:49", "law:8-pairs-hold")` above a test names the promises that it checks (tests/ledger.py).

Ids are written out as literals: tests/test_ledger.py reads them from the source text, without running it.
"""

import pytest

promise = pytest.mark.promise
