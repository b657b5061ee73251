"""The table of jobs: all that the command line, Airflow, spark-submit, lineage and docs/jobs.md know about each.

It imports nothing but the standard library, so that a DAG file may read it.
"""

from __future__ import annotations

from dataclasses import replace
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
    "lake_exists",
    bool,
    "It has worked before: a lake without tables is an error, not a start.",
    False,
    by_scheduler=True,
)
_HANDS_OVER = Argument(
    "hands_over", bool, "It takes the place of the process before, and works until the next one takes its.", False,
    by_scheduler=True,
)  # fmt: skip
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
    Job("run", "clickjoin.jobs.run", "Join new events, and retry pending ones, until stopped.",
        reads=("primary", "foreign", "registry", "pending"), writes=(*_LANDED, *_OUTPUTS), leased=True,
        commands=("run",)),
    Job("drain", "clickjoin.jobs.run",
        "Join all that the sources hold, try what is due until nothing is, then say whether the sums agree.",
        reads=("primary", "foreign", "registry", "pending"), writes=(*_LANDED, *_OUTPUTS), commands=("drain",),
        arguments=(
            Argument("check", bool, "Count every id at the end; exit code 1 unless the sums agree.", True),
        )),
    Job("join", "clickjoin.jobs.joining", "Join new records until the lease is over.",
        reads=("primary", "foreign", "registry"),
        writes=(*_LANDED, "joined", "registry", "pending", "expired", "filtered"),
        arguments=(_LAKE_EXISTS, _HANDS_OVER), leased=True),
    Job("join_group", "clickjoin.jobs.joining", "Join several pipelines, and try again what is due.",
        reads=("primary", "foreign", "registry"), writes=(*_LANDED, *_OUTPUTS), leased=True, several=True,
        arguments=(
            Argument("known", str, "Names of those that have worked before: as `lake_exists` for them.",
                     by_scheduler=True),
            _HANDS_OVER,
        )),
    Job("retry", "clickjoin.jobs.joining", "Try the pending events that are due once more.",
        reads=("pending", "primary", "registry"), writes=_OUTPUTS, leased=True, commands=("retry",),
        arguments=(
            Argument("may_be_new", bool, "A replica that has never joined is no error.", False, by_scheduler=True),
            _LAKE_EXISTS,
        )),
    Job("redrive", "clickjoin.jobs.joining", "Send unjoinable events again, as if they were new.",
        reads=("unjoinable",), writes=("registry", "pending", "unjoinable"), commands=("redrive",)),
    Job("process", "clickjoin.jobs.processing",
        "Give new rows of the output to the pipeline's processor, key by key (section `process`); starts no Spark.",
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
        "Drop claims older than the retention, and old rows, history and files; rewrite buckets of many files into "
        "few.",
        reads=("registry", "pending", "journal"),
        writes=("registry", "registry_boundary", "primary", "foreign", "pending", "journal", "metrics"),
        commands=("gc",),
        arguments=(
            _DRY_RUN,
            Argument("wait", float, "Seconds to wait for batches under way.", 60.0, title="Wait", minimum=0),
            _LAKE_EXISTS,
        )),
    Job("reshard", "clickjoin.jobs.upkeep",
        "Spread events from a future time on over more or fewer shards; shows the timeline and rows by shard. No "
        "Spark.",
        reads=("shard_timeline", "registry"), writes=("shard_timeline",), needs_spark=False, commands=("reshard",),
        arguments=(
            Argument("shards", int, "Number of shards from then on. Empty: only look.", title="Shards",
                     minimum=1, maximum=10_000),
            Argument("since", str, "Event time, the start of a bucket in the future. Empty: as soon as is safe.",
                     option="from", title="From event time", format="date-time"),
        )),
    Job("rebuild", "clickjoin.jobs.upkeep",
        "Rebuild a lost or damaged registry or journal from the other tables. Stop joins first, and verify after.",
        reads=(*_LANDED, *_OUTPUTS), writes=("registry", "registry_boundary", "journal"),
        commands=("registry rebuild", "journal rebuild"),
        arguments=(
            Argument("what", str, "What is lost.", "registry", title="What", choices=("registry", "journal")),
            Argument("replace", bool, "Put one that is there aside first.", False, title="Replace"),
        )),
    Job("verify", "clickjoin.jobs.checking",
        "Prove what is promised, id by id and byte by byte, while joins run; exit code 1 if a fault is left.",
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
            Argument("lake_exists", bool, "A lake without tables is an error, and not one that is to be made.", True,
                     by_scheduler=True),
        )),
    Job("forget", "clickjoin.jobs.upkeep",
        "Take a person's events out of all tables, for good; exit code 1 while a batch under way may bring one back.",
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
    Job("quality", "clickjoin.jobs.checking",
        "Check what a date's data is like: nulls, repeats, volumes, delays; exit code 1 if a check that counts is red.",
        reads=("primary", "foreign", "joined", "registry"), writes=("quality",), commands=("quality",),
        arguments=(Argument("date", str, "Date of event time, UTC. Empty: yesterday.", title="Date", format="date"),)),
    Job("close_day", "clickjoin.jobs.dates",
        "Close a date: join what is missing, verify it, judge its quality, say so in table `dates`; else exit code 1.",
        reads=(*_LANDED, *_OUTPUTS), writes=(*_OUTPUTS, *_DATE_TABLES), commands=("close",),
        arguments=(
            Argument("date", str, "Date, UTC. Empty: that of the data interval, or yesterday.", title="Date",
                     format="date"),
            Argument("action", str, "close; fill: join what is missing; rebuild: run the adapter again.", "close",
                     option="mode", title="Mode", choices=("close", "fill", "rebuild"), by_scheduler=True),
            replace(_RUN_NAME, by_scheduler=True),
            Argument("forced", str, "Why it is closed although something is missing; kept with it. Empty: it is not.",
                     option="reason", title="Close anyway, because"),
            Argument("repair", bool, "Fix what can be fixed. Empty: as configured (verify.repair).",
                     by_scheduler=True),
        )),
    Job("backfill", "clickjoin.jobs.dates",
        "Fill or rebuild the output of some dates, beside joins that run; exit code 1 if one fails, or a rebuilt one "
        "is not closed.",
        reads=(*_LANDED, *_OUTPUTS), writes=(*_LANDED, *_OUTPUTS, *_DATE_TABLES), commands=("backfill",),
        arguments=(*_RANGE, Argument("jobs", int, "Dates at a time.", 1, minimum=1, maximum=16), _RUN_NAME)),
    Job("plan_backfill", "clickjoin.jobs.dates", "Check a backfill's range, land its raw logs, name its dates.",
        reads=("dates",), writes=(*_LANDED, *_OUTPUTS), arguments=_RANGE),
    Job("reclose_changed", "clickjoin.jobs.dates", "Name closed dates whose output has changed since.",
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
Printed from `clickjoin.jobs.all_jobs` by `clickjoin schema --jobs > docs/jobs.md`. Airflow's forms and the
options of the commands are made from it. Airflow runs a job over Spark Connect or spark-submit
(`spark_apps/run_job.py JOB PIPELINE.yaml [REPLICA] [LEASE] [ARGUMENTS]`: LEASE in seconds or empty, ARGUMENTS as a JSON
object). Tables read and written are those that OpenLineage
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
