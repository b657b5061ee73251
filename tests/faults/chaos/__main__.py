"""`python -m tests.faults.chaos --kills 100`, or `--kind pauses --minutes 15`: a chaos run in a folder of its own."""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from stack import Stack
from tests.faults.chaos.pauses import DAYS, Pauses, faketime, text
from tests.faults.chaos.run import Chaos, Outcome
from tests.faults.chaos.store import lake_for
from tests.faults.chaos.verdict import check

ENGINES = {"arrow": ("arrow", "arrow"), "spark": ("spark", "spark"), "both": ("spark", "arrow")}


def main(arguments: list[str]) -> int:
    """Run, print what it showed, and return 1 if anything was doubled, lost or went wrong."""
    parser = argparse.ArgumentParser(description="Kills or stops everything at random while two replicas run")
    parser.add_argument("--kind", choices=("kills", "pauses"), default="kills")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=15, help="of pauses")
    parser.add_argument("--days", type=float, default=DAYS, help="by how many days clocks jump; 0: not at all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--retention", default="4m", help="of the registry: how soon GC drops claims")
    parser.add_argument("--no-airflow", action="store_true", help="run both replicas from the command line")
    parser.add_argument("--lake", choices=("local", "s3"), default="local", help="s3: a server that is killed too")
    parser.add_argument(
        "--logs", choices=("local", "s3", "kafka"), default="local", help="s3: the lake's server; kafka: a broker"
    )
    parser.add_argument("--drivers", type=int, choices=(1, 2), default=1, help="2: each replica has a Spark of its own")
    parser.add_argument("--engine", choices=ENGINES, default="arrow", help="both: a replica an engine")
    chosen = parser.parse_args(arguments)
    if chosen.logs == "s3" and chosen.lake != "s3":
        parser.error("--logs s3 goes with --lake s3")
    if chosen.kind == "pauses" and (chosen.lake, chosen.logs, chosen.drivers) != ("local", "local", 1):
        parser.error("--lake, --logs and --drivers go with --kind kills")
    return _pauses(chosen) if chosen.kind == "pauses" else _kills(chosen)


def _kills(chosen: argparse.Namespace) -> int:
    airflow, folder, pipelines = not chosen.no_airflow, *_folders()
    with (
        lake_for(chosen.lake, pipelines, chosen.seed, chosen.logs) as lake,
        Stack(
            folder / "stack",
            airflow=airflow,
            pipelines=pipelines,
            env={"CLICKJOIN_REPLICA": "east", **lake.env},
            timeout=300,
        ) as stack,
        _second(chosen.drivers, folder, dict(lake.env)) as second,
    ):  # fmt: skip
        chaos = Chaos(pipelines, stack, chosen.seed, chosen.retention, _say, lake, second, ENGINES[chosen.engine])
        outcome = chaos.run(chosen.kills, airflow)
        moods = f"\nthe proxy before the store: {dict(lake.moods)}" if lake.moods else ""
    return _judged(outcome, outcome.text() + moods, folder)


def _second(drivers: int, folder: Path, env: dict[str, str]) -> AbstractContextManager[Stack | None]:
    return Stack(folder / "second", airflow=False, env=env, timeout=300) if drivers > 1 else nullcontext()


def _pauses(chosen: argparse.Namespace) -> int:
    if chosen.days:
        try:
            faketime()
        except FileNotFoundError as error:
            print(f"chaos: {error}", file=sys.stderr)
            return 2
    folder, run = _folders()
    with Stack(folder / "stack", airflow=False, timeout=300) as stack:
        chaos = Pauses(run, stack, chosen.seed, chosen.retention, _say)
        chaos.days = chosen.days
        outcome = chaos.run_for(chosen.minutes * 60)
    return _judged(outcome, text(chaos, outcome), folder)


def _folders() -> tuple[Path, Path]:
    folder = Path(tempfile.mkdtemp(prefix="clickjoin-chaos-"))
    (folder / "run").mkdir()
    return folder, folder / "run"


def _say(line: str) -> None:
    print(line, flush=True)


def _judged(outcome: Outcome, said: str, folder: Path) -> int:
    print(said)
    faults = check(outcome)
    print("\n".join(faults) or f"nothing doubled, nothing lost: {folder}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
