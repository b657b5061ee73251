"""Runs each step by each engine in turns in one process, checks what it makes, and prints a table.

Each has one thread. Figures are processor seconds of the whole process; memory is that of a process of its own for
each step and engine, above what it held before the step.
"""

from __future__ import annotations

import argparse
import gc
import os
import pickle
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa

os.environ["POLARS_MAX_THREADS"] = "1"  # it looks when it is loaded

from benchmarks.engines import corners
from benchmarks.engines.given import Given, given
from benchmarks.engines.steps import KERNEL, MODULES, STEPS, can, engines, gone, is_same, parsers, size_of
from benchmarks.latency_machine import machine, save
from bootstrap import ROOT

SMALL = 2_000  # clicks: what loads all that a step needs


def options(arguments: Sequence[str]) -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engines", description="The kernel's steps by engines")
    parser.add_argument("--rows", type=int, default=100_000, help="clicks (default %(default)s)")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks/results/engines.json")
    parser.add_argument("--memory-of", nargs=3, metavar=("FOLDER", "STEP", "ENGINE"), help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def timed(engine: Any, step: str, work: Given) -> float:
    """Processor seconds of a step."""
    gc.collect()
    begun = time.process_time()
    made = STEPS[step](engine, work)
    spent = time.process_time() - begun
    gone(made)
    return spent


def checked(there: dict[str, Any], work: Given) -> dict[str, dict[str, int]]:
    """Who does which step, and bytes that it writes. Errors: SystemExit where one makes other rows than the kernel."""
    found: dict[str, dict[str, int]] = {}
    for step, do in STEPS.items():
        wanted = do(there[KERNEL], work)
        for name, engine in there.items():
            if can(engine, step):
                made = do(engine, work)
                if not is_same(wanted, made):
                    raise SystemExit(f"{step}: {name} does not make what the kernel makes: no figures")
                found.setdefault(step, {})[name] = size_of(made)
                gone(made)
        gone(wanted)
    return found


def in_turns(there: dict[str, Any], who: dict[str, dict[str, int]], work: Given, turns: int) -> dict[str, Any]:
    """Processor seconds of every turn, by step and engine."""
    runs: dict[str, dict[str, list[float]]] = {step: {name: [] for name in names} for step, names in who.items()}
    for turn in range(turns):
        for step, seconds in runs.items():
            for name, held in seconds.items():
                held.append(timed(there[name], step, work))
        print(f"turn {turn + 1} of {turns}", flush=True)
    return runs


def grown(step: str, name: str, folder: Path) -> int:
    """Bytes by which a process of its own grows at most while it does a step; see `memory_of`."""
    command = [sys.executable, "-m", "benchmarks.engines", "--memory-of", str(folder), step, name]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return int(done.stdout.split()[-1])


def memory_of(folder: Path, step: str, name: str) -> int:
    """Bytes of memory that a step takes at most above what was held once a small one has loaded all that it needs."""
    engine = import_module(f"benchmarks.engines.{MODULES[name]}")
    small, work = (pickle.loads((folder / size).read_bytes()) for size in ("small", "whole"))
    gone(STEPS[step](engine, small))
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the highest is now what is held
    before = _status("VmRSS")
    gone(STEPS[step](engine, work))
    return _status("VmHWM") - before


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:")) << 10


def table(found: dict[str, Any]) -> str:
    """The figures as Markdown: the kernel's own, and the others' as multiples of them in the same run."""
    others = [name for name in MODULES if name != KERNEL and name in found["versions"]]
    head = f"| step | {KERNEL}, ms | {' | '.join(others)} | peak memory, MB: {', '.join([KERNEL, *others])} |"
    rows = [head, f"| --- | --- |{' --- |' * len(others)} --- |"]
    for step, runs in found["seconds"].items():
        ours = statistics.median(runs[KERNEL])
        ratios = [f"{statistics.median(runs[name]) / ours:.2f}" if name in runs else "" for name in others]
        peaks = [f"{found['memory'][step][name] / 1e6:.0f}" if name in runs else "–" for name in (KERNEL, *others)]
        rows.append(f"| {step} | {ours * 1000:.0f} | {' | '.join(ratios)} | {', '.join(peaks)} |")
    sizes = {name: size for sizes in found["bytes"].values() for name, size in sizes.items() if size}
    said = ", ".join(f"{name} {size / 1e6:.2f} MB" for name, size in sizes.items())
    return "\n".join([*rows, "", f"Written: {said}."])


def main(arguments: Sequence[str]) -> int:
    """Make the input, check, measure in turns, print; figures as JSON."""
    chosen = options(arguments)
    pa.set_cpu_count(1)
    if chosen.memory_of:
        print(memory_of(Path(chosen.memory_of[0]), *chosen.memory_of[1:]))
        return 0
    there, about = engines(), machine()
    with tempfile.TemporaryDirectory(prefix="clickjoin-engines-") as name:
        folder = Path(name)
        work, small = given(folder / "of-whole", chosen.rows), given(folder / "of-small", SMALL)
        who = checked(there, work)
        runs = in_turns(there, who, work, chosen.turns)
        (folder / "whole").write_bytes(pickle.dumps(work))
        (folder / "small").write_bytes(pickle.dumps(small))
        memory = {step: {name: grown(step, name, folder) for name in names} for step, names in who.items()}
    said = corners.table(parsers(there))
    versions = {name: version(name.lower()) for name in there if name != KERNEL}
    found = {"rows": chosen.rows, "versions": versions, "seconds": runs, "memory": memory, "bytes": who}
    print(f"\n{chosen.rows:,} clicks, medians of {chosen.turns} turns; {versions}")
    print("".join(f"{name} is not installed and left out\n" for name in MODULES if name not in there))
    print(f"{table(found)}\n\n{said}")
    save(chosen.out, found | {"machine": about})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
