"""Working through one date: recompute or fill it, verify it, judge its quality, and write down what became of it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from pyspark.sql import functions as F

from clickjoin import quality
from clickjoin.dates import ledger
from clickjoin.dates.late_events import join_expired, try_again
from clickjoin.dates.readiness import Watermark, held_by, low_watermark, waiting
from clickjoin.dates.rebuild import rebuild
from clickjoin.model.errors import DateError
from clickjoin.model.ids import MICROS, moment
from clickjoin.model.reporter import Reporter
from clickjoin.verification.verify import Verifier, Wanted

if TYPE_CHECKING:
    from clickjoin.engine import Engine
    from clickjoin.model.span import Day
    from clickjoin.verification.findings import Report

_NAMED = 3
Action = Literal["close", "fill", "rebuild"]
_PLACES = ("joined", "filtered", "unjoinable", "forgotten", "expired", "pending", "accepted")


@dataclass(frozen=True)
class Order:
    """What is to be done to a date. `forced`: close it although input or primaries are missing; `run` names the run.

    `repair`: fix what verification finds (None: as verify.repair says).
    """

    action: Action = "close"
    run: str = ""
    forced: str = ""
    repair: bool | None = None


@dataclass
class DateResult:
    """What was done to a date so far."""

    day: Day
    counts: dict[str, int] = field(default_factory=dict)

    def add(self, more: Mapping[str, int]) -> str:
        """Take in counts; returns them as text."""
        for name, value in more.items():
            self.counts[name] = self.counts.get(name, 0) + value
        return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in more.items() if value) or "nothing"


def close(engine: Engine, day: Day, order: Order, report_line: Reporter) -> dict[str, Any]:
    """Carry out an order on a date; returns its row of table `dates`, `ok`, `verdict`, `changed` and counts.

    changed: the output differs from when the date was last closed, or this very run closed it then: those who wait
    for the date are to be notified. Errors: DateBusy, DateError for a date that has not begun, and those of the parts.
    """
    delta = engine.lake.delta
    if day.low.timestamp() > engine.clock():
        raise DateError(f"{day} lies in the future", remedy="Wait until it has begun")
    with ledger.held(engine.lake.delta, day, engine.pipeline.close.lease, engine.clock):
        begun, micros = time.perf_counter(), int(engine.clock() * MICROS)
        done, mark = DateResult(day), low_watermark(engine.pipeline, delta, min(engine.clock(), time.time()), day)
        if order.action == "rebuild":
            report_line(f"{day}: {done.add(rebuild(engine, day.span, micros))}")
        _fill(engine, day, done, report_line)
        report = _verified(engine, day, order, done, report_line)
        checks = quality.run(engine, day.date, report_line).to_dict()
        row = _row(engine, day, order, report, checks, mark, micros)
        before = ledger.last_closed(delta, day)
        row["revision"] = _revision(before, row)
        row["seconds"] = round(time.perf_counter() - begun, 3)
        delta.append("dates", [row])
    report_line(f"{day}: {row['state']}{': ' + row['detail'] if row['detail'] else ''} ({row['seconds']:.1f} s)")
    return _answer(row, before, done)


def _fill(engine: Engine, day: Day, done: DateResult, report_line: Reporter) -> None:
    report_line(f"{day}: tried again: {done.add(try_again(engine, day.span))}")
    late = join_expired(engine, day.span, int(engine.clock() * MICROS))
    if any(late.values()):
        said = done.add(late)
        report_line(f"{day}: older than the registry's boundary, so its output alone says what is joined: {said}")


def _verified(engine: Engine, day: Day, order: Order, done: DateResult, report_line: Reporter) -> Report:
    wish = order.repair if order.repair is not None else engine.pipeline.verify.repair or order.action == "fill"
    report = Verifier(engine, report_line).verify(Wanted(day.low, day.high, repair=wish))
    fixed = sum(count.repaired for count in report.counts)
    if fixed:
        done.add({"repaired": fixed})
        done.add(try_again(engine, day.span))
        report = Verifier(engine, report_line).verify(Wanted(day.low, day.high))
    return report


def _row(
    engine: Engine, day: Day, order: Order, report: Report, checks: Mapping[str, Any], mark: Watermark, micros: int
) -> dict[str, Any]:
    row = {
        "date": day.date,
        "at": moment(micros),
        "run": order.run or f"{engine.replica}/{micros}",
        "action": order.action,
        "watermark": mark.time,
        "version": engine.lake.delta.version("joined"),
        "fingerprint": fingerprint(engine, day),
        "faults": sum(count.left for count in report.counts),
        "failed": checks["failed"],
        "warned": checks["warned"],
        "report": checks["report"],
    }
    row |= {name: checks["accounts"][name] for name in _PLACES}
    red = [f"{one['suite']}.{one['check']}" for one in checks["results"] if one["state"] == "failed"]
    delta = engine.lake.delta
    held = held_by(engine.pipeline, delta, day, waiting(delta)) if row["pending"] else ""
    row["state"], row["detail"] = judge(day, order, row, mark, held, red)
    return row


def judge(
    day: Day, order: Order, row: Mapping[str, Any], mark: Watermark, held: str, red: Sequence[str] = ()
) -> tuple[str, str | None]:
    """State of a date, and why it is not closed, or closed anyway.

    `held`: see readiness.held_by; `red`: names of the checks that failed.
    """
    wrong = []
    if row["faults"]:
        wrong.append(f"verification left {row['faults']} faults (`clickjoin verify --from {day} --repair`)")
    if row["failed"]:
        names = f": {', '.join(red[:_NAMED])}{' …' if len(red) > _NAMED else ''}" if red else ""
        where = f", {row['report']}/index.html" if row["report"] else ""
        wrong.append(f"{row['failed']} quality checks failed{names} (table `quality`{where})")
    if wrong:
        return "failing", "; ".join(wrong)
    missing = []
    if mark.time is None or mark.time < day.high:
        missing.append(f"not all of its input is read: {mark.why}")
    missing += [held] if held else []
    if not missing:
        empty = None if row["accepted"] or row["joined"] else "no event of this date was ever accepted"
        return "closed", f"{order.forced}: {empty or 'nothing was missing'}" if order.forced else empty
    if order.forced:
        return "closed", f"{order.forced}: {'; '.join(missing)}"
    return "open", "; ".join(missing)


def fingerprint(engine: Engine, day: Day) -> str:
    """Of the ids and rows of a date's output, wherever and whenever they were written: `rows:sum of hashes`."""
    lake = engine.lake
    own = [name for name in lake.delta.columns("joined") if name not in ("token", "replica", "published_at")]
    rows = lake.read("joined").where(day.span.extent(int(engine.pipeline.registry.bucket)).sql())
    hashed = F.xxhash64(*[F.col(f"`{name}`").cast("string") for name in sorted(own)]).cast("decimal(38, 0)")
    found = rows.agg(F.count(F.lit(1)).alias("rows"), F.sum(hashed).alias("sum")).collect()[0]
    return f"{found['rows']}:{found['sum'] or 0}"


def _revision(before: Mapping[str, Any] | None, row: Mapping[str, Any]) -> int:
    last = before["revision"] if before else 0
    if row["state"] != "closed" or (before and before["fingerprint"] == row["fingerprint"]):
        return int(last)
    return int(last) + 1


def _answer(row: dict[str, Any], before: Mapping[str, Any] | None, done: DateResult) -> dict[str, Any]:
    closed = row["state"] == "closed"
    announced = before is not None and before["fingerprint"] == row["fingerprint"] and before["run"] != row["run"]
    plain = {name: value.isoformat() if hasattr(value, "isoformat") else value for name, value in row.items()}
    verdict = f"{plain['date']} is {row['state']}" + (f": {row['detail']}" if row["detail"] else "")
    # What fills has done its work where nothing is wrong, though the date waits for what is to come.
    ok = closed or (row["action"] == "fill" and row["state"] == "open")
    return plain | {"ok": ok, "verdict": verdict, "changed": closed and not announced, "done": done.counts}
