"""Per-key processing of the model's output, by the product's own code; and what must hold of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from clickjoin.config.sections import Process as Section
from clickjoin.lake.delta_reader import DeltaReader
from clickjoin.model.errors import ClickjoinError
from clickjoin.processing.events import EventReader
from clickjoin.processing.processing import Processing
from tests.simulator import rust
from tests.simulator.actors import may_pass
from tests.simulator.chain import ModelLog
from tests.simulator.model import Unanswered
from tests.simulator.rust_types import DeltaError
from tests.simulator.world import Violation

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.kernel.table_rows import RowFile
    from tests.simulator.actors import Cast
    from tests.simulator.model import Lake
    from tests.simulator.world import Process

WINDOW = 10_000_000  # microseconds
_ROLES = ("join", "retry", "redrive", "verify", "fill", "harm")
_TYPES = {"event_time": pa.timestamp("us", tz="UTC")}


def install() -> None:
    """Have the product read the model's output."""
    EventReader._table = _rows  # type: ignore[method-assign]
    marks: Any = import_module("clickjoin.chain.source")
    marks.ReadableTables = DeltaReader
    tables: Any = import_module("clickjoin.processing.tables")
    tables.require_lake = lambda *_: None
    processing: Any = import_module("clickjoin.processing.processing")
    processing._FEWEST = 8  # all keys are written again after so few rows


def _rows(self: EventReader, file: RowFile, names: Any, *, changes: bool = False) -> pa.Table:
    """Some columns of a file's rows."""
    lake = rust.lake()
    lake.pause("open", "joined")
    rows = lake.files[f"{self._root}/{file.path}"].rows
    schema = pa.schema([(name, _TYPES.get(name, pa.string())) for name in names])
    return pa.Table.from_pylist([{name: row[name] for name in names} for row in rows], schema=schema)


def section(late: str, most: int = 1, catch_up: str = "1m") -> Section:
    """What is counted: windows of `most` events at least."""
    args = {"window": f"{WINDOW // 10**6}s", "min_count": most}
    return Section.model_validate(
        {"key": "bucket", "processor": "clickjoin.processors:TumblingCounts", "args": args, "catch_up": catch_up}
        | {"late": late, "lateness": "30s"}
    )


def worker(cast: Cast) -> Callable[[Process], None]:
    """A process that works until nothing is to come; with a new file after each error, and each time it is started."""

    def main(process: Process) -> None:
        world, made, failures = cast.world, None, 0
        while True:
            try:
                made = made or _made(cast)
                over = not world.live and not cast.runs(*_ROLES)
                if made.once():
                    failures = 0
                elif over:
                    return
                else:
                    world.sleep(world.random.uniform(0.5, 8))
            except (ClickjoinError, Unanswered, DeltaError) as error:
                made, failures = None, failures + 1
                world.note(f"{type(error).__name__}: {error}")
                if not may_pass(error) or failures > 8:
                    raise
                world.sleep(2.0**failures)

    return main


def _made(cast: Cast) -> Processing:
    """Each process may have a file of its own: its owner changes it now and then. Not where time passes by itself:
    there all counts are compared, and no row is late that was on time."""
    late, by_itself = ("keep", "correct")[cast.world.seed % 2], cast.goes_on > 0
    return _of(cast, section(late, catch_up="1h") if by_itself else section(late, cast.world.random.choice([1, 2])))


def _of(cast: Cast, process: Section) -> Processing:
    pipeline = cast.pipeline.model_copy(update={"process": process})
    made = Processing(pipeline, clock=cast.world.clock)
    source: Any = made.planner._source
    source._log = ModelLog(f"{pipeline.root}/joined")
    return made


def require_as_if_undisturbed(cast: Cast) -> None:
    """What stands is what one process makes of the same output that nobody disturbs, but for what came late.

    Errors: Violation.
    """
    lake, root = cast.world.lake, f"{cast.pipeline.root}/process"
    marks = [row["watermark"] for row in _in_order(lake, f"{root}/processed") if row["watermark"]]
    if marks != sorted(marks):
        raise Violation(f"watermark went back: that of the processing, {marks}")
    late = {row["event_id"] for row in lake.tables[f"{root}/late"].newest.rows() if row["reason"] != "corrected"}
    touched = {
        _place(row) for row in lake.tables[f"{cast.pipeline.root}/joined"].newest.rows() if row["event_id"] in late
    }
    disturbed = _counts(lake, root, touched)
    alone = lake.fork()
    alone.tables = {path: table for path, table in alone.tables.items() if not path.startswith(f"{root}/")}
    rust.install(alone)
    _of(cast, section("keep", catch_up="1h")).drain(lambda row: None)
    rust.install(lake)
    if disturbed != (undisturbed := _counts(alone, root, touched)):
        differ = dict(disturbed.items() ^ undisturbed.items())
        raise Violation(f"signals differ from those of an undisturbed run: {differ}")


def _in_order(lake: Lake, path: str) -> list[dict[str, Any]]:
    return sorted(lake.tables[path].newest.rows(), key=lambda row: int(row["batch"]))


def _counts(lake: Lake, root: str, without: set[tuple[str, int]]) -> dict[tuple[str, int], int]:
    standing = _standing(lake.tables[f"{root}/signals"].newest.rows())
    found = {(row["key"], _micros(row["window_start"])): row["count"] for row in standing}
    return {place: count for place, count in found.items() if place not in without}


def _place(row: dict[str, Any]) -> tuple[str, int]:
    return row["bucket"], _window(row)


def require_right(lake: Lake, pipeline: Pipeline) -> int:
    """What must hold in the end; returns how many signals there are. Errors: Violation."""
    root = f"{pipeline.root}/process"
    states, signals, late = (lake.tables[f"{root}/{name}"].newest.rows() for name in ("state", "signals", "late"))
    joined = lake.tables[f"{pipeline.root}/joined"].newest.rows()
    batches = sorted((row for row in states if row["what"] == "batch"), key=lambda row: row["batch"])
    twice = [name for name, count in Counter(row["id"] for row in signals).items() if count > 1]
    if twice:
        raise Violation(f"signals reported twice: {twice}")
    if batches:
        _sums(batches[-1], len(joined), len(late), len(signals))
    aside = {row["event_id"] for row in late if row["reason"] != "corrected"}
    own = Counter(_place(row) for row in joined if row["event_id"] not in aside)
    for row in _standing(signals):
        if row["count"] != (there := own[row["key"], _micros(row["window_start"])]):
            raise Violation(f"signals are wrong: {row['id']} says {row['count']}, and there were {there}")
    _published(batches, {row["id"] for row in signals})
    return len(signals)


def _standing(signals: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those that were not taken back; of a key and window one at most."""
    said = {(row["key"], row["window_start"], row["revision"]): row for row in signals if not row["retracted"]}
    for row in signals:
        if row["retracted"] and said.pop((row["key"], row["window_start"], row["revision"]))["count"] != row["count"]:
            raise Violation(f"{row['id']} takes back another count than was reported")
    if len({name[:2] for name in said}) < len(said):
        raise Violation(f"several signals of one window stand: {sorted(said, key=str)}")
    return list(said.values())


def _sums(last: dict[str, Any], joined: int, late: int, signals: int) -> None:
    if last["all_events"] + last["all_late"] != joined or last["all_late"] != late:
        counted = f"counted {last['all_events']} and {last['all_late']}"
        raise Violation(f"{joined} rows of the output, {late} late: {counted}")
    if last["all_signals"] != signals:
        raise Violation(f"signals differ: {signals} are there, and {last['all_signals']} were committed")


def _published(batches: list[dict[str, Any]], there: set[str]) -> None:
    """What a batch has committed is published, also that of eras that are there still."""
    for row in batches:
        sent = pa.ipc.open_stream(row["outbox"]).read_all()["id"].to_pylist() if row["outbox"] else []
        if missing := set(sent) - there:
            raise Violation(f"signals of batch {row['batch']} were committed and not published: {sorted(missing)}")


def _window(row: dict[str, Any]) -> int:
    return _micros(row["event_time"]) // WINDOW * WINDOW


def _micros(at: Any) -> int:
    return round(at.timestamp() * 1_000_000)
