"""A log of several kinds of records: `init` finds what tells them apart, and which kind looks the other up."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from clickjoin.config import load
from clickjoin.model.errors import ConfigError
from clickjoin.proposal.file import propose
from clickjoin.report.validate import validate
from tests.unit.proposal_bench import CLICKS, QUERIES, START, iso, lines
from tests.unit.proposal_bench import folder as folder

BEATS = [{"type": "beat", "at": iso(START), "host": f"h{n}"} for n in range(50)]
SCROLLS = [
    {"type": "scroll", "scroll_id": f"s{c.number}", "at": iso(c.at), "query_id": c.query.name} for c in CLICKS[:90]
]
THERE = {"exists": True}


def one_log(folder: Path) -> None:
    """Both kinds, and a third one, in one folder of files."""
    records: list[dict[str, Any]] = [{"event": "view", "id": q.name, "at": iso(q.at), "path": "/"} for q in QUERIES]
    records += [{"event": "click", "id": c.name, "at": iso(c.at), "of": {"id": c.query.name}} for c in CLICKS]
    records += [{"event": "beat", "id": f"b{n}", "at": iso(START), "lang": "en"} for n in range(900)]
    (folder / "log").mkdir()
    for number in range(4):
        lines(folder / "log" / f"{number}.jsonl", sorted(records[number::4], key=lambda record: str(record["at"])))


def test_a_log_of_several_kinds(folder: Path) -> None:
    """The field that tells them apart is found, and the two kinds of which one names the other."""
    one_log(folder)
    proposal = propose("log/*", "log/*", folder)
    values = {name: choice.value for name, choice in proposal.choices.items()}
    assert values["primary.where"] == {"event": ("view",)}
    assert values["foreign.where"] == {"event": ("click",)}
    assert values["foreign.primary_id"] == ("of.id",)
    (folder / "p.yaml").write_text(proposal.text)
    found = validate(load(folder / "p.yaml"))
    assert found.problems == []
    assert found.matches
    assert (found.matches.found, found.matches.primary) == (len(CLICKS), len(QUERIES))
    assert found.samples["primary"].passed == 900


@pytest.mark.parametrize("kinds", [("door", "ramp", "exit", "lost"), (1, 2, 3, 4), (1.5, 2.5, "3", True)])
def test_all_kinds_that_join_alike_are_taken(folder: Path, kinds: tuple[Any, ...]) -> None:
    """Several kinds look up, several are looked up; the field may be a number, or true and false."""
    (folder / "log").mkdir()
    records = [{"kind": kinds[q.number % 2], "id": q.name, "at": iso(q.at)} for q in QUERIES]
    records += [{"kind": kinds[2 + c.number % 2], "id": c.name, "at": iso(c.at), "of": c.query.name} for c in CLICKS]
    lines(folder / "log" / "0.jsonl", records)
    (folder / "p.yaml").write_text(propose("log/*", "log/*", folder).text)
    found = validate(load(folder / "p.yaml"))
    assert found.problems == []
    assert found.matches
    assert (found.matches.found, found.matches.primary) == (len(CLICKS), len(QUERIES))


@pytest.mark.parametrize("views", [1, 3])
def test_what_comes_later_looks_up(folder: Path, views: int) -> None:
    """Both kinds hold the same id, and the one that is looked up is the more frequent one, or as frequent."""
    (folder / "log").mkdir()
    shown = [(f"{c.name}-{n}", c.at - timedelta(seconds=20 + n)) for c in CLICKS for n in range(views)]
    records = [{"type": "page", "event": "view", "id": name, "at": iso(at), "view": name} for name, at in shown]
    records += [{"type": "track", "event": "tap", "id": c.name, "at": iso(c.at), "view": f"{c.name}-0"} for c in CLICKS]
    records += [{"type": "track", "event": "buy", "id": f"b{n}", "at": iso(START)} for n in range(len(CLICKS) // 5)]
    lines(folder / "log" / "0.jsonl", records)
    values = {name: choice.value for name, choice in propose("log/*", "log/*", folder).choices.items()}
    assert (values["primary.where"], values["foreign.where"]) == ({"event": ("view",)}, {"event": ("tap",)})
    assert (values["foreign.event_id"], values["foreign.primary_id"]) == (("id",), ("view",))


@pytest.mark.parametrize(
    ("beside_clicks", "beside_queries", "words"),
    [
        (BEATS, [], "type tells records of this log apart: click 400, beat 50"),
        (SCROLLS, [], "click 400, scroll 90; scroll would join too, by other columns: that is another pipeline"),
        ([*BEATS, *SCROLLS], [], "click 400, scroll 90, beat 50; scroll would join too"),
        ([], BEATS, ""),
        (BEATS, BEATS, "click 400, beat 50"),
    ],
)
@pytest.mark.parametrize("typed", [True, False])
def test_records_of_other_kinds_beside_a_stream_s(
    folder: Path, beside_clicks: list[Any], beside_queries: list[Any], words: str, *, typed: bool
) -> None:
    """They are passed over, by a field's value or by whether a record has a field."""
    clicks = [{"type": "click", "click_id": c.name, "at": iso(c.at), "query_id": c.query.name} for c in CLICKS]
    queries = [{"type": "query", "query_id": q.name, "at": iso(q.at)} for q in QUERIES]

    def write(name: str, records: list[Any]) -> None:
        kept = records if typed else [{key: value for key, value in one.items() if key != "type"} for one in records]
        lines(folder / name / "0.jsonl", kept)

    write("clicks", clicks + beside_clicks)
    write("queries", queries + beside_queries)
    proposal = propose("queries/*", "clicks/*", folder)
    where = {name: proposal.choices.get(f"{name}.where") for name in ("foreign", "primary")}
    values = {name: choice.value for name, choice in where.items() if choice}
    click, query = ({"type": ("click",)}, {"type": ("query",)}) if typed else ({"click_id": THERE}, {"query_id": THERE})
    assert values == ({"foreign": click} if beside_clicks else {}) | ({"primary": query} if beside_queries else {})
    if typed and where["foreign"]:
        assert words in where["foreign"].why
    (folder / "p.yaml").write_text(proposal.text)
    found = validate(load(folder / "p.yaml"))
    assert found.problems == []
    assert found.matches
    assert (found.matches.found, found.matches.primary) == (len(CLICKS), len(QUERIES))


@pytest.mark.parametrize("share", [0.05, 0.15])
def test_signs_of_life_that_are_all_the_same(folder: Path, share: float) -> None:
    """They were taken for one record that was sent again, and went to quarantine."""
    clicks: list[dict[str, Any]] = [
        {"type": "click", "click_id": c.name, "at": iso(c.at), "of": c.query.name} for c in CLICKS
    ]
    beats = [{"type": "beat", "at": iso(START)}] * int(share * len(CLICKS))
    lines(folder / "queries" / "q.jsonl", [{"query_id": q.name, "at": iso(q.at)} for q in QUERIES])
    lines(folder / "clicks" / "c.jsonl", [*clicks, *beats, *clicks[:9]])
    (folder / "p.yaml").write_text(propose("queries/*", "clicks/*", folder).text)
    foreign = load(folder / "p.yaml").foreign
    assert foreign
    assert [str(condition) for condition in foreign.where] == ['type is "click"']
    found = validate(load(folder / "p.yaml"))
    assert (found.problems, found.samples["foreign"].bad) == ([], ())


@pytest.mark.parametrize("null", [True, False])
def test_kinds_that_only_their_fields_tell_apart(folder: Path, *, null: bool) -> None:
    """The field by which one names the other comes before those that it only lacks or has besides."""
    (folder / "log").mkdir()
    records: list[dict[str, Any]] = [{"id": c.name, "at": iso(c.at), "of": c.query.name} for c in CLICKS]
    records += [{"id": q.name, "at": iso(q.at), "sku": "s"} | ({"of": None} if null else {}) for q in QUERIES]
    lines(folder / "log" / "0.jsonl", records)
    proposal = propose("log/*", "log/*", folder)
    wheres = [proposal.choices[f"{name}.where"].value for name in ("primary", "foreign")]
    assert wheres == [{"of": {"exists": False}}, {"of": THERE}]
    (folder / "p.yaml").write_text(proposal.text)
    found = validate(load(folder / "p.yaml"))
    assert (found.problems, found.matches and found.matches.found) == ([], len(CLICKS))


def test_a_log_whose_records_name_no_other(folder: Path) -> None:
    (folder / "log").mkdir()
    lines(folder / "log" / "0.jsonl", [{"event": "ab"[q.number % 2], "id": q.name, "at": iso(q.at)} for q in QUERIES])
    with pytest.raises(ConfigError, match="no field tells kinds of records apart"):
        propose("log/*", "log/*", folder)


def test_conditions_that_no_record_meets(folder: Path) -> None:
    one_log(folder)
    text = propose("log/*", "log/*", folder).text
    (folder / "p.yaml").write_text(text.replace("event: click", "event: tap"))
    with (folder / "log" / "0.jsonl").open("a") as file:
        file.write("{broken\n")
    assert [problem for problem in validate(load(folder / "p.yaml")).problems if "foreign.where: no record" in problem]
    (folder / "p.yaml").write_text(text.replace("event: view", "event: sight"))
    assert [problem for problem in validate(load(folder / "p.yaml")).problems if "primary.where: no record" in problem]


def test_a_log_of_few_records_one_of_which_has_no_time(folder: Path) -> None:
    (folder / "log").mkdir()
    at = iso(START)
    records = [{"k": "a", "id": "1", "at": at}, {"k": "b", "id": "2", "at": at, "of": "1"}, {"k": "a", "id": "3"}]
    lines(folder / "log" / "0.jsonl", records)
    assert "event_time: FILL_IN" in propose("log/*", "log/*", folder).text
