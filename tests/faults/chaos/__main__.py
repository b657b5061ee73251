"""`python -m tests.faults.chaos --kills 100`: a chaos run with Airflow, in a folder of its own."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from stack import Stack
from tests.faults.chaos.run import Chaos
from tests.faults.chaos.verdict import check


def main(arguments: list[str]) -> int:
    """Run, print what it showed, and return 1 if anything was doubled, lost or went wrong."""
    parser = argparse.ArgumentParser(description="Kills everything at random while two replicas run")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--retention", default="4m", help="of the registry: how soon GC drops claims")
    parser.add_argument("--no-airflow", action="store_true", help="run both replicas from the command line")
    chosen = parser.parse_args(arguments)
    airflow = not chosen.no_airflow
    folder = Path(tempfile.mkdtemp(prefix="clickjoin-chaos-"))
    pipelines = folder / "run"
    pipelines.mkdir()
    with Stack(
        folder / "stack", airflow=airflow, pipelines=pipelines, env={"CLICKJOIN_REPLICA": "east"}, timeout=300
    ) as stack:
        chaos = Chaos(pipelines, stack, chosen.seed, chosen.retention, lambda text: print(text, flush=True))
        outcome = chaos.run(chosen.kills, airflow)
    print(outcome.text())
    faults = check(outcome)
    print("\n".join(faults) or f"nothing doubled, nothing lost: {folder}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
