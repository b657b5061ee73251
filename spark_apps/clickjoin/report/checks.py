"""What verifications and quality suites have found, run by run, newest first: no Spark needed."""

from __future__ import annotations

import json
from datetime import date, datetime
from math import inf
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from clickjoin.sources.completeness import UNPROVEN
from clickjoin.verification.findings import RECORDS, left_over

if TYPE_CHECKING:
    from clickjoin.lake.delta_reader import DeltaReader


def verifications(delta: DeltaReader, most: int, window: float = inf) -> list[dict[str, Any]]:
    """The last runs: range, ids and bytes checked, and each kind that was found; `ok`: no fault is left.

    `full`: it covered more than `window` (seconds, of verify.window), up to when it began.
    """
    runs: dict[str, dict[str, Any]] = {}
    for row in delta.read("verification").sort_by([("at", "descending")]).to_pylist():
        run = runs.setdefault(row["run"], _verification(row) | {"full": _is_wider(row, window)})
        unit = "bytes" if row["kind"] in (*RECORDS, UNPROVEN) else "ids"
        run[unit] = max(run[unit], row["checked"] or 0)
        if row["count"]:
            found = {name: row[name] for name in ("kind", "fault", "count", "repaired")}
            run["found"].append(found | {"samples": json.loads(row["samples"] or "[]")})
            run["ok"] = run["ok"] and not left_over(row)
    return list(runs.values())[:most]


def _is_wider(row: dict[str, Any], window: float) -> bool:
    """Whether a run began a minute or more before `window`, and went on to its present."""
    began = (row["at"] - row["from_time"]).total_seconds()
    return bool(began > window + 60 and row["to_time"] >= row["at"])


def _verification(row: dict[str, Any]) -> dict[str, Any]:
    times = {name: row[name].isoformat() for name in ("at", "from_time", "to_time") if row[name]}
    return {"run": row["run"], **times, "seconds": row["seconds"], "ids": 0, "bytes": 0, "found": [], "ok": True}


def qualities(delta: DeltaReader, most: int) -> list[dict[str, Any]]:
    """The last runs of the suites, one entry a run and date: how many checks passed, failed, warned, were undecided."""
    names = ["run", "at", "date", "level", "success", "seconds"]
    runs: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in delta.read("quality", columns=names).sort_by([("at", "descending")]).to_pylist():
        empty = {"run": row["run"], "at": _plain(row["at"]), "date": _plain(row["date"]), "seconds": row["seconds"]}
        run = runs.setdefault(
            (row["run"], row["date"]), empty | dict.fromkeys(("passed", "failed", "warned", "undecided"), 0)
        )
        run[_outcome(row)] += 1
    return list(runs.values())[:most]


def checks(delta: DeltaReader, day: date) -> list[dict[str, Any]]:
    """The checks of a date's newest run: those that did not pass first, failed before warned."""
    rows = delta.read("quality", filters=[("date", "=", day)])
    if not rows.num_rows:
        return []
    newest = rows.filter(pc.equal(rows["at"], pc.max(rows["at"])))
    rank = {"failed": 0, "warned": 1, "undecided": 2, "passed": 3}
    found = sorted(newest.to_pylist(), key=lambda row: (rank[_outcome(row)], row["suite"] or "", row["check"] or ""))
    return [_check(row) for row in found]


def _check(row: dict[str, Any]) -> dict[str, Any]:
    plain = {name: _plain(value) for name, value in row.items() if name not in ("samples", "seconds")}
    return plain | {"outcome": _outcome(row), "samples": json.loads(row["samples"] or "[]")}


def _outcome(row: dict[str, Any]) -> str:
    """passed | failed | warned | undecided, as in reports."""
    if row["success"] is None:
        return "undecided"
    return "passed" if row["success"] else {"warn": "warned", "fail": "failed"}[str(row["level"])]


def over_dates(delta: DeltaReader, suite: str, check: str) -> list[dict[str, Any]]:
    """What a check found in the newest run of each date: date, observed, outcome, expected; oldest first."""
    columns = ["at", "date", "observed", "success", "level", "expected"]
    rows = delta.read("quality", [("suite", "=", suite), ("check", "=", check)], columns).to_pylist()
    newest: dict[date, dict[str, Any]] = {}
    for row in sorted(rows, key=lambda row: row["at"]):
        newest[row["date"]] = row
    return [
        {"date": day.isoformat(), "outcome": _outcome(row), **{name: row[name] for name in ("observed", "expected")}}
        for day, row in sorted(newest.items())
    ]


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime | date) else value
