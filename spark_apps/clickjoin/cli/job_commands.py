"""Commands that run a job: their options are the arguments of the table of jobs, and their text is its summary."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clickjoin.cli import before, console
from clickjoin.cli.base import Config, Json, app, connected, load, writable
from clickjoin.jobs.all_jobs import JOBS
from clickjoin.jobs.job import Argument, Job
from clickjoin.model.names import joining_name, replica_name

if TYPE_CHECKING:
    from clickjoin.config import Pipeline


@dataclass(frozen=True)
class Command:
    """A command that runs `job`. `options`: which of its arguments can be given; `more`: those that it has besides.

    `fixed`: arguments that the command gives itself. `prepare`: loads the pipeline, refuses what can be refused before
    Spark takes its time to start, and may change what was given. `follow`: sentences after the summary. `ends`: the
    last line, where the summary has no verdict. `fails`: whether it exits with 1. `complete`: adds to the summary.
    """

    name: str
    job: Job
    help: str
    options: tuple[str, ...] = ()
    more: tuple[Argument, ...] = ()
    positional: str = ""
    fixed: dict[str, Any] | None = None
    replica: Callable[[str], str] | None = replica_name
    prepare: Callable[[Path, dict[str, Any]], Pipeline] = lambda config, _: load(config)
    complete: Callable[[Path, dict[str, Any], dict[str, Any]], dict[str, Any]] = lambda _, __, found: found
    as_rows: bool = False
    follow: Callable[[dict[str, Any]], Iterator[str]] = lambda _: iter(())
    ends: Callable[[dict[str, Any]], str] | None = None
    fails: Callable[[dict[str, Any]], bool] = lambda found: not found.get("ok", True)

    def arguments(self) -> tuple[Argument, ...]:
        """What can be given on the command line, beside what every command has."""
        return (*map(self.job.argument, self.options), *self.more)

    def run(self, config: Path, as_json: bool, given: dict[str, Any]) -> None:
        """Run the job, print its summary, exit."""
        replica, spark = given.pop("replica", ""), (given.pop("spark_connect", ""), given.pop("master", ""))
        pipeline = self.prepare(config, given)
        for item in self.arguments():
            if item.many:
                given[item.name] = "\n".join(given[item.name] or ())
        session = connected(spark, pipeline) if self.job.needs_spark else None
        done = self.job.run(session, pipeline, replica, console.batch_line(as_json), **given, **(self.fixed or {}))
        found = self.complete(config, given, done)
        if as_json:
            console.print_json([found] if self.as_rows else found)
        else:
            self.show(found)
        raise typer.Exit(1 if self.fails(found) else 0)

    def show(self, found: dict[str, Any]) -> None:
        """Print a summary for a person."""
        console.summary(self.name, found)
        for line in self.follow(found):
            console.report_line(line)
        last = found.get("verdict") or (self.ends(found) if self.ends else "")
        if last:
            console.verdict(last, found.get("ok", True))

    def signature(self) -> inspect.Signature:
        """Its parameters, as Typer reads them."""
        shared = [_parameter("config", Config)]
        own = [option(item, positional=item.name == self.positional) for item in self.arguments()]
        if self.job.needs_spark:
            if self.replica:
                named = typer.Option(
                    help="name of this running copy", envvar="CLICKJOIN_REPLICA", callback=self.replica
                )
                shared.append(_parameter("replica", Annotated[str, named], "main"))
            shared += [_parameter("spark_connect", _SPARK_CONNECT, ""), _parameter("master", _MASTER, "")]
        return inspect.Signature([*own, *shared, _parameter("as_json", Json, False)])


_SPARK_CONNECT = Annotated[
    str, typer.Option(help="Spark Connect address (sc://…), or a file that holds it", envvar="CLICKJOIN_SPARK_CONNECT")
]
_MASTER = Annotated[
    str,
    typer.Option(help="a cluster that this process is the driver of (spark://…)", envvar="CLICKJOIN_SPARK_MASTER"),
]


def _parameter(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def option(item: Argument, *, positional: bool = False) -> inspect.Parameter:
    """An argument of a job as an option of a command; what is off by default is a flag that has no `--no-`."""
    if positional:
        return _parameter(item.name, Annotated[item.kind, typer.Argument(help=item.help)])
    name = f"--{item.option_name.replace('_', '-')}"
    names = f"{name}/--no-{name[2:]}" if item.kind is bool and item.default is not False else name
    said = typer.Option(names, help=item.help, min=item.minimum, max=item.maximum)
    kind: Any = list[str] if item.many else item.kind
    if item.required:
        return _parameter(item.name, Annotated[kind, said])
    return _parameter(item.name, Annotated[kind | None if item.default is None else kind, said], item.default)


def waiting(found: dict[str, Any]) -> Iterator[str]:
    """How many events a drain leaves waiting, and why it does; nothing where none waits."""
    if not found["waiting"]:
        return
    one = found["waiting"] == 1
    count = "1 event waits for its" if one else f"{found['waiting']:,} events wait for their"
    count += " primary event"
    if found["due"]:
        why = f"{found['due']:,} of them are due again, since retries fall due faster than they are tried"
        yield f"{count}; {why}: raise retry.first_delay or retry.backoff, or let `clickjoin run` go on"
        return
    next_due = f"{datetime.fromisoformat(found['next_due']):%Y-%m-%dT%H:%M:%SZ}"
    yield f"{count}: none is due before {next_due}, so this drain ends; `clickjoin run` or `retry` tries them then"


def _sums(found: dict[str, Any]) -> str:
    """Whether a drain's sums agree."""
    agree = "the sums agree" if "accounts" in found else "nothing was counted (--no-check)"
    return agree if found["ok"] else "something is wrong: see above"


def _closed(found: dict[str, Any]) -> str:
    """How a date stands."""
    return f"{found['date']} is {found['state']}"


def _rebuilt(_: dict[str, Any]) -> Iterator[str]:
    """What is to be done after a rebuilding."""
    yield "now run `clickjoin verify --repair`: it finds what was under way when it was lost"


def _forgotten(found: dict[str, Any]) -> Iterator[str]:
    """Where records are that were forgotten, and what may bring them back."""
    if found["dry_run"]:
        yield "nothing was changed; the same with --apply does it"
        return
    yield (
        f"older versions of the tables hold these records until `clickjoin gc` removes their files, "
        f"after {found['bytes_kept_until'][:16]} UTC; logs and backups hold them until you remove them"
    )
    for token in found["open"]:
        yield f"{token} is not settled, and may land such a record: then run `clickjoin verify --repair`"


_REPLACE = "Stop joins first, and verify after."
_WAIT = Argument("wait", bool, "Wait until it is complete, close.wait at most.", False)
_CHECK = Argument("check", bool, "Count every id at the end; exit code 1 unless the sums agree.", True)
_SUMS = Argument("check", bool, "Compare the sums at the end; exit code 1 unless they agree.", True)
_UNTIL_DONE = Argument(
    "lease", float, "Go on for so many seconds; 0: until every row of the output is processed.", 0.0, minimum=0
)
_FOREVER = Job(
    "forever", "clickjoin.jobs.run", "Joins and retries until it is stopped.", reads=(), writes=(),
    arguments=(
        Argument("seconds", float, "Stop after this many seconds; default: never.", option="lease", minimum=0),
    ),
)  # fmt: skip
_DRAINED = Job("drained", "clickjoin.jobs.run", "Drains a pipeline.", reads=(), writes=(), arguments=(_CHECK,))


def _writable(config: Path, _: dict[str, Any]) -> Pipeline:
    return writable(config)


COMMANDS = (
    Command("run", _FOREVER, "Join new events, and retry pending ones, until stopped.", ("seconds",),
            replica=joining_name, prepare=_writable),
    Command("drain", _DRAINED,
            "Join all that the sources hold, try what is due until nothing is, then say whether the sums agree.",
            ("check",), replica=joining_name, prepare=_writable, follow=waiting, ends=_sums),
    Command("retry", JOBS["retry"], "Try the pending events that are due once more.", prepare=_writable),
    Command("redrive", JOBS["redrive"], "Send unjoinable events round again, as if they were new.", prepare=_writable),
    Command("process", JOBS["process"],
            "Give new rows of the output to the pipeline's processor, key by key (section `process`); starts no Spark.",
            ("rebuild",), more=(_UNTIL_DONE, _SUMS), prepare=_writable),
    Command("verify", JOBS["verify"],
            "Prove what is promised, id by id and byte by byte, while joins run; exit code 1 if a fault is left.",
            ("since", "until", "repair", "remove_doubles")),
    Command("quality", JOBS["quality"],
            "Check what a date's data is like: nulls, repeats, volumes, delays; exit code 1 if a check that counts is "
            "red.",
            ("date",), prepare=before.quality),
    Command("close", JOBS["close_day"],
            "Close a date: join what is missing, verify it, judge its quality, say so in table `dates`; else exit "
            "code 1.",
            ("date", "forced"), more=(_WAIT,), positional="date", prepare=before.close, as_rows=True,
            ends=_closed),
    Command("backfill", JOBS["backfill"],
            "Fill or rebuild the output of some dates, beside joins that run; exit code 1 if one fails, or a rebuilt "
            "one is not closed.",
            ("since", "until", "mode", "primary", "foreign", "dry_run", "jobs", "run"),
            prepare=before.backfill, complete=before.downstream),
    Command("gc", JOBS["gc"],
            "Drop claims older than the retention, and old rows, history and files; rewrite buckets of many files into "
            "few.",
            ("dry_run", "wait")),
    Command("reshard", JOBS["reshard"],
            "Spread events from a future time on over more or fewer shards; shows the timeline and rows by shard. No "
            "Spark.",
            ("shards", "since")),
    Command("registry rebuild", JOBS["rebuild"],
            f"Rebuild a lost or damaged registry from the outputs. {_REPLACE}", ("replace",),
            fixed={"what": "registry"}, replica=None, follow=_rebuilt),
    Command("journal rebuild", JOBS["rebuild"],
            f"Rebuild a lost journal from outputs and landed tables. {_REPLACE}", ("replace",),
            fixed={"what": "journal"}, replica=None, follow=_rebuilt),
    Command("forget", JOBS["forget"],
            "Take a person's events out of all tables, for good; exit code 1 while a batch under way may bring one "
            "back.",
            ("where", "ids", "apply", "request", "wait"),
            more=(Argument("list", bool, "Ids of all that was ever forgotten; starts no Spark.", False),),
            prepare=before.forget, follow=_forgotten, fails=lambda found: bool(found["open"])),
)  # fmt: skip

GROUPS = {
    "registry": typer.Typer(no_args_is_help=True, help="The registry of claims."),
    "journal": typer.Typer(no_args_is_help=True, help="The journal of batches."),
    "quality": typer.Typer(invoke_without_command=True, help="What a date's data is like, and its expectations."),
}


def _register(command: Command) -> None:
    def act(config: Path, as_json: bool, **given: Any) -> None:
        command.run(config, as_json, given)

    act.__signature__ = command.signature()  # type: ignore[attr-defined]
    group, _, name = command.name.rpartition(" ")
    if name in GROUPS:
        GROUPS[name].callback(help=command.help)(_alone(act))
    else:
        (GROUPS[group] if group else app).command(name=name, help=command.help)(act)


def _alone(act: Callable[..., None]) -> Callable[..., None]:
    """A command that is also the name of others: it is run where none of these is."""

    def run(context: typer.Context, config: Path | None, **given: Any) -> None:
        if context.invoked_subcommand:
            return
        if config is None:
            raise typer.BadParameter("it is missing: give the pipeline's YAML file", ctx=context, param_hint="--config")
        act(config=config, **given)

    own = [item for item in inspect.signature(act).parameters.values() if item.name != "config"]
    context = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    option_ = typer.Option("--config", "-c", help="the pipeline's YAML file", envvar="CLICKJOIN_CONFIG")
    config = _parameter("config", Annotated[Path | None, option_], None)
    run.__signature__ = inspect.Signature([context, config, *own])  # type: ignore[attr-defined]
    return run


for one in COMMANDS:
    _register(one)
for title, members in GROUPS.items():
    app.add_typer(members, name=title)
