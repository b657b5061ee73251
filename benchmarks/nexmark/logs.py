"""Nexmark's bids and auctions as logs, made by the `nexmark` crate, and the truth: a plain join of the raw lines."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import json as pj

from benchmarks.nexmark.adapter import CATEGORY
from benchmarks.throughput.work import PARTS, Work
from bootstrap import ROOT, Problem

GENERATOR = Path(__file__).with_name("generator")
BUILT = ROOT / ".run/nexmark"
EVENTS_A_SECOND = 10_000  # of event time: what the crate does unless configured otherwise
STREAMS = ("auctions", "bids")


def build() -> Path:
    """Build the generator as locked; returns the program. Errors: Problem where there is no cargo, or it fails."""
    if not shutil.which("cargo"):
        raise Problem("the Nexmark generator is written in Rust: install cargo")
    command = ["cargo", "build", "--quiet", "--release", "--locked", "--target-dir", str(BUILT)]
    if subprocess.run(command, cwd=GENERATOR).returncode:
        raise Problem("the Nexmark generator could not be built: see above")
    return BUILT / "release/nexmark-logs"


def make(program: Path, folder: Path, events: int) -> Work:
    """Write the logs of so many events that end now, and the truth beside them in the form that `check` reads."""
    first = int(time.time() - events / EVENTS_A_SECOND) * 1000
    subprocess.run([str(program), str(folder), str(events), str(PARTS), str(first)], check=True)
    for number, stream in enumerate(STREAMS):
        for part in range(PARTS):  # streams take the oldest file first
            os.utime(folder / stream / f"{part}.jsonl", (1_000_000_000 + 10 * part + number,) * 2)
    auctions, bids = _fields(folder / "auctions", "id", "category"), _fields(folder / "bids", "id", "auction")
    pq.write_table(_truth(auctions, bids), folder / "truth.parquet")
    lines = {"queries": {"lines": auctions.num_rows}, "clicks": {"lines": bids.num_rows}}
    return Work(folder, lines)


def _truth(auctions: pa.Table, bids: pa.Table) -> pa.Table:
    """The pairs of q20 that there must be, by pyarrow's own join."""
    wanted = auctions.filter(pc.equal(auctions["category"], CATEGORY)).select(["id"]).rename_columns(["auction"])
    pairs = bids.join(wanted, "auction", join_type="inner")
    return pa.table(
        {
            "stream": pa.repeat("clicks", pairs.num_rows),
            "event_id": pc.cast(pairs["id"], pa.string()),
            "primary_id": pc.cast(pairs["auction"], pa.string()),
            "orphan": pa.repeat(False, pairs.num_rows),
        }
    )


def _fields(folder: Path, *names: str) -> pa.Table:
    schema = pa.schema([(name, pa.int64()) for name in names])
    options = pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    return pa.concat_tables(pj.read_json(path, parse_options=options) for path in sorted(folder.glob("*.jsonl")))
