"""Each guard of the promise, taken out, makes a case of this suite fail: otherwise the case would test nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conformance import test_kills, test_others, test_replicas
from tests.conformance.breaks import BREAKS
from tests.conformance.runs import Make, undisturbed
from tests.conformance.scenarios import GC, JOIN, MATCH, Scenario
from tests.conformance.test_kills import KNOWN

# The guard, and the case that is to fail without it.
CASES: dict[str, Callable[[Make], None]] = {
    "transaction of landing": lambda make: test_kills.test_killed_at_each_commit(make, JOIN, "foreign", "after"),
    "transaction of output": lambda make: test_kills.test_killed_at_each_commit(make, JOIN, "joined", "after"),
    "claimed once": lambda make: test_replicas.test_a_zombie_goes_on(make, "registry", "before", "west"),
    "boundary": lambda make: test_kills.test_killed_at_each_commit(make, GC, "metrics", "after"),
    "claims fixed": lambda make: test_replicas.test_a_copy_claims_what_this_one_has_not_found(make, "pending"),
    "pending first": lambda make: test_kills.test_the_boundary_moves_while_a_batch_lies_still(make, "expired", "after"),
    "screening": lambda make: test_kills.test_killed_at_each_commit(make, JOIN, "joined", "after"),
    "hold of a date": lambda make: test_replicas.test_two_runs_on_one_date(make, "joined", test_replicas.refused),
    "mark of a restore": test_others.test_a_process_from_before_a_restore,
    "RESTORE by others": lambda make: test_others.test_a_table_that_spark_has_put_back(make, "registry"),
    "content of a version": lambda make: test_others.test_a_store_that_comes_back_older_under_a_process(make, 3),
    "watermark": lambda make: test_kills.test_killed_at_each_commit(make, MATCH, "joined", "after"),
}

# Of those whose case ends in an error of another kind without the guard: which, as the older data lacks a file.
ENDS_IN: dict[str, tuple[type[Exception], ...]] = {"content of a version": (FileNotFoundError,)}

# Of those that compare with a scenario that nobody disturbed: which.
KILLED: dict[str, Scenario] = {
    "transaction of landing": JOIN,
    "transaction of output": JOIN,
    "boundary": GC,
    "screening": JOIN,
    "watermark": MATCH,
}


def test_each_guard_has_its_case() -> None:
    assert CASES.keys() == BREAKS.keys()


@pytest.mark.parametrize("guard", CASES)
def test_without_its_guard_a_case_fails(make: Make, monkeypatch: pytest.MonkeyPatch, guard: str) -> None:
    if guard in KILLED:
        undisturbed(make, KILLED[guard], KNOWN)  # with the guard in
    BREAKS[guard](monkeypatch)
    with pytest.raises((AssertionError, pytest.fail.Exception, *ENDS_IN.get(guard, ()))):
        CASES[guard](make)
