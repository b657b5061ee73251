"""The simulator's command line: runs seeds, in several processes if asked, and says what the oracle found."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from functools import cache
from typing import Any

from tests.simulator import clock
from tests.simulator.forked import Forked, next_piece, serve

_wall = time.perf_counter


@cache
def _prepared() -> None:
    """Simulated time for the product, before it is imported; and what is always replaced."""
    time.sleep = clock.sleep
    time.time = time.monotonic = time.perf_counter = clock.now  # type: ignore[assignment]
    from tests.simulator import always

    always.replace()
    from tests.simulator import scenario  # noqa: F401  (what every copy of this process needs)


def _patch(broken: list[str]) -> None:
    """Simulated time, and protections taken away."""
    _prepared()
    from tests.simulator import breaks

    for name in broken:
        breaks.apply(name)


def main() -> int:
    """Run seeds; 1 where one fails."""
    given = _parser().parse_args()
    if given.each:
        _prepared()
        serve(sys.stdin, sys.stdout, lambda arguments: _answer(_parser().parse_args(arguments))[0])
        return 0
    text, code = _answer(given)
    print(text)
    return code


def _answer(given: argparse.Namespace) -> tuple[str, int]:
    """What is printed, and the exit code."""
    if given.matrix:
        return _matrix()
    if given.seed is not None:
        return _one(given.seed, given)
    start = _wall()
    seeds = _seeds(given.seeds)
    sums = _side_by_side(seeds, given) if given.jobs > 1 else _many(seeds, given)
    sums |= {"seconds": round(_wall() - start, 1)}
    return json.dumps(sums) if given.json else _text(sums), 1 if sums["failed"] else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.simulator", description=__doc__)
    parser.add_argument(
        "--seeds", default="0:1000", help="first:last[:step] (the last excluded) or numbers, comma-separated"
    )
    parser.add_argument("--seed", type=int, help="one seed, with its whole schedule")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--break", dest="broken", action="append", default=[], help="take a protection away")
    parser.add_argument("--kind", default="", help="all schedules of one kind: see bents.py")
    parser.add_argument("--stop", action="store_true", help="stop at the first seed that fails")
    parser.add_argument("--json", action="store_true", help="the sums as JSON")
    parser.add_argument("--matrix", action="store_true", help="compare the model with the table of interleavings")
    parser.add_argument("--each", action="store_true", help="take arguments from lines of stdin, a JSON list each")
    return parser


def _seeds(text: str) -> list[int]:
    found: list[int] = []
    for part in text.split(","):
        numbers = [int(number) for number in part.split(":")]
        found += range(*numbers) if len(numbers) > 1 else numbers
    return list(dict.fromkeys(found))


def _matrix() -> tuple[str, int]:
    from tests.simulator import always
    from tests.simulator.held import CASES, differences

    always.replace()
    found = differences()
    return "\n".join([*found, f"{len(CASES)} cases, {len(found)} differ"]), 1 if found else 0


def _one(seed: int, given: argparse.Namespace) -> tuple[str, int]:
    _patch(given.broken)
    from tests.simulator.scenario import run

    done = run(seed, kind=given.kind, verbose=True)
    return "\n".join([*done.trace, f"seed {seed}: {done.fault or 'nothing wrong'}"]), 1 if done.fault else 0


def _many(seeds: list[int], given: argparse.Namespace) -> dict[str, Any]:
    _patch(given.broken)
    from tests.simulator.scenario import run

    sums: Counter[str] = Counter()
    failed: dict[int, str] = {}
    for seed in seeds:
        next_piece()
        done = run(seed, kind=given.kind)
        sums.update(seeds=1, **done.counts)
        if done.fault:
            failed[seed] = done.fault
            if given.stop:
                break
    return {**sums, "failed": failed}


def _side_by_side(seeds: list[int], given: argparse.Namespace) -> dict[str, Any]:
    """The same in several processes, each with every n-th seed."""
    _prepared()
    shares = [seeds[at :: given.jobs] for at in range(given.jobs)]
    parts = [Forked(lambda mine=mine: json.dumps(_many(mine, given))) for mine in shares]  # type: ignore[misc]
    sums: Counter[str] = Counter()
    failed: dict[int, str] = {}
    for part in parts:
        found = json.loads(part.answer())
        failed |= {int(seed): fault for seed, fault in found.pop("failed").items()}
        sums.update(found)
    return {**sums, "failed": dict(sorted(failed.items()))}


def _text(sums: dict[str, Any]) -> str:
    failed = sums["failed"]
    lines = [f"seed {seed}: {fault}" for seed, fault in list(failed.items())[:20]]
    return "\n".join([*lines, ", ".join(f"{k} {len(v) if k == 'failed' else v}" for k, v in sums.items())])
