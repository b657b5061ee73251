"""The benchmark's limit: DuckDB's tables hold what clickjoin's do, and its ids pass the check of the others."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from benchmarks.goals import GOALS
from benchmarks.throughput import limit
from benchmarks.throughput.work import STREAMS, Seen, Work, check, make
from clickjoin.schemas import BY_NAME


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Work:
    """Logs in which some lines come twice."""
    return make(tmp_path_factory.mktemp("limit") / "logs", 3000, 1000, 1)


def test_each_joinable_click_is_there_once(work: Work, tmp_path: Path) -> None:
    limit.fill([work.glob(stream) for stream in STREAMS], tmp_path / "out")
    assert check(work, str(tmp_path / "out/joined.parquet")) == Seen(3000, 0, 0, 0)
    held = {name: pq.read_table(tmp_path / f"out/{name}.parquet") for name in limit.WRITTEN}
    lines = [work.truth[stream]["lines"] for stream in STREAMS]
    assert [held["primary"].num_rows, held["foreign"].num_rows] == lines, "repeats are landed"
    assert sum(lines) > 4000
    for name, rows in held.items():
        left_out = {"offset"} if name in ("primary", "foreign") else set()
        both = {"foreign_record", "primary_record"} if name == "joined" else set()
        assert set(rows.column_names) == set(BY_NAME[name].names) - left_out | both


def test_the_check_sees_what_was_not_dropped(work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limit, "JOIN", limit.JOIN.replace("WHERE rowid IN", "WHERE true OR rowid IN"))
    limit.fill([work.glob(stream) for stream in STREAMS], tmp_path / "out")
    assert check(work, str(tmp_path / "out/joined.parquet")).doubled


def test_the_goal_is_of_seconds() -> None:
    goal = next(goal for goal in GOALS if "DuckDB" in goal.what)
    found = {"found": {"clickjoin": {"median": 6.0}, "DuckDB, the limit": {"median": 3.0}}}
    assert goal.row(found).endswith("| at most 1.5 | 2.00 | no |")
    assert goal.row(None).endswith("| not measured | |")
