"""Data Docs: the report of a run as static pages that load nothing, from Great Expectations' own renderer.

Its own page links styles, fonts, scripts and a logo from half a dozen places on the internet. Ours takes the same
sections with one style sheet inside, and no script; what its scripts fold away is simply shown.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from errno import ENOTDIR
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clickjoin.model.errors import LakeError
from clickjoin.model.figure import figure
from clickjoin.quality.report import Report

if TYPE_CHECKING:
    from clickjoin.quality.checks import Outcome

SUITES = ("joined", "primary", "foreign", "registry")
_ORDER = ("failed", "warned", "undecided", "passed")
_SUITE_LINK = "../../../../expectations/{}.html"


class Docs:
    """The reports of a pipeline: `<lake>/<pipeline>/_quality/<date>/<run>/`; beside a date's runs, its newest."""

    def __init__(self, root: str) -> None:
        self._root = Path(root) / "_quality"

    def require_writable(self, day: date) -> None:
        """Check that a report of a date can be written. Errors: LakeError."""
        probe, dated = self._root / ".probe", self._root / day.isoformat()
        if dated.exists() and not dated.is_dir():
            raise self._refused(NotADirectoryError(ENOTDIR, f"{dated} is no folder"))
        try:
            self._root.mkdir(parents=True, exist_ok=True)
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise self._refused(error) from error

    def free(self, replica: str, day: date, micros: int) -> int:
        """The first number from `micros` on that no run of the replica and date has."""
        while self.folder(f"{replica}/{micros}", day).exists():
            micros += 1
        return micros

    def folder(self, run: str, day: date) -> Path:
        """Where the report of a run lies."""
        return self._root / day.isoformat() / run.replace("/", "-")

    def write(self, report: Report, results: Mapping[str, Sequence[Any]]) -> Path:
        """Write a run's pages, all or none; `results` are Great Expectations' own, by suite. Errors: LakeError."""
        folder = self.folder(report.run, report.day)
        pages = {f"{suite}.html": _suite(report, suite, results.get(suite, ())) for suite in SUITES}
        pages["index.html"] = _overview(report, "")
        making = folder.with_name(f".{folder.name}")
        try:
            making.mkdir(parents=True)
            for name, text in pages.items():
                (making / name).write_text(text, encoding="utf-8")
            making.rename(folder)
        except OSError as error:
            shutil.rmtree(making, ignore_errors=True)
            raise self._refused(error) from error
        return folder

    def publish(self, report: Report) -> None:
        """Make a run the newest of its date. Errors: LakeError."""
        newest = self._root / report.day.isoformat() / "index.html"
        making = newest.with_name(f".{report.run.replace('/', '-')}.html")
        try:
            making.write_text(_overview(report, f"{report.run.replace('/', '-')}/"), encoding="utf-8")
            making.replace(newest)
        except OSError as error:
            raise self._refused(error) from error

    def discard(self, report: Report) -> None:
        """Take a run's pages away again: its rows could not be written."""
        shutil.rmtree(self.folder(report.run, report.day), ignore_errors=True)

    def drop_before(self, before: datetime) -> int:
        """Remove the reports of runs that began before a moment, and folders of dates that have none left."""
        gone = 0
        for run in sorted(self._root.glob("*/*-*/")):
            number = run.name.rpartition("-")[2]
            if number.isdigit() and int(number) / 1e6 < before.timestamp():
                shutil.rmtree(run, ignore_errors=True)
                gone += 1
                if not any(other.is_dir() for other in run.parent.iterdir()):
                    shutil.rmtree(run.parent, ignore_errors=True)
        return gone

    def _refused(self, error: OSError) -> LakeError:
        why = error.strerror or type(error).__name__
        return LakeError(
            f"{self._root}: quality reports cannot be written there ({why})",
            remedy="Make it a folder that this process may write to, or move away what is in its place",
        )


def _overview(report: Report, base: str) -> str:
    """The page of a run: all checks, those first that did not pass. `base`: where the suites' pages lie from it."""
    checks = sorted(report.outcomes, key=lambda one: (_ORDER.index(one.state), SUITES.index(one.suite), one.check))
    return _render("overview.j2", escape=True, report=report, checks=checks, base=base, suites=SUITES, number=_number)


def _suite(report: Report, suite: str, results: Sequence[Any]) -> str:
    """The page of a suite, in Great Expectations' own sections; undecided checks, which it has not seen, come last."""
    from great_expectations import __version__
    from great_expectations.core.expectation_validation_result import ExpectationSuiteValidationResult
    from great_expectations.render.renderer.page_renderer import ValidationResultsPageRenderer

    passed = sum(1 for result in results if result.success)
    whole = ExpectationSuiteValidationResult(
        success=passed == len(results),
        results=list(results),
        suite_name=suite,
        suite_parameters={},
        statistics={
            "evaluated_expectations": len(results),
            "successful_expectations": passed,
            "unsuccessful_expectations": len(results) - passed,
            "success_percent": 100 * passed / len(results) if results else 100.0,
        },
        meta={
            "run_id": {"run_name": report.run, "run_time": report.at.isoformat()},
            "great_expectations_version": __version__,
        },
    )
    document = ValidationResultsPageRenderer(run_info_at_end=True).render(whole).to_json_dict()
    open_ = [one for one in report.outcomes if one.suite == suite and one.state == "undecided"]
    text = _render("suite.j2", escape=False, report=report, suite=suite, undecided=open_, **document)
    return text.replace(_SUITE_LINK.format(suite), "index.html")


def _render(name: str, *, escape: bool, **values: Any) -> str:
    """A page. Great Expectations' sections escape what they are given themselves, and must not be escaped again."""
    from great_expectations.render.view.view import DefaultJinjaPageView
    from jinja2 import ChoiceLoader, FileSystemLoader

    view = DefaultJinjaPageView()
    own, theirs = FileSystemLoader(str(Path(__file__).parent / "pages")), view.env.loader
    view.env.loader = ChoiceLoader([own, *([theirs] if theirs else [])])
    view.env.autoescape = escape
    return str(view.env.get_template(name).render(**values))


def _number(one: Outcome) -> str:
    if one.observed is None:
        return ""
    return figure(one.observed) + (" s" if one.expected.startswith("seconds") else "")
