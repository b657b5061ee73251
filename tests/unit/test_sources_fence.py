"""Raw logs of a backfill: taken below the pipeline's roots, wherever links lead, and never where keys are kept."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyspark.cloudpickle
import pytest
import yaml

from clickjoin.config import Files, Pipeline, load
from clickjoin.config.starter import STARTER
from clickjoin.dates.backfill import RawLogs
from clickjoin.jobs import dates
from clickjoin.kernel.file_bytes import AllowedFolders, Outside, opened
from clickjoin.kernel.read_lines import unchanged
from clickjoin.model.errors import ConfigError
from clickjoin.sources.files.allowed_folders import base_of, fence_of
from clickjoin.sources.files.source import FilesSource
from clickjoin.sources.port import RECORDS_DDL, Source
from clickjoin_airflow.given import environment
from tests.unit.sources_bench import PLENTY, event, numbers, spec
from tests.unit.test_sources_travel import WORKER, Worker, run

SECRET = b'{"admin": "hunter2"}\n'


class Site:
    """A pipeline with logs in `logs`, Airflow's home beside them, keys in both and in the stack's folder."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        for name in ("logs/queries", "logs/clicks/old", "elsewhere", ".run", "logs/clicks/.run/zozo", "airflow"):
            (folder / name).mkdir(parents=True)
            (folder / name / "password.json").write_bytes(SECRET)
        (folder / "logs/clicks/old/1.jsonl").write_bytes(event(1))
        for name in ("CLICKJOIN_HOME", "CLICKJOIN_SPARK_CONNECT", "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("AIRFLOW_HOME", str(folder / "airflow"))
        monkeypatch.chdir(folder)

    def load(self, **more: Any) -> Pipeline:
        """The pipeline, its file with more fields."""
        file = self.folder / "p.yaml"
        file.write_text(yaml.safe_dump(yaml.safe_load(STARTER) | more))
        return load(file)

    def source(self, glob: str, **more: Any) -> Source:
        """What reads the clicks of a backfill."""
        return RawLogs(foreign=f"{self.folder}/{glob}").sources(self.load(**more))["foreign"]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    return Site(tmp_path, monkeypatch)


def bytes_of(source: Source) -> list[int]:
    """Numbers of the events that a source has; nothing else may come out of it."""
    table = source.read_here(source.plan({}, PLENTY).splits, spec())
    assert table is not None
    rows = table.to_pylist()
    assert all(row["raw"] is None for row in rows)
    return numbers(rows)


GLOBS = [
    ".run/*.json",
    "airflow/*.json",
    "elsewhere/*.json",
    "elsewhere/password.json",
    "logs/*.json",  # a source's folder has one more below it
    "logs/clicks/../../.run/*",
    "logs/clicks/old/../../../airflow/*.json",
    "logs/*/*.json",
    "*/*.json",
    "**/*.json",
    "no such folder/*",
    "logs/clicks-of-others/*",
]


@pytest.mark.parametrize("glob", GLOBS)
@pytest.mark.parametrize("stream", ["primary", "foreign"])
def test_a_glob_outside_is_refused_before_anything_is_begun(site: Site, glob: str, stream: str) -> None:
    pipeline, given = site.load(), {stream: f"{site.folder}/{glob}"}
    for dry_run in (False, True):
        for job in (dates.plan_backfill, dates.backfill):
            with pytest.raises(ConfigError, match=r"raw logs are taken only below .*/logs/queries, .*/logs/clicks, "
                               r"|where passwords and keys are kept"):  # fmt: skip
                job(None, pipeline, "main", print, since="2026-03-01", dry_run=dry_run, **given)  # type: ignore[arg-type,operator]
    with pytest.raises(ConfigError):
        RawLogs(**given).sources(pipeline)[stream].plan({}, PLENTY)
    assert not Path(pipeline.root).exists()


@pytest.mark.parametrize("roots", [["/"], ["{}"], ["{}/.run"], ["{}/airflow", "{}/.run"], ["file://{}"], ["."]])
@pytest.mark.parametrize("glob", [".run/*", "airflow/*.json", "airflow/password.json", "logs/clicks/.run/zozo/*"])
def test_where_keys_are_nothing_is_read_whatever_the_roots(site: Site, roots: list[str], glob: str) -> None:
    pipeline = site.load(backfill={"roots": [root.format(site.folder) for root in roots]})
    with pytest.raises(ConfigError, match=r"where passwords and keys are kept: no raw logs are read from there"):
        dates.plan_backfill(None, pipeline, "main", print, since="2026-03-01", foreign=f"{site.folder}/{glob}")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="where passwords and keys are kept"):
        site.source("**/*.json", backfill={"roots": ["."]}).plan({}, PLENTY)


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("CLICKJOIN_HOME", "old"),
        ("CLICKJOIN_SPARK_CONNECT", "old/password.json"),
        ("AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE", "old/password.json"),
    ],
)
def test_keys_kept_elsewhere(site: Site, monkeypatch: pytest.MonkeyPatch, name: str, place: str) -> None:
    monkeypatch.setenv(name, f"{site.folder}/logs/clicks/{place}")
    with pytest.raises(ConfigError, match=rf"lies below {site.folder}/logs/clicks/{place}, where passwords"):
        site.source("logs/clicks/*/*.json").plan({}, PLENTY)


def test_a_driver_under_spark_submit_knows_where_keys_are(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """It gets little of the worker's environment; these names must be in it."""
    monkeypatch.setenv("CLICKJOIN_HOME", f"{site.folder}/elsewhere")
    monkeypatch.setenv("AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE", f"{site.folder}/logs/password.json")
    here, given = fence_of(site.load()).closed, environment(alone=True)
    for name in set(os.environ) - {"HOME"}:
        monkeypatch.delenv(name)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    assert fence_of(site.load()).closed == here
    assert len(here) == 3


@pytest.mark.parametrize("place", ["elsewhere", ".run", "airflow", "logs/clicks/.run/zozo"])
def test_links_do_not_lead_out(site: Site, place: str) -> None:
    (site.folder / "logs/clicks/2020").symlink_to(site.folder / place)
    (site.folder / "logs/clicks/old/2.jsonl").symlink_to(site.folder / place / "password.json")
    for glob in ("2020/*", "2020/password.json", "2*/*.json", "old/*.jsonl", "old/2.jsonl", "*/*.jsonl"):
        with pytest.raises(ConfigError, match=r"raw logs are taken only below|where passwords and keys are kept"):
            site.source(f"logs/clicks/{glob}").plan({}, PLENTY)
    assert bytes_of(site.source("logs/clicks/old/1*")) == [1]  # what lies beside it and is not asked for


def test_what_is_below_the_roots_is_read(site: Site) -> None:
    assert bytes_of(site.source("logs/clicks/**/*.jsonl")) == [1]
    (site.folder / "logs/clicks/new").symlink_to("old")
    assert bytes_of(site.source("logs/clicks/new/*.jsonl")) == [1]
    (site.folder / "disk").mkdir()
    (site.folder / "disk/1.jsonl").write_bytes(event(7))
    (site.folder / "alias").symlink_to("disk")
    for roots in (["alias"], ["disk"], [f"file://{site.folder}/alias"]):
        assert bytes_of(site.source("alias/*.jsonl", backfill={"roots": roots})) == [7]
    assert bytes_of(RawLogs(foreign="disk/*").sources(site.load(backfill={"roots": ["disk"]}))["foreign"]) == [7]
    for roots in ([], ["disk"]):
        with pytest.raises(ConfigError, match="raw logs are taken"):
            site.source("logs/clicks/old/*.jsonl", backfill={"roots": roots}).plan({}, PLENTY)


def swap(site: Site, to: str) -> Callable[[], None]:
    """Puts a link in the place of a planned file, or of its folder, that leads to the same bytes and more outside."""
    old, outside = site.folder / "logs/clicks/old", site.folder / "elsewhere"
    (outside / "1.jsonl").write_bytes(event(1))

    def do() -> None:
        (old / "1.jsonl").rename(site.folder / "aside")
        if to == "file":
            (old / "1.jsonl").symlink_to(outside / "1.jsonl")
        else:
            old.rename(site.folder / "gone")
            old.symlink_to(outside)

    return do


@pytest.mark.parametrize("to", ["file", "folder"])
def test_a_link_put_there_after_planning_is_not_followed(site: Site, to: str) -> None:
    source, replace = site.source("logs/clicks/old/1.jsonl"), swap(site, to)
    splits = source.plan({}, PLENTY).splits
    worker: Any = Worker()
    work = source.read_through(worker, splits, spec(), unchanged, RECORDS_DDL)
    assert run(work)[0] == "1"  # as it was planned, on a worker without clickjoin
    chunks = source.chunks(splits)  # type: ignore[attr-defined]
    replace()
    with opened(chunks[0].path, None):
        pass  # it is there, and without the fence it is read
    with pytest.raises(Outside), opened(chunks[0].path, chunks[0].fence):
        pass
    code = pyspark.cloudpickle.dumps(work)
    done = subprocess.run([sys.executable, "-c", WORKER], input=code, capture_output=True, check=False, cwd="/")
    assert b"a link leads out of the folders that raw logs are taken from" in done.stderr
    assert done.stdout == b""
    with pytest.raises(ConfigError):  # the next look for the planned bytes names the link
        source.lost(splits)


def test_an_open_file_is_where_the_kernel_says(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    fence, inner = AllowedFolders((str(site.folder / "logs"),), ()), site.folder / "logs/clicks/old/1.jsonl"
    link = site.folder / "logs/link"
    link.symlink_to(site.folder / "elsewhere/password.json")
    for kernel in (True, False):
        if not kernel:
            monkeypatch.setattr(os, "readlink", lambda _: (_ for _ in ()).throw(OSError()))
        with opened(str(inner), fence):
            pass
        with pytest.raises(Outside), opened(str(site.folder / "elsewhere/password.json"), fence):
            pass
    monkeypatch.undo()
    with pytest.raises(Outside), opened(str(link), fence):
        pass


def test_the_pipelines_own_sources_go_wherever_its_file_says(site: Site) -> None:
    (site.folder / "logs/clicks/2.jsonl").symlink_to(site.folder / "elsewhere/2.jsonl")
    (site.folder / "elsewhere/2.jsonl").write_bytes(event(2))
    assert bytes_of(FilesSource(site.load().foreign.source)) == [2]


def test_the_folder_of_a_glob(site: Site) -> None:
    assert base_of("/a/[[]b]/[*]/c*/*.log") == ("/a/[b]/*", ("c*", "*.log"))
    assert base_of("/a/[bc]/*.log") == ("/a", ("[bc]", "*.log"))
    pipeline = site.load()
    source = pipeline.foreign.source.model_copy(update={"path": "/*.jsonl"})
    whole = pipeline.model_copy(update={"foreign": pipeline.foreign.model_copy(update={"source": source})})
    assert fence_of(whole).roots == (str(site.folder / "logs/queries"),)  # not all of the machine
    with pytest.raises(ConfigError, match="is no path"):
        RawLogs(foreign="/a\0b")


@pytest.mark.parametrize(
    ("roots", "pattern", "fine"),
    [
        (None, "s3://logs/clicks/dt=2020-01-01/*.gz", True),
        (None, "s3://logs/clicks/*", True),
        (None, "s3://logs/clicks-of-others/*", False),
        (None, "s3://logs/*", False),
        (None, "s3://other/clicks/*", False),
        (None, "s3://logs/clicks/../queries/*", False),
        (["s3://old/logs"], "s3://old/logs/2019/*", True),
        (["s3://old/logs"], "s3://logs/clicks/*", False),
        (["/old"], "s3://logs/clicks/*", False),
        ([], "s3://logs/clicks/*", False),
    ],
)
def test_logs_on_s3_come_from_given_places(site: Site, roots: Any, pattern: str, fine: bool) -> None:
    source = {"kind": "files", "path": "s3://logs/clicks/dt=*/*.gz"}
    more = {} if roots is None else {"backfill": {"roots": roots}}
    foreign = yaml.safe_load(STARTER)["foreign"] | {"source": source}
    pipeline = site.load(foreign=foreign, **more)
    if fine:
        RawLogs(foreign=pattern).require(pipeline)
        return
    with pytest.raises(ConfigError, match=r"raw logs on S3 are taken (only below s3://|from no bucket)"):
        RawLogs(foreign=pattern).require(pipeline)
    with pytest.raises(ConfigError, match="raw logs on S3"):
        RawLogs(foreign=pattern).sources(pipeline)


@pytest.mark.parametrize("target", [".run/password.json", "airflow/password.json", ".run", "airflow"])
def test_a_link_of_an_own_source_to_where_keys_are_kept(site: Site, target: str) -> None:
    """The pipeline's own glob names it: it is a problem with its name, and the logs beside it are read."""
    folder = site.folder / "logs/clicks/old"
    link = folder / ("key.json" if target.endswith(".json") else "keys")
    link.symlink_to(site.folder / target)
    (folder / "password.json").unlink()
    glob = "*" if target.endswith(".json") else "**"
    source = FilesSource(Files(kind="files", path=f"{folder}/{glob}"))
    plan = source.plan({}, PLENTY)
    assert bytes_of(source) == [1]
    if glob == "*":  # `**` goes across no links
        (problem,) = plan.problems
        assert (problem.kind, problem.path) == ("unreadable", str(link))
        assert str(site.folder / target) in problem.detail


def test_a_link_of_an_own_source_to_a_folder_of_keys(site: Site) -> None:
    link = site.folder / "logs/keys"
    link.symlink_to(site.folder / ".run")
    plan = FilesSource(Files(kind="files", path=f"{site.folder}/logs/k*/*")).plan({}, PLENTY)
    assert plan.splits == ()
    assert ("unreadable", str(link)) in [(problem.kind, problem.path) for problem in plan.problems]


def test_a_file_that_becomes_a_link_to_keys_after_it_was_planned(site: Site) -> None:
    log = site.folder / "logs/clicks/old/1.jsonl"
    source = FilesSource(Files(kind="files", path=f"{site.folder}/logs/clicks/old/*.jsonl"))
    chunks = source.chunks(source.plan({}, PLENTY).splits)
    log.unlink()
    log.symlink_to(site.folder / ".run/password.json")
    for chunk in chunks:
        with pytest.raises(Outside), opened(chunk.path, chunk.fence):
            pass


def test_logs_that_lie_where_keys_are_kept_are_the_pipelines_own(site: Site) -> None:
    """The demo's do: its glob begins there, so its file says so."""
    (site.folder / ".run/zozo/logs").mkdir(parents=True)
    (site.folder / ".run/zozo/logs/1.jsonl").write_bytes(event(1))
    assert bytes_of(FilesSource(Files(kind="files", path=f"{site.folder}/.run/zozo/logs/*"))) == [1]


def test_one_log_is_backfilled_for_both_streams(site: Site) -> None:
    """Its broken records are set aside by one of them: by the other alone they would be in no table."""
    source = {"kind": "files", "path": "logs/*"}
    both = {
        name: yaml.safe_load(STARTER)[name] | {"source": source, "where": {"type": name}}
        for name in ("primary", "foreign")
    }
    pipeline = site.load(**both, backfill={"roots": ["old"]})
    RawLogs("old/*", "old/*").require(pipeline)
    for given in ({"foreign": "old/*"}, {"primary": "old/*"}, {"primary": "old/a*", "foreign": "old/*"}):
        with pytest.raises(ConfigError, match="Give the same files for both"):
            RawLogs(**given).require(pipeline)
