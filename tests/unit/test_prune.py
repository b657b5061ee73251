"""Pruning: a file that holds a row of the extent is never left out, whatever its statistics say or lack."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from clickjoin.engines.arrow import ArrowTables
from clickjoin.kernel.data_skipping import matching
from clickjoin.model.extent import MINUTE, Extent, merge, minutes_of, spanning
from clickjoin.model.ids import MICROS, bucket_of, moment
from clickjoin.schemas import PENDING, REGISTRY

DAY = datetime(2026, 1, 1, tzinfo=UTC)
START = int(DAY.timestamp()) * MICROS
WIDTH = 3600
STAMP = pa.timestamp("us", "UTC")
# (micros after DAY, shard, batch): dense around a few moments, so that edges meet.
ROW = st.tuples(
    st.builds(lambda hour, micros: hour * 3600 * MICROS + micros, st.integers(0, 5), st.integers(0, 3000)),
    st.integers(0, 3),
    st.integers(1, 4),
)
FILES = st.lists(st.lists(ROW, min_size=1, max_size=4), max_size=6)
Row = tuple[int, int, int]


def name_of(row: Row) -> str:
    return bucket_of(START + row[0], WIDTH)


def actions_of(files: list[list[Row]], bare: set[int]) -> tuple[pa.Table, dict[str, list[Row]]]:
    """Flattened add actions of files partitioned by bucket and shard; those in `bare` have no statistics."""
    held: dict[str, list[Row]] = {}
    for at, rows in enumerate(files):
        for row in rows:
            held.setdefault(f"{at}/{name_of(row)}/{row[1]}", []).append(row)
    records = []
    for path, rows in held.items():
        times = [moment(START + row[0]) for row in rows]
        known = int(path.split("/")[0]) not in bare
        records.append({
            "path": path,
            "partition.bucket": name_of(rows[0]),
            "partition.shard": rows[0][1],
            "min.event_time": milliseconds(min(times)) if known else None,
            "max.event_time": milliseconds(max(times)) if known else None,
            "min.batch": min(row[2] for row in rows) if known else None,
            "max.batch": max(row[2] for row in rows) if known else None,
        })  # fmt: skip
    schema = [("path", pa.string()), ("partition.bucket", pa.string()), ("partition.shard", pa.int32())]
    schema += [
        ("min.event_time", STAMP),
        ("max.event_time", STAMP),
        ("min.batch", pa.int64()),
        ("max.batch", pa.int64()),
    ]
    return pa.Table.from_pylist(records, pa.schema(schema)), held


def milliseconds(at: datetime) -> datetime:
    """As a Delta log keeps a minimum and a maximum."""
    return at.replace(microsecond=at.microsecond // 1000 * 1000)


def extent_of(rows: list[Row]) -> Extent:
    times = [START + row[0] for row in rows]
    names = tuple({name_of(row) for row in rows})
    return Extent(len(rows), names, moment(min(times)), moment(max(times)), minutes_of(at // MINUTE for at in times))


@given(FILES, st.sets(st.integers(0, 5)), st.lists(ROW, min_size=1, max_size=3), st.booleans())
def test_never_drops_a_match(files: list[list[Row]], bare: set[int], wanted: list[Row], wide: bool) -> None:
    actions, held = actions_of(files, bare)
    extent, shards = extent_of(wanted), {row[1] for row in wanted}
    if wide:  # past 500 buckets all between the first and the last are meant
        far = spanning(1, DAY - timedelta(days=60), DAY - timedelta(days=30), WIDTH)
        assert merge([extent, far]).wide
        extent = merge([extent, far])
    batch = wanted[0][2]
    kept = set(matching(actions, extent, batch, shards))
    for path, rows in held.items():
        for row in rows:
            at = moment(START + row[0])
            inside = name_of(row) in extent.buckets and extent.low <= at <= extent.high  # type: ignore[operator]
            inside &= not extent.minutes or (START + row[0]) // MINUTE in extent.minutes
            if inside and row[1] in shards and row[2] == batch:
                assert path in kept
    assert kept <= set(matching(actions, extent)) <= set(held)


def test_drops_what_cannot_match() -> None:
    rows = [[(hour * 3600 * MICROS, shard, hour + 1)] for hour in range(3) for shard in range(2)]
    actions, _ = actions_of(rows, set())
    one = extent_of([(0, 0, 1)])
    assert sorted(matching(actions, one)) == ["0/2026-01-01T0000Z/0", "1/2026-01-01T0000Z/1"]
    assert matching(actions, one, shards={1}) == ["1/2026-01-01T0000Z/1"]
    assert matching(actions, one, batch=2) == []
    later = Extent(1, one.buckets, DAY + timedelta(minutes=1), DAY + timedelta(minutes=2))
    assert matching(actions, later) == []
    assert matching(actions, Extent(0)) == matching(actions.slice(0, 0), one) == []


def test_truncated_maximum() -> None:
    # The log says .000 of a row at .000999: the extent begins between the two.
    actions, _ = actions_of([[(999, 0, 1)]], set())
    at = moment(START + 999)
    assert matching(actions, Extent(1, (bucket_of(START, WIDTH),), at, at)) == ["0/2026-01-01T0000Z/0"]


def test_no_statistics_at_all() -> None:
    actions = pa.table({"path": ["a", "b"], "num_records": [1, 1]})
    assert matching(actions, extent_of([(0, 0, 1)]), batch=3, shards={0}) == ["a", "b"]


@settings(max_examples=10, deadline=None)
@given(ROW, FILES)
def test_on_a_real_table(tmp_path_factory, wanted: Row, files: list[list[Row]]) -> None:
    delta = ArrowTables(str(tmp_path_factory.mktemp("lake")))
    delta.create(REGISTRY)
    for rows in [*files, [wanted]]:
        claims = [
            {"event_id": str(row), "event_time": moment(START + row[0]), "bucket": name_of(row), "shard": row[1]}
            for row in rows
        ]
        delta.append("registry", claims)
    paths = matching(delta.files("registry"), extent_of([wanted]), shards={wanted[1]})
    found = {row["event_id"] for row in delta.read("registry").to_pylist()}
    assert found == {str(row) for rows in [*files, [wanted]] for row in rows}
    parts = [pq.read_table(f"{delta.path('registry')}/{path}", partitioning=None) for path in paths]
    assert str(wanted) in {value for part in parts for value in part["event_id"].to_pylist()}
    assert all(f"bucket={name_of(wanted)}/shard={wanted[1]}/" in path for path in paths)


def test_unpartitioned_table(tmp_path: Path) -> None:
    delta = ArrowTables(str(tmp_path))
    delta.create(PENDING)
    for hour in (0, 9):
        delta.append("pending", [{"event_id": f"{hour}", "event_time": DAY + timedelta(hours=hour), "bucket": "x"}])
    found = matching(delta.files("pending"), extent_of([(0, 0, 1)]))
    assert len(found) == 1
