"""Great Expectations: the one place that calls it. It takes seconds to import, so that this is done on demand.

A process has one context, whose sources and assets go by name, and dates are checked side by side: one at a time here.
"""

from __future__ import annotations

import html
import logging
import os
import re
import warnings
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache, wraps
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar, cast

from clickjoin.model.reporter import figure
from clickjoin.quality.checks import ACCOUNTED, Bounds, Check

if TYPE_CHECKING:
    from clickjoin.config.quality import Level

SEVERITY: Mapping[Level, str] = {"fail": "critical", "warn": "warning"}


_LOCK = RLock()
_Call = TypeVar("_Call", bound=Callable[..., Any])


def _alone(call: _Call) -> _Call:
    @wraps(call)
    def alone(*args: Any, **more: Any) -> Any:
        with _LOCK:
            return call(*args, **more)

    return cast("_Call", alone)


@_alone
@cache
def context() -> Any:
    """A context that lives in memory: it writes no files, asks nobody, and tells nobody."""
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    logging.getLogger("great_expectations").setLevel(logging.WARNING)  # it tells of each class that it finds
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        import great_expectations as gx
        from great_expectations.data_context.types.base import ProgressBarsConfig

    made = gx.get_context(mode="ephemeral")
    made.variables.progress_bars = ProgressBarsConfig(globally=False)
    return made


@_alone
def of_check(check: Check, bounds: Bounds, level: Level) -> Any:
    """The expectation that a check is, on a frame of one row with a column for each check of its suite."""
    context()
    from great_expectations.expectations.core.expect_column_max_to_be_between import ExpectColumnMaxToBeBetween

    from clickjoin.quality.accounting_expectation import ExpectEveryInputAccountedFor

    said: dict[str, Any] = {"severity": SEVERITY[level], "meta": {"check": check.name}}
    said["description"] = _plain(f"{check.name}: {check.asks}: {text(bounds)}")
    if check.name == ACCOUNTED:
        return ExpectEveryInputAccountedFor(**said)
    return ExpectColumnMaxToBeBetween(column=column_of(check.name), min_value=bounds.low, max_value=bounds.high, **said)


def column_of(check: str) -> str:
    """The column that a check's figure is in: its name, made safe where it holds a field's that some record has."""
    safe = re.sub(r"[^\w.-]", "_", check)
    return safe if safe == check else f"{safe}_{zlib.crc32(check.encode()):08x}"


def _plain(words: str) -> str:
    """Text that stays text on a page: Great Expectations takes a description for a template in HTML."""
    return html.escape(words).replace("$", "$$")


def text(bounds: Bounds) -> str:
    """Bounds in words."""
    if bounds.low == bounds.high:
        return f"{_number(bounds.low)}"
    sides = ((bounds.low, "at least"), (bounds.high, "at most"))
    return " and ".join(f"{words} {_number(side)}" for side, words in sides if side is not None)


def _number(value: float | None) -> str:
    return "nothing" if value is None else figure(value)


@_alone
def on_figures(suite: str, row: Mapping[str, float], expectations: Sequence[Any]) -> list[Any]:
    """Results of expectations on one row of figures, in their order."""
    import pandas as pd

    source = context().data_sources.add_or_update_pandas(f"{suite} figures")
    done = _validate(source, suite, pd.DataFrame([dict(row)], dtype=object), expectations)
    return [done[name_of(one)] for one in expectations]


@_alone
def on_rows(suite: str, rows: Any, expectations: Sequence[Any]) -> list[Any]:
    """Results of expectations on rows of a Spark table, in their order.

    Those that look at each row are first asked for no more than whether they hold: then all of them share one pass,
    where each would make another for its samples. Only those that do not hold are asked once more, for these.
    """
    from great_expectations.expectations.expectation import (
        ColumnMapExpectation,
        ColumnPairMapExpectation,
        MulticolumnMapExpectation,
    )

    source = context().data_sources.add_or_update_spark(f"{suite} rows", persist=False)
    kinds = (ColumnMapExpectation, ColumnPairMapExpectation, MulticolumnMapExpectation)
    by_row = [one for one in expectations if isinstance(one, kinds)]
    done = _validate(source, suite, rows, by_row, "BOOLEAN_ONLY")
    again = [one for one in expectations if not isinstance(one, kinds) or not done[name_of(one)].success]
    done |= _validate(source, suite, rows, again)
    return [done[name_of(one)] for one in expectations]


def name_of(expectation: Any) -> str:
    """Name of the check that an expectation is."""
    return str(expectation.meta["check"])


def _validate(source: Any, suite: str, frame: Any, expectations: Sequence[Any], form: str = "BASIC") -> dict[str, Any]:
    """Results by check."""
    if not expectations:
        return {}
    import great_expectations as gx

    asset = source.add_dataframe_asset(f"{suite} {form}")
    batch = asset.add_batch_definition_whole_dataframe("date").get_batch({"dataframe": frame})
    whole = gx.ExpectationSuite(name=suite, expectations=list(expectations))
    results = batch.validate(whole, result_format={"result_format": form, "partial_unexpected_count": 5}).results
    return {result.expectation_config.meta["check"]: result for result in results}
