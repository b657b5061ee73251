"""Every table that a pipeline owns: its columns, their types and units, and how it is laid out.

This is the one place where schemas are written down; `clickjoin schema --markdown` prints docs/tables.md from it.
Times are TIMESTAMP (microseconds, UTC); `seconds_*` are DOUBLE seconds; `*_bytes`, `offset` and `length` bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Column:
    """One column: name, Spark SQL type, and what it means, with its unit."""

    name: str
    type: str
    meaning: str


@dataclass(frozen=True)
class Table:
    """One table: its columns, partition columns, and the columns that file statistics are kept of."""

    name: str
    purpose: str
    columns: tuple[Column, ...]
    partitions: tuple[str, ...] = ()
    statistics: tuple[str, ...] = ()
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """Column names in order."""
        return [column.name for column in self.columns]

    @property
    def ddl(self) -> str:
        """Columns as Spark SQL DDL."""
        return ", ".join(f"`{column.name}` {column.type}" for column in self.columns)


def _columns(text: str) -> tuple[Column, ...]:
    rows = (line.split(None, 2) for line in text.splitlines() if line.strip())
    return tuple(Column(name, kind, meaning) for name, kind, meaning in rows)


_IDENTITY = """
event_id     STRING    the event's unique name
event_time   TIMESTAMP when the event happened; part of its identity where the time is a column
bucket       STRING    slice of event time that it lies in, named by its start, such as 2019-11-24T0300Z
shard        INT       crc32(event_id) mod n, n from the timeline at event_time
"""
_WANTED = """
primary_id   STRING    id of the primary event that this foreign event names
primary_time TIMESTAMP time of that primary event; null where it is only known to lie within a range
"""
_RECORD = """
payload      STRING    the whole record as JSON text, extra fields and all
"""
_PLACE = """
path         STRING    file that held the record, as it was named when it was read
generation   STRING    content that the file held: stays the same through a rename
offset       BIGINT    where the record begins, in bytes (unpacked bytes for .gz)
length       BIGINT    how long the record is, in bytes
"""
_BATCH = """
batch        BIGINT    number of the batch that wrote this row
replica      STRING    running copy that wrote this row
"""
_TRIED = """
round        INT       how often it has been sent round again after it was given up
attempt      INT       how often it has been tried in this round
first_seen   TIMESTAMP when it was first tried in this round
"""
_ORIGIN = """
token        STRING    pipeline/replica/sequence/number: the batch that owns the claim
replica      STRING    running copy that wrote this row
"""

JOINED = Table(
    "joined",
    "the output: one row for each joined foreign event, for ever; the adapter's columns come last",
    _columns(
        """
event_id     STRING    the foreign event's unique name
event_time   TIMESTAMP when the foreign event happened
bucket       STRING    slice of the foreign event's time
primary_id   STRING    id of the primary event that it was joined to
primary_time TIMESTAMP when the primary event happened
"""
        + _ORIGIN
        + "published_at TIMESTAMP when the batch wrote it; readable a moment later\n"
    ),
    partitions=("bucket",),
    statistics=("event_time", "event_id", "token"),
)
PRIMARY = Table(
    "primary",
    "every good primary record (query, impression); a record that came twice is here twice and joins once",
    _columns(_IDENTITY + _RECORD + _PLACE + _BATCH + "landed_at TIMESTAMP when its batch was planned\n"),
    partitions=("bucket",),
    statistics=("event_time", "event_id", "batch"),
)
FOREIGN = Table(
    "foreign",
    "every good foreign record (click), repeats too: accepted events are its distinct ids",
    _columns(_IDENTITY + _WANTED + _RECORD + _PLACE + _BATCH + "landed_at TIMESTAMP when its batch was planned\n"),
    partitions=("bucket",),
    statistics=("event_time", "event_id", "batch"),
)
REGISTRY = Table(
    "registry",
    "claims: which batch settled an id, and how; an id has one claim at most",
    _columns(
        _IDENTITY
        + """
token        STRING    pipeline/replica/sequence/number: the batch that owns the claim
outcome      STRING    joined | filtered | unjoinable: the one table that the id is in
"""
    ),
    partitions=("bucket", "shard"),
    statistics=("event_time", "event_id", "token"),
)
PENDING = Table(
    "pending",
    "history of foreign events that wait for their primary; the newest row of an id (round, then attempt) is its state",
    _columns(
        _IDENTITY
        + _WANTED
        + _RECORD.replace("extra fields and all", "on an id's first row; null on later ones")
        + _TRIED
        + """
state        STRING    waiting | resolved
outcome      STRING    of a resolved id: joined | filtered | unjoinable | expired | elsewhere; else null
due_at       TIMESTAMP when a waiting id is tried again
sequence     STRING    join | retry | redrive: the kind of batch that wrote this row
"""
        + _BATCH
    ),
    statistics=("event_time", "event_id", "due_at"),
)
UNJOINABLE = Table(
    "unjoinable",
    "foreign events given up: tried often and for long; `clickjoin redrive` sends them round again",
    _columns(_IDENTITY + _WANTED + _RECORD + _TRIED + _ORIGIN + "at TIMESTAMP when it was given up\n"),
    statistics=("event_time", "event_id", "token"),
)
EXPIRED = Table(
    "expired",
    "foreign events older than the registry's boundary: their uniqueness can no longer be known",
    _columns(
        _IDENTITY + _WANTED + _RECORD + "sequence STRING join | retry\n" + _BATCH + "at TIMESTAMP when it was refused\n"
    ),
    statistics=("event_time", "event_id"),
)
FILTERED = Table(
    "filtered",
    "foreign events that the pipeline's own adapter dropped",
    _columns(_IDENTITY + _WANTED + _RECORD + _ORIGIN + "at TIMESTAMP when it was dropped\n"),
    statistics=("event_time", "event_id", "token"),
)
QUARANTINE = Table(
    "quarantine",
    "records that cannot be understood, byte for byte, and planned bytes that could not be read any more",
    _columns(
        "stream STRING primary | foreign\nreason STRING why, from a closed list (docs/bad-input.md)\n"
        "detail STRING why, in a sentence\nraw BINARY the record's bytes; null for source-lost\n"
        "part INT number of this piece of a record that was too long for one row, from 0; else null\n"
        + _PLACE
        + _BATCH
        + "at TIMESTAMP when its batch was planned\n"
    ),
    statistics=("reason", "stream", "batch"),
)
BATCHES = Table(
    "batches",
    "the journal: a row when a batch is planned, before any work, and a row when it is settled",
    _columns(
        """
replica   STRING    running copy
sequence  STRING    join | retry | redrive: numbers grow within one sequence of one replica
batch     BIGINT    number of the batch in its sequence, from 1
state     STRING    planned | settled
at        TIMESTAMP when
snapshot  BOOLEAN   this plan holds all of the sequence's positions, not only those that changed
plan      STRING    JSON of a planned row: slices, changed positions; of a settled one: slices that were lost
"""
    ),
    partitions=("replica", "sequence"),
    statistics=("batch", "state", "snapshot"),
)
METRICS = Table(
    "metrics",
    "one row a settled batch: what went in, what came out, how long each step took, what is still to do",
    _columns(
        """
replica          STRING    running copy
sequence         STRING    join | retry | redrive
batch            BIGINT    number of the batch
planned_at       TIMESTAMP when it was planned
settled_at       TIMESTAMP when it was done
primary_in       BIGINT    good primary records landed
events_in        BIGINT    foreign events taken up: good records landed, or pending ones tried again
joined           BIGINT    events published
repeats          BIGINT    foreign records whose id was already in this batch or claimed before
wasted           BIGINT    wasted joins: joined, then refused because another batch had claimed the id
pending          BIGINT    events that wait for their primary after this batch
unjoinable       BIGINT    events given up
expired          BIGINT    events older than the registry's boundary
filtered         BIGINT    events that the adapter dropped
quarantined      BIGINT    records set aside, both streams
conflict_reruns  BIGINT    times that a commit was run again because another writer came first
latency_p50      DOUBLE    seconds from event time to published, half of the joined events
latency_p90      DOUBLE    same, nine in ten
latency_p99      DOUBLE    same, 99 in 100
seconds_plan     DOUBLE    seconds to list the sources and write the plan
seconds_land     DOUBLE    seconds to parse the slices and append to primary, foreign and quarantine
seconds_lookup   DOUBLE    seconds to screen against the registry and look up the primary events
seconds_claim    DOUBLE    seconds to claim the joined ids
seconds_publish  DOUBLE    seconds to append the output
seconds_settle   DOUBLE    seconds to append pending, unjoinable, filtered, expired, and the journal
backlog_events   BIGINT    events known to the sources and not yet planned (estimated)
backlog_bytes    BIGINT    bytes known to the sources and not yet planned
problems         STRING    JSON list of what a person should know about the sources; null if nothing
"""
    ),
    partitions=("replica", "sequence"),
    statistics=("batch",),
)
TIMELINE = Table(
    "timeline",
    "how many shards an event has, by event time; entries are appended and never edited (Photon, section 2.2.2)",
    _columns(
        """
from_time TIMESTAMP first event time that this entry holds for
shards    INT       number of shards from then on
added_at  TIMESTAMP when the entry was made
bucket_seconds INT  width of a bucket, fixed when the lake was begun
event_time STRING   where the foreign event's time comes from, fixed when the lake was begun
"""
    ),
)
BOUNDARY = Table(
    "boundary",
    "the oldest event time that the registry still answers for, by shard; the highest row of a shard holds",
    _columns(
        """
shard    INT       shard
boundary TIMESTAMP events before this are expired
at       TIMESTAMP when it was moved
"""
    ),
)

ALL = (
    REGISTRY,
    JOINED,
    PRIMARY,
    FOREIGN,
    PENDING,
    UNJOINABLE,
    EXPIRED,
    FILTERED,
    QUARANTINE,
    BATCHES,
    METRICS,
    TIMELINE,
    BOUNDARY,
)
BY_NAME = {table.name: table for table in ALL}


def markdown() -> str:
    """All tables as Markdown, for the documentation."""
    parts = ["# Tables", "", (__doc__ or "").split("\n\n")[1].replace("\n", " "), ""]
    for table in ALL:
        parts += [f"## {table.name}", "", table.purpose.capitalize() + ".", ""]
        if table.partitions:
            parts += [f"Partitioned by {', '.join(f'`{name}`' for name in table.partitions)}.", ""]
        parts += ["| column | type | meaning |", "| --- | --- | --- |"]
        parts += [f"| `{c.name}` | {c.type} | {c.meaning.replace('|', 'or')} |" for c in table.columns] + [""]
    return "\n".join(parts)
