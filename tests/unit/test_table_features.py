"""Delta's table features on the product's own tables: honoured, or refused by name with the way back."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from clickjoin.config import load
from clickjoin.engines.arrow import ArrowTables
from clickjoin.lake import table_format
from clickjoin.lake.readable import ReadableTables
from clickjoin.lake.snapshot_files import data_files
from clickjoin.lake.table_features import FeatureRefused
from clickjoin.lake_setup import initialise
from clickjoin.model.txn import Txn
from clickjoin.schemas import REGISTRY

ROOT = Path(__file__).parents[2]
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
ROW = {"event_id": "a", "event_time": NOON, "bucket": "2026-03-01", "shard": 0, "token": "t", "outcome": "joined"}
OFF = "SET TBLPROPERTIES ('{}'='{}')"


def named(*writer: str, reader: tuple[str, ...] = ()) -> dict[str, Any]:
    """A protocol of named features."""
    found: dict[str, Any] = {"minReaderVersion": 3 if reader else 1, "minWriterVersion": 7}
    return found | {"writerFeatures": [*writer, *reader], **({"readerFeatures": list(reader)} if reader else {})}


def legacy(writer: int, reader: int = 1) -> dict[str, Any]:
    """A protocol of a version that implies its features."""
    return {"minReaderVersion": reader, "minWriterVersion": writer}


# Protocol, properties, what a column's metadata says, the name that is said, what takes it away (none: RESTORE).
REFUSED = {
    "constraint": (legacy(3), {"delta.constraints.evt": "shard > 0"}, {}, "checkConstraints", ["DROP CONSTRAINT evt"]),
    "append-only": (
        legacy(2), {"delta.appendOnly": "true"}, {}, "appendOnly", [OFF.format("delta.appendOnly", "false")],
    ),
    "transactions": (
        legacy(2), {"delta.setTransactionRetentionDuration": "interval 1 day"}, {},
        "delta.setTransactionRetentionDuration", ["UNSET TBLPROPERTIES ('delta.setTransactionRetentionDuration')"],
    ),
    "invariant": (legacy(2), {}, {"delta.invariants": '{"expression":{"expression":"token > 0"}}'}, "invariants", []),
    "generated": (legacy(4), {}, {"delta.generationExpression": "event_id"}, "generatedColumns", []),
    "renamed": (
        legacy(5, 2), {"delta.columnMapping.mode": "name"},
        {"delta.columnMapping.id": 5, "delta.columnMapping.physicalName": "was"}, "columnMapping",
        ["RENAME COLUMN `token` TO `was`", OFF.format("delta.columnMapping.mode", "none")],
    ),
    "identity": (legacy(6), {}, {}, "identityColumns", []),
    "defaults": (named("allowColumnDefaults"), {}, {"CURRENT_DEFAULT": "'x'"}, "allowColumnDefaults", []),
    "row-tracking": (
        named("rowTracking", "domainMetadata"), {}, {}, "rowTracking",
        [OFF.format("delta.enableRowTracking", "false"), "DROP FEATURE rowTracking", "DROP FEATURE domainMetadata"],
    ),
    "timestamps": (
        named("inCommitTimestamp"), {}, {}, "inCommitTimestamp",
        [OFF.format("delta.enableInCommitTimestamps", "false"), "DROP FEATURE inCommitTimestamp"],
    ),
    "clustering": (
        named("clustering", "domainMetadata"), {}, {}, "clustering",
        ["CLUSTER BY NONE", "DROP FEATURE clustering", "DROP FEATURE domainMetadata"],
    ),
    "protection": (named("checkpointProtection"), {}, {}, "checkpointProtection", []),
    "nobodys": (named("nobodysFeature"), {}, {}, "nobodysFeature", []),
    **{
        feature: (named(reader=(feature,)), {}, {}, feature, [])
        for feature in (
            "deletionVectors", "v2Checkpoint", "typeWidening", "timestampNtz", "variantType", "vacuumProtocolCheck",
        )
    },
}  # fmt: skip
HONOURED = {
    "change-data-feed": (named("changeDataFeed"), {"delta.enableChangeDataFeed": "true"}),
    "not in use": (named("appendOnly", "invariants", "checkConstraints", "generatedColumns"), {}),
    "no longer mapped": ({**named("columnMapping"), "minReaderVersion": 2}, {"delta.columnMapping.mode": "none"}),
    "older writers": (legacy(5), {"delta.appendOnly": "false"}),
}


@pytest.fixture
def lake(tmp_path: Path) -> ArrowTables:
    delta = ArrowTables(str(tmp_path))
    delta.create(REGISTRY)
    assert delta.append("registry", [ROW], Txn("x", 1))
    return delta


def give(delta: ArrowTables, protocol: dict[str, Any], settings: dict[str, str], column: dict[str, Any]) -> None:
    """Commit a protocol and metadata as another engine does; `column`: what it says of column `token`."""
    log = Path(delta.path("registry"), "_delta_log")
    entries = sorted(log.glob("*.json"))
    actions = [json.loads(line) for entry in entries for line in entry.read_text().splitlines()]
    meta = next(action["metaData"] for action in reversed(actions) if "metaData" in action)
    schema = json.loads(meta["schemaString"])
    for field in schema["fields"]:
        name, mapped = field["name"], "delta.columnMapping.id" in column
        field["metadata"] = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": name} if mapped else {}
        field["metadata"] |= column if name == "token" else {}
        field["metadata"] |= {"delta.columnMapping.id": len(name) * 100 + ord(name[0])} if mapped else {}
    meta = {**meta, "schemaString": json.dumps(schema), "configuration": {**meta["configuration"], **settings}}
    lines = (json.dumps(action) for action in ({"protocol": protocol}, {"metaData": meta}))
    (log / f"{len(entries):020}.json").write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.mark.parametrize("case", REFUSED)
def test_a_feature_is_refused_by_name_with_the_way_back(lake: ArrowTables, case: str) -> None:
    """By whoever has the table open and by whoever opens it, before anything is committed; again at each try."""
    protocol, settings, column, name, back = REFUSED[case]
    give(lake, protocol, settings, column)
    place = lake.path("registry")
    restored = [
        "SET spark.databricks.delta.restore.protocolDowngradeAllowed=true",
        f"RESTORE TABLE delta.`{place}` TO VERSION AS OF 1",
    ]
    wanted = [f"ALTER TABLE delta.`{place}` {statement}" for statement in back] or restored
    for delta in (lake, ArrowTables(lake.root), ReadableTables(lake.root)):
        for _ in range(2):
            with pytest.raises(FeatureRefused, match=rf"{place}: has .*\({name}\)") as refused:
                delta.open("registry")
            assert list(refused.value.statements) == wanted
            assert all(statement in str(refused.value) for statement in wanted)
    with pytest.raises(FeatureRefused):
        lake.append("registry", [ROW], Txn("x", 2))
    with pytest.raises(FeatureRefused):
        data_files(lake.root, "registry", 2)
    assert len(list(Path(place, "_delta_log").glob("*.json"))) == 3


def test_a_feature_that_no_reader_knows_is_refused_by_name(lake: ArrowTables) -> None:
    give(lake, named(reader=("nobodysFeature",)), {}, {})
    for delta in (lake, ArrowTables(lake.root), ReadableTables(lake.root)):
        with pytest.raises(FeatureRefused, match=r"registry: has nobodysFeature, .* RESTORE TABLE"):
            delta.open("registry")


@pytest.mark.parametrize("case", HONOURED)
def test_a_feature_that_binds_nothing_here_is_honoured(lake: ArrowTables, case: str) -> None:
    give(lake, *HONOURED[case], {})
    for delta in (lake, ArrowTables(lake.root)):
        assert delta.append("registry", [ROW], Txn(f"{id(delta)}", 1))
    assert lake.read("registry").num_rows == 3


def test_who_has_it_open_goes_on_once_it_is_gone(lake: ArrowTables) -> None:
    give(lake, legacy(3), {"delta.constraints.evt": "shard > 0", "delta.constraints.b": "shard > 1"}, {})
    with pytest.raises(FeatureRefused, match=r"CHECK constraint b .*CHECK constraint evt ") as refused:
        lake.append("registry", [ROW], Txn("x", 2))
    assert [text.rpartition(" ")[2] for text in refused.value.statements] == ["b", "evt"]
    log = Path(lake.path("registry"), "_delta_log")
    meta = next(line for line in (log / f"{0:020}.json").read_text().splitlines() if "metaData" in line)
    (log / f"{3:020}.json").write_text(meta + "\n", encoding="utf-8")
    assert lake.append("registry", [ROW], Txn("x", 2))


def test_restore_is_no_way_back_over_rows_that_came_since(lake: ArrowTables, monkeypatch: pytest.MonkeyPatch) -> None:
    """They would be taken out, and their transactions stay."""
    give(lake, named(reader=("v2Checkpoint",)), {}, {})
    with monkeypatch.context() as patch:
        patch.setattr(table_format, "require_features", lambda *_: None)  # as a program from before
        assert ArrowTables(lake.root).append("registry", [ROW], Txn("x", 2))
    with pytest.raises(FeatureRefused, match=r"since version 1 .*restore a backup") as refused:
        lake.open("registry")
    assert refused.value.statements == ()


def test_the_last_version_without_it_is_found_far_back(lake: ArrowTables) -> None:
    """Also where one had been set before, and taken away."""
    give(lake, named("checkpointProtection"), {}, {})
    give(lake, legacy(2), {}, {})
    for number in range(2, 12):
        assert lake.append("registry", [ROW], Txn("x", number))
    for _ in range(9):
        give(lake, named("checkpointProtection"), {}, {})
    with pytest.raises(FeatureRefused, match=r"TO VERSION AS OF 13 "):
        lake.open("registry")


def test_it_is_asked_again_only_where_protocol_or_metadata_changed(
    lake: ArrowTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[str]()
    real = table_format.require_features
    monkeypatch.setattr(
        table_format, "require_features", lambda table, place: asked.append(place) or real(table, place)
    )
    for number in range(2, 30):
        assert lake.append("registry", [ROW], Txn("x", number))
    assert not asked
    give(lake, legacy(5), {}, {})
    assert lake.append("registry", [ROW], Txn("x", 30))
    assert len(asked) == 1


@pytest.mark.parametrize(
    "command", [("status",), ("explain", "U1:1:1700000000000000"), ("init",), ("backup", "--to", "x")]
)
def test_commands_say_it_in_a_sentence(tmp_path: Path, command: tuple[str, ...]) -> None:
    stream = (ROOT / "docs/one-stream.yaml").read_text()
    (tmp_path / "clicks.yaml").write_text(stream + "output: {columns: {n: {from: stream.n, type: BIGINT}}}\n")
    initialise(load(tmp_path / "clicks.yaml"))
    place = tmp_path / "lake/clicks/registry"
    last = max(int(entry.stem) for entry in (place / "_delta_log").glob("*.json"))
    protocol = json.dumps({"protocol": named("rowTracking", "domainMetadata")})
    (place / "_delta_log" / f"{last + 1:020}.json").write_text(protocol + "\n", encoding="utf-8")
    line = [sys.executable, "-m", "clickjoin.cli", *command, "--config", str(tmp_path / "clicks.yaml")]
    done = subprocess.run(line, capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert done.stderr.startswith(f"clickjoin: {place}: has row tracking (rowTracking), ")
    assert f"ALTER TABLE delta.`{place}` DROP FEATURE rowTracking; ALTER TABLE" in done.stderr
