"""Everything that was measured of a date, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from clickjoin.quality.fields import Fields
from clickjoin.quality.processed import Processed


@dataclass(frozen=True)
class Figures:
    """What was measured of a date.

    `tables`, `streams`, `accounts`: see profile; `fields` by stream; `columns` of table `joined` with their types;
    `quarantine`: quarantined records, and all records, of the batches that landed the date, None where that is unknown;
    `misfits`: values that did not fit by typed column, and rows, of the batches that published the date, None likewise;
    `end`: the last moment that events of the date may have (seconds since 1970), or now; `collected`: streams of which
    rows of the date may have been collected, so that their figures say nothing; `typed`: columns of output.columns;
    `alone`: the pipeline is of one stream; `processed`: of per-key processing, None where there is none.
    """

    day: date
    tables: Mapping[str, Mapping[str, Any]]
    streams: Mapping[str, Mapping[str, int]]
    accounts: Mapping[str, int]
    end: float
    fields: Mapping[str, Fields] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)
    quarantine: tuple[int, int] | None = None
    misfits: tuple[Mapping[str, int], int] | None = None
    collected: frozenset[str] = frozenset()
    typed: tuple[str, ...] = ()
    alone: bool = False
    processed: Processed | None = None
