"""Tables that verification writes: what was checked, what was found, and what was taken out of the output."""

from __future__ import annotations

from clickjoin.schemas.base import Table, columns

VERIFICATION = Table(
    "verification",
    "one row a kind of fault and verification, zero counts too: what was checked, and how much of it was not in order",
    columns(
        """
run          STRING    replica/microseconds: one verification
at           TIMESTAMP when it began
from_time    TIMESTAMP first event time that it covers
to_time      TIMESTAMP event time that it ends before
kind         STRING    kind of finding (docs/verification.md)
fault        BOOLEAN   false: counted for information, and no reason to fail
checked      BIGINT    ids, or planned bytes, that were checked
count        BIGINT    how many were found
repaired     BIGINT    how many of them recovery put right
samples      STRING    JSON list of up to five of them
seconds      DOUBLE    seconds that the whole verification took
"""
    ),
)
FINDINGS = Table(
    "findings",
    "what a verification that may repair has found, by event: recovery works from these rows",
    columns(
        """
event_id     STRING    the event's unique name
event_time   TIMESTAMP when the event happened; part of its identity where the time is a column
bucket       STRING    range of event time that it lies in
shard        INT       crc32(event_id) mod n, n from the timeline at event_time
run          STRING    replica/microseconds: the verification that found it
kind         STRING    what is wrong with it (docs/verification.md)
action       STRING    what recovery does: again (dispatched again), claim (given back), remove (doubles); null: nothing
token        STRING    of the claim that is to go, or that is to be given back
outcome      STRING    joined | filtered | unjoinable: of a claim that is to be given back
primary_id   STRING    id of the primary event that it names
primary_time TIMESTAMP time of that primary event; null where it is only known to lie within a range
payload      STRING    the whole record as JSON text, where it is to be dispatched again
detail       STRING    why nothing can be done, in a sentence; else null
at           TIMESTAMP when the verification began
"""
    ),
    statistics=("event_time", "run", "kind", "at"),
)
DOUBLES = Table(
    "removed_duplicates",
    "rows that were taken out of `joined` on request, because their id was there twice",
    columns(
        """
event_id     STRING    the event's unique name
event_time   TIMESTAMP when the event happened
bucket       STRING    range of event time that it lies in
run          STRING    replica/microseconds: the verification that took it out
token        STRING    pipeline/replica/sequence/number: the batch that had written it
row          STRING    the whole row of `joined` as JSON text
at           TIMESTAMP when it was taken out
"""
    ),
    statistics=("event_time", "event_id"),
)
