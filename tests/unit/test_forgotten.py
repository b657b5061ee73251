"""What landing leaves of a forgotten record, which values a condition matches, and which change feed goes."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from clickjoin.engines.arrow import ArrowTables
from clickjoin.erasure.wanted import Condition, parse, word
from clickjoin.forgotten.known import Events, add, forgotten, not_to_land
from clickjoin.kernel.forgotten import NOTHING, WHY, Forgotten, digest, without_bytes, without_records
from clickjoin.kernel.land_task import Place, placed
from clickjoin.kernel.parquet_rows import KEYS
from clickjoin.kernel.read_lines import SCHEMA
from clickjoin.kernel.typed_columns.by_line import matcher
from clickjoin.lake.vacuum import Needed, vacuum
from clickjoin.model.errors import ConfigError, TableMissing
from clickjoin.model.field_path import parse_path
from clickjoin.model.ids import micros_of
from clickjoin.schemas import FORGOTTEN, JOINED

AT, LATER = datetime(2026, 1, 1, 12, tzinfo=UTC), datetime(2026, 1, 1, 13, tzinfo=UTC)


def records(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=SCHEMA)


def good(name: str, at: datetime, of: str) -> dict[str, Any]:
    return {
        "event_id": name,
        "event_time": at,
        "primary_id": of,
        "primary_time": AT,
        "payload": '{"u": 1}',
        "offset": 1,
    }


def keys(*pairs: tuple[str, datetime]) -> pa.Table:
    return pa.Table.from_pylist([{"event_id": name, "event_time": at} for name, at in pairs], schema=KEYS)


def test_a_forgotten_record_keeps_its_place_and_nothing_else() -> None:
    rows = records(good("a", AT, "q"), good("a", LATER, "q"), good("b", AT, "p"), good("c", AT, "q"))
    known = Forgotten(keys(("a", AT), ("z", AT)))
    left = without_records(rows, known, foreign=True)
    assert list(zip(left["payload"].to_pylist(), left["primary_id"].to_pylist(), strict=True)) == [
        ("{}", ""), ('{"u": 1}', "q"), ('{"u": 1}', "p"), ('{"u": 1}', "q"),
    ]  # fmt: skip
    same = ["event_id", "event_time", "primary_time", "offset", "length", "path"]
    assert left.select(same) == rows.select(same)
    place = Place(3600, (), (4,), 1, "main", 0, "foreign", known)
    assert placed(rows, place)[0]["payload"].to_pylist() == left["payload"].to_pylist()
    assert without_records(rows, NOTHING, foreign=True) is rows
    primary = without_records(rows, known, foreign=False)
    assert primary["primary_id"].to_pylist() == [None, "q", "p", "q"], "the key that it is matched by goes, too"


def test_a_forgotten_bad_record_keeps_its_reason() -> None:
    rows = records(
        *({"raw": raw, "reason": "bad-time", "detail": "got 'U17'", "offset": 3} for raw in (b"x", b"y", None))
    )
    left = without_bytes(rows, Forgotten(digests=frozenset({digest(b"x")})))
    assert (left["raw"].to_pylist(), left["detail"].to_pylist()) == (
        [None, b"y", None],
        [WHY, "got 'U17'", "got 'U17'"],
    )
    assert (left["reason"], left["offset"]) == (rows["reason"], rows["offset"])


def test_the_list_is_what_was_put_on_it(tmp_path: Path) -> None:
    delta = ArrowTables(str(tmp_path))
    with pytest.raises(TableMissing):  # a lost list is no empty one
        not_to_land(delta)
    delta.create(FORGOTTEN)
    assert (bool(forgotten(delta)), not_to_land(delta)) == (False, {})
    events = Events({"primary": frozenset({("p", micros_of(AT))}), "foreign": frozenset({("a", micros_of(AT))})},
                    {"foreign": frozenset({"d1"})})  # fmt: skip
    add(delta, events, "GDPR-1", LATER, 3600)
    found = forgotten(delta)
    assert found - events == Events() | Events()
    assert not (events - found)
    assert not found.within(LATER, LATER).of("foreign")
    known = not_to_land(delta)
    assert known["foreign"].keys.to_pylist() == [{"event_id": "a", "event_time": AT}]
    assert known["primary"].keys.to_pylist() == [{"event_id": "p", "event_time": AT}]
    assert (known["foreign"].digests, known["primary"].digests) == ({"d1"}, frozenset())


@pytest.mark.parametrize(
    ("record", "path", "value", "matches"),
    [
        ('{"u": "U17"}', "u", "U17", True),
        ('{"u": "U170"}', "u", "U17", False),
        ('{"u": "U1\\u0037"}', "u", "U17", True),
        ('{"u": 17}', "u", "17", True),
        ('{"u": 17.0}', "u", "17", False),
        ('{"u": true}', "u", "true", True),
        ('{"u": null}', "u", "None", False),
        ('{"u": ["a", "U17"]}', "u", "U17", True),
        ('{"u": {"id": "U17"}}', "u", "U17", False),
        ('{"u": {"id": "U17"}}', "u.id", "U17", True),
        ('{"u": ["a", "U17"]}', "u[0]", "U17", False),
        ("{}", "u", "", False),
        (None, "u", "U17", False),
        ('{"u": "U17"', "u", "U17", True),  # no JSON: by the text
        ("[" * 100_000 + "U17", "u", "U17", True),
    ],
)
def test_what_a_condition_matches(record: str | None, path: str, value: str, matches: bool) -> None:
    assert matcher(parse_path(path), value)(record) is matches


def test_conditions_and_ids(tmp_path: Path) -> None:
    (tmp_path / "ids").write_text("a:1\n\n b:2 \n")
    wanted = parse(["foreign user_id=U=17", "joined.foreign.user.id=4", "primary.`a.b`=x"], str(tmp_path / "ids"))
    assert wanted.conditions[0] == Condition("foreign", ("user_id",), "U=17")
    assert (wanted.conditions[1].column, wanted.conditions[2].path) == ("foreign", ("a.b",))
    assert wanted.ids == {"a:1", "b:2"}
    assert wanted.words("foreign") == {"a:1", "b:2", "U=17"}
    assert parse(["joined.price=3"], None).conditions[0].test("3")
    (tmp_path / "ids").write_text("\n")
    for file in (tmp_path / "ids", tmp_path / "none"):
        with pytest.raises(ConfigError, match=str(file)):
            parse([], str(file))


NONE = ("user_id=secret", "foreign.user_id", "clicks.user_id=secret", "foreign.user_id=", "=", "foreign.a..b=secret")


@pytest.mark.parametrize("where", NONE)
def test_a_condition_that_is_none_does_not_repeat_the_value(where: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse([where], None)
    assert "secret" not in str(error.value)


def test_words_are_whole() -> None:
    import re

    assert re.search(word({"U17", "a:1:2"}), '{"u": "U17", broken')
    for text in ("U170", "xU17", "a:1:23", "a.U17"):
        assert not re.search(word({"U17", "a:1:2"}), text)


def test_files_of_a_change_feed_go_once_they_are_old(tmp_path: Path) -> None:
    delta = ArrowTables(str(tmp_path))
    delta.create(JOINED)
    feed = tmp_path / "joined" / "_change_data" / "bucket=b" / "cdc-1.parquet"
    feed.parent.mkdir(parents=True)
    feed.write_bytes(b"PAR1")
    assert vacuum(delta, "joined", Needed(since=feed.stat().st_mtime)) == []
    assert vacuum(delta, "joined", Needed(since=feed.stat().st_mtime + 7200)) == ["_change_data/bucket=b/cdc-1.parquet"]
    assert not feed.exists()
