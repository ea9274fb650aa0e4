"""Many small cases in one test.

pytest's own work for an item (collect it, set it up, report it to another process) takes milliseconds, a conversion
takes microseconds: products of formats and samples are therefore loops inside a test.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from itertools import product
from typing import Any
from weakref import WeakKeyDictionary

import pytest

SHOWN = 8
"""Number of tracebacks that one test prints. The names of all failing cases are printed."""

Check = Callable[..., None]
Table = list[tuple[str, dict[str, Any]]]

_LOOPS: WeakKeyDictionary[Check, tuple[Check, list[Table]]] = WeakKeyDictionary()


def _short(value: Any) -> str:
    return str(value)[:60]


def each(
    names: str | tuple[str, ...],
    cases: Iterable[Any],
    ids: Callable[[Any], str] | Iterable[str] = _short,
) -> Callable[[Check], Check]:
    """Like `pytest.mark.parametrize`, in one test. All cases are tried, and a failure names each that failed.

    Above `@given`, every case draws examples of its own. Below it, all cases are asked about the same example, which
    saves most of the drawing. Fixtures are shared by the cases.
    """
    keys = (names,) if isinstance(names, str) else names
    rows = [_row(case, alone=isinstance(names, str)) for case in cases]
    labels = ["-".join(map(ids, case)) for _, case in rows] if callable(ids) else list(ids)
    table = [
        (own or label, dict(zip(keys, case, strict=True))) for label, (own, case) in zip(labels, rows, strict=True)
    ]
    if not table:
        msg = f"no case for {', '.join(keys)}: such a test could not fail"
        raise ValueError(msg)

    def decorate(function: Check) -> Check:
        check, inner = _LOOPS.get(function, (function, []))
        tables = [table, *inner]

        signature = inspect.signature(function)
        rest = [one for one in signature.parameters.values() if one.name not in keys]
        if len(rest) != len(signature.parameters) - len(keys):
            msg = f"{function.__qualname__} does not take {', '.join(keys)}"
            raise TypeError(msg)
        signature = signature.replace(parameters=rest)

        @wraps(function)
        def test(*args: Any, **named: Any) -> None:
            shared = signature.bind(*args, **named).arguments
            _try_all(tables, lambda case: check(**shared, **case))

        test.__signature__ = signature  # type: ignore[attr-defined]
        _LOOPS[test] = check, tables
        return test

    return decorate


def _row(case: Any, *, alone: bool) -> tuple[str | None, tuple[Any, ...]]:
    """The name and the values of a case, which may be written as `pytest.param`."""
    if not isinstance(case, type(pytest.param())):
        return None, (case,) if alone else tuple(case)
    if case.marks:
        raise TypeError("a case of a loop has no marks of its own: parametrize the test")
    return case.id if isinstance(case.id, str) else None, tuple(case.values)


def _try_all(tables: list[Table], check: Callable[[Mapping[str, Any]], None]) -> None:
    __tracebackhide__ = True
    count, failed, errors = 0, [], []
    for combined in product(*tables):
        count += 1
        name = "-".join(part for part, _ in combined)
        error = _failure(check, {key: value for _, case in combined for key, value in case.items()})
        if error is not None:
            error.add_note(f"case: {name}")
            failed.append(name)
            errors.append(error)
    if errors:
        msg = f"{len(errors)} of {count} cases failed: {', '.join(failed)}"
        raise ExceptionGroup(msg, errors[:SHOWN]) from None


def _failure(check: Callable[[Mapping[str, Any]], None], case: Mapping[str, Any]) -> Exception | None:
    try:
        check(case)
    except pytest.skip.Exception as skipped:
        return AssertionError(f"a case cannot be skipped in silence ({skipped}): leave it out, or parametrize the test")
    except pytest.fail.Exception as failed:
        return AssertionError(str(failed))
    except Exception as error:  # noqa: BLE001 - whatever a case raises is its failure, and the other cases are tried too
        return error
    return None
