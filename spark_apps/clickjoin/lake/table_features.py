"""Delta's table features on the product's own tables: which its commits keep to, and the way back from the others.

Rows are committed as files that Arrow has written, by delta-rs. That keeps to change data feed (by adds and removes)
and to what is in a protocol but not in use. All else is refused by name before anything is read or committed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from clickjoin.lake.store_options import store_options
from clickjoin.model.errors import LakeError

_NAMED_FROM = 7  # the version of a writer's protocol from which on features are named
_BY_VERSION = {3: ("checkConstraints",), 4: ("changeDataFeed", "generatedColumns"), 5: ("columnMapping",),
               6: ("identityColumns",)}  # fmt: skip
# In a protocol they bind nobody: a property, or a column, says whether they are in use.
_BY_USE = frozenset({
    "appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns", "columnMapping",
})  # fmt: skip
_TITLES = {
    "allowColumnDefaults": "column defaults", "checkpointProtection": "protected checkpoints (left by DROP FEATURE)",
    "clustering": "clustering", "deletionVectors": "deletion vectors", "domainMetadata": "metadata of domains",
    "identityColumns": "identity columns", "inCommitTimestamp": "in-commit timestamps", "rowTracking": "row tracking",
    "timestampNtz": "timestamps without time zone", "typeWidening": "type widening", "v2Checkpoint": "v2 checkpoints",
    "vacuumProtocolCheck": "vacuum protocol check", "variantType": "variant columns",
}  # fmt: skip
_CONSTRAINT, _MAPPED, _APPENDS = "delta.constraints.", "delta.columnMapping.mode", "delta.appendOnly"
_FORGETS = "delta.setTransactionRetentionDuration"  # which batches a table holds is what its transactions say
_PHYSICAL = "delta.columnMapping.physicalName"
# What Spark can switch off and drop, with nothing left in the protocol (see docs/engines.md).
_DROPPED = {
    "rowTracking": ("SET TBLPROPERTIES ('delta.enableRowTracking'='false')", "DROP FEATURE rowTracking"),
    "inCommitTimestamp": (
        "SET TBLPROPERTIES ('delta.enableInCommitTimestamps'='false')", "DROP FEATURE inCommitTimestamp",
    ),
    "clustering": ("CLUSTER BY NONE", "DROP FEATURE clustering"),
    "domainMetadata": ("DROP FEATURE domainMetadata",),
    "materializePartitionColumns": ("DROP FEATURE materializePartitionColumns",),
}  # fmt: skip
_UNKNOWN = re.compile(r"Feature '(\w+)' is not supported")
_BACK = 200  # versions that are looked at, for one without
_ORDER = ("clustering", "rowTracking", "inCommitTimestamp")  # before domainMetadata, which the first two rest on


class Refusal(NamedTuple):
    """A feature that is refused: its name, its name for people, and what of ALTER TABLE takes it away.

    No `back`: only RESTORE takes it away, since Spark cannot drop it, or leaves `checkpointProtection` in its place.
    """

    feature: str
    title: str
    back: tuple[str, ...] = ()


class FeatureRefused(LakeError):
    """A table has features that this program cannot keep to. `statements`: the way back, for Spark SQL."""

    def __init__(self, message: str, *, remedy: str, statements: tuple[str, ...]) -> None:
        super().__init__(message, remedy=remedy)
        self.statements = statements


def refusals(table: DeltaTable) -> list[Refusal]:
    """The features of the version that a handle shows that this program cannot keep to."""
    settings = table.metadata().configuration or {}
    columns = json.loads(table.schema().to_json())["fields"]
    named = sorted(_features(table) - _BY_USE, key=lambda name: (name not in _ORDER, name))
    by_name = [Refusal(name, _TITLES.get(name, "a table feature"), _DROPPED.get(name, ())) for name in named]
    return [*_by_settings(settings, columns), *_by_columns(columns), *by_name]


def _features(table: DeltaTable) -> set[str]:
    known = table.protocol()
    found = {*(known.reader_features or ()), *(known.writer_features or ())}
    if known.min_writer_version < _NAMED_FROM:
        found |= {name for first, names in _BY_VERSION.items() if known.min_writer_version >= first for name in names}
    return found


def _by_settings(settings: Mapping[str, str | None], columns: list[dict[str, Any]]) -> Iterator[Refusal]:
    for key in sorted(key for key in settings if key.startswith(_CONSTRAINT)):
        name = key.removeprefix(_CONSTRAINT)
        yield Refusal("checkConstraints", f"CHECK constraint {name}", (f"DROP CONSTRAINT {name}",))
    if (settings.get(_MAPPED) or "none") != "none":
        physical = {column["name"]: (column.get("metadata") or {}).get(_PHYSICAL) for column in columns}
        moved = [f"RENAME COLUMN `{name}` TO `{was}`" for name, was in physical.items() if was and was != name]
        yield Refusal("columnMapping", "column mapping", (*moved, f"SET TBLPROPERTIES ('{_MAPPED}'='none')"))
    if (settings.get(_APPENDS) or "").lower() == "true":
        yield Refusal("appendOnly", "append-only", (f"SET TBLPROPERTIES ('{_APPENDS}'='false')",))
    if _FORGETS in settings:
        yield Refusal(_FORGETS, "an end to what it knows of batches", (f"UNSET TBLPROPERTIES ('{_FORGETS}')",))


def _by_columns(columns: list[dict[str, Any]]) -> Iterator[Refusal]:
    for column in columns:
        name, metadata = column["name"], column.get("metadata") or {}
        if "delta.generationExpression" in metadata:
            yield Refusal("generatedColumns", f"generated column {name}")
        if "delta.invariants" in metadata:
            yield Refusal("invariants", f"an invariant of column {name}")
        if not column["nullable"]:
            yield Refusal("invariants", f"NOT NULL of column {name}", (f"ALTER COLUMN `{name}` DROP NOT NULL",))


def require_features(table: DeltaTable, place: str) -> None:
    """Check that this program keeps to a table's features. Errors: FeatureRefused with the way back."""
    found = refusals(table)
    if not found:
        return
    names = ", ".join(f"{one.title} ({one.feature})" for one in found)
    message = f"{place}: has {names}, which commits of files do not keep to; nothing more is joined"
    if all(one.back for one in found):
        done = tuple(f"ALTER TABLE delta.`{place}` {back}" for one in found for back in one.back)
        raise FeatureRefused(message, remedy=f"Run in Spark: {'; '.join(done)}", statements=done)
    raise _by_restore(table, place, message)


def unknown_feature(error: DeltaError, place: str) -> FeatureRefused | None:
    """What delta-rs says of a table whose protocol it cannot read; None where the error is another."""
    found = _UNKNOWN.search(str(error))
    if found is None:
        return None
    return FeatureRefused(
        f"{place}: has {found[1]}, a table feature without which it cannot be read; nothing more is joined",
        remedy="Have the engine that set it run RESTORE TABLE … to the version before, or restore a backup "
        "(docs/backup.md)",
        statements=(),
    )


def _by_restore(table: DeltaTable, place: str, message: str) -> FeatureRefused:
    """RESTORE undoes what came since, so it is only the way back where nothing was written since."""
    fit = _last_fit(place, int(table.version()))
    if fit is None or not _paths(table) <= _paths(fit):
        since = "" if fit is None else f" since version {fit.version()}"
        remedy = f"Files were written{since} that RESTORE TABLE would take out: restore a backup (docs/backup.md)"
        if fit is None:
            remedy = "None of its last versions is without that: restore a backup (docs/backup.md)"
        return FeatureRefused(message, remedy=remedy, statements=())
    done = (
        "SET spark.databricks.delta.restore.protocolDowngradeAllowed=true",
        f"RESTORE TABLE delta.`{place}` TO VERSION AS OF {fit.version()}",
    )
    said = f"Run in Spark: {'; '.join(done)} (it undoes all that was done to the table since)"
    return FeatureRefused(message, remedy=said, statements=done)


def _last_fit(place: str, version: int) -> DeltaTable | None:
    """The newest version before one that has none of these features; None where it is not among the last ones."""
    before = range(version - 1, max(version - _BACK, 0) - 1, -1)  # nothing is committed here while one is refused
    return next(filter(None, (_fit_at(place, number) for number in before)), None)


def _fit_at(place: str, version: int) -> DeltaTable | None:
    try:
        table = DeltaTable(place, version, store_options(place))
    except (DeltaError, OSError):
        return None
    return None if refusals(table) else table


def _paths(table: DeltaTable) -> set[str]:
    actions = pa.table(table.get_add_actions(flatten=True))
    return set(actions["path"].to_pylist()) if actions.num_rows else set()
