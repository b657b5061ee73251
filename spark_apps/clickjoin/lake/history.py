"""Which versions of a table carried which transactions, as far back as the log's entries go."""

from __future__ import annotations

import json
from datetime import datetime, timedelta

import pyarrow.fs as pafs

from clickjoin.kernel.filesystem import filesystem
from clickjoin.lake.log_entries import COMMIT

_SLACK = timedelta(hours=1)  # a clock may be off, a copy of a file younger than the file
_LOOKS = 3


def transactions(path: str, since: datetime) -> dict[tuple[str, int], int]:
    """Version by application and number, of entries written since a moment (and of some before).

    There is no hole in what is returned: all entries from the first on are in it.
    """
    for _ in range(_LOOKS - 1):
        try:
            return _read(path, since)
        except FileNotFoundError:  # cleaned up meanwhile
            continue
    return _read(path, since)


def _read(path: str, since: datetime) -> dict[tuple[str, int], int]:
    files, root = filesystem(path)
    infos = files.get_file_info(pafs.FileSelector(f"{root}/_delta_log", allow_not_found=True))
    entries = {int(match[1]): info for info in infos if (match := COMMIT.fullmatch(info.base_name))}
    fresh = [version for version, info in entries.items() if info.mtime is None or info.mtime >= since - _SLACK]
    found: dict[tuple[str, int], int] = {}
    for version in sorted(entries):
        if version >= min(fresh, default=version + 1):
            with files.open_input_stream(entries[version].path) as file:
                for line in file.read().splitlines():
                    if line.startswith(b'{"txn"'):
                        txn = json.loads(line)["txn"]
                        found[txn["appId"], int(txn["version"])] = version
    return found
