"""This project's side: events as rows in the output of a pipeline of one stream, and its processing, which is timed."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.windows.events import Load, millis
from clickjoin.kernel.event_key import dates_of
from tests.unit.processing_bench import Output

_CATCH_UP = "0s"  # events come in order of time: windows close while a backlog is worked through


class Lake(Output):
    """A lake whose output has a text column for each of `columns`; it is filled with the slices of a load."""

    def __init__(self, folder: Path, columns: list[str], process: dict[str, Any], batch: int) -> None:
        folder.mkdir(parents=True)
        output = {
            "columns": {name: {"from": f"stream.{name}", "type": "STRING"} for name in columns}, "records": "record",
        }  # fmt: skip
        self._columns = columns
        own = {"key": columns if len(columns) > 1 else columns[0], "catch_up": _CATCH_UP}
        super().__init__(folder, own | process, output=output, batch={"max_events": batch})

    def fill(self, load: Load) -> None:
        """A batch of the join for each slice; the last one says that all has come."""
        paths = sorted(load.slices.glob("*.parquet"))
        for path in paths:
            rows = pq.read_table(path)
            self.publish(rows, 1000 * (load.until if path == paths[-1] else rows["at"][-1].as_py()))

    def rows_of(self, events: Any) -> pa.Table:
        """A slice as rows of the output."""
        schema = pa.schema(self.table().schema().to_arrow())
        given = {
            "event_id": events["id"], "event_time": events["event_time"],
            "event_date": dates_of(events),
            "bucket": pa.compute.strftime(events["event_time"], "%Y-%m-%dT%H00Z"),
            "record": pa.compute.binary_join_element_wise('{"id":"', events["id"], '"}', ""),
        } | {name: events[name] for name in self._columns}  # fmt: skip
        rows = events.num_rows
        values = {field.name: given.get(field.name, pa.nulls(rows, field.type)) for field in schema}
        return pa.table(values).cast(schema)

    def drained(self) -> float:
        """Seconds that it takes to process all there is."""
        processing = self.processing()
        start = time.perf_counter()
        processing.drain(lambda _: None)
        return time.perf_counter() - start

    def reported(self) -> pa.Table:
        """Key, begin of the window (milliseconds) and count of each signal."""
        rows = self.table("process/signals").to_pyarrow_table(columns=["key", "window_start", "count"])
        return pa.table({"item": rows["key"], "window_start": millis(rows["window_start"]), "num": rows["count"]})
