"""The number of the tables' format: a property of each table, by which a program knows whether it may work on it.

A program refuses tables of a newer format than its own. The number is raised by whatever an older program must not
write to, or would not keep up; columns that may be missing need no new number.
"""

from __future__ import annotations

KEY = "clickjoin.format"
FORMAT = 2
# A table without a number.
FIRST = 1
# What each format brought.
CHANGES = {
    2: "each table holds the number of its format; metrics counts misfits, and shard_timeline holds what is fixed once "
    "a lake is begun (event_id, max_skew)",
}
