"""What the containers have joined, counted from outside: `python -m tests.compose.count [SECONDS]`.

Shares no code with the product: the clicks are those of infra/data/zozo, the lake is read by delta-rs at the port that
the S3 server has on this machine. Exit code 0 once each click is joined exactly once, to the impression that it names;
else 1 after so many seconds.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from tests.compose.more_logs import shipped

ROOT = Path(__file__).resolve().parents[2]
Pairs = Counter[tuple[str, str]]


def options(port: int = 7070, root: Path = ROOT) -> dict[str, str]:
    """How delta-rs reaches the store from this machine."""
    lines = (root / ".run/compose/lake.env").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines) | {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"}


def joined(table: str, store: dict[str, str] | None = None) -> Pairs:
    """Click and impression of each joined row, as often as they are there; none before there is a table."""
    try:
        rows = DeltaTable(table, storage_options=store).to_pyarrow_table(columns=["event_id", "primary_id"])
    except (DeltaError, OSError):
        return Counter()
    return Counter(zip(rows["event_id"].to_pylist(), rows["primary_id"].to_pylist(), strict=True))


def counted(find: Callable[[], Pairs], wanted: Iterable[tuple[str, str]], seconds: float) -> bool:
    """Look until each is joined exactly once, in time. What is there twice or should not be there ends it at once."""
    until, all_of_them, said = time.monotonic() + seconds, Counter(wanted), ""
    while True:
        found = find()
        wrong = (found - all_of_them).total()
        line = f"{(found & all_of_them).total()} of {all_of_them.total()} clicks joined, {wrong} too many"
        if line != said:
            print(line, flush=True)
        said = line
        if found == all_of_them or wrong or time.monotonic() > until:
            return found == all_of_them
        time.sleep(5)


def main(seconds: float) -> int:
    """Look until all is joined."""
    store = options()
    return 0 if counted(lambda: joined("s3://lake/zozo/joined", store), shipped(), seconds) else 1


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]) if sys.argv[1:] else 0.0))
