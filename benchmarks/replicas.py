"""What replicas cost one another: work done twice, conflicts and reruns, with 1, 2 and 4 replicas on the same logs.

    PYTHONPATH=infra:spark_apps:. .venv/bin/python -m benchmarks.replicas --seconds 60 --rate 500

Logs grow at a steady rate; each replica is a process of its own on one Spark Connect server, begun a second apart.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from clickjoin.engines.arrow import ArrowTables
from stack import Stack

ROOT = Path(__file__).resolve().parents[1]
CONFIG = """
pipeline: p
engine: arrow
lake: {folder}/lake
primary: {{source: {{kind: files, path: "{folder}/queries/*"}}, event_id: event_id, event_time: embedded}}
foreign: {{source: {{kind: files, path: "{folder}/clicks/*"}}, event_id: event_id, event_time: embedded,
          primary_id: query_id, primary_time: embedded}}
"""
SUMS = ("events_in", "joined", "repeats", "wasted", "conflict_reruns")


def clickjoin(*arguments: str) -> list[str]:
    """The command line as a command."""
    return [sys.executable, "-m", "clickjoin.cli", *arguments]


def one(remote: str, count: int, seconds: int, rate: int) -> dict[str, Any]:
    """Figures of so many replicas: sums of their batches, shares, batches of each."""
    folder = Path(tempfile.mkdtemp(prefix="clickjoin-replicas-"))
    config = folder / "p.yaml"
    config.write_text(CONFIG.format(folder=folder))
    for stream in ("queries", "clicks"):
        (folder / stream).mkdir()
    env_folder = ROOT / "spark_apps"
    subprocess.run(clickjoin("init", "--config", str(config)), check=True, capture_output=True, cwd=env_folder)
    processes = []
    for number in range(count):
        command = clickjoin("run", "--config", str(config), "--spark-connect", remote, "--replica", f"r{number}",
                            "--lease", str(seconds + 20))  # fmt: skip
        processes.append(
            subprocess.Popen(command, cwd=env_folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        )
        time.sleep(1)
    feed = clickjoin("generate", str(folder), "--rate", str(rate), "--clicks", str(rate * seconds // 2), "--queries",
                     str(rate * seconds // 2), "--delay", "0.5", "--files", "1")  # fmt: skip
    subprocess.run(feed, cwd=env_folder, capture_output=True, timeout=seconds * 3)
    codes = [process.wait(timeout=seconds + 120) for process in processes]
    rows = ArrowTables(str(folder / "lake/p")).read("metrics").to_pylist()
    sums = {name: sum(row[name] or 0 for row in rows) for name in SUMS}
    batches = {f"r{n}": sum(row["replica"] == f"r{n}" and row["joined"] > 0 for row in rows) for n in range(count)}
    return {
        "replicas": count,
        **sums,
        "wasted_share": sums["wasted"] / max(sums["joined"] + sums["wasted"], 1),
        "batches_that_joined": batches,
        "exit_codes": codes,
    }


def main(arguments: list[str]) -> int:
    """Run with 1, 2 and 4 replicas and print the figures; as JSON with --out."""
    parser = argparse.ArgumentParser(description="What replicas cost one another")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--rate", type=int, default=500, help="lines a second, both streams together")
    parser.add_argument("--replicas", type=int, nargs="*", default=[1, 2, 4])
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args(arguments)
    with Stack(Path(tempfile.mkdtemp(prefix="clickjoin-stack-")), airflow=False) as stack:
        found = []
        for count in chosen.replicas:
            found.append(one(str(stack.home.connect_url), count, chosen.seconds, chosen.rate))
            print(json.dumps(found[-1]), flush=True)
    if chosen.out:
        chosen.out.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
