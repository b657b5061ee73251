"""Programs that commit to one log, on a disk that is slow, fails or loses its answers: none overwrites another."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from deltalake import DeltaTable

from clickjoin.engines.arrow import ArrowTables
from clickjoin.schemas import REGISTRY
from tests.faults.disk import LOG, Disk, preloaded
from tests.sampled import crossed, some
from tests.writers import PATH, Program

ROOT = Path(__file__).resolve().parents[2]
KINDS = ("spark", "spark-2", "delta-rs", "delta-rs-2")


class Writer(Program):
    """A process of its own that commits, on a disk of its own."""

    def __init__(self, kind: str, folder: Path, root: Path) -> None:
        folder.mkdir()
        self.disk = Disk(folder)
        super().__init__(kind, str(root), preloaded(self.disk, PYTHONPATH=PATH), folder / "log")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lake") / "p"


@pytest.fixture(scope="module")
def writers(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Writer]]:
    ArrowTables(str(root)).create(REGISTRY)
    folder = tmp_path_factory.mktemp("writers")
    made = {kind: Writer(kind, folder / kind, root) for kind in KINDS}
    assert [writer.answer() for writer in made.values()] == ["ready"] * len(made)
    yield made
    for writer in made.values():
        writer.stop()


@pytest.fixture
def number(root: Path) -> int:
    """A number that no commit before had."""
    return _table(root).version() + 1


def _table(root: Path) -> DeltaTable:
    return DeltaTable(str(root / "registry"))


def _tokens(root: Path) -> Counter[str]:
    return Counter(_table(root).to_pyarrow_table(columns=["token"])["token"].to_pylist())


def _log(root: Path, version: int) -> str:
    return f"*/registry/_delta_log/{version:020d}.json"


PAIRS = [(one, two) for one in KINDS for two in KINDS if one != two and not one.endswith("-2")]


@pytest.mark.parametrize(("one", "two"), PAIRS)
@pytest.mark.parametrize("call", some(["link", "rename"], 2))
def test_a_commit_that_slept_overwrites_none(
    writers: dict[str, Writer], root: Path, number: int, one: str, two: str, call: str
) -> None:
    """`one` is held as it gives its commit its name; `two` commits that version meanwhile. Both are there after."""
    held = writers[one]
    held.disk.set(held.disk.hold(call, _log(root, number)))
    answer = held.ask(do="append", ids="ab", app=f"one{number}", number=number)
    if call == "link":
        held.disk.await_held()
    writers[two].do(do="append", ids="c", app=f"two{number}", number=number)
    held.disk.release()
    answer.result(120)
    held.disk.set()
    rows = _tokens(root)
    assert (rows[f"one{number}"], rows[f"two{number}"]) == (2, 1)


COMMITS = [*product(("spark", "delta-rs"), ("append", "claim")), ("delta-rs", "plain")]


@pytest.mark.parametrize(("error", "commit"), crossed([errno.EEXIST, errno.EIO, errno.ETIMEDOUT], COMMITS))
def test_a_lost_answer_is_found_out(
    writers: dict[str, Writer], root: Path, number: int, commit: tuple[str, str], error: int
) -> None:
    """The commit is made and the caller hears an error: it is recognised as its own, and neither repeated nor lost."""
    kind, do = commit
    writer, app = writers[kind], f"lost{number}"
    writer.disk.set(writer.disk.once("link", LOG, "lose", error))
    answer = writer.do(do=do, ids="xyz" if do != "claim" else f"{chr(0x4E00 + number)}", app=app, number=number)
    writer.disk.set()
    assert writer.disk.used()
    assert answer == {"append": None if kind == "spark" else True, "claim": 1, "plain": True}[do]
    assert _tokens(root)[app] == (1 if do == "claim" else 3)
    assert _table(root).version() == number


@pytest.mark.parametrize("kind", ["spark", "delta-rs"])
def test_a_failed_link_is_no_commit(writers: dict[str, Writer], root: Path, number: int, kind: str) -> None:
    writer, app = writers[kind], f"failed{number}"
    writer.disk.set(writer.disk.once("link", LOG, "fail", errno.EIO))
    answer = writer.do(do="append", ids="xyz", app=app, number=number)
    writer.disk.set()
    assert "nput/output error" in str(answer)
    assert (_tokens(root)[app], _table(root).version()) == (0, number - 1)


@pytest.mark.parametrize("kind", ["spark", "delta-rs"])
def test_a_commit_that_is_not_on_disk_is_not_answered_by_yes(
    writers: dict[str, Writer], root: Path, number: int, kind: str
) -> None:
    """While the log's folder cannot be flushed, no writer is answered by success; a rerun finds what is there."""
    writer, app = writers[kind], f"flush{number}"
    writer.disk.set(f"fsync */registry/_delta_log fail {errno.EIO}")
    answer = writer.ask(do="append", ids="xyz", app=app, number=number)
    if kind == "delta-rs":
        assert "CommitStateUnknown" in answer.result(120)
    else:
        with pytest.raises(TimeoutError):  # it tries again, until it is given up or the disk is well
            answer.result(5)
    writer.disk.set()
    answer.result(200)
    assert writer.do(do="append", ids="xyz", app=app, number=number) in (None, False)
    assert _tokens(root)[app] == 3


@pytest.mark.parametrize("kind", ["spark", "delta-rs"])
def test_what_a_commit_names_is_on_disk_before_it(
    writers: dict[str, Writer], root: Path, number: int, kind: str
) -> None:
    writer = writers[kind]
    writer.disk.set(
        writer.disk.note("link"), *(writer.disk.note("fsync", name) for name in ("*.parquet", "*/_delta_log*"))
    )
    (writer.disk.folder / "notes").unlink(missing_ok=True)
    writer.do(do="append", ids="xyz", app=f"order{number}", number=number)
    writer.disk.set()
    calls = [line.split(" ", 1) for line in (writer.disk.folder / "notes").read_text().splitlines()]
    linked = next(at for at, (call, _) in enumerate(calls) if call == "link")
    added = {path for path in _table(root).file_uris() if any(path.endswith(name[-50:]) for _, name in calls)}
    before = [path for call, path in calls[:linked] if call == "fsync"]
    after = [path for call, path in calls[linked:] if call == "fsync"]
    assert any(path.endswith(".parquet") for path in before)
    assert added
    assert any(path.endswith("_delta_log") for path in after)
    if kind == "delta-rs":  # Spark's log store flushes the commit before it links it
        assert any(path.endswith(f"{number:020d}.json") for path in after)
    else:
        assert any(f"{number:020d}.json" in path for path in before)


def test_a_claim_beside_an_optimize_that_slept(writers: dict[str, Writer], root: Path, number: int) -> None:
    """OPTIMIZE of the registry is held as it commits; a replica claims meanwhile; another cannot claim the same."""
    spark, one, two = (writers[kind] for kind in ("spark", "delta-rs", "delta-rs-2"))
    ids = "".join(chr(0x6000 + number + n) for n in range(10))
    spark.disk.set(spark.disk.hold("link", _log(root, number)), spark.disk.hold("rename", _log(root, number)))
    packed = spark.ask(do="pack")
    spark.disk.await_held()
    assert one.do(do="claim", ids=ids, app="gc-one", number=number) == 10
    spark.disk.release()
    packed.result(120)
    spark.disk.set()
    assert two.do(do="claim", ids=ids, app="gc-two", number=number) == 0
    assert (_tokens(root)["gc-one"], _tokens(root)["gc-two"]) == (10, 0)


def test_no_commit_is_renamed(writers: dict[str, Writer], root: Path, number: int) -> None:
    for kind in ("spark", "delta-rs"):
        disk = writers[kind].disk
        disk.set(disk.note("rename"), disk.note("link"))
        (disk.folder / "notes").unlink(missing_ok=True)
        for at, do in enumerate(("append", "claim")):
            ids = chr(0x7000 + number + at + 100 * len(kind))
            writers[kind].do(do=do, ids=ids, app=f"{kind}{do}{number}", number=number)
        disk.set()
        assert (disk.noted("rename"), len(disk.noted("link"))) == ([], 2)


def test_a_checkpoint_has_its_name_once_it_is_whole(writers: dict[str, Writer], root: Path) -> None:
    """Spark writes it: under the final name from the start, a kill would leave half of one to all readers."""
    while (version := _table(root).version() + 1) % 25:
        writers["delta-rs"].do(do="append", ids="p", app=f"step{version}", number=version)
    disk = writers["spark"].disk
    disk.set(disk.note("rename", "*.checkpoint.parquet"))
    (disk.folder / "notes").unlink(missing_ok=True)
    writers["spark"].do(do="append", ids="p", app=f"step{version}", number=version)
    disk.set()
    name = f"{version:020d}.checkpoint.parquet"
    assert (root / "registry/_delta_log" / name).exists()
    assert [path.endswith(name) for path in disk.noted("rename")] == [True]


def test_a_spark_without_the_log_store_is_refused(tmp_path: Path) -> None:
    """Before anything is written, with the setting to add."""
    program = (
        "from pyspark.sql import SparkSession\n"
        "from clickjoin.spark import session\n"
        "plain = SparkSession.builder.master('local[1]').config('spark.ui.enabled', 'false').getOrCreate()\n"
        "plain.conf.set('spark.delta.logStore.file.impl', 'clickjoin.storage.LocalLogStore')  # too late\n"
        "session.configured(plain)"
    )
    path = ":".join(str(ROOT / part) for part in ("spark_apps", "infra"))
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env={**os.environ, "PYTHONPATH": path},
        capture_output=True, text=True, timeout=180, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "--conf spark.delta.logStore.file.impl=clickjoin.storage.LocalLogStore" in done.stderr
