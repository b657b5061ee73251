"""Catching up after an outage: how fast the backlog goes, and what fresh events see meanwhile.

    PYTHONPATH=infra:spark_apps:. .venv/bin/python -m benchmarks.catchup --outage 7200 --rate 1000

Live traffic is joined by `clickjoin run` until its usual latency is known; then that process is killed. The logs of the
outage are written (files of their own, as rotated logs are), `clickjoin run` starts again, and live traffic goes on at
the same rate. It ends when all of the outage is readable and fresh clicks are as fast as before. Every id is then
checked against what the generator wrote: no figure is printed of a run that lost or doubled one.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.folders import remove
from benchmarks.latency_machine import machine, save
from benchmarks.live import heed_sigterm
from benchmarks.memory import line
from benchmarks.outage import Load, Run
from bootstrap import ROOT, Problem


def report(result: dict[str, Any]) -> str:
    """As Markdown."""
    rows = {name: result[name] for name in ("usual", "meanwhile", "afterwards")}
    keys = ("p50", "p90", "p99", "max")
    table = [
        f"| {name} | {part['count']:,} | {' | '.join(f'{part[key]:.2f}' for key in keys)} |"
        for name, part in rows.items()
    ]
    drained, again, load = result["drained_seconds"], result["live_again_seconds"], result["load"]
    summary = (
        f"{result['outage_lines']:,} lines of {load['outage']:,.0f} s, while {load['rate']:,.0f} events/s went on: "
        f"drained in {drained:,.0f} s, {result['lines_a_second']:,} lines/s; "
        f"live again after {again:,.0f} s"
    )
    head = f"\n| fresh clicks, written to readable, seconds | count | p50 | p90 | p99 | max |\n|{' --- |' * 6}"
    return "\n".join((summary, head, *table, f"\n{line(result['memory_mb'])}"))


def options(arguments: list[str]) -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.catchup", description="Catching up after an outage")
    parser.add_argument("--outage", type=float, default=7200, help="seconds of it (default %(default)s)")
    parser.add_argument("--rate", type=float, default=1000, help="events a second (default %(default)s)")
    parser.add_argument("--clicks", type=float, default=0.1, help="part of the events that are clicks (%(default)s)")
    parser.add_argument("--warm", type=float, default=60, help="seconds of traffic before it (default %(default)s)")
    parser.add_argument("--patience", type=float, default=1800, help="seconds for each part (default %(default)s)")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks/results/catchup.json")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    """Run the benchmark; 1 if anything was lost, doubled or too late."""
    chosen, about = options(arguments), machine()
    load = Load(chosen.outage, chosen.rate, chosen.clicks, chosen.warm, chosen.patience)
    heed_sigterm()
    run = Run(ROOT / ".run/benchmarks" / time.strftime("catchup-%Y%m%d-%H%M%S"), load)
    try:
        run.go()
        result = run.result()
    except Problem as problem:
        print(f"clickjoin: {problem}", file=sys.stderr)
        return 1
    print(f"\n{report(result)}\nevery click joined exactly once")
    save(chosen.out, result | {"machine": about})
    remove(run.folder)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
