"""Typed columns of the output, by configuration alone: whole tables, whichever joiner made them."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
import yaml
from deltalake import DeltaTable

from clickjoin.dates import rebuild
from clickjoin.engines.arrow import dealing
from clickjoin.jobs.run import drain as drained
from clickjoin.model.errors import ConfigError, LakeError
from clickjoin.model.ids import MICROS
from clickjoin.model.span import Day
from clickjoin.schemas import JOINED
from tests.sampled import in_full, some
from tests.spark.bench import Bench, click, crash_at, query
from tests.spark.count import agrees

COLUMNS = {
    "item": "foreign.item_id",
    "price": {"from": "primary.price", "type": "DECIMAL(10, 2)"},
    "campaign": {"from": "primary.meta.campaign", "type": "STRING", "default": "none"},
    "first": {"from": "foreign.user.ids[0]", "type": "BIGINT"},
    "shown": {"from": "primary.shown", "type": "TIMESTAMP"},
    "day": {"from": "primary.shown", "type": "DATE"},
    "score": {"from": "foreign.score", "type": "FLOAT"},
    "good": {"from": "foreign.good", "type": "BOOLEAN", "default": False},
}
SHOWN = datetime(2026, 3, 1, 12, tzinfo=UTC)
Q = query("q", price="3.50", meta={"campaign": "spring"}, shown="2026-03-01T12:00:00Z")
OTHER = query("other", 1, price=7, meta={}, shown="soon")
LATE = query("late", 2, price="dear", shown=1772366400)
A = click("a", 3, Q, item_id=5, user={"ids": [7, 8]}, score="0.5", good=True)
B = click("b", 4, OTHER, item_id="no item", user={"ids": []})
C = click("c", 5, LATE, item_id=6)
WANTED = [
    ("a", 5, Decimal("3.50"), "spring", 7, SHOWN, date(2026, 3, 1), 0.5, True),
    ("b", None, Decimal(7), "none", None, None, None, None, False),
]
WANTED_LATE = ("c", 6, None, "none", None, SHOWN, date(2026, 3, 1), None, False)
TYPES = {"item": {"from": "foreign.item_id", "type": "BIGINT"}}


def typed(make: Any, **output: Any) -> Bench:
    bench: Bench = make(output={"columns": COLUMNS | TYPES, "records": "none", **output})
    bench.queries(Q, OTHER)
    bench.clicks(A, B, C)
    return bench


def found(bench: Bench) -> list[tuple[Any, ...]]:
    """The output's own columns, by host."""
    return [(row[0].split(":")[0], *row[1:]) for row in bench.rows("joined", "event_id", *COLUMNS)]


def misfits(bench: Bench) -> list[dict[str, int]]:
    """What the batches counted, in order."""
    batches = sorted(bench.rows("metrics", "sequence", "batch", "misfits"))
    return [json.loads(misfits) if misfits else {} for _, _, misfits in batches]


def test_output_and_retry(make: Any) -> None:
    bench = typed(make)
    assert bench.join() == {"primary_in": 2, "events_in": 3, "joined": 2, "pending": 1}
    assert found(bench) == WANTED
    assert misfits(bench) == [{"day": 1, "item": 1, "shown": 1}]
    bench.queries(LATE)
    bench.join()
    assert bench.retry(after=20) == {"events_in": 1, "joined": 1}  # by Spark's operators
    assert found(bench) == [*WANTED, WANTED_LATE]
    assert misfits(bench) == [{"day": 1, "item": 1, "shown": 1}, {}, {"price": 1}]
    assert agrees(bench)


def test_a_column_that_no_value_fits_is_a_problem_of_a_drain(make: Any) -> None:
    """All ids are joined and the sums agree, and a column is null in every row: that is not well."""
    types = {
        "price": {"from": "primary.price", "type": "DOUBLE"},
        "item": {"from": "foreign.item_id", "type": "BIGINT"},
    }
    bench: Bench = make(output={"columns": types})
    bench.queries(asked := query("q", price="3,50"))
    bench.clicks(*(click(f"c{n}", 3 + n, asked, item_id=n) for n in range(30)))
    done = drained(bench.spark, bench.pipeline, "main", lambda _: None, check=True)
    assert (done["joined"], done["accounts"]["agree"], done["ok"]) == (30, True, False)
    assert [(problem["kind"], problem["path"]) for problem in done["problems"]] == [("misfits", "output.columns.price")]


@pytest.mark.parametrize("after", some([False, True], 2))
def test_a_crash_counts_once(make: Any, after: bool) -> None:
    bench = typed(make)
    with crash_at(bench.engine.lake, "joined", after=after):
        bench.join()
    bench.engine = bench.replica("main")
    bench.join()
    assert found(bench) == WANTED
    assert misfits(bench) == [{"day": 1, "item": 1, "shown": 1}]


@pytest.mark.parametrize("records", some(["none", "both", "foreign", "primary"], 2))
def test_whole_records(make: Any, records: str) -> None:
    bench = typed(make, records=records)
    bench.join()
    kept = [f"{name}_record" for name in ("foreign", "primary") if records in (name, "both")]
    assert sorted(set(bench.engine.lake.delta.columns("joined")) - set(JOINED.names)) == sorted([*kept, *COLUMNS])
    for name, record in (("foreign_record", A), ("primary_record", Q)):
        if name in kept:
            assert json.loads(bench.rows("joined", "event_id", name)[0][1]) == record


@pytest.mark.parametrize("local", some(["0B", "16MB"], 2))
def test_strict_keeps_what_does_not_fit(make: Any, local: str) -> None:
    bench: Bench = make(
        output={"columns": COLUMNS | TYPES, "records": "none", "strict": True}, batch={"driver_bytes": local}
    )
    bench.queries(Q, OTHER)
    bench.clicks(A, B, C)
    assert bench.join() == {"primary_in": 1, "events_in": 2, "joined": 1, "pending": 1, "quarantined": 2}
    assert found(bench) == WANTED[:1]
    assert misfits(bench) == [{}]
    wrong = bench.rows("quarantine", "stream", "reason", "detail", "raw")
    assert [(stream, reason, raw) for stream, reason, _, raw in wrong] == [
        ("foreign", "wrong-value", f"{json.dumps(B)}\n".encode()),
        ("primary", "wrong-value", f"{json.dumps(OTHER)}\n".encode()),
    ]
    assert [detail for *_, detail, _ in wrong] == [
        'column item: foreign.item_id is "no item", which does not fit BIGINT; fix the record, or the type',
        'column day: primary.shown is "soon", which does not fit DATE; fix the record, or the type',
    ]
    assert agrees(bench)


def test_csv_holds_text_alone(make: Any) -> None:
    bench = typed(make)
    text = f"event_id,query_id,item_id,score,good\n{click('x', 7, Q)['event_id']},{Q['event_id']},12,,1\n"
    (bench.folder / "foreign" / "1.csv").write_text(text, encoding="utf-8")
    bench.join()
    assert found(bench)[-1] == ("x", 12, Decimal("3.50"), "spring", None, SHOWN, date(2026, 3, 1), None, True)


def written(bench: Bench, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change the pipeline's file, and start again."""
    raw = yaml.safe_load(bench.file.read_text())
    change(raw["output"]["columns"])
    bench.file.write_text(yaml.safe_dump(raw), encoding="utf-8")
    bench.reload()


def test_types_come_from_the_logs_and_stay(make: Any) -> None:
    bench: Bench = make(output={"columns": {"price": {"from": "primary.price", "type": "DOUBLE"}}})
    bench.queries(query("q", price=1, size=2.5, tags=["x"], ok=None))
    bench.clicks(click("a", 2, query("q"), item_id=5, bot=False))
    new = {
        "item": "foreign.item_id", "size": "primary.size", "tags": "primary.tags", "bot": "foreign.bot",
    }  # fmt: skip
    written(bench, lambda columns: columns.update(new))
    bench.join()
    types = {"price": "double", "item": "long", "size": "double", "tags": "string", "bot": "boolean"}
    known = bench.engine.lake.delta.columns("joined")
    assert {name: known[name] for name in types} == types
    assert bench.rows("joined", *types) == [(1.0, 5, 2.5, '["x"]', False)]
    (bench.folder / "foreign" / "0.jsonl").unlink()  # the table knows, whatever lies in the logs now
    bench.reload()
    with pytest.raises(LakeError, match=r"column item is long, and output.columns makes it STRING"):
        written(bench, lambda columns: columns.update(item={"from": "foreign.item_id", "type": "STRING"}))
    with pytest.raises(
        ConfigError, match=r"the type of primary.ok is not known: none of 1 records .* they have event_id"
    ):
        written(bench, lambda columns: columns.update(item="foreign.item_id", ok="primary.ok"))


def test_comments(make: Any) -> None:
    bench = typed(make)
    fields = {
        field.name: field.metadata for field in DeltaTable(bench.engine.lake.delta.path("joined")).schema().fields
    }
    assert fields["price"] == {"comment": "from primary.price"}
    described = bench.spark.sql(f"DESCRIBE delta.`{bench.engine.lake.delta.path('joined')}`").collect()
    assert {row["col_name"]: row["comment"] for row in described}["first"] == "from foreign.user.ids[0]"


@in_full
def test_a_rebuilt_date_gets_new_columns(make: Any) -> None:
    bench = typed(make)
    bench.join()
    written(bench, lambda columns: columns.update(extra={"from": "primary.meta.campaign", "type": "STRING"}))
    assert rebuild.rebuild(bench.engine, Day(date(2026, 3, 1)).span, int(bench.clock.now * MICROS)) == {"rebuilt": 2}
    assert found(bench) == WANTED
    assert bench.rows("joined", "extra") == [("spring",), (None,)]


def test_large_batches_are_typed_by_tasks(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of several tasks counts its own misfits, and the batch all of them."""
    monkeypatch.setattr(dealing, "_ROWS_A_TASK", 10)
    bench: Bench = make(output={"columns": TYPES, "records": "none"})
    bench.queries(Q)
    bench.clicks(*(click(f"c{n}", 10 + n * 60, Q, item_id="x" if n % 3 == 0 else n) for n in range(150)))
    bench.clock.now += 4 * 3600
    assert bench.join() == {"primary_in": 1, "events_in": 150, "joined": 150}
    assert misfits(bench) == [{"item": 50}]
    items = [row[0] for row in bench.rows("joined", "item")]
    assert sorted(item for item in items if item is not None) == [n for n in range(150) if n % 3]


def test_adapter_and_output(make: Any) -> None:
    with pytest.raises(ConfigError, match="remove adapter, or else output"):
        make(output={"columns": TYPES}, adapter="clickjoin.examples.adapters:TypedClick")
