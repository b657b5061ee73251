"""How long the quality suites take on one day: makes a lake of that day directly as tables, beside some other days.

    PYTHONPATH=spark_apps:. .venv/bin/python -m benchmarks.quality --ids 10000000

Each id is a click that was joined, as in `benchmarks.verify`, with an impression for every ten of them. The day is
checked as it stands, once more with expectations of the pipeline's own, and then with some rows deleted by hand, so
that samples are looked for. Beside it, on the day's rows of the output alone: checkpoint `joined`, and the same few
questions asked by Great Expectations' plain expectations by hand, and by DQX where `databricks-labs-dqx` is installed.
"""

from __future__ import annotations

import json
import tempfile
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from unittest.mock import create_autospec

from pyspark.sql import functions as F

from benchmarks.verify import DAY, options, pipeline, rows_of
from clickjoin import quality
from clickjoin.config.quality import Quality
from clickjoin.dispatcher.journal import Journal
from clickjoin.engine import Engine
from clickjoin.model.batch_plan import BatchPlan
from clickjoin.model.ids import MICROS
from clickjoin.model.txn import Txn
from clickjoin.quality import history, place
from clickjoin.quality.frames import Frames, running
from clickjoin.quality.runner import PLAIN
from clickjoin.quality.suites import REQUIRED, TOKEN
from clickjoin.schemas import BY_NAME
from clickjoin.spark.session import in_process, with_settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# As wide as the real clicks and impressions of the demo.
_RECORD = (
    'concat(\'{"event_id":"\', event_id, \'","query_id":"\', primary_id, \'","item":\', id % 80, '
    '\',"position":\', id % 3 + 1, \',"campaign":"all","propensity_score":0.0125}\')'
)
OWN = [
    {
        "table": "foreign",
        "expectation": "expect_column_values_to_be_between",
        "column": column,
        "args": {"min_value": 0},
    }
    for column in ("item", "position", "propensity_score")
]
OWN += [{"table": "foreign", "expectation": "expect_column_values_to_not_be_null", "column": "item"}]


def make(spark: SparkSession, engine: Engine, ids: int, days: int) -> None:
    """Write the tables: each day is one settled batch, the last of them DAY's."""
    journal = Journal(engine.lake.delta, "bench", "main", "join")
    for number in range(1, days + 1):
        day = DAY - timedelta(days=days - number)
        clicks = _recorded(rows_of(spark, engine, day, ids, number)).persist()
        shown = _recorded(rows_of(spark, engine, day, max(ids // 10, 1), number))
        shown = shown.withColumns(dict.fromkeys(("match_key", "preferred"), F.lit(None)))
        journal.plan(BatchPlan("bench", "main", "join", number, int(day.timestamp() * MICROS), snapshot=True), day)
        for name in ("foreign", "registry", "joined"):
            engine.lake.append(name, clicks.select(*BY_NAME[name].names), Txn("bench/main/join", number))
        engine.lake.append("primary", shown.select(*BY_NAME["primary"].names), Txn("bench/main/join", number))
        journal.settle(number, {}, day)
        clicks.unpersist()


def _recorded(rows: DataFrame) -> DataFrame:
    return rows.withColumn("payload", F.expr(_RECORD)).withColumn(
        "published_at", F.expr("event_time + INTERVAL '4' SECOND")
    )


def main() -> None:
    """Make the lake, check the last day whole, with expectations of its own, then damaged."""
    chosen = options(__doc__)
    spark = in_process(memory=chosen.memory)
    with tempfile.TemporaryDirectory(prefix="clickjoin-quality-") as folder:
        engine = Engine(spark, pipeline(folder), clock=lambda: (DAY + timedelta(days=1)).timestamp())
        begun = time.perf_counter()
        make(spark, engine, chosen.ids, chosen.around + 1)
        print(f"made in {time.perf_counter() - begun:.0f} s", flush=True)
        own = engine.pipeline.model_copy(update={"quality": Quality.model_validate({"expectations": OWN})})
        for what in ("whole", "whole again", "own expectations", "damaged"):
            engine.pipeline = own if what == "own expectations" else pipeline(folder)
            if what == "damaged":
                engine.lake.delta.open("joined").delete("bucket = '2026-03-01T0300Z' AND event_id LIKE '10.0.3.7:%'")
            print(json.dumps({"what": what, "ids": chosen.ids, **measured(spark, engine)}), flush=True)
        engine.pipeline = pipeline(folder)
        for name, peer in {"checkpoint joined": alone, "plain, by hand": by_hand, "DQX": by_dqx}.items():
            print(json.dumps({"what": name, "ids": chosen.ids, **peer(spark, engine)}), flush=True)


def measured(spark: SparkSession, engine: Engine) -> dict[str, Any]:
    """A run: seconds, Spark jobs, red checks."""
    spark.sparkContext.setJobGroup(group := str(time.monotonic()), "quality")
    report = quality.run(engine, DAY.date(), lambda _: None)
    return {
        "seconds": round(report.seconds, 1),
        "jobs": len(spark.sparkContext.statusTracker().getJobIdsForGroup(group)),
        "red": [one.name for one in report.outcomes if one.success is False],
    }


def alone(spark: SparkSession, engine: Engine) -> dict[str, Any]:
    """The project's own checkpoint `joined`, as a script of a user's runs it."""
    day, past = DAY.date(), history.read(engine.lake.delta, DAY.date(), 28, 3)
    with place.opened(engine.pipeline) as project:
        frames = Frames(engine.lake, engine.pipeline, day, DAY + timedelta(days=1), past, {})
        begun = time.perf_counter()
        with with_settings(spark, PLAIN), running(engine.pipeline, day, frames):
            done, _ = project.run("joined", day.isoformat())
    passed = sum(result.success for _, result in done)
    return {"seconds": round(time.perf_counter() - begun, 1), "expectations": len(done), "passed": passed}


def by_dqx(spark: SparkSession, engine: Engine) -> dict[str, Any]:
    """The questions of `by_hand`, as rules of DQX; it has no workspace to talk to."""
    try:
        from databricks.labs.dqx import check_funcs
        from databricks.labs.dqx.engine import DQEngineCore
        from databricks.labs.dqx.rule import DQDatasetRule, DQRowRule
        from databricks.sdk import WorkspaceClient
    except ImportError as error:
        return {"not installed": str(error)}
    rows = engine.lake.read("joined").where(f"event_time >= '{DAY:%Y-%m-%d}'").persist()
    distinct = {"limit": 1, "aggr_type": "count_distinct"}
    rules = [
        *(DQRowRule(check_func=check_funcs.is_not_null, column=name) for name in REQUIRED["joined"]),
        DQDatasetRule(check_func=check_funcs.is_unique, columns=["event_id", "event_time"]),
        DQRowRule(check_func=check_funcs.regex_match, column="token", check_func_kwargs={"regex": TOKEN}),
        DQDatasetRule(check_func=check_funcs.is_aggr_not_less_than, column="event_id", check_func_kwargs=distinct),
    ]
    dqx = DQEngineCore(create_autospec(WorkspaceClient), spark)
    begun = time.perf_counter()
    bad = dqx.apply_checks(rows, rules).where("_errors IS NOT NULL").count()
    rows.unpersist()
    return {"seconds": round(time.perf_counter() - begun, 1), "success": bad == 0}


def by_hand(spark: SparkSession, engine: Engine) -> dict[str, Any]:
    """Great Expectations' plain column expectations on the date's rows of `joined`, as one would write them."""
    import great_expectations as gx

    expect = gx.expectations
    rows = engine.lake.read("joined").where(f"event_time >= '{DAY:%Y-%m-%d}'").persist()
    context = gx.get_context(mode="ephemeral")
    asset = context.data_sources.add_spark("by hand", persist=False).add_dataframe_asset("joined")
    batch = asset.add_batch_definition_whole_dataframe("date").get_batch({"dataframe": rows})
    suite = gx.ExpectationSuite(
        name="joined",
        expectations=[
            *(expect.ExpectColumnValuesToNotBeNull(column=name) for name in REQUIRED["joined"]),
            expect.ExpectCompoundColumnsToBeUnique(column_list=["event_id", "event_time"]),
            expect.ExpectColumnValuesToMatchRegex(column="token", regex=TOKEN),
            expect.ExpectColumnUniqueValueCountToBeBetween(column="event_id", min_value=1),
        ],
    )
    begun = time.perf_counter()
    done = batch.validate(suite, result_format="SUMMARY")
    rows.unpersist()
    return {"seconds": round(time.perf_counter() - begun, 1), "success": done.success}


if __name__ == "__main__":
    main()
