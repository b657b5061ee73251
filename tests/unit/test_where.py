"""One log of several kinds of records: what each stream takes of it, what nobody takes, and what is broken."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from clickjoin.config.where import Conditions
from clickjoin.model.where import Condition, Where, in_words
from tests.unit.sources_bench import BASE, Feed

PATHS = ("kind", "meta.level", "gone")
FORMS = TypeAdapter(Conditions)


def conditions(raw: Any) -> tuple[Condition, ...]:
    return tuple(FORMS.validate_python(raw))


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ({"type": "click"}, 'type is "click"'),
        ({"type": ["click", "tap"]}, 'type is "click", "tap"'),
        ({"type": {"not": "page"}}, 'type is not "page"'),
        ({"type": {"not": ["page", 3]}, "bot": False}, 'type is not "page", "3" and bot is "false"'),
        ({"`a.b`.c": {"exists": True}}, "`a.b`.c exists"),
        ({"type": {"exists": False}}, "type is missing"),
        ({"level": 1.0}, 'level is "1"'),
    ],
)
def test_what_it_says(raw: Any, words: str) -> None:
    assert in_words(conditions(raw)) == words


def test_what_was_dumped_is_read_again() -> None:
    given = conditions({"type": ["a", "b"], "bot": {"not": True}, "x": {"exists": False}})
    assert tuple(FORMS.validate_json(FORMS.dump_json(given))) == given


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        ({}, "maps a field"),
        ("type = click", "maps a field"),
        (["type", "click"], "maps a field"),
        ({"type": None}, "equal to no value"),
        ({"type": []}, "equal to no value"),
        ({"type": ""}, "equal to no value"),
        ({"type": [["a"]]}, "equal to no value"),
        ({"type": {"is": "a"}}, "no condition"),
        ({"type": {"not": "a", "exists": True}}, "no condition"),
        ({"type": {"exists": "yes"}}, "no condition"),
        ({"type": {"not": None}}, "equal to no value"),
        ({"a..b": 1}, "a..b"),
        ({True: "x"}, "put it in quotes"),
        ({None: "x"}, "put it in quotes"),
    ],
)
def test_what_is_no_condition(raw: Any, why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        conditions(raw)


VALUE = st.one_of(
    st.none(), st.booleans(), st.sampled_from([0, 1, 1.0, 1.5, -7, 2**60, "", "1", "a", "true", "b"]),
    st.sampled_from([[], ["a"], {"a": 1}, {}]),
)  # fmt: skip
SCALARS = st.sampled_from([True, False, 0, 1, 1.5, -7, 2**60, "1", "a", "true", "b"])
WANTED = st.one_of(
    SCALARS, st.lists(SCALARS, min_size=1, max_size=3), st.fixed_dictionaries({"not": SCALARS}),
    st.fixed_dictionaries({"exists": st.booleans()}),
)  # fmt: skip
RULES = st.dictionaries(st.sampled_from(PATHS), WANTED, min_size=1, max_size=2)
RECORD = st.fixed_dictionaries({}, optional={"kind": VALUE, "meta": st.fixed_dictionaries({"level": VALUE}) | VALUE})
LINE = RECORD | st.sampled_from(["{broken", "[1]", "3", '{"kind": "a", "kind": "b", "id": "x"}'])


def said(value: Any) -> str | None:
    """A value as rules compare it, by another way than the product's: None where there is none."""
    if value is None or value == "":
        return None
    if isinstance(value, list | dict):
        return "an array or object"
    number = not isinstance(value, str | bool)
    return str(int(value)) if number and value == int(value) else value if isinstance(value, str) else json.dumps(value)


def holds(rules: dict[str, Any], record: dict[str, Any]) -> bool:
    """The oracle."""
    for path, wanted in rules.items():
        held: Any = record
        for key in path.split("."):
            held = held.get(key) if isinstance(held, dict) else None
        value = said(held)
        if isinstance(wanted, dict) and "exists" in wanted:
            good = (value is not None) == wanted["exists"]
        elif isinstance(wanted, dict):
            good = value != said(wanted["not"])
        else:
            good = value in [said(one) for one in (wanted if isinstance(wanted, list) else [wanted])]
        if not good:
            return False
    return True


def taken(feed: Feed, where: Where, **more: Any) -> tuple[list[int], list[str], int]:
    """Numbers of the lines that a stream takes, what it quarantines, and how many records it counts as passed over."""
    rows = feed.read(feed.plan().splits, where=where, **more)
    feed.positions.clear()
    passed = sum(int(row["detail"]) for row in rows if row["reason"] == "passed-over")
    bad = sorted(bytes(row["raw"]).decode().strip() for row in rows if row["reason"] not in (None, "passed-over"))
    good = [int(row["event_id"].rsplit(":", 1)[1]) - BASE for row in rows if row["reason"] is None]
    return sorted(good), bad, passed


@settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(LINE, max_size=30), RULES, RULES | st.none())
def test_both_sides_of_a_log(tmp_path: Path, lines: list[Any], first: dict[str, Any], second: Any) -> None:
    """Each record lands with whom it belongs to, a broken one is quarantined once, and what nobody takes is counted."""
    records = {
        number: line if isinstance(line, str) else line | {"id": f"h:1:{BASE + number}"}
        for number, line in enumerate(lines)
    }
    texts = [record if isinstance(record, str) else json.dumps(record) for record in records.values()]
    (tmp_path / "a.jsonl").write_text("".join(f"{text}\n" for text in texts))
    mine, theirs = conditions(first), conditions(second) if second else ()
    left = taken(Feed(tmp_path), Where(mine, theirs))
    right = taken(Feed(tmp_path), Where(theirs, mine, quiet=True))
    good = {number: record for number, record in records.items() if isinstance(record, dict)}
    for found, rules in ((left, first), (right, second or {})):
        assert found[0] == [number for number, record in good.items() if holds(rules, record)]
    nobody = [record for record in good.values() if not holds(first, record) and not holds(second or {}, record)]
    broken = [line for line in records.values() if isinstance(line, str)]
    twice = sum("kind" in line for line in broken)  # passed over where nobody looks at that key
    assert (len(nobody) <= left[2] <= len(nobody) + twice, right[2]) == (True, 0)
    for kind in {line for line in broken if "kind" not in line}:
        assert (left[1].count(kind), right[1].count(kind)) == (broken.count(kind), 0)
    # A key named twice is seen by whoever looks at it, and lost to nobody.
    for kind in {line for line in broken if "kind" in line}:
        assert left[1].count(kind) + right[1].count(kind) >= (broken.count(kind) if "kind" in {*first} else 0)


@settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from(["a", "b", "", "1"]), st.sampled_from(["x", "", "2"])), max_size=20), RULES)
def test_csv(tmp_path: Path, pairs: list[tuple[str, str]], rules: dict[str, Any]) -> None:
    """Every value is text, and an empty one is none."""
    rules = {path.replace("meta.level", "level"): wanted for path, wanted in rules.items()}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["id", "kind", "level"])
    writer.writerows([f"h:1:{BASE + number}", *pair] for number, pair in enumerate(pairs))
    (tmp_path / "a.csv").write_text(text.getvalue())
    found = taken(Feed(tmp_path, "*.csv"), Where(conditions(rules)))
    good = [number for number, (kind, level) in enumerate(pairs) if holds(rules, {"kind": kind, "level": level})]
    assert found == (good, [], len(pairs) - len(good))


def test_what_is_bad_of_the_own_kind_alone(tmp_path: Path) -> None:
    """A record of the other kind may lack the id, or hold something else there."""
    lines = [{"kind": "b"}, {"kind": "b", "id": {"of": 1}}, {"kind": "a"}, {"kind": "a", "id": {}}, {"id": 7}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    own, other = conditions({"kind": "a"}), conditions({"kind": "b"})
    assert taken(Feed(tmp_path), Where(own, other))[1:] == ([json.dumps(lines[3]), json.dumps(lines[2])], 1)


def test_elements_of_an_array(tmp_path: Path) -> None:
    """Each element is judged by itself, wherever it lies in its line."""
    events = [{"kind": "ab"[number % 2], "id": f"h:1:{BASE + number}"} for number in range(7)]
    (tmp_path / "a.jsonl").write_text(json.dumps({"Records": events}) + "\n")
    found = taken(Feed(tmp_path), Where(conditions({"kind": "b"})), records=("Records",))
    assert found == ([1, 3, 5], [], 4)
