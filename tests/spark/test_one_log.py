"""One log that serves both streams: each record lands once, with whom it belongs to, and verify knows the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from clickjoin import lake_setup
from clickjoin.config import load
from clickjoin.engine import Engine
from clickjoin.jobs.run import drain as drained
from clickjoin.lake_setup import initialise
from clickjoin.model.errors import ConfigError
from clickjoin.schemas import METRICS
from clickjoin.schemas.base import Table
from tests.sampled import in_full
from tests.spark.bench import Bench, click, crash_at, query
from tests.spark.hand import Hand, found, verify

LOG = {"kind": "files", "path": "primary/*"}
FIELDS: dict[str, Any] = {
    "primary": {"source": LOG, "where": {"type": "page"}},
    "foreign": {"source": LOG, "where": {"type": ["click", "tap"]}},
}
KINDS = {"primary": ["page"], "foreign": ["click", "tap"]}
Q = query("q", type="page")
OTHERS = [{"type": "beat"}, {"level": 3}, query("bot", type="bot")]
BROKEN = ["{broken", "[1]"]


def clicks(low: int, high: int) -> list[dict[str, Any]]:
    return [click(f"c{n}", 2 + n, Q, type="tap" if n % 2 else "click") for n in range(low, high)]


def write(bench: Bench, *records: Any) -> None:
    bench.queries(*records)


@pytest.mark.parametrize("tasks", [False, True])
def test_all_of_it_lands_once(make: Callable[..., Bench], tasks: bool) -> None:
    """Read by the driver, and by tasks."""
    bench = make(**FIELDS | ({"batch": {"driver_bytes": "0B"}} if tasks else {}))
    write(bench, Q, *OTHERS, *clicks(0, 4), *BROKEN, {"type": "tap"})
    settled = bench.engine.join_once()
    assert settled
    expected = {"primary_in": 1, "events_in": 4, "joined": 4, "quarantined": 3, "passed_over": 3}
    assert {name: settled.metrics[name] for name in expected} == expected
    bad = [(stream, reason) for stream, reason, _ in bench.rows("quarantine", "stream", "reason", "raw")]
    assert bad == [("foreign", "missing-id"), ("primary", "broken-json"), ("primary", "not-an-object")]
    assert bench.accounts()["agree"]
    assert not found(verify(bench))


@pytest.mark.parametrize(("table", "after"), [("primary", True), ("foreign", True), ("quarantine", False)])
def test_landed_in_part(make: Callable[..., Bench], table: str, after: bool) -> None:
    """A batch that stopped between its commits goes on with the rest; what was passed over is not known then."""
    bench = make(**FIELDS)
    write(bench, Q, *OTHERS, *clicks(0, 3), *BROKEN)
    with crash_at(bench.engine.lake, table, after=after):
        bench.join()
    bench.engine = bench.replica("main")
    settled = bench.engine.join_once()
    assert settled
    assert (settled.metrics["joined"], settled.metrics["quarantined"]) == (3, 2)
    assert settled.metrics["passed_over"] in (None, 3)
    assert len(bench.rows("quarantine", "raw")) == 2
    assert not found(verify(bench))


@in_full
def test_what_is_gone_from_a_table_is_found_and_landed_again(make: Callable[..., Bench]) -> None:
    bench = make(**FIELDS)
    write(bench, Q, *OTHERS, *clicks(0, 3))
    bench.join()
    Hand(bench).delete("foreign", "c1")
    assert found(verify(bench))["unread"] == 1
    verify(bench, repair=True)
    assert bench.hosts("foreign") == ["c0", "c1", "c2"]
    assert bench.hosts("joined") == ["c0", "c1", "c2"]
    assert not found(verify(bench))


def test_two_replicas(make: Callable[..., Bench]) -> None:
    bench = make(**FIELDS)
    other: Engine = bench.replica("b")
    write(bench, Q, *clicks(0, 5), *OTHERS)
    bench.join()
    assert other.join_once()
    write(bench, *clicks(5, 9), *OTHERS)
    assert other.join_once()
    bench.join()
    assert bench.hosts("joined") == sorted(f"c{n}" for n in range(9))
    assert not found(verify(bench))


def test_other_conditions_are_refused(make: Callable[..., Bench]) -> None:
    bench = make(**FIELDS)
    text = bench.file.read_text()
    for before, after in (("- tap", "- swipe"), ("type: page", "type: view")):
        assert before in text
        bench.file.write_text(text.replace(before, after))
        with pytest.raises(ConfigError, match="begun with"):
            initialise(load(bench.file))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"primary": {"where": {}}}, "maps a field"),
        ({"foreign": {"source": LOG | {"records": "Records"}, "where": {"type": "click"}}}, "the same source"),
    ],
)
def test_what_is_no_way_to_share_a_log(make: Callable[..., Bench], change: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        make(**{name: {**FIELDS[name], **change.get(name, {})} for name in ("primary", "foreign")})


def test_a_log_that_nobody_divides_is_refused(make: Callable[..., Bench]) -> None:
    with pytest.raises(ConfigError, match="say with `where` which records are whose"):
        make(primary={"source": LOG}, foreign={"source": LOG})


def test_a_lake_from_before_gains_the_column(make: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch) -> None:
    """Its books lack the count of what was passed over until a process starts on it, and can be read until then."""
    older = Table(METRICS.name, METRICS.purpose, METRICS.columns[:-1], METRICS.partitions, METRICS.statistics)
    with monkeypatch.context() as patch:
        patch.setitem(lake_setup.BY_NAME, METRICS.name, older)
        patch.setattr(lake_setup, "METRICS", older)
        bench = make()
    assert "passed_over" not in bench.engine.lake.delta.columns(METRICS.name)
    bench.engine = bench.replica("main")
    assert bench.engine.lake.delta.columns(METRICS.name)["passed_over"] == "long"


def test_a_drain_says_which_conditions_are_true_of_no_record(make: Callable[..., Bench]) -> None:
    log = {"primary": FIELDS["primary"], "foreign": {"source": LOG, "where": {"type": "clik"}}}
    bench = make(**log)
    write(bench, Q, *clicks(0, 3))
    done = drained(bench.spark, bench.pipeline, "main", lambda _: None, check=True)
    said = [(one["kind"], one["path"]) for one in done["problems"]]
    assert (done["ok"], done["passed_over"], said) == (True, 3, [("took-nothing", "foreign.where")])
    assert 'no record has matched yet (type is "clik"), and 3 records of this drain' in done["problems"][0]["detail"]
    again = drained(bench.spark, bench.pipeline, "main", lambda _: None, check=True)
    assert not again["problems"]


def test_what_one_stream_has_judged_is_not_landed_by_the_other(make: Callable[..., Bench]) -> None:
    """A record that was too long for the first stream would be the other's, by limits that were raised since."""
    bench = make(**FIELDS, limits={"max_record": "1KB"})
    long = [click(f"long{n}", 9 + n, Q, type="click", note="x" * 2000) for n in range(2)]
    write(bench, Q, *clicks(0, 2), *long)
    bench.join()
    limited(bench, "1KB", "1MB")
    assert not found(verify(bench))
    Hand(bench).delete("foreign", "c1")
    assert found(verify(bench))["unread"] == 1
    verify(bench, repair=True)
    assert not found(verify(bench))
    assert bench.hosts("foreign") == ["c0", "c1"]
    assert len(bench.rows("quarantine", "reason")) == 2


@in_full
def test_what_was_good_stays_so_by_lower_limits(make: Callable[..., Bench]) -> None:
    bench = make(**FIELDS)
    write(bench, Q, *clicks(0, 2), click("long", 9, Q, type="click", note="x" * 2000), *BROKEN)
    bench.join()
    limited(bench, "1MB", "1KB")
    assert not found(verify(bench))
    Hand(bench).delete("foreign", "long")
    assert found(verify(bench))["unread"] == 1
    bench.engine.lake.delta.open("quarantine").delete()
    verify(bench, repair=True)
    assert sorted(bench.hosts("foreign")) == ["c0", "c1", "long"]
    assert {reason for (reason,) in bench.rows("quarantine", "reason")} == {"broken-json", "not-an-object"}
    assert not found(verify(bench))


def test_what_both_streams_take_is_missed_in_either(make: Callable[..., Bench]) -> None:
    """That the first has quarantined it, as one that names no event of its own, says nothing of the other's row."""
    both = {name: {**FIELDS[name], "where": {"type": [*kinds, "both"]}} for name, kinds in KINDS.items()}
    bench = make(primary=both["primary"] | {"event_id": "query_key"}, foreign=both["foreign"])
    write(bench, {**Q, "query_key": Q["event_id"]}, *clicks(0, 2), click("b", 9, Q, type="both"))
    bench.join()
    assert bench.hosts("foreign") == ["b", "c0", "c1"]
    assert bench.rows("quarantine", "stream", "reason") == [("primary", "missing-id")]
    Hand(bench).delete("foreign", "b")
    assert found(verify(bench))["unread"] == 1
    verify(bench, repair=True)
    assert bench.hosts("foreign") == ["b", "c0", "c1"]
    assert not found(verify(bench))


def limited(bench: Bench, before: str, now: str) -> None:
    """Take up another limit of a record's length."""
    text = bench.file.read_text()
    bench.file.write_text(text.replace(before, now) if before in text else f"{text}limits: {{max_record: {now}}}\n")
    bench.reload()
