"""The output of events that are joined outside of batches: below the registry's boundary, where nothing is claimed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.engines.adapter_errors import adapter_errors
from clickjoin.engines.arrow.dealing import as_files
from clickjoin.engines.arrow.joining import arrow_adapter, own_copy
from clickjoin.kernel.adapter import made_of
from clickjoin.kernel.arrays import rows_at
from clickjoin.kernel.event_key import dates_of
from clickjoin.kernel.lookup import as_found, look_up, none_needed
from clickjoin.kernel.resolving import adapted

if TYPE_CHECKING:
    from clickjoin.engines.arrow.lake import ArrowLake
    from clickjoin.engines.context import Context

_TIME = pa.timestamp("us", "UTC")


def output_of(lake: ArrowLake, ctx: Context, rows: pa.Table) -> pa.Table:
    """See Lake.output_of."""
    adapter, delta = own_copy(arrow_adapter(ctx)), lake.delta
    rows = rows.set_column(rows.schema.get_field_index("event_time"), "event_time", rows["event_time"].cast(_TIME))
    if ctx.pipeline.stream:
        at, found = none_needed(rows)
    else:
        primary = as_files(delta.path("primary"), delta.files("primary"))
        rows = rows.filter(pc.is_valid(rows["primary_time" if ctx.pipeline.around is None else "primary_id"]))
        at, found = look_up(rows, primary, ctx.pipeline.around, None)
    matched = as_found(rows_at(rows, at), found, ctx.pipeline.around)
    with adapter_errors(ctx, "nothing was changed"):
        out, made = adapted(adapter, made_of(adapter.columns, misfits=adapter.reports_misfits), matched, found)
    kept = rows_at(matched, out)
    own = {"token": ctx.plan.token, "replica": ctx.plan.replica, "published_at": datetime.now(UTC)}
    columns = {name: pa.repeat(pa.scalar(value), kept.num_rows) for name, value in own.items()}
    columns |= {"event_date": dates_of(kept)} | {name: made[name] for name in adapter.columns}
    names = [*delta.table("joined").names, *adapter.columns]
    return pa.table([columns[name] if name in columns else kept[name] for name in names], names=names)
