"""What happened to tables themselves is named by verify, and repaired from what is left, so that all goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from clickjoin.jobs.checking import verify as job
from clickjoin.model.errors import LakeError
from clickjoin.verification import records, reland
from clickjoin.verification.findings import Report
from tests.sampled import in_full, some
from tests.spark.bench import NOON, Bench, click, query
from tests.spark.count import agrees
from tests.spark.hand import found, stopped, verify
from tests.spark.test_agreement import Q, bench, built, drain, folder, keep, more, newest

__all__ = ["bench", "built"]
LATE = query("late", 4)


def repair(bench: Bench) -> Report:
    """Repair what there is, in one go; a second look finds nothing."""
    report = verify(bench, repair=True)
    assert report.ok, (found(report), report.counts)
    bench.engine = bench.replica("main")  # and every program starts
    again = verify(bench)
    assert (found(again), again.ok) == ({}, True)
    return report


def whole(bench: Bench, *hosts: str) -> None:
    """All that was published is there once, by either replica; events that were dispatched again are joined."""
    bench.clock.now += 60
    drain(bench)
    drain(bench, "west")
    assert bench.hosts("joined") == sorted(["a", "c", *hosts])
    assert agrees(bench)
    assert found(verify(bench)) == {}


def data_file(bench: Bench, name: str) -> Path:
    """A file of the newest batch."""
    return max(folder(bench, name).rglob("*.parquet"), key=lambda path: path.stat().st_mtime_ns)


def spoil(file: Path, how: str) -> None:
    if how == "gone":
        file.unlink()
    elif how == "cut":
        file.write_bytes(file.read_bytes()[:-100])
    else:
        file.write_bytes(b"\0" * file.stat().st_size)


SPOILT = (
    ("registry", "gone"), ("registry", "zeros"), ("filtered", "gone"), ("unjoinable", "gone"), ("pending", "gone"),
    ("joined", "gone"), ("joined", "cut"), ("foreign", "gone"), ("primary", "zeros"), ("quarantine", "cut"),
)  # fmt: skip


@pytest.mark.parametrize(("name", "how"), some(SPOILT, 10))
def test_a_data_file(bench: Bench, name: str, how: str) -> None:
    bench.queries(query("q2", 1), "{not a query")
    bench.clicks("{broken")
    more(bench, "d")
    file = data_file(bench, name)
    spoil(file, how)
    kind = "missing_file" if how == "gone" else "damaged_file"
    seen = verify(bench)
    assert found(seen)[kind] == 1
    samples = next(count.samples for count in seen.counts if count.kind == kind)
    assert (samples[0]["table"], Path(samples[0]["path"]).name) == (name, file.name)
    report = repair(bench)
    assert next(count.repaired for count in report.counts if count.kind == kind) == 1
    whole(bench, "d")


@in_full
def test_files_of_more_bytes_than_are_read_again_at_a_time(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that can be read again comes back before the files are taken out: round by round."""
    for module in (records, reland):
        monkeypatch.setattr(module, "MAX_BYTES", 10)
    held = sorted(bench.hosts("primary"))
    for file in folder(bench, "primary").rglob("*.parquet"):
        file.unlink()
    repair(bench)
    assert sorted(set(bench.hosts("primary"))) == sorted(set(held))


@in_full
def test_what_was_good_once_comes_back_whatever_the_limits_say_by_now(make: Any) -> None:
    made: Bench = make(limits={"earliest": "2020-01-01"})
    made.queries(Q)
    made.clicks(click("a", 2, Q), click("old", -86_400 * 400, Q), "{broken")
    made.join()
    made.file.write_text(made.file.read_text().replace("2020-01-01", "2026-01-01"))
    made.reload()
    for file in folder(made, "foreign").rglob("*.parquet"):
        file.unlink()
    repair(made)
    assert made.hosts("foreign") == ["a", "old"]
    assert made.rows("quarantine", "reason") == [("broken-json",)]
    assert agrees(made)


@pytest.mark.parametrize("name", some(("journal", "registry_boundary", "shard_timeline"), 3))
def test_a_data_file_of_the_books(bench: Bench, name: str) -> None:
    from datetime import UTC, datetime

    from clickjoin.registry.boundary import advance

    advance(bench.engine.lake.delta, 4, datetime.fromtimestamp(NOON - 7200, UTC), datetime.now(UTC))
    data_file(bench, name).unlink()
    with pytest.raises(LakeError, match=rf"/{name}.*(Restore|journal rebuild)"):
        verify(bench, repair=True)


@pytest.mark.parametrize("name", some(("registry", "foreign", "pending", "joined", "unjoinable", "metrics"), 6))
def test_an_older_table(bench: Bench, name: str) -> None:
    back = keep(bench, name)
    bench.clicks(click("x", 5, query("never", 2), position=1))
    more(bench, "d")
    bench.retry(after=20)
    back()
    with pytest.raises(LakeError, match=rf"/{name}: is older"):
        bench.replica("main")
    report = repair(bench)
    assert found(report)["old_table"] >= 1
    whole(bench, "d")


@in_full
@pytest.mark.parametrize("name", some(("registry", "joined"), 2))
def test_an_older_table_that_lacks_several_batches(bench: Bench, name: str) -> None:
    """One repair accounts for all of them, not for the newest alone: `repair` looks again, and finds nothing."""
    back = keep(bench, name)
    for host in "def":
        more(bench, host)
    back()
    report = repair(bench)
    assert found(report)["overwritten_commit"] == 2
    whole(bench, "d", "e", "f")


@in_full
def test_more_to_repair_than_a_run_does_says_so(make: Any) -> None:
    made: Bench = make(batch={"max_events": 2})
    back = keep(made, "joined")
    made.queries(Q)
    made.clicks(*[click(host, nth + 2, Q, position=nth) for nth, host in enumerate("abc")])
    drain(made)
    back()
    first = verify(made, repair=True)
    assert "again for the rest" in first.verdict
    assert "again" not in verify(made, repair=True).verdict


@in_full
def test_an_older_pending_that_a_batch_under_way_explains(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits is put back to before a batch that is not settled, after a retry has claimed what that let wait."""
    back = keep(bench, "pending")
    bench.clicks(click("d", 9, LATE, position=1))
    stopped(monkeypatch, "set-aside", bench.engine.join_once)
    bench.queries(LATE)
    stopped(monkeypatch, "landed", bench.replica("west").join_once)
    bench.clock.now += 60
    bench.engine = bench.replica("main")
    stopped(monkeypatch, "claimed", bench.engine.retry_once)
    assert "d" in bench.claims()
    back()
    with pytest.raises(LakeError, match=r"/pending: is older than .*: batch 2 of bench/main/retry was planned on its"):
        bench.replica("main")
    report = repair(bench)
    assert found(report) == {"old_table": 1, "claim_without_output": 1}
    whole(bench, "d")


@pytest.mark.parametrize("name", some(("registry", "joined", "foreign", "journal"), 4))
@pytest.mark.parametrize("content", some((b"", b'{"commitInfo":{}}\n{"ad'), 2))
def test_a_torn_commit(bench: Bench, name: str, content: bytes) -> None:
    more(bench, "d")
    newest(bench, name).write_bytes(content)
    with pytest.raises(LakeError, match="json: is "):
        verify(bench)
    report = repair(bench)
    assert found(report)["torn_log"] == 1
    whole(bench, "d")


def test_a_gap_in_the_journal_is_repaired_by_the_job(bench: Bench) -> None:
    """Under a name that nobody runs: who joins what it dispatches again is asked of a journal that nobody can read."""
    more(bench, "d")
    newest(bench, "journal").unlink()
    more_of_it = folder(bench, "journal") / "_delta_log" / f"{int(newest(bench, 'journal').stem) + 2:020}.json"
    more_of_it.write_bytes(newest(bench, "journal").read_bytes())
    done = job(bench.spark, bench.pipeline, "nobody", lambda _: None, since="2026-03-01T00:00Z", repair=True)
    assert done["found"]["torn_log"] == 1
    whole(bench, "d")


@pytest.mark.parametrize("name", some(("foreign", "journal", "findings"), 1))
def test_a_pointer_beyond_the_end_of_a_log(bench: Bench, name: str) -> None:
    """No engine opens the table: the logs are looked at, and made whole, before anything is read."""
    pointer = folder(bench, name) / "_delta_log" / "_last_checkpoint"
    pointer.write_text('{"version":999,"size":3}')
    with pytest.raises(LakeError, match="names checkpoint 999, which is not there"):
        verify(bench)
    repair(bench)
    whole(bench)


def overwrite(bench: Bench, name: str, version: int) -> None:
    """Put another commit in the place of one, as a rename does."""
    entry = folder(bench, name) / "_delta_log" / f"{version:020}.json"
    entry.write_text(json.dumps({"commitInfo": {"timestamp": 0, "operation": "OPTIMIZE"}}) + "\n")


@pytest.mark.parametrize("name", some(("registry", "joined", "foreign", "pending"), 4))
def test_a_commit_that_another_has_overwritten(bench: Bench, name: str) -> None:
    more(bench, "d")
    version = bench.engine.lake.delta.version(name)
    more(bench, "e")
    overwrite(bench, name, version)
    bench.engine = bench.replica("main")
    seen = verify(bench)
    assert found(seen)["overwritten_commit"] == 1
    samples = next(count.samples for count in seen.counts if count.kind == "overwritten_commit")
    assert (samples[0]["table"], samples[0]["token"]) == (name, "bench/main/join/3")
    repair(bench)
    whole(bench, "d", "e")


def test_a_drain_says_which_file_and_what_to_do(bench: Bench) -> None:
    from clickjoin.spark.failures import translate

    file = data_file(bench, "registry")
    file.unlink()
    with pytest.raises(Exception, match=r"parquet") as caught:
        drain(bench, "west")
    ours = translate(caught.value)
    assert isinstance(ours, LakeError)
    assert file.name in str(ours)
    assert "`clickjoin verify --repair`" in ours.remedy


def test_what_is_wrong_in_no_way_is_quiet(bench: Bench) -> None:
    bench.clicks(click("n", 30, Q, position=1))
    bench.join()
    report = verify(bench, repair=True)
    assert (found(report), report.ok) == ({}, True)
