"""Per-key processing by real processes, killed and stopped at random; `make process-kills` does so more often."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults import processing
from tests.sampled import in_full

pytestmark = pytest.mark.faults


@in_full
def test_killed_and_stopped_at_random(tmp_path: Path) -> None:
    found = processing.run(tmp_path, processing.COUNTS, 4, 1)
    assert found["kills"] == 4
    assert found["signals"] > 100
    assert (found["differ"], found["twice"], found["wrong"], found["tracebacks"]) == (0, 0, 0, 0)
