"""Tables that hold events: the two streams, claims, and every place that an event can end in."""

from __future__ import annotations

from dataclasses import replace

from clickjoin.schemas.base import Table, columns

_IDENTITY = """
event_id     STRING    the event's unique name
event_time   TIMESTAMP when the event happened; part of its identity where the time is a column
bucket       STRING    range of event time that it lies in, named by its start, such as 2019-11-24T0300Z
shard        INT       crc32(event_id) mod n, n from the timeline at event_time
"""
_WANTED = """
primary_id   STRING    id of the primary event that this foreign event names; with `match` the key, empty where none
primary_time TIMESTAMP time of that primary event; null where it is only known to lie within a range
"""
_RECORD = """
payload      STRING    the whole record as JSON text, extra fields and all
"""
_PLACE = """
path         STRING    where the record was, for people: of a file its name when it was read
source_partition STRING ordered part of the source that held the record: of a file its content, through renames
offset       BIGINT    the record's place in its partition: of a file where it begins, in (unpacked) bytes
length       BIGINT    how long the record is, in the source's own unit: of a file in bytes
"""
_BATCH = """
batch        BIGINT    number of the batch that wrote this row
replica      STRING    running copy that wrote this row
"""
_TRIED = """
round        INT       how often it has been redriven after it was given up
attempt      INT       how often it has been tried in this round
first_seen   TIMESTAMP when it was first tried in this round
"""
_ORIGIN = """
token        STRING    pipeline/replica/sequence/number: the batch that owns the claim
replica      STRING    running copy that wrote this row
"""

JOINED = Table(
    "joined",
    "the output: one row for each joined foreign event, permanently; the adapter's columns come last",
    columns(
        """
event_id     STRING    the foreign event's unique name
event_time   TIMESTAMP when the foreign event happened
event_date   DATE      date of event_time in UTC, to filter by; the table is partitioned by it, or else by bucket
bucket       STRING    range of the foreign event's time, named by its start, such as 2019-11-24T0300Z
primary_id   STRING    id of the primary event that it was joined to
primary_time TIMESTAMP when the primary event happened
"""
        + _ORIGIN
        + "published_at TIMESTAMP when the batch wrote it; readable a moment later\n"
    ),
    partitions=("event_date",),
    statistics=("event_time", "event_id", "token"),
)
DEDUPLICATED = replace(
    JOINED,
    name="deduplicated",
    purpose="the output of a pipeline of one stream, in place of `joined`: one row for each event, permanently; the "
    "record's own columns come last",
    columns=tuple(
        replace(column, meaning=column.meaning.replace("foreign event", "event"))
        for column in JOINED.columns
        if not column.name.startswith("primary_")
    ),
)
PRIMARY = Table(
    "primary",
    "every good primary record (query, impression); a record that came twice is here twice and joins once",
    columns(
        _IDENTITY
        + _RECORD
        + _PLACE
        + _BATCH
        + "landed_at TIMESTAMP when its batch was planned\n"
        + "match_key STRING the key that foreign events are matched by; empty where the record has none, null where "
        "the pipeline has no `match`\n"
        "preferred BOOLEAN whether `match.prefer` names the event; null where the pipeline has no such\n"
    ),
    partitions=("bucket",),
    statistics=("event_time", "event_id", "batch"),
)
FOREIGN = Table(
    "foreign",
    "every good foreign record (click), repeats too: accepted events are its distinct ids",
    columns(_IDENTITY + _WANTED + _RECORD + _PLACE + _BATCH + "landed_at TIMESTAMP when its batch was planned\n"),
    partitions=("bucket",),
    statistics=("event_time", "event_id", "batch"),
)
REGISTRY = Table(
    "registry",
    "claims: which batch settled an id, and how; an id has one claim at most",
    columns(
        _IDENTITY
        + """
token        STRING    pipeline/replica/sequence/number: the batch that owns the claim
outcome      STRING    joined | filtered | unjoinable: the one table that the id is in; forgotten: in none
"""
    ),
    partitions=("bucket", "shard"),
    statistics=("event_time", "event_id", "token"),
)
PENDING = Table(
    "pending",
    "history of foreign events that wait for their primary; the newest row of an id (round, then attempt) is its state",
    columns(
        _IDENTITY
        + _WANTED
        + _RECORD.replace("extra fields and all", "on an id's first row; null on later ones")
        + _TRIED
        + """
state        STRING    waiting | resolved
outcome      STRING    of a resolved id: joined | filtered | unjoinable | expired | claimed_elsewhere; else null
due_at       TIMESTAMP when a waiting id is tried again
sequence     STRING    join | retry | redrive: the kind of batch that wrote this row
"""
        + _BATCH
    ),
    statistics=("event_time", "event_id", "due_at"),
)
UNJOINABLE = Table(
    "unjoinable",
    "foreign events given up: tried often and for long; `clickjoin redrive` sends them again",
    columns(_IDENTITY + _WANTED + _RECORD + _TRIED + _ORIGIN + "at TIMESTAMP when it was given up\n"),
    statistics=("event_time", "event_id", "token"),
)
EXPIRED = Table(
    "expired",
    "foreign events older than the registry's boundary: their uniqueness can no longer be known",
    columns(
        _IDENTITY + _WANTED + _RECORD + "sequence STRING join | retry\n" + _BATCH + "at TIMESTAMP when it was refused\n"
    ),
    statistics=("event_time", "event_id"),
)
FILTERED = Table(
    "filtered",
    "foreign events that the pipeline's own adapter dropped",
    columns(_IDENTITY + _WANTED + _RECORD + _ORIGIN + "at TIMESTAMP when it was dropped\n"),
    statistics=("event_time", "event_id", "token"),
)
QUARANTINE = Table(
    "quarantine",
    "records that cannot be understood, byte for byte, and planned bytes that could not be read any more",
    columns(
        "stream STRING primary | foreign\nreason STRING why, from a closed list (docs/bad-input.md)\n"
        "detail STRING why, in a sentence\nraw BINARY the record's bytes; null for source-lost\n"
        "part INT number of this piece of a record that was too long for one row, from 0; else null\n"
        + _PLACE
        + _BATCH
        + "at TIMESTAMP when its batch was planned\n"
    ),
    statistics=("reason", "stream", "batch"),
)
