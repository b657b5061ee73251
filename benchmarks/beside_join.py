"""The command line of benchmarks that measure a job beside the join of the same clicks."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.latency_machine import machine, save
from bootstrap import ROOT


def command(
    arguments: list[str],
    name: str,
    what: str,
    default: tuple[int, int],
    measured: Callable[[int, int, int], dict[str, Any]],
    table: Callable[[dict[str, Any]], str],
) -> int:
    """Measure, print as Markdown, and write figures as JSON. `default`: clicks and turns."""
    clicks, turns = default
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=what)
    parser.add_argument("--clicks", type=int, default=clicks, help="default %(default)s")
    parser.add_argument("--turns", type=int, default=turns, help="default %(default)s")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=ROOT / f"benchmarks/results/{name}.json")
    chosen = parser.parse_args(arguments)
    found = measured(chosen.clicks, chosen.turns, chosen.seed)
    print(f"\n{table(found)}")
    save(chosen.out, found | {"machine": machine()})
    return 0
