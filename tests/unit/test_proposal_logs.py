"""What `init` makes of logs as they come: headers that change, W3C logs, lines and files that are no records."""

from __future__ import annotations

import bz2
import gzip
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from deltalake import write_deltalake
from typer.testing import CliRunner

from clickjoin.cli.main import app
from clickjoin.config import load
from clickjoin.model.errors import ConfigError
from clickjoin.proposal.file import propose, propose_one
from clickjoin.report.validate import validate
from tests.unit.proposal_bench import CLICKS, QUERIES, START, iso, lines, nested, odd_dates
from tests.unit.proposal_bench import folder as folder


def _quoted(names: str, rows: list[list[Any]]) -> str:
    return "".join(";".join(f'"{value}"' for value in row) + "\n" for row in [names.split(), *rows])


def test_a_header_that_grows(folder: Path) -> None:
    """Each file is read by its own header; one that lies in the middle of a file is no record."""
    queries = [[q.name, iso(q.at), q.number] for q in QUERIES]
    (folder / "queries" / "a.csv").write_text(_quoted("query_id when n", queries))
    clicks = [[c.name, c.query.name, iso(c.at)] for c in CLICKS]
    twice = [_quoted("click_id query_id when", some) for some in (clicks[:100], clicks[100:200])]
    (folder / "clicks" / "a.csv").write_text("".join(twice))
    longer = _quoted("click_id country query_id when", [[name, "DE", *rest] for name, *rest in clicks[200:]])
    (folder / "clicks" / "b.csv").write_text(longer)
    proposal = propose("queries/*", "clicks/*", folder)
    values = [proposal.choices[f"foreign.{field}"].value for field in ("event_id", "primary_id", "event_time")]
    assert values == [("click_id",), ("query_id",), "when"]
    assert "columns: [" not in proposal.text
    (folder / "p.yaml").write_text(proposal.text)
    found = validate(load(folder / "p.yaml"))
    assert (found.problems, found.samples["foreign"].read, found.samples["foreign"].good) == ([], 401, 400)


@pytest.mark.parametrize(
    "form", [iso, lambda at: at.strftime("%d.%m.%Y %H:%M:%S"), lambda at: at.strftime("%d/%b/%Y:%H:%M:%S")]
)
@pytest.mark.parametrize("files", [1, 3])
def test_csv_without_a_header_whose_first_line_holds_no_number(folder: Path, form: Any, files: int) -> None:
    """Ids with letters and a time that is text were taken for names of columns: each file's first record was lost."""
    for name, rows in (
        ("queries", [f"{q.name},{form(q.at)}" for q in QUERIES]),
        ("clicks", [f"{c.name},{form(c.at)},{c.query.name}" for c in CLICKS]),
    ):
        for number in range(files):
            (folder / name / f"{number}.csv").write_text("\n".join(rows[number::files]) + "\n")
    proposal = propose("queries/*", "clicks/*", folder)
    assert proposal.choices["foreign.primary_id"].value == ("column3",)
    (folder / "p.yaml").write_text(proposal.text)
    found = validate(load(folder / "p.yaml"))
    assert (found.problems, found.matches and found.matches.found) == ([], len(CLICKS))


@pytest.mark.parametrize("above", ["\n", "Export of 30.11.2026\n", "# made by X\n# at noon; of all\n\n", '"a, b"\n'])
def test_lines_above_the_header(folder: Path, above: str) -> None:
    """Blank ones are none; titles and comments go to quarantine, and the header with them."""
    lines(folder / "queries" / "q.jsonl", [{"query_id": q.name, "when": iso(q.at)} for q in QUERIES])
    for number in range(2):
        rows = "".join(f"{c.name},{c.query.name},{iso(c.at)}\n" for c in CLICKS[number::2])
        (folder / "clicks" / f"{number}.csv").write_text(f"{above}click_id,query_id,when\n{rows}")
    text = propose("queries/*", "clicks/*", folder).text
    (folder / "p.yaml").write_text(text)
    found = validate(load(folder / "p.yaml"))
    assert found.matches
    assert found.matches.found == len(CLICKS)
    titles = len([line for line in above.splitlines() if line])
    assert sum(bad.count for bad in found.samples["foreign"].bad) == (2 * (titles + 1) if titles else 0)
    assert ("columns: [click_id, query_id, when]" in text) == bool(titles)


def test_a_comma_in_each_number(folder: Path) -> None:
    """Each file's first line says what separates its fields, though all lines but those have one comma."""
    lines(folder / "queries" / "q.jsonl", [{"query_id": q.name, "when": iso(q.at)} for q in QUERIES])
    rows = [f"{c.name};{c.query.name};{iso(c.at)};{c.number},50;x" for c in CLICKS]
    written = ["click_id;query_id;when;amount;note", *rows[:200], "cut;off", "cut;too;1,5"]
    (folder / "clicks" / "a.csv").write_text("\n".join(written) + "\n")
    longer = [row.replace(";", ";web;", 1) for row in rows[200:]]
    (folder / "clicks" / "b.csv").write_text("\n".join(["click_id;channel;query_id;when;amount;note", *longer]) + "\n")
    proposal = propose("queries/*", "clicks/*", folder)
    assert (proposal.text.count('separator: ";"'), "columns: [" in proposal.text) == (1, False)
    assert proposal.choices["foreign.primary_id"].value == ("query_id",)


def test_one_column_without_a_name(folder: Path) -> None:
    """A list of one is written as a list where the source takes no other."""
    (folder / "clicks" / "a.csv").write_text("".join(f"1700000000{c.number:06d}\n" for c in CLICKS))
    text = propose_one("clicks/*", folder).text
    assert yaml.safe_load(text)["stream"]["source"]["columns"] == ["column1"]


def test_records_in_an_array(folder: Path) -> None:
    """An object a line that holds its events in an array; one that has an id of its own is an event."""
    lines(
        folder / "queries" / "q.jsonl", [{"query_id": q.name, "when": iso(q.at), "tags": [{"a": 1}]} for q in QUERIES]
    )
    clicks = [{"click_id": c.name, "when": iso(c.at), "ctx": {"query": c.query.name}} for c in CLICKS]
    lines(folder / "clicks" / "c.json", [{"Records": clicks[at : at + 20]} for at in range(0, 400, 20)])
    proposal = propose("queries/*", "clicks/*", folder)
    assert proposal.text.count("records: Records}") == 1
    values = [proposal.choices[f"foreign.{field}"].value for field in ("event_id", "primary_id", "event_time")]
    assert values == [("click_id",), ("ctx.query",), "when"]
    (folder / "p.yaml").write_text(proposal.text)
    found = validate(load(folder / "p.yaml"))
    assert found.matches
    assert (found.problems, found.matches.foreign, found.matches.found) == ([], 400, 400)


def batches(clicks: list[Any], shape: str) -> tuple[list[Any], str]:
    """Clicks, some of them a line, and the array that holds them."""
    some = [clicks[at : at + 20] for at in range(0, len(clicks), 20)]
    if shape == "an id beside":
        return [{"batch_id": f"b{n}", "sent_at": iso(START), "batch": part} for n, part in enumerate(some)], "batch"
    if shape == "an id beside, below":
        return [{"id": f"b{n}", "body": {"events": part}} for n, part in enumerate(some)], "body.events"
    alone = [one for part in some[4:] for one in part]  # a record is its own line, where there is one alone
    return [*({"Records": part} for part in some[:4]), *alone], "Records"


@pytest.mark.parametrize("shape", ["an id beside", "an id beside, below", "single ones"])
def test_batches_of_several_events(folder: Path, shape: str) -> None:
    """One of each batch was taken for the event, since the batch has an id too, or most lines are no batch."""
    lines(folder / "queries" / "q.jsonl", [{"query_id": q.name, "when": iso(q.at)} for q in QUERIES])
    count = 100 if shape == "single ones" else 400
    clicks = [{"click_id": c.name, "query_id": c.query.name, "when": iso(c.at)} for c in CLICKS[:count]]
    records, array = batches(clicks, shape)
    lines(folder / "clicks" / "c.json", records)
    proposal = propose("queries/*", "clicks/*", folder)
    values = [proposal.choices[f"foreign.{field}"].value for field in ("event_id", "primary_id", "event_time")]
    assert values == [("click_id",), ("query_id",), "when"]
    (folder / "p.yaml").write_text(proposal.text)
    found = validate(load(folder / "p.yaml"))
    assert found.matches
    assert (found.problems, found.matches.foreign, found.matches.found) == ([], count, count)
    assert f'records: "{array}"' in proposal.text or f"records: {array}}}" in proposal.text


def test_one_element_that_names_the_primary_event(folder: Path) -> None:
    """In a file written by hand: the other elements' are not looked up, and that is said."""
    lines(folder / "queries" / "q.jsonl", [{"query_id": q.name, "when": iso(q.at)} for q in QUERIES])
    clicks = [{"click_id": c.name, "of": [{"q": c.query.name}], "when": iso(c.at)} for c in CLICKS]
    lines(folder / "clicks" / "c.jsonl", clicks)
    (folder / "p.yaml").write_text(propose("queries/*", "clicks/*", folder).text)
    assert load(folder / "p.yaml").foreign.primary_id == ("of[0].q",)  # type: ignore[union-attr]
    assert validate(load(folder / "p.yaml")).problems == []
    more = [click | {"of": [*click["of"], {"q": "x"}, {"q": "x"}]} for click in clicks[:9]]
    same = [click | {"of": click["of"] * 2} for click in clicks[9:100]]
    lines(folder / "clicks" / "c.jsonl", [*more, *same, *clicks[100:]])
    (problem,) = validate(load(folder / "p.yaml")).problems
    assert problem.startswith("foreign.primary_id: of[0].q is of one element, and 9 of 400 sampled records have others")


def test_records_by_number(folder: Path) -> None:
    """As pandas writes a frame: a line is no record."""
    nested(folder)
    frame = {"click_id": {str(n): c.name for n, c in enumerate(CLICKS)}, "at": {str(n): 1 for n in range(400)}}
    lines(folder / "clicks" / "c.jsonl", [frame])
    with pytest.raises(ConfigError, match="keys are the numbers of records"):
        propose("queries/*", "clicks/*", folder)


@pytest.mark.parametrize("one", [False, True])
def test_records_in_an_array_below_an_object(folder: Path, one: bool) -> None:
    """As a host's batches are."""
    lines(folder / "queries" / "q.jsonl", [{"query_id": q.name, "when": iso(q.at)} for q in QUERIES])
    clicks = [{"e": {"click_id": c.name, "when": iso(c.at)}, "query": c.query.name, "qty": c.number} for c in CLICKS]
    batches = [{"host": "x", "tags": [{"a": 1}], "events": clicks[at : at + 20]} for at in range(0, 400, 20)]
    lines(folder / "clicks" / "c.json", [{"v": 1, "body": batch} for batch in batches])
    text = (propose_one("clicks/*", folder) if one else propose("queries/*", "clicks/*", folder)).text
    assert text.count('records: "body.events"}') == 1
    (folder / "p.yaml").write_text(text)
    found = validate(load(folder / "p.yaml"))
    assert (found.problems, list(found.samples.values())[-1].good) == ([], 400)


@pytest.mark.parametrize("beside", [{"meta": {"id": 1}}, {}])
def test_a_list_within_an_event(folder: Path, beside: dict[str, Any]) -> None:
    """An array below an object holds no records where an id lies outside of it, or its elements have no time."""
    items = [{"sku": "a", "at": "2026-11-20T08:00:00Z"}] if beside else [{"sku": "a"}, {"sku": "b"}]
    carts = [{"click": c.name, "when": iso(c.at), "cart": {"items": items}, **beside} for c in CLICKS]
    lines(folder / "clicks" / "c.json", carts)
    assert "records:" not in propose_one("clicks/*", folder).text


def test_logs_of_w3c(folder: Path) -> None:
    """Comments name the columns; date and time are two of them."""
    lines(folder / "queries" / "q.jsonl", [{"query_id": q.name, "when": iso(q.at)} for q in QUERIES])
    rows = [f"{c.at:%Y-%m-%d}\t{c.at:%H:%M:%S}\t{c.name}\t{c.query.name}\n" for c in CLICKS]
    text = "#Version: 1.0\n#Fields: date time x-request-id qid\n" + "".join(rows)
    (folder / "clicks" / "E1.gz").write_bytes(gzip.compress(text.encode()))
    proposal = propose("queries/*", "clicks/*", folder)
    assert proposal.choices["foreign.event_time"].value == {"column": ["date", "time"]}
    (folder / "p.yaml").write_text(proposal.text)
    found = validate(load(folder / "p.yaml"))
    assert found.problems == []
    assert found.matches
    assert (found.samples["foreign"].good, found.matches.found) == (400, 400)


@pytest.mark.parametrize("line", ["-- rotated --", '{"click_id": "x', "a\rb,c"])
def test_a_line_in_ten_that_is_none(folder: Path, line: str) -> None:
    nested(folder)
    path = next((folder / "clicks").iterdir())
    text = path.read_bytes() if path.suffix != ".gz" else gzip.decompress(path.read_bytes())
    held = text.decode().splitlines()
    path.unlink()
    (folder / "clicks" / "c.jsonl").write_text("".join(
        f"{line}\n{one}\n" if number % 10 == 3 else f"{one}\n" for number, one in enumerate(held)
    ))  # fmt: skip
    assert propose("queries/*", "clicks/*", folder).choices["foreign.primary_id"].value == ("ctx.query.id",)


def test_a_csv_with_lone_cr(folder: Path) -> None:
    odd_dates(folder)
    path = folder / "clicks/x.csv"
    held = path.read_bytes().splitlines(True)
    path.write_bytes(b"".join([*held[:9], b"a\rb;c;d\n", *held[9:]]))
    assert propose("queries/*", "clicks/*", folder).choices["foreign.event_id"].value == ("click_id",)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (gzip.compress(b'{"a": 1}\n'), "gzip, by its first bytes, but is not named *.gz"),
        (b"\x28\xb5\x2f\xfd\0\0", "is zstd, by its first bytes, but is not named *.zst"),
        ('{"a": 1}\n'.encode("utf-16"), "UTF-16"),
        ('{"a": 1}\n'.encode("utf-16-le"), "UTF-16 without a byte order mark"),
        (b"PAR1....", "not named *.parquet"),
        (b"PARE....", "encrypted"),
    ],
)
def test_files_that_are_no_text(folder: Path, data: bytes, words: str) -> None:
    nested(folder)
    path = folder / "clicks" / "z.log"
    path.write_bytes(data + b"\n")
    with pytest.raises(ConfigError, match=words.replace("*", r"\*")) as caught:
        propose("queries/*", "clicks/*", folder)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(("text", "words"), [
    (json.dumps({"id": "a", "at": 1}, indent=1), "pretty-printed JSON.* jq -c \\."),
    (json.dumps([{"id": "a"}, {"id": "b"}]), "one JSON array.* jq -c '\\.\\[\\]'"),
    ("[\n" + json.dumps({"id": "a"}) + ",\n" + json.dumps({"id": "b"}) + "\n]", "one JSON array"),
    ('[{"id": "a"}, {"id":', "one JSON array"),
])  # fmt: skip
def test_json_that_is_not_one_record_a_line(folder: Path, text: str, words: str) -> None:
    nested(folder)
    path = folder / "clicks" / "z.log"
    path.write_text(text + "\n")
    with pytest.raises(ConfigError, match=words) as caught:
        propose("queries/*", "clicks/*", folder)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(("data", "words"), [
    (b'[{"id": "a"}, {"id": "b"}]', "one JSON array"),
    (bz2.compress(b'{"a": 1}\n'), "is bzip2|is bz2"),
])  # fmt: skip
def test_files_without_a_whole_line_yet(folder: Path, data: bytes, words: str) -> None:
    """What they are is said at once, and not that the glob may be wrong."""
    nested(folder)
    (folder / "new").mkdir()
    (folder / "new" / "z.log").write_bytes(data.replace(b"\n", b"\r"))
    with pytest.raises(ConfigError, match=words):
        propose("queries/*", "new/*", folder)


def test_names_of_their_own(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nested(folder)
    monkeypatch.chdir(folder)
    for file in ("p.yaml", "Shop 2.yaml", "3.yaml"):
        CliRunner().invoke(app, ["init", "-c", file, "--from-logs", "clicks/*", "--primary", "queries/*"])
    named = [load(folder / file).pipeline for file in ("p.yaml", "Shop 2.yaml", "3.yaml")]
    assert named == ["clicks", "shop_2", "clicks2"]


@pytest.mark.parametrize("again", [5, 60])
@pytest.mark.parametrize("edited", [False, True])
def test_ids_that_come_with_several_times(folder: Path, again: int, *, edited: bool) -> None:
    """Of a sender that stamps events again, records of an id differ in their times alone."""
    lines(folder / "queries" / "q.jsonl", [{"query_id": q.name, "when": iso(q.at)} for q in QUERIES])
    clicks = [{"click_id": c.name, "query_id": c.query.name, "when": iso(c.at), "n": c.number % 9} for c in CLICKS]
    later = [
        {**click, "when": iso(c.at + timedelta(seconds=2)), **({"n": 10} if edited else {})}
        for click, c in zip(clicks[:again], CLICKS, strict=False)
    ]
    lines(folder / "clicks" / "c.jsonl", [*clicks, *later])
    proposal = propose("queries/*", "clicks/*", folder)
    choice, identity = proposal.choices["foreign.event_id"], proposal.choices.get("registry.identity")
    if edited:
        assert identity is None
        if again == 5:
            assert (choice.sure, "5 ids come with more than one time" in choice.why) == ("likely", True)
        else:
            assert (choice.value, choice.sure) == (("click_id", "n"), "a guess")
        return
    assert choice.value == ("click_id",)
    assert identity
    assert (identity.value, identity.why[:30]) == ("id", f"{again} sampled ids come with more th"[:30])
    (folder / "p.yaml").write_text(proposal.text)
    assert validate(load(folder / "p.yaml")).problems == []
    assert load(folder / "p.yaml").by_id


@pytest.mark.parametrize(("count", "refused"), [(400, True), (40, True), (4, False), (0, False)])
def test_latin_1(folder: Path, count: int, *, refused: bool) -> None:
    """It would all go to quarantine. A letter that stands for one that was lost is UTF-8."""
    nested(folder)
    records = [{"id": c.name, "q": c.query.name, "at": iso(c.at), "word": "söck"} for c in CLICKS]
    texts = [json.dumps(record, ensure_ascii=False) + "\n" for record in records]
    good = "".join(texts[count:]).replace("ö", "\ufffd").encode()
    (folder / "clicks" / "c.jsonl").write_bytes("".join(texts[:count]).encode("latin-1") + good)
    if refused:
        with pytest.raises(ConfigError, match=f"c.jsonl: {count} of its first 400 lines are not UTF-8"):
            propose("queries/*", "clicks/*", folder)
    else:
        text = propose("queries/*", "clicks/*", folder).text
        said = f", {count} lines are no records" if count else ""
        assert f"looks up: clicks; {400 - count} records were sampled{said}\n" in text


@pytest.mark.parametrize("end", [b"\r\n", b"\r", b"\n"])
def test_lines_that_end_in_cr_alone(folder: Path, end: bytes) -> None:
    """What no reader takes for lines is a sentence with the file's name; just written, it has no whole record."""
    nested(folder)
    path = folder / "clicks" / "a.csv"
    for other in (folder / "clicks").iterdir():
        other.unlink()
    path.write_bytes(b"id,q\ra,b\rc,d" + end)
    with pytest.raises(ConfigError, match=rf"{path}: its lines end in CR alone"):
        propose("queries/*", "clicks/*", folder)


@pytest.mark.parametrize("more", [{"at": None}, {"opens": "10:00", "when": True}, {"opens": None}])
def test_a_date_and_a_whole_time(folder: Path, more: dict[str, Any]) -> None:
    """Two columns make up the time only where none holds it, and where there is a time of day."""
    lines(folder / "queries" / "q.jsonl", [{"query_id": q.name, "when": iso(q.at)} for q in QUERIES])
    more, whole = {name: value for name, value in more.items() if name != "when"}, "when" in more
    clicks = [
        {"click_id": c.name, "query_id": c.query.name, "date": f"{c.at:%Y-%m-%d}", **more}
        | ({"when": iso(c.at)} if whole else {})
        for c in CLICKS
    ]  # fmt: skip
    lines(folder / "clicks" / "c.jsonl", clicks)
    value = propose("queries/*", "clicks/*", folder).choices["foreign.event_time"].value
    assert value == ("when" if whole else "date")


def test_the_output_of_another_pipeline(folder: Path) -> None:
    """A chain: orders name the clicks of a pipeline, whose own books are no columns of the output."""
    rows = [
        {"event_id": c.name, "event_time": c.at, "token": "clicks/main/1", "batch": c.number,
         "primary_record": json.dumps({"item": {"sku": f"s{c.number}"}})}
        for c in CLICKS
    ]  # fmt: skip
    write_deltalake(str(folder / "lake/clicks/joined"), pa.Table.from_pylist(rows))
    orders = [{"order_id": f"o{c.number}", "click": c.name, "at": iso(c.at + timedelta(hours=3))} for c in CLICKS[:90]]
    (folder / "orders").mkdir()
    lines(folder / "orders" / "0.jsonl", orders)
    for source, shown in (("pipeline:clicks", "name: clicks"), ("table:lake/clicks/joined", "kind: delta")):
        proposal = propose(source, "orders/*", folder, "sales")
        values = {name: choice.value for name, choice in proposal.choices.items()}
        assert (values["primary.event_id"], values["foreign.primary_id"]) == (("event_id",), ("click",))
        assert shown in proposal.text
        (folder / "p.yaml").write_text(proposal.text)
        found = validate(load(folder / "p.yaml"))
        assert found.problems == []
        assert found.matches
        assert (found.matches.found, found.matches.primary) == (90, len(CLICKS))
    chained = propose("pipeline:clicks", "orders/*", folder).text
    assert "primary.primary_record.item.sku" in chained
    assert "primary.token" not in chained
    with pytest.raises(ConfigError, match="has no row yet"):
        propose("pipeline:others", "orders/*", folder)
    with pytest.raises(ConfigError, match="no pipeline's name"):
        propose("pipeline:lake/clicks", "orders/*", folder)
