"""Values that did not pass: read only where a check is red, in a query of its own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pyspark.sql import Window
from pyspark.sql import functions as F

from clickjoin.model.ids import moment
from clickjoin.quality.checks import ACCOUNTED
from clickjoin.verification import id_places

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from clickjoin.verification.snapshot import Reading

_MAX_SAMPLES = 5
# Which faults of an id a check is about.
KINDS = {
    "joined.unique_ids": ("doubled",),
    "joined.known_ids": ("unknown_output",),
    f"foreign.{ACCOUNTED}": ("lost", "claim_without_output", "two_places"),
    "registry.unique_ids": ("doubled_claim",),
    "registry.claims_have_outputs": ("claim_without_output",),
    "registry.outputs_have_claims": ("output_without_claim",),
    "registry.claims_agree": ("wrong_token",),
}


def of_faults(reading: Reading, names: Iterable[str]) -> dict[str, tuple[Any, ...]]:
    """Some ids of each red check that is about ids, by its name; one query for all of them."""
    wanted = {name: KINDS[name] for name in names if name in KINDS}
    if not wanted:
        return {}
    kinds = sorted({kind for found in wanted.values() for kind in found})
    order = Window.partitionBy("kind").orderBy("event_time", "event_id")
    few = (
        id_places.faulty(reading, kinds).withColumn("_nth", F.row_number().over(order)).where(f"_nth <= {_MAX_SAMPLES}")
    )
    held: defaultdict[str, list[dict[str, str]]] = defaultdict(list)
    for row in (
        few.select("kind", "event_id", F.unix_micros("event_time").alias("micros")).orderBy("kind", "_nth").collect()
    ):
        when = moment(row["micros"]).isoformat()
        held[row["kind"]].append({"event_id": row["event_id"], "event_time": when, "kind": row["kind"]})
    return {name: tuple([one for kind in found for one in held[kind]][:_MAX_SAMPLES]) for name, found in wanted.items()}


def of_rows(rows: DataFrame, check: str) -> tuple[Any, ...]:
    """Some rows of one table that break a check of its rows."""
    if check == "landed_once":
        places = rows.groupBy("replica", "path", "offset", "source_partition").count().where("count > 1")
        found = places.orderBy("path", "offset").limit(_MAX_SAMPLES).collect()
        return tuple({"replica": row["replica"], "path": row["path"], "offset": row["offset"]} for row in found)
    if check == "known_outcomes":
        strange = rows.where("outcome NOT IN ('joined', 'filtered', 'unjoinable')").select("outcome").distinct()
        return tuple(row["outcome"] for row in strange.orderBy("outcome").limit(_MAX_SAMPLES).collect())
    kind, _, column = check.partition(".")
    if kind != "not_null":
        return ()
    some = rows.where(F.col(f"`{column}`").isNull()).select("event_id", F.unix_micros("event_time").alias("micros"))
    found = some.orderBy("micros", "event_id").limit(_MAX_SAMPLES).collect()
    return tuple({"event_id": row["event_id"], "event_time": moment(row["micros"]).isoformat()} for row in found)
