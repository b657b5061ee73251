"""Logs that are odd in one way each, from objects into a lake on the same store, on both engines."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from clickjoin.dates.closing import Order, close
from clickjoin.jobs.run import drain
from clickjoin.model.span import Day
from stack.gateway import Gateway
from tests.odd_inputs import ENGINES, KINDS, QUERIES, Kind, check
from tests.s3.test_join import BUCKET, Cloud
from tests.s3.test_join import spark as spark
from tests.sampled import FULL, in_full
from tests.spark.bench import NOON, click, query
from tests.spark.hand import found, verify

CASES = [(kind, engine) for kind in KINDS for engine in ENGINES]
CORE = [(kind, "arrow") for kind in KINDS if kind.name in ("parquet",)]


@pytest.mark.parametrize(("kind", "engine"), CASES if FULL else CORE, ids=str)
def test_from_objects(
    spark: Any, gateway: Gateway, tmp_path_factory: pytest.TempPathFactory, kind: Kind, engine: str
) -> None:
    folder = tmp_path_factory.mktemp("odd")
    place = f"s3://{BUCKET}/{folder.name}/logs"
    fields = kind.fields(engine, lambda stream, glob: {"kind": "files", "path": f"{place}/{stream}/dt=*/{glob}"})
    bench = Cloud(spark, folder, gateway, **fields)
    bench.queries(*([] if kind.shared else QUERIES))
    for name, data in kind.files.items():
        bench.put("foreign", name, data)
    check(bench, kind, lambda: drain(bench.spark, bench.pipeline, "main", print), lambda: found(verify(bench)))


@in_full
@pytest.mark.parametrize("engine", ENGINES)
def test_a_date_closes_with_a_share_of_events_that_wait(
    spark: Any, gateway: Gateway, tmp_path_factory: pytest.TempPathFactory, engine: str
) -> None:
    folder, fields = tmp_path_factory.mktemp("share"), {"max_age": "9d", "max_attempts": 99}
    more = {
        "retry": fields,
        "close": {"pending": 0.6},
        "quality": {"disable": ["primary.*", "foreign.*", "registry.*"]},
    }
    bench = Cloud(spark, folder, gateway, engine=engine, **more)
    asked, later = query("q"), query("later", 93_600)
    bench.queries(asked, later)
    bench.clicks(click("a", 2, asked), *(click(name, 3, query("never", 1)) for name in "bc"), click("d", 93_605, later))
    bench.clock.now = NOON + 93_700
    bench.join()
    first = close(bench.engine, Day(date(2026, 3, 1)), Order(), print)
    assert (first["state"], "2 of its events wait" in first["detail"]) == ("open", True)
    bench.file.write_text(bench.file.read_text().replace("pending: 0.6", "pending: 0.7"))
    bench.reload()
    second = close(bench.engine, Day(date(2026, 3, 1)), Order(), print)
    assert (second["state"], second["joined"], second["pending"]) == ("closed", 1, 2)
