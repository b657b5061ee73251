"""The number of the tables' format: every table says it from its first commit on, and another one is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from deltalake import DeltaTable

from clickjoin.backup.restore import restore
from clickjoin.backup.take import take
from clickjoin.config import Pipeline
from clickjoin.engines.arrow import ArrowTables
from clickjoin.lake import table_format
from clickjoin.lake.readable import ReadableTables
from clickjoin.lake_setup import initialise
from clickjoin.model.errors import LakeError
from clickjoin.model.txn import Txn
from clickjoin.report.explain import explain
from clickjoin.schemas import ALL
from clickjoin.schemas.format import FORMAT, KEY
from tests.unit.lakes import Batches, pipeline, tree

FROM_LOGS = "name a new folder as `lake` in the pipeline's file, then run `clickjoin init` and `clickjoin drain`"
OTHERS = {
    "older": (str(FORMAT - 1), f"is of format {FORMAT - 1}", FROM_LOGS),
    "none": (None, f"is of no format, having no property {KEY}", FROM_LOGS),
    "newer": (str(FORMAT + 1), f"is of format {FORMAT + 1}", "Install a newer clickjoin"),
}


@pytest.fixture
def lake(tmp_path: Path) -> Pipeline:
    """A lake of three batches, and its pipeline's file."""
    made = pipeline(tmp_path)
    Batches(made).run(1, 3)
    (tmp_path / "logs").mkdir()
    (tmp_path / "p.yaml").write_text(yaml.safe_dump(json.loads(made.model_dump_json(exclude_unset=True))))
    return made


def say(table: str, number: str | None) -> None:
    """Have a table's newest version say a format; None: have the table say none, from its first commit on."""
    if number is not None:
        DeltaTable(table).alter.set_table_properties({KEY: number}, raise_if_not_exists=False)
        return
    first = Path(table, "_delta_log", f"{0:020}.json")
    entries = [json.loads(line) for line in first.read_text().splitlines()]
    for entry in entries:
        entry.get("metaData", {}).get("configuration", {}).pop(KEY, None)
    first.write_text("".join(json.dumps(entry) + "\n" for entry in entries))


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    given = [sys.executable, "-m", "clickjoin.cli", *command, "--config", str(folder / "p.yaml")]
    return subprocess.run(given, env=os.environ, capture_output=True, text=True)


def test_every_table_says_it_from_its_first_commit_on(lake: Pipeline) -> None:
    delta = ArrowTables(lake.root)
    for table in ALL:
        first = DeltaTable(delta.path(table.name), version=0)
        assert first.metadata().configuration[KEY] == str(FORMAT)


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("table", ["journal", "forgotten", "quality"])
def test_another_format_is_refused_at_a_start_and_nothing_is_written(lake: Pipeline, other: str, table: str) -> None:
    number, why, remedy = OTHERS[other]
    say(f"{lake.root}/{table}", number)
    before = tree(Path(lake.root))
    for agreeing in (True, False):  # a join, a collector; verification
        with pytest.raises(LakeError) as caught:
            initialise(lake, agreeing=agreeing)
        assert str(caught.value).startswith(f"{lake.root}/{table}: {why}")
        assert f"works on format {FORMAT} alone" in str(caught.value)
        assert remedy in str(caught.value)
        assert not caught.value.retryable
    assert tree(Path(lake.root)) == before


@pytest.mark.parametrize(
    ("command", "other"),
    [
        *(("status", other) for other in OTHERS),
        ("explain", "older"),
        ("init", "none"),
        ("backup", "newer"),
        ("reshard", "older"),
    ],
)
def test_another_format_is_refused_by_commands(lake: Pipeline, tmp_path: Path, command: str, other: str) -> None:
    number, why, remedy = OTHERS[other]
    for name in ("journal", "metrics", "foreign"):
        say(f"{lake.root}/{name}", number)
    more = {"backup": ("--to", str(tmp_path / "copies")), "reshard": ("--shards", "4"), "explain": ("e1",)}
    done = run(tmp_path, command, *more.get(command, ()))
    assert done.returncode == 2, done.stdout
    assert f"clickjoin: {lake.root}/" in done.stderr
    assert f": {why}" in done.stderr
    assert remedy in done.stderr.replace("\n", " ")


@pytest.mark.parametrize("other", OTHERS)
def test_another_format_is_refused_by_whoever_reads(lake: Pipeline, other: str) -> None:
    """As the status page reads, and look-ups of one id."""
    number, why, _ = OTHERS[other]
    say(f"{lake.root}/metrics", number)
    say(f"{lake.root}/foreign", number)
    with pytest.raises(LakeError, match=f"metrics: {why}"):
        ReadableTables(lake.root).read("metrics")
    with pytest.raises(LakeError, match=f"foreign: {why}"):
        explain(lake, ReadableTables(lake.root), "e1")


def test_whoever_has_a_table_open_is_refused_once_it_is_of_another(lake: Pipeline) -> None:
    delta = ArrowTables(lake.root)
    delta.open("joined")
    say(f"{lake.root}/joined", str(FORMAT + 1))
    with pytest.raises(LakeError, match=f"joined: is of format {FORMAT + 1}"):
        delta.commit_txn_only("joined", Txn("p/main/join", 99))


@pytest.mark.parametrize("other", OTHERS)
def test_a_backup_of_another_format_is_not_put_in_a_lakes_place(
    lake: Pipeline, tmp_path: Path, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    number, why, _ = OTHERS[other]
    say(f"{lake.root}/journal", number)
    with monkeypatch.context() as patched:  # as the release that made it
        patched.setattr(table_format, "require_own_format", lambda *_: None)
        take(lake, tmp_path / "backups", print, wait=5.0)
    before = tree(Path(lake.root))
    with pytest.raises(LakeError, match=f"journal: {why}"):
        restore(lake, tmp_path / "backups", "", print, force=True)
    assert tree(Path(lake.root)) == before


@pytest.mark.parametrize("text", ["two", "0", "-1", "", "2.0", "²", "03"])
def test_a_property_that_is_no_number_is_refused(lake: Pipeline, text: str) -> None:
    say(f"{lake.root}/journal", text)
    with pytest.raises(LakeError, match=r"journal: its property clickjoin.format is '.*', which is no format.*Set it"):
        initialise(lake)


@pytest.mark.parametrize("other", OTHERS)
def test_without_the_guard_another_format_would_be_worked_on(
    lake: Pipeline, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    say(f"{lake.root}/journal", OTHERS[other][0])
    monkeypatch.setattr(table_format, "require_own_format", lambda *_: None)
    assert initialise(lake) == []
