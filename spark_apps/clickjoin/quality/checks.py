"""What a check is: a figure, its bounds, and what it means outside of them; and what a run of checks found."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clickjoin.config.quality import Level, Quality

ACCOUNTED = "every_input_accounted_for"


@dataclass(frozen=True)
class Bounds:
    """The closed range that a figure has to lie in; None: no bound on that side."""

    low: float | None = None
    high: float | None = None

    def hold(self, value: float) -> bool:
        """Whether a figure lies inside."""
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)


ZERO = Bounds(0, 0)


@dataclass(frozen=True)
class Check:
    """A figure of a date, and what is asked of it.

    `observed` is None where nothing can be measured, and `undecided` then says why, as it does where there is nothing
    to compare the figure with. `fail` and `warn` are bounds of either level, None where there is none. `asks` says in
    words what is asked, `look` what to look at if it is not so. `counts`: the figure is a number of rows.
    """

    suite: str
    name: str
    asks: str
    observed: float | None
    fail: Bounds | None = None
    warn: Bounds | None = None
    column: str | None = None
    look: str = ""
    counts: bool = False
    undecided: str = ""
    samples: tuple[Any, ...] = ()

    def levelled(self, quality: Quality) -> Check:
        """The same at the level that the pipeline's file gives it: its tightest bounds count at that one."""
        if not quality.overridden(self.suite, self.name):
            return self
        tightest = self.warn or self.fail
        level = quality.level(self.suite, self.name, "fail")
        fail, warn = (tightest, None) if level == "fail" else (None, tightest)
        return Check(**{**self.__dict__, "fail": fail, "warn": warn})

    def asked(self) -> tuple[Bounds, Level] | None:
        """The bounds that tell most about the figure, and their level; None where it cannot be decided.

        Those of level fail where the figure breaks them, else those of level warn where there are any.
        """
        if self.undecided or self.observed is None or not (self.fail or self.warn):
            return None
        if self.fail and (not self.warn or not self.fail.hold(self.observed)):
            return self.fail, "fail"
        return (self.warn, "warn") if self.warn else None


@dataclass(frozen=True)
class Outcome:
    """A check that has been made: a row of table `quality`. `success` is None where it could not be decided."""

    suite: str
    check: str
    expectation: str
    column: str | None
    level: Level
    success: bool | None
    observed: float | None
    expected: str
    unexpected: int | None = None
    samples: tuple[Any, ...] = ()
    detail: str | None = None

    @property
    def name(self) -> str:
        """As the pipeline's file names it."""
        return f"{self.suite}.{self.check}"

    @property
    def state(self) -> str:
        """passed | undecided | warned | failed."""
        if self.success is None:
            return "undecided"
        return "passed" if self.success else {"warn": "warned", "fail": "failed"}[self.level]

    def to_dict(self) -> Mapping[str, Any]:
        """Plain data, fit for JSON."""
        return {**self.__dict__, "samples": list(self.samples)}


@dataclass(frozen=True)
class Report:
    """One run. `accounts`: ids of the date by place; `report`: folder of the Data Docs; `seconds`: how long it took."""

    run: str
    at: datetime
    day: date
    outcomes: tuple[Outcome, ...]
    accounts: Mapping[str, int]
    report: str = ""
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether no check of level fail is red."""
        return not self.count("failed")

    def count(self, state: str) -> int:
        """How many checks passed, failed, warned, or are undecided."""
        return sum(1 for one in self.outcomes if one.state == state)

    @property
    def verdict(self) -> str:
        """In a line."""
        parts = [f"{self.count(state)} {state}" for state in ("failed", "warned", "undecided") if self.count(state)]
        return f"{self.day}: {len(self.outcomes)} checks" + (f", {', '.join(parts)}" if parts else ", all passed")

    def rows(self) -> list[dict[str, Any]]:
        """Rows of table `quality`."""
        return [
            {
                **one.to_dict(),
                "run": self.run,
                "at": self.at,
                "date": self.day,
                "samples": json.dumps(list(one.samples), default=str, ensure_ascii=False),
                "seconds": round(self.seconds, 3),
            }
            for one in self.outcomes
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain data, fit for JSON and for Airflow's XCom; of the results only those that did not pass."""
        red = [one for one in self.outcomes if one.state in ("failed", "warned")]
        return {
            "ok": self.ok,
            "verdict": self.verdict,
            "date": self.day.isoformat(),
            "run": self.run,
            "checks": len(self.outcomes),
            "failed": self.count("failed"),
            "warned": self.count("warned"),
            "undecided": self.count("undecided"),
            "report": self.report,
            "seconds": round(self.seconds, 3),
            "accounts": dict(self.accounts),
            "results": [json.loads(json.dumps({**one.to_dict(), "state": one.state}, default=str)) for one in red],
        }
