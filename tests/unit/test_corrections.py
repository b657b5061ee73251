"""Late events correct what was reported: what stands in the end is what all events say, and each row is there once."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from clickjoin.processors import Processor, SessionWindows, SpikesAndDips, TumblingCounts
from tests.unit.processor_bench import BEGAN, DAY, HOUR, MINUTE, Driver, Event


class Row(NamedTuple):
    """A signal as Driver keeps it."""

    key: str
    kind: str
    start: int
    end: int
    count: int
    expected: float | None
    low: float | None
    high: float | None
    score: float | None
    revision: int | None
    retracted: bool | None


def rows_of(driver: Driver) -> list[Row]:
    return [Row(*row) for row in driver.signals]  # type: ignore[arg-type]


def standing(driver: Driver) -> list[Row]:
    """Rows that were not taken back; of a window and kind one at most, each taken back as it was said, after it."""
    found: dict[tuple[str, str, int], Row] = {}
    seen = set[tuple[object, ...]]()
    for row in rows_of(driver):
        name = (row.key, row.kind, row.start)
        assert (*name, row.revision, row.retracted) not in seen, f"twice: {row}"
        seen.add((*name, row.revision, row.retracted))
        if row.retracted:
            assert found.pop(name)[:10] == row[:10]
        else:
            assert name not in found
            found[name] = row
    return list(found.values())


def shuffled(
    processor: Processor, events: Sequence[Event], end: int, late: int, rng: random.Random
) -> tuple[Driver, int]:
    """Hand over events of which many are behind the watermark, none further than `late`; how many were behind."""
    driver, mark, behind = Driver(processor, lateness=late), BEGAN, 0
    order = sorted(events, key=lambda event: event[1] + rng.choice([0, 0, rng.randrange(late)]))
    while order:
        some, order = order[: (cut := rng.randrange(1, 12))], order[cut:]
        behind += sum(time < mark for _, time in some)
        driver.batch(some, mark)
        latest = min((time for _, time in order), default=end)
        mark = max(mark, rng.randrange(mark, max(min(latest + late, end), mark + 1)))
    driver.batch([], end + 2 * late)
    return driver, behind


TIMES = st.lists(st.tuples(st.sampled_from("ab"), st.integers(BEGAN, BEGAN + 3 * HOUR)), max_size=60)
SEEDS = st.integers(0, 2**32).map(random.Random)


@given(TIMES, SEEDS)
def test_counts_that_stand_are_those_of_all_events(events: list[Event], rng: random.Random) -> None:
    driver, _ = shuffled(TumblingCounts("10m"), events, BEGAN + 5 * HOUR, HOUR, rng)
    wanted = Counter((key, time // (10 * MINUTE) * 10 * MINUTE) for key, time in events)
    assert {(row.key, row.start): row.count for row in standing(driver)} == wanted
    assert not driver.state


@given(TIMES, SEEDS)
def test_sessions_that_stand_are_those_of_all_events(events: list[Event], rng: random.Random) -> None:
    driver, _ = shuffled(SessionWindows("10m"), events, BEGAN + 5 * HOUR, HOUR, rng)
    wanted = list[tuple[str, int, int, int]]()
    for key, time in sorted(events):
        if wanted and wanted[-1][0] == key and time - wanted[-1][2] < 10 * MINUTE:
            wanted[-1] = (key, wanted[-1][1], time, wanted[-1][3] + 1)
        else:
            wanted.append((key, time, time, 1))
    assert sorted((row.key, row.start, row.end, row.count) for row in standing(driver)) == wanted
    assert not driver.state


def test_a_late_event_is_a_retraction_and_a_new_row() -> None:
    driver = Driver(TumblingCounts("10m"), lateness=HOUR)
    driver.batch([("a", BEGAN), ("a", BEGAN + 1)], BEGAN + 10 * MINUTE)
    driver.batch([("a", BEGAN + 2), ("b", BEGAN + 3)], BEGAN + 20 * MINUTE)
    found = [(row.key, row.count, row.revision, row.retracted) for row in rows_of(driver)]
    assert found == [("a", 2, 0, False), ("a", 2, 0, True), ("a", 3, 1, False), ("b", 1, 0, False)]


def days(key: str, rate: int, upto: int, without: Iterable[int] = ()) -> list[Event]:
    """So many events in each five minutes of three days and some, but for some of them."""
    return [
        (key, BEGAN + at * 5 * MINUTE + nth) for at in range(upto // 5) if at not in set(without) for nth in range(rate)
    ]


GONE = range(700, 706)  # fives of minutes


def dipped() -> Driver:
    driver = Driver(SpikesAndDips("5m", season="1d", ttl="2d"), lateness=2 * HOUR)
    driver.batch(days("a", 60, 3600, GONE), BEGAN + 3600 * MINUTE)
    assert [(row.kind, row.start) for row in standing(driver)] == [("dip", BEGAN + 3500 * MINUTE)]
    return driver


def test_a_dip_that_was_merely_late_is_retracted() -> None:
    driver = dipped()
    driver.batch(days("a", 60, 3610, {*range(722)} - {*GONE, 720, 721}), BEGAN + 3610 * MINUTE)
    assert standing(driver) == []
    assert [row.retracted for row in rows_of(driver)] == [False, True]


def test_a_dip_that_stays_one_has_its_new_count() -> None:
    driver = dipped()
    late = [("a", BEGAN + 3501 * MINUTE), ("a", BEGAN + 3502 * MINUTE)]
    driver.batch([*late, *days("a", 60, 3610, range(720))], BEGAN + 3610 * MINUTE)
    (row,) = standing(driver)
    assert (row.count, row.revision) == (rows_of(driver)[0].count + 2, 1)


def test_late_events_that_make_a_spike_report_it_once() -> None:
    driver = Driver(SpikesAndDips("5m", season="1d", ttl="2d"), lateness=2 * HOUR)
    driver.batch(days("a", 60, 3600), BEGAN + 3600 * MINUTE)
    more = [("a", BEGAN + 3500 * MINUTE + nth) for nth in range(70)]
    driver.batch(more[:35], BEGAN + 3601 * MINUTE)
    driver.batch(more[35:], BEGAN + 3602 * MINUTE)
    driver.batch([("a", BEGAN + 3505 * MINUTE + nth) for nth in range(70)], BEGAN + 3603 * MINUTE)
    assert [(row.kind, row.start) for row in standing(driver)] == [("spike", BEGAN + 3500 * MINUTE)]


def test_a_retracted_dip_comes_again_while_its_run_goes_on() -> None:
    driver = Driver(SpikesAndDips("5m", season="1d", ttl="2d"), lateness=2 * HOUR)
    driver.batch(days("a", 60, 3500), BEGAN + 3500 * MINUTE)
    driver.batch([], BEGAN + 3510 * MINUTE)
    (first,) = standing(driver)
    driver.batch([("a", BEGAN + 3500 * MINUTE + nth) for nth in range(55)], BEGAN + 3511 * MINUTE)
    assert standing(driver) == []
    driver.batch([], BEGAN + 3600 * MINUTE)
    (again,) = standing(driver)
    assert (again.start, again.revision) == (first.start, 1)


@settings(max_examples=30, deadline=None)
@given(SEEDS)
def test_spikes_and_dips_are_taken_back_as_they_were_said(rng: random.Random) -> None:
    rates = {at: rng.choice([12, 12, 12, 12, 0, 1, 60]) for at in range(600, 864)}
    events = [
        ("a", BEGAN + at * 5 * MINUTE + rng.randrange(5 * MINUTE))
        for at in range(864)
        for _ in range(rates.get(at, 12))
    ]
    cut = BEGAN + 2 * DAY
    driver = Driver(SpikesAndDips("5m", season="1d", ttl="2d", threshold=4), lateness=HOUR)
    driver.batch([event for event in events if event[1] < cut], cut)
    order = sorted(
        (event for event in events if event[1] >= cut),
        key=lambda event: event[1] + rng.choice([0, rng.randrange(HOUR)]),
    )
    while order:
        some, order = order[:40], order[40:]
        driver.batch(some, max(driver.passed, max(time for _, time in some) - HOUR // 2))
    driver.batch([], BEGAN + 4 * DAY)
    standing(driver)
