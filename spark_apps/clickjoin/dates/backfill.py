"""Backfill of a range of dates: several at a time, each on a session of its own; of raw logs; and dry runs."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from clickjoin.config import Delta, Files, OfPipeline
from clickjoin.dates import ledger
from clickjoin.dates.closing import Order, close
from clickjoin.dates.late_events import context, expired
from clickjoin.dates.rebuild import counted
from clickjoin.kernel.data_skipping import rows_in
from clickjoin.model.errors import ClickjoinError, ConfigError
from clickjoin.model.ids import MICROS
from clickjoin.model.names import RAW
from clickjoin.model.places import is_on_s3
from clickjoin.model.reporter import Reporter
from clickjoin.retry.pending import open_rows
from clickjoin.sources.files.allowed_folders import base_of, fence_of
from clickjoin.sources.open import in_files, open_source
from clickjoin.sources.port import Nothing, Source
from clickjoin.sources.reach import driver_reads
from clickjoin.spark.failures import translate
from clickjoin.spark.lazy import LazySession
from clickjoin.spark.session import another, release

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.config.pipeline import Input
    from clickjoin.engine import Engine
    from clickjoin.model.span import Day
    from clickjoin.rounds import Settled


@dataclass(frozen=True)
class RawLogs:
    """Logs of the past, as globs: of queries, of clicks, or of both. Relative ones are from the working folder."""

    primary: str = ""
    foreign: str = ""

    def __post_init__(self) -> None:
        for stream in ("primary", "foreign"):
            if "\0" in (given := getattr(self, stream)):
                raise ConfigError(f"{given!r} is no path", remedy="Give a glob that names the files")
            # `..` is resolved here, as text: what is checked is what is listed.
            local = given and not is_on_s3(given)
            whole = os.path.abspath(given.removeprefix("file://")) if local else given  # noqa: PTH100 - with wildcards
            object.__setattr__(self, stream, whole)

    def __bool__(self) -> bool:
        return bool(self.primary or self.foreign)

    @property
    def replica(self) -> str:
        """Name of the replica whose journal remembers how far these logs have been read."""
        return RAW + hashlib.blake2b(f"{self.primary}|{self.foreign}".encode(), digest_size=4).hexdigest()

    def require(self, pipeline: Pipeline) -> None:
        """Check that the globs start where the pipeline's file lets raw logs come from. Errors: ConfigError.

        What they name is checked when it is listed, and once more when it is opened.
        """
        if pipeline.shares_log and self.primary != self.foreign:
            raise ConfigError(
                "both streams read one log, and what is broken in it counts for one of them",
                remedy="Give the same files for both, as --primary and --foreign",
            )
        fence = fence_of(pipeline)
        for pattern in self.globs:
            if is_on_s3(pattern):
                fence.require_on_s3(pattern)
            else:
                fence.require(base_of(pattern)[0])

    @property
    def globs(self) -> tuple[str, ...]:
        """Those that are given."""
        return tuple(filter(None, (self.primary, self.foreign)))

    def sources(self, pipeline: Pipeline, here: frozenset[str] = frozenset()) -> dict[str, Source]:
        """What to read in place of the pipeline's own logs, in the same format. `here`: see driver_reads."""
        fence, given = fence_of(pipeline), {item.name: getattr(self, item.role) for item in pipeline.inputs}
        return {
            item.name: open_source(_files_of(item, path), fence=fence, here=here) if path else Nothing()
            for item in pipeline.inputs
            for path in (given[item.name],)
        }


def _files_of(item: Input, path: str) -> Files:
    """A stream's records where they lie in files. Errors: ConfigError for rows of a table."""
    if isinstance(item.source, Delta | OfPipeline):
        raise ConfigError(
            f"{item.name}: reads a table ({item.source.path}), and raw logs are files",
            remedy="Backfill the pipeline that reads them; what it adds to its output is read here",
        )
    return in_files(item.source, path)


def land(engine: Engine, logs: RawLogs, done: Callable[[Settled], None]) -> int:
    """Take up raw logs as a replica of their own would; returns the number of records read.

    Read to their end once; run again, it takes up what is new. Errors: ConfigError where nothing matches.
    """
    here = driver_reads(engine.lake.started, engine.pipeline, logs.globs)
    reader, records = engine.copy(logs.replica, sources=logs.sources(engine.pipeline, here)), 0
    first = reader.join_once()
    missing = [problem for problem in reader.problems() if problem.kind == "missing"]
    if missing:
        raise ConfigError(f"{missing[0].path}: {missing[0].detail}", remedy="Give a glob that names the files")

    def count(settled: Settled) -> None:
        nonlocal records
        records += sum(int(str(settled.metrics[name])) for name in ("primary_in", "events_in", "quarantined"))
        done(settled)

    if first:
        count(first)
    reader.drain(count)
    return records


def backfill(engine: Engine, days: Sequence[Day], order: Order, jobs: int, report_line: Reporter) -> dict[str, Any]:
    """Carry out an order on some dates, `jobs` at a time. Returns `dates` (their answers, in order) and `errors`.

    A date that fails leaves the others alone. Dates that this run (by `order.run`) has closed before are passed over.
    """
    over = _passed_over(engine, order)
    todo = [day for day in days if day.date not in over]
    for day in days:
        if day.date in over:
            report_line(f"{day}: done by this run before")
    answers: dict[str, dict[str, Any]] = {}
    errors: dict[str, str] = {}
    with ThreadPoolExecutor(max(jobs, 1)) as pool:
        running = {pool.submit(_one, engine, day, order, report_line): day for day in todo}
        for job in as_completed(running):
            name = str(running[job])
            try:
                answers[name] = job.result()
            except Exception as error:  # whatever it is, the other dates go on
                errors[name] = _text(error).removeprefix(f"{name}: ")
                report_line(f"{name}: {errors[name]}")
            report_line(f"{len(answers) + len(errors)} of {len(todo)} dates done")
    return {"dates": [answers[day] for day in sorted(answers)], "errors": errors, "passed_over": len(over)}


def _one(engine: Engine, day: Day, order: Order, report_line: Reporter) -> dict[str, Any]:
    session = LazySession(lambda: another(engine.lake.spark))
    try:
        return close(engine.copy(engine.replica, session), day, order, report_line)
    finally:
        if session.started:
            release(session.started)


def _text(error: Exception) -> str:
    ours = error if isinstance(error, ClickjoinError) else translate(error)
    return str(ours) if ours else f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')[:500]}"


def _passed_over(engine: Engine, order: Order) -> set[Any]:
    rows = ledger.newest(engine.lake.delta)
    return {date for date, row in rows.items() if order.run and row["run"] == order.run and row["state"] == "closed"}


def outline(engine: Engine, day: Day, order: Order) -> dict[str, Any]:
    """State of a date, `rows` of its output, and what would be tried again or rebuilt.

    pending, unjoinable: events of the date that would be tried again (those given up: where their primary is there);
    expired: older than the registry's boundary and in no output yet; rebuilt: rows that would be rebuilt;
    missing: by reason, ids of the output that cannot be, so that a rebuild would refuse the date.
    """
    delta, span = engine.lake.delta, day.span
    row = ledger.newest(delta).get(day.date)
    waits = open_rows(delta)
    found: dict[str, Any] = {
        "date": str(day),
        "state": row["state"] if row else "never closed",
        "rows": _rows(engine, "joined", day),
        "pending": sum(span.low <= event["event_time"] < span.high for event in waits),
        "unjoinable": _rows(engine, "unjoinable", day),
    }
    ctx = context(engine, "outline", int(datetime.now(UTC).timestamp() * MICROS))
    found["expired"] = expired(engine, span, ctx).count() if _rows(engine, "expired", day) else 0
    if order.action == "rebuild":
        counts = counted(span, ctx)
        found["rebuilt"] = counts.pop("rows")
        found["missing"] = {name: count for name, count in counts.items() if count}
    return found


def _rows(engine: Engine, name: str, day: Day) -> int:
    """Ids of a table in a date; of the output, whose partitions are whole buckets, the log knows."""
    extent = day.span.extent(int(engine.pipeline.registry.bucket))
    rows = rows_in(engine.lake.delta.files(name), extent)
    if name == "joined" or not rows:
        return rows
    return engine.lake.read_extent(name, extent).where(day.span.sql()).select("event_id").distinct().count()
