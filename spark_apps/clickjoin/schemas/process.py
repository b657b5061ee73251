"""Tables of per-key processing; they lie in the folder `process` of a pipeline, with a journal of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from clickjoin.schemas.base import Column, Table, columns
from clickjoin.schemas.bookkeeping import BATCHES

FOLDER = "process"  # where they lie, in the folder of the pipeline's lake
MADE_BY = "clickjoin.process"  # the property of table `state` that says what its state depends on
KEYS, BATCH = "keys", "batch"  # what a row of `state` is of
STATE = Table(
    "state",
    "state by key, and of each batch what it publishes: one commit fixes all that a batch does",
    columns(
        """
era     BIGINT  a whole copy of all keys begins each; the newest counts
what    STRING  keys: state of a key; batch: what a batch publishes
batch   BIGINT  number of the batch; of a key the row of the newest batch counts
key     STRING  the key; null of a batch
timer   BIGINT  microseconds since 1970: when it is looked at without an event
gone    BOOLEAN the key is forgotten
outbox  BINARY  of a batch: its signals, as an Arrow IPC stream
began   BIGINT  of a batch: time of the first event of all, microseconds since 1970
events  BIGINT  of a batch: events that it took in
late    BIGINT  of a batch: events that it set aside
known   BIGINT  of a batch: rows left out, as in table `processed`
looked  BIGINT  of a batch: keys that were looked at
newest  BIGINT  of a batch: newest time of its events, microseconds since 1970
all_events   BIGINT  of a batch: events that it and all before it took in
all_late     BIGINT  of a batch: the same of events set aside
all_signals  BIGINT  of a batch: the same of signals
"""
    ),
    partitions=("era", "what"),
    statistics=("batch",),
)
SIGNALS = Table(
    "signals",
    "what the processor reported, once each",
    columns(
        """
id            STRING    name of the signal: processor/kind/window_start[#revision]/key; never twice
key           STRING    the key
kind          STRING    spike | dip | count | session, or what a processor of your own says
window_start  TIMESTAMP where the window, or the period, begins
window_end    TIMESTAMP where it ends
count         BIGINT    events that were counted; of a spike the least number that makes it one
expected      DOUBLE    events that were expected, of a dip in all of its windows together
low           DOUBLE    fewer are a dip, as expected
high          DOUBLE    more are a spike, the same way
score         DOUBLE    standard deviations from what was expected
revision      BIGINT    0 of the first; what corrects it has the next
retracted     BOOLEAN   takes back the row of this window, kind and revision: late events have changed it
reported_at   TIMESTAMP when it was first reported: the time that its batch was planned
batch         BIGINT    number of the batch
"""
    ),
    statistics=("window_start", "reported_at", "batch"),
)
LATE = Table(
    "late",
    "events behind the watermark, or without a key; the output holds their records",
    columns(
        """
event_id    STRING    the event
event_time  TIMESTAMP its time
key         STRING    its key; null where it has none
reason      STRING    late | no-key: no processor was given it; corrected: it was, and corrects what was reported
watermark   TIMESTAMP the watermark that it was behind
batch       BIGINT    number of the batch
"""
    ),
    statistics=("event_time", "batch"),
)
PROCESSED = Table(
    "processed",
    "one row a batch of per-key processing",
    columns(
        """
batch           BIGINT    number of the batch
planned_at      TIMESTAMP when it was planned
settled_at      TIMESTAMP when it was done
events          BIGINT    events that the processor was given
late            BIGINT    events in table `late`, those that correct among them
known           BIGINT    rows left out: a version that rewrote the output holds events of before again
keys            BIGINT    keys that were looked at
keys_in_state   BIGINT    keys that have state after it
signals         BIGINT    rows of table `signals`
watermark       TIMESTAMP no event before it is missing; null where unknown
seconds         DOUBLE    how long it took
backlog_events  BIGINT    rows of the output that are not planned yet
"""
    ),
    statistics=("batch", "settled_at"),
)
PROCESS = (BATCHES, STATE, SIGNALS, LATE, PROCESSED)
NUMBERED = tuple(table.name for table in PROCESS[1:])  # what a batch commits to


def state_table(own: Mapping[str, str], made_by: str) -> Table:
    """Table `state` with the columns (name to Spark SQL type) of a processor's state.

    `made_by`: a text that differs where such state cannot be gone on with.
    """
    extra = tuple(Column(name, kind, "the processor's own") for name, kind in own.items())
    return replace(STATE, columns=(*STATE.columns, *extra), settings={MADE_BY: made_by})
