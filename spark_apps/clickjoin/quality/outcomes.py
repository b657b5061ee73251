"""What came of a date's expectations: Great Expectations' own results as outcomes, one a check, and all together."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from itertools import count
from typing import TYPE_CHECKING, Any

from clickjoin.config.quality import check_of
from clickjoin.model.reporter import figure
from clickjoin.quality.project import ours
from clickjoin.quality.shipped import FLIPPED, OWN, class_of, said_of

if TYPE_CHECKING:
    from clickjoin.config.quality import Level

_EMPTY = "there are no rows of the date"
_LEVEL: Mapping[str, Any] = {"critical": "fail", "warning": "warn", "info": "warn"}
_ORDER = ("failed", "warned", "undecided", "passed")  # of the levels of a check the first of these counts
_ID, _TIME = "event_id", "event_time"
_LONG = 500  # characters of a value that are kept


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

    @property
    def but(self) -> str:
        """What was found instead, in words."""
        if self.unexpected and self.share is not None:
            return f", but {self.unexpected:,} of the rows ({self.share:.3g}) do not pass"
        return "" if self.observed is None else f", but was {figure(self.observed)}"

    def to_dict(self) -> Mapping[str, Any]:
        """Plain data, fit for JSON."""
        kept = {name: value for name, value in self.__dict__.items() if name != "failing"}
        return kept | {"samples": list(self.samples)}


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
        parts = [f"{self.count(state)} {state}" for state in _ORDER[:3] if self.count(state)]
        return f"{self.day}: {len(self.outcomes)} checks" + (f", {', '.join(parts)}" if parts else ", all passed")

    def rows(self) -> list[dict[str, Any]]:
        """Rows of table `quality`."""
        said = {"run": self.run, "at": self.at, "date": self.day, "seconds": round(self.seconds, 3)}
        texts = [json.dumps(list(one.samples), default=str, ensure_ascii=False) for one in self.outcomes]
        return [{**one.to_dict(), **said, "samples": text} for one, text in zip(self.outcomes, texts, strict=True)]

    def failing(self) -> list[dict[str, Any]]:
        """Rows of table `_quality/failures`."""
        said = {"run": self.run, "at": self.at, "date": self.day}
        red = [one for one in self.outcomes if one.success is False]
        kept = [({"suite": one.suite, "check": one.check, "level": one.level}, one.failing) for one in red]
        return [{**said, **check, **row} for check, rows in kept for row in rows]

    def to_dict(self) -> dict[str, Any]:
        """Plain data, fit for JSON and for Airflow's XCom; of the results only those that did not pass."""
        red = [one for one in self.outcomes if one.state in ("failed", "warned")]
        return {
            "ok": self.ok,
            "verdict": self.verdict,
            "date": self.day.isoformat(),
            "run": self.run,
            "checks": len(self.outcomes),
            **{state: self.count(state) for state in _ORDER[:3]},
            "report": self.report,
            "seconds": round(self.seconds, 3),
            "accounts": dict(self.accounts),
            "results": [json.loads(json.dumps({**one.to_dict(), "state": one.state}, default=str)) for one in red],
        }


def outcomes(results: Iterable[tuple[str, Any]], rows: Mapping[str, int]) -> list[Outcome]:
    """An outcome a check. `results`: with the name of their suite; `rows`: of each asset.

    Of the two levels of a check the one counts that is broken; if neither is, the one that would warn.
    """
    found: dict[tuple[str, str], Outcome] = {}
    for suite, result in results:
        one = outcome(suite, result, rows.get(suite))
        before = found.get((one.suite, one.check))
        theirs = not ours(result.expectation_config.to_json_dict())
        if before and theirs:  # another one of the same kind and column
            taken = next(n for n in count(2) if (one.suite, f"{one.check}_{n}") not in found)
            one, before = replace(one, check=f"{one.check}_{taken}"), None
        if before is None or _rank(one) < _rank(before):
            found[one.suite, one.check] = one
    return list(found.values())


def _rank(one: Outcome) -> tuple[int, bool]:
    return _ORDER.index(one.state), one.level != "warn"


def outcome(suite: str, result: Any, rows: int | None) -> Outcome:
    """What came of one expectation. `rows`: of its asset; None where that is not known."""
    config, found = result.expectation_config.to_json_dict(), result.result or {}
    said, kind = ours(config), str(config["type"])
    kwargs = {name: value for name, value in config["kwargs"].items() if name != "batch_id"}
    column = kwargs.pop("column", None)
    table, _, check = str(said.get("check") or f"{suite}.{check_of(kind, column)}").partition(".")
    plain = bool(said) and not said.get("edited")
    common = {
        "suite": table, "check": check, "expectation": kind, "level": _LEVEL.get(str(config.get("severity")), "fail"),
        "column": said.get("column") or column, "expected": said["asks"] if plain else _asks(config, kwargs),
    }  # fmt: skip
    theirs = not plain or said.get("look") == OWN
    counted = kind.startswith("expect_table_row_count_")  # of no rows there is a number of rows
    empty = rows == 0 and ((theirs and not counted) or class_of(kind) in FLIPPED)
    raised = _raised(result.exception_info)
    if raised and not empty:
        return Outcome(**common, success=False, observed=None, detail=f"it cannot be worked out: {raised}")
    observed = _observed(found, kind)
    said_none = observed is None and (found or not rows)  # with `BOOLEAN_ONLY` there is a verdict and no figure
    why = said.get("undecided") or (_EMPTY if said_none else "")
    why = _EMPTY if empty else "" if theirs else str(why)
    success = None if why else bool(result.success)
    bad = found.get("unexpected_count")
    share = found.get("unexpected_percent")
    failing = tuple(_failing(found)) if success is False else ()
    return Outcome(
        **common, success=success, observed=observed, unexpected=int(bad) if bad and success is False else None,
        samples=_samples(found, failing, success), detail=why or (None if success else _look(said, found)),
        share=None if share is None else float(share) / 100, failing=failing,
    )  # fmt: skip


def _asks(config: Mapping[str, Any], kwargs: Mapping[str, Any]) -> str:
    """What a user's own expectation asks, in their words if they gave any."""
    return str((not ours(config) and config.get("description")) or said_of(str(config["type"]), kwargs))


def _look(said: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    more = (found.get("details") or {}).get("found") or ()
    look = str(said.get("look") or "an expectation of this pipeline's project: `samples` are values that break it")
    look = f"{OWN}: `samples` are values that break it" if look == OWN else look
    shown = "; ".join(more[:4]) + (f" and {len(more) - 4} more" if len(more) > 4 else "")
    return f"{shown}: {look}" if more else look


def _observed(found: Mapping[str, Any], kind: str) -> float | None:
    value = found.get("observed_value", found.get("unexpected_count"))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return round(1 - value, 12) if class_of(kind) in FLIPPED else float(value)


def _failing(found: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Rows that did not pass: event_id, event_time, and the values that break it, as text."""
    for row in found.get("partial_unexpected_index_list") or ():
        at = row.get(_TIME)
        values = [_short(f"{name}: {value}") for name, value in row.items() if name not in (_ID, _TIME)]
        # Spark gives Python a time as the host's local one, without saying so.
        utc = at.astimezone(UTC) if isinstance(at, datetime) else None
        yield {_ID: row.get(_ID, row.get("id")), _TIME: utc, "value": ", ".join(values) or None}


def _short(text: str) -> str:
    """A value as text; of a long one, as of a whole record, what it begins with."""
    return text if len(text) <= _LONG else f"{text[:_LONG]}…"


def _samples(found: Mapping[str, Any], failing: tuple[Mapping[str, Any], ...], success: bool | None) -> tuple[Any, ...]:
    details = found.get("details") or {}
    if "schema" in details:  # the next date is checked against it
        return (details["schema"], *details["found"][:4]) if details["schema"] else ()
    if success is not False:
        return ()
    ids = [str(row[_ID]) for row in failing if row[_ID] is not None]
    values = [_short(str(one)) for one in found.get("partial_unexpected_list") or () if one is not None]
    return tuple(dict.fromkeys(ids or values))[:5]


def _raised(info: Any) -> str:
    """What went wrong while it was worked out, in a line; empty if nothing did."""
    infos = [info] if "raised_exception" in (info or {}) else list((info or {}).values())
    said = (one.get("exception_message") or "no reason given" for one in infos if one and one.get("raised_exception"))
    return str(next(said, "")).strip().partition("\n")[0][:300]
