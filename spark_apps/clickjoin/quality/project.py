"""The project of Great Expectations that lies in a pipeline's lake: `_quality/gx`.

Its suites hold the expectations that clickjoin ships, and those that people have put there. A run brings the former up
to date and leaves the rest alone: also a shipped one that someone has edited, or taken out.
"""

from __future__ import annotations

import hashlib
import html
import json
import logging
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from fcntl import LOCK_EX, LOCK_NB, flock
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any

import yaml

from clickjoin.config.quality import SIDES, did_you_mean
from clickjoin.model.errors import ConfigError
from clickjoin.quality.shipped import SEVERITY, Shipped

if TYPE_CHECKING:
    from clickjoin.config import Pipeline
    from clickjoin.lake.location import Location

_log = logging.getLogger(__name__)

ASSETS = ("joined", "primary", "foreign", "registry", *SIDES, "ids", "batches", "signals", "sums", "late")
_PROCESSING = ("signals", "sums", "late")
_FILE = "great_expectations.yml"
RESULTS = "uncommitted/validations"
SITE = "uncommitted/data_docs/local_site"
QUERY = "unexpected_rows_query"  # an argument of expectations that are a query of a user's own
_OURS = "clickjoin"  # the key of a suite's and an expectation's `meta` that is ours
_LOCK = RLock()  # of a process: Great Expectations has one project at a time there
# Columns that name a row, where it is not named as events are.
_KEYS = {"signals": ["id"], "batches": [], "sums": [], "quarantine": ["source_partition", "offset"]}


@dataclass
class Project:
    """A project in a folder of this disk, opened (see `opened`)."""

    folder: Path
    pipeline: Pipeline
    results: Location | None = None  # where all results lie, if that is elsewhere

    @cached_property
    def context(self) -> Any:
        """Great Expectations' own context of it. Errors: ConfigError where its file cannot be read."""
        import great_expectations as gx

        file = self.folder / _FILE
        try:
            wrong = _foreign_code(yaml.safe_load(file.read_text(encoding="utf-8")))
            if not wrong:
                return gx.get_context(mode="file", context_root_dir=str(self.folder))
        except Exception as error:
            wrong = f"Great Expectations cannot open it ({line(error)})"
        raise ConfigError(
            f"{file}: {wrong}",
            remedy="Fix it there, or remove it: the next run writes one, and keeps suites and checkpoints",
        )

    @property
    def docs(self) -> str:
        """The folder of the Data Docs; empty where they are built elsewhere."""
        return "" if self.results else str(self.folder / SITE)

    def drop_before(self, before: datetime) -> None:
        """Remove the results, and their pages, of runs that began before a moment."""
        if self.results:
            self.results.remove(file.path for file in self.results.listed() if _is_old(file.path, before))
            return
        for part in (RESULTS, SITE):
            for file in (self.folder / part).rglob("*.*"):
                if file.is_file() and _is_old(str(file.relative_to(self.folder)), before):
                    file.unlink(missing_ok=True)

    def theirs(self) -> dict[str, list[Any]]:
        """What people have put into each suite, or edited there: configurations of expectations.

        A suite that is broken is none here: its checkpoint says so when it is run.
        """
        found = {}
        for name, suite in self._held("expectations").items():
            with suppress(LookupError, AttributeError, TypeError):
                found[name] = _theirs(suite)
        return found

    def idle(self) -> list[str]:
        """Suites of which there are expectations that no checkpoint runs, such as one that was renamed."""
        held, theirs, run = self._held("validation_definitions"), self.theirs(), set[Any]()
        for checkpoint in self._held("checkpoints").values():
            with suppress(LookupError, TypeError):  # one that is broken says so when it is run
                run |= {held[one["name"]]["suite"]["name"] for one in checkpoint["validation_definitions"]}
        suites = self._held("expectations")
        return [name for name in theirs if name not in run and suites[name]["expectations"]]

    def _held(self, kind: str) -> dict[str, Any]:
        """The files of a kind that are JSON, by name."""
        found = {}
        for path in sorted((self.folder / kind).glob("*.json")):
            with suppress(ValueError):
                found[path.stem] = json.loads(path.read_text(encoding="utf-8"))
        return found

    def bring_up_to_date(self, wanted: Sequence[Shipped]) -> dict[str, str]:
        """Put the shipped expectations into their suites; returns a sentence for each suite that cannot be read."""
        broken = {}
        source = self._source()
        for name in self._assets():
            try:
                self._bring(name, [one for one in wanted if one.suite == name], source)
            except ConfigError:
                raise
            except Exception as error:
                broken[name] = line(error)
        return broken

    def _source(self) -> Any:
        from clickjoin.quality.gx_tables import SOURCE, ClickjoinSource

        sources, root, file = self.context.data_sources, self.pipeline.root, self.pipeline.file
        source = sources.all().get(SOURCE)
        if not isinstance(source, ClickjoinSource):
            return sources.add_clickjoin(SOURCE, root=root, pipeline_file=file)
        if (source.root, source.pipeline_file) == (root, file):
            return source
        source.root, source.pipeline_file = root, file
        return sources.add_or_update_clickjoin(datasource=source)

    def _bring(self, name: str, wanted: Sequence[Shipped], source: Any) -> None:
        import great_expectations as gx
        from great_expectations.checkpoint import UpdateDataDocsAction

        from clickjoin.quality.gx_tables import BATCH, TableOfDates

        if name not in source.get_asset_names():
            source._add_asset(TableOfDates(name=name))
        asset = source.get_asset(name)
        batch = next((one for one in asset.batch_definitions if one.name == BATCH), None)
        batch = batch or asset.add_batch_definition(BATCH)
        suite = self._suite(name)
        if not (self.folder / "checkpoints" / f"{name}.json").exists():
            definition = gx.ValidationDefinition(name=name, data=batch, suite=suite)
            self.context.validation_definitions.add_or_update(definition)
            form: dict[str, Any] = {"result_format": "SUMMARY"}
            if key := _KEYS.get(name, ["event_id", "event_time"]):
                form |= {"partial_unexpected_count": 100, "unexpected_index_column_names": key}
            docs = UpdateDataDocsAction(name="data docs")
            checkpoint = gx.Checkpoint(
                name=name, validation_definitions=[definition], actions=[docs], result_format=form
            )
            self.context.checkpoints.add(checkpoint)
        self._merge(suite, wanted)

    def _suite(self, name: str) -> Any:
        """A suite. Errors: ValueError for one of whose expectations Great Expectations knows nothing."""
        import great_expectations as gx

        path = self.folder / "expectations" / f"{name}.json"
        if not path.exists():
            return self.context.suites.add(gx.ExpectationSuite(name=name))
        suite = self.context.suites.get(name)
        made = {one.id for one in suite.expectations}
        held = json.loads(path.read_text(encoding="utf-8"))["expectations"]
        # It leaves those out without a word, and anyone who saves the suite would lose them.
        if lost := [str(one.get("type")) for one in held if one.get("id") not in made]:
            raise ValueError(f"{path.name}: {', '.join(lost)}: no such expectation, or its arguments are wrong")
        return suite

    def _merge(self, suite: Any, wanted: Sequence[Shipped]) -> None:
        """A merge of three: what was shipped last, what is shipped now, and what lies there."""
        held = suite.to_json_dict()
        base, edited = _base(held), {_key(one) for one in _theirs(held)}
        made = {one.key: self._made(one) for one in wanted}
        there = {_key(_config(one)): one for one in suite.expectations}
        for key in edited:
            if said := ours(_config(there[key])):
                there[key].meta = {**there[key].meta, _OURS: {**said, "edited": True}}
        fresh = [one for key, one in made.items() if key not in edited and (key in there or key not in base)]
        for key in made.keys() & there.keys():
            made[key].id = there[key].id
        suite.expectations = [*fresh, *(one for key, one in there.items() if key in edited)]
        suite.meta = {**(suite.meta or {}), _OURS: {key: _digest(_config(one)) for key, one in made.items()}}
        if suite.to_json_dict() != held:
            suite.save()

    def _made(self, one: Shipped) -> Any:
        """Great Expectations' own object. Errors: ConfigError for one of the pipeline's file that cannot be made."""
        import great_expectations as gx

        from clickjoin.quality import gx_expectations

        kind = getattr(gx.expectations, one.kind, None) or getattr(gx_expectations, one.kind, None)
        if kind is None:
            known = [name for name in dir(gx.expectations) if name.startswith("Expect")]
            raise self._wrong(one, f"Great Expectations has no {one.kind}{did_you_mean(one.kind, known)}")
        said = {name: getattr(one, name) for name in ("check", "asks", "look", "column", "undecided", "key")}
        # Text that stays text on a page: a description is taken for a template in HTML.
        words = html.escape(f"{one.check}: {one.asks}").replace("$", "$$")
        try:
            return kind(**one.args, severity=SEVERITY[one.level], description=words, meta={_OURS: said})
        except Exception as error:
            raise self._wrong(one, line(error)) from error

    def _wrong(self, one: Shipped, why: str) -> ConfigError:
        return ConfigError(
            f"pipeline {self.pipeline.pipeline}: quality.expectations: {one.check}: {why}",
            remedy="Fix it in the pipeline's file; nothing was checked and nothing written",
        )

    def require_sound(self, wanted: Iterable[Shipped]) -> None:
        """Make each expectation once. Errors: ConfigError for a table, a name or an argument that there is not."""
        for one in wanted:
            if one.suite not in self._assets():
                raise self._wrong(one, f"the pipeline has no table {one.suite}")
            self._made(one)

    def checkpoints(self) -> list[str]:
        """Names of the checkpoints, clickjoin's first, in the order of their suites."""
        names = {path.stem for path in (self.folder / "checkpoints").glob("*.json")}
        return [*(name for name in self._assets() if name in names), *sorted(names - set(ASSETS))]

    def _assets(self) -> list[str]:
        """Those that the pipeline has."""
        stream = ("primary", "unjoinable", "filtered") if self.pipeline.stream else ()
        none = (*stream, *(() if self.pipeline.process else _PROCESSING))
        return [name for name in ASSETS if name not in none]

    def run(self, checkpoint: str, day: str) -> tuple[list[tuple[str, Any]], str]:
        """Run a checkpoint on a date: its results with the name of their suite, and what went wrong beside them.

        Errors: whatever goes wrong before there are results. That of a side output asks nothing, and reads nothing,
        until people have put an expectation there.
        """
        from great_expectations.core.run_identifier import RunIdentifier

        run = RunIdentifier(run_name=day, run_time=datetime.now(UTC))
        path = self.folder / "checkpoints" / f"{checkpoint}.json"
        if wrong := _foreign_code(json.loads(path.read_text(encoding="utf-8"))):  # such as a renderer of an action
            raise ConfigError(f"{path.name}: {wrong}", remedy="Leave it out")
        chosen = self.context.checkpoints.get(checkpoint)
        if checkpoint in SIDES and not any(one.suite.expectations for one in chosen.validation_definitions):
            return [], ""
        asked, known = _asked(chosen, day), {one.id: one for one in chosen.validation_definitions}
        try:
            ran = chosen.run(batch_parameters=asked, run_id=run).run_results.values()
            found = [(known[suite.meta["validation_id"]], suite) for suite in ran]
        except Exception as error:  # an action of its, or a result that Great Expectations cannot write down
            wrong = f"its results are not all kept, or an action was not run ({line(error)})"
            found = [(one, _judged(one, asked, chosen.result_format)) for one in known.values()]
        return [(one.suite.name, each) for one, suite in found for each in _results(one, asked, suite)], wrong


def _results(definition: Any, asked: dict[str, str], found: Any) -> Iterator[Any]:
    """Results in the order of their suite: else those that cannot be worked out come first, and take others' names."""
    places = {one.id: place for place, one in enumerate(definition.suite.expectations)}
    for one in sorted(found.results, key=lambda result: places.get(result.expectation_config.id, len(places))):
        yield _with_rows(definition, asked, one)


def _asked(chosen: Any, day: str) -> dict[str, str]:
    """The date, where a batch definition takes one: those of a user's data source may not."""
    taken = [
        one.data.data_asset.get_batch_parameters_keys(one.data.partitioner) for one in chosen.validation_definitions
    ]
    return {"date": day} if any("date" in names for names in taken) else {}


def _judged(definition: Any, asked: dict[str, str], form: Any, what: Any = None) -> Any:
    """The results of a validation definition's suite, or of `what`, of which nothing is kept."""
    return definition.data.get_batch(asked).validate(what or definition.suite, result_format=form)


def _with_rows(definition: Any, asked: dict[str, str], result: Any) -> Any:
    """A result; that of a query of a user's own with the rows that it found, which a summary has none of."""
    config = result.expectation_config
    if result.success is not False or "observed_value" not in result.result or QUERY not in config.kwargs:
        return result
    found = _judged(definition, asked, "COMPLETE", config.to_domain_obj()).result
    rows = (found.get("details") or {}).get("unexpected_rows") or []
    result.result |= {"unexpected_count": found.get("observed_value"), "partial_unexpected_index_list": rows[:100]}
    return result


@contextmanager
def opened(folder: Path, pipeline: Pipeline) -> Iterator[Project]:
    """The project in a folder, made where there is none; no other process writes to it meanwhile."""
    with _LOCK, locked(folder), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.getLogger("great_expectations").setLevel(logging.ERROR)
        logging.getLogger("great_expectations.checkpoint").setLevel(logging.WARNING)  # what an action could not send
        from clickjoin.quality import gx_tables  # noqa: F401, it registers what the project is made of

        if not (folder / _FILE).exists():
            (folder / _FILE).write_text(_file(), encoding="utf-8")
        yield Project(folder, pipeline)


def _file() -> str:
    from great_expectations.data_context.types.base import DataContextConfig, FilesystemStoreBackendDefaults

    places = FilesystemStoreBackendDefaults(plugins_directory="")
    places.data_docs_sites["local_site"]["show_how_to_buttons"] = False
    bars: Any = {"globally": False}
    config = DataContextConfig(analytics_enabled=False, progress_bars=bars, store_backend_defaults=places)
    config.config_variables_file_path = "uncommitted/config_variables.yml"
    return str(config.to_yaml_str())


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """No other process works on a project in a folder of this disk meanwhile."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        with suppress(OSError):  # a mount that knows no locks: two runs at once may then lose a page of the Data Docs
            try:
                flock(lock, LOCK_EX | LOCK_NB)
            except BlockingIOError:
                _log.warning("%s: another run works on this project: waiting until it has ended", folder)
                flock(lock, LOCK_EX)
        yield


def _foreign_code(config: Any, name: str = "") -> str:
    """Where a project's file has code run that is not Great Expectations' own: a writer of a lake runs none."""
    if isinstance(config, dict | list):
        parts = config.items() if isinstance(config, dict) else ((name, value) for value in config)
        return next((found for key, value in parts if (found := _foreign_code(value, str(key)))), "")
    if name == "plugins_directory" and config:
        return "plugins_directory: code that lies in a lake is not run; install it as a package"
    if name == "module_name" and not str(config).startswith("great_expectations."):
        return f"module_name: {config}: only Great Expectations' own classes are loaded from here"
    return ""


def people_part(suite: bytes) -> bytes:
    """What people have done to a suite: expectations they made, edited or took out; all of it where that is unclear."""
    try:
        found = json.loads(suite)
        theirs = _theirs(found)
        gone = sorted(set(_base(found)) - {_key(one) for one in found["expectations"]})
    except (ValueError, LookupError, AttributeError, TypeError):
        return suite
    return json.dumps([theirs, gone], sort_keys=True).encode()


def _is_old(path: str, before: datetime) -> bool:
    """Whether a result's run began before a moment (UTC): its path says when it did."""
    begun = re.search(r"\d{8}T\d{6}\.\d{6}Z", path)
    return begun is not None and begun[0] < f"{before:%Y%m%dT%H%M%S.%fZ}"


def ours(config: Any) -> Mapping[str, Any]:
    """What clickjoin says of an expectation that it ships; empty of one that people have made."""
    return dict((config.get("meta") or {}).get(_OURS) or {})


def _config(expectation: Any) -> Mapping[str, Any]:
    return dict(expectation.configuration.to_json_dict())


def _key(config: Mapping[str, Any]) -> str:
    return str(ours(config).get("key") or config.get("id") or "")


def _base(suite: Mapping[str, Any]) -> Mapping[str, str]:
    """Digests of what was shipped last, by key."""
    return dict((suite.get("meta") or {}).get(_OURS, {}))


def _theirs(suite: Mapping[str, Any]) -> list[Any]:
    """The expectations of a suite that people have made or edited."""
    return [one for one in suite["expectations"] if _base(suite).get(_key(one)) != _digest(one)]


def _digest(config: Mapping[str, Any]) -> str:
    """What an expectation asks for, as a digest: its kind, arguments and severity."""
    asked = {name: config.get(name) for name in ("type", "kwargs", "severity")}
    return hashlib.sha256(json.dumps(asked, sort_keys=True, default=str).encode()).hexdigest()[:16]


def line(error: BaseException) -> str:
    """An error, as a line; of what cannot be made its first wrong argument."""
    found = getattr(error, "errors", None)
    with suppress(LookupError, TypeError):
        first = found()[0] if callable(found) else {}
        return f"{first['loc'][0]}: {first['msg']}"
    return (str(error).strip() or type(error).__name__).splitlines()[0][:300]
