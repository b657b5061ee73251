"""The one place where schemas are written down: whole, consistent, and printed in full."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from clickjoin.kernel.types import delta_type
from clickjoin.schemas import ALL, BY_NAME, Table, markdown
from clickjoin.schemas.arrow import arrow_schema

# These are promised by name; the others are what the steps need besides.
NAMED = {"joined", "primary", "foreign", "registry", "pending", "unjoinable", "expired", "filtered", "quarantine"}
BOOKS = {"journal", "metrics", "shard_timeline", "registry_boundary"}
EVERY = pytest.mark.parametrize("table", ALL, ids=lambda table: table.name)


def test_names() -> None:
    assert NAMED | {"journal", "metrics"} <= set(BY_NAME)
    assert set(BY_NAME) - NAMED == BOOKS | {
        "verification",
        "findings",
        "removed_duplicates",
        "dates",
        "quality",
        "forgotten",
    }
    assert len(BY_NAME) == len(ALL)


@EVERY
def test_each_is_whole(table: Table) -> None:
    assert len(set(table.names)) == len(table.names)
    assert set(table.partitions) | set(table.statistics) <= set(table.names)
    assert table.purpose
    for column in table.columns:
        assert re.fullmatch(r"[a-z][a-z0-9_]*", column.name)
        assert delta_type(column.type)
        assert len(column.meaning) > 3, column
    assert table.ddl.count("`") == 2 * len(table.columns)


@EVERY
def test_identity_comes_with_its_place(table: Table) -> None:
    if "shard" in table.names and "event_id" in table.names:
        assert table.names[:4] == ["event_id", "event_time", "bucket", "shard"]


@pytest.mark.parametrize("name", [*sorted(BOOKS), "verification", "dates", "quality"])
def test_written_without_spark(name: str) -> None:
    assert arrow_schema(BY_NAME[name]).names == BY_NAME[name].names


def test_types_of_one_name_agree() -> None:
    types: dict[str, set[str]] = {}
    for table in ALL:
        for column in table.columns:
            types.setdefault(column.name, set()).add(column.type)
    # In the timeline it is the rule by which an event's time is found.
    assert {name for name, kinds in types.items() if len(kinds) > 1} == {"event_time"}


def test_markdown_covers_all() -> None:
    text = markdown()
    for table in ALL:
        _, _, rest = text.partition(f"\n## {table.name}\n")
        section = rest.partition("\n## ")[0]
        rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (.+) \|$", section, re.MULTILINE)
        assert [(name, kind) for name, kind, _ in rows] == [(c.name, c.type) for c in table.columns]
        assert all("|" not in meaning for _, _, meaning in rows)
        for name in table.partitions:
            assert f"`{name}`" in section


def test_the_page_is_what_the_command_prints() -> None:
    page = Path(__file__).resolve().parents[2] / "docs/tables.md"
    assert page.read_text() == f"{markdown()}\n", "print it again: clickjoin schema --markdown > docs/tables.md"
