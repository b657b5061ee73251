"""The sums at the end: what went in, where it is, and whether that agrees."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.table import Table

from .feeder import Entry
from .lake import OUTCOMES, Lake
from .latency import Readable, Spread, spread

TABLES = {"clicks": "foreign", "impressions": "primary"}


@dataclass(frozen=True)
class Stream:
    """Lines of one stream by the ledger, and what the lake made of them."""

    lines: int
    accepted: int
    duplicates: int
    quarantined: int


@dataclass(frozen=True)
class Tally:
    """All counts; `clicks` by outcome in `outcomes` and `pending`. `faults` says in sentences what does not agree."""

    streams: dict[str, Stream]
    outcomes: dict[str, int]
    pending: int
    faults: tuple[str, ...]


def tally(lake: Lake, entries: Sequence[Entry]) -> Tally:
    """Count the lake against the ledger, in sums and id by id."""
    bad = [row["stream"] for row in lake.read("quarantine", "stream", "part") if not row["part"]]
    streams = {}
    for stream, table in TABLES.items():
        rows, ids = lake.rows(table), len(lake.ids(table))
        lines = sum(entry.stream == stream for entry in entries)
        streams[stream] = Stream(lines, ids, rows - ids, bad.count(table))
    outcomes = {name: len(lake.ids(name)) for name in OUTCOMES}
    pending = len(lake.waiting())
    return Tally(streams, outcomes, pending, tuple(_faults(lake, entries, streams, outcomes, pending)))


def _faults(
    lake: Lake, entries: Sequence[Entry], streams: dict[str, Stream], outcomes: dict[str, int], pending: int
) -> Iterable[str]:
    for stream, counts in streams.items():
        parts = counts.accepted + counts.duplicates + counts.quarantined
        if counts.lines != parts:
            yield f"{stream}: {counts.lines} lines in, {parts} accepted, duplicates or in quarantine"
        fed = {entry.event_id for entry in entries if entry.stream == stream and entry.event_id}
        seen = lake.ids(TABLES[stream])
        yield from _ids(f"{stream} that were fed and not accepted", fed - seen)
        yield from _ids(f"{stream} that were accepted and never fed", seen - fed)
    whole, accepted = sum(outcomes.values()) + pending, streams["clicks"].accepted
    if accepted != whole:
        yield f"clicks: {accepted} accepted, and {whole} joined, pending, unjoinable, expired or filtered"
    for name in OUTCOMES:
        if lake.rows(name) != outcomes[name]:
            yield f"{name}: {lake.rows(name)} rows of {outcomes[name]} clicks"
    if pending:
        yield from _ids("clicks that are still pending", lake.waiting())


def _ids(what: str, ids: set[str]) -> Iterable[str]:
    if ids:
        yield f"{len(ids)} {what}, such as {min(ids)}"


def latencies(entries: Sequence[Entry], readable: Readable) -> dict[str, Spread | None]:
    """From written to readable, over all clicks and over those whose impression was not held back on purpose."""
    first: dict[str, int] = {}
    for entry in entries:
        if entry.stream == "clicks" and entry.event_id:
            first.setdefault(entry.event_id, entry.written_at)
    took = {click: moment - first[click] for click, moment in readable.moments.items() if click in first}
    return {"all": spread(took.values())}


def as_table(found: Tally, spreads: dict[str, Spread | None]) -> Table:
    """Everything, to be printed."""
    table = Table(title="ZOZO: what went in, and where it is", title_justify="left")
    for column, side in (("", "left"), ("clicks", "right"), ("impressions", "right")):
        table.add_column(column, justify=side)  # type: ignore[arg-type]
    clicks, impressions = found.streams["clicks"], found.streams["impressions"]
    table.add_row("input lines", f"{clicks.lines:,}", f"{impressions.lines:,}")
    table.add_row("  duplicates", f"{clicks.duplicates:,}", f"{impressions.duplicates:,}")
    table.add_row("  quarantined", f"{clicks.quarantined:,}", f"{impressions.quarantined:,}")
    table.add_row("  accepted", f"{clicks.accepted:,}", f"{impressions.accepted:,}", end_section=True)
    for name, count in {**found.outcomes, "pending": found.pending}.items():
        table.add_row(f"    {name}", f"{count:,}", "")
    return table
