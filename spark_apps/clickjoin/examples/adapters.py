"""Two adapters to start from: typed columns with a computed one, and a filter with an enrichment."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.kernel.adapter import ArrowAdapter


def fields(records: pa.ChunkedArray, name: str, kind: type) -> list[Any]:
    """A field of each record (JSON text), also where it is written as text, as in CSV; None where it does not fit."""
    return [_as(kind, json.loads(record).get(name)) for record in records.to_pylist()]


def _as(kind: type, value: object) -> Any:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        made = kind(value)
    except ValueError:
        return None
    return made if kind is float or str(made) == str(value) else None


class TypedClick(ArrowAdapter):
    """Fields of both ZOZO records as typed columns, and how long after the impression the click came (seconds)."""

    columns: ClassVar[Mapping[str, str]] = {
        "item_id": "BIGINT",
        "position": "INT",
        "campaign": "STRING",
        "propensity": "DOUBLE",
        "delay_seconds": "DOUBLE",
    }

    def merge_table(self, joined: pa.Table) -> pa.Table:
        """Columns out: event_id, event_time, item_id, position, campaign, propensity, delay_seconds."""
        click, shown = joined["payload"], joined["primary"]
        clicked, seen = (joined[name].cast(pa.int64()) for name in ("event_time", "primary_time"))
        return pa.table(
            {
                "event_id": joined["event_id"],
                "event_time": joined["event_time"],
                "item_id": pa.array(fields(click, "item_id", int), pa.int64()),
                "position": pa.array(fields(click, "position", int), pa.int32()),
                "campaign": pa.array(fields(shown, "campaign", str), pa.string()),
                "propensity": pa.array(fields(shown, "propensity_score", float), pa.float64()),
                "delay_seconds": pc.divide(pc.subtract(clicked, seen).cast(pa.float64()), 1e6),
            }
        )


class TopPositions(ArrowAdapter):
    """Clicks on the first two positions only, each with the price of its position; the rest go to `filtered`."""

    columns: ClassVar[Mapping[str, str]] = {"foreign_record": "STRING", "primary_record": "STRING", "price": "DOUBLE"}

    def merge_table(self, joined: pa.Table) -> pa.Table:
        """Columns out: event_id, event_time, foreign_record, primary_record, price."""
        positions = pa.array(fields(joined["payload"], "position", int), pa.int64())
        rows = joined.select(["event_id", "event_time", "payload", "primary"])
        rows = rows.rename_columns(["event_id", "event_time", "foreign_record", "primary_record"])
        price = pc.if_else(pc.equal(positions, 1), 0.25, 0.1)
        return rows.append_column("price", price).filter(pc.less_equal(positions, 2))
