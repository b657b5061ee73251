"""The pipelines' files, read as far as building DAGs needs, without Spark and without the whole validation.

Whatever else is wrong in a file is said by its first task, which validates it in full.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from airflow.sdk import Asset

from clickjoin.model.dags import DAGS, PARTNERS, PROCESSING
from clickjoin.model.errors import ConfigError
from clickjoin.model.places import DEDUPLICATED, JOINED, Store, declare_output, output_of
from clickjoin.yaml_file import parse

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)\s*")
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_LEASE = 60.0
# What the library takes for a boolean, in lower case.
_BOOLEANS = {
    **dict.fromkeys(("true", "t", "yes", "y", "on", "1"), True),
    **dict.fromkeys(("false", "f", "no", "n", "off", "0"), False),
}


@dataclass(frozen=True)
class PipelineFile:
    """A pipeline as far as its DAGs need it; `tables` is the folder or URL of its tables, `lease` in seconds.

    `dags`: those that it wants, such as join and gc; None: all. `adapter`: as it is written, or empty.
    `store`: where S3 is, if the file says so. `upstreams`: folders or URLs of the tables of pipelines whose output it
    reads. `output`: the name of its output's table. `group`: whose task joins it, if it is not its own.
    """

    name: str
    path: Path
    tables: str
    lease: float
    dags: frozenset[str] | None = None
    adapter: str = ""
    store: Store | None = None
    upstreams: tuple[str, ...] = ()
    output: str = JOINED
    group: str = ""

    @property
    def joined(self) -> Asset:
        """The output table."""
        return _asset(self.name, self.tables, self.output)

    @property
    def upstream_outputs(self) -> list[Asset]:
        """The outputs of other pipelines that it reads."""
        return [_asset(tables.rsplit("/", 1)[-1], tables, output_of(tables)) for tables in self.upstreams]

    @property
    def signals(self) -> Asset:
        """What per-key processing has reported."""
        return _asset(self.name, self.tables, "process/signals")

    @property
    def dates(self) -> Asset:
        """Closed dates; an event's partition is the date, such as 2026-03-01."""
        return _asset(self.name, self.tables, "dates")


def _asset(name: str, tables: str, table: str) -> Asset:
    uri = f"{tables}/{table}"
    return Asset(name=f"{name}/{table}", uri=uri if "://" in uri else Path(uri).as_uri())


@dataclass(frozen=True)
class BrokenFile:
    """A file that no DAG can be built from, and why; `name` is the pipeline's as far as the file's name tells."""

    name: str
    path: Path
    problem: str


@dataclass(frozen=True)
class Found:
    """All files of the folder."""

    good: tuple[PipelineFile, ...]
    broken: tuple[BrokenFile, ...]

    def with_dag(self, name: str) -> Iterator[PipelineFile]:
        """Those that want a DAG: all that do not say otherwise (`airflow: {dags: [join, gc]}`)."""
        return (file for file in self.good if file.dags is None or name in file.dags)

    def group_of(self, pipeline: str) -> str:
        """The group whose task joins a pipeline; empty where it has one of its own, or no file names it."""
        return next((file.group for file in self.good if file.name == pipeline), "")

    def groups(self) -> dict[str, list[PipelineFile]]:
        """Those that one task joins together, by the group's name."""
        found: dict[str, list[PipelineFile]] = {}
        for file in self.good:
            if file.group:
                found.setdefault(file.group, []).append(file)
        return found


class PipelineFileError(Exception):
    """Files that no DAG can be built from."""


def folder_of(folder: Path) -> Path:
    """The folder of the pipelines' files: the one that CLICKJOIN_PIPELINES names, else the given one."""
    return Path(os.environ.get("CLICKJOIN_PIPELINES") or folder)


def find(folder: Path) -> Found:
    """Read the YAML files of the folder, or of the one that CLICKJOIN_PIPELINES names.

    Files that name the same pipeline are all broken.
    """
    folder = folder_of(folder)
    read_in: dict[str, list[PipelineFile]] = {}
    problems: dict[Path, str] = {}
    for path in sorted(path for path in folder.glob("*") if path.suffix in (".yaml", ".yml")):
        try:
            pipeline = read(path)
            read_in.setdefault(pipeline.name, []).append(pipeline)
        except (OSError, ValueError, yaml.YAMLError) as error:
            problems[path] = f"{path}: {error}"
    for files in read_in.values():
        problems |= _clash(files) if len(files) > 1 else {}
    good = tuple(files[0] for files in read_in.values() if len(files) == 1)
    return Found(good, tuple(_broken(dict(sorted(problems.items())), taken={file.name for file in good})))


def _clash(files: list[PipelineFile]) -> dict[Path, str]:
    """None of them runs: it is not for the alphabet to say which one a running pipeline was made from."""
    whole = {}
    for file in files:
        others = ", ".join(other.path.name for other in files if other is not file)
        whole[file.path] = f"{file.path}: pipeline {file.name} is in {others} too, so none of them runs; rename one"
    return whole


def _broken(problems: Mapping[Path, str], taken: set[str]) -> Iterator[BrokenFile]:
    for path, problem in problems.items():
        stem, whole = (re.sub(r"[^\w.-]", "_", name, flags=re.ASCII) for name in (path.stem, path.name))
        name = whole if stem in taken else stem
        taken.add(name)
        yield BrokenFile(name, path, problem)


def read(path: Path) -> PipelineFile:
    """Read one file. Errors: ValueError, OSError or YAMLError that says what to fix."""
    raw = parse(path.read_text(encoding="utf-8"))
    if not isinstance(raw, dict):
        raise ValueError("holds no fields; see `clickjoin init --help` for a file to start from")
    name, lake = raw.get("pipeline"), raw.get("lake")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(f"pipeline: {name!r} is no name; write a-z, 0-9, - and _, beginning with a letter")
    if not isinstance(lake, str) or not lake:
        raise ValueError(f"lake: {lake!r} is no folder or URL; name the one for the tables")
    tables, lease = f"{_absolute(lake, path)}/{name}", _lease(raw.get("batch"))
    dags, adapter, store = _dags(raw.get("airflow")), str(raw.get("adapter") or ""), _store(raw.get("s3"))
    alone = raw.get("stream") is not None
    if alone:  # its events wait for no partner, so nothing is tried again
        dags = frozenset(DAGS if dags is None else dags) - set(PARTNERS)
    if raw.get("process") is None:
        dags = frozenset(DAGS if dags is None else dags) - {PROCESSING}
    if group := _group(raw.get("airflow"), dags):
        dags = frozenset(DAGS if dags is None else dags) - {"join"} - ({"retry"} if _says_nothing(raw) else set())
    ups, output = tuple(_upstreams(raw, path)), DEDUPLICATED if alone else JOINED
    declare_output(tables, output)
    return PipelineFile(name, path.absolute(), tables, lease, dags, adapter, store, ups, output, group)


def _upstreams(raw: Mapping[str, Any], path: Path) -> Iterator[str]:
    """Where the tables of pipelines lie whose output the streams of a file are, each once."""
    found = []
    for stream in (raw.get("primary"), raw.get("foreign"), raw.get("stream")):
        source = stream.get("source") if isinstance(stream, dict) else None
        if isinstance(source, dict) and source.get("kind") == "pipeline" and isinstance(source.get("name"), str):
            found.append(f"{_absolute(str(source.get('lake') or raw['lake']), path)}/{source['name']}")
            if source.get("output") == DEDUPLICATED:
                declare_output(found[-1], DEDUPLICATED)
    yield from dict.fromkeys(found)


def _dags(airflow: Any) -> frozenset[str] | None:
    """What a file says of its DAGs. Errors: ValueError for one that is not known: it would silently be missing."""
    given = airflow.get("dags") if isinstance(airflow, dict) else None
    if given is None:
        return None
    unknown = [name for name in given if name not in DAGS] if isinstance(given, list) else [given]
    if unknown:
        raise ValueError(f"airflow.dags: {unknown[0]!r} is no DAG; choose of {', '.join(DAGS)}")
    return frozenset(given)


def _group(airflow: Any, dags: frozenset[str] | None) -> str:
    """The group that a file says it belongs to. Errors: ValueError for one that is no name, or of no join."""
    given = airflow.get("group") if isinstance(airflow, dict) else None
    if given is None:
        return ""
    if not isinstance(given, str) or not _NAME.fullmatch(given):
        raise ValueError(f"airflow.group: {given!r} is no name; write a-z, 0-9, - and _, beginning with a letter")
    if dags is not None and "join" not in dags:
        raise ValueError("airflow.group: is for a pipeline that is joined; add join to airflow.dags, or remove it")
    return given


def _says_nothing(raw: Mapping[str, Any]) -> bool:
    """Whether a file leaves it to clickjoin which DAGs it has: then its group's task tries again what is due."""
    return raw["airflow"].get("dags") is None


def _absolute(lake: str, path: Path) -> str:
    """As `clickjoin.config` reads it: relative to the file."""
    lake = lake.removeprefix("file://").rstrip("/")
    return lake if "://" in lake else str(path.resolve().parent / Path(lake).expanduser())


def _store(s3: Any) -> Store | None:
    """Where S3 is, by the file's section `s3`, as far as it is written as it should be."""
    if not isinstance(s3, dict):
        return None
    endpoint, region, style = s3.get("endpoint"), s3.get("region"), s3.get("path_style")
    return Store(
        endpoint.rstrip("/") if isinstance(endpoint, str) else None,
        region if isinstance(region, str) else None,
        _BOOLEANS.get(str(style).lower()),
    )


def _lease(batch: Any) -> float:
    text = batch.get("lease") if isinstance(batch, dict) else None
    found = _DURATION.fullmatch(text) if isinstance(text, str) else None
    return float(found[1]) * _SECONDS[found[2]] if found else _LEASE


def require_readable(folder: Path | str) -> None:
    """Fail if a file is broken, or its adapter: in a DAG file of its own this shows as an import error, and stops no
    pipeline. Adapters are imported for it, with whatever they import. Errors: PipelineFileError.
    """
    found = find(Path(folder))
    problems = [*(file.problem for file in found.broken), *filter(None, map(_adapter_problem, found.good))]
    if problems:
        raise PipelineFileError("\n".join(problems))


def _adapter_problem(file: PipelineFile) -> str:
    """What is wrong with a pipeline's adapter; empty where nothing is, or where it is one of clickjoin's own."""
    if not file.adapter or file.adapter.startswith("clickjoin."):
        return ""
    from clickjoin.joiner.adapter import load_adapter

    try:
        load_adapter(file.adapter)
    except ConfigError as error:
        return f"{file.path}: {error}"
    except Exception as error:  # whatever the owner's code does when it is imported
        return f"{file.path}: adapter {file.adapter}: cannot be imported ({type(error).__name__}: {error})"
    return ""
