"""Two workers without clickjoin, logs or lake: what is joined there, lost with them, and refused."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
import yaml
from deltalake import write_deltalake

from clickjoin.config import load
from clickjoin.engine import Engine
from clickjoin.engines.arrow import dealing
from clickjoin.engines.spark.commits import Commits
from clickjoin.model.errors import ConfigError
from clickjoin.spark.failures import translate
from clickjoin.spark.session import in_process
from stack import Stack
from tests.cluster.bare import bare
from tests.cluster.site import Site, while_it_sleeps
from tests.sampled import in_full

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.faults, pytest.mark.slow]
SHOP = {
    "__init__.py": "CURRENCY = 'EUR'\n",
    "rates.py": "import shop.deep.numbers\n\ndef rate(name):\n    return shop.deep.numbers.RATES[name]\n",
    "deep/__init__.py": "",
    "deep/numbers.py": "RATES = {'EUR': 2.5}\n",
    "adapters.py": """
import pyarrow as pa
from clickjoin.joiner.adapter import ArrowAdapter
from shop import CURRENCY, rates

class Priced(ArrowAdapter):
    columns = {"price": "DOUBLE", "foreign_record": "STRING", "primary_record": "STRING"}

    def merge_table(self, joined):
        rows = joined.select(["event_id", "event_time", "payload", "primary"])
        rows = rows.rename_columns(["event_id", "event_time", "foreign_record", "primary_record"])
        return rows.append_column("price", pa.array([rates.rate(CURRENCY)] * rows.num_rows))
""",
}


@pytest.fixture(scope="module")
def spark(place: Site) -> Iterator[SparkSession]:
    """This process as the cluster's driver."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in place.environment.items():
            patch.setenv(name, value)
        session = in_process(memory="1g", s3=True, master=place.cluster.master)
        yield session
        session.stop()


def refused(spark: SparkSession, file: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        Engine(spark, load(file))
    return str(caught.value)


def test_a_lake_that_no_executor_sees_is_refused(place: Site, spark: SparkSession) -> None:
    pipeline = place.pipeline("own-disk", 10, lake=str(place.folder / "lake"))
    said = refused(spark, pipeline.file)
    assert said.startswith(f"{place.folder}/lake/own-disk: the executors of {place.cluster.master} do not see")
    assert "Put the lake on S3" in said
    assert list((place.folder / "lake/own-disk").iterdir()) == []


def test_logs_that_no_executor_sees_are_refused_unless_the_driver_reads_them(place: Site, spark: SparkSession) -> None:
    pipeline = place.pipeline("large", 10, batch={"max_bytes": "4MB", "driver_bytes": "3MB"})
    said = refused(spark, pipeline.file)
    assert f"{pipeline.logs}/clicks/*.jsonl, {pipeline.logs}/queries/*.jsonl: the executors of" in said
    assert "set batch.driver_bytes to no less than batch.max_bytes" in said
    assert not pipeline.tables.exists()


def test_a_table_that_no_executor_sees_is_refused(place: Site, spark: SparkSession) -> None:
    pipeline = place.pipeline("table", 10, batch={"max_bytes": "4MB", "driver_bytes": "3MB"})
    table = place.folder / "bought"
    write_deltalake(str(table), pa.table({"event_id": ["c1"]}))
    fields = yaml.safe_load(pipeline.file.read_text())
    fields["foreign"]["source"] = {"kind": "delta", "path": str(table)}
    pipeline.file.write_text(yaml.safe_dump(fields))
    assert f"{table}/_delta_log/*.json" in refused(spark, pipeline.file)
    assert not pipeline.tables.exists()


@pytest.mark.parametrize("python", ["bare", "none"])
def test_executors_without_what_the_driver_has_are_named(place: Site, spark: SparkSession, python: str) -> None:
    """The Python that Spark's tasks are run by: one without packages, and one that is nowhere."""
    path = str(bare()) if python == "bare" else "/no/such/python"
    context = spark.sparkContext
    own, context.pythonExec = context.pythonExec, path
    try:
        with pytest.raises(Exception, match=r".") as caught:
            Engine(spark, load(place.pipeline(f"python-{python}", 10).file))
    finally:
        context.pythonExec = own
    found = translate(caught.value)
    assert isinstance(found, ConfigError)
    assert ("have no pyarrow" if python == "bare" else "cannot start '/no/such/python' as Python") in str(found)
    assert "PYSPARK_PYTHON" in str(found)


def test_an_adapter_travels_with_its_package_and_a_lost_executor_costs_time(
    place: Site, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in SHOP.items():
        (place.folder / "shop" / name).parent.mkdir(parents=True, exist_ok=True)
        (place.folder / "shop" / name).write_text(text)
    monkeypatch.syspath_prepend(str(place.folder))
    monkeypatch.setattr(dealing, "_ROWS_HERE", 0)  # else so few are joined by this process
    pipeline = place.pipeline("priced", 3_000, adapter="shop.adapters:Priced")
    gate = tmp_path / "gate"
    gate.touch()
    monkeypatch.setenv("CLICKJOIN_FAULT", f"looked-up:{gate}")
    killing = while_it_sleeps(place, pipeline, gate)
    engine = Engine(spark, load(pipeline.file))
    engine.drain(lambda _: None)
    killing.join()
    verdict = pipeline.verdict()
    assert verdict.ok, verdict.text()
    assert (verdict.joined > 2_700, verdict.pending > 50) == (True, True)
    assert [row["price"] for row in engine.lake.read("joined").select("price").distinct().collect()] == [2.5]


@in_full
def test_an_executor_killed_inside_each_merge_of_claims(
    place: Site, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tasks run twice, or what the batch has looked up is gone with it: then the batch is run again."""
    pipeline = place.pipeline("merged", 3_000, engine="spark", batch={"max_events": 1500, "max_bytes": "4MB"})
    run, kills, errors = Commits.run, Counter[str](), list[str]()

    def cut(self: Commits, name: str, sql: str, *more: Any) -> int | None:
        if name != "registry" or not sql.startswith("MERGE") or kills[name] == 3:
            return run(self, name, sql, *more)
        kills[name] += 1
        with while_tasks_run(spark, place.cluster.kill_an_executor):
            return run(self, name, sql, *more)

    monkeypatch.setattr(Commits, "run", cut)
    for _ in range(1 + 3):  # as a task that is tried again
        try:
            engine = Engine(spark, load(pipeline.file))
            engine.drain(lambda _: None)
            break
        except Exception as error:
            errors.append(str(error))
    assert not [error for error in errors if "executor" not in error]
    verdict = pipeline.verdict()
    assert verdict.ok, verdict.text()
    assert (kills["registry"], verdict.joined > 2_700) == (3, True)
    assert not engine.lake.read("registry").groupBy("event_id", "event_time").count().where("count > 1").count()


@contextmanager
def while_tasks_run(spark: SparkSession, act: Callable[[], None]) -> Iterator[None]:
    """Act once, as soon as some stage's tasks run of what is done in here."""
    tracker, over = spark.sparkContext.statusTracker(), Event()

    def look() -> None:
        while not over.wait(0.01):
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            if any(stage and stage.numActiveTasks for stage in stages):
                act()
                return

    thread = Thread(target=look)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@in_full
def test_connect_on_it(place: Site, tmp_path: Path, spark: SparkSession) -> None:
    """The command line over a Connect server, whose driver and executors see nothing of the client's disk."""
    spark.stop()
    pipeline = place.pipeline("remote", 3_000)
    gate = tmp_path / "gate"
    gate.touch()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in place.environment.items():
            patch.setenv(name, value)
        patch.setenv("CLICKJOIN_SPARK_MASTER", place.cluster.master)
        with Stack(tmp_path / "stack", airflow=False, env={"CLICKJOIN_DRIVER_MEMORY": "1g"}) as stack:
            killing = while_it_sleeps(place, pipeline, gate)
            patch.setenv("CLICKJOIN_FAULT", f"looked-up:{gate}")
            line = [sys.executable, "-m", "clickjoin.cli", "drain", "--config", str(pipeline.file), "--json"]
            done = subprocess.run(
                [*line, "--spark-connect", str(stack.home.connect_url)], capture_output=True, text=True, check=False
            )
            killing.join()
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    verdict = pipeline.verdict()
    assert verdict.ok, verdict.text()
    assert verdict.joined == json.loads(done.stdout)["joined"] > 2_700
