"""`init` where orders name no page view: a key that both logs share, proposed with what was seen."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from clickjoin.config import Pipeline, load
from clickjoin.model.errors import ConfigError
from clickjoin.model.ids import Around
from clickjoin.model.where import in_words
from clickjoin.proposal.file import propose
from clickjoin.proposal.guess import GUESS, LIKELY
from clickjoin.report.validate import validate
from clickjoin.yaml_file import parse
from tests.unit.proposal_bench import CLICKS, QUERIES, iso, lines
from tests.unit.proposal_bench import folder as folder

ROOT = Path(__file__).parents[2]
DICE = random.Random(3)
USERS = [f"u{number}" for number in range(10)]


def pages(**more: Any) -> list[dict[str, Any]]:
    return [
        {"id": q.name, "at": iso(q.at), "user": {"id": DICE.choice(USERS)}, "channel": "ads", **more} for q in QUERIES
    ]


def orders(**more: Any) -> list[dict[str, Any]]:
    return [{"id": c.name, "at": iso(c.at), "user": {"id": DICE.choice(USERS)}, "total": 5, **more} for c in CLICKS]


def written(folder: Path, *, one: bool) -> Path:
    """The proposed file, which validates without a hand on it."""
    named = ("events/*", "events/*") if one else ("queries/*", "clicks/*")
    found = propose(*named, folder)
    assert found.choices["foreign.match"].value == {"on": "user.id", "pick": "last", "within": "7d"}
    assert found.choices["foreign.match"].sure == LIKELY
    assert "400 of 400 sampled foreign records share it" in found.choices["foreign.match"].why
    assert not {"foreign.primary_id", "foreign.primary_time"} & found.choices.keys()
    file = folder / "shop.yaml"
    file.write_text(found.text)
    assert "user.id}" not in found.text, "the key is no column of the output besides"
    assert not validate(load(file)).problems
    return file


def test_two_logs(folder: Path) -> None:
    lines(folder / "queries" / "q.jsonl", pages())
    lines(folder / "clicks" / "c.jsonl", orders())
    written(folder, one=False)


def test_one_log_of_several_kinds(folder: Path) -> None:
    beats = [{"id": f"b{n}", "type": "scroll", "at": iso(q.at), "user": {"id": "u1"}} for n, q in enumerate(QUERIES)]
    (folder / "events").mkdir()
    lines(folder / "events" / "e.jsonl", [*pages(type="page"), *orders(type="order"), *beats])
    pipeline = load(written(folder, one=True))
    assert [in_words(item.stream.where) for item in pipeline.inputs] == ['type is "page"', 'type is "order"']
    assert pipeline.kept("primary") == pipeline.registry.retention + 7 * 86400


def test_a_country_is_no_key(folder: Path) -> None:
    """Nor is what few foreign records share."""
    few = [record | {"user": {"id": f"x{n}"}, "country_id": "de"} for n, record in enumerate(orders())]
    lines(folder / "queries" / "q.jsonl", pages(country_id="de"))
    lines(folder / "clicks" / "c.jsonl", few)
    assert propose("queries/*", "clicks/*", folder).choices["foreign.primary_id"].value == ("FILL_IN",)


def test_a_column_called_otherwise_is_a_guess(folder: Path) -> None:
    renamed = [{"id": r["id"], "at": r["at"], "ref_id": r["user"]["id"]} for r in orders()]
    named = [{"id": r["id"], "at": r["at"], "own_key": r["user"]["id"]} for r in pages()]
    lines(folder / "queries" / "q.jsonl", named)
    lines(folder / "clicks" / "c.jsonl", renamed)
    found = propose("queries/*", "clicks/*", folder).choices["foreign.match"]
    assert (found.sure, found.value["on"]) == (GUESS, {"foreign": "ref_id", "primary": "own_key"})


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("primary_id: q", "foreign.primary_id: is of no use beside match"),
        ("match: {on: user.id, within: 30d}", "match.within .30d. is longer than retention.primary"),
        ("match: {on: {foreign: user.id}, within: 1d}", "foreign.match.on.primary: is missing"),
        ("match: {on: user.id, within: 1d, pick: any}", "foreign.match.pick: 'any' is unknown here"),
        (
            "match: {on: user.id, within: 1d, pick: all, prefer: {a: b}}",
            "prefer chooses one touch, and pick: all keeps",
        ),
        ("match: {on: user.id, within: 1d, limit: 9}", "limit is how many touches pick: all keeps; remove it"),
        ("match: {on: user.id, within: 1d, pick: all, limit: 1}", "foreign.match.limit: Input should be greater"),
        ("match: {on: user.id}", "foreign.match.within: is missing"),
        ("match: {on: {}, within: 1d}", "match.on.foreign: names no key; write a column"),
        ("match: {on: {all: [a], first: [b]}, within: 1d}", "match.on.primary: names no key"),
        ("match: {on: [], within: 1d}", "match.on.foreign.all: Tuple should have at least 1 item"),
    ],
)
def test_what_is_refused(folder: Path, change: str, why: str) -> None:
    lines(folder / "queries" / "q.jsonl", pages())
    lines(folder / "clicks" / "c.jsonl", orders())
    text = written(folder, one=False).read_text()
    row = next(line for line in text.splitlines() if line.startswith("  match:"))
    other = f"  {change}" if change.startswith("match") else f"{row}\n  {change}"
    (folder / "other.yaml").write_text(text.replace(row, other) + "retention: {primary: 10d}\n")
    with pytest.raises(ConfigError, match=why):
        load(folder / "other.yaml")


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (
            "adapter: shop.adapters:Own",
            "pick: all takes what `output` says of each touch, and adapter shop.adapters:Own",
        ),
        (
            "output: {columns: {Position: primary.n, touches: primary.t}}",
            "output.columns: position, touches is a column",
        ),
    ],
)
def test_what_has_no_room_for_all_touches(folder: Path, more: str, why: str) -> None:
    lines(folder / "queries" / "q.jsonl", pages())
    lines(folder / "clicks" / "c.jsonl", orders())
    whole = parse(written(folder, one=False).read_text())
    whole["foreign"]["match"] = {"on": "user.id", "within": "1d", "pick": "all"}
    (folder / "other.yaml").write_text(json.dumps({**whole, "output": {}} | parse(more)))
    with pytest.raises(ConfigError, match=why):
        load(folder / "other.yaml")


def test_the_example_of_the_docs() -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/attribution.md").read_text(), re.DOTALL)
    pipeline = Pipeline.model_validate(parse(text))
    assert pipeline.around == Around(7 * 86_400_000_000, 0, "last", prefer=True)
    assert pipeline.kept("primary") == 10 * 86_400
