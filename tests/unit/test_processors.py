"""Processors: what they say, and that it does not depend on where batches end."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clickjoin.model.errors import ConfigError
from clickjoin.processors import SessionWindows, SpikesAndDips, TumblingCounts
from tests.unit.processor_bench import BEGAN, DAY, HOUR, MINUTE, SECOND, Driver, Event, reported


def cut(events: Sequence[Event], end: int, rng: random.Random) -> list[tuple[list[Event], int]]:
    """Batches of some events: none behind the watermark of an earlier batch, the last one's past all of them."""
    order = sorted(events, key=lambda event: event[1])
    marks = sorted(rng.randrange(BEGAN, end) for _ in range(rng.randrange(8)))
    batches: list[tuple[list[Event], int]] = []
    for mark in [*marks, end]:
        early = [event for event in order if event[1] < mark]
        ahead = [event for event in order if event[1] >= mark]
        some = set(rng.sample(range(len(ahead)), min(len(ahead), rng.choice([0, 0, 5, 500]))))  # what comes early
        batch = early + [ahead[at] for at in some]
        rng.shuffle(batch)
        batches.append((batch, mark))
        order = [event for at, event in enumerate(ahead) if at not in some]
    return batches


TIMES = st.lists(st.tuples(st.sampled_from("ab"), st.integers(BEGAN, BEGAN + 3 * HOUR)), max_size=40)
SEEDS = st.integers(0, 2**32).map(random.Random)


@given(TIMES, SEEDS)
def test_counts_are_those_of_each_window(events: list[Event], rng: random.Random) -> None:
    end = BEGAN + 4 * HOUR
    driver = Driver(TumblingCounts("10m"))
    for some, mark in cut(events, end, rng):
        driver.batch(some, mark)
    wanted = Counter((key, time // (10 * MINUTE) * 10 * MINUTE) for key, time in events)
    found = [(key, start, count) for key, _, start, _, count, *_ in driver.signals]
    assert sorted(found) == sorted((*window, count) for window, count in wanted.items())
    assert not driver.state


@given(TIMES, SEEDS)
def test_sessions_end_where_nothing_comes_for_a_gap(events: list[Event], rng: random.Random) -> None:
    end, gap = BEGAN + 4 * HOUR, 10 * MINUTE
    driver = Driver(SessionWindows("10m"))
    for some, mark in cut(events, end, rng):
        driver.batch(some, mark)
    wanted = []
    for key in {key for key, _ in events}:
        times = sorted(time for one, time in events if one == key)
        for at, time in enumerate(times):
            if at and time - times[at - 1] < gap:
                wanted[-1] = (key, wanted[-1][1], time, wanted[-1][3] + 1)
            else:
                wanted.append((key, time, time, 1))
    assert sorted((key, start, last, count) for key, _, start, last, count, *_ in driver.signals) == sorted(wanted)
    assert not driver.state


# A minute of a key, by its place in three days: some keys are steady, one has nights, one is new, one comes seldom.
RATES = {"steady": lambda _: 40, "day": lambda minute: 60 if 480 <= minute % 1440 < 1200 else 2,
         "new": lambda minute: 30 * (minute >= 2100), "seldom": lambda minute: int(minute % 400 == 0)}  # fmt: skip
CHANGES = {("steady", 3000): 120, ("steady", 3001): 130, ("steady", 3300): 3, ("day", 3500): 0, ("day", 3501): 1}


def test_sessions_of_many_keys_beside_one_old_event() -> None:
    """Keys times microseconds are more than 64 bits hold."""
    keys = [f"{key:05}" for key in range(8000)]
    driver = Driver(SessionWindows("10m"))
    driver.batch([(keys[0], 0), *((key, BEGAN + at) for key in keys for at in (0, MINUTE, HOUR))], BEGAN + DAY)
    assert [count for *_, count, _, _, _, _, _, _ in driver.signals] == [1, *[2, 1] * len(keys)]


def traffic(minutes: int, step: int = 5) -> list[Event]:
    """Every `step`th minute of each key; its events at the minute's beginning."""
    return [
        (key, BEGAN + minute * MINUTE + n)
        for key, rate in RATES.items()
        for minute in range(0, minutes, step)
        for n in range(step * CHANGES.get((key, minute), rate(minute)))
    ]


def test_spikes_and_dips_are_reported_once_and_of_the_right_minutes() -> None:
    driver = Driver(SpikesAndDips("5m", season="1d", ttl="2d"))
    for mark, some in by_mark(traffic(4000), 5 * MINUTE):
        driver.batch(some, mark)
    found = {(key, kind, (start - BEGAN) // MINUTE) for key, kind, start, *_ in driver.signals}
    assert found == {("steady", "spike", 3000), ("steady", "dip", 3300), ("day", "dip", 3500), ("new", "spike", 2100)}


def by_mark(events: Sequence[Event], width: int) -> list[tuple[int, list[Event]]]:
    found: defaultdict[int, list[Event]] = defaultdict(list)
    for key, time in events:
        found[time // width].append((key, time))
    return [((at + 1) * width, found[at]) for at in range(min(found), max(found) + 1)]


EVENTS = traffic(4000)


@settings(max_examples=10, deadline=None)
@given(SEEDS)
def test_they_say_the_same_wherever_batches_end(rng: random.Random) -> None:
    processor, end = SpikesAndDips("5m", season="1d", ttl="1d"), BEGAN + 4300 * MINUTE
    whole, parts = Driver(processor), Driver(processor)
    whole.batch(EVENTS, end)
    for some, mark in cut(EVENTS, end, rng):
        parts.batch(some, mark)
    assert reported(parts) == reported(whole)
    assert len(reported(whole)) >= 4


def test_an_absent_key_dips_though_no_event_comes_and_is_forgotten_in_the_end() -> None:
    driver = Driver(SpikesAndDips("1m", season="1d", ttl="3d"))
    events = [("gone", BEGAN + minute * MINUTE + n) for minute in range(2000) for n in range(10)]
    driver.batch(events, BEGAN + 2000 * MINUTE)
    assert driver.signals == []
    while driver.timers:
        driver.batch([], min(driver.timers.values()))
    assert [(kind, (start - BEGAN) // MINUTE) for _, kind, start, *_ in driver.signals] == [("dip", 2000)]
    assert (driver.signals[0][3] - BEGAN) // MINUTE <= 2005
    assert driver.state == {}


def test_a_dip_a_day_after_an_hour_that_was_not_over_when_the_last_event_came() -> None:
    """Nobody asks after the key meanwhile but its timer."""
    begin, processor = BEGAN + 10 * HOUR, SpikesAndDips("10s", season="1d", warm="1m", min_count=5, threshold=4)
    events = [("key", begin - 10 * MINUTE), *[("key", begin + n * SECOND) for n in range(400)]]
    whole, parts = Driver(processor), Driver(processor)
    whole.batch(events, begin + DAY + HOUR)
    parts.batch(events, begin + 410 * SECOND)
    parts.batch([], begin + DAY + HOUR)
    assert reported(parts) == reported(whole)
    assert "dip" in [kind for _, kind, *_ in whole.signals]


def test_a_spike_of_a_small_key_is_not_missed_a_day_later() -> None:
    driver = Driver(SpikesAndDips("1m", season="1d"))
    events = [("small", BEGAN + day * DAY + 3 * HOUR) for day in range(5)]
    events += [("small", BEGAN + 2 * DAY + 12 * HOUR + nth * SECOND) for nth in range(600)]
    driver.batch(events, BEGAN + 5 * DAY)
    assert [(kind, start) for _, kind, start, *_ in driver.signals] == [("spike", BEGAN + 2 * DAY + 12 * HOUR)]


def test_a_watermark_that_stands_still_tells_no_dip() -> None:
    driver = Driver(SpikesAndDips("1m", season="1d"))
    driver.batch(
        [("key", BEGAN + minute * MINUTE + n) for minute in range(2000) for n in range(10)], BEGAN + 2000 * MINUTE
    )
    for _ in range(10):
        driver.batch([], BEGAN + 2000 * MINUTE)
    assert driver.signals == []


@pytest.mark.parametrize(
    "arguments",
    [{"window": "7m"}, {"window": "2h"}, {"window": "500ms"}, {"window": "often"}, {"season": "3d"}, {"threshold": 1},
     {"min_count": 0}, {"ttl": "0s"}],
)  # fmt: skip
def test_arguments_that_make_no_sense_are_refused_by_name(arguments: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=r"process\.args"):
        SpikesAndDips(**arguments)  # type: ignore[arg-type]
