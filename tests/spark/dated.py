"""A date to check the quality of; ways to break it, each with the checks that it turns red; ways to break its store."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from clickjoin.lake.restores import RESTORE
from clickjoin.processing.processing import Processing
from clickjoin.quality.suites import REQUIRED
from tests.spark.bench import NOON, Bench, click, query
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
OF_THE_FILE = {POSITION, "joined.items", "foreign.column_values_to_not_be_null.item"}


def lake(make: Callable[..., Bench]) -> Bench:
    """Clicks of one date: 48 are joined, 12 filtered, one waits; an earlier adapter has left a column."""
    bench = make(adapter="clickjoin.examples.adapters:TopPositions", quality={"expectations": OWN}, retention=KEEP)
    bench.engine.lake.delta.add_columns("joined", {"former": "STRING"})
    shown = [query(f"q{n}", n, item=f"i{n}", campaign="all") for n in range(20)]
    bench.queries(*shown)
    waits = click("w", 55, query("never"), item="i1", position=1)
    bench.clicks(*(_click(n, shown[n % 20]) for n in range(CLICKS)), waits)
    bench.join()
    return bench


def processed_lake(make: Callable[..., Bench]) -> Bench:
    """Forty events of one stream, one a minute, whose ids alone name them, counted by per-key processing."""
    bench = make(
        stream={"source": {"kind": "files", "path": "foreign/*"}, "event_id": "id", "event_time": "at"},
        output={"columns": {"n": {"from": "stream.n", "type": "BIGINT"}}},
        process={"key": "n", "processor": "clickjoin.processors:TumblingCounts", "args": {"window": "1m"}},
        registry={"identity": "id"},
        retention=KEEP,
    )
    _come(bench, *(_event(n, n) for n in range(40)))
    return bench


def _event(n: int, minute: int, value: Any = None) -> dict[str, Any]:
    return {"id": f"e{n}:", "at": NOON + 60 * minute, "n": n % 4 if value is None else value}


def _come(bench: Bench, *events: dict[str, Any]) -> None:
    """Events are joined, and processed up to the watermark that they give."""
    bench.clock.now += 3600
    bench.clicks(*events)
    bench.join()
    bench.engine.join_once()  # a batch of no records, if any: it says that time has passed
    Processing(bench.pipeline).drain(lambda _: None)


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


def _again(*tables: str, **hosts: str) -> Callable[[Hand], None]:
    def add(hand: Hand) -> None:
        for table in tables:
            hand.add(table, hand.rows(table, hosts.get(table, "c03"))[0])

    return add


def _all(*faults: Callable[[Hand], None]) -> Callable[[Hand], None]:
    def change(hand: Hand) -> None:
        for fault in faults:
            fault(hand)

    return change


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


def _other_columns(hand: Hand) -> None:
    rows = hand.bench.engine.lake.delta.read("joined").drop_columns(["former"])
    write_deltalake(hand.table("joined"), rows, mode="overwrite", schema_mode="overwrite")
    table = hand.table("joined")
    repaired = CommitProperties(app_transactions=[Transaction(RESTORE, table.version())])  # as `verify --repair` does
    table.create_write_transaction([], "append", table.schema(), commit_properties=repaired)
    hand.bench.engine.lake.delta.add_columns("joined", {"extra": "STRING"})


def _primary_strange(hand: Hand) -> None:
    """Few primary events, most of them sent again; of their fields one has another name, one is empty in some."""
    for n in range(10):
        hand.delete("primary", f"q{n}")
    for n in range(10, 17):
        hand.add("primary", hand.rows("primary", f"q{n}")[0], offset=10_000 + n)
    _set("primary", None, payload="replace(payload, '\"item\"', '\"thing\"')")(hand)
    _set("primary", "event_id LIKE 'q11%' OR event_id LIKE 'q12%'", payload="replace(payload, '\"all\"', 'null')")(hand)


def _nulls(hand: Hand) -> None:
    """Of each column that clickjoin never leaves empty, one."""
    for table, columns in REQUIRED.items():
        for n, column in enumerate(columns):
            host = f"q{n + 3}:" if table == "primary" else f"c{n + 10}:"
            _set(table, f"event_id LIKE '{host}%'", **{column: "NULL"})(hand)


def _signal_again(hand: Hand) -> None:
    signals = DeltaTable(f"{hand.bench.pipeline.root}/process/signals")
    write_deltalake(signals, signals.to_pyarrow_table().slice(0, 1), mode="append")


def _late_and_misfits(hand: Hand) -> None:
    _come(hand.bench, *(_event(100 + n, n) for n in range(5)), *(_event(200 + n, 45, "no") for n in range(15)))


def _day_before(hand: Hand) -> None:
    """The day before had twenty times as many rows of one table, and a twentieth of another's."""
    for table, observed in (("joined", "observed * 20"), ("foreign", "observed / 20"), ("primary", "observed * 20")):
        which = f"suite = '{table}' AND check = 'row_count' AND date = '{DAY - timedelta(days=1)}'"
        hand.table("quality").update(predicate=which, updates={"observed": observed})


NO_OUTPUT = {"foreign.every_input_accounted_for", "registry.claims_have_outputs"}
BROKEN: dict[str, tuple[Callable[[Hand], None], set[str]]] = {
    "half of the clicks": (_half, {"foreign.volume"}),
    "nulls": (
        _nulls,
        {"registry.claims_agree", "foreign.column_values_to_not_be_null.item"}
        | {f"{table}.not_null.{one}" for table, names in REQUIRED.items() for one in names},
    ),
    "many rows fewer, and many more": (_day_before, {f"{one}.row_count" for one in ("joined", "foreign", "primary")}),
    "duplicates": (
        _again("joined", "registry", "primary", "foreign", primary="q3"),
        {"joined.unique_ids", "registry.unique_ids", "primary.landed_once", "foreign.landed_once"},
    ),
    "records that were sent again": (_sent_again, {"foreign.repeat_rate"}),
    "a column left empty": (_set("joined", None, price="NULL"), {"joined.null_rate.price"}),
    "a new column, and one that is gone": (_other_columns, {"joined.columns_new", "joined.columns_kept"}),
    "strange primary events": (
        _primary_strange,
        {f"primary.{check}" for check in ("volume", "repeat_rate", "fields_kept", "fields_new", "null_rate.campaign")},
    ),
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
# Of one stream with per-key processing, whose ids alone name an event: what the other lake has none of.
BROKEN_EVENTS: dict[str, tuple[Callable[[Hand], None], set[str]]] = {
    "an event and a signal twice": (
        _all(_again("joined", joined="e3"), _signal_again),
        {"joined.unique_ids", "signals.unique_ids", "signals.every_event_counted"},
    ),
    "late events, and values that do not fit": (
        _late_and_misfits,
        {"signals.late_rate", "joined.misfit_rate.n", "joined.null_rate.n", "foreign.fields_kept"},
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
