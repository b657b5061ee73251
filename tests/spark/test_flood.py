"""A misspelt column: nearly all goes to quarantine, everybody says so, and there is a way back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from clickjoin.config import load
from clickjoin.jobs.run import drain as drained
from clickjoin.model.errors import ConfigError
from clickjoin.report.export import export
from clickjoin.report.status import status
from tests.sampled import some
from tests.spark.bench import Bench, click, query

QUERIES = [query(f"q{n}", n / 100) for n in range(30)]
CLICKS = [click(f"c{n}", n / 100, QUERIES[n]) for n in range(30)]
LONG = json.dumps(click("long", 9, QUERIES[0], text="x" * 9_000_000))


def drain(bench: Bench, check: bool = True) -> tuple[dict[str, Any], list[str]]:
    said: list[str] = []
    return drained(bench.spark, bench.pipeline, "main", said.append, check=check), said


def test_there_and_back(make: Any) -> None:
    bench = make(foreign={"primary_id": "query_idd"}, retry={"max_age": "3650d"})
    bench.queries(*QUERIES)
    bench.clicks(*CLICKS, LONG)
    result, said = drain(bench)
    (problem,) = result["problems"]
    assert (result["ok"], result["accounts"]["agree"], problem["kind"]) == (False, True, "quarantined")
    assert problem["path"] == f"{bench.folder}/foreign/*"
    assert problem["detail"].startswith("31 of 31 records of the foreign stream went to quarantine, most of them as ")
    assert "bad-primary-id: `query_idd` is missing" in problem["detail"]
    assert sum(line.startswith("problem: quarantined: ") for line in said) == 1
    assert status(bench.engine.lake.delta)["replicas"]["main"]["problems"] == [problem]
    out = bench.folder / "foreign" / "again.jsonl"
    done = export(bench.pipeline, bench.engine.lake.delta, out)
    log, size = (bench.folder / "foreign" / "0.jsonl").read_bytes(), out.stat().st_size
    assert out.read_bytes().partition(b"\n")[2] == log
    assert (done.records, done.bytes, done.reasons, done.without_bytes) == (31, size, {"bad-primary-id": 31}, 0)
    bench.file.write_text(bench.file.read_text().replace("query_idd", "query_id"))
    bench.pipeline = load(bench.file)
    result, _ = drain(bench)
    assert (result["ok"], result["joined"], result["problems"]) == (True, 31, [])


@pytest.mark.parametrize("text", ["[{}]", '{"query_id": "q0"}'])
def test_a_drain_of_a_stream_that_is_one_bad_record(make: Any, text: str) -> None:
    """An array is one record, however many it holds: too few to tell for a batch, and nothing was joined."""
    bench = make()
    (bench.folder / "primary").mkdir(exist_ok=True)
    (bench.folder / "primary" / "0.jsonl").write_text(text + "\n")
    bench.clicks(*CLICKS[:5])
    result, _ = drain(bench)
    (problem,) = result["problems"]
    assert (result["ok"], result["accounts"]["agree"], problem["kind"]) == (False, True, "quarantined")
    assert problem["detail"].startswith("no record of the primary stream was good so far, 1 went to quarantine, most ")
    assert ("`jq -c '.[]' FILE`" in problem["detail"]) == (text == "[{}]")
    bench.queries(QUERIES[0])
    result, _ = drain(bench)
    assert (result["ok"], result["problems"]) == (True, [])


@pytest.mark.parametrize(("good", "problems"), some([(2, 0), (0, 1), (1, 1)], 2))
def test_a_few_good_ones(make: Any, good: int, problems: int) -> None:
    bench = make()
    bench.queries(QUERIES[0])
    bench.clicks(*CLICKS[:good], *["{broken"] * (20 - good))
    bench.join()
    assert len(bench.engine.problems()) == problems
    bench.clicks(*CLICKS[:10], *["{broken"] * 9)  # too few to tell
    bench.join()
    assert len(bench.engine.problems()) == problems
    bench.clicks(*CLICKS)
    bench.join()
    assert bench.engine.problems() == ()


def test_export_of_one_stream_and_reason_once(make: Any, tmp_path: Path) -> None:
    bench = make(limits={"max_record": "5MB"})
    bench.queries("[]")
    bench.clicks("{broken", "[1]", LONG, "{broken again")
    bench.join()
    bench.replica("east").join_once()
    delta = bench.engine.lake.delta
    with pytest.raises(ConfigError, match=r"both streams have such records.*Add --stream"):
        export(bench.pipeline, delta, tmp_path / "out")
    broken = export(bench.pipeline, delta, tmp_path / "broken", reason="broken-json")
    assert (tmp_path / "broken").read_bytes().splitlines()[1:] == [b"{broken", b"{broken again"]
    assert broken.records == 2
    export(bench.pipeline, delta, tmp_path / "all", stream="foreign")
    log = (bench.folder / "foreign" / "0.jsonl").read_bytes()
    assert (tmp_path / "all").read_bytes().partition(b"\n")[2] == log
    with pytest.raises(ConfigError, match="is there already"):
        export(bench.pipeline, delta, tmp_path / "all", stream="foreign")
    with pytest.raises(ConfigError, match="cannot be written"):
        export(bench.pipeline, delta, tmp_path / "no" / "folder", stream="foreign")


def test_export_of_csv_files_with_several_headers(make: Any) -> None:
    """A file for each header, so that each record is read as it was meant."""
    bench = make(foreign={"source": {"kind": "files", "path": "foreign/*.csv"}})
    texts = {"a": "event_id,query_id\nx,y\n", "b": "query_id,event_id\ny,z\ny,w\n", "c": "event_id,query_id\nv,y\n"}
    for name, text in texts.items():
        (bench.folder / "foreign" / f"{name}.csv").write_text(text)
    bench.join()
    delta, out = bench.engine.lake.delta, bench.folder / "out.csv"
    done = export(bench.pipeline, delta, out)
    assert (done.records, done.files) == (4, (str(out), str(bench.folder / "out-2.csv")))
    held = [[line for line in Path(name).read_text().splitlines() if line.strip()] for name in done.files]
    assert [(lines[0], sorted(lines[1:])) for lines in held] == [  # files come in the order of their partitions' names
        ("event_id,query_id", ["v,y", "x,y"]), ("query_id,event_id", ["y,w", "y,z"]),
    ]  # fmt: skip
    one = export(bench.pipeline, delta, bench.folder / "one.csv", path="*/foreign/b.csv")
    assert (one.records, len(one.files)) == (2, 1)
    (bench.folder / "foreign" / "c.csv").unlink()
    with pytest.raises(ConfigError, match=r"c\.csv: is gone"):
        export(bench.pipeline, delta, bench.folder / "none.csv")
    assert not (bench.folder / "none.csv").exists()


def test_export_of_csv(make: Any) -> None:
    bench = make(foreign={"source": {"kind": "files", "path": "foreign/*.csv"}, "event_time": "ts"})
    lines = ["event_id,query_id,time", *(f"{c['event_id']},{c['query_id']},2026-03-01T12:00:00" for c in CLICKS)]
    (bench.folder / "foreign" / "0.csv").write_text("\n".join(lines) + "\n")
    bench.queries(*QUERIES)
    bench.join()
    assert export(bench.pipeline, bench.engine.lake.delta, bench.folder / "foreign" / "again.csv").records == 30
    raw = yaml.safe_load(bench.file.read_text())
    raw["foreign"]["event_time"] = "embedded"
    bench.file.write_text(yaml.safe_dump(raw))
    bench.pipeline = load(bench.file)
    # Where the event's time comes from is fixed with the lake: the same records, in a lake of their own.
    bench.pipeline = bench.pipeline.model_copy(update={"lake": str(bench.folder / "other")})
    (bench.folder / "foreign" / "0.csv").unlink()
    bench.engine = bench.replica("main")
    assert bench.join() == {"primary_in": 30, "events_in": 30, "joined": 30}
