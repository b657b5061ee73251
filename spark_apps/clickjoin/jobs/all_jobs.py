"""The table of jobs: all that the command line, Airflow, spark-submit, lineage and docs/jobs.md know about each.

It imports nothing but the standard library, so that a DAG file may read it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from clickjoin.jobs.job import Argument, Job
from clickjoin.model.errors import ConfigError

_CARRIED = Path(__file__).with_name("entry") / "run_job.py"  # where a wheel has it
_ENTRY = _CARRIED if _CARRIED.is_file() else Path(__file__).resolve().parents[2] / "run_job.py"
_OUTPUTS = ("joined", "registry", "pending", "unjoinable", "expired", "filtered")
_LANDED = ("primary", "foreign", "quarantine")
_DATE_TABLES = ("verification", "quality", "dates")
_GLOB_HELP = "Glob of raw logs to land first, below a folder that the pipeline's file names (backfill.roots)."

_LAKE_EXISTS = Argument(
    "lake_exists", bool, "It has worked before: a lake without tables is an error, not a start.", False
)
_HANDS_OVER = Argument(
    "hands_over", bool, "It takes the place of the process before, and works until the next one takes its.", False
)
_DRY_RUN = Argument("dry_run", bool, "Report what would be done, and change nothing.", False, title="Dry run")
_RUN_NAME = Argument("run", str, "Name of the run, by which one that was cut short goes on.")
_RANGE = (
    Argument("since", str, "First date, UTC.", required=True, option="from", title="From", format="date"),
    Argument("until", str, "Last date. Empty: the first.", option="to", title="To", format="date"),
    Argument("mode", str, "fill: join what is missing; rebuild: run the adapter again.", "fill", title="Mode",
             choices=("fill", "rebuild")),
    Argument("primary", str, _GLOB_HELP, title="Raw primary events"),
    Argument("foreign", str, _GLOB_HELP, title="Raw foreign events"),
    _DRY_RUN,
)  # fmt: skip

_JOBS = (
    Job("join", "clickjoin.jobs.joining", "Joins new records until its lease is over.",
        reads=("primary", "foreign", "registry"),
        writes=(*_LANDED, "joined", "registry", "pending", "expired", "filtered"),
        arguments=(_LAKE_EXISTS, _HANDS_OVER), leased=True, commands=("run", "drain")),
    Job("join_group", "clickjoin.jobs.joining", "Joins several pipelines, and tries again what is due.",
        reads=("primary", "foreign", "registry"), writes=(*_LANDED, *_OUTPUTS), leased=True, several=True,
        arguments=(
            Argument("known", str, "Names of those that have worked before: as `lake_exists` for them."),
            _HANDS_OVER,
        )),
    Job("retry", "clickjoin.jobs.joining", "Tries the pending events that are due.",
        reads=("pending", "primary", "registry"), writes=_OUTPUTS, leased=True, commands=("retry",),
        arguments=(
            Argument("may_be_new", bool, "A replica that has never joined is no error.", False),
            _LAKE_EXISTS,
        )),
    Job("redrive", "clickjoin.jobs.joining", "Sends unjoinable events round again.",
        reads=("unjoinable",), writes=("registry", "pending", "unjoinable"), commands=("redrive",)),
    Job("process", "clickjoin.jobs.processing", "Gives new rows of the output to the processor, key by key.",
        reads=("joined",), writes=("process/signals", "process/state", "process/late"), needs_spark=False, leased=True,
        commands=("process",),
        arguments=(
            Argument("rebuild", bool, "Put what was processed aside, and begin again from the whole output.", False,
                     title="Rebuild"),
            Argument("check", bool, "Compare the sums of all batches with the output at the end.", False,
                     title="Check"),
            _HANDS_OVER,
        )),
    Job("gc", "clickjoin.jobs.upkeep",
        "Drops what retention lets go, compacts small files, removes unreferenced ones.",
        reads=("registry", "pending", "journal"),
        writes=("registry", "registry_boundary", "primary", "foreign", "pending", "journal", "metrics"),
        commands=("gc",),
        arguments=(
            _DRY_RUN,
            Argument("wait", float, "Seconds to wait for batches under way.", 60.0, title="Wait", minimum=0),
            _LAKE_EXISTS,
        )),
    Job("reshard", "clickjoin.jobs.upkeep", "Spreads events from a future time on over other shards, or shows them.",
        reads=("shard_timeline", "registry"), writes=("shard_timeline",), needs_spark=False, commands=("reshard",),
        arguments=(
            Argument("shards", int, "Number of shards from then on. Empty: only look.", title="Shards",
                     minimum=1, maximum=10_000),
            Argument("since", str, "Event time, the start of a bucket in the future. Empty: as soon as is safe.",
                     option="from", title="From event time", format="date-time"),
        )),
    Job("rebuild", "clickjoin.jobs.upkeep", "Rebuilds a lost registry or journal, while no join runs.",
        reads=(*_LANDED, *_OUTPUTS), writes=("registry", "registry_boundary", "journal"),
        commands=("registry rebuild", "journal rebuild"),
        arguments=(
            Argument("what", str, "What is lost.", "registry", title="What", choices=("registry", "journal")),
            Argument("replace", bool, "Put one that is there aside first.", False, title="Replace"),
        )),
    Job("verify", "clickjoin.jobs.checking", "Proves what is promised, id by id and byte by byte.",
        reads=(*_LANDED, *_OUTPUTS, "journal"), writes=("verification", "findings", "removed_duplicates"),
        commands=("verify",),
        arguments=(
            Argument("since", str, "First event time, such as 2026-03-01T12:00Z. Empty: verify.window ago, or all.",
                     option="from", title="From"),
            Argument("until", str, "Event time to end before. Empty: now, and limits.max_skew.", option="to",
                     title="To"),
            Argument("repair", bool, "Fix what can be fixed. Empty: as configured (verify.repair).", title="Repair"),
            Argument("remove_doubles", bool, "With repair: rows too many leave the output.", False,
                     title="Remove doubles"),
            Argument("lake_exists", bool, "A lake without tables is an error, and not one that is to be made.", True),
        )),
    Job("forget", "clickjoin.jobs.upkeep", "Takes the records of a person's events out of all tables, for good.",
        reads=(*_LANDED, *_OUTPUTS, "forgotten"),
        writes=(*_LANDED, *_OUTPUTS, "forgotten", "findings", "removed_duplicates"), commands=("forget",),
        arguments=(
            Argument("where", str, "Conditions, one a line: STREAM.PATH=VALUE, such as foreign.user_id=U17.",
                     many=True),
            Argument("ids", str, "File of event ids, one a line. Neither: all that was ever forgotten."),
            Argument("request", str, "Name of the request, written down with each event."),
            Argument("apply", bool, "Do it; else report what would go.", False),
            Argument("wait", float, "Seconds to wait for batches under way.", 60.0, minimum=0),
        )),
    Job("quality", "clickjoin.jobs.checking", "Runs the quality suites on a date.",
        reads=("primary", "foreign", "joined", "registry"), writes=("quality",), commands=("quality",),
        arguments=(Argument("date", str, "Date of event time, UTC. Empty: yesterday.", title="Date", format="date"),)),
    Job("close_day", "clickjoin.jobs.dates", "Works through one date, and closes it if it is complete.",
        reads=(*_LANDED, *_OUTPUTS), writes=(*_OUTPUTS, *_DATE_TABLES), commands=("close",),
        arguments=(
            Argument("date", str, "Date, UTC. Empty: that of the data interval, or yesterday.", title="Date",
                     format="date"),
            Argument("action", str, "close; fill: join what is missing; rebuild: run the adapter again.", "close",
                     option="mode", title="Mode", choices=("close", "fill", "rebuild")),
            _RUN_NAME,
            Argument("forced", str, "Why it is closed although something is missing; kept with it. Empty: it is not.",
                     option="reason", title="Close anyway, because"),
            Argument("repair", bool, "Fix what can be fixed. Empty: as configured (verify.repair)."),
        )),
    Job("backfill", "clickjoin.jobs.dates", "Fills or rebuilds a range of dates, raw logs first where globs are given.",
        reads=(*_LANDED, *_OUTPUTS), writes=(*_LANDED, *_OUTPUTS, *_DATE_TABLES), commands=("backfill",),
        arguments=(*_RANGE, Argument("jobs", int, "Dates at a time.", 1, minimum=1, maximum=16), _RUN_NAME)),
    Job("plan_backfill", "clickjoin.jobs.dates", "Checks a backfill's range, lands its raw logs, names its dates.",
        reads=("dates",), writes=(*_LANDED, *_OUTPUTS), arguments=_RANGE),
    Job("reclose_changed", "clickjoin.jobs.dates", "Names closed dates whose output has changed since.",
        reads=("dates", "joined"), writes=(), needs_spark=False),
)  # fmt: skip
JOBS = {job.name: job for job in _JOBS}


def require_job(name: str) -> Job:
    """The job of a name. Errors: ConfigError that lists those there are."""
    if name not in JOBS:
        raise ConfigError(f"{name!r} is no job of clickjoin", remedy=f"Name one of {', '.join(sorted(JOBS))}")
    return JOBS[name]


def entry() -> Path:
    """The file that spark-submit runs, followed by a job's name. Errors: ConfigError if it is gone."""
    if not _ENTRY.is_file():
        raise ConfigError(f"{_ENTRY}: is not there", remedy="Install spark_apps/ whole, beside the package clickjoin")
    return _ENTRY


def data() -> dict[str, dict[str, Any]]:
    """The same as plain data, by name; arguments with their JSON Schema."""
    return {
        job.name: {
            "summary": job.summary, "commands": list(job.commands), "needs_spark": job.needs_spark,
            "leased": job.leased, "reads": list(job.reads), "writes": list(job.writes),
            "arguments": {
                item.name: {"meaning": item.help, "default": item.default, "required": item.required} | item.schema()
                for item in job.arguments
            },
        }
        for job in _JOBS
    }  # fmt: skip


def markdown() -> str:
    """The page docs/jobs.md: what each job is, and what it takes."""
    head = "| job | does | commands | Spark | reads | writes |\n| --- | --- | --- | --- | --- | --- |"
    rows = [f"| {' | '.join(_cells(job))} |" for job in _JOBS]
    sections = [_arguments(job) for job in _JOBS if job.arguments]
    return "\n".join(["# Jobs", "", _INTRODUCTION, "", head, *rows, *sections])


_INTRODUCTION = """\
Printed from `clickjoin.jobs.all_jobs` by `clickjoin schema --jobs > docs/jobs.md`. Airflow runs each over Spark Connect
or spark-submit (`spark_apps/run_job.py JOB PIPELINE.yaml [REPLICA] [LEASE] [ARGUMENTS]`: LEASE in seconds or empty,
ARGUMENTS as a JSON object); the command line runs the same code. Tables read and written are those that OpenLineage
is given. A job without Spark works in the process that asks for it."""


def _cells(job: Job) -> tuple[str, ...]:
    commands, reads, writes = (
        ", ".join(f"`{name}`" for name in names) or "-" for names in (job.commands, job.reads, job.writes)
    )
    return f"`{job.name}`", job.summary, commands, "yes" if job.needs_spark else "no", reads, writes


def _arguments(job: Job) -> str:
    rows = [
        f"| `{item.name}` | {item.kind.__name__} | {'must be given' if item.required else item.shown_default} "
        f"| {f'`{item.option_name}`' if item.title else '-'} | {item.help} |"
        for item in job.arguments
    ]
    head = "| argument | type | default | in the form | meaning |\n| --- | --- | --- | --- | --- |"
    return "\n".join(["", f"## {job.name}", "", head, *rows])
