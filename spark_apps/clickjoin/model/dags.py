"""Which DAGs Airflow makes of a pipeline's file. Imports nothing, since Airflow reads it whenever it parses DAGs."""

from __future__ import annotations

from typing import Literal, get_args

Dag = Literal[
    "join", "retry", "redrive", "process", "verify", "gc", "reshard", "close_day", "backfill", "reclose_changed"
]
DAGS: tuple[str, ...] = get_args(Dag)
PARTNERS = ("retry", "redrive")  # of events that wait for a partner: a pipeline of one stream has none
PROCESSING = "process"  # of a pipeline with a section of that name
OF_EVERY_JOIN = tuple(name for name in DAGS if name != PROCESSING)
