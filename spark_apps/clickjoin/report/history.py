"""What a pipeline's batches did over months: metrics, read once a file and kept as bins of time. No Spark.

A batch writes a file of one row; collections rewrite many of them into large ones. Small files are kept as rows, large
ones as bins of five minutes, and a large file is read no further back than anybody has asked for. In a bin counts are
added up, and latencies weighted by the events that they are of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.lake.read_files import PATH, read_files
from clickjoin.model.batch_plan import COUNTS, STEPS
from clickjoin.model.ids import EPOCH, MICROS
from clickjoin.schemas import METRICS
from clickjoin.schemas.arrow import arrow_schema

if TYPE_CHECKING:
    from clickjoin.lake.delta_reader import DeltaReader

BASE_SECONDS = 300
FRESH = timedelta(hours=2)
_LARGE_ROWS = 2_000
MOST_FILES = 5_000
_SHOWN = 100
_TIME = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True)
class _Large:
    """A large file: bins of its batches from `since` on, rows of its newest ones, and whether it holds older ones."""

    since: datetime
    bins: pa.Table
    newest: pa.Table
    older: bool


class History:
    """Follows table `metrics` of one pipeline; one instance a thread. `unread`: small files too many to be read."""

    def __init__(self, delta: DeltaReader) -> None:
        self._small_tables = delta
        self._version = -1
        self._since = datetime.max.replace(tzinfo=UTC)
        self._small = _empty()
        self._known: set[str] = set()
        self._large: dict[str, _Large] = {}
        self.unread = 0

    def refresh(self, since: datetime, now: datetime) -> None:
        """Take up what has been written, back to `since` at least; to the beginning where nothing is as new."""
        version = self._small_tables.version("metrics")
        if version == self._version and since >= self._since:
            return
        files = _listed(self._small_tables)
        self._follow_small([file for file in files if (file["num_records"] or 0) <= _LARGE_ROWS])
        self._follow_large([file for file in files if (file["num_records"] or 0) > _LARGE_ROWS], since, now)
        self._version, self._since = version, since
        if files and since > EPOCH and not self.newest().num_rows:
            self._version = -1
            self.refresh(EPOCH, now)

    def newest(self, most: int | None = None) -> pa.Table:
        """Rows of the newest batches (RAW, KEYS), newest first: all that are kept, or the last so many."""
        rows = pa.concat_tables([self._small.select([*RAW, *KEYS]), *(one.newest for one in self._large.values())])
        order = rows.sort_by([("settled_at", "descending"), ("batch", "descending")])
        return order if most is None else order.slice(0, most)

    def begins_before(self, moment: datetime) -> bool:
        """Whether there are batches from before a moment, or may be some, where they have not been read."""
        if any(one.older for one in self._large.values()):
            return True
        times = [self._small["settled_at"], *(pc.cast(one.bins["at"], _TIME) for one in self._large.values())]
        return any(len(part) and pc.min(part).as_py() < moment for part in times)

    def bins(self, seconds: int, since: datetime) -> pa.Table:
        """Bins (see `gather`) by replica and sequence from a moment on; narrower than BASE_SECONDS for FRESH only."""
        if seconds < BASE_SECONDS:
            parts = [prepare(self.newest())]
        else:
            parts = [prepare(self._small.select([*RAW, *KEYS])), *(one.bins for one in self._large.values())]
        whole = pa.concat_tables(parts)
        first = int(since.timestamp()) // seconds * seconds * 1_000_000
        return gather(whole.filter(pc.greater_equal(whole["at"], first)), seconds)

    def _follow_small(self, files: Sequence[dict[str, Any]]) -> None:
        active = {str(file["path"]): file for file in files}
        if self._known - active.keys():
            self._small = self._small.filter(pc.is_in(self._small[PATH], pa.array(list(active), pa.string())))
        new = sorted(active.keys() - self._known, key=lambda path: -int(str(active[path]["max.batch"] or 0)))
        self._known = (self._known & active.keys()) | set(new)
        self.unread = max(len(new) - MOST_FILES, 0) if self._version < 0 else self.unread
        for part in _by_keys([active[path] for path in new[:MOST_FILES]]):
            rows = read_files(self._small_tables, "metrics", [str(file["path"]) for file in part], RAW)
            # In one piece: a chunk a file makes everything that follows slow.
            self._small = pa.concat_tables([self._small, _keyed(rows, part[0])]).combine_chunks()

    def _follow_large(self, files: Sequence[dict[str, Any]], since: datetime, now: datetime) -> None:
        held = self._large
        self._large = {}
        for file in files:
            path = str(file["path"])
            known = held.get(path)
            self._large[path] = known if known and known.since <= since else self._read(file, since, now)

    def _read(self, file: dict[str, Any], since: datetime, now: datetime) -> _Large:
        found = read_files(self._small_tables, "metrics", [str(file["path"])], RAW, ("settled_at", since))
        rows = _keyed(found.combine_chunks(), file).select([*RAW, *KEYS])
        bins = gather(prepare(rows), BASE_SECONDS)
        order = rows.sort_by([("settled_at", "descending")])
        fresh = pc.sum(pc.greater_equal(order["settled_at"], pa.scalar(now - FRESH))).as_py() or 0
        return _Large(since, bins, order.slice(0, max(fresh, _SHOWN)), rows.num_rows < file["num_records"])


def _listed(delta: DeltaReader) -> list[dict[str, Any]]:
    actions = delta.files("metrics")
    wanted = ["path", "num_records", "max.batch", *(f"partition.{key}" for key in KEYS)]
    return actions.select(wanted).to_pylist() if actions.num_rows else []


def _empty() -> pa.Table:
    whole = arrow_schema(METRICS)
    names = [*(whole.field(name) for name in RAW), pa.field(PATH, pa.string())]
    return pa.schema([*names, *(whole.field(name) for name in KEYS)]).empty_table()


def _by_keys(files: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Files by replica and sequence: in a file itself these are not written."""
    groups: dict[tuple[object, ...], list[dict[str, Any]]] = {}
    for file in files:
        groups.setdefault(tuple(file[f"partition.{key}"] for key in KEYS), []).append(file)
    return list(groups.values())


def _keyed(rows: pa.Table, file: dict[str, Any]) -> pa.Table:
    for key in KEYS:
        rows = rows.append_column(key, pa.array([str(file[f"partition.{key}"])] * rows.num_rows, pa.string()))
    return rows


LATENCIES = ("p50", "p90", "p99")
BACKLOG = ("backlog_events", "backlog_bytes")
KEYS = ("replica", "sequence")
RAW = (
    "batch", "planned_at", "settled_at", *COUNTS, *(f"latency_{name}" for name in LATENCIES),
    *(f"seconds_{name}" for name in STEPS), *BACKLOG, "problems", "watermark",
)  # fmt: skip
_SUMS = ("batches", *COUNTS, "weight", *(f"weighted_{name}" for name in LATENCIES), *(f"seconds_{s}" for s in STEPS))
_MAXIMA = ("worst", *BACKLOG)


def prepare(rows: pa.Table) -> pa.Table:
    """Rows of `metrics` (RAW and KEYS) as what `gather` takes: `at` in microseconds, sums and what they weigh."""
    number = pc.cast(rows["settled_at"], pa.int64())
    joined = pc.cast(pc.fill_null(rows["joined"], 0), pa.float64())
    weight = pc.if_else(pc.is_valid(rows["latency_p50"]), joined, 0.0)
    columns = {"at": number, **{key: rows[key] for key in KEYS}, "batches": pa.array([1] * rows.num_rows, pa.int64())}
    columns |= {name: pc.fill_null(rows[name], 0) for name in (*COUNTS, *(f"seconds_{step}" for step in STEPS))}
    columns["weight"] = weight
    for name in LATENCIES:
        columns[f"weighted_{name}"] = pc.multiply(pc.fill_null(rows[f"latency_{name}"], 0.0), weight)
    columns["worst"] = rows["latency_p99"]
    columns |= {name: rows[name] for name in BACKLOG}
    return pa.table(columns)


def gather(prepared: pa.Table, seconds: int, keys: Sequence[str] = KEYS) -> pa.Table:
    """Bins of so many seconds, by `keys`: the same columns, so that bins can be gathered into wider ones."""
    width = pa.scalar(seconds * MICROS, pa.int64())
    bins = pc.multiply(pc.divide(prepared["at"], width), width)
    rows = prepared.set_column(prepared.schema.get_field_index("at"), "at", bins)
    sums, most = [(name, "sum") for name in _SUMS], [(name, "max") for name in _MAXIMA]
    found = rows.group_by(["at", *keys]).aggregate([*sums, *most])
    names = {f"{name}_{how}": name for name, how in (*sums, *most)}
    found = found.rename_columns([names.get(name, name) for name in found.schema.names])
    return found.select([name for name in prepared.schema.names if name in found.schema.names])


def mean(total: float | None, weight: float | None) -> float | None:
    """A weighted mean, to milliseconds; None where nothing weighs."""
    return round(total / weight, 3) if weight and total is not None else None
