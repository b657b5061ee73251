"""The figures of a date: for each table one pass of aggregates, for each stream one over its ids, one over all ids.

Great Expectations would make a job or more of each expectation; here an expectation costs one more term of a pass that
is made anyway.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from clickjoin.verification import id_places
from clickjoin.verification.findings import FAULTS, has
from clickjoin.verification.snapshot import Reading

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
_ACCURACY = 1000
REQUIRED = {
    "joined": ("event_id", "primary_id", "primary_time", "token"),
    "primary": ("event_id", "payload"),
    "foreign": ("event_id", "primary_id", "payload"),
    "registry": ("event_id", "token", "outcome"),
}
# Where an accepted event is: in the order in which it counts once only.
PLACES = {
    "joined": "joined > 0",
    "filtered": "filtered > 0",
    "unjoinable": "unjoinable > 0 OR moving > 0",
    "forgotten": "forgotten > 0",
    "pending": "waiting > 0",
    "expired": "expired > 0",
    "in_flight": "open_claims > 0",
}


def table(rows: DataFrame, name: str, more: Sequence[str] = (), *, alone: bool = False) -> dict[str, Any]:
    """Figures of one table from one pass: rows, nulls by column (`null:x`), first and last event (microseconds).

    Of `joined` also the `tokens` of its batches and the delay in seconds from event to output (`delay_p50` and so on),
    of `registry` rows with an outcome that there is not, of a stream the `batches` that landed it (replica, number).
    `more`: further columns whose nulls are counted; `alone`: of one stream, whose events name no primary one.
    """
    wanted = {"rows": F.count(F.lit(1)), "low": F.expr("min(unix_micros(event_time))")}
    wanted["high"] = F.expr("max(unix_micros(event_time))")
    required = [column for column in REQUIRED[name] if not (alone and column.startswith("primary_"))]
    for column in dict.fromkeys((*required, *more)):
        wanted[f"null:{column}"] = F.count_if(F.col(f"`{column}`").isNull())
    if name == "joined":
        delay = F.expr("(unix_micros(published_at) - unix_micros(event_time)) / 1e6")
        wanted["tokens"] = F.collect_set("token")
        wanted["delay"] = F.percentile_approx(delay, list(_QUANTILES.values()), _ACCURACY)
    if name == "registry":
        wanted["strange"] = F.expr("count_if(outcome NOT IN ('joined', 'filtered', 'unjoinable', 'forgotten'))")
    if name in ("primary", "foreign"):
        wanted["batches"] = F.expr("collect_set(struct(replica, batch))")
    found: dict[str, Any] = rows.agg(*[column.alias(key) for key, column in wanted.items()]).collect()[0].asDict()
    if "batches" in found:
        found["batches"] = {(row["replica"], row["batch"]) for row in found["batches"]}
    delays = found.pop("delay", None) or [None] * len(_QUANTILES)
    return found | {f"delay_{key}": value for key, value in zip(_QUANTILES, delays, strict=True) if name == "joined"}


def stream(rows: DataFrame, replicas: Sequence[str]) -> dict[str, int]:
    """Figures of a stream's ids: distinct `ids`; `repeats`, which came again; `twice`, landed more than once.

    A replica lands every record once, so records are counted by replica and place, and each replica's repeats are its
    own. By hashes of 64 bits: two of 10 million differ with all but certainty.
    """
    number = " ".join(f"WHEN '{name}' THEN {at}" for at, name in enumerate(replicas))
    places = rows.groupBy(F.expr("xxhash64(replica, source_partition, `offset`)").alias("place")).agg(
        F.count(F.lit(1)).alias("n"),
        F.expr("first(xxhash64(event_id, event_time))").alias("id"),
        F.expr(f"first(CASE replica {number} END)" if number else "first(0)").alias("by"),
    )
    again = " + ".join(f"greatest(count_if(by = {at}) - 1, 0)" for at in range(len(replicas))) or "0"
    each = places.groupBy("id").agg(F.expr(again).alias("again"), F.expr("sum(n - 1)").alias("twice"))
    whole = each.agg(
        F.count(F.lit(1)).alias("ids"),
        F.expr("coalesce(sum(again), 0)").alias("repeats"),
        F.expr("coalesce(sum(twice), 0)").alias("twice"),
    )
    return {name: int(value) for name, value in whole.collect()[0].asDict().items()}


def accounts(reading: Reading) -> dict[str, int]:
    """One pass over every id: `accepted`, of these how many in each place, `nowhere`, `twice`, and faults by kind."""
    counts = {"accepted": "accepted > 0"}
    taken: list[str] = []
    for place, sql in PLACES.items():
        counts[place] = " AND ".join(["accepted > 0", *(f"NOT ({other})" for other in taken), f"({sql})"])
        taken.append(sql)
    gone = f"({has('lost')} OR {has('claim_without_output')})"
    counts["nowhere"] = f"accepted > 0 AND {gone}"
    counts["twice"] = f"accepted > 0 AND {has('two_places')}"
    counts |= {f"fault:{kind}": has(kind) for kind in FAULTS}
    row = (
        id_places.tally(reading)
        .agg(*[F.expr(f"count_if({sql})").alias(name) for name, sql in counts.items()])
        .collect()[0]
    )
    return {name: int(value) for name, value in row.asDict().items()}


def agreed(first: Mapping[str, int], second: Mapping[str, int]) -> dict[str, int]:
    """Two looks as one: all figures of the second, and of what is wrong only what both have found."""
    wrong = {name for name in first if name.startswith("fault:") or name in ("nowhere", "twice")}
    return {name: min(value, first[name]) if name in wrong else value for name, value in second.items()}
