"""Sharing a budget between files: within limits, always getting on, fair."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import example, given
from hypothesis import strategies as st

from clickjoin.model.split import Budget
from clickjoin.sources.files.share import DOUBT, Cut, FileShare, Want, share, spend, waves

# A file is the lengths of its lines; the last may be unfinished.
files = st.lists(
    st.tuples(st.lists(st.integers(1, 400), max_size=60), st.integers(0, 50)), min_size=1, max_size=12
)  # fmt: skip
# Files whose records are all within `DOUBT` of any estimate made from them.
even_files = st.lists(
    st.tuples(st.lists(st.integers(100, 100 * DOUBT), max_size=60), st.just(0)), min_size=1, max_size=12
)  # fmt: skip
budgets = st.builds(Budget, st.integers(1, 200), st.integers(1, 5000))


def wants_of(lengths: list[tuple[list[int], int]]) -> list[Want]:
    """What the files want, by their true mean; every third grows, the others are of two waves."""
    return [
        Want(sum(lines) + rest, (sum(lines) or rest or 1) / max(len(lines), 1), wave=at % 3)
        for at, (lines, rest) in enumerate(lengths)
    ]


def cutter(lengths: list[tuple[list[int], int]]) -> Cut:
    """Cuts as a file would: whole lines within the room, at most `limit`."""

    def cut(at: int, room: int, limit: int | None, must: bool) -> FileShare:
        lines = lengths[at][0]
        taken = 0
        for count, line in enumerate(lines):
            fits = taken + line <= room and (limit is None or count < limit)
            if not fits and not (must and count == 0):
                return FileShare(taken, count, True)
            taken += line
        return FileShare(taken, len(lines), False)

    return cut


@given(files, budgets)
def test_never_over_the_bytes_but_for_one_record(lengths: list[tuple[list[int], int]], budget: Budget) -> None:
    taken = spend(wants_of(lengths), budget, cutter(lengths))
    first = next((lines[0] for lines, _ in lengths if lines), 0)
    assert sum(piece.length for piece in taken) <= max(budget.max_bytes, first)


@given(even_files, budgets)
@example([([1], 0), ([1, 15], 0)], Budget(1, 4))
@example([([1, 1], 0), ([100], 0), ([1, 100], 0)], Budget(2, 101))
def test_never_over_the_events_where_the_estimate_is_fair(lengths: list[tuple[list[int], int]], budget: Budget) -> None:
    taken = spend(wants_of(lengths), budget, cutter(lengths))
    assert sum(piece.records for piece in taken) <= budget.max_events


@given(files, budgets)
def test_every_batch_gets_on_until_all_is_read(lengths: list[tuple[list[int], int]], budget: Budget) -> None:
    left = [(list(lines), rest) for lines, rest in lengths]
    for _ in range(sum(len(lines) for lines, _ in lengths)):
        if not any(lines for lines, _ in left):
            break
        taken = spend(wants_of(left), budget, cutter(left))
        assert any(piece.records for piece in taken)
        left = [(lines[piece.records :], rest) for (lines, rest), piece in zip(left, taken, strict=True)]
    assert not any(lines for lines, _ in left)


@given(files, budgets)
def test_each_file_gets_its_fair_share_by_bytes_and_events(
    lengths: list[tuple[list[int], int]], budget: Budget
) -> None:
    wants = wants_of(lengths)
    rooms = share(wants, budget)
    assert sum(rooms) <= budget.max_bytes
    assert sum(room / max(want.mean, 1) for room, want in zip(rooms, wants, strict=True)) <= budget.max_events + 1e-6
    for room, want in zip(rooms, wants, strict=True):
        byte_cost = max(1 / budget.max_bytes, 1 / (max(want.mean, 1) * budget.max_events))
        # Rounding up the cost of a byte takes less than max_events / max_bytes of the share, and cutting one byte.
        cost = byte_cost + 1 / (budget.max_bytes * budget.max_events)
        assert want.wave or room >= min(want.unread, 1 / len(wants) / cost - 2)


def test_small_files_are_taken_whole_and_the_others_share_the_rest_alike() -> None:
    """One that ran ahead of the others would have its clicks read long before their queries."""
    wants = [Want(10**9, 100), Want(10**9, 100), Want(500, 100), Want(700, 100)]
    assert share(wants, Budget(10**9, 10_000)) == [4400, 4400, 500, 700]
    backlog = [replace(want, wave=1) for want in (Want(10**9, 100), Want(3000, 100), Want(10**9, 100))]
    assert share(backlog, Budget(10**9, 10_000)) == [3500, 3000, 3500]


def test_a_backlog_goes_wave_by_wave_beside_files_that_grow() -> None:
    first, second = Want(6000, 100, wave=1), Want(6000, 100, wave=2)
    budget = Budget(10**9, 10_000)
    assert share([Want(10**9, 100), Want(700, 100), first, second], budget) == [3333, 700, 5966, 0]
    assert share([Want(10**9, 100), first, first, second], budget) == [5000, 2500, 2500, 0]
    assert share([Want(1000, 100), first, second, second], budget) == [1000, 6000, 1500, 1500]
    assert share([Want(10**9, 100), *([first] * 2000)], budget)[0] == 5000
    assert share([first, replace(first, unread=100), second], budget) == [6000, 100, 3900]


def test_files_rotated_away_together_are_one_wave() -> None:
    assert waves([7500, 0, 7210, 3700, 59, 3601, 61]) == [1, 0, 1, 2, 0, 2, 3]
    assert waves([]) == []


def test_a_packed_file_is_taken_whole_or_not_and_never_waits_for_ever() -> None:
    budget = Budget(10**9, 1000)
    assert share([Want(300, 10, True), Want(10**6, 10)], budget) == [300, 700]
    assert share([Want(10**6, 10), Want(5000, 10, True), Want(5000, 10, True)], budget) == [1000, 5000, 0]
    assert share([Want(900, 10, True), Want(50, 10)], budget) == [900, 50]


def test_unused_room_goes_on_to_the_next() -> None:
    lengths = [([400, 400], 0), ([300, 300], 0)]
    wants = [Want(800, 400), Want(600, 300)]
    assert [piece.length for piece in spend(wants, Budget(10**6, 1000), cutter(lengths))] == [400, 600]
