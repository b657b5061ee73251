"""Features that somebody's ALTER TABLE sets on a lake's tables: refused by a sentence, whose way back is then taken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from clickjoin.lake.table_features import FeatureRefused
from clickjoin.model import failpoint
from tests.oracle import examine
from tests.sampled import some
from tests.spark.bench import Bench, click, query

Q = query("q")
PROPERTY = "SET TBLPROPERTIES ('{}'='{}')"
# How Spark sets each, and the name that the sentence has.
SET = {
    "CHECK": (["ADD CONSTRAINT evt CHECK (event_id <> 'never')"], "checkConstraints"),
    "mapping": (
        [PROPERTY.format("delta.columnMapping.mode", "name"), "RENAME COLUMN event_time TO at"], "columnMapping",
    ),
    "vectors": ([PROPERTY.format("delta.enableDeletionVectors", "true")], "deletionVectors"),
    "row tracking": ([PROPERTY.format("delta.enableRowTracking", "true")], "rowTracking"),
    "in-commit timestamps": ([PROPERTY.format("delta.enableInCommitTimestamps", "true")], "inCommitTimestamp"),
    "v2 checkpoints": ([PROPERTY.format("delta.checkpointPolicy", "v2")], "v2Checkpoint"),
    "type widening": ([PROPERTY.format("delta.enableTypeWidening", "true")], "typeWidening"),
    "append-only": ([PROPERTY.format("delta.appendOnly", "true")], "appendOnly"),
    "defaults": ([PROPERTY.format("delta.feature.allowColumnDefaults", "supported")], "allowColumnDefaults"),
    "identity": ([PROPERTY.format("delta.minWriterVersion", "6")], "identityColumns"),
    "vacuum check": ([PROPERTY.format("delta.feature.vacuumProtocolCheck", "supported")], "vacuumProtocolCheck"),
    "timestamps": ([PROPERTY.format("delta.feature.timestampNtz", "supported")], "timestampNtz"),
    "variant": (["ADD COLUMNS (v VARIANT)"], "variantType"),
    "dropped": (
        [PROPERTY.format("delta.feature.vacuumProtocolCheck", "supported"), "DROP FEATURE vacuumProtocolCheck"],
        "checkpointProtection",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def bench(make: Callable[..., Bench]) -> Bench:
    """One lake for all: each test leaves it as the way back does."""
    bench = make()
    bench.queries(Q)
    bench.clicks(click("first", 1, Q))
    bench.join()
    return bench


def alter(bench: Bench, table: str, *changes: str) -> None:
    """What somebody does to a table of the lake."""
    for change in changes:
        bench.spark.sql(f"ALTER TABLE delta.`{bench.engine.lake.delta.path(table)}` {change}").collect()


def go_back(bench: Bench, refused: Any) -> None:
    """What the sentence says."""
    assert refused.value.statements
    for statement in refused.value.statements:
        assert statement in str(refused.value)
        bench.spark.sql(statement).collect()


def require_exactly_once(bench: Bench) -> None:
    """By an oracle that shares no code with the product: every click of the logs is joined, and once."""
    verdict = examine(f"{bench.folder}/foreign/*", f"{bench.folder}/primary/*", bench.disk)
    assert (verdict.ok, verdict.joined, verdict.pending) == (True, verdict.clicks, 0), verdict.text()


@pytest.mark.parametrize("feature", some(list(SET), 5))
def test_refused_before_anything_is_joined_and_goes_on_once_it_is_gone(bench: Bench, feature: str) -> None:
    """On both tables at once, for a process that runs and for one that starts."""
    changes, name = SET[feature]
    count = len(bench.rows("joined"))
    bench.clicks(*(click(f"{feature.replace(' ', '')}{number}", 2 + number, Q) for number in range(3)))
    for table in ("joined", "registry"):
        alter(bench, table, *changes)
    for table in ("registry", "joined"):
        with pytest.raises(FeatureRefused, match=rf"\({name}\)"):
            bench.replica("main")
        with pytest.raises(FeatureRefused, match=rf"\({name}\)"):
            bench.join()
        with pytest.raises(FeatureRefused, match=rf"{table}: has .*\({name}\)") as refused:
            bench.engine.lake.delta.open(table)
        go_back(bench, refused)
    bench.join()
    assert len(bench.rows("joined")) == count + 3
    require_exactly_once(bench)


@pytest.mark.parametrize("feature", some(["row tracking", "CHECK", "v2 checkpoints"], 3))
def test_set_between_claim_and_publish(bench: Bench, monkeypatch: pytest.MonkeyPatch, feature: str) -> None:
    """The batch stops with its claims made, and publishes them once the feature is gone."""
    changes, name = SET[feature]
    left = [lambda: alter(bench, "joined", *changes)]
    monkeypatch.setattr(failpoint, "reach", lambda point: left.pop()() if point == "claimed" and left else None)
    bench.clicks(*(click(f"between{feature.replace(' ', '')}{number}", 9 + number, Q) for number in range(3)))
    with pytest.raises(FeatureRefused, match=rf"joined: has .*\({name}\)") as refused:
        bench.join()
    assert not left
    assert len(bench.rows("registry")) == len(bench.hosts("registry")) >= 3
    with pytest.raises(FeatureRefused):
        bench.join()
    go_back(bench, refused)
    assert bench.join()["joined"] == 3
    require_exactly_once(bench)


def test_change_data_feed_is_honoured(bench: Bench) -> None:
    """A reader of the feed gets each row once."""
    path = bench.engine.lake.delta.path("joined")
    alter(bench, "joined", PROPERTY.format("delta.enableChangeDataFeed", "true"))
    since = bench.engine.lake.delta.version("joined")
    bench.clicks(click("fed", 20, Q), click("fed2", 21, Q))
    assert bench.join()["joined"] == 2
    reader = bench.spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", since)
    rows = reader.load(path).select("event_id", "_change_type").collect()
    assert sorted((row[0].split(":")[0], row[1]) for row in rows) == [("fed", "insert"), ("fed2", "insert")]
    require_exactly_once(bench)
