"""A run of the suites on a date: bring the project up to date, run its checkpoints, write down what came of them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from clickjoin.dispatcher.journal import sequences
from clickjoin.engines.choose import open_own_tables
from clickjoin.joiner.adapter import adapter_of
from clickjoin.joiner.typed_output import with_types
from clickjoin.model.errors import LakeError
from clickjoin.model.ids import MICROS, moment
from clickjoin.model.places import TOUCHES
from clickjoin.model.reporter import Reporter
from clickjoin.model.span import parse_date
from clickjoin.quality import counted, history, place
from clickjoin.quality.frames import STREAMS, Frames, running
from clickjoin.quality.outcomes import Outcome, Report, outcomes
from clickjoin.quality.project import Project, line
from clickjoin.quality.shipped import OWN
from clickjoin.quality.suites import Facts, shipped
from clickjoin.schemas.reports import FAILURES
from clickjoin.spark.session import with_settings
from clickjoin.verification.snapshot import sized

if TYPE_CHECKING:
    from clickjoin.engine import Engine
    from clickjoin.quality.history import History
    from clickjoin.quality.shipped import Shipped

# Rows are kept for seconds: packing them takes a fifth of a run.
PLAIN = {"spark.sql.inMemoryColumnarStorage.compressed": "false"}
_RUNS = "a checkpoint that can be run"
_RUN = "a checkpoint that runs this suite"
_IDLE = "none does, so none of its expectations was judged: was it renamed, or is a validation definition missing?"
_GONE = "rows of the date may have been collected (retention.{})"


def run(engine: Engine, day: date, report_line: Reporter) -> Report:
    """Check a date (UTC, of the events' own time): results into its project, rows into table `quality`, in one commit.

    Errors: ConfigError for an expectation of the pipeline's file that cannot be; LakeError where table `quality` or the
    folder of the project is of no use.
    """
    begun, lake, pipeline, micros = time.perf_counter(), engine.lake, engine.pipeline, int(engine.clock() * MICROS)
    past = history.read(lake.delta, day, pipeline.quality.history_days, pipeline.quality.history_least)
    with place.opened(pipeline) as project:
        known = shipped(pipeline, Facts(past))
        project.require_sound(known)
        frames = Frames(lake, pipeline, day, moment(micros), past, _named(project.theirs(), known))
        with sized(lake, pipeline, frames.span), with_settings(lake.spark, PLAIN), running(pipeline, day, frames):
            broken = project.bring_up_to_date(shipped(pipeline, _facts(engine, frames, past)))
            found, accounts = _checked(project, frames, day, broken), frames.accounts()
        report = Report(
            f"{engine.replica}/{micros}", moment(micros), day, found, accounts, report=project.docs,
            seconds=time.perf_counter() - begun,
        )  # fmt: skip
        _write(engine, project, report)
    for one in report.outcomes:
        if one.state in ("failed", "warned"):
            report_line(f"{one.state}: {one.name}: {one.expected}{one.but}. {one.detail or ''}".rstrip())
    report_line(f"{report.verdict} ({report.seconds:.1f} s)")
    return report


def day_of(text: str | None) -> date:
    """A date as `2026-03-01`; yesterday (UTC) if none is given. Errors: ConfigError."""
    return parse_date(text) if text else datetime.now(UTC).date() - timedelta(days=1)


def _named(theirs: dict[str, list[Any]], known: Iterable[Shipped]) -> dict[str, frozenset[str] | None]:
    """What people's expectations name in each asset; None where that is not known, as of a query."""
    for one in known:
        if one.look == OWN:
            theirs.setdefault(one.suite, []).append({"kwargs": one.args})
    found: dict[str, frozenset[str] | None] = {}
    for suite, configs in theirs.items():
        args = [config.get("kwargs") or {} for config in configs]
        plain = all(any(key.startswith("column") for key in one) and not one.get("row_condition") for one in args)
        found[suite] = frozenset(_texts(args)) if plain else None
    return found


def _texts(value: Any) -> set[str]:
    """All texts in an expectation's arguments: some of them are names of columns."""
    if isinstance(value, str):
        return {value}
    parts: Iterable[Any] = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return {text for part in parts for text in _texts(part)}


def _facts(engine: Engine, frames: Frames, past: History) -> Facts:
    pipeline, delta = engine.pipeline, engine.lake.delta
    streams = STREAMS if pipeline.stream is None else ("foreign",)
    why = counted.unknown(pipeline) if pipeline.process else None
    sums = [row["fault"] for row in frames.frame("sums").collect()] if why == "" else []
    # Of the adapter's columns those of today: what an earlier one made is null now, as it should.
    today, own = adapter_of(with_types(pipeline, delta)).columns, delta.table("joined").names
    return Facts(
        past,
        fields={stream: tuple(frames.profiled(stream).schema()) for stream in streams},
        columns=tuple(
            name for name in delta.columns("joined") if name not in own and name in today and name != TOUCHES
        ),
        gone={stream: _GONE.format(stream) for stream in streams if frames.collected(stream)},
        joined=frames.total("joined"),
        processed=why,
        sums="; ".join(sums),
        replicas=len({replica for replica, _ in sequences(delta)}),
    )


def _checked(project: Project, frames: Frames, day: date, broken: Mapping[str, str]) -> tuple[Outcome, ...]:
    """Run all checkpoints. `broken`: suites that cannot be read, and why."""
    done: list[tuple[str, Any]] = []
    failed: list[Outcome] = []
    for name in dict.fromkeys([*project.checkpoints(), *broken]):
        why = broken.get(name, "")
        try:
            found, wrong = project.run(name, day.isoformat())
            done += found
            why = why or wrong
        except Exception as error:  # whatever people have written there: the others go on
            why = why or line(error)
        if why:
            detail = f"{why}: fix it in `_quality/gx` (`clickjoin quality gx`); the other checkpoints were run"
            failed.append(Outcome(name, "checkpoint", "checkpoint", None, "fail", False, None, _RUNS, detail=detail))
    for name in project.idle() if not failed else ():  # of one that is broken it is not known what it runs
        failed.append(Outcome(name, "checkpoint", "checkpoint", None, "warn", False, None, _RUN, detail=_IDLE))
    return (*outcomes(done, frames.rows), *failed)


def _write(engine: Engine, project: Project, report: Report) -> None:
    delta, pipeline = engine.lake.delta, engine.pipeline
    before = report.at - timedelta(seconds=pipeline.retention.metrics)
    if rows := report.failing():
        folder, name = f"{pipeline.root}/{place.FOLDER}", FAILURES.name
        failures = open_own_tables(pipeline, folder, {name: FAILURES}, engine.lake.session)
        if not failures.exists(name):
            failures.create(FAILURES)
        failures.append(name, rows)
        failures.drop_before(name, "at", before)
    try:
        delta.add_columns("quality", history.LATER, dict.fromkeys(history.LATER, "see docs/tables.md"))
        delta.append("quality", report.rows())
    except LakeError:
        raise
    except Exception as error:
        raise history.unreadable(delta, str(error)) from error
    delta.drop_before("quality", "at", before)
    project.drop_before(before)
