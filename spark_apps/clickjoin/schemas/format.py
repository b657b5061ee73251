"""The number of the tables' format: a property that each table is made with, and by which a program knows its own.

A program works on tables of its own format alone. The number is raised by whatever changes what a table holds.
"""

from __future__ import annotations

KEY = "clickjoin.format"
ENGINE = "clickjoin.engine"  # of the journal: the engine that ran last
FIRST_ENGINE = "arrow"  # of a lake that does not say
ZONES = "clickjoin.zones"  # of journal and timeline: the rules of zones that events' times were read by, as JSON
FORMAT = 3
