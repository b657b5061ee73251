"""What the steps are given: two log files of three hours, and what the kernel makes of them, step by step."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from clickjoin.generate import Traffic, generate
from clickjoin.kernel.arrays import rows_at, scalar
from clickjoin.kernel.chunk import Chunk
from clickjoin.kernel.data_file import Target, write
from clickjoin.kernel.event_key import dates_of, first_of
from clickjoin.kernel.file_bytes import Proof
from clickjoin.kernel.land_task import Place, placed
from clickjoin.kernel.lookup import paired
from clickjoin.kernel.read_lines import read_chunk
from clickjoin.model.ids import MICROS, RecordSpec, micros_of
from clickjoin.schemas import FOREIGN, JOINED, PRIMARY, REGISTRY
from clickjoin.schemas.arrow import arrow_schema

HOURS, BUCKET, SHARDS, BATCH = 3, 3600, 4, 7
START = datetime(2026, 3, 10, 9, tzinfo=UTC)
BEGIN = micros_of(START)
KEPT = ["event_id", "event_time", "primary_id", "primary_time", "payload", "offset", "length"]
OF_FOREIGN, OF_PRIMARY = ("source_partition", "offset"), ("landed_at", "replica", "source_partition", "offset")
BY_KEY = ["event_id", "event_time"]
_RECORDS = pa.schema([("foreign_record", pa.string()), ("primary_record", pa.string())])
SCHEMAS = {
    "primary": arrow_schema(PRIMARY),
    "foreign": arrow_schema(FOREIGN),
    "registry": arrow_schema(REGISTRY),
    "joined": pa.schema([*arrow_schema(JOINED), *_RECORDS]),
}


def spec(*, foreign: bool) -> RecordSpec:
    """How the generator's records are laid out; times of three days are possible."""
    primary_id, primary_time = (("query_id",), "embedded") if foreign else ((), None)
    low, high = BEGIN - 86_400_000_000, BEGIN + 2 * 86_400_000_000
    return RecordSpec(("event_id",), "embedded", primary_id, primary_time, low, high, 16 << 20)


def chunk_of(file: Path) -> Chunk:
    """The whole file as what a task is given."""
    size = file.stat().st_size
    return Chunk(str(file), str(file), file.stem, 0, size, 0, size, Proof(0, "", 0, 0, ""), None)


def targets(folder: Path) -> dict[str, Target]:
    """Where files of the tables go, and how they are laid out."""
    tables = (PRIMARY, FOREIGN, REGISTRY, JOINED)
    return {
        each.name: Target(str(folder / each.name), SCHEMAS[each.name], each.partitions, each.statistics)
        for each in tables
    }


@dataclass(frozen=True)
class Parsed:
    """Good records, columns KEPT in the order of offsets, and the offsets of the lines that are bad."""

    good: pa.Table
    bad: list[int]


def parsed(file: Path, *, foreign: bool = True) -> Parsed:
    """What the kernel's parser makes of a file."""
    rows = pa.Table.from_batches(list(read_chunk(chunk_of(file), spec(foreign=foreign))))
    good = rows.filter(rows["reason"].is_null()).select(KEPT)
    return Parsed(good, rows.filter(rows["reason"].is_valid())["offset"].to_pylist())


def make(folder: Path, rows: int) -> dict[str, Path]:
    """Log files by name: `clicks` and `queries`, in which lines come twice and some are bad, and `clean` clicks."""
    generate(
        folder,
        Traffic(
            clicks=rows, queries=rows * 2 // 5, duration=HOURS * 3600.0, start=START, files=1, broken=0.001, seed=1
        ),
    )
    files = {name: next((folder / name).glob("*.jsonl")) for name in ("clicks", "queries")}
    bad = set(parsed(files["clicks"]).bad)
    at, kept = 0, []
    for line in files["clicks"].read_bytes().splitlines(keepends=True):
        kept += [] if at in bad else [line]
        at += len(line)
    (folder / "clean.jsonl").write_bytes(b"".join(kept))
    return files | {"clean": folder / "clean.jsonl"}


def _placed(file: Path, stream: str) -> pa.Table:
    records = pa.Table.from_batches(list(read_chunk(chunk_of(file), spec(foreign=stream == "foreign"))))
    place = Place(BUCKET, (), (SHARDS,), BATCH, "main", BEGIN + 4 * BUCKET * MICROS, stream)
    return placed(records, place)[0].select(SCHEMAS[stream].names).cast(SCHEMAS[stream]).combine_chunks()


@dataclass(frozen=True)
class Given:
    """Log files by name, and tables by name that the kernel has made of them; what was landed also as files."""

    files: dict[str, Path]
    tables: dict[str, pa.Table]
    folder: Path
    paths: list[str]


def given(folder: Path, rows: int) -> Given:
    """All that the steps start from."""
    files = make(folder, rows)
    tables = {"primary": _placed(files["queries"], "primary"), "foreign": _placed(files["clicks"], "foreign")}
    tables["clicks"] = first_of(tables["foreign"], OF_FOREIGN).combine_chunks()
    tables["queries"] = first_of(tables["primary"], OF_PRIMARY).combine_chunks()
    joined = _claimed(tables["clicks"], tables["queries"])
    tables |= {name: joined.select(SCHEMAS[name].names).cast(SCHEMAS[name]) for name in ("registry", "joined")}
    held = write(targets(folder)["foreign"], tables["foreign"])
    return Given(files, tables, folder, [file.path for file in held[: HOURS - 1]])


def _claimed(clicks: pa.Table, queries: pa.Table) -> pa.Table:
    at, found = paired(clicks, queries, None)
    rows = rows_at(clicks, at)
    texts = {"token": "shop/main/join/1", "outcome": "joined"}
    more = {name: pa.repeat(scalar(text), rows.num_rows) for name, text in texts.items()}
    more |= {"published_at": rows["landed_at"], "event_date": dates_of(rows)}
    more |= {"foreign_record": rows["payload"], "primary_record": found["payload"]}
    for name, column in more.items():
        rows = rows.append_column(name, column)
    return rows.combine_chunks()
