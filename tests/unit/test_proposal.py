"""A pipeline's file proposed from logs of several shapes, without a word about their columns."""

from __future__ import annotations

import csv
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from clickjoin.cli.main import app
from clickjoin.config import load
from clickjoin.model.errors import ConfigError
from clickjoin.proposal.file import propose, propose_one
from clickjoin.proposal.guess import GUESS
from clickjoin.report.validate import validate
from tests.unit.proposal_bench import CLICKS, QUERIES, START, iso, lines, nested, odd_dates
from tests.unit.proposal_bench import folder as folder


def over_lines(folder: Path) -> None:
    head = ["click_id", "query", "when", "comment"]
    rows = [[c.name, c.query.name, f"{c.at:%d.%m.%Y %H:%M:%S}", f"no, {at}\nand more" if at % 3 else "fine"]
            for at, c in enumerate(CLICKS)]  # fmt: skip
    odd_dates(folder)
    with (folder / "clicks" / "x.csv").open("w", newline="") as file:
        csv.writer(file, delimiter=";").writerows([head, *rows])


def parquet(folder: Path) -> None:
    queries = [{"impression_id": q.number, "ts": q.at, "price": Decimal("1.50")} for q in QUERIES]
    clicks = [
        {"click_id": 10_000 + c.number, "impression_id": c.query.number, "impression_ts": c.query.at, "ts": c.at}
        for c in CLICKS
    ]
    for name, rows in (("queries", queries), ("clicks", clicks)):
        pq.write_table(pa.Table.from_pylist(rows), folder / name / "x.parquet")


def composite(folder: Path) -> None:
    def key(number: int) -> dict[str, Any]:
        return {"host": f"h{number % 7}", "pid": number % 5, "seq": number // 35}

    queries = [{**key(q.number), "when": q.at.timestamp() * 1000} for q in QUERIES]
    clicks = [
        {
            "click": {"id": f"{c.name}"},
            "when": int(c.at.timestamp()),
            **{f"q_{k}": v for k, v in key(c.query.number).items()},
        }
        for c in CLICKS
    ]
    lines(folder / "queries" / "q.jsonl", queries)
    lines(folder / "clicks" / "c.jsonl", clicks)


def photon(folder: Path) -> None:
    def name(at: datetime, number: int) -> str:
        return f"10.0.0.{number % 9}:{number}:{round(at.timestamp() * 1e6)}"

    lines(folder / "queries" / "q.jsonl", [{"event_id": name(q.at, q.number), "user": "u"} for q in QUERIES])
    clicks = [{"event_id": name(c.at, c.number), "query_id": name(c.query.at, c.query.number)} for c in CLICKS]
    lines(folder / "clicks" / "c.jsonl", clicks)


FORM = {"column": "when", "format": "%d.%m.%Y %H:%M:%S", "zone": "UTC"}
SHAPES = [
    (nested, ("meta.id",), "at", ("event.ids[1]",), "time", ("ctx.query.id",), {"lookback": "1h"}),
    (odd_dates, ("query_id",), FORM, ("click_id",), FORM, ("query",), {"lookback": "1h"}),
    (over_lines, ("query_id",), FORM, ("click_id",), FORM, ("query",), {"lookback": "1h"}),
    (parquet, ("impression_id",), "ts", ("click_id",), "ts", ("impression_id",), "impression_ts"),
    (
        composite,
        ("host", "pid", "seq"),
        "when",
        ("click.id",),
        "when",
        ("q_host", "q_pid", "q_seq"),
        {"lookback": "1h"},
    ),
    (photon, ("event_id",), "embedded", ("event_id",), "embedded", ("query_id",), "embedded"),
]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape[0].__name__)
def test_a_proposal_joins_all(folder: Path, shape: tuple[Any, ...]) -> None:
    write: Callable[[Path], None]
    write, *expected = shape
    write(folder)
    proposal = propose("queries/*", "clicks/*", folder)
    assert ("multiline: true" in proposal.text) == (write is over_lines)
    assert [choice.value for choice in proposal.choices.values()] == expected
    (folder / "p.yaml").write_text(proposal.text)
    found = validate(load(folder / "p.yaml"))
    assert found.problems == []
    assert found.matches
    assert (found.matches.found, found.matches.primary) == (found.matches.foreign, 300)
    assert all(sample.read == sample.good for sample in found.samples.values())


def test_lines_that_were_written_twice_hide_no_id(folder: Path) -> None:
    odd_dates(folder)
    for path in (folder / "queries/x.csv", folder / "clicks/x.csv"):
        held = path.read_bytes().splitlines(True)
        path.write_bytes(b"".join([*held, *held[1:60]]))
    assert propose("queries/*", "clicks/*", folder).choices["foreign.event_id"].value == ("click_id",)
    photon(folder)
    path = folder / "clicks/c.jsonl"
    held = path.read_bytes().splitlines(True)
    path.write_bytes(b"".join([*held, *held[:60]]))
    (folder / "clicks/x.csv").unlink()
    (folder / "queries/x.csv").unlink()
    assert propose("queries/*", "clicks/*", folder).choices["foreign.event_id"].value == ("event_id",)


def test_typed_columns_of_the_output(folder: Path) -> None:
    nested(folder)
    proposal = propose("queries/*", "clicks/*", folder)
    (folder / "p.yaml").write_text(proposal.text)
    columns = {name: (column.source, column.type) for name, column in load(folder / "p.yaml").output.columns.items()}
    assert columns == {
        "ids": ("foreign.event.ids[0]", "STRING"),
        "n": ("foreign.n", "BIGINT"),
        "primary_n": ("primary.meta.n", "BIGINT"),
    }


def test_types_of_csv_are_what_its_texts_stand_for(folder: Path) -> None:
    rows = "".join(f"q{n},{n},{n}.5,0{n},x,\n" for n in range(9))
    (folder / "queries" / "q.csv").write_text(f"id,n,price,zip,a.b,none\n{rows}")
    lines(folder / "clicks" / "c.jsonl", [{"click_id": f"c{n}", "q": f"q{n}", "ts": iso(START)} for n in range(9)])
    proposal = propose("queries/*", "clicks/*", folder)
    (folder / "p.yaml").write_text(proposal.text.replace("event_time: FILL_IN", "event_time: ts"))
    columns = {name: (column.source, column.type) for name, column in load(folder / "p.yaml").output.columns.items()}
    assert columns == {
        "n": ("primary.n", "BIGINT"),
        "price": ("primary.price", "DOUBLE"),
        "zip": ("primary.zip", "STRING"),
        "a_b": ("primary.`a.b`", "STRING"),
    }


def test_few_records_without_an_id_hide_none(folder: Path) -> None:
    nested(folder)
    for name, file in (("queries", "more.jsonl"), ("clicks", "more.jsonl")):
        lines(folder / name / file, [{"note": "no id"}, {"meta": {}, "event": 7}])
    choices = propose("queries/*", "clicks/*", folder).choices
    assert choices["primary.event_id"].value == ("meta.id",)
    assert choices["foreign.event_id"].value == ("event.ids[1]",)
    assert choices["foreign.primary_id"].value == ("ctx.query.id",)


def test_few_small_numbers_are_no_ids_although_all_of_them_are_known(folder: Path) -> None:
    lines(folder / "queries" / "q.jsonl", [{"seq": q.number, "at": iso(q.at)} for q in QUERIES])
    lines(folder / "clicks" / "c.jsonl", [
        {"id": c.name, "pid": c.number % 11, "of": c.query.number + 9, "at": iso(c.at)} for c in CLICKS
    ])  # fmt: skip
    choice = propose("queries/*", "clicks/*", folder).choices["foreign.primary_id"]
    assert choice.value == ("of",)
    assert "different ones" in choice.why


def test_prices_are_no_ids(folder: Path) -> None:
    table = pa.table({"price": [Decimal(n) / 100 for n in range(300)], "name": [q.name for q in QUERIES],
                      "ts": [q.at for q in QUERIES]})  # fmt: skip
    pq.write_table(table, folder / "queries" / "q.parquet")
    lines(folder / "clicks" / "c.jsonl", [{"click_id": c.name, "query": c.query.name, "at": iso(c.at)} for c in CLICKS])
    assert propose("queries/*", "clicks/*", folder).choices["primary.event_id"].value == ("name",)


def test_what_cannot_be_derived_is_left_to_fill_in(folder: Path) -> None:
    lines(folder / "queries" / "q.jsonl", [{"word": "a"}, {"word": "a"}])
    lines(folder / "clicks" / "c.jsonl", [{"item": 1}, {"item": 1}])
    proposal = propose("queries/*", "clicks/*", folder)
    assert {choice.sure for choice in proposal.choices.values()} == {"a guess"}
    assert "event_id: FILL_IN  # a guess: no column, nor three together, differs" in proposal.text
    (folder / "p.yaml").write_text(proposal.text)
    assert any("has a field `FILL_IN`" in problem for problem in validate(load(folder / "p.yaml")).problems)


@pytest.mark.parametrize(
    ("texts", "form", "others"),
    [
        (["13/02/2026 10:00:00", "01/02/2026 11:00:00"], "%d/%m/%Y %H:%M:%S", False),
        (["02/13/2026 10:00:00", "02/01/2026 11:00:00"], "%m/%d/%Y %H:%M:%S", False),
        (["02/03/2026 10:00:00", "02/01/2026 11:00:00"], "%d/%m/%Y %H:%M:%S", True),
    ],
)
def test_days_and_months_are_distinguished_where_they_can_be(
    folder: Path, texts: list[str], form: str, others: bool
) -> None:
    lines(folder / "queries" / "q.jsonl", [{"id": str(n), "ts": text} for n, text in enumerate(texts)])
    lines(folder / "clicks" / "c.jsonl", [{"id": "c", "q": "1", "ts": texts[0]}])
    choice = propose("queries/*", "clicks/*", folder).choices["primary.event_time"]
    assert choice.value["format"] == form
    assert ("it could also be" in choice.why) is others
    assert (choice.sure == "a guess") is others


def test_names_that_yaml_would_take_for_something_else(folder: Path) -> None:
    lines(folder / "queries" / "q.jsonl", [{"no": f"x{n}", "ts": iso(START)} for n in range(9)])
    lines(folder / "clicks" / "c.jsonl", [{"id": f"c{n}", "yes": f"x{n}", "ts": iso(START)} for n in range(9)])
    proposal = propose("queries/*", "clicks/*", folder)
    (folder / "p.yaml").write_text(proposal.text)
    pipeline = load(folder / "p.yaml")
    assert (pipeline.primary.event_id, pipeline.foreign.primary_id) == (("no",), ("yes",))


def test_two_programs_write_a_time_differently(folder: Path) -> None:
    forms = (iso, lambda at: f"{at:%d.%m.%Y %H:%M:%S}")
    lines(folder / "queries" / "q.jsonl", [{"id": q.name, "at": forms[q.number % 4 > 0](q.at)} for q in QUERIES])
    clicks = [{"id": c.name, "of": c.query.name, "at": forms[c.number % 4 == 0](c.at)} for c in CLICKS]
    lines(folder / "clicks" / "c.jsonl", clicks)
    (folder / "p.yaml").write_text(propose("queries/*", "clicks/*", folder).text)
    pipeline = load(folder / "p.yaml")
    assert [side.event_time.format for side in (pipeline.primary, pipeline.foreign)] == [
        ("iso", "%d.%m.%Y %H:%M:%S")
    ] * 2
    found = validate(pipeline)
    assert found.matches
    assert (found.problems, found.matches.found) == ([], len(CLICKS))


def test_the_primary_events_time_is_not_the_own_one(folder: Path) -> None:
    """Of two times in a record that one is its own which is not the other event's, whatever they are called."""
    queries = [{"id": q.name, "at": iso(q.at)} for q in QUERIES]
    clicks = [{"id": c.name, "of": c.query.name, "shown_at": iso(c.query.at), "clicked": iso(c.at)} for c in CLICKS]
    lines(folder / "queries" / "q.jsonl", queries)
    lines(folder / "clicks" / "c.jsonl", clicks)
    values = {name: choice.value for name, choice in propose("queries/*", "clicks/*", folder).choices.items()}
    assert (values["foreign.event_time"], values["foreign.primary_time"]) == ("clicked", "shown_at")


def test_no_file(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"queries/\*: no file with a whole record matches"):
        propose("queries/*", "clicks/*", folder)


def test_the_command(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    photon(folder)
    monkeypatch.chdir(folder)
    run = CliRunner().invoke
    given = ["init", "--config", "p.yaml", "--from-logs", "clicks/*", "--primary", "queries/*"]
    first = run(app, given)
    assert first.exit_code == 0
    assert "foreign.primary_time: embedded  (sure: the primary ids hold their time)" in first.output
    again = run(app, given)
    assert isinstance(again.exception, ConfigError)
    assert "is there already" in str(again.exception)
    half = run(app, given[:-2])
    assert isinstance(half.exception, ConfigError)


def test_one_stream_with_repeats_whose_ids_hold_their_time(folder: Path) -> None:
    photon(folder)
    twice = (folder / "clicks" / "c.jsonl").read_text()
    (folder / "clicks" / "again.jsonl").write_text(twice)
    proposal = propose_one("clicks/*", folder)
    assert proposal.choices["stream.event_id"].value == ("event_id",)
    assert proposal.choices["stream.event_time"].value == "embedded"
    (folder / "p.yaml").write_text(proposal.text)
    found = validate(load(folder / "p.yaml"))
    assert (found.problems, found.sections) == ([], {"foreign": "stream"})


@pytest.mark.parametrize("apart", [0, 1])
def test_one_stream_of_random_ids(folder: Path, apart: int) -> None:
    """Where a repeat has another time than the first, the id alone names the event; otherwise id and time do."""
    rows = [
        {"messageId": f"{n * 7919 % 1000:x}", "user_id": f"u{n % 9}", "ts": iso(START + timedelta(seconds=n))}
        for n in range(100)
    ]
    again = [row | {"ts": iso(START + timedelta(seconds=n + apart))} for n, row in enumerate(rows)][::2]
    lines(folder / "clicks" / "c.jsonl", rows + again)
    proposal = propose_one("clicks/*", folder)
    assert proposal.choices["stream.event_id"].value == ("messageId",)
    assert proposal.choices["stream.event_time"].value == "ts"
    (folder / "p.yaml").write_text(proposal.text)
    pipeline = load(folder / "p.yaml")
    assert pipeline.by_id is bool(apart)
    assert not validate(pipeline).problems


def test_one_stream_without_times(folder: Path) -> None:
    lines(folder / "clicks" / "c.jsonl", [{"id": f"a{n}", "kind": "x"} for n in range(9)])
    choice = propose_one("clicks/*", folder).choices["stream.event_time"]
    assert (choice.value, choice.sure) == ("FILL_IN", GUESS)  # an age that each reader has for itself would be none


def test_one_stream_or_two(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    photon(folder)
    monkeypatch.chdir(folder)
    run = CliRunner().invoke
    both = run(app, ["init", "--config", "p.yaml", "--stream", "clicks/*", "--primary", "queries/*"])
    assert "--stream is of one stream" in str(both.exception)
    one = run(app, ["init", "--config", "p.yaml", "--stream", "clicks/*"])
    assert one.exit_code == 0
    assert "stream.event_time: embedded  (sure: the ids hold their time)" in one.output
