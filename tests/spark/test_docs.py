"""Commands and statements of pages that need Spark: the tutorial, one stream, verification, quality, the MERGE."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from checks.blocks import code
from checks.words import ROOT
from clickjoin.spark import session
from tests.sampled import FULL
from tests.spark.bench import Bench, click, query
from tests.spark.dated import lake
from tests.unit.conftest import run as run
from tests.unit.test_notebook import feed
from tests.unit.test_recipes import Reader, Run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONNECT = " --spark-connect .run/connect-url"


@pytest.fixture
def reader(run: Run, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Reader:
    """Who stands in a clone of the repository, as far as pages use it, with Spark at hand."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(session, "in_process", lambda **_: spark)
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    for name in ("docs", "dags", "infra"):
        (tmp_path / name).mkdir()
    shutil.copytree(ROOT / "dags/pipelines", tmp_path / "dags/pipelines")
    shutil.copytree(ROOT / "infra/data", tmp_path / "infra/data")
    shutil.copy(ROOT / "docs/one-stream.yaml", tmp_path / "docs")
    return Reader(run, tmp_path)


def follow(reader: Reader, *texts: str) -> list[str]:
    """What each command prints."""
    lines = "".join(texts).replace("\\\n", " ").replace(CONNECT, "").splitlines()
    return [reader.command(line) for line in lines]


def test_the_tutorial(reader: Reader) -> None:
    feed(reader.folder)
    looked, asked, verified, repaired, filled, rebuilt, kept = code("tutorial.md", "sh", 7)
    reader.command(".venv/bin/clickjoin drain --config dags/pipelines/zozo.yaml")
    assert "- joined: 207" in follow(reader, looked)[0]
    assert "joined" in follow(reader, asked)[0]
    follow(reader, verified)
    removed, found = follow(reader, repaired)
    assert "num_deleted_rows" in removed
    assert "no fault left; repaired " in found
    reader.command(".venv/bin/clickjoin drain --config dags/pipelines/zozo.yaml")
    assert "--to 2019-11-30" in filled
    filled = filled if FULL else filled.replace("--to 2019-11-30", "--to 2019-11-25")
    assert "closed" in follow(reader, filled)[2]
    follow(reader, rebuilt, kept)


def test_one_stream(reader: Reader) -> None:
    out = follow(reader, *code("one-stream.md", "sh"))
    assert "- joined: 207\n" in out[2]
    assert "- repeats: 207\n" in out[2]


def test_verification_and_quality(reader: Reader, make: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch) -> None:
    bench = lake(make)
    monkeypatch.chdir(bench.folder)
    shutil.copy(bench.file, bench.folder / "shop.yaml")
    follow(reader, *code("verification.md", "sh"))
    checked, copied = code("quality.md", "sh", 2)
    follow(reader, checked, copied)
    assert list((bench.folder / "DIR").rglob("index.html"))


def test_the_merge(make: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch) -> None:
    """What pages show of a claim's statement is what `engine: spark` sends; `…` is left out there."""
    bench, sent = make(engine="spark"), list[str]()
    engine: Any = bench.engine
    commits = engine.lake.commits
    original = commits.run
    monkeypatch.setattr(commits, "run", lambda name, sql, txn=None: sent.append(sql) or original(name, sql, txn))
    bench.queries(query("q"))
    bench.clicks(*(click(f"c{n}", n, query("q")) for n in range(5)))
    bench.join()
    (claim,) = [sql for sql in sent if "`outcome`" in sql]
    for page in ("engines.md", "how-it-works.md"):
        (text,) = {"engines.md": code("engines.md", "sql"), "how-it-works.md": code("how-it-works.md", "sql")}[page]
        pattern = re.escape(plain(text)).replace("…", ".*")
        assert re.fullmatch(pattern, plain(claim)), (page, plain(text), plain(claim))


def plain(sql: str) -> str:
    """A statement without the names and literals that differ from one batch to the next."""
    sql = re.sub(r"'[^']*'", "''", " ".join(sql.replace("`", "").split()))
    sql = re.sub(r"IN \([^)]*\)", "IN ()", sql)
    return re.sub(r"INTO \S+ t USING \S+ s", "INTO t USING s", sql)
