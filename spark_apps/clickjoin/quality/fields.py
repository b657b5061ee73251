"""Which fields a date's records have, of which JSON types, and how they differ from those of an earlier date."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


SAMPLED = "sampled_record"
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
        return {name: _types(counts) for name, counts in sorted(self.counts.items())}

    def schema(self) -> dict[str, str]:
        """Common fields with their common JSON types, joined by `|`; sorted."""
        return {name: _types(self.counts[name], COMMON) for name in sorted(self.counts) if self.share(name) >= COMMON}


def _types(counts: Mapping[str, int], least: float = 0) -> str:
    held = {kind: count for kind, count in counts.items() if kind != "null"}
    return "|".join(sorted(kind for kind, count in held.items() if count >= least * sum(held.values())))


def drift(before: Mapping[str, str], now: Fields) -> tuple[list[str], list[str]]:
    """Fields that vanished or changed their type, and fields that appeared; each as sentences, sorted."""
    schema = now.schema()
    lost = [f"{name} ({kind}) is in no record" for name, kind in before.items() if now.share(name) < GONE]
    changed = {name: kind for name, kind in schema.items() if before.get(name, kind) != kind}
    lost += [f"{name} was {before[name]} and is {kind}" for name, kind in changed.items()]
    new = [f"{name} ({kind})" for name, kind in schema.items() if name not in before]
    return sorted(lost), sorted(new)


def profile(rows: DataFrame) -> Fields:
    """The fields of the records in column `sampled_record` (JSON text); rows where that is null count for nothing."""
    chosen = rows.where(F.col(SAMPLED).isNotNull()).select(SAMPLED)
    pairs = chosen.select(F.expr(f"explode_outer(from_json({SAMPLED}, 'map<string, variant>'))").alias("name", "value"))
    kinds = pairs.select("name", F.expr("schema_of_variant(value)").alias("kind"))
    short = kinds.groupBy("name", F.expr("regexp_extract(kind, '^[A-Z]+', 0)").alias("kind")).count()
    found = short.orderBy(F.desc("count"), "name", "kind").limit(_MAX_FIELDS).collect()
    return gathered(chosen.count(), ((row["name"], row["kind"], row["count"]) for row in found))


def sampled(total: int, sample: int) -> str:
    """Column `sampled_record`, as Spark SQL over `event_id` and `payload`: of `sample` rows of `total`, about."""
    step = max(-(-total // sample), 1)
    return f"IF(pmod(crc32(event_id), {step}) = 0, payload, NULL)"


def gathered(records: int, found: Iterable[tuple[str | None, str | None, int]]) -> Fields:
    """Fields from counts of name and Spark's type (its first word); a record without any field has no name."""
    counts: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for name, kind, count in found:
        if name is not None:
            json_kind = _JSON.get(kind or "VOID", "number")
            counts[name][json_kind] = counts[name].get(json_kind, 0) + int(count)
    return Fields(records, counts)
