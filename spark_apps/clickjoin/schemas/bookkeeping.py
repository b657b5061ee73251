"""Tables that the pipeline keeps its books in: journal, metrics, timeline of shards, boundary."""

from __future__ import annotations

from clickjoin.schemas.base import Table, columns

BATCHES = Table(
    "journal",
    "the journal: a row when a batch is planned, before any work, and a row when it is settled",
    columns(
        """
replica   STRING    running copy; of a fence: all
sequence  STRING    join | retry | redrive: numbers grow within one sequence of one replica; fence: of a reshard
batch     BIGINT    number of the batch in its sequence, from 1
state     STRING    planned | settled | fenced
at        TIMESTAMP when
snapshot  BOOLEAN   this plan holds all of the sequence's offsets, not only those that changed
plan      STRING    JSON of a planned row: splits, changed offsets; of a settled one: lost splits, commits seen
"""
    ),
    partitions=("replica", "sequence"),
    statistics=("batch", "state"),
)
METRICS = Table(
    "metrics",
    "one row a settled batch: what went in, what came out, how long each step took, what is still to do",
    columns(
        """
replica          STRING    running copy
sequence         STRING    join | retry | redrive
batch            BIGINT    number of the batch
planned_at       TIMESTAMP when it was planned
settled_at       TIMESTAMP when it was done
primary_in       BIGINT    good primary records landed
events_in        BIGINT    foreign events read: good records landed, or pending ones tried again
joined           BIGINT    events published
repeats          BIGINT    foreign records whose id was already in this batch or claimed before
wasted           BIGINT    wasted joins: joined, then refused because another batch had claimed the id
pending          BIGINT    events that wait for their primary after this batch
unjoinable       BIGINT    events given up
expired          BIGINT    events older than the registry's boundary
filtered         BIGINT    events that the adapter dropped
quarantined      BIGINT    quarantined records, both streams
conflict_reruns  BIGINT    times that a commit was run again because another writer came first
latency_p50      DOUBLE    seconds from event time to published, half of the joined events
latency_p90      DOUBLE    same, nine in ten
latency_p99      DOUBLE    same, 99 in 100
seconds_plan     DOUBLE    seconds to list the sources and write the plan
seconds_land     DOUBLE    seconds to parse the splits and append what they hold; of a retry, to choose what is due
seconds_lookup   DOUBLE    seconds to screen against the registry and look up the primary events
seconds_claim    DOUBLE    seconds to claim the joined ids
seconds_publish  DOUBLE    seconds to append the output
seconds_settle   DOUBLE    seconds to append pending, unjoinable, filtered, expired, and the journal
backlog_events   BIGINT    events known to the sources and not yet planned (estimated)
backlog_bytes    BIGINT    bytes known to the sources and not yet planned
watermark        TIMESTAMP no event before it was unread, in any stream, once this batch was done; null where unknown
problems         STRING    JSON list of what a person should know about the sources; null if nothing
absent           BIGINT    of those given up: by retry.until watermark, their primary's stream having passed its time
false_positives  BIGINT    ids that a filter of claims named and its file did not hold; of registry.identity id
misfits          STRING    JSON object: published values that did not fit their type, by column; null if none
passed_over      BIGINT    records read that no stream's `where` takes
"""
    ),
    partitions=("replica", "sequence"),
    statistics=("batch",),
)
TIMELINE = Table(
    "shard_timeline",
    "how many shards an event has, by event time, and the first entry again for each form of the event time that was "
    "added; entries are appended and never edited (Photon, section 2.2.2)",
    columns(
        """
from_time TIMESTAMP first event time that this entry holds for
shards    INT       number of shards from then on
added_at  TIMESTAMP when the entry was made
bucket_seconds INT  width of a bucket, fixed when the lake was begun
event_time STRING   where the foreign event's time comes from, and by which forms it is read; later rows add forms
event_id  STRING    columns that the foreign event's id is made of, fixed when the lake was begun
max_skew  DOUBLE    seconds that an event may lie in the future, fixed when the lake was begun
"""
    ),
)
BOUNDARY = Table(
    "registry_boundary",
    "the oldest event time that the registry still answers for, by shard, and where table `primary` begins; "
    "the highest row of a shard holds",
    columns(
        """
shard    INT       shard; -1: table `primary`
boundary TIMESTAMP events before this are expired; primary events before this are not joined to any more
at       TIMESTAMP when it was moved
"""
    ),
)
