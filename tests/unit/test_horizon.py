"""How far back the registry reaches: by age and by size, never under what somebody still needs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickjoin.config import Pipeline
from clickjoin.gc.gc_plan import Facts, Horizon, horizon
from clickjoin.lake.maintenance import Size

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)
SIDE = {"source": {"kind": "files", "path": "/logs/*"}, "event_id": "id", "event_time": "embedded"}


def hours(count: float) -> datetime:
    return NOON + timedelta(hours=count)


def pipeline(**more: Any) -> Pipeline:
    return Pipeline.model_validate(
        {
            "pipeline": "p",
            "engine": "arrow",
            "lake": "/lake",
            "primary": SIDE,
            "foreign": {**SIDE, "primary_id": "q", "primary_time": "embedded"},
            "registry": {"retention": "1d", "bucket": "1h", **more.pop("registry", {})},
            "verify": {"window": "6h"},
            **more,
        }
    )


def facts(**more: Any) -> Facts:
    known: dict[str, Any] = {
        "now": hours(0.5), "newest": hours(0.5), "boundary": None, "waiting": None, "wanted": None, "unsettled": None,
        "claims": {},
    }  # fmt: skip
    return Facts(**{**known, **more})


def test_by_age_at_the_start_of_a_bucket() -> None:
    assert horizon(pipeline(), facts()) == Horizon(hours(-24), hours(-24), hours(-24))


def test_streams_are_kept_as_long_as_asked() -> None:
    found = horizon(pipeline(retention={"primary": "2d", "foreign": "12h"}), facts())
    assert found == Horizon(hours(-24), hours(-48), hours(-12))


def test_old_logs_are_as_fresh_as_their_newest_event() -> None:
    assert horizon(pipeline(), facts(newest=hours(-999.5))).boundary == hours(-1024)
    # and a clock of a source that runs ahead moves nothing
    assert horizon(pipeline(), facts(newest=hours(5))).boundary == hours(-24)


def test_nothing_without_claims() -> None:
    assert horizon(pipeline(), facts(newest=None)) == Horizon(None, None, None, ("there is no claim yet",))
    assert horizon(pipeline(), facts(newest=None, boundary=hours(-9))).boundary == hours(-9)


def test_never_back() -> None:
    assert horizon(pipeline(), facts(boundary=hours(-3))).boundary == hours(-3)


def test_a_waiting_event_holds_the_boundary_and_its_primary() -> None:
    found = horizon(pipeline(), facts(waiting=hours(-30.5), wanted=hours(-40.2)))
    assert (found.boundary, found.primary, found.foreign) == (hours(-31), hours(-41), hours(-24))
    assert "still waits in `pending`" in found.notes[0]


def test_an_unsettled_batch_holds_the_streams() -> None:
    found = horizon(pipeline(), facts(unsettled=hours(-10)))
    assert (found.boundary, found.primary, found.foreign) == (hours(-24), hours(-34), hours(-34))
    assert "is not settled" in found.notes[0]


CLAIMS = {f"2026-03-10T{hour:02}00Z": Size(1, 100, 2000) for hour in range(13)}


@pytest.mark.parametrize(
    ("limit", "boundary"),
    [
        ({"max_rows": 850}, hours(-7)),
        ({"max_rows": 800}, hours(-7)),
        ({"max_bytes": 16_000}, hours(-7)),
        ({"max_rows": 100_000}, hours(-24)),
    ],
)
def test_by_size_the_oldest_buckets_go(limit: dict[str, int], boundary: datetime) -> None:
    found = horizon(pipeline(registry=limit), facts(claims=CLAIMS))
    assert (found.boundary, found.notes) == (boundary, ())


def test_by_size_the_verification_window_is_left_alone() -> None:
    found = horizon(pipeline(registry={"max_rows": 300}), facts(claims=CLAIMS))
    assert found.boundary == hours(-6)
    assert "cannot be met" in found.notes[0]


moments = st.one_of(st.none(), st.floats(-500, 0.5).map(hours))


@given(moments, moments, moments, st.integers(1, 2000))
def test_what_is_needed_is_never_beyond_it(waiting: Any, boundary: Any, unsettled: Any, rows: int) -> None:
    known = facts(waiting=waiting, boundary=boundary, unsettled=unsettled, claims=CLAIMS)
    found = horizon(pipeline(registry={"max_rows": rows}), known)
    assert found.boundary is not None
    assert boundary is None or found.boundary >= boundary
    # Where the boundary has passed an event before, it is past; it never passes one again.
    assert waiting is None or found.boundary <= waiting or found.boundary == boundary
    assert found.boundary <= hours(-5) or found.boundary == boundary
    assert unsettled is None or (found.foreign and found.foreign <= unsettled - timedelta(days=1))
