"""When a waiting event is tried again: exponential backoff, as pure arithmetic and as Spark SQL."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from clickjoin.model.extent import timestamp

if TYPE_CHECKING:
    from clickjoin.config import Retry


def delay(retry: Retry, attempt: int) -> float:
    """Seconds from try number `attempt` (from 1) to the next: first_delay, then backoff times more, up to max_delay."""
    try:
        return min(retry.first_delay * retry.backoff ** (attempt - 1), retry.max_delay)
    except OverflowError:
        return retry.max_delay


def due_sql(retry: Retry, tried_at: datetime) -> str:
    """The moment of the next try, as Spark SQL over column `attempt` (tries made, this one among them)."""
    seconds = f"LEAST({retry.first_delay}D * POWER({retry.backoff}D, attempt - 1), {retry.max_delay}D)"
    return f"{timestamp(tried_at)} + make_dt_interval(0, 0, 0, CAST({seconds} AS DECIMAL(18, 6)))"
