"""A date to check the quality of; ways to break it, each with the checks that it turns red; ways to break its store."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from tests.spark.bench import Bench, click, query
from tests.spark.hand import Hand

DAY = date(2026, 3, 1)
CLICKS = 60
KEEP = {"metrics": "9999d"}  # the date is years from the machine's own clock
OWN = [
    {"table": "foreign", "expectation": "expect_column_values_to_be_between", "column": "position",
     "args": {"min_value": 0, "max_value": 9}},
    {"table": "joined", "expectation": "expect_column_values_to_match_regex", "column": "foreign_record.item",
     "args": {"regex": "^i[0-9]+$"}, "level": "warn", "name": "items"},
    {"table": "foreign", "expectation": "expect_column_values_to_not_be_null", "column": "item"},
]  # fmt: skip
POSITION = "foreign.column_values_to_be_between.position"


def lake(make: Callable[..., Bench]) -> Bench:
    """Clicks of one date: 48 are joined, 12 filtered, one waits."""
    bench = make(adapter="clickjoin.examples.adapters:TopPositions", quality={"expectations": OWN}, retention=KEEP)
    shown = [query(f"q{n}", n, item=f"i{n}", campaign="all") for n in range(20)]
    bench.queries(*shown)
    waits = click("w", 55, query("never"), item="i1", position=1)
    bench.clicks(*(_click(n, shown[n % 20]) for n in range(CLICKS)), waits)
    bench.join()
    return bench


def _click(n: int, of: Mapping[str, Any]) -> dict[str, Any]:
    more = {"size": n} if n % 4 < 2 else {}
    return click(f"c{n:02}", 30 + n / 4, of, item=f"i{n}", position=9 if n % 10 > 7 else n % 3, **more)


def _half(hand: Hand) -> None:
    for n in range(1, CLICKS, 2):
        for table in ("foreign", "joined", "filtered", "registry"):
            hand.delete(table, f"c{n:02}")


def _no_primary(hand: Hand) -> None:
    waits = hand.rows("pending", "w")[0]
    for n in (0, 1, 2, 3, 4, 5, 6, 7):
        hand.add(
            "pending", waits, **{key: hand.rows("foreign", f"c{n:02}")[0][key] for key in ("event_id", "event_time")}
        )
        for table in ("joined", "registry"):
            hand.delete(table, f"c{n:02}")


def _payload(sql: str, where: str | None = None) -> Callable[[Hand], None]:
    return _set("foreign", where, payload=sql)


def _again(*tables: str) -> Callable[[Hand], None]:
    def add(hand: Hand) -> None:
        for table in tables:
            hand.add(table, hand.rows(table, "q3" if table == "primary" else "c03")[0])

    return add


def _set(table: str, where: str | None = None, **updates: str) -> Callable[[Hand], None]:
    def change(hand: Hand) -> None:
        hand.table(table).update(predicate=where, updates=updates)

    return change


def _gone(*tables: str) -> Callable[[Hand], None]:
    def delete(hand: Hand) -> None:
        for table in tables:
            hand.delete(table, "c03")

    return delete


C3 = "event_id LIKE 'c03:%'"
RENAMED = "replace(payload, '\"size\"', '\"<b>extent</b>\"')"
EMPTIED = 'replace(payload, \'"item": "i\', \'"item": null, "none": "\')'
TEXT = 'regexp_replace(payload, \'"position": ([0-9]+)\', \'"position": "$1"\')'


def _strange(hand: Hand) -> None:
    _set("registry", C3, outcome="'thrown'")(hand)
    _set("joined", published_at="published_at + INTERVAL '900 days'")(hand)
    _set("metrics", quarantined="50")(hand)
    hand.delete("registry", "c04")
    hand.delete("foreign", "c05")
    hand.bench.clock.now += 3 * 3600


def _emptied(hand: Hand) -> None:
    _no_primary(hand)
    _payload(RENAMED)(hand)
    _payload(EMPTIED, "event_id LIKE 'c1%' OR event_id LIKE 'c2%'")(hand)


def _stamped_again(hand: Hand) -> None:
    """The same click once more, at another time, in all tables that it is in."""
    for table in ("foreign", "joined", "registry"):
        row = hand.rows(table, "c03")[0]
        hand.add(
            table,
            row,
            event_time=row["event_time"] + timedelta(minutes=5),
            **({"offset": 9999} if table == "foreign" else {}),
        )


def _sent_again(hand: Hand) -> None:
    """One record in six once more, behind the others."""
    for n in range(12):
        hand.add("foreign", hand.rows("foreign", f"c{n:02}")[0], offset=10_000 + n)


def _new_column(hand: Hand) -> None:
    hand.bench.engine.lake.delta.add_columns("joined", {"extra": "STRING"})


NO_OUTPUT = {"foreign.every_input_accounted_for", "registry.claims_have_outputs"}
BROKEN: dict[str, tuple[Callable[[Hand], None], set[str]]] = {
    "half of the clicks": (_half, {"foreign.volume"}),
    "a null": (_set("joined", C3, primary_id="NULL"), {"joined.not_null.primary_id"}),
    "duplicates": (
        _again("joined", "registry", "primary", "foreign"),
        {"joined.unique_ids", "registry.unique_ids", "primary.landed_once", "foreign.landed_once"},
    ),
    "records that were sent again": (_sent_again, {"foreign.repeat_rate"}),
    "a column left empty": (_set("joined", None, price="NULL"), {"joined.null_rate.price"}),
    "a new column": (_new_column, {"joined.columns_new"}),
    "a token by hand": (_set("registry", C3, token="'by hand'"), {"registry.token_form", "registry.claims_agree"}),
    "an id that was stamped again": (_stamped_again, {"joined.ids_stamped_once"}),
    "a changed type": (_payload(TEXT), {"foreign.fields_kept"}),
    "a lost click": (_gone("joined", "registry"), {"foreign.every_input_accounted_for"}),
    "a claim without a row": (_gone("joined"), NO_OUTPUT),
    "queries that never came, a renamed field, one left empty": (
        _emptied,
        {"joined.completeness", "foreign.fields_kept", "foreign.fields_new", "foreign.null_rate.item"}
        | {"foreign.column_values_to_not_be_null.item"},
    ),
    "a strange claim, none, no record, slow output, bad input, silence": (
        _strange,
        {"registry.known_outcomes", "registry.claims_agree", "registry.outputs_have_claims", "joined.known_ids"}
        | {"foreign.quarantine_rate", "foreign.freshness", "primary.freshness"}
        | {f"joined.delay_p{share}" for share in (50, 90, 99)},
    ),
}


def _garbage(root: Path) -> None:
    (root / "quality/_delta_log/00000000000000000000.json").write_text("{broken")


def _no_files(root: Path) -> None:
    for part in (root / "quality").glob("*.parquet"):
        part.write_bytes(b"PAR1")


def _other_table(root: Path) -> None:
    shutil.rmtree(root / "quality")
    shutil.copytree(root / "registry_boundary", root / "quality")


def _a_file(root: Path) -> None:
    shutil.rmtree(root / "quality")
    (root / "quality").write_text("not a table")


def _no_folder(root: Path) -> None:
    shutil.rmtree(root / "_quality")
    (root / "_quality").write_text("not a folder")


CORRUPT = (_garbage, _no_files, _other_table, _a_file, _no_folder)
