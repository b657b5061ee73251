"""Checks before a pipeline runs: its adapter's columns, and whether its logs are there."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest

from clickjoin.config import Pipeline
from clickjoin.engines.arrow import ArrowTables
from clickjoin.kernel.adapter import ArrowAdapter
from clickjoin.lake_setup import initialise
from clickjoin.report.validate import validate
from clickjoin.schemas import BY_NAME


class Taken(ArrowAdapter):
    columns: ClassVar[Mapping[str, str]] = {"Token": "STRING", "bucket": "STRING", "fine": "STRING"}


class Odd(ArrowAdapter):
    columns: ClassVar[Mapping[str, str]] = {"parts": "MAP<STRING, INT>"}


def pipeline(folder: Path, **more: Any) -> Pipeline:
    primary = {"source": {"kind": "files", "path": f"{folder}/queries/*"}, "event_id": "id", "event_time": "embedded"}
    foreign = {**primary, "source": {"kind": "files", "path": f"{folder}/clicks/*"}}
    foreign |= {"primary_id": "q", "primary_time": "embedded"}
    raw = {"pipeline": "p", "engine": "arrow", "lake": str(folder), "primary": primary, "foreign": foreign, **more}
    return Pipeline.model_validate(raw)


def timed(folder: Path, primary_time: Any) -> Pipeline:
    """The same with times in a column."""
    whole = pipeline(folder).model_dump(exclude_defaults=True)
    whole["primary"]["event_time"] = whole["foreign"]["event_time"] = "at"
    whole["foreign"]["primary_time"] = primary_time
    return Pipeline.model_validate(whole)


def findings(chosen: Pipeline) -> list[str]:
    return validate(chosen).problems


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    for name in ("queries", "clicks"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "0.jsonl").write_text('{"id": "a:1:1600000000000000", "q": "a:1:1600000000000000"}\n')
    return tmp_path


def test_all_is_well(logs: Path) -> None:
    assert findings(pipeline(logs)) == []
    assert sorted(path.name for path in logs.iterdir()) == ["clicks", "queries"]  # and nothing was made


def test_no_folder(logs: Path) -> None:
    (logs / "clicks" / "0.jsonl").unlink()
    (logs / "clicks").rmdir()
    found = findings(pipeline(logs))
    assert len(found) == 1
    assert found[0].startswith("foreign.source: missing: ")
    assert found[0].count(f"{logs}/clicks") == 1


def test_no_file(logs: Path) -> None:
    (logs / "queries" / "0.jsonl").unlink()
    (found,) = findings(pipeline(logs))
    assert found.startswith("primary.source")
    assert f"no file matches {logs}/queries/*" in found


def test_no_whole_record(logs: Path) -> None:
    (logs / "queries" / "0.jsonl").write_text('{"id"')
    (found,) = findings(pipeline(logs))
    assert found == (
        f"primary.source.path {logs}/queries/*: no file with a whole record matches; check folder and pattern"
    )


@pytest.mark.parametrize(
    ("adapter", "message"),
    [
        (f"{__name__}:Taken", r"columns Token, bucket are taken. Give them other names"),
        (f"{__name__}:Odd", r"type MAP<STRING, INT> is not supported"),
        ("no_such_module:Mine", r"cannot be imported"),
    ],
)
def test_adapters(logs: Path, adapter: str, message: str) -> None:
    (found,) = findings(pipeline(logs, adapter=adapter))
    assert message in found


def test_processing(logs: Path) -> None:
    assert findings(pipeline(logs, process={"key": "foreign_record.item"})) == []
    (found,) = findings(pipeline(logs, process={"key": ["foreign_record.item", "item.id"]}))
    assert found.startswith("process.key: item.id: the output has no column item; it has event_id, event_time,")
    (found,) = findings(pipeline(logs, process={"key": "event_id", "args": {"wide": 1}}))
    assert "unexpected keyword argument 'wide'. Its arguments are window, " in found


def test_everything_at_once(tmp_path: Path) -> None:
    found = findings(pipeline(tmp_path / "nowhere", adapter="no_such_module:Mine"))
    assert [text.split()[0] for text in found] == ["adapter", "primary.source:", "foreign.source:"]


def changed_pipeline(logs: Path, part: str, **fields: Any) -> Pipeline:
    raw = pipeline(logs).model_dump(include={"pipeline", "lake", "primary", "foreign"})
    raw[part] = raw.get(part, {}) | fields
    return Pipeline.model_validate(raw)


def changed(logs: Path, part: str, **fields: Any) -> list[str]:
    return findings(changed_pipeline(logs, part, **fields))


@pytest.mark.parametrize(
    ("stream", "fields", "words"),
    [
        ("primary", {"event_id": "idd"}, ["primary.event_id: none of 1 records has a field `idd`; they have id, q"]),
        ("foreign", {"event_time": "ts"}, ["foreign.event_time: none of 1 records has a field `ts`; they have id, q"]),
        (
            "foreign",
            {"primary_id": "qq", "primary_time": "when"},
            ["foreign.primary_id: none of 1 records has a field `qq`", "foreign.primary_time: none of 1 records"],
        ),
        ("foreign", {"event_time": "q"}, ["foreign: 1 of 1 records that were looked at would go to quarantine, most"]),
        ("primary", {"event_time": "uuid7"}, ["as no-time-in-id: the event id is not of the form a UUIDv7"]),
    ],
)
def test_a_column_that_no_record_has(logs: Path, stream: str, fields: dict[str, str], words: list[str]) -> None:
    found = changed(logs, stream, **fields)
    assert len(found) == len(words)
    assert all(part in text for part, text in zip(words, found, strict=True))


@pytest.mark.parametrize("packed", [False, True])
def test_a_column_that_no_header_names(logs: Path, packed: bool) -> None:
    (logs / "clicks" / "0.jsonl").unlink()
    text = b"id,query\na:1:1600000000000000,b:1:1600000000000000\n"
    path = logs / "clicks" / ("0.csv.gz" if packed else "0.csv")
    path.write_bytes(gzip.compress(text) if packed else text)
    os.utime(path, (1_700_000_000, 1_700_000_000))
    # Two: the first line may be a record of a file that has no header.
    assert findings(pipeline(logs)) == ["foreign.primary_id: none of 2 records has a field `q`; they have id, query"]


def test_some_bad_records_are_the_records_fault(logs: Path) -> None:
    with (logs / "clicks" / "0.jsonl").open("a") as log:
        log.write("{broken\n" * 10)
    (problem,) = findings(pipeline(logs))
    assert problem.startswith("foreign quarantine: 90.9% of the sample, which would not be joined")
    assert findings(pipeline(logs, validation={"quarantine": 0.95})) == []


def test_a_file_whose_lines_end_in_cr_alone(logs: Path) -> None:
    """It is one bad record, which is no share of many; but nothing of it is read."""
    clicks = [f"a:1:{1_600_000_000_000_000 + at},a:1:1600000000000000" for at in range(500)]
    (logs / "clicks" / "1.csv").write_text("".join(f"{line}\n" for line in ["id,q", *clicks]))
    (logs / "clicks" / "2.csv").write_bytes("\r".join(["id,q", *clicks, "\n"]).encode())
    (problem,) = findings(pipeline(logs))
    assert problem.startswith(f"foreign.source: {logs}/clicks/2.csv: the lines of the file end in CR alone")


def test_nearly_all_records_bad_are_the_files_fault(logs: Path) -> None:
    with (logs / "clicks" / "0.jsonl").open("a") as log:
        log.write("{broken\n" * 50)
    (found,) = findings(pipeline(logs))
    assert found.startswith("foreign: 50 of 51 records that were looked at would go to quarantine, most of them as ")
    assert found.endswith("an array: by `jq -c '.[]' FILE`)")


def test_values_that_do_not_fit_their_column(logs: Path) -> None:
    (found,) = changed(logs, "output", columns={"word": {"from": "foreign.q", "type": "INT"}})
    assert found.startswith("output.columns.word: 1 of 1 values do not fit, such as: column word: foreign.q is ")


def test_a_column_of_another_type_than_the_lake_has(logs: Path) -> None:
    initialise(changed_pipeline(logs, "output", columns={"word": {"from": "foreign.q", "type": "STRING"}}))
    (found,) = changed(logs, "output", columns={"word": {"from": "foreign.id", "type": "INT"}})
    assert "column word is string, and output.columns makes it INT" in found


def test_a_lake_that_was_begun_otherwise(logs: Path) -> None:
    first = pipeline(logs)
    initialise(first)
    assert findings(first) == []
    changed = first.model_copy(update={"registry": first.registry.model_copy(update={"bucket": 900})})
    (found,) = findings(changed)
    assert "registry.bucket is 900 in the pipeline's file, and the lake was begun with 3600" in found


def test_what_was_read_is_counted_by_reason(logs: Path) -> None:
    with (logs / "clicks" / "0.jsonl").open("a") as log:
        log.write('{broken\n{"id": ""}\n{"id": "a:1:1600000000000001", "q": "b:1:1600000000000000"}\n{broken too\n')
    found = validate(pipeline(logs))
    clicks = found.samples["foreign"]
    assert (clicks.read, clicks.good) == (5, 2)
    place = f"{logs}/clicks/0.jsonl"
    assert [(bad.reason, bad.count, bad.path, bad.offset) for bad in clicks.bad] == [
        ("broken-json", 2, place, 60),
        ("missing-id", 1, place, 68),
    ]
    assert found.matches
    assert (found.matches.foreign, found.matches.found, found.matches.primary) == (2, 1, 1)
    assert found.shares == {"primary quarantine": 0, "foreign quarantine": 0.6, "unmatched": 0.5, "doubled": 0}
    assert [problem.partition(":")[0] for problem in found.problems] == ["foreign quarantine", "unmatched"]
    assert findings(pipeline(logs, validation={"quarantine": 0.6, "unmatched": 0.5})) == []


def test_a_word_in_place_of_an_id(logs: Path) -> None:
    names = ["undefined" if n % 3 else f"c{n}" for n in range(90)]
    lines = [json.dumps({"id": name, "q": "q", "at": "2026-03-01T12:00:01Z"}) + "\n" for name in names]
    (logs / "clicks" / "0.jsonl").write_text("".join(lines))
    (logs / "queries" / "0.jsonl").write_text('{"id": "q", "at": "2026-03-01T12:00:00Z"}\n')
    (problem,) = validate(timed(logs, {"lookback": "1h"})).problems
    assert problem.startswith("foreign.event_id: 60 of 90 sampled records have the id 'undefined'")


def written(logs: Path, queries: list[str], clicks: list[tuple[str, str]]) -> list[str]:
    """What is said of logs with these ids, each query a second after the one before, and the clicks after all."""
    lines = [{"id": name, "at": 1_772_366_400 + at} for at, name in enumerate(queries)]
    (logs / "queries" / "0.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    times = enumerate(clicks, 1_772_366_400 + len(queries))
    records = [{"id": name, "q": query, "at": at} for at, (name, query) in times]
    (logs / "clicks" / "0.jsonl").write_text("".join(json.dumps(line) + "\n" for line in records))
    return validate(timed(logs, {"lookback": "1h"})).problems


def test_the_most_frequent_words_in_place_of_ids(logs: Path) -> None:
    words = ["N/A", "[object Object]", "null", "-"]
    clicks = [(words[n] if n < 4 else f"c{n}-{at}", "q") for at in range(12) for n in range(10)]
    (problem,) = written(logs, ["q"], clicks)
    assert (
        "120 sampled records have the id 'N/A', 12 '[object Object]', 12 'null', and so on for 1 more, and" in problem
    )


def test_a_word_in_place_of_a_primary_id(logs: Path) -> None:
    """That of a popular event is none."""
    queries = ["N/A" if n % 4 == 0 else f"q{n}" for n in range(100)]
    clicks = [(f"c{n}", "N/A" if n % 3 == 0 else "q1") for n in range(100)]
    primary, foreign = written(logs, queries, clicks)
    assert primary.startswith("primary.event_id: 25 of 100 sampled records have the id 'N/A', and nothing tells which")
    assert foreign.startswith("foreign.primary_id: 34 of 100 sampled records name the id 'N/A', and each is joined to")
    assert written(logs, [f"q{n}" for n in range(100)], [(f"c{n}", "q1") for n in range(100)]) == []


def test_a_primary_id_that_only_some_have_and_many_name(logs: Path) -> None:
    queries = [f"q{n}" for n in range(97)] + ["-"] * 3
    (problem,) = written(logs, queries, [(f"c{n}", "-" if n % 2 else f"q{n}") for n in range(90)])
    assert problem.startswith("foreign.primary_id: 45 of 90 sampled records name the id '-'")


@pytest.mark.parametrize("users", [1, 5, 30])
def test_primary_ids_of_users_who_have_several_events(logs: Path, users: int) -> None:
    """Ids are no placeholders because each has several events, unless one has them all."""
    queries = [f"u{n % users}" for n in range(users * 20)]
    found = written(logs, queries, [(f"c{n}", f"u{n % users}") for n in range(100)])
    assert [problem.partition(":")[0] for problem in found] == (["primary.event_id"] if users == 1 else [])


def test_ids_that_come_at_several_times(logs: Path) -> None:
    """Each time would be published; an id that came twice as it was is a repeat."""
    clicks = [{"id": f"c{n}", "q": "q", "at": f"2026-03-01T12:00:0{at}Z"} for n, at in ((1, 3), (1, 3), (2, 3), (2, 4))]
    (logs / "clicks" / "0.jsonl").write_text("".join(json.dumps(line) + "\n" for line in clicks))
    (logs / "queries" / "0.jsonl").write_text('{"id": "q", "at": "2026-03-01T12:00:00Z"}\n')
    found = validate(timed(logs, {"lookback": "1h"}))
    assert (found.shares["doubled"], [problem[:14] for problem in found.problems]) == (0.5, ["doubled: 50.0%"])


@pytest.mark.parametrize(
    ("click", "primary_time", "words"),
    [
        (
            {"q": "b:1:7"},
            "embedded",
            ["foreign.primary_id: none of 1", "'b:1:1600000000000007'", "'a:1:1600000000000000'"],
        ),
        ({"q": "x"}, {"lookback": "1h"}, ["foreign.primary_id: none of 1", "such as 'x'", "'a:1:1600000000000000'"]),
        (
            {"q": "a:1:0", "at": "2020-09-13T12:26:41Z"},
            "at",
            [
                "foreign.primary_time: none of 1",
                "ids agree",
                "is of 2020-09-13T12:26:40",
                "it says 2020-09-13T12:26:41",
            ],
        ),
        (
            {"q": "a:1:0", "id": "c:1:9999999"},
            {"lookback": "5s"},
            ["foreign.primary_time", "its own time is 2020-09-13T12:26:49.999999"],
        ),
    ],
)
def test_events_that_can_never_join(
    logs: Path, click: dict[str, str], primary_time: str | dict[str, str], words: list[str]
) -> None:
    click = {"id": "c:1:1", **click}
    click |= {name: _with_time(click[name]) for name in ("id", "q")}
    (logs / "clicks" / "0.jsonl").write_text(json.dumps(click) + "\n")
    (problem,) = changed(logs, "foreign", primary_time=primary_time)
    assert all(word in problem for word in words), problem


@pytest.mark.parametrize(("minutes", "quickest", "hours"), [(60, 1, 1), (330, 20, 5.5), (-60, 1, 0), (45, 1, 0)])
def test_a_zone_that_is_wrong(logs: Path, minutes: int, quickest: int, hours: float) -> None:
    """Clicks come up to half an hour after their queries, whose clock is so many minutes ahead."""
    at = 1_772_366_400
    queries = [{"id": f"q{n}", "at": at + n + 60 * minutes} for n in range(100)]
    clicks = [{"id": f"c{n}", "q": f"q{n}", "at": at + n + quickest + 18 * n} for n in range(100)]
    for name, rows in (("queries", queries), ("clicks", clicks)):
        (logs / name / "0.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (problem,) = validate(timed(logs, {"lookback": "1m"})).problems
    assert (f"the primary events lie about {hours} h after their clicks: the `zone`" in problem) == bool(hours)
    assert ("its own time is" in problem) == (not hours)


@pytest.mark.parametrize(
    ("off", "said"),
    [
        (
            [(-7200,)] * 30,
            "30 sampled records have landed, 2 h off what the file says now: landed rows keep their time",
        ),
        ([(-7200,)] * 20 + [()] * 10, "20 sampled records have landed, 2 h off"),
        ([(-7200,)] * 19 + [()] * 11, ""),
        ([(0,)] * 30, ""),
        ([(0,)] + [(3600,)] * 29, ""),
        ([(-100,)] * 30, ""),  # no zones differ by that: other events of these ids
        ([(-7200, -3600)] * 30, ""),  # ids of more than one event
        ([()] * 30, ""),
    ],
)
def test_rows_that_landed_by_another_zone(logs: Path, off: list[tuple[int, ...]], said: str) -> None:
    """`off`: of each sampled query the seconds by which the lake's rows of its id lie after it."""
    start = datetime(2026, 3, 1, 12, tzinfo=UTC)
    for name, more in (("queries", {}), ("clicks", {"q": "q1"})):
        rows = [{"id": f"q{n}", "at": (start + timedelta(seconds=n)).isoformat(), **more} for n in range(30)]
        (logs / name / "0.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    chosen = timed(logs, {"lookback": "1h"})
    times = [(f"q{n}", start + timedelta(seconds=n + by)) for n, each in enumerate(off) for by in each]
    tables = ArrowTables(chosen.root)
    tables.create(BY_NAME["primary"])
    tables.append("primary", [{"event_id": name, "event_time": at, "bucket": "2026-03-01T1200Z"} for name, at in times])
    problems = [problem for problem in validate(chosen).problems if "landed" in problem]
    assert len(problems) == bool(said)
    assert said in "".join(problems)


def _with_time(name: str) -> str:
    head, _, micros = name.rpartition(":")
    return f"{head}:{1_600_000_000_000_000 + int(micros)}" if head else name


def test_events_that_find_several(logs: Path) -> None:
    """The same event twice is one; of two of one id the latest is joined."""
    lines = [{"id": "q", "at": f"2026-03-01T12:00:0{second}Z"} for second in (0, 0, 5, 9)]
    (logs / "queries" / "0.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    clicks = [{"id": f"c{second}", "q": "q", "at": f"2026-03-01T12:00:0{second}Z"} for second in (3, 7)]
    (logs / "clicks" / "0.jsonl").write_text("".join(json.dumps(line) + "\n" for line in clicks))
    found = validate(timed(logs, {"lookback": "1h"}))
    assert found.matches
    assert (found.matches.found, found.matches.several) == (2, 1)


def test_a_lookback_beyond_what_is_kept(logs: Path) -> None:
    with pytest.raises(ValueError, match=r"lookback \(112h\) is longer than retention.primary \(3d\)"):
        timed(logs, {"lookback": "112h"})


def test_none_is_no_problem_while_more_primary_events_are_unread(logs: Path) -> None:
    lines = (f'{{"id": "a:1:{1_600_000_000_000_000 + number}"}}\n' for number in range(200_001))
    (logs / "queries" / "0.jsonl").write_text("".join(lines))
    (logs / "clicks" / "0.jsonl").write_text('{"id": "c:1:1600000000000000", "q": "a:1:1600000000200000"}\n')
    found = validate(pipeline(logs))
    assert found.matches
    assert (found.matches.found, found.matches.primary) == (0, 200_000)
    assert found.problems == []
