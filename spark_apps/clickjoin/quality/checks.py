"""What a run of the suites found: an outcome a check, and all of them together."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clickjoin.config.quality import Level

ACCOUNTED = "every_input_accounted_for"


@dataclass(frozen=True)
class Outcome:
    """A check that has been made: a row of table `quality`. `success` is None where it could not be decided.

    `share`: of the rows that it looks at, how many did not pass; `failing`: the first of those, by name.
    """

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
    share: float | None = None
    failing: tuple[Mapping[str, Any], ...] = ()

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
        return {name: value for name, value in self.__dict__.items() if name != "failing"} | {
            "samples": list(self.samples)
        }


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

    def failing(self) -> list[dict[str, Any]]:
        """Rows of table `_quality/failures`."""
        said = {"run": self.run, "at": self.at, "date": self.day}
        return [
            {**said, "suite": one.suite, "check": one.check, "level": one.level, **row}
            for one in self.outcomes
            if one.success is False
            for row in one.failing
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
