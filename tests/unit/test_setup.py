"""Creating a pipeline's tables: once, whoever starts first, and never over a lake that has lost one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, ClassVar

import pytest

from clickjoin.config import Pipeline
from clickjoin.config.sections import Limits
from clickjoin.engines.arrow import ArrowTables
from clickjoin.kernel.adapter import ArrowAdapter
from clickjoin.lake_setup import initialise
from clickjoin.model.errors import ConfigError, LakeError
from clickjoin.model.txn import Txn
from clickjoin.registry.reshard import reshard
from clickjoin.registry.shards import load_timeline
from clickjoin.schemas import ALL

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ROOT = Path(__file__).parents[2]


class Wide(ArrowAdapter):
    columns: ClassVar[Mapping[str, str]] = {"foreign_record": "STRING", "price": "DECIMAL(10, 2)", "shown": "timestamp"}


class Clash(ArrowAdapter):
    columns: ClassVar[Mapping[str, str]] = {"price": "BIGINT"}


class Odd(ArrowAdapter):
    columns: ClassVar[Mapping[str, str]] = {"parts": "ARRAY<INT>"}


def pipeline(lake: Path, adapter: str = "", shards: int = 4) -> Pipeline:
    side = {"source": {"kind": "files", "path": "/x"}, "event_id": "id", "event_time": "embedded"}
    raw = {"pipeline": "p", "engine": "arrow", "lake": str(lake), "primary": side, "registry": {"shards": shards}}
    other = {"source": {"kind": "files", "path": "/y"}}
    raw |= {"foreign": {**side, **other, "primary_id": "q", "primary_time": "embedded"}}
    return Pipeline.model_validate(raw | ({"adapter": f"{__name__}:{adapter}"} if adapter else {}))


def test_created_once(tmp_path: Path) -> None:
    assert initialise(pipeline(tmp_path)) == [table.name for table in ALL]
    assert initialise(pipeline(tmp_path, shards=9)) == []
    delta = ArrowTables(f"{tmp_path}/p")
    assert load_timeline(delta).shards_at(NOW) == 4
    for table in ALL:
        extra = ["foreign_record", "primary_record"] if table.name == "joined" else []
        assert list(delta.columns(table.name)) == table.names + extra
        meta = delta.open(table.name).metadata()
        assert tuple(meta.partition_columns) == table.partitions
        assert meta.configuration.get("delta.dataSkippingStatsColumns", "") == ",".join(table.statistics)
        assert meta.configuration["delta.enableDeletionVectors"] == "false"


SCRIPT = """
import sys, time
from pathlib import Path
from clickjoin.config import load
from clickjoin.lake_setup import initialise
file, go = sys.argv[1:]
p = load(file)
print("ready", flush=True)
while not Path(go).exists():
    time.sleep(0.001)
print(",".join(initialise(p)), flush=True)
"""


def test_two_processes_at_once(tmp_path: Path) -> None:
    file, go = tmp_path / "p.yaml", tmp_path / "go"
    file.write_text(
        pipeline(tmp_path / "lake").model_dump_json(include={"pipeline", "engine", "lake", "primary", "foreign"})
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT / "spark_apps")}
    command = [sys.executable, "-c", SCRIPT, str(file), str(go)]
    copies = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) for _ in range(2)]
    for copy in copies:
        assert copy.stdout.readline() == "ready\n"
    go.touch()
    made = [copy.communicate(timeout=60)[0].strip() for copy in copies]
    assert [copy.returncode for copy in copies] == [0, 0]
    assert sorted(name for names in made for name in names.split(",") if name) == sorted(table.name for table in ALL)
    delta = ArrowTables(f"{tmp_path}/lake/p")
    assert len(delta.read("shard_timeline")) == 1
    assert list(delta.columns("joined"))[-2:] == ["foreign_record", "primary_record"]


def worked_in(lake: Path) -> ArrowTables:
    initialise(pipeline(lake))
    delta = ArrowTables(f"{lake}/p")
    delta.append("journal", [{"replica": "main", "sequence": "join", "batch": 1}], Txn("x", 1))
    return delta


@pytest.mark.parametrize("gone", [table.name for table in ALL])
def test_a_lost_table_is_never_begun_again(tmp_path: Path, gone: str) -> None:
    delta = worked_in(tmp_path)
    delta.append("registry", [{"event_id": "a", "bucket": "b", "shard": 0, "token": "t"}])
    shutil.rmtree(delta.path(gone))
    with pytest.raises(LakeError, match=rf"{tmp_path}/p: table {gone} is missing .*Restore it") as caught:
        initialise(pipeline(tmp_path))
    assert not caught.value.retryable
    assert not Path(delta.path(gone)).exists()


def test_outputs_alone_are_enough_to_refuse(tmp_path: Path) -> None:
    delta = ArrowTables(f"{tmp_path}/p")
    for table in ALL:
        if table.name not in ("registry", "journal"):
            delta.create(table)
    delta.append("joined", [{"event_id": "a", "event_date": date(2026, 3, 1), "bucket": "b"}])
    with pytest.raises(LakeError, match="table registry, journal is missing"):
        initialise(pipeline(tmp_path))


def test_a_start_cut_short_goes_on(tmp_path: Path) -> None:
    initialise(pipeline(tmp_path))
    for name in ("metrics", "registry"):
        shutil.rmtree(f"{tmp_path}/p/{name}")
    assert initialise(pipeline(tmp_path)) == ["registry", "metrics"]


def test_a_lake_inside_of_a_table_is_refused(tmp_path: Path) -> None:
    """The outer one's housekeeping would remove its files, since no version of that table names them."""
    outer = pipeline(tmp_path)
    initialise(outer)
    inner = pipeline(Path(outer.root) / "joined" / "deep")
    with pytest.raises(ConfigError, match=rf"inside of the Delta table {outer.root}/joined, whose housekeeping"):
        initialise(inner)
    assert not Path(inner.root).exists()


def test_a_lake_around_another_is_refused(tmp_path: Path) -> None:
    outer = pipeline(tmp_path)
    inner = pipeline(Path(outer.root) / "joined")
    initialise(inner)
    with pytest.raises(ConfigError, match=rf"its table joined would be made around {inner.root}/"):
        initialise(outer)
    assert not Path(outer.root, "registry").exists()


def test_a_time_in_a_form_and_an_id_of_columns_can_be_resharded(tmp_path: Path) -> None:
    raw = pipeline(tmp_path).model_dump(include={"pipeline", "engine", "lake", "primary", "foreign"})
    form = {"column": "ts", "format": "%d/%m/%Y", "zone": "UTC"}
    raw["foreign"] |= {"event_time": form, "event_id": ("host", "pid")}
    chosen = Pipeline.model_validate(raw)
    initialise(chosen)
    reshard(ArrowTables(chosen.root), chosen, 8, None, datetime.now(UTC))
    rows = ArrowTables(chosen.root).read("shard_timeline").to_pylist()
    assert {(row["event_time"], row["event_id"]) for row in rows} == {("ts as %d/%m/%Y in UTC", "host, pid")}


def test_a_file_with_another_skew_reshards_nothing(tmp_path: Path) -> None:
    """By a smaller one its entry could lie below claims that others have made."""
    initialise(pipeline(tmp_path))
    other = pipeline(tmp_path).model_copy(update={"limits": Limits(max_skew="5s")})
    with pytest.raises(ConfigError, match=r"limits\.max_skew is 5\.0 .* with 300\.0"):
        reshard(ArrowTables(other.root), other, 8, None, datetime.now(UTC))
    assert ArrowTables(other.root).rows("shard_timeline") == 1


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("registry.bucket is 60 .* with 3600", {"registry": {"bucket": "1m"}}),
        ("foreign.event_time is uuid7 .* with embedded", {"foreign": {"event_time": "uuid7"}}),
        (
            "foreign.event_time is ts as %d/%m/%Y in Europe/Berlin .* with embedded",
            {"foreign": {"event_time": {"column": "ts", "format": "%d/%m/%Y", "zone": "Europe/Berlin"}}},
        ),
        ("limits.max_skew is 5.0 .* with 300.0", {"limits": {"max_skew": "5s"}}),
        (
            "foreign.event_id is id of id, ts in .* with id",
            {"foreign": {"source": {"kind": "files", "path": "/logs/c/*", "format": "csv", "columns": ["id", "ts"]}}},
        ),
        ("foreign.event_id is host, pid in .* with id", {"foreign": {"event_id": ["host", "pid"]}}),
    ],
)
def test_what_fixes_an_ids_bucket_stays(tmp_path: Path, field: str, change: dict[str, dict[str, Any]]) -> None:
    initialise(pipeline(tmp_path))
    raw = pipeline(tmp_path).model_dump(include={"pipeline", "engine", "lake", "primary", "foreign"})
    for name, value in change.items():
        raw[name] = {**raw.get(name, {}), **value}
    with pytest.raises(ConfigError, match=rf"{field}\. Set it back, or begin another lake"):
        initialise(Pipeline.model_validate(raw))


def test_adapter_columns_are_added(tmp_path: Path) -> None:
    worked_in(tmp_path)
    assert initialise(pipeline(tmp_path, "Wide")) == []
    columns = ArrowTables(f"{tmp_path}/p").columns("joined")
    assert list(columns.items())[-4:] == [
        ("foreign_record", "string"),
        ("primary_record", "string"),
        ("price", "decimal(10,2)"),
        ("shown", "timestamp"),
    ]


def test_adapter_column_of_another_type(tmp_path: Path) -> None:
    initialise(pipeline(tmp_path, "Wide"))
    with pytest.raises(
        LakeError, match=r"column price is decimal\(10,2\), and the adapter makes it BIGINT.*another name"
    ):
        initialise(pipeline(tmp_path, "Clash"))


def test_adapter_column_of_no_type(tmp_path: Path) -> None:
    with pytest.raises(LakeError, match=r"type ARRAY<INT> is not supported for a column\. Use one of STRING"):
        initialise(pipeline(tmp_path, "Odd"))


def test_the_engine_that_ran_last_is_kept_and_a_change_announced(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made = pipeline(tmp_path)
    initialise(made)
    delta = ArrowTables(made.root)
    version = delta.version("journal")
    initialise(made)
    assert (delta.engine, ArrowTables(made.root).version("journal"), caplog.text) == ("arrow", version, "")
    delta.set_engine("another")
    assert ArrowTables(made.root).engine == "another"
    initialise(made)
    assert ArrowTables(made.root).engine == "arrow"
    assert "engine another was at work here, engine arrow is from now on" in caplog.text
