"""State of keys in memory against a dict: places are given out, taken back and grown."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from clickjoin.processing.held import Held
from clickjoin.processors.port import NEVER

SCHEMA = pa.schema([("value", pa.int64()), ("note", pa.binary())])
_KEYS = st.sampled_from([f"k{number}" for number in range(12)])
_ROW = st.tuples(st.one_of(st.none(), st.integers(0, 9)), st.one_of(st.just(NEVER), st.integers(0, 9)), st.booleans())


def put(held: Held, rows: dict[str, tuple[int | None, int, bool]]) -> None:
    keys = sorted(rows)
    values, timers, gone = ([rows[key][nth] for key in keys] for nth in range(3))
    state = pa.table({"value": values, "note": [None] * len(keys)}, schema=SCHEMA)
    held.put(keys, held.places(keys), state, np.array(timers, np.int64), np.array(gone, bool))


@given(st.lists(st.dictionaries(_KEYS, _ROW, min_size=1), max_size=8))
def test_as_a_dict(batches: list[dict[str, tuple[int | None, int, bool]]]) -> None:
    held, known = Held(SCHEMA), dict[str, tuple[int | None, int]]()
    for rows in batches:
        put(held, rows)
        for key, (value, timer, gone) in rows.items():
            known.pop(key, None)
            if not gone:
                known[key] = (value, timer)
        asked = [*sorted(known), "never"]
        state, there = held.get(held.places(asked))
        assert there.tolist() == [True] * len(known) + [False]
        assert state["value"].to_pylist() == [known[key][0] for key in sorted(known)] + [None]
        assert sorted(held.due(4)) == sorted(key for key, (_, timer) in known.items() if timer <= 4)
        assert sorted(held.due(NEVER)) == sorted(key for key, (_, timer) in known.items() if timer < NEVER)
        assert held.next_timer() == min((timer for _, timer in known.values()), default=NEVER)
        keys, whole, timers = held.all()
        assert (keys, len(held)) == (sorted(known), len(known))
        assert list(zip(whole["value"].to_pylist(), timers.tolist(), strict=True)) == [known[key] for key in keys]


def test_more_keys_than_there_was_room_for() -> None:
    held = Held(SCHEMA)
    for first in (0, 900, 5_000):
        put(held, {f"k{first + nth:05}": (first + nth, nth, False) for nth in range(2_000)})
    keys, whole, _ = held.all()
    assert whole["value"].to_pylist() == [*range(2_900), *range(5_000, 7_000)]
    assert keys == [f"k{value:05}" for value in whole["value"].to_pylist()]
