"""A run of the suites: measure a date, check it against limits and history, write the report, then the rows."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from clickjoin.model.errors import LakeError
from clickjoin.model.ids import MICROS, moment
from clickjoin.model.reporter import Reporter
from clickjoin.model.span import Day, parse_date
from clickjoin.quality import history, measure, suites
from clickjoin.quality.checks import Outcome, Report
from clickjoin.quality.data_docs import Docs
from clickjoin.quality.doc_pages import SUITES
from clickjoin.quality.evaluate import PARTS, score
from clickjoin.quality.fields import known_fields
from clickjoin.quality.user_expectations import Names, Own, table_names
from clickjoin.verification.snapshot import sized

if TYPE_CHECKING:
    from clickjoin.engine import Engine
    from clickjoin.quality.history import History
    from clickjoin.quality.measure import Measured


def run(engine: Engine, day: date, report_line: Reporter) -> Report:
    """Check a date (UTC, of the events' own time); write its report, then its rows, in one commit.

    Errors: ConfigError for an expectation of the pipeline's file that cannot be; LakeError where table `quality` or the
    folder of reports is of no use. Nothing is written then.
    """
    return Run(engine, day, report_line).run()


def day_of(text: str | None) -> date:
    """A date as `2026-03-01`; yesterday (UTC) if none is given. Errors: ConfigError."""
    return parse_date(text) if text else datetime.now(UTC).date() - timedelta(days=1)


@dataclass
class Run:
    """One run on one date."""

    engine: Engine
    day: date
    report_line: Reporter

    def run(self) -> Report:
        """See `run`."""
        begun, lake, pipeline = time.perf_counter(), self.engine.lake, self.engine.pipeline
        docs, quality = Docs(pipeline.root), pipeline.quality
        past = history.read(lake.delta, self.day, quality.history_days, quality.history_least)
        docs.require_writable(self.day)
        own = Own(pipeline)
        own.require_sound()
        micros = docs.free(self.engine.replica, self.day, int(self.engine.clock() * MICROS))
        with sized(lake, pipeline, Day(self.day).span):
            measured = measure.Measurer(lake, pipeline, micros, self.report_line).measure(self.day)
            judged, results = self._judge(measured, past, own)
            judged = self._with_samples(measured, judged)
        report = Report(
            f"{self.engine.replica}/{micros}",
            moment(micros),
            self.day,
            tuple(judged),
            {name: measured.figures.accounts[name] for name in PARTS},
        )
        return self._write(docs, report, results, begun)

    def _judge(self, measured: Measured, past: History, own: Own) -> tuple[list[Outcome], dict[str, list[Any]]]:
        names = self._names(measured, past)
        own.require_columns({suite: found for suite, found in names.items() if found})
        quality = self.engine.pipeline.quality
        checks = suites.checks(quality, measured.figures, past)
        outcomes: list[Outcome] = []
        results: defaultdict[str, list[Any]] = defaultdict(list)
        for suite in SUITES:
            for outcome, result in [
                *score(quality, suite, [one for one in checks if one.suite == suite], measured.figures.accounts),
                *(own.run(suite, measured.rows[suite], names[suite]) if suite in own.suites() else ()),
            ]:
                outcomes.append(outcome)
                results[suite] += [result] if result is not None else []
        return outcomes, results

    def _names(self, measured: Measured, past: History) -> dict[str, Names | None]:
        """What columns of each table can be called; None for a table without rows and fields of an earlier date."""
        figures = measured.figures
        fields = {stream: figures.fields[stream].types() | known_fields(stream, past) for stream in measure.STREAMS}
        return {
            suite: table_names(suite, figures.columns, fields) if figures.tables[suite]["rows"] else None
            for suite in SUITES
            if suite in figures.tables
        }

    def _with_samples(self, measured: Measured, outcomes: Sequence[Outcome]) -> list[Outcome]:
        red = {one.name: one for one in outcomes if one.success is False and not one.samples}
        found = suites.fault_samples(measured.reading, red)
        for name, one in red.items():
            if name not in found and one.suite in measured.rows:  # of signals there are no rows here
                found[name] = suites.row_samples(measured.rows[one.suite], one.check)
        return [replace(one, samples=found[one.name]) if found.get(one.name) else one for one in outcomes]

    def _write(self, docs: Docs, report: Report, results: dict[str, list[Any]], begun: float) -> Report:
        """The report first, then the rows in one commit: where that fails, no report is left either."""
        delta, keep = self.engine.lake.delta, self.engine.pipeline.retention.metrics
        folder = docs.write(report, results)
        report = replace(report, report=folder, seconds=time.perf_counter() - begun)
        try:
            delta.append("quality", report.rows())
        except Exception as error:
            docs.discard(report)
            if isinstance(error, LakeError):
                raise
            raise history.unreadable(delta, str(error)) from error
        docs.publish(report)
        before = report.at - timedelta(seconds=keep)
        delta.drop_before("quality", "at", before)
        docs.drop_before(before)
        for one in report.outcomes:
            if one.state in ("failed", "warned"):
                self.report_line(
                    f"{one.state}: {one.name}: {one.expected}, but was {one.observed}. {one.detail or ''}".rstrip()
                )
        self.report_line(f"{report.verdict} ({report.seconds:.1f} s)")
        return report
