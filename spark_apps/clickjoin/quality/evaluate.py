"""Our own checks as Great Expectations sees them: each is an expectation on the one row of its suite's figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from clickjoin.quality import expect
from clickjoin.quality.checks import ACCOUNTED, Check, Outcome
from clickjoin.quality.measure import PLACES

if TYPE_CHECKING:
    from clickjoin.config.quality import Quality

PARTS = (*PLACES, "accepted", "nowhere", "twice")


def score(
    quality: Quality, suite: str, checks: Sequence[Check], accounts: Mapping[str, int]
) -> list[tuple[Outcome, Any]]:
    """What came of a suite's checks, with Great Expectations' own results; None for those that are undecided."""
    asked = {check.name: (check, *found) for check in checks if (found := check.asked())}
    row = {expect.column_of(name): float(check.observed or 0) for name, (check, _, _) in asked.items()}
    if ACCOUNTED in asked:
        row |= {name: float(accounts[name]) for name in PARTS}
    made = [expect.of_check(*parts) for parts in asked.values()]
    done = dict(zip(asked, expect.on_figures(suite, row, made), strict=True))
    return [(_outcome(quality, check, done.get(check.name)), done.get(check.name)) for check in checks]


def _outcome(quality: Quality, check: Check, result: Any) -> Outcome:
    """A check's row. Undecided, it shows the bounds that it would have had."""
    first: Any = "fail" if check.fail or not check.warn else "warn"
    bounds, level = check.asked() or (check.fail or check.warn, quality.level(check.suite, check.name, first))
    success = None if result is None else bool(result.success)
    return Outcome(
        suite=check.suite,
        check=check.name,
        expectation="expect_" + (ACCOUNTED if check.name == ACCOUNTED else "column_max_to_be_between"),
        column=check.column,
        level=level,
        success=success,
        observed=check.observed,
        expected=f"{check.asks}: {expect.text(bounds)}" if bounds else check.asks,
        unexpected=int(check.observed or 0) if check.counts and success is False else None,
        samples=check.samples,
        detail=(check.undecided or "it has no limit") if success is None else None if success else check.look,
    )
