"""Every id of a reading, with all the places that it is in: one pass over the ids, one row for each."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from clickjoin.model.batch_plan import BY_FILL
from clickjoin.model.ids import EPOCH, EVENT_KEY, MICROS
from clickjoin.model.shards import expired_sql
from clickjoin.spark.rows import NTH, ranked
from clickjoin.verification.findings import FAULTS, NOTICES, faults_sql, has, kept_sql
from clickjoin.verification.snapshot import OUTPUTS, Reading, waiting

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Numbers, not names: a sum over numbers is hashed, one over texts is sorted.
_FOREIGN, _WAITING, _EXPIRED, _CLAIM = 0, 1, 2, 3
_PLACES = {"joined": 4, "filtered": 5, "unjoinable": 6}
_FORGOTTEN, _FILL_CLAIM = 7, 8


def tally(reading: Reading) -> DataFrame:
    """One row an id: how many rows there are of it in each place.

    Columns: landed, accepted (by settled batches), waiting, forgotten, expired, claims, joined, filtered, unjoinable.
    `outputs` (the last three) and `places` (how many of those three); `moving` (rows of unjoinable being redriven, in
    none of these). `open_claims`, `open_outputs` (of batches in flight); `filling` (claims of a fill); `token_low`,
    `token_high` (hashes). `as_said` (the claim's outcome names a table that it is in); `old` (from before the
    registry's claims); `kept` (`foreign` must hold it); `faults` (a bit each).
    """
    counts = {"landed": f"place = {_FOREIGN}", "accepted": f"place = {_FOREIGN} AND mark"}
    counts |= {"waiting": f"place = {_WAITING}"}
    counts |= {"forgotten": f"place = {_FORGOTTEN}"}
    counts |= {"expired": f"place = {_EXPIRED}", "claims": f"place IN ({_CLAIM}, {_FILL_CLAIM})"}
    counts |= {"filling": f"place = {_FILL_CLAIM}"}
    counts |= {"open_claims": f"place = {_CLAIM} AND mark", "open_outputs": "place IN (4, 5) AND mark"}
    counts |= {name: f"place = {code}" for name, code in _PLACES.items() if name != "unjoinable"}
    counts |= {"unjoinable": "place = 6 AND NOT mark", "moving": "place = 6 AND mark"}
    marked = reduce(lambda left, right: left.unionAll(right), _marked(reading))
    key, times = (["event_id", "era"], _TIMES) if reading.by_id else (list(EVENT_KEY), {})
    marked = _with_era(reading, marked) if reading.by_id else marked
    whole = marked.groupBy(*key).agg(
        *[F.expr(sql).alias(name) for name, sql in times.items()],
        *[F.expr(f"count_if({sql})").alias(name) for name, sql in counts.items()],
        F.min("hash").alias("token_low"),
        F.max("hash").alias("token_high"),
        F.max("said").alias("said"),
    )
    if reading.by_id:
        whole = whole.withColumn("event_time", F.expr(f"COALESCE({', '.join(times)})")).drop("era", *times)
    said = " OR ".join(f"(said = {code} AND {name} > 0)" for name, code in _PLACES.items())
    return (
        whole.withColumn("outputs", F.expr("joined + filtered + unjoinable"))
        .withColumn("places", F.expr("IF(joined > 0, 1, 0) + IF(filtered > 0, 1, 0) + IF(unjoinable > 0, 1, 0)"))
        .withColumn("as_said", F.expr(f"COALESCE({said}, FALSE)"))
        .withColumn("shard", F.expr(reading.timeline.sql()))
        .withColumn("old", F.expr(expired_sql(reading.claims_since)))
        .withColumn("kept", F.expr(kept_sql(reading.kept_since)))
        .withColumn("faults", F.expr(faults_sql()))
    )


# When an event was, where an id alone is its name: its claim's time, else its output's, else when it first landed.
_TIMES = {
    "claim_time": f"min(IF(place IN ({_CLAIM}, {_FILL_CLAIM}), event_time, NULL))",
    "output_time": f"min(IF(place IN ({', '.join(map(str, _PLACES.values()))}), event_time, NULL))",
    "first_time": "min(event_time)",
}


def _with_era(reading: Reading, marked: DataFrame) -> DataFrame:
    named = with_era(marked, marked.where(F.col("place").isin(*_PLACES.values())), reading.repeats)
    # A former event beside the range is another one than that in it: see snapshot.
    return named.where((F.col("era") == F.lit(EPOCH)) | F.expr(reading.span.sql()))


def with_era(rows: DataFrame, outputs: DataFrame, repeats: float) -> DataFrame:
    """Rows with what else tells events of one id apart, as column `era`: one and the same time, but of former events.

    A former event was rightly published, and its id again once its claim had gone: its next row of `outputs` is
    `repeats` seconds later, or more. Columns in: event_id and event_time.
    """
    apart = f">= {round(repeats * MICROS)}"
    ids = outputs.groupBy("event_id").agg(F.min("event_time").alias("first"), F.max("event_time").alias("last"))
    ids = ids.where(f"unix_micros(last) - unix_micros(first) {apart}").select("event_id")  # few, if any
    times = outputs.select(*EVENT_KEY).distinct().join(ids, "event_id", "left_semi")
    each = ranked(times, "event_time", key=("event_id",))
    after = each.select("event_id", F.col("event_time").alias("after"), (F.col(NTH) - 1).alias(NTH))
    former = each.join(after, ["event_id", NTH]).where(f"unix_micros(after) - unix_micros(event_time) {apart}")
    former = former.select(*EVENT_KEY)
    marked = rows.join(former.withColumn("former", F.lit(True)), list(EVENT_KEY), "left")
    return marked.withColumn("era", F.when(F.col("former"), F.col("event_time")).otherwise(F.lit(EPOCH))).drop("former")


def _marked(reading: Reading) -> list[DataFrame]:
    """Rows of all places: event_id, event_time, place, mark (see tally), hash (of the token), said (by the claim)."""
    rows, journals = reading.rows, reading.journals
    open_, moving = journals.open_sql(), journals.redriving_sql()
    said = " ".join(f"WHEN '{name}' THEN {code}" for name, code in _PLACES.items())
    token, claims = "xxhash64(token)", f"IF({BY_FILL}, {_FILL_CLAIM}, {_CLAIM})"
    return [
        _mark(rows["foreign"], _FOREIGN, journals.settled_sql()),
        _mark(waiting(rows["pending"]), _WAITING, "TRUE"),
        _mark(rows["expired"], _EXPIRED, "TRUE"),
        _mark(rows["forgotten"].where("stream = 'foreign'"), _FORGOTTEN, "TRUE"),
        _mark(rows["registry"], claims, open_, token, f"CASE outcome {said} END"),
        _mark(rows["joined"], _PLACES["joined"], open_, token),
        _mark(rows["filtered"], _PLACES["filtered"], open_, token),
        _mark(rows["unjoinable"], _PLACES["unjoinable"], moving, f"IF({moving}, NULL, {token})"),
    ]


def _mark(rows: DataFrame, place: int | str, mark: str, token: str = "NULL", said: str = "NULL") -> DataFrame:
    return rows.select(
        *EVENT_KEY,
        F.expr(str(place)).alias("place"),
        F.expr(f"COALESCE({mark}, FALSE)").alias("mark"),
        F.expr(f"CAST({token} AS BIGINT)").alias("hash"),
        F.expr(f"CAST({said} AS INT)").alias("said"),
    )


def count(reading: Reading) -> dict[str, Any]:
    """How many ids there are, how many of each kind, and (microseconds) between which times something is wrong."""
    fault = "IF(faults > 0, unix_micros(event_time), NULL)"
    kinds = {kind: has(kind) for kind in FAULTS} | NOTICES
    row = (
        tally(reading)
        .agg(
            F.count(F.lit(1)).alias("ids"),
            F.expr("count_if(accepted > 0)").alias("accepted"),
            F.expr(f"min({fault})").alias("low"),
            F.expr(f"max({fault})").alias("high"),
            *[F.expr(f"count_if({sql})").alias(name) for name, sql in kinds.items()],
        )
        .collect()[0]
    )
    found: dict[str, Any] = row.asDict()
    return found


def faulty(reading: Reading, kinds: list[str]) -> DataFrame:
    """Everything that is wrong: kind, event_id, event_time, shard; an event with two faults twice."""
    wrong = tally(reading).where("faults > 0").select(*EVENT_KEY, "shard", "faults").localCheckpoint(eager=False)
    parts = [wrong.where(has(kind)).select(F.lit(kind).alias("kind"), *EVENT_KEY, "shard") for kind in kinds]
    return reduce(lambda left, right: left.unionAll(right), parts).localCheckpoint(eager=False)


def two_times(reading: Reading) -> DataFrame:
    """Accepted ids that were seen with more than one time: event_id, event_time (the first)."""
    seen = reading.rows["foreign"].where(reading.journals.settled_sql()).groupBy("event_id")
    times = seen.agg(F.min("event_time").alias("event_time"), F.max("event_time").alias("last"))
    return times.where("last > event_time").select(*EVENT_KEY)


def output_rows(reading: Reading) -> DataFrame:
    """Rows of all outputs: event_id, event_time, bucket, token, outcome."""
    parts = [reading.rows[name].select(*EVENT_KEY, "bucket", "token", F.lit(name).alias("outcome")) for name in OUTPUTS]
    return reduce(lambda left, right: left.unionAll(right), parts)
