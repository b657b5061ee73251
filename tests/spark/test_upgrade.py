"""A lake that the version before made: joined on as it is, upgraded, and joined on; no id is ever there twice."""

from __future__ import annotations

import json
import tarfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.fs as pafs
import pytest

from clickjoin.config import Pipeline, load
from clickjoin.engine import Engine
from clickjoin.generate import Traffic, generate
from clickjoin.jobs.run import counted
from clickjoin.kernel.filesystem import filesystem
from clickjoin.lake.delta_reader import DeltaReader
from clickjoin.lake.table_format import formats
from clickjoin.lake_upgrade import upgrade
from clickjoin.model.errors import LakeReplaced
from clickjoin.model.times import parse_moment
from clickjoin.rebuild.registry import rebuild
from clickjoin.schemas import ALL
from clickjoin.schemas.format import FIRST, FORMAT
from tests.sampled import in_full, some

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
OLD = Path(__file__).parents[1] / "lakes/format-1.tar.gz"
SHARED = {"clicks": 60, "queries": 30, "files": 1, "payload": 0, "duration": 60.0}


@pytest.fixture
def old(tmp_path: Path, lakes: Path | None) -> Pipeline:
    """See tests/unit/test_table_format.py. Its logs lie elsewhere now, so all are read once more, as repeats."""
    with tarfile.open(OLD) as archive:
        archive.extractall(tmp_path, filter="data")
    file = tmp_path / "clicks.yaml"
    if lakes:
        # By the store: to a file that was put into its folder by hand it gives no ETag.
        system, place = filesystem(f"s3://{lakes.name}/{tmp_path.name}")
        pafs.copy_files(str(tmp_path / "lake"), place, destination_filesystem=system)
        file.write_text(file.read_text().replace("lake: lake", f"lake: s3://{lakes.name}/{tmp_path.name}"))
    return load(file)


def _logs(pipeline: Pipeline) -> Path:
    return Path(pipeline.foreign.source.path).parents[1]


def _wanted(logs: Path) -> set[str]:
    """Ids of the clicks whose query is in the logs."""
    rows = {
        name: [json.loads(line) for file in (logs / name).iterdir() for line in file.read_text().splitlines()]
        for name in ("queries", "clicks")
    }
    queries = {row["event_id"] for row in rows["queries"]}
    return {row["event_id"] for row in rows["clicks"] if row["query_id"] in queries}


def _joined(pipeline: Pipeline) -> Counter[str]:
    return Counter(DeltaReader(pipeline.root).read("joined", columns=["event_id"])["event_id"].to_pylist())


def _more(pipeline: Pipeline, name: str, seed: int) -> None:
    """Further traffic, beside the logs that are there."""
    logs = _logs(pipeline)
    start = parse_moment(f"2026-11-20T1{seed}:00Z")
    generate(logs.parent / name, Traffic(**SHARED, seed=seed, start=start))
    for side in ("queries", "clicks"):
        for file in (logs.parent / name / side).iterdir():
            file.rename(logs / side / f"{name}-{file.name}")


def test_joined_on_before_and_after_the_upgrade(spark: SparkSession, old: Pipeline) -> None:
    logs = _logs(old)
    first = _wanted(logs)
    assert _joined(old) == dict.fromkeys(first, 1)
    _more(old, "second", 1)
    before = Engine(spark, old)
    before.drain(lambda _: None)
    assert _joined(old) == dict.fromkeys(_wanted(logs), 1)
    assert set(formats(old.root).values()) == {FIRST}

    upgrade(old, lambda _: None, apply=True)
    _more(old, "third", 2)
    with pytest.raises(LakeReplaced, match="the lake was upgraded"):
        before.drain(lambda _: None)
    engine = Engine(spark, old)
    engine.drain(lambda _: None)
    assert _joined(old) == dict.fromkeys(_wanted(logs), 1)
    assert len(_wanted(logs)) > 2 * len(first) > 60
    assert counted(engine, print).agree
    assert formats(old.root) == {table.name: FORMAT for table in ALL}


@pytest.mark.parametrize("upgraded", some([True, False], 2))
@in_full
def test_a_registry_that_is_rebuilt_is_of_the_lakes_format(spark: SparkSession, old: Pipeline, upgraded: bool) -> None:
    if upgraded:
        upgrade(old, lambda _: None, apply=True)
    lake = Engine(spark, old).lake
    rebuild(old, lake, parse_moment("2026-11-23T12:00Z"), replace=True)
    assert set(formats(old.root).values()) == {FORMAT if upgraded else FIRST}
    engine = Engine(spark, old)
    engine.drain(lambda _: None)
    assert _joined(old) == dict.fromkeys(_wanted(_logs(old)), 1)
