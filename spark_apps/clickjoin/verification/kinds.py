"""What can be wrong with an event or a record, and how an event's tally shows it."""

from __future__ import annotations

from datetime import datetime

from clickjoin.model.extent import timestamp
from clickjoin.sources.completeness import OVERREAD, UNREAD

# How each fault shows in an event's tally (see ids.tally): Spark SQL.
FAULTS = {
    "lost": "accepted > 0 AND outputs = 0 AND moving = 0 AND expired = 0 AND waiting = 0 AND claims = 0 "
    "AND forgotten = 0",
    "doubled": "joined > 1",
    "two_places": "places > 1 OR filtered > 1 OR unjoinable > 1",
    "output_without_claim": "outputs > 0 AND claims = 0 AND NOT old",
    "wrong_token": "claims = 1 AND outputs = 1 AND (token_low <> token_high OR NOT as_said)",
    "claim_without_output": "claims > 0 AND outputs = 0 AND moving = 0 AND open_claims = 0 AND forgotten = 0",
    "doubled_claim": "claims > 1",
    "unknown_output": "outputs > 0 AND landed = 0 AND open_outputs = 0 AND kept",
    "forgotten_without_claim": "forgotten > 0 AND claims = 0 AND outputs = 0 AND NOT old",
}
# Counted, and no fault: see docs/verification.md.
NOTICES = {
    "late_repeat": "expired > 0 AND outputs > 0",
    "claimed_elsewhere": "waiting > 0 AND claims > 0",
    "in_flight": "claims > 0 AND outputs = 0 AND moving = 0 AND open_claims > 0",
    "forgotten": "forgotten > 0",
}
RECORDS = (UNREAD, OVERREAD)
TWO_TIMES = "two_times"
NOT_FORGOTTEN = "not_forgotten"  # rows that hold a record of a forgotten event
REPAIRABLE = ("lost", "claim_without_output", "output_without_claim", "doubled", "forgotten_without_claim")


def faults_sql() -> str:
    """All that is wrong with an event, a bit for each kind: Spark SQL over its tally.

    A sum, not a choice: Spark takes half a minute to think about a filter over that many ANDs and ORs.
    """
    return " + ".join(f"IF({sql}, {1 << bit}, 0)" for bit, sql in enumerate(FAULTS.values()))


def has(kind: str) -> str:
    """Whether an event has this fault, as Spark SQL over column `faults`."""
    return f"(faults & {1 << list(FAULTS).index(kind)}) <> 0"


def kept_sql(since: datetime) -> str:
    """Whether `foreign` must still hold an event's record."""
    return f"event_time >= {timestamp(since)}"
