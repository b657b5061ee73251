"""A run of the suites on a date: bring the project up to date, run its checkpoints, write down what came of them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from clickjoin.dispatcher.journal import sequences
from clickjoin.engines.choose import open_own_tables
from clickjoin.joiner.adapter import adapter_of
from clickjoin.joiner.typed_output import with_types
from clickjoin.model.errors import LakeError
from clickjoin.model.ids import MICROS, moment
from clickjoin.model.reporter import Reporter
from clickjoin.model.span import Day, parse_date
from clickjoin.quality import history, place, processed
from clickjoin.quality.checks import Outcome, Report
from clickjoin.quality.fields import known_fields
from clickjoin.quality.frames import STREAMS, Frames
from clickjoin.quality.outcomes import outcomes
from clickjoin.quality.project import ASSETS, Project, line
from clickjoin.quality.shipped import OWN
from clickjoin.quality.suites import Facts, shipped
from clickjoin.schemas.reports import FAILURES
from clickjoin.verification.snapshot import sized

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from clickjoin.engine import Engine
    from clickjoin.quality.history import History

_PACKED = "spark.sql.inMemoryColumnarStorage.compressed"
_GONE = "rows of the date may have been collected (retention.{})"


def run(engine: Engine, day: date, report_line: Reporter) -> Report:
    """Check a date (UTC, of the events' own time): results into its project, rows into table `quality`, in one commit.

    Errors: ConfigError for an expectation of the pipeline's file that cannot be; LakeError where table `quality` or the
    folder of the project is of no use.
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
        quality = pipeline.quality
        past = history.read(lake.delta, self.day, quality.history_days, quality.history_least)
        with place.opened(pipeline) as project:
            micros = int(self.engine.clock() * MICROS)
            project.require_sound(shipped(pipeline, Facts(past)))
            frames = self._frames(project, past, micros)
            with sized(lake, pipeline, Day(self.day).span), _kept_plain(lake.spark):
                try:
                    found, accounts = self._checked(project, frames, past)
                finally:
                    frames.release()
            report = Report(
                f"{self.engine.replica}/{micros}", moment(micros), self.day, tuple(found), accounts,
                report=project.docs, seconds=time.perf_counter() - begun,
            )  # fmt: skip
            return self._write(project, report)

    def _frames(self, project: Project, past: History, micros: int) -> Frames:
        """The date's rows, with as much of them as expectations name."""
        pipeline = self.engine.pipeline
        known = {stream: known_fields(stream, past) for stream in STREAMS}
        theirs = project.theirs()
        ours: dict[str, set[str]] = {}
        for one in shipped(pipeline, Facts(past, columns=self._columns())):
            if one.look == OWN:
                theirs.setdefault(one.suite, []).append({"kwargs": dict(one.args)})
            else:
                ours.setdefault(one.suite, set()).update(_texts(dict(one.args)))
        kept = {suite: frozenset(names) for suite, names in ours.items()}
        return Frames(self.engine.lake, pipeline, self.day, moment(micros), known, _named(theirs), kept)

    def _columns(self) -> tuple[str, ...]:
        """The adapter's columns of the output: what an earlier one made and today's does not is null, as it should."""
        delta = self.engine.lake.delta
        today, own = adapter_of(with_types(self.engine.pipeline, delta)).columns, delta.table("joined").names
        return tuple(name for name in delta.columns("joined") if name not in own and name in today)

    def _checked(self, project: Project, frames: Frames, past: History) -> tuple[list[Outcome], dict[str, int]]:
        from clickjoin.quality.gx_tables import running

        wanted = shipped(self.engine.pipeline, self._facts(frames, past))
        broken = project.bring_up_to_date(wanted)
        running[self.engine.pipeline.root, self.day] = frames
        try:
            done: list[tuple[str, Any]] = []
            failed: list[Outcome] = []
            for name in project.checkpoints():
                try:
                    done += project.run(name, self.day.isoformat())
                except Exception as error:  # whatever people have written there: the others go on
                    failed.append(_broken(name, broken.pop(name, "") or line(error)))
            failed += [_broken(name, why) for name, why in broken.items()]
            return [*outcomes(done, frames.rows), *failed], frames.accounts()
        finally:
            running.pop((self.engine.pipeline.root, self.day), None)

    def _facts(self, frames: Frames, past: History) -> Facts:
        pipeline = self.engine.pipeline
        streams = STREAMS if pipeline.stream is None else ("foreign",)
        why = processed.unknown(pipeline) if pipeline.process else None
        sums = [row["fault"] for row in frames.frame("sums").collect()] if why == "" else []
        return Facts(
            past,
            fields={stream: tuple(frames.profiled(stream).schema()) for stream in streams},
            columns=self._columns(),
            gone={stream: _GONE.format(stream) for stream in streams if frames.collected(stream)},
            joined=frames.total("joined"),
            processed=why,
            sums="; ".join(sums),
            replicas=len({replica for replica, _ in sequences(self.engine.lake.delta)}),
        )

    def _write(self, project: Project, report: Report) -> Report:
        delta, keep = self.engine.lake.delta, self.engine.pipeline.retention.metrics
        before = report.at - timedelta(seconds=keep)
        if rows := report.failing():
            failures = open_own_tables(
                self.engine.pipeline, f"{self.engine.pipeline.root}/{place.FOLDER}", {FAILURES.name: FAILURES},
                self.engine.lake.session,
            )  # fmt: skip
            if not failures.exists(FAILURES.name):
                failures.create(FAILURES)
            failures.append(FAILURES.name, rows)
            failures.drop_before(FAILURES.name, "at", before)
        try:
            delta.add_columns("quality", history.LATER, dict.fromkeys(history.LATER, "see docs/tables.md"))
            delta.append("quality", report.rows())
        except LakeError:
            raise
        except Exception as error:
            raise history.unreadable(delta, str(error)) from error
        delta.drop_before("quality", "at", before)
        project.drop_before(before)
        for one in report.outcomes:
            if one.state in ("failed", "warned"):
                self.report_line(
                    f"{one.state}: {one.name}: {one.expected}, but was {one.observed}. {one.detail or ''}".rstrip()
                )
        self.report_line(f"{report.verdict} ({report.seconds:.1f} s)")
        return report


@contextmanager
def _kept_plain(spark: SparkSession) -> Iterator[None]:
    """Rows are kept for seconds: packing them takes a fifth of a run."""
    before = str(spark.conf.get(_PACKED))
    spark.conf.set(_PACKED, "false")
    try:
        yield
    finally:
        spark.conf.set(_PACKED, before)


def _named(theirs: Mapping[str, list[Any]]) -> dict[str, frozenset[str] | None]:
    """What people's expectations name in each asset; None where that is not known, as of a query."""
    found: dict[str, frozenset[str] | None] = {name: frozenset() for name in ASSETS}
    for suite, configs in theirs.items():
        for config in configs:
            args, held = config.get("kwargs") or {}, found.get(suite, frozenset())
            plain = any(str(key).startswith("column") for key in args) and not args.get("row_condition")
            found[suite] = held | _texts(args) if plain and held is not None else None
    return found


def _texts(value: Any) -> set[str]:
    """All texts in an expectation's arguments: some of them are names of columns."""
    if isinstance(value, str):
        return {value}
    parts: Iterable[Any] = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return {text for part in parts for text in _texts(part)}


def _broken(name: str, why: str) -> Outcome:
    return Outcome(
        name, "checkpoint", "checkpoint", None, "fail", False, None, "a checkpoint that can be run",
        detail=f"{why}: fix it in `_quality/gx` (`clickjoin quality gx`); the other checkpoints were run",
    )  # fmt: skip
