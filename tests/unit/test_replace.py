"""Old reports go, and only those; rows that are there twice are replaced by one, unless they are others by then."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.engines.arrow import ArrowLake, ArrowTables
from clickjoin.engines.arrow.replace_rows import replace_rows
from clickjoin.model.txn import Txn
from clickjoin.schemas import REGISTRY, VERIFICATION
from tests.unit.test_insert_new import Late
from tests.unit.test_rewrite_rows import another, claims, ids_of, packed

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_old_rows_go(tmp_path: Path) -> None:
    delta = ArrowTables(str(tmp_path))
    delta.create(VERIFICATION)
    assert not delta.drop_before("verification", "at", NOON)
    for hours in (-2, -1, 0, 1):
        rows = [
            {"run": f"main/{hours}", "at": NOON + timedelta(hours=hours), "kind": kind} for kind in ("lost", "unread")
        ]
        delta.append("verification", rows)
    assert delta.drop_before("verification", "at", NOON)
    assert sorted(delta.read("verification")["run"].to_pylist()) == ["main/0"] * 2 + ["main/1"] * 2
    version = delta.version("verification")
    assert not delta.drop_before("verification", "at", NOON)
    assert delta.version("verification") == version


def doubled(root: Path) -> tuple[ArrowLake, pa.Table]:
    """A registry with a claim that is there three times, twice in one file; and all rows of it."""
    lake = another(root)
    lake.delta.create(REGISTRY)
    for ids in ("aab", "a"):
        lake.delta.append_table("registry", claims(ids))
    held = lake.delta.read("registry")
    return lake, held.filter(pc.equal(held["event_id"], "a"))


def replace(lake: ArrowLake, held: pa.Table, version: int) -> bool:
    return replace_rows(lake, "registry", version, held, held.slice(0, 1), ("token",), Txn("repair", 1))


def test_one_of_three_rows_is_kept(tmp_path: Path) -> None:
    lake, held = doubled(tmp_path)
    version = lake.delta.version("registry")
    assert replace(lake, held, version)
    assert ids_of(lake) == ["a", "b"]
    assert lake.delta.latest_txn_version("registry", "repair") == 1
    assert replace(another(tmp_path), held, version)  # a copy of the same batch
    assert (ids_of(lake), lake.delta.version("registry")) == (["a", "b"], version + 1)


def test_rows_that_were_moved_or_removed_since_are_not_replaced(tmp_path: Path) -> None:
    lake, held = doubled(tmp_path)
    version = lake.delta.version("registry")
    packed(lake)
    assert not replace(lake, held, version)
    assert ids_of(lake) == ["a", "a", "a", "b"]
    version = lake.delta.version("registry")
    another(tmp_path).delta.open("registry").delete("event_id = 'a'")
    assert not replace(lake, held, version)
    assert ids_of(lake) == ["b"]
    assert lake.delta.latest_txn_version("registry", "repair") == -1


def test_another_comes_first(tmp_path: Path) -> None:
    lake, held = doubled(tmp_path)
    version = lake.delta.version("registry")
    lake.delta = Late(str(tmp_path), lambda: another(tmp_path).delta.append_table("registry", claims("c")))
    assert replace(lake, held, version)
    assert ids_of(lake) == ["a", "b", "c"]
