"""What the batches of a date counted: a row a batch, from table `metrics`."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from clickjoin.lake.delta_reader import DeltaReader
    from clickjoin.lake.spark_reader import SparkReader

_COUNTED = ("quarantined", "primary_in", "events_in", "joined", "misfits")


def frame(
    lake: SparkReader, landed: Iterable[tuple[str, int]], tokens: Iterable[str], typed: Sequence[str]
) -> DataFrame:
    """Rows of batches: replica, sequence, batch; records, quarantined (of those that landed some of the date);
    published, and misfits_COLUMN for each typed column (of those that published some).

    `landed`: replica and number; `tokens`: of the output's rows; `typed`: columns of output.columns.
    """
    columns = ("records", "quarantined", "published", *(f"misfits_{name}" for name in typed))
    ddl = "replica STRING, sequence STRING, batch BIGINT, " + ", ".join(f"`{name}` BIGINT" for name in columns)
    rows = [tuple(row.get(name) for name in ("replica", "sequence", "batch", *columns))
            for row in counted(lake.delta, landed, tokens, typed)]  # fmt: skip
    return lake.spark.createDataFrame(rows, ddl)


def counted(
    delta: DeltaReader, landed: Iterable[tuple[str, int]], tokens: Iterable[str], typed: Sequence[str]
) -> list[dict[str, Any]]:
    """The same as rows; none of a batch whose metrics are gone."""
    wanted: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
    landing = set(landed)
    for replica, number in landing:
        wanted[replica, "join"].add(number)
    published = _numbers(tokens)
    for key in published:
        wanted[key[0], key[1]].add(key[2])
    found: list[dict[str, Any]] = []
    for (replica, sequence), numbers in sorted(wanted.items()):
        where = [("replica", "=", replica), ("sequence", "=", sequence), ("batch", "in", sorted(numbers))]
        for row in delta.read("metrics", where, ["batch", *_COUNTED]).to_pylist():
            one: dict[str, Any] = {"replica": replica, "sequence": sequence, "batch": row["batch"]}
            if sequence == "join" and (replica, row["batch"]) in landing:
                one |= _landed(row)
            if (replica, sequence, row["batch"]) in published:
                one |= _published(row, typed)
            found.append(one)
    return found


def _landed(row: dict[str, Any]) -> dict[str, int]:
    good = (row["primary_in"] or 0) + (row["events_in"] or 0)
    return {"records": good + (row["quarantined"] or 0), "quarantined": row["quarantined"] or 0}


def _published(row: dict[str, Any], typed: Sequence[str]) -> dict[str, int]:
    misfits = json.loads(row["misfits"]) if row["misfits"] else {}
    return {"published": row["joined"] or 0} | {f"misfits_{name}": misfits.get(name, 0) for name in typed}


def _numbers(tokens: Iterable[str]) -> set[tuple[str, str, int]]:
    """Replica, sequence and number of batches; what is no token, somebody else has written."""
    parts = (token.split("/") for token in tokens)
    return {(part[1], part[2], int(part[3])) for part in parts if len(part) == 4 and part[3].isdecimal()}
