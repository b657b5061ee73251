"""Data Docs: the reports of a pipeline's quality runs, as folders of static pages beside its tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from clickjoin.quality.doc_pages import overview, pages
from clickjoin.quality.report_folders import report_folders

if TYPE_CHECKING:
    from clickjoin.quality.checks import Report


class Docs:
    """The reports of a pipeline: `<lake>/<pipeline>/_quality/<date>/<run>/`; beside a date's runs, its newest."""

    def __init__(self, root: str) -> None:
        self._root = f"{root}/_quality"
        self._folders = report_folders(self._root)

    def require_writable(self, day: date) -> None:
        """Check that a report of a date can be written. Errors: LakeError."""
        self._folders.require_writable(day.isoformat())

    def free(self, replica: str, day: date, micros: int) -> int:
        """The first number from `micros` on that no run of the replica and date has."""
        while self._folders.exists(_place(f"{replica}/{micros}", day)):
            micros += 1
        return micros

    def folder(self, run: str, day: date) -> str:
        """Where the report of a run lies."""
        return f"{self._root}/{_place(run, day)}"

    def write(self, report: Report, results: Mapping[str, Sequence[Any]]) -> str:
        """Write a run's pages, all or none; `results` are Great Expectations' own, by suite. Errors: LakeError."""
        self._folders.make(_place(report.run, report.day), pages(report, results))
        return self.folder(report.run, report.day)

    def publish(self, report: Report) -> None:
        """Make a run the newest of its date. Errors: LakeError."""
        text = overview(report, f"{report.run.replace('/', '-')}/")
        self._folders.replace(f"{report.day.isoformat()}/index.html", text)

    def discard(self, report: Report) -> None:
        """Take a run's pages away again: its rows could not be written."""
        self._folders.remove(_place(report.run, report.day))

    def drop_before(self, before: datetime) -> int:
        """Remove the reports of runs that began before a moment, and folders of dates that have none left."""
        runs = self._folders.runs()
        old = [run for run in runs if _begun(run) is not None and (_begun(run) or 0) < before.timestamp()]
        for run in old:
            self._folders.remove(run)
        kept = {run.partition("/")[0] for run in runs if run not in old}
        for day in {run.partition("/")[0] for run in old} - kept:
            self._folders.remove(day)
        return len(old)


def _place(run: str, day: date) -> str:
    return f"{day.isoformat()}/{run.replace('/', '-')}"


def _begun(run: str) -> float | None:
    number = run.rpartition("-")[2]
    return int(number) / 1e6 if number.isdigit() else None
