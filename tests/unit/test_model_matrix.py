"""The model of Delta says of every named interleaving what real Delta says (tests/spark/test_matrix.py)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_the_model_agrees_with_the_table() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.simulator", "--matrix"],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, f"{_cases()} cases, 0 differ"), done.stdout


def _cases() -> int:
    from tests.simulator.cases import CASES

    assert len({case.name for case in CASES}) == len(CASES)
    return len(CASES)
