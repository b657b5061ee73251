"""What a RESTORE by another program has taken out of a table, as its log says."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from clickjoin.lake.continuity import Watched
from clickjoin.lake.restores import RESTORE, Restores
from clickjoin.model.errors import LakeError, LakeReplaced


def _entry(
    operation: str, added: Iterable[str] = (), removed: Iterable[str] = (), mode: str = "", **more: Any
) -> bytes:
    changes = operation != "OPTIMIZE" and mode != "rearranged"
    said = {"mode": "Overwrite"} if mode else {}
    actions: list[Any] = [{"commitInfo": {"operation": operation, "operationParameters": said}}]
    actions += [{"add": {"path": path, "dataChange": changes}} for path in added]
    actions += [{"remove": {"path": path, "dataChange": changes}} for path in removed]
    actions += [more] if more else []
    return "\n".join(json.dumps(action, separators=(",", ":")) for action in actions).encode()


def _newest(*entries: bytes) -> int:
    found = Restores()
    for version, entry in enumerate(entries, start=1):
        found.take(version, entry)
    return found.newest


def test_rows_that_went() -> None:
    assert _newest(_entry("WRITE", "a"), _entry("WRITE", "b"), _entry("RESTORE", removed="b")) == 3
    assert _newest(_entry("WRITE", "ab"), _entry("RESTORE", removed="b"), _entry("WRITE", "c")) == 2


@pytest.mark.parametrize(("operation", "mode"), [("WRITE", "over"), ("CLONE", ""), ("CREATE OR REPLACE TABLE", "")])
def test_an_older_state_that_is_written_over_the_newer(operation: str, mode: str) -> None:
    went = (_entry("WRITE", "ab"), _entry(operation, "A", "ab", mode=mode))
    assert _newest(*went, _entry("WRITE", "c")) == 2
    assert _newest(*went, _entry("WRITE", txn={"appId": RESTORE, "version": 2})) == 0


def test_an_overwrite_is_undone() -> None:
    went = (_entry("WRITE", "ab"), _entry("WRITE", "A", "ab", mode="over"), _entry("WRITE", "c"))
    assert _newest(*went[:2], _entry("RESTORE", "ab", "A")) == 0
    assert _newest(went[0], _entry("CLONE", "A", "ab"), _entry("RESTORE", "ab", "A")) == 0
    assert _newest(*went, _entry("RESTORE", "ab", "Ac")) == 4, "with what was committed since"


def test_an_overwrite_that_moves_rows_alone() -> None:
    assert _newest(_entry("WRITE", "ab"), _entry("WRITE", "o", "ab", mode="rearranged")) == 0
    assert _newest(_entry("WRITE", "o", mode="over")) == 0, "of an empty table"


def test_another_writers_removal_is_none() -> None:
    assert _newest(_entry("WRITE", "ab"), _entry("DELETE", "c", "b")) == 0


def test_a_restore_that_takes_nothing_out() -> None:
    """As one that takes back a feature that was set."""
    assert _newest(_entry("WRITE", "ab"), _entry("RESTORE")) == 0


def test_undone_by_another() -> None:
    assert _newest(_entry("WRITE", "abc"), _entry("RESTORE", removed="bc"), _entry("RESTORE", added="b")) == 2
    assert _newest(_entry("WRITE", "abc"), _entry("RESTORE", removed="bc"), _entry("RESTORE", added="bc")) == 0


def test_undone_beyond_a_compaction() -> None:
    """The compacted file goes with its rows in the files that it was made of; or without them."""
    before = (_entry("WRITE", "abc"), _entry("RESTORE", removed="c"), _entry("OPTIMIZE", "o", "ab"))
    assert _newest(*before, _entry("RESTORE", "abc", "o")) == 0
    assert _newest(*before, _entry("RESTORE", "ac", "o")) == 4


def test_repaired_up_to_a_version() -> None:
    went = (_entry("WRITE", "ab"), _entry("RESTORE", removed="b"))
    assert _newest(*went, _entry("WRITE", txn={"appId": RESTORE, "version": 2})) == 0
    assert _newest(*went, _entry("WRITE", txn={"appId": RESTORE, "version": 1})) == 2
    assert _newest(*went, _entry("WRITE", txn={"appId": "shop/main/join", "version": 2})) == 2


def test_a_torn_entry_is_no_restore(tmp_path: Path) -> None:
    """Whoever reads the table says what is wrong with it; a process that only follows its log does not fall over it."""
    log = tmp_path / "t/_delta_log"
    log.mkdir(parents=True)
    for version, entry in enumerate((_entry("WRITE", "a"), _entry("OPTIMIZE", "o", "a")[:-9], _entry("WRITE", "b"))):
        (log / f"{version:020}.json").write_bytes(entry)
    followed = Watched(str(tmp_path / "t"))
    followed.follow(followed.path, 0)
    followed.follow(followed.path, 2)
    (log / f"{3:020}.json").write_bytes(_entry("RESTORE", removed="b"))
    with pytest.raises(LakeError, match="its version 3 is a RESTORE or an overwrite by another program"):
        followed.follow(followed.path, 3)
    (log / f"{4:020}.json").write_bytes(_entry("RESTORE", "b"))
    followed.follow(followed.path, 4)
    (log / f"{4:020}.json").write_bytes(_entry("WRITE", "c"))
    with pytest.raises(LakeReplaced, match="version 4 is not what this process has read there"):
        followed.follow(followed.path, 4)
