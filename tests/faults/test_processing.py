"""Per-key processing by real processes, killed and stopped at random; `make process-kills` does so more often."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.faults import processing
from tests.sampled import in_full

pytestmark = pytest.mark.faults


@in_full
@pytest.mark.parametrize(("process", "kills"), [(processing.COUNTS, 3), (processing.CORRECTED, 2)])
def test_killed_and_stopped_at_random(tmp_path: Path, process: dict[str, Any], kills: int) -> None:
    found = processing.run(tmp_path, process, kills, 1)
    assert found["kills"] == kills
    assert found.get("taken back", 1) > 0
    assert found["signals"] > 100
    assert (found["differ"], found["twice"], found["wrong"], found["tracebacks"]) == (0, 0, 0, 0)
