"""How far streams have come, by what planning knows: never further than what is unread, and never back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from clickjoin.config.sections import Close
from clickjoin.dispatcher.watermarks import least, newer, stream_watermark
from clickjoin.model.ids import MICROS
from clickjoin.model.split import Problem, SourcePlan, Split
from clickjoin.report.status import watermark

CLOSE = Close.model_validate({"max_out_of_orderness": "10s", "idle_timeout": "60s"})
NOW = 1_000.0
READ = SourcePlan((Split("a", events=1),))


def blind(kind: str) -> SourcePlan:
    return SourcePlan(problems=(Problem(kind, "/x", "why"),))


@pytest.mark.parametrize(
    ("plan", "newest", "before", "written", "mark"),
    [
        (READ, None, None, 0, None),
        (READ, 900, None, 0, 890),  # all is read: as far as the newest event that it ever gave
        (READ, 900, 895, 0, 895),
        (SourcePlan(), 900, None, 941, 890),
        (SourcePlan(), 900, None, 940, 990),  # at rest: as far as now
        (SourcePlan(), None, None, 2_000, None),  # a file from the future is not at rest
        (SourcePlan(backlog_events=1), 900, None, 0, None),
        (SourcePlan(backlog_bytes=1), 900, 700, 0, 700),
        (blind("unreadable"), 900, 700, 0, 700),
        (blind("missing"), 900, None, 0, None),
        (blind("lost-tail"), 900, None, 941, 890),
        (SourcePlan(backlog_events=1, watermark=950 * MICROS), None, 700, 0, 950),  # the source knows better
        (SourcePlan(watermark=600 * MICROS), None, 700, 0, 700),
    ],
)
def test_stream_watermark(plan: SourcePlan, newest: Any, before: Any, written: float, mark: Any) -> None:
    seconds = [None if time is None else time * MICROS for time in (newest, before)]
    found = stream_watermark(plan, CLOSE, NOW, seconds[0], seconds[1], lambda: written)
    assert found == (None if mark is None else mark * MICROS)


def test_nothing_is_looked_at_while_records_come() -> None:
    def look() -> float:
        raise AssertionError

    assert stream_watermark(READ, CLOSE, NOW, 900 * MICROS, None, look) == 890 * MICROS


def test_all_streams_together() -> None:
    assert least({"a": 5, "b": 3}, 2) == 3
    assert least({"a": 5}, 2) is None
    assert newer({"a": 5, "b": 3}, {"a": 4, "b": 6, "c": 1}) == {"a": 5, "b": 6, "c": 1}


def test_the_output_is_no_further_than_what_waits() -> None:
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    earlier = {"event_time": noon - timedelta(hours=1)}
    assert watermark({"watermark": noon}, []) == noon
    assert watermark({"watermark": noon}, [earlier, {"event_time": noon}]) == earlier["event_time"]
    assert watermark({"watermark": None}, [earlier]) is None
    assert watermark(None, [earlier]) is None
