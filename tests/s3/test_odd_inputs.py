"""Logs that are odd in one way each, from objects into a lake on the same store, on both engines."""

from __future__ import annotations

from typing import Any

import pytest

from clickjoin.jobs.run import drain
from stack.gateway import Gateway
from tests.odd_inputs import ENGINES, KINDS, QUERIES, Kind, check
from tests.s3.test_join import BUCKET, Cloud
from tests.s3.test_join import spark as spark
from tests.sampled import FULL
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
