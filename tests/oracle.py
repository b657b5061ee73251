"""An oracle: counts ids by hand, in the logs and in the lake, and says what was doubled, lost or invented.

It shares no code with the product. It knows JSON lines with ids in Photon's form, `server:process:microseconds`.

    python tests/oracle.py --clicks 'logs/clicks/*' --impressions 'logs/impressions/*' --tables lake/zozo
"""

from __future__ import annotations

import argparse
import glob
import gzip
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import deltalake
import pyarrow.fs as pafs

EARLIEST = 946_684_800_000_000  # 2000-01-01, microseconds
SKEW = 300_000_000
SHOWN = 5
FAULTS = ("doubled", "lost", "extra", "wrong", "two_places", "unaccounted")


@dataclass
class Log:
    """One stream as its files hold it: lines that are not blank, each good id with the id that it names.

    An id that comes again naming another has that pair in `also`: it may be joined to either.
    """

    lines: int = 0
    ids: dict[str, str] = field(default_factory=dict)
    also: set[tuple[str, str]] = field(default_factory=set)


@dataclass(frozen=True)
class Verdict:
    """What was found. Sets of click ids; `unaccounted` says of each stream how many lines are in no table.

    `doubled`: in `joined` more than once; `lost`: in no table; `extra`: in `joined` and in no log; `wrong`: joined to
    another impression than the click names, or to none; `two_places`: joined, and given up or filtered too.
    """

    clicks: int
    joined: int
    pending: int
    unjoinable: int
    filtered: int
    expired: int
    duplicate_lines: int
    quarantined_lines: int
    doubled: set[str] = field(default_factory=set)
    lost: set[str] = field(default_factory=set)
    extra: set[str] = field(default_factory=set)
    wrong: set[str] = field(default_factory=set)
    two_places: set[str] = field(default_factory=set)
    unaccounted: dict[str, int] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong; pending clicks are not."""
        return not any(getattr(self, fault) for fault in FAULTS)

    def text(self) -> str:
        """All counts, and a few ids of each fault."""
        counts = [name for name in self.__dataclass_fields__ if name not in FAULTS]
        lines = [f"{name:18}{getattr(self, name):>12,}" for name in counts]
        for fault in FAULTS:
            found = getattr(self, fault)
            some = str(found or "") if isinstance(found, dict) else ", ".join(sorted(found)[:SHOWN])
            lines.append(f"{fault:18}{len(found):>12,}  {some}".rstrip())
        return "\n".join(lines)


def examine(
    clicks: str, impressions: str, tables: str | Path, *, names: str = "query_id", redriven: bool = False,
    rebuilt: bool = False,
) -> Verdict:  # fmt: skip
    """Compare the lake with the logs. `clicks`, `impressions`: globs; `names`: the field that names the impression.

    `redriven`: unjoinable clicks were sent round again, so one may be unjoinable and joined. `rebuilt`: some dates were
    rebuilt with an adapter that does not keep the records.
    """
    now, lake = time.time_ns() // 1000, Path(tables)
    logs = {"foreign": read_log(clicks, names, now), "primary": read_log(impressions, None, now)}
    logged, (joined, wrong) = logs["foreign"].ids, _joined(lake, logs["foreign"], logs["primary"], rebuilt)
    given_up, filtered, expired = (_ids(lake, name).keys() for name in ("unjoinable", "filtered", "expired"))
    settled = joined.keys() | given_up | filtered | expired
    pending, bad = _ids(lake, "pending").keys() - settled, _quarantined(lake)
    landed = {stream: _ids(lake, stream) for stream in logs}
    missing = {stream: log.lines - landed[stream].total() - bad[stream] for stream, log in logs.items()}
    return Verdict(
        clicks=len(logged),
        joined=len(joined),
        pending=len(pending),
        unjoinable=len(given_up - joined.keys()),
        filtered=len(filtered),
        expired=len(expired - joined.keys()),  # a repeat that comes too late is expired, and rightly joined before
        duplicate_lines=landed["foreign"].total() - len(landed["foreign"]),
        quarantined_lines=bad["foreign"],
        doubled={event_id for event_id, times in joined.items() if times > 1},
        lost=logged.keys() - settled - pending,
        extra=joined.keys() - logged.keys(),
        wrong=wrong,
        two_places=joined.keys() & (filtered if redriven else filtered | given_up),
        unaccounted={stream: count for stream, count in missing.items() if count},
    )


def read_log(pattern: str, names: str | None, now: int) -> Log:
    """All lines of the files that a glob finds, `.gz` too. `now`: microseconds; much later ids are not good."""
    log = Log()
    for path in sorted(glob.glob(pattern, recursive=True)):  # noqa: PTH207 - Path.glob knows no absolute pattern
        with gzip.open(path, "rb") if path.endswith(".gz") else Path(path).open("rb") as handle:
            for line in handle:
                log.lines += bool(line.strip())
                found = good(line, names, now)
                if found and log.ids.setdefault(*found) != found[1]:
                    log.also.add(found)
    return log


def good(line: bytes, names: str | None, now: int) -> tuple[str, str] | None:
    """Ids of the event and of the one that it names (empty if it names none); None if the line is no good record."""
    try:
        record = json.loads(line.decode("utf-8"))
    except ValueError:
        return None
    if not isinstance(record, dict) or b"\0" in line:
        return None
    event_id, named = record.get("event_id"), record.get(names) if names else ""
    if not _has_time(event_id, now) or (names and not _has_time(named, now)):
        return None
    return str(event_id), str(named)


def _has_time(event_id: Any, now: int) -> bool:
    parts = event_id.split(":") if isinstance(event_id, str) else []
    if len(parts) != 3 or not parts[0] or not all(part.isascii() and part.isdigit() for part in parts[1:]):
        return False
    return EARLIEST <= int(parts[2]) <= now + SKEW


def _joined(lake: Path, clicks: Log, impressions: Log, rebuilt: bool) -> tuple[Counter[str], set[str]]:
    """How often each id is in the output, and the ids whose row does not say what the logs say."""
    times, wrong = Counter[str](), set[str]()
    # The records, where the adapter keeps them, must be those of the row's ids.
    records = [name for name in ("foreign_record", "primary_record") if name in _dataset(lake, "joined").schema.names]
    for event_id, primary_id, *texts in _rows(lake, "joined", "event_id", "primary_id", *records):
        times[event_id] += 1
        named = clicks.ids.get(event_id, primary_id) == primary_id or (event_id, primary_id) in clicks.also
        whole = (
            len(texts) < 2
            or (rebuilt and texts == [None, None])
            or [json.loads(text)["event_id"] for text in texts] == [event_id, primary_id]
        )
        if not named or not whole or primary_id not in impressions.ids:
            wrong.add(event_id)
    return times, wrong


def _ids(lake: Path, name: str) -> Counter[str]:
    return Counter(event_id for (event_id,) in _rows(lake, name, "event_id"))


def _quarantined(lake: Path) -> Counter[str]:
    # A record that is too long for one row lies in several parts: the first one counts.
    return Counter(stream for stream, part in _rows(lake, "quarantine", "stream", "part") if not part)


def _rows(lake: Path, name: str, *columns: str) -> Iterator[tuple[Any, ...]]:
    for batch in _dataset(lake, name).to_batches(columns=list(columns)):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _dataset(lake: Path, name: str) -> Any:
    # Arrow's own file system: deltalake's, which is Python underneath, aborts some processes as they exit.
    files = pafs.SubTreeFileSystem(str(lake / name), pafs.LocalFileSystem())
    return deltalake.DeltaTable(str(lake / name)).to_pyarrow_dataset(filesystem=files)


def main(arguments: list[str]) -> int:
    """Print the verdict; 0 if nothing is wrong, else 1."""
    parser = argparse.ArgumentParser(description="Counts ids by hand, in the logs and in the lake")
    parser.add_argument("--clicks", required=True, help="glob of the foreign stream's files")
    parser.add_argument("--impressions", required=True, help="glob of the primary stream's files")
    parser.add_argument("--tables", required=True, help="folder of the pipeline's tables")
    parser.add_argument("--rebuilt", action="store_true", help="some rows are of an adapter that keeps no records")
    parser.add_argument("--names", default="query_id", help="field of a click that names its impression")
    parser.add_argument("--redriven", action="store_true", help="unjoinable clicks were sent round again")
    chosen = parser.parse_args(arguments)
    verdict = examine(
        chosen.clicks, chosen.impressions, chosen.tables,
        names=chosen.names, redriven=chosen.redriven, rebuilt=chosen.rebuilt,
    )  # fmt: skip
    print(verdict.text())
    print("agrees" if verdict.ok else "DOES NOT AGREE")
    return 0 if verdict.ok else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
