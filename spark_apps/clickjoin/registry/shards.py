"""Table `shard_timeline`: which entries are in force, and what a lake was begun with (Photon, section 2.2.2)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from clickjoin.agreement.noted import note
from clickjoin.lake.readable import readable
from clickjoin.model.errors import ConfigError, LakeError
from clickjoin.model.ids import EPOCH, ISO
from clickjoin.model.shards import Timeline
from clickjoin.model.txn import Txn
from clickjoin.model.where import in_words

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.engines.tables_port import Tables
    from clickjoin.lake.delta_reader import DeltaReader


_FENCE = "timeline/"
_FIELDS = {
    "bucket_seconds": "registry.bucket",
    "event_time": "foreign.event_time",
    "event_id": "foreign.event_id",
    "max_skew": "limits.max_skew",
}
_KEEP_REPEATS = " (registry.retention can be changed where registry.repeats says what it was)"


def load_timeline(delta: DeltaReader) -> Timeline:
    """The pipeline's timeline: its entries in force. Errors: LakeError where it has no entry.

    An entry is in force once it is fenced in the journal (see registry.reshard); the first one is from the start.
    """
    rows = delta.read("shard_timeline", columns=["from_time", "shards"]).to_pylist()
    if not rows:
        raise LakeError(f"{delta.path('shard_timeline')}: holds no entry", remedy="Run `clickjoin init`")
    held = [row for row in rows if row["from_time"] == EPOCH or in_force(delta, row["from_time"])]
    return Timeline(tuple(sorted({(row["from_time"], row["shards"]) for row in held})))


def fence(since: datetime, shards: int) -> Txn:
    """What the journal holds of an entry that is in force: from when on, and one more than its number of shards."""
    return Txn(f"{_FENCE}{round((since - EPOCH).total_seconds())}", 1 + shards)


def in_force(delta: DeltaReader, since: datetime) -> bool:
    """Whether an entry from a time on has been fenced."""
    return delta.latest_txn_version("journal", fence(since, 0).app_id) >= 1


def fenced(txns: Mapping[str, int]) -> dict[datetime, int]:
    """Entries that a journal's transactions have in force: shards by time."""
    return {
        EPOCH + timedelta(seconds=int(app_id.removeprefix(_FENCE))): version - 1
        for app_id, version in txns.items()
        if app_id.startswith(_FENCE)
    }


def start_timeline(delta: Tables, pipeline: Pipeline, now: datetime) -> None:
    """Write the first entry, once for all: the configured number of shards counts at creation only.

    Errors: ConfigError where the lake was begun with another width of bucket, other columns for the id, or
    another kind of event time: then the same event would be looked up in another place than the one it was claimed in.
    """
    wanted = fixed(pipeline)
    first = {"from_time": EPOCH, "shards": pipeline.registry.shards, "added_at": now, **wanted}
    if not delta.append("shard_timeline", [first], Txn("timeline", 0)):
        _keep_forms(delta, pipeline, require_same(delta, pipeline), now)


def require_same(delta: DeltaReader, pipeline: Pipeline) -> list[dict[str, Any]]:
    """Check that a lake was begun with what the pipeline's file says now; returns the rows that say with what.

    Errors: ConfigError, as of start_timeline.
    """
    wanted = fixed(pipeline)
    with readable(delta.root, "shard_timeline"):
        entries: list[dict[str, Any]] = delta.read("shard_timeline").to_pylist()
    forms, kept = _forms_of(pipeline), {row["event_time"] for row in entries}
    # Behind what this file and the lake have in common either of the two may go on, and not both.
    same_times = kept <= forms.keys() or any(forms.get(text) == max(forms.values()) for text in kept)
    for row in entries:
        for name, field in _FIELDS.items():
            if row[name] != wanted[name] and not (name == "event_time" and same_times):
                raise ConfigError(
                    f"{field} is {wanted[name]} in the pipeline's file, and the lake was begun with {row[name]}",
                    remedy="Set it back, or begin another lake: the same event would be claimed a second time"
                    + (_KEEP_REPEATS if pipeline.by_id and name == "event_id" else ""),
                )
    return entries


def fixed(pipeline: Pipeline) -> dict[str, int | float | str]:
    """What a lake is begun with and keeps, as columns of the timeline: by it an event is one and the same, always."""
    # A new entry of the timeline must lie beyond all claims, and how far those reach is for this limit to say.
    return {
        "bucket_seconds": int(pipeline.registry.bucket),
        "event_time": str(pipeline.claimed.event_time) + _of_bare_times(pipeline),
        "event_id": _columns(pipeline),
        "max_skew": pipeline.limits.max_skew,
    }


def _keep_forms(delta: Tables, pipeline: Pipeline, entries: list[dict[str, Any]], now: datetime) -> None:
    """Have the lake say which forms of the event time were added since it was begun, one after the other.

    Each place in the list is given once, before any batch reads by it: of two files that go on differently the one that
    comes later is refused. Errors: ConfigError.
    """
    forms = _forms_of(pipeline)
    longest = max(forms.get(row["event_time"], 0) for row in entries)
    begun = min(entries, key=lambda row: row["from_time"]) | {"added_at": now}  # of as many shards as it was
    for text, count in forms.items():
        row = begun | {"event_time": text}
        if count > longest and not delta.append("shard_timeline", [row], Txn(f"forms/{count}", 1)):
            require_same(delta, pipeline)
    if max(forms.values()) > 1:  # also of rows that another has added, who may have been killed before his note
        note(delta, "shard_timeline")  # or the table could be put back to before, and other forms be added


def _forms_of(pipeline: Pipeline) -> dict[str, int]:
    """What a lake says of the event time by the first of its forms, by the first two, …; and how many those are.

    A text is read by the first form that fits, so what the first ones read keeps its time, whatever is added behind
    them. A column without forms is read as ISO 8601 in UTC.
    """
    time, bare = pipeline.claimed.event_time, _of_bare_times(pipeline)
    if isinstance(time, str):
        return {time + bare: 1}
    said = {
        str(time.model_copy(update={"format": time.format[:count]})) + bare: count
        for count in range(1, len(time.format) + 1)
    }
    if (time.format[0], time.zone) == (ISO, "UTC") and len(time.column) == 1:
        said = {time.column[0] + bare: 1} | said
    return said


def _of_bare_times(pipeline: Pipeline) -> str:
    """A word where times of Parquet without a zone are in another than UTC: before they were not, whatever was said."""
    return ", of Parquet too" if any(item.spec(0).bare_times for item in pipeline.inputs) else ""


def _columns(pipeline: Pipeline) -> str:
    """What an id is made of, how far repeats lie apart where it alone is a name, and which records are whose.

    The names of CSV that no header gives are part of that, and the columns of the key that both are matched by,
    with which of primary events go before the others.
    """
    ids, columns = pipeline.claimed.event_id, getattr(pipeline.claimed.source, "columns", None)
    alone = f" alone, repeats within {pipeline.repeats:g} s" if pipeline.by_id else ""
    sides = ((pipeline.claimed.where, "where"), (pipeline.primary.where if pipeline.primary else (), "primary where"))
    where = "".join(f" {name} {in_words(conditions)}" for conditions, name in sides if conditions)
    match = pipeline.match
    on = f" match on {match.on.foreign} = {match.on.primary}" if match else ""
    on += f" prefer {in_words(match.prefer)}" if match and match.prefer else ""
    return (
        ", ".join(map(_plain, ids)) + (f" of {', '.join(map(_plain, columns))}" if columns else "") + alone + where + on
    )


def _plain(name: str) -> str:
    return f"`{name}`" if "," in name else name
