"""The sums at the end: what went in, where it is, and whether that agrees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rich.table import Table

from .feeder import Entry
from .lake import OUTCOMES, Lake
from .latency import Readable, Spread, spread
from .script import WARM_CLICKS

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


def latencies(lake: Lake, entries: Sequence[Entry], readable: Readable, warm: int) -> dict[str, Spread | None]:
    """From click written to output readable: of all clicks, and apart of those whose impression was held back.

    The first `warm` entries are left out.
    """
    written: dict[str, int] = {}
    for entry in entries[warm:]:
        if entry.stream == "clicks" and entry.event_id:
            written.setdefault(entry.event_id, entry.written_at)
    held = {entry.event_id for entry in entries if entry.kind == "held"}
    named = {row["event_id"]: row["primary_id"] for row in lake.read("joined", "event_id", "primary_id")}
    took = {click: moment - written[click] for click, moment in readable.moments.items() if click in written}
    late = {click for click in took if named.get(click) in held}
    return {
        "all clicks": spread(took.values()),
        "impression written first": spread(took[click] for click in took.keys() - late),
        "impression held back": spread(took[click] for click in late),
    }


def sums(found: Tally) -> Table:
    """What went in and where it is, to be printed."""
    table = Table(title="What went in, and where it is", title_justify="left")
    for column in ("", "clicks", "impressions"):
        table.add_column(column, justify="right" if column else "left")
    clicks, impressions = found.streams["clicks"], found.streams["impressions"]
    for name, label in (("lines", "input lines"), ("quarantined", "quarantined"), ("duplicates", "duplicates")):
        table.add_row(label, f"{getattr(clicks, name):,}", f"{getattr(impressions, name):,}")
    table.add_row("accepted", f"{clicks.accepted:,}", f"{impressions.accepted:,}", end_section=True)
    for name, count in {**found.outcomes, "pending": found.pending}.items():
        table.add_row(name, f"{count:,}", "")
    return table


def times(spreads: dict[str, Spread | None]) -> Table:
    """Latencies in seconds, to be printed."""
    table = Table(title="Seconds from click written to joined row readable", title_justify="left")
    table.caption = f"Without the first {WARM_CLICKS}, which warm Spark up.\nNo benchmark: that is `make bench`."
    table.caption_justify = "left"
    for column in ("", "joined", "p50", "p90", "p99", "max"):
        table.add_column(column, justify="right" if column else "left")
    for name, of in spreads.items():
        if of:
            table.add_row(name, f"{of.count:,}", *(f"{part:.1f}" for part in (of.p50, of.p90, of.p99, of.max)))
    return table


def a_row(lake: Lake) -> list[str]:
    """A row of the output, a column a line; nothing where it is empty."""
    rows = lake.read("joined")
    row = min(rows, key=lambda row: str(row["event_id"]), default={})
    width = max(map(len, row), default=0)
    return [f"a row of {lake.folder.name}/joined:" for _ in rows[:1]] + [
        f"  {name:{width}}  {row[name]}" for name in row
    ]


def written_by(commits: Mapping[tuple[str, str, str], int]) -> str:
    """Whose commits the tables hold, and how the registry got its claims; `commits`: see Lake.commits."""
    writers, claims = Counter[str](), Counter[str]()
    for (table, writer, operation), count in commits.items():
        writers[writer] += count
        if table == "registry":
            claims[operation] += count
    by = " and ".join(f"{count:,} by {writer}" for writer, count in writers.most_common())
    of = ", ".join(f"{count:,} {operation}" for operation, count in claims.most_common())
    return f"commits in the logs of its {len({table for table, _, _ in commits})} tables: {by}; of the registry: {of}"
