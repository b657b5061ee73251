"""The summary of a run of batches: what a job returns, and what Airflow keeps of it."""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from clickjoin.model.batch_plan import COUNTS
from clickjoin.model.reporter import Reporter
from clickjoin.model.split import Problem
from clickjoin.report.status import batch_text, problem_text
from clickjoin.rounds import Settled

_FEWEST = 20  # rows, of which none has a value that fits


class Summary:
    """What a run of batches did: counts, the newest latency and backlog, and problems of the sources."""

    def __init__(self, report: Reporter) -> None:
        self._report = report
        self.batches = 0
        self.counts = dict.fromkeys(COUNTS, 0)
        self._newest: dict[str, Any] = {}
        self._misfits: Counter[str] = Counter()
        self.problems: tuple[Problem, ...] = ()
        self._caught_up = time.monotonic()

    def add(self, settled: Settled) -> None:
        """Add a settled batch, and report a line about it."""
        row = dict(settled.metrics)
        self.batches += 1
        for name in COUNTS:
            self.counts[name] += int(str(row[name] or 0))
        self._newest |= {key: row[key] for key in ("backlog_events",) if row["sequence"] == "join"}
        if row["sequence"] == "join" and not row["backlog_events"]:
            self._caught_up = time.monotonic()
        self._misfits.update(json.loads(str(row["misfits"])) if row.get("misfits") else {})
        self._newest |= {"latency_p90": row.get("latency_p90") or self._newest.get("latency_p90")}
        self._report(batch_text(row, datetime.now(UTC).strftime("%H:%M:%S")))

    def note(self, problems: tuple[Problem, ...]) -> None:
        """Keep what is wrong with the sources; reports what is new."""
        for problem in problems:
            if problem not in self.problems:
                self._report(problem_text(problem.kind, problem.path, problem.detail))
        self.problems = problems

    def null_columns(self) -> tuple[Problem, ...]:
        """Typed columns of the output that are null in every row, since no value fits: the file's fault most likely."""
        rows = self.counts["joined"]
        return tuple(
            Problem(
                "misfits",
                f"output.columns.{name}",
                f"none of {rows} values fits its type; `clickjoin validate` says why",
            )
            for name, count in sorted(self._misfits.items())
            if rows >= _FEWEST and count >= rows
        )

    def to_dict(self) -> dict[str, Any]:
        """The summary as plain data, fit for JSON and for Airflow's XCom.

        `lag_seconds`: 0 where the last join batch left nothing unplanned, else how long ago, at least, one did so.
        """
        backlog = self._newest.get("backlog_events") or 0
        return {
            "batches": self.batches,
            **self.counts,
            "backlog_events": backlog,
            "lag_seconds": round(time.monotonic() - self._caught_up, 1) if backlog else 0.0,
            "latency_p90": self._newest.get("latency_p90"),
            "problems": [asdict(problem) for problem in self.problems],
        }
