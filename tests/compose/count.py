"""What the containers have joined, counted from outside: `python -m tests.compose.count [SECONDS]`.

Shares no code with the product: the clicks are those of infra/data/zozo, the lake is read by delta-rs at the port that
the S3 server has on this machine. Exit code 0 once each click is joined exactly once; else 1 after so many seconds.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from pathlib import Path

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

ROOT = Path(__file__).resolve().parents[2]


def options(port: int = 7070) -> dict[str, str]:
    """How delta-rs reaches the store from this machine."""
    lines = (ROOT / ".run/compose/lake.env").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines) | {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"}


def wanted() -> Counter[str]:
    """The ids of all clicks."""
    files = sorted((ROOT / "infra/data/zozo/clicks").iterdir())
    return Counter(json.loads(line)["event_id"] for file in files for line in file.read_text().splitlines())


def joined(store: dict[str, str]) -> Counter[str]:
    """The ids of the joined rows, as often as they are there; none before there is a table."""
    try:
        table = DeltaTable("s3://lake/zozo/joined", storage_options=store)
    except (DeltaError, OSError):
        return Counter()
    return Counter(table.to_pyarrow_table(columns=["event_id"])["event_id"].to_pylist())


def main(seconds: float) -> int:
    """Look until all is joined."""
    until, all_of_them, store = time.monotonic() + seconds, wanted(), options()
    while True:
        found = joined(store)
        wrong = sum((found - all_of_them).values())
        print(f"{sum(found.values())} of {sum(all_of_them.values())} clicks joined, {wrong} too many", flush=True)
        if found == all_of_them or wrong or time.monotonic() > until:
            return 0 if found == all_of_them else 1
        time.sleep(5)


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]) if sys.argv[1:] else 0.0))
