"""Great Expectations: the one place that calls it. It takes seconds to import, so that this is done on demand."""

from __future__ import annotations

import html
import os
import re
import warnings
import zlib
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from clickjoin.quality.checks import ACCOUNTED, Bounds, Check

if TYPE_CHECKING:
    from clickjoin.config_quality import Level

SEVERITY: Mapping[Level, str] = {"fail": "critical", "warn": "warning"}


@cache
def context() -> Any:
    """A context that lives in memory: it writes no files, asks nobody, and tells nobody."""
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        import great_expectations as gx
        from great_expectations.data_context.types.base import ProgressBarsConfig

    made = gx.get_context(mode="ephemeral")
    made.variables.progress_bars = ProgressBarsConfig(globally=False)
    return made


def of_check(check: Check, bounds: Bounds, level: Level) -> Any:
    """The expectation that a check is, on a frame of one row with a column for each check of its suite."""
    context()
    from great_expectations.expectations.core.expect_column_max_to_be_between import ExpectColumnMaxToBeBetween

    from clickjoin.quality.inputs import ExpectEveryInputAccountedFor

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
    return "nothing" if value is None else f"{round(value, 4):,.10g}"


def on_figures(suite: str, row: Mapping[str, float], expectations: Sequence[Any]) -> list[Any]:
    """Results of expectations on one row of figures, in their order."""
    import pandas as pd

    source = context().data_sources.add_or_update_pandas(f"{suite} figures")
    return _validate(source, suite, pd.DataFrame([dict(row)], dtype=object), expectations)


def on_rows(suite: str, rows: Any, expectations: Sequence[Any]) -> list[Any]:
    """Results of expectations on rows of a Spark table, in their order; what are aggregates share one job."""
    source = context().data_sources.add_or_update_spark(f"{suite} rows", persist=False)
    return _validate(source, suite, rows, expectations)


def _validate(source: Any, suite: str, frame: Any, expectations: Sequence[Any]) -> list[Any]:
    if not expectations:
        return []
    import great_expectations as gx

    batch = (
        source.add_dataframe_asset(suite).add_batch_definition_whole_dataframe("date").get_batch({"dataframe": frame})
    )
    whole = gx.ExpectationSuite(name=suite, expectations=list(expectations))
    results = batch.validate(whole, result_format={"result_format": "SUMMARY", "partial_unexpected_count": 5}).results
    by_check = {result.expectation_config.meta["check"]: result for result in results}
    return [by_check[expectation.meta["check"]] for expectation in expectations]
