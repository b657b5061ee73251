"""The traffic generator: same seed, same bytes; its truth is true; live ids carry the time of writing."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clickjoin.generate import Clock, Traffic, generate
from clickjoin.generate.draw import draw
from clickjoin.model.errors import ConfigError
from tests import oracle

START = datetime(2026, 1, 1, tzinfo=UTC)
MESSY = Traffic(
    clicks=2_000, queries=800, start=START, disorder=5, late=0.02, orphans=0.01, broken=0.015, duplicates=0.05, seed=7
)
NOW = 2_000_000_000_000_000


def digest(folder: Path) -> str:
    """One fingerprint of all files and their names."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return sha256(b"".join(str(path.relative_to(folder)).encode() + path.read_bytes() for path in files)).hexdigest()


def good_records(folder: Path) -> list[dict[str, Any]]:
    """Good records of a stream, file by file."""
    lines = [line for path in sorted(folder.iterdir()) for line in path.read_bytes().splitlines()]
    return [json.loads(line) for line in lines if oracle.good(line, None, NOW)]


def test_same_seed_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        generate(tmp_path / name, MESSY)
    generate(tmp_path / "other", replace(MESSY, seed=8))
    assert digest(tmp_path / "one") == digest(tmp_path / "two") != digest(tmp_path / "other")


def test_truth_is_what_the_oracle_reads(tmp_path: Path) -> None:
    truth = generate(tmp_path, MESSY)
    clicks = oracle.read_log(f"{tmp_path}/clicks/*", "query_id", NOW)
    queries = oracle.read_log(f"{tmp_path}/queries/*", None, NOW)
    assert (truth.clicks.lines, truth.clicks.events) == (clicks.lines, len(clicks.ids)) == (2_130, 2_000)
    assert (truth.queries.lines, truth.queries.events) == (queries.lines, len(queries.ids)) == (852, 800)
    assert (truth.clicks.duplicates, truth.clicks.broken) == (100, 30)
    assert truth.orphans == sum(query not in queries.ids for query in clicks.ids.values()) == 20
    assert (truth.joinable, truth.complete) == (1_980, True)
    assert json.loads((tmp_path / "truth.json").read_text())["clicks"]["broken"] == 30
    ids = pq.read_table(tmp_path / "truth.parquet").to_pylist()
    assert {row["event_id"]: row["primary_id"] for row in ids if row["stream"] == "clicks"} == clicks.ids
    assert {row["event_id"] for row in ids if row["stream"] == "queries"} == queries.ids.keys()
    assert {row["event_id"] for row in ids if row["orphan"]} == {
        c for c, q in clicks.ids.items() if q not in queries.ids
    }


def test_event_times_lie_in_the_past_and_after_the_query(tmp_path: Path) -> None:
    generate(tmp_path, replace(MESSY, start=None))
    now = datetime.now(UTC).timestamp() * 1e6
    for record in good_records(tmp_path / "clicks"):
        asked, clicked = (int(record[name].rsplit(":", 1)[1]) for name in ("query_id", "event_id"))
        assert asked < clicked <= now


def test_disorder_stays_within_its_bound(tmp_path: Path) -> None:
    generate(tmp_path / "tidy", replace(MESSY, disorder=0, late=0, duplicates=0, files=1))
    generate(tmp_path / "jumbled", replace(MESSY, late=0, duplicates=0, files=1))
    tidy, jumbled = (
        np.array([int(record["event_id"].rsplit(":", 1)[1]) for record in good_records(tmp_path / name / "queries")])
        for name in ("tidy", "jumbled")
    )
    assert (np.diff(tidy) > 0).all()
    assert not (np.diff(jumbled) > 0).all()
    assert (np.maximum.accumulate(jumbled) - jumbled).max() <= 5_000_000


def test_late_queries_are_written_later() -> None:
    drawn = draw(replace(MESSY, disorder=0))
    queries = (drawn.lines.stream == 0) & (drawn.lines.kind == 0)
    behind = drawn.lines.when[queries] - drawn.query_time[drawn.lines.event[queries]]
    assert Counter(behind.tolist()) == {0: 784, 30_000_000: 16}


def test_zipf_makes_some_queries_popular() -> None:
    even, skewed = (
        Counter(draw(replace(MESSY, zipf=zipf)).click_query.tolist()).most_common(1)[0][1] for zipf in (0, 1.2)
    )
    assert even < 12 < 200 < skewed


def test_a_folder_with_logs_is_refused(tmp_path: Path) -> None:
    generate(tmp_path, MESSY)
    before = digest(tmp_path)
    with pytest.raises(ConfigError, match="not empty"):
        generate(tmp_path, MESSY)
    assert digest(tmp_path) == before


@pytest.mark.parametrize("wrong", [{"queries": 0}, {"orphans": 1.5}, {"seed": -1}, {"rate": 10.0, "duration": 5.0}])
def test_options_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"range|duration"):
        Traffic(**wrong)


@dataclass
class FakeTime:
    """A clock that moves only when someone waits, and sometimes jumps."""

    now: float = 1_800_000_000.0
    waits: int = 0

    def sleep(self, seconds: float) -> None:
        """Move on; every hundredth wait is a pause of a second."""
        self.waits += 1
        self.now += 1.0 if self.waits % 100 == 0 else seconds


def test_live_ids_carry_the_moment_of_writing(tmp_path: Path) -> None:
    time, seen = FakeTime(), {}

    def progress(done: int, whole: int) -> None:
        for path in (tmp_path / "clicks").iterdir():
            for line in path.read_bytes().splitlines():
                seen.setdefault(json.loads(line)["event_id"], time.now)

    traffic = Traffic(clicks=100, queries=400, rate=100, click_delay=0.5, click_delay_max=2, late=0.1, late_seconds=3)
    truth = generate(tmp_path, traffic, progress=progress, clock=Clock(lambda: time.now, time.sleep))
    assert truth.joinable == truth.clicks.events == len(seen) == 100
    for event_id, moment in seen.items():
        assert 0 <= moment - int(event_id.rsplit(":", 1)[1]) / 1e6 < 0.001
    known = oracle.read_log(f"{tmp_path}/queries/*", None, NOW).ids
    assert {record["query_id"] for record in good_records(tmp_path / "clicks")} <= known.keys()
    assert len(known) == 400


def test_live_traffic_ends_when_it_says() -> None:
    """Not when the last click, minutes after its query, would have come."""
    traffic = Traffic(clicks=900, queries=300, rate=40, duplicates=0.05)
    drawn = draw(traffic)
    assert traffic.seconds == 30
    assert drawn.lines.when.max() <= 30.01 * 1_000_000
    assert (drawn.click_time > drawn.query_time[drawn.click_query]).all()


def test_replay_at_a_rate_writes_the_same_bytes(tmp_path: Path) -> None:
    time = FakeTime()
    generate(tmp_path / "slow", replace(MESSY, rate=500), clock=Clock(lambda: time.now, time.sleep))
    generate(tmp_path / "fast", MESSY)
    assert digest(tmp_path / "slow") == digest(tmp_path / "fast")
    assert time.now - 1_800_000_000 == pytest.approx(2_982 / 500, abs=1.1)


def test_cut_short_the_truth_is_of_what_is_there(tmp_path: Path) -> None:
    time = FakeTime()

    def progress(done: int, whole: int) -> None:
        if done > whole // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        generate(
            tmp_path,
            Traffic(clicks=300, queries=300, rate=100),
            progress=progress,
            clock=Clock(lambda: time.now, time.sleep),
        )
    truth = json.loads((tmp_path / "truth.json").read_text())
    assert not truth["complete"]
    assert truth["clicks"]["lines"] == oracle.read_log(f"{tmp_path}/clicks/*", "query_id", NOW).lines


@settings(max_examples=25, deadline=None)
@given(
    clicks=st.integers(0, 200), queries=st.integers(1, 60), files=st.integers(1, 5), seed=st.integers(0, 2**40),
    duplicates=st.floats(0, 1), broken=st.floats(0, 1), orphans=st.floats(0, 1), late=st.floats(0, 1),
)  # fmt: skip
def test_sums_agree_for_any_options(tmp_path_factory: pytest.TempPathFactory, **options: Any) -> None:
    folder = tmp_path_factory.mktemp("any")
    truth = generate(folder, Traffic(start=START, **options))
    for stream, name in ((truth.clicks, "clicks"), (truth.queries, "queries")):
        log = oracle.read_log(f"{folder}/{name}/*", "query_id" if name == "clicks" else None, NOW)
        assert stream.lines == stream.events + stream.duplicates + stream.broken == log.lines
        assert stream.events == len(log.ids) == options[name]
    assert truth.joinable + truth.orphans == truth.clicks.events
