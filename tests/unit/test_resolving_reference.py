"""What becomes of each event of a small batch, row by row, against the rules as plain Python states them.

New events and retries, before their claims are committed and after; of two streams or of one, by time or by id alone.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clickjoin.kernel.adapter import ArrowAdapter
from clickjoin.kernel.forgotten import EMPTIED, NO_ID
from clickjoin.kernel.parquet_rows import read_columns
from clickjoin.kernel.resolving import resolve
from clickjoin.kernel.waiting import TRIED, Tries
from clickjoin.model.ids import MICROS, Around, crc_of, moment
from clickjoin.schemas import FOREIGN, PRIMARY, REGISTRY
from clickjoin.schemas.arrow import arrow_schema
from tests.unit.resolving_bench import BATCH, BUCKET, PLANNED, SHARDS, files, job, query_rows

TOKEN = "main/join/7"
COLUMNS = pa.schema([*(arrow_schema(FOREIGN).field(name) for name in FOREIGN.names[:7]), *TRIED])
FIRST, BACKOFF, LONGEST, MOST = 10, 2, 60, 3
CLAIMED = ("joined", "filtered", "unjoinable")
SETTLED = [(True, name) for name in CLAIMED[1:]]


class Event(NamedTuple):
    """A foreign event; times in microseconds. `claim`: whether it is the batch's own, and as what."""

    id: str
    at: int
    query: str
    named: int
    attempt: int
    first_seen: int
    forgotten: bool
    claim: tuple[bool, str] | None


class Case(NamedTuple):
    """A batch, and what it finds. `queries`: ids and times, the last landed first; `gone`: those forgotten."""

    events: list[Event]
    queries: list[tuple[str, int]]
    gone: set[tuple[str, int]]
    others: list[tuple[str, int]]
    boundary: dict[int, int]
    floor: int | None
    lookback: int | None
    skew: int
    oldest: int
    passed: int | None
    again: bool
    alone: bool
    by_id: bool
    fixed: bool


class Row(NamedTuple):
    """What became of an event; `primary`: the place in the list of its query, where it has one."""

    event: Event
    status: str
    primary: int | None = None
    dropped: bool = False


class Thirds(ArrowAdapter):
    """Leaves out every third pair of records, and turns the order round."""

    columns: ClassVar[Mapping[str, str]] = {"pair": "STRING"}

    def merge_table(self, joined: pa.Table) -> pa.Table:
        """Columns out: event_id, event_time, pair."""
        rows = joined.select(["event_id", "event_time"]).append_column("pair", pa.array(pairs(joined), pa.string()))
        keep = [number for number, text in enumerate(pairs(joined)) if is_kept(text)][::-1]
        return rows.take(pa.array(keep, pa.int64()))


def pairs(joined: pa.Table) -> list[str]:
    """Both records of each row."""
    return [
        f"{one} {other}" for one, other in zip(*(joined[n].to_pylist() for n in ("payload", "primary")), strict=True)
    ]


def is_kept(pair: str) -> bool:
    """Whether the adapter keeps a pair."""
    return sum(map(ord, pair)) % 3 > 0


# The rules.


def reference(case: Case) -> list[Row]:
    """What becomes of each event."""
    return [(with_claims if case.fixed else without_claims)(case, event) for event in case.events]


def without_claims(case: Case, event: Event) -> Row:
    """A batch that has claimed nothing yet: whoever has claimed it, it is another's."""
    if is_claimed(case, event):
        return Row(event, "repeat")
    if is_expired(case, event):
        return Row(event, "expired")
    there, place = found(case, event, case.floor)
    if there:
        return Row(event, "joined" if is_kept(record(case, event, place)) else "filtered", place)
    often = event.attempt + 1 >= MOST and event.first_seen <= case.oldest
    return Row(event, "unjoinable" if case.again and (often or is_absent(case, Row(event, ""))) else "pending")


def with_claims(case: Case, event: Event) -> Row:
    """A batch whose claims are committed: they alone say what it may publish, wherever floor and boundary stand now."""
    if event.claim is None or not event.claim[0]:
        others = "expired" if is_expired(case, event) else "pending"
        return Row(event, "repeat" if is_claimed(case, event) else others)
    there, place = found(case, event, None)
    if event.claim[1] != "joined":
        return Row(event, "repeat" if event.forgotten else event.claim[1], place)
    kept = there and is_kept(record(case, event, place))
    if kept:
        return Row(event, "joined", place)
    named_forgotten = not case.alone and any(case.queries[at] in case.gone for at in named(case, event, None))
    if event.forgotten or named_forgotten:
        return Row(event, "repeat", place)
    return Row(event, "broken", place, there)


def is_claimed(case: Case, event: Event) -> bool:
    """Whether anybody has claimed it: by id and time, or by its id alone."""
    others = {name for name, _ in case.others} if case.by_id else case.others
    return event.claim is not None or (event.id if case.by_id else (event.id, event.at)) in others


def is_expired(case: Case, event: Event) -> bool:
    """Whether the registry no longer answers for its time."""
    return event.at < case.boundary.get(crc_of(event.id) % SHARDS, 0)


def is_absent(case: Case, row: Row) -> bool:
    """Whether its primary's stream is past the time that its query has, or can have at the latest."""
    at = time_of(case, row)
    return case.again and case.passed is not None and (row.event.at if at is None else at) < case.passed


def named(case: Case, event: Event, floor: int | None) -> list[int]:
    """Places of the queries that it can mean."""
    query = NO_ID if event.forgotten else event.query
    low, high = (
        (event.named, event.named) if case.lookback is None else (event.at - case.lookback, event.at + case.skew)
    )
    return [
        place for place, (name, at) in enumerate(case.queries)
        if name == query and low <= at <= high and (floor is None or at >= floor)
    ]  # fmt: skip


def found(case: Case, event: Event, floor: int | None) -> tuple[bool, int | None]:
    """Whether it can be joined, and its query's place: the latest up to it that was not forgotten, then those after.

    Of one that is there twice the first that landed.
    """
    if case.alone:
        return not event.forgotten, None
    fits = [place for place in named(case, event, floor) if case.queries[place] not in case.gone]
    far = [(case.queries[place][1] > event.at, abs(case.queries[place][1] - event.at), -place) for place in fits]
    return bool(fits), -min(far)[2] if fits else None


def record(case: Case, event: Event, place: int | None) -> str:
    """Both records, as the adapter makes one text of them."""
    return f"{payload(event)} {None if place is None else f'{case.queries[place][0]}/{place}'}"


def payload(event: Event) -> str:
    """An event's own record."""
    return EMPTIED if event.forgotten else f"{event.id}/{event.at}"


def time_of(case: Case, row: Row) -> int | None:
    """The time of an event's query as far as it is known."""
    if row.primary is not None:
        return case.queries[row.primary][1]
    return None if case.alone or case.lookback is not None else row.event.named


def expected(case: Case) -> dict[str, Any]:
    """The rows of every table, what is given back, and the counts."""
    rows = reference(case)
    tables: dict[str, Any] = {name: [] for name in ("registry", "joined", *CLAIMED[1:], "expired", "pending", "left")}
    for row in rows:
        event, at = row.event, time_of(case, row)
        key = (event.id, event.at)
        if row.status in CLAIMED and not case.fixed:
            tables["registry"].append((*key, TOKEN, row.status))
        if row.status == "joined":
            tables["joined"].append((*key, at, TOKEN, record(case, event, row.primary)))
        if row.status in ("filtered", "unjoinable", "expired"):
            tables[row.status].append((*key, at, payload(event), *tries_of(row)))
        if row.status in ("pending", "expired"):
            tables["left"].append((*key, at, payload(event), row.status))
        if row.status == "pending" or case.again:
            tables["pending"].append((*key, at, *state_of(case, row)))
    counts = {name: tally(case, [row for row in rows if row.status == name]) for name in {row.status for row in rows}}
    absent = sum(row.status == "unjoinable" and is_absent(case, row) for row in rows)
    more = {"counts": counts, "absent": absent, "dropped": sum(row.dropped for row in rows)}
    return {name: sorted(held, key=str) for name, held in tables.items()} | more


def tries_of(row: Row) -> tuple[int, ...]:
    """What `unjoinable` says besides."""
    return (row.event.attempt + 1,) if row.status == "unjoinable" else ()


def state_of(case: Case, row: Row) -> tuple[Any, ...]:
    """What `pending` says: record, attempt, state, outcome, due_at."""
    own = None if case.again else payload(row.event)
    if row.status != "pending":
        outcome = "claimed_elsewhere" if row.status == "repeat" else row.status
        return own, row.event.attempt + 1, "resolved", outcome, None
    wait = min(FIRST * BACKOFF**row.event.attempt, LONGEST)
    return own, row.event.attempt + 1, "waiting", None, moment(PLANNED + wait * MICROS)


def tally(case: Case, rows: list[Row]) -> tuple[int, int, int]:
    """How many, the oldest, the newest."""
    return len(rows), min(row.event.at for row in rows), max(row.event.at for row in rows)


# The code.


def resolved(folder: Path, case: Case) -> dict[str, Any]:
    """The same by `resolve`, of files in a folder."""
    queries = [
        row | ({"payload": EMPTIED} if key in case.gone else {})
        for row, key in zip(query_rows(case.queries), case.queries, strict=True)
    ]
    files(folder, PRIMARY, queries)
    claimed = [(event.id, event.at, *event.claim) for event in case.events if event.claim]
    claimed += [(name, at, False, "joined") for name, at in case.others]
    claims = files(folder, REGISTRY, [
        {"event_id": name, "event_time": moment(at), "bucket": BUCKET, "shard": crc_of(name) % SHARDS,
         "token": TOKEN if mine else "other/join/7", "outcome": outcome}
        for name, at, mine, outcome in claimed
    ])  # fmt: skip
    tries = Tries(PLANNED, FIRST, BACKOFF, LONGEST, case.again, MOST, case.oldest, case.passed if case.again else None)
    around = None if case.lookback is None else Around(case.lookback, case.skew)
    work = job(
        folder, columns=COLUMNS, adapter=Thirds(), tries=tries, boundary=case.boundary, floor=case.floor,
        around=around, alone=case.alone, by_id=case.by_id, fixed=case.fixed,
    )  # fmt: skip
    done, left = resolve(work, claims, pa.Table.from_pylist([held(case, event) for event in case.events], COLUMNS))
    return shown(work, done, left)


def held(case: Case, event: Event) -> dict[str, Any]:
    """An event as it is given to `resolve`."""
    at = time_of(case, Row(event, ""))
    return {
        "event_id": event.id, "event_time": moment(event.at), "bucket": BUCKET, "shard": crc_of(event.id) % SHARDS,
        "primary_id": NO_ID if event.forgotten else event.query, "primary_time": None if at is None else moment(at),
        "payload": payload(event), "round": 1, "attempt": event.attempt, "first_seen": moment(event.first_seen),
    }  # fmt: skip


def shown(work: Any, done: dict[str, Any], left: pa.Table) -> dict[str, Any]:
    """What was written and given back, in the words of `expected`."""
    more: dict[str, tuple[str, ...]] = {
        "registry": ("token", "outcome"), "joined": ("primary_time", "token", "pair"),
        "filtered": ("primary_time", "payload"), "unjoinable": ("primary_time", "payload", "attempt"),
        "expired": ("primary_time", "payload"),
        "pending": ("primary_time", "payload", "attempt", "state", "outcome", "due_at"),
        "left": ("primary_time", "payload", "status"),
    }  # fmt: skip
    tables = {name: rows_of(work, done, name) for name in work.targets} | {"left": left}
    found_ = {name: tuples(tables[name], ("event_id", "event_time", *columns)) for name, columns in more.items()}
    assert {file.values["event_date"] for file in done["files"].get("joined", [])} <= {"1970-01-01"}
    assert set(tables["pending"]["batch"].to_pylist()) <= {BATCH}
    counts = {name: (one["rows"], one["low"], one["high"]) for name, one in done["tallies"].items() if one["rows"]}
    absent = done["tallies"]["unjoinable"]["absent"]
    return found_ | {"counts": counts, "absent": absent, "dropped": done.get("dropped", 0)}


def rows_of(work: Any, done: dict[str, Any], name: str) -> pa.Table:
    """Rows of the files of a table."""
    target = work.targets[name]
    return read_columns(target.root, [file.path for file in done["files"].get(name, [])], target.schema)


def tuples(rows: pa.Table, names: tuple[str, ...]) -> list[tuple[Any, ...]]:
    """Rows as tuples; times of events and queries as microseconds."""
    for name in ("event_time", "primary_time"):
        if name in rows.column_names:
            rows = rows.set_column(rows.schema.get_field_index(name), name, pc.cast(rows[name], pa.int64()))
    return sorted((tuple(row.values()) for row in rows.select(list(names)).to_pylist()), key=str)


# The batches.

ids, times, floors = st.sampled_from("abcdef"), st.integers(0, 9), st.integers(3, 10)
keys = st.tuples(st.sampled_from("QR"), times)
own = st.tuples(st.just(True), st.sampled_from(("joined", "joined", *CLAIMED)))
own_claims = st.none() | own | own | own | st.just((False, "joined"))
rarely, often = st.sampled_from([False] * 4 + [True]), st.sampled_from([True] * 3 + [False])


@st.composite
def cases(draw: st.DrawFn, *, fixed: bool) -> Case:
    """A batch of either kind: as many claims of its own as of others where they are fixed, few where they are not."""
    alone = draw(st.sampled_from([False, False, True]))
    by_id = alone and draw(st.booleans())
    claim = own_claims if fixed else st.none() | st.none() | st.none() | st.just((False, "joined"))
    event = st.builds(Event, ids, times, st.sampled_from("QR"), times, st.integers(0, 4), times, rarely, claim)
    some = draw(st.lists(event, min_size=1, max_size=8, unique_by=(lambda e: e.id) if by_id else (lambda e: e[:2])))
    taken = {event.id if by_id else event[:2] for event in some if event.claim}
    others = draw(st.lists(st.tuples(ids, times), max_size=3, unique_by=(lambda k: k[0]) if by_id else None))
    others = list(dict.fromkeys(key for key in others if (key[0] if by_id else key) not in taken))
    lookback = draw(st.none() | st.integers(0, 5))
    there = [(one.query, one.named if lookback is None else one.at) for one in some if draw(often)]
    queries = draw(st.permutations(there + draw(st.lists(keys, max_size=4))))
    gone = {key for key in queries if draw(rarely)}
    boundary = draw(st.dictionaries(st.integers(0, SHARDS - 1), times, max_size=2))
    return Case(
        some, queries, gone, others, boundary, draw(st.none() | floors), lookback, draw(st.integers(0, 2)), draw(times),
        draw(st.none() | times), draw(st.booleans()), alone, by_id, fixed,
    )  # fmt: skip


def agrees(case: Case) -> None:
    with tempfile.TemporaryDirectory() as name:
        assert resolved(Path(name), case) == expected(case)


@settings(max_examples=100, deadline=None)
@given(cases(fixed=False))
def test_a_batch_that_has_claimed_nothing(case: Case) -> None:
    agrees(case)


@settings(max_examples=100, deadline=None)
@given(cases(fixed=True))
def test_a_batch_whose_claims_are_committed(case: Case) -> None:
    agrees(case)


@pytest.mark.parametrize("claim", SETTLED, ids=["filtered", "unjoinable"])
def test_no_side_output_gets_a_row_of_an_event_that_was_forgotten_after_its_claim(claim: tuple[bool, str]) -> None:
    event = Event("a", 5, "Q", 5, 0, 0, forgotten=True, claim=claim)
    agrees(
        Case(
            [event],
            [("Q", 5)],
            set(),
            [],
            {},
            None,
            None,
            0,
            0,
            None,
            again=False,
            alone=False,
            by_id=False,
            fixed=True,
        )
    )
