"""Logs that are odd in one way each, from files on a disk, on both engines."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from clickjoin.jobs.run import drain
from tests.odd_inputs import ENGINES, KINDS, QUERIES, Kind, check
from tests.sampled import FULL
from tests.spark.bench import Bench
from tests.spark.hand import found, verify

CASES = [(kind, engine) for kind in KINDS for engine in ENGINES]
CORE = [(kind, "arrow") for kind in KINDS if kind.name in ("titles", "floats")]


@pytest.mark.parametrize(("kind", "engine"), CASES if FULL else CORE, ids=str)
def test_from_files(make: Callable[..., Bench], kind: Kind, engine: str) -> None:
    bench = make(**kind.fields(engine, lambda stream, glob: {"kind": "files", "path": f"{stream}/{glob}"}))
    bench.queries(*([] if kind.shared else QUERIES))
    for name, data in kind.files.items():
        (bench.folder / "foreign" / name).write_bytes(data)
    bench.rest(7200)
    check(bench, kind, lambda: drain(bench.spark, bench.pipeline, "main", print), lambda: found(verify(bench)))
