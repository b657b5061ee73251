"""Which fields a date's records have, of which JSON types, and checks that these and the output's columns are kept."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from clickjoin.quality.checks import ZERO, Check

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from clickjoin.quality.history import History
    from clickjoin.quality.measure import Figures

COMMON = 0.01  # a field, or a type of one, that fewer records have is chance, not schema
GONE = 0.001
_MAX_FIELDS = 2000  # kinds of field and type: records whose keys are ids would make millions
_JSON = {"VOID": "null", "BOOLEAN": "boolean", "STRING": "string", "ARRAY": "array", "OBJECT": "object"}


@dataclass(frozen=True)
class Fields:
    """Fields of `records` records (all of a date, or a sample): how many have each, by JSON type, null too."""

    records: int = 0
    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def share(self, name: str) -> float:
        """Share of the records in which a field has a value."""
        types = self.counts.get(name, {})
        return sum(count for kind, count in types.items() if kind != "null") / self.records if self.records else 0.0

    def types(self) -> dict[str, str]:
        """Every field with the JSON types that it has anywhere, joined by `|`; sorted."""
        return {name: "|".join(sorted(set(types) - {"null"})) for name, types in sorted(self.counts.items())}

    def schema(self) -> dict[str, str]:
        """Common fields with their common JSON types, joined by `|`; sorted."""
        found = {}
        for name, types in sorted(self.counts.items()):
            held = {kind: count for kind, count in types.items() if kind != "null"}
            whole = sum(held.values())
            if self.records and whole / self.records >= COMMON:
                found[name] = "|".join(sorted(kind for kind, count in held.items() if count / whole >= COMMON))
        return found


@dataclass(frozen=True)
class Drift:
    """How a schema differs from an earlier one; each as sentences, sorted."""

    lost: tuple[str, ...] = ()
    new: tuple[str, ...] = ()


def drift(before: Mapping[str, str], now: Fields) -> Drift:
    """Fields that vanished or changed their type, and fields that appeared."""
    schema = now.schema()
    lost = [f"{name} ({kind}) is in no record" for name, kind in before.items() if now.share(name) < GONE]
    lost += [
        f"{name} was {before[name]} and is {kind}" for name, kind in schema.items() if before.get(name, kind) != kind
    ]
    new = [f"{name} ({kind})" for name, kind in schema.items() if name not in before]
    return Drift(tuple(sorted(lost)), tuple(sorted(new)))


def json_type(variant: str) -> str:
    """The JSON type of a value that Spark describes as `BIGINT`, `DECIMAL(2,1)`, `OBJECT<…>` and so on."""
    return _JSON.get(variant.split("<", 1)[0].split("(", 1)[0], "number")


def look(rows: DataFrame, total: int, sample: int) -> Fields:
    """The fields of a stream's records: of all `total`, or of an even sample that the ids' hashes pick.

    Columns in: event_id, payload (JSON text).
    """
    step = max(-(-total // sample), 1)
    chosen = rows.where(f"pmod(crc32(event_id), {step}) = 0") if step > 1 else rows
    pairs = chosen.select(F.expr("explode_outer(from_json(payload, 'map<string, variant>'))").alias("name", "value"))
    kinds = pairs.select("name", F.expr("schema_of_variant(value)").alias("kind"))
    short = kinds.groupBy("name", F.expr("regexp_extract(kind, '^[A-Z]+', 0)").alias("kind")).count()
    found = short.orderBy(F.desc("count"), "name", "kind").limit(_MAX_FIELDS).collect()
    records = total if step == 1 else chosen.count()
    return gathered(records, ((row["name"], row["kind"], row["count"]) for row in found))


def gathered(records: int, found: Iterable[tuple[str | None, str | None, int]]) -> Fields:
    """Fields from counts of name and Spark's type; a record without any field has no name."""
    counts: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for name, kind, count in found:
        if name is not None:
            json_kind = json_type(kind or "VOID")
            counts[name][json_kind] = counts[name].get(json_kind, 0) + int(count)
    return Fields(records, counts)


_MAX_SAMPLES = 4  # samples beside the schema
_FIRST = "no earlier date has any: this one is what the next is checked against"


def of_fields(stream: str, figures: Figures, history: History) -> Iterator[Check]:
    """Fields of a stream's records against those of the newest earlier date."""
    look = (
        f"ask who writes {stream}'s logs, and see what reads these fields: the adapter, expectations, whoever reads on"
    )
    yield from _changes(stream, ("fields_kept", "fields_new"), "fields", figures.fields[stream], look, history)


def of_columns(figures: Figures, history: History) -> Iterator[Check]:
    """Columns of table `joined` against those at the newest earlier date."""
    columns = Fields(1, {name: {kind: 1} for name, kind in figures.columns.items()})
    look = "was the adapter changed, or `joined` rewritten? Whoever reads it has to know"
    yield from _changes("joined", ("columns_kept", "columns_new"), "columns", columns, look, history)


def known_fields(stream: str, history: History) -> dict[str, str]:
    """Fields and their types of the newest earlier date that has any."""
    return _before(stream, ("fields_kept", "fields_new"), history)[1]


def _before(suite: str, names: tuple[str, str], history: History) -> tuple[str, dict[str, str]]:
    held = [found for name in names if (found := history.last_samples(suite, name))]
    if not held:
        return "", {}
    when, text = max(held)
    first: Any = json.loads(text)[0]
    return when.isoformat(), dict(first) if isinstance(first, Mapping) else {}


def _changes(
    suite: str, names: tuple[str, str], what: str, now: Fields, look: str, history: History
) -> Iterator[Check]:
    when, before = _before(suite, names, history)
    schema = now.schema()
    found = drift(before, now) if before and schema else Drift()
    why = "" if before and schema else _FIRST if schema else "there are no records of the date"
    kept, new = (((schema, *found_[:_MAX_SAMPLES]) if schema else ()) for found_ in (found.lost, found.new))
    since = f" since {when}" if when else ""
    asks = f"{what} that vanished or changed their type{since}"
    yield Check(
        suite, names[0], asks, len(found.lost), fail=ZERO, look=_said(found.lost, look), undecided=why, samples=kept
    )
    asks = f"{what} that appeared{since}"
    yield Check(
        suite, names[1], asks, len(found.new), warn=ZERO, look=_said(found.new, look), undecided=why, samples=new
    )


def _said(found: tuple[str, ...], look: str) -> str:
    more = f" and {len(found) - _MAX_SAMPLES} more" if len(found) > _MAX_SAMPLES else ""
    return f"{'; '.join(found[:_MAX_SAMPLES])}{more}: {look}" if found else look
