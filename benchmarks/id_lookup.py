"""What it costs to look fresh ids up among the claims of many: by the filters beside the files, and without them.

    PYTHONPATH=spark_apps:. .venv/bin/python -m benchmarks.id_lookup --claims 10000000 --files 40 --batch 10000

Random UUIDs, as hex text, in files as tasks write them. Prints a line for a tenth of the files and one for all.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.one_stream.batches import uuids
from clickjoin.kernel import data_file
from clickjoin.kernel.data_file import Target
from clickjoin.kernel.id_filter import FOLDER, ids_among
from clickjoin.model.ids import claims_order
from clickjoin.schemas import REGISTRY
from clickjoin.schemas.arrow import arrow_schema

TIMES = 5


def write(root: str, ids: pa.Array, bucket: int) -> str:
    """A file of claims."""
    count, at = len(ids), pa.scalar(bucket * 3600 * 1_000_000, pa.timestamp("us", "UTC"))
    schema = arrow_schema(REGISTRY)
    held = {"event_id": ids, "event_time": pa.repeat(at, count), "bucket": pa.repeat(f"b{bucket}", count),
            "shard": pa.repeat(pa.scalar(0, pa.int32()), count), "token": pa.repeat("p/main/join/1", count),
            "outcome": pa.repeat("joined", count)}  # fmt: skip
    rows = pa.table({name: held[name] for name in schema.names}, schema=schema)
    (file,) = data_file.write(
        Target(root, schema, REGISTRY.partitions, REGISTRY.statistics), rows, claims_order(by_id=True)
    )
    return file.path


def seconds(root: str, files: list[str], rng: np.random.Generator, batch: int) -> tuple[float, int, int]:
    """Of some looks of fresh ids the median seconds, the files that were read, and what filters named wrongly."""
    took, read, wrong = [], 0, 0
    for _ in range(TIMES):
        fresh = uuids(rng, batch)
        begun = time.perf_counter()
        found = ids_among(root, files, fresh)
        took.append(time.perf_counter() - begun)
        assert not len(found.ids)
        read, wrong = read + found.files_read, wrong + found.false_positives
    return float(np.median(took)), read, wrong


def size(folder: Path) -> int:
    """Bytes of its files."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def main() -> None:
    """Measure it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--claims", type=int, default=10_000_000)
    parser.add_argument("--files", type=int, default=40)
    parser.add_argument("--batch", type=int, default=10_000)
    given = parser.parse_args()
    rng, folder = np.random.default_rng(1), Path(tempfile.mkdtemp())
    try:
        root, each = str(folder), given.claims // given.files
        files, first = [], pa.array([], pa.string())
        for bucket in range(given.files):
            ids = uuids(rng, each)
            first = ids if not bucket else first
            files.append(write(root, ids, bucket))
        plain = size(folder)
        begun = time.perf_counter()
        ids_among(root, files, uuids(rng, given.batch))
        without = time.perf_counter() - begun
        assert len(ids_among(root, files, first.slice(0, given.batch)).ids) == min(given.batch, each)
        for some in (files[: max(given.files // 10, 1)], files):
            took, read, wrong = seconds(root, some, rng, given.batch)
            print(
                f"{given.batch:,} fresh ids among {len(some) * each:,} claims in {len(some)} files: {took:.3f} s, "
                f"{read} files read, {wrong} false positives ({TIMES} looks)"
            )
        kept = size(folder / FOLDER)
        print(f"without filters, which are made meanwhile: {without:.2f} s")
        count = each * given.files
        print(f"bytes an id on disk: {plain / count:.1f} of claims, {kept / count:.2f} of filters")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
