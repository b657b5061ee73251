"""Backoff: grows by its factor up to its limit, for any number of attempts."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from clickjoin.config import Retry
from clickjoin.retry.backoff import delay, due_sql

RETRIES = st.builds(
    lambda first, backoff, most: Retry.model_construct(first_delay=first, backoff=backoff, max_delay=most),
    st.floats(0, 1e6),
    st.floats(1, 100),
    st.floats(0, 1e6),
)


def test_delays() -> None:
    retry = Retry.model_validate({"first_delay": "10s", "backoff": 2, "max_delay": "1m"})
    assert [delay(retry, attempt) for attempt in range(1, 6)] == [10, 20, 40, 60, 60]


def test_huge_attempts_stay_at_the_limit() -> None:
    retry = Retry.model_validate({"first_delay": "1ms", "backoff": 10, "max_delay": "1h"})
    assert delay(retry, 100_000) == 3600


@given(RETRIES, st.integers(1, 3000))
def test_never_shorter_than_before(retry: Retry, attempt: int) -> None:
    now, after = delay(retry, attempt), delay(retry, attempt + 1)
    assert 0 <= now <= after <= retry.max_delay


def test_sql() -> None:
    retry = Retry.model_validate({"first_delay": "10s", "backoff": 2, "max_delay": "1h"})
    assert due_sql(retry, datetime(2026, 1, 1, tzinfo=UTC)) == (
        "TIMESTAMP '2026-01-01 00:00:00.000000+00:00' + make_dt_interval(0, 0, 0, "
        "CAST(LEAST(10.0D * POWER(2.0D, attempt - 1), 3600.0D) AS DECIMAL(18, 6)))"
    )
