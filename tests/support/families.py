"""One item for many cases of a parametrized test: pytest's work for an item takes as long as a small case.

Cases of one function in a row become one item where they need no fixtures and have equal marks. Selection by name and
by -k comes first, so a single case is an item as before. All cases of an item run, and all failures are reported.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any

import pytest

CASES = 16
"""The most cases of an item."""
WITHOUT_STATE = frozenset({"no_programs_from_disk", "no_fault_is_hidden"})
"""Fixtures that do the same for one case and for several."""


def merged(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The items of a session, with rows of cases as single items."""
    result: list[pytest.Item] = []
    for key, group in itertools.groupby(items, _family):
        cases: list[Any] = list(group)
        if key is None:
            result.extend(cases)
            continue
        for start in range(0, len(cases), CASES):
            result.append(_one_item(cases[start : start + CASES]))
    return result


def _family(item: Any) -> Any:
    """Equal for the cases that may share an item; None for an item that stays alone."""
    spec = getattr(item, "callspec", None)
    if spec is None or {*item._fixtureinfo.names_closure} - {*spec.params} - WITHOUT_STATE:
        return None
    fixtures = [item._fixtureinfo.name2fixturedefs[name][-1].func.__module__ for name in spec.params]
    if any([not module.startswith("_pytest.") for module in fixtures]):  # a fixture that takes the parameter
        return None
    marks = [mark for mark in item.iter_markers() if mark.name != "parametrize"]
    if any([mark.name not in ("filterwarnings", "usefixtures") for mark in marks]):
        return None
    return item.nodeid.split("[")[0], repr(marks)


def _one_item(cases: list[Any]) -> Any:
    first = cases[0]
    if len(cases) > 1:
        first.runtest = functools.partial(_run, cases)
        first.name = f"{first.originalname}[{first.callspec.id} ... {cases[-1].callspec.id}]"
    return first


def _run(cases: list[Any]) -> None:
    """Run all cases of an item, and fail with the reports of all that failed."""
    reports, skipped = [], []
    for case in cases:
        try:
            case.obj(**case.callspec.params)
        except pytest.skip.Exception as reason:
            skipped.append(str(reason))
        except (Exception, pytest.fail.Exception):
            failure = pytest.ExceptionInfo.from_current()
            failure.traceback = failure.traceback.cut(path=case.path)
            base = case.nodeid.split("[")[0]
            reports.append(f"{base}[{case.callspec.id}]\n{failure.getrepr(style='short')}")
    if reports:
        pytest.fail(f"{len(reports)} of {len(cases)} cases\n\n" + "\n\n".join(reports), pytrace=False)
    if len(skipped) == len(cases):
        pytest.skip(skipped[0])
