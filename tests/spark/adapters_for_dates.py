"""Adapters that a date's output is recomputed with."""

from __future__ import annotations

from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.kernel.adapter import ArrowAdapter


class Louder(ArrowAdapter):
    """One column of its own, and none of the default's."""

    columns: ClassVar = {"louder": "STRING"}

    def merge_table(self, joined: pa.Table) -> pa.Table:
        """The host, in capitals."""
        hosts = [":".join(name.split(":")[:2]).upper() for name in joined["event_id"].to_pylist()]
        return joined.select(["event_id", "event_time"]).append_column("louder", pa.array(hosts, pa.string()))


class Nobody(Louder):
    """Leaves everything out."""

    def merge_table(self, joined: pa.Table) -> pa.Table:
        """Nothing."""
        return super().merge_table(joined).slice(0, 0)


class Falls(Louder):
    """Fails on a row."""

    def merge_table(self, joined: pa.Table) -> pa.Table:
        """It never comes to an end."""
        raise ValueError("half-way")


class Shown(ArrowAdapter):
    """One column of its own, by Arrow, and none of the default's."""

    columns: ClassVar = {"shown": "STRING"}

    def merge_table(self, joined: pa.Table) -> pa.Table:
        """Both records and when the primary event was, in no order."""
        times = joined["primary_time"].cast(pa.int64()).cast(pa.string())
        shown = pc.binary_join_element_wise(
            joined["payload"].fill_null(""), joined["primary"].fill_null(""), times.fill_null(""), "|"
        )
        rows = joined.select(["event_id", "event_time"]).append_column("shown", shown)
        return rows.take(pa.array(range(rows.num_rows - 1, -1, -1), pa.int64()))


class Few(Shown):
    """Leaves out what has a word in its record."""

    def merge_table(self, joined: pa.Table) -> pa.Table:
        """Columns out: those of Shown."""
        return super().merge_table(joined.filter(pc.invert(pc.match_substring(joined["payload"], "left out"))))
