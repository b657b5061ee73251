"""The join's benchmarks one after the other, and one page of what they print, with pictures.

    make bench          # under 50 minutes on 2 cores
    make bench-quick    # under 5: small inputs, one turn; shows that it runs, not how fast it is

Figures as JSON, pictures as SVG, and the page, are in `benchmarks/results`. A benchmark that lost or doubled an event
prints no figures; the others go on, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks import goals
from benchmarks.latency_machine import machine
from benchmarks.plots import draw
from bootstrap import ROOT

RESULTS = ROOT / "benchmarks/results"
# What follows a dash tells two runs of one benchmark apart.
QUICK = {
    "throughput": "--clicks 100000 --queries 40000 --turns 1 --warm 10000",
    "flatness": "--counts 100000 1000000 --warm 1 --turns 1",
    "catchup": "--outage 60 --rate 500 --warm 10",
    "cluster": "--clicks 20000 100000 --turns 1 --warm 5000",
}
WHOLE = {
    "throughput": "--clicks 1000000 --queries 400000 --turns 2 --held 10000000",
    "throughput-5M": "--clicks 5000000 --queries 2000000 --turns 1 --only 'plain join and append' --only clickjoin "
    "--only 'DuckDB, the limit'",
    "flink": "--clicks 1000000 --queries 400000 --turns 2",
    "throughput-s3": "--clicks 1000000 --queries 400000 --turns 3 --lake s3",
    "throughput-kafka": "--clicks 1000000 --queries 400000 --turns 3 --source kafka",
    "nexmark": "--events 1000000 --turns 3",
    "flatness": "--counts 1000000 100000000 --turns 5",
    "far_out": "--files 0 --turns 9",
    "registry": "--small 1000000 --large 10000000",
    "retries": "--clicks 67000 --turns 3",
    "rebuild": "--clicks 1000000 --turns 1",
    "latency": "--rate 1000 --seconds 300",
    "latency-500ms": "--rate 1000 --seconds 300 --interval 500ms",
    "catchup": "--outage 7200 --rate 1000",
    "many": "--pipelines 30 --rate 100 --seconds 120",
    "cluster": "--clicks 250000 1000000 --turns 2",
    "attribution": "--orders 1000000 --touches 4000000",
}


def run(name: str, options: str, folder: Path) -> tuple[int, str]:
    """Run one in a process of its own, showing what it prints; returns its exit code and that text."""
    module = f"benchmarks.{name.partition('-')[0]}"
    command = [sys.executable, "-m", module, *shlex.split(options), "--out", str(folder / f"{name}.json")]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    lines = []
    for line in process.stdout:
        print(line, end="", flush=True)
        lines.append(line)
    return process.wait(), "".join(lines)


def head(about: Mapping[str, Any]) -> str:
    """The page's beginning: when, and on what."""
    lines = [f"| {name.replace('_', ' ')} | {value} |" for name, value in about.items()]
    when = time.strftime("%Y-%m-%d %H:%M", time.gmtime())
    return "\n".join([f"# Benchmarks of {when} UTC\n\n| machine | |\n| --- | --- |", *lines, ""])


def section(name: str, code: int, seconds: float, text: str, picture: Path | None) -> str:
    """What one benchmark found: its tables as they are, anything else as plain text."""
    before, _, after = text.partition("\n\n")  # until its first empty line it says how far it is
    found = after if after and "| --- " not in before else text
    found = found if "| --- " in found else f"```\n{found}```"
    seen = f"![{name}]({picture.name})\n\n" if picture else ""
    return f"## {name}\nExit code {code}, {seconds:.0f} s.\n\n{seen}{found.strip()}\n"


def main(arguments: list[str]) -> int:
    """Run them all; 1 if one of them failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="All benchmarks")
    parser.add_argument("--quick", action="store_true", help="small inputs, one turn")
    quick = parser.parse_args(arguments).quick
    folder = RESULTS / ("quick" if quick else "whole")
    folder.mkdir(parents=True, exist_ok=True)
    about = machine()
    (folder / "machine.json").write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    page: list[str] = []
    failed: list[str] = []
    for name, options in (QUICK if quick else WHOLE).items():
        print(f"\n== {name} {options}", flush=True)
        for old in folder.glob(f"{name}.*"):  # or a failed run would show another one's figures
            old.unlink()
        begun = time.monotonic()
        code, text = run(name, options, folder)
        failed += [name] if code else []
        page.append(section(f"{name} {options}", code, time.monotonic() - begun, text, draw(folder / f"{name}.json")))
        asked = [] if quick else [f"## Goals\n{goals.table(folder)}\n"]
        (folder / "README.md").write_text("\n".join([head(about), *asked, *page]), encoding="utf-8")
    if not quick:
        print(f"\n{goals.table(folder)}")
    print(f"\n{folder / 'README.md'}" + (f"; failed: {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
