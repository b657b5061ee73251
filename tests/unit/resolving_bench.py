"""Files of clicks, queries and claims for one part of a batch, and what joining them has to give, computed naively."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from clickjoin.kernel.adapter import BothRecords, made_of
from clickjoin.kernel.data_file import Target, write
from clickjoin.kernel.data_skipping import Ends
from clickjoin.kernel.join_task import Part
from clickjoin.kernel.parquet_rows import Files
from clickjoin.kernel.resolving import Job
from clickjoin.kernel.waiting import Tries
from clickjoin.model.ids import Around, crc_of, moment
from clickjoin.schemas import EXPIRED, FILTERED, FOREIGN, JOINED, PENDING, PRIMARY, REGISTRY, UNJOINABLE, Table
from clickjoin.schemas.arrow import arrow_schema

PLANNED = 1_000_000_000  # microseconds
BUCKET, BATCH, SHARDS = "1970-01-01T0000Z", 7, 4
Click = tuple[str, int, str, int]  # id, time, query's id and time (microseconds)
Query = tuple[str, int]


def target(folder: Path, table: Table, more: Sequence[pa.Field] = ()) -> Target:
    """Where files of a table go."""
    schema = pa.schema([*arrow_schema(table), *more])
    return Target(str(folder / table.name), schema, table.partitions, table.statistics)


def rows(table: Table, given: Iterable[dict[str, Any]]) -> pa.Table:
    """Rows with nulls for what is not given."""
    schema = arrow_schema(table)
    return pa.Table.from_pylist([dict.fromkeys(schema.names) | row for row in given], schema=schema)


def files(folder: Path, table: Table, given: Sequence[dict[str, Any]], known: bool = True) -> Files:
    """The same as two files, each with what is known of its times."""
    paths, ends = [], []
    for half in (given[::2], given[1::2]):
        made = write(target(folder, table), rows(table, half))
        for file in made:
            own = [row for row in half if str(row.get("shard")) == file.values.get("shard", str(row.get("shard")))]
            times = [round(row["event_time"].timestamp() * 1e6) for row in own]
            paths.append(file.path)
            ends.append((min(times), max(times)) if known else (-(1 << 60), 1 << 60))
    least, most = (np.array([end[side] for end in ends], np.int64) for side in (0, 1))
    return Files(str(folder / table.name), tuple(paths), Ends(least, most))


def click_rows(clicks: Sequence[Click], batch: int = BATCH) -> list[dict[str, Any]]:
    """Rows of table `foreign`; the later a click in the list the greater its offset."""
    return [
        {"event_id": name, "event_time": moment(at), "bucket": BUCKET, "shard": crc_of(name) % SHARDS,
         "primary_id": query, "primary_time": moment(named), "payload": f"{name}/{number}", "path": "p",
         "source_partition": "g", "offset": number, "length": 1, "batch": batch, "replica": "main",
         "landed_at": moment(0)}
        for number, (name, at, query, named) in enumerate(clicks)
    ]  # fmt: skip


def query_rows(queries: Sequence[Query]) -> list[dict[str, Any]]:
    """Rows of table `primary`; the first of a name in the list landed last."""
    return [
        {"event_id": name, "event_time": moment(at), "bucket": BUCKET, "shard": 0, "payload": f"{name}/{number}",
         "source_partition": "g", "offset": number, "batch": 1, "replica": "main", "landed_at": moment(100 - number)}
        for number, (name, at) in enumerate(queries)
    ]  # fmt: skip


def part(
    folder: Path, clicks: Sequence[Click], queries: Sequence[Query] = (), claims: Sequence[Query] = (),
    shards: tuple[int, ...] = (), known: bool = True,
) -> Part:  # fmt: skip
    """A part over files of its own; the queries lie where `job` looks for them."""
    mine = click_rows(clicks)
    others = [row | {"event_id": f"other-{row['event_id']}"} for row in click_rows(clicks, BATCH + 1)]
    random.Random(len(clicks)).shuffle(mine)
    foreign = files(folder, FOREIGN, mine + others)
    files(folder, PRIMARY, query_rows(queries), known)
    taken = [
        {"event_id": name, "event_time": moment(at), "bucket": BUCKET, "shard": crc_of(name) % SHARDS,
         "token": "t", "outcome": "joined"}
        for name, at in claims
    ]  # fmt: skip
    return Part(((BUCKET, foreign.paths),), shards, files(folder, REGISTRY, taken, known))


def job(folder: Path, **more: Any) -> Job:
    """A job over the files below a folder; of queries nothing is known but where they lie."""
    paths = tuple(str(file.relative_to(folder / "primary")) for file in (folder / "primary").rglob("*.parquet"))
    unknown = np.full(len(paths), 1 << 60)
    adapter = more.pop("adapter", BothRecords())
    own = list(made_of(adapter.columns))
    made: dict[str, Any] = {
        "batch": BATCH, "replica": "main", "sequence": "join", "token": "main/join/7", "boundary": {},
        "floor": None, "around": None, "foreign": str(folder / "foreign"), "columns": arrow_schema(FOREIGN),
        "primary": Files(str(folder / "primary"), paths, Ends(-unknown, unknown)),
        "targets": {table.name: target(folder, table) for table in (REGISTRY, FILTERED, PENDING, UNJOINABLE, EXPIRED)}
        | {"joined": target(folder, JOINED, own[2:])},
        "adapter": adapter, "made": pa.schema(own), "tries": Tries(PLANNED, 10.0, 2.0, 60.0),
    }  # fmt: skip
    return Job(**{**made, **more})


def around(lookback: int | None) -> Around | None:
    """Primary events that lie so long before their events at most, and never after them."""
    return None if lookback is None else Around(lookback, 0)


def expected_result(
    clicks: Sequence[Click], queries: Sequence[Query], claims: Sequence[Query], shards: tuple[int, ...],
    boundary: dict[int, int], floor: int | None, lookback: int | None,
) -> dict[str, set[Any]]:  # fmt: skip
    """What becomes of each click: ids and times by status; of a joined one both payloads too."""
    found: dict[str, set[Any]] = {name: set() for name in ("repeat", "joined", "pending", "expired")}
    seen = set()
    for number, (name, at, query, named) in enumerate(clicks):
        if (name, at) in seen or (shards and crc_of(name) % SHARDS not in shards):
            continue
        seen.add((name, at))
        fits = [
            place for place, (other, time) in enumerate(queries)
            if other == query and (floor is None or time >= floor)
            and (time == named if lookback is None else at - lookback <= time <= at)
        ]  # fmt: skip
        if (name, at) in claims:
            found["repeat"].add((name, at))
        elif at < boundary.get(crc_of(name) % SHARDS, at):
            found["expired"].add((name, at))
        elif fits:  # the last in the list landed first
            place = max(fits, key=lambda place: (queries[place][1], place))
            found["joined"].add((name, at, f"{name}/{number}", f"{query}/{place}", queries[place][1]))
        else:
            found["pending"].add((name, at))
    return found
