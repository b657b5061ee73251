"""Dates that are judged at the same time in one process do not get each other's figures."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from clickjoin.quality import expect
from clickjoin.quality.checks import ZERO, Check


def verdicts(number: int) -> list[bool]:
    """Of one date's figures: good ones in every other date."""
    checks = [Check("joined", f"check_{name}", "", 0.0) for name in "abc"]
    wanted = [expect.of_check(check, ZERO, "fail") for check in checks]
    figures = {check.name: float(number % 2) for check in checks}
    return [bool(one.success) for one in expect.on_figures("joined", figures, wanted)]


def test_figures_stay_apart() -> None:
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(verdicts, range(24)))
    assert found == [[number % 2 == 0] * 3 for number in range(24)]
