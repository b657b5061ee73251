"""python -m tests.simulator --seeds 0:1000 [--jobs 2] [--break NAME] | --seed N [--verbose]: see docs/simulator.md."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent / "standin"), str(Path(__file__).parents[2] / "spark_apps")]

if __name__ == "__main__":
    from tests.simulator.command import main

    sys.exit(main())
