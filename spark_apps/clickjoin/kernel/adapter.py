"""Adapters: what a pipeline's owner writes to filter, reshape and enrich (Photon, section 3.3.1).

An adapter works on Arrow tables of some of a batch's events; one of whole DataFrames is known, and refused by name. It
must keep `event_id` and `event_time` as they are, and give one row at most for each event: what it leaves out is kept
in table `filtered`. It may not depend on the clock or on chance, since a batch that crashed is run again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from clickjoin.model.places import RECORDS

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

MISFITS = "_misfits"  # ARRAY<STRING>: an output row's columns whose value did not fit its type


class Adapter:
    """Base of all adapters. `columns`: the columns that `merge` adds to the output, name to Spark SQL type."""

    columns: ClassVar[Mapping[str, str]] = {}

    def prepare(self, foreign: DataFrame) -> DataFrame:
        """Before look-up: leave rows out, or add columns for `merge` to use.

        Columns in: event_id, event_time, primary_id, primary_time, payload (the record as JSON text). The first four
        must come out again.
        """
        return foreign

    def merge(self, joined: DataFrame) -> DataFrame:
        """After look-up: make the output's own columns.

        Columns in: those that `prepare` gave, and `primary` (the primary record as JSON text). Columns out: event_id,
        event_time and all of `columns`.
        """
        raise NotImplementedError


class ArrowAdapter(Adapter):
    """Base of adapters that need no Spark: `merge_table` is called by the very task that has looked the records up.

    Several times as fast as `merge` of a whole DataFrame. It is shipped to the executors with what it imports of its
    own package; all else besides the standard library, NumPy and PyArrow has to be installed there.
    `reports_misfits`: it also gives column MISFITS, which is counted, and is not in the output.
    """

    reports_misfits: ClassVar[bool] = False

    def merge_table(self, joined: pa.Table) -> pa.Table:
        """After look-up: make the output's own columns of some of a batch's events.

        Columns in: event_id, event_time, primary_id, primary_time, payload and primary (both records as JSON text).
        Columns out: event_id, event_time and all of `columns`; events that are left out go to table `filtered`.
        """
        raise NotImplementedError


class BothRecords(ArrowAdapter):
    """Both records side by side as JSON text, nothing left out."""

    columns: ClassVar[Mapping[str, str]] = dict.fromkeys(RECORDS.values(), "STRING")

    def merge_table(self, joined: pa.Table) -> pa.Table:
        """Columns out: event_id, event_time, foreign_record, primary_record."""
        names = ["event_id", "event_time", "payload", "primary"]
        return joined.select(names).rename_columns([*names[:2], *RECORDS.values()])


def is_users(adapter: Adapter) -> bool:
    """Whether an adapter is a user's own, which may keep something between calls; ours keep nothing."""
    return type(adapter).__module__.partition(".")[0] != __name__.partition(".")[0]


def needs_spark(adapter: Adapter) -> bool:
    """Whether an adapter's answer can only be had of whole DataFrames: its own methods of those are the last word."""
    kind = type(adapter)
    if not isinstance(adapter, ArrowAdapter) or kind.prepare is not Adapter.prepare:
        return True
    merge, merge_table = (
        next(at for at, base in enumerate(kind.__mro__) if name in vars(base)) for name in ("merge", "merge_table")
    )
    return merge < merge_table
