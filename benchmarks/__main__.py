"""Every benchmark after the other, and one page of what they print.

    make bench
    make bench-quick    # under 5 minutes on 2 cores: small inputs, one turn; shows that it runs, not how fast it is

Figures as JSON, and the page, are in `benchmarks/results`. A benchmark that lost or doubled an event prints no figures;
the others go on, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.latency_machine import machine
from bootstrap import ROOT

RESULTS = ROOT / "benchmarks/results"
QUICK = {
    "throughput": "--clicks 100000 --queries 40000 --turns 1",
    "flatness": "--counts 200000 1000000 --warm 1 --turns 1",
}
WHOLE = {
    "throughput": "--clicks 1000000 --queries 400000 --turns 3",
    "flatness": "--counts 1000000 10000000 --turns 3",
    "registry": "--small 1000000 --large 10000000",
    "replicas": "--seconds 60 --rate 500",
    "latency": "--rate 1000 --seconds 180",
}


def run(name: str, options: str, folder: Path) -> tuple[int, str]:
    """Run one in a process of its own, showing what it prints; returns its exit code and that text."""
    command = [sys.executable, "-m", f"benchmarks.{name}", *options.split(), "--out", str(folder / f"{name}.json")]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    lines = []
    for line in process.stdout:
        print(line, end="", flush=True)
        lines.append(line)
    return process.wait(), "".join(lines)


def main(arguments: list[str]) -> int:
    """Run them all; 1 if one of them failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="All benchmarks")
    parser.add_argument("--quick", action="store_true", help="small inputs, one turn")
    quick = parser.parse_args(arguments).quick
    folder = RESULTS / ("quick" if quick else "whole")
    folder.mkdir(parents=True, exist_ok=True)
    about = json.dumps(machine(), indent=2)
    (folder / "machine.json").write_text(about + "\n", encoding="utf-8")
    page, failed = [f"# Benchmarks of {time.strftime('%Y-%m-%d %H:%M', time.gmtime())} UTC\n\n{about}\n"], []
    for name, options in (QUICK if quick else WHOLE).items():
        print(f"\n== {name} {options}", flush=True)
        begun = time.monotonic()
        code, text = run(name, options, folder)
        failed += [name] if code else []
        page.append(f"## {name} {options}\nExit code {code}, {time.monotonic() - begun:.0f} s.\n\n{text}")
    (folder / "README.md").write_text("\n".join(page), encoding="utf-8")
    print(f"\n{folder / 'README.md'}" + (f"; failed: {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
