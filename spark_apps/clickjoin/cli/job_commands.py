"""Commands that run a job: their options are the arguments of the table of jobs, and their text is its summary.

What can be refused is refused before Spark takes its time to start.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clickjoin.cli import console
from clickjoin.cli.base import Config, Json, alone, app, connected, load, parameter, small_tables, writable
from clickjoin.jobs.all_jobs import JOBS
from clickjoin.jobs.job import Argument, Job
from clickjoin.model.errors import ConfigError, DateError
from clickjoin.model.names import joining_name, replica_name
from clickjoin.model.span import parse_date

if TYPE_CHECKING:
    from clickjoin.config import Pipeline


@dataclass(frozen=True)
class Command:
    """A command that runs `job`, with that job's help and those of its arguments that no scheduler gives.

    `more`: arguments that it has besides, or in place of the job's. `fixed`: arguments that the command gives itself.
    `prepare`: loads the pipeline, refuses what can be refused before Spark takes its time to start, and may change what
    was given. `follow`: sentences after the summary. `ends`: the last line, where the summary has no verdict. `fails`:
    whether it exits with 1. `complete`: adds to the summary.
    """

    name: str
    job: Job
    prepare: Callable[[Path, dict[str, Any]], Pipeline] = lambda config, _: load(config)
    more: tuple[Argument, ...] = ()
    positional: str = ""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    help: str = ""
    replica: Callable[[str], str] | None = replica_name
    complete: Callable[[Path, dict[str, Any], dict[str, Any]], dict[str, Any]] = lambda _, __, found: found
    as_rows: bool = False
    follow: Callable[[dict[str, Any]], Iterator[str]] = lambda _: iter(())
    ends: Callable[[dict[str, Any]], str] = lambda _: ""
    fails: Callable[[dict[str, Any]], bool] = lambda found: not found.get("ok", True)

    def arguments(self) -> tuple[Argument, ...]:
        """What can be given on the command line, beside what every command has."""
        other = {item.name for item in self.more} | self.fixed.keys()
        return *(item for item in self.job.arguments if not (item.by_scheduler or item.name in other)), *self.more

    def run(self, config: Path, as_json: bool, given: dict[str, Any]) -> None:
        """Run the job, print its summary, exit."""
        replica, spark = given.pop("replica", ""), (given.pop("spark_connect", ""), given.pop("master", ""))
        pipeline = self.prepare(config, given)
        for item in self.arguments():
            if item.many:
                given[item.name] = "\n".join(given[item.name] or ())
        session = connected(spark, pipeline) if self.job.needs_spark else None
        done = self.job.run(session, pipeline, replica, console.batch_line(as_json), **given, **self.fixed)
        found = self.complete(config, given, done)
        console.answer([found] if self.as_rows else found, as_json, lambda: self.show(found), fails=self.fails(found))

    def show(self, found: dict[str, Any]) -> None:
        """Print a summary for a person."""
        console.summary(self.name, found)
        for line in self.follow(found):
            console.report_line(line)
        if last := found.get("verdict") or self.ends(found):
            console.verdict(last, found.get("ok", True))

    def signature(self) -> inspect.Signature:
        """Its parameters, as Typer reads them."""
        shared = [parameter("config", Config)]
        own = [option(item, positional=item.name == self.positional) for item in self.arguments()]
        if self.job.needs_spark:
            if self.replica:
                named = typer.Option(
                    help="name of this running copy", envvar="CLICKJOIN_REPLICA", callback=self.replica
                )
                shared.append(parameter("replica", Annotated[str, named], "main"))
            shared += [parameter("spark_connect", _SPARK_CONNECT, ""), parameter("master", _MASTER, "")]
        return inspect.Signature([*own, *shared, parameter("as_json", Json, False)])


_SPARK_CONNECT = Annotated[
    str, typer.Option(help="Spark Connect address (sc://…), or a file that holds it", envvar="CLICKJOIN_SPARK_CONNECT")
]
_MASTER = Annotated[
    str, typer.Option(help="a cluster that this process is the driver of (spark://…)", envvar="CLICKJOIN_SPARK_MASTER")
]


def option(item: Argument, *, positional: bool = False) -> inspect.Parameter:
    """An argument of a job as an option of a command; what is off by default is a flag that has no `--no-`."""
    if positional:
        return parameter(item.name, Annotated[item.kind, typer.Argument(help=item.help)])
    name = f"--{item.option_name.replace('_', '-')}"
    names = f"{name}/--no-{name[2:]}" if item.kind is bool and item.default is not False else name
    said = typer.Option(names, help=item.help, min=item.minimum, max=item.maximum)
    kind: Any = list[str] if item.many else item.kind
    if item.required:
        return parameter(item.name, Annotated[kind, said])
    return parameter(item.name, Annotated[kind | None if item.default is None else kind, said], item.default)


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
    """Whether a drain's sums agree, and what was counted."""
    if not found["ok"]:
        return _wrong(found.get("accounts", {"agree": True}))
    if "accounts" not in found:
        return "nothing was counted (--no-check)"
    from clickjoin.report.accounts import OUTCOMES  # with Spark, which whoever has counted has loaded

    counts = found["accounts"]
    parts = [f"{counts[name]:,} {name}" for name in OUTCOMES if counts[name]]
    return f"the sums agree: {counts['accepted']:,} ids accepted = {' + '.join(parts) or '0'}; none lost, none twice"


def _wrong(counts: dict[str, Any]) -> str:
    """What to do where a drain's sums do not agree; else its problems stand above."""
    if counts["agree"]:
        return "something is wrong: see above"
    dates = f"--from {counts['wrong_from']} --to {counts['wrong_to']}"
    lost, doubled = (_ids(counts[name]) for name in ("lost", "doubled"))
    found = [f"{lost} in no table: run `clickjoin verify --repair {dates}`, then drain again"] if counts["lost"] else []
    found += (
        [f"{doubled} twice, or without a record: `clickjoin verify {dates}` names them"] if counts["doubled"] else []
    )
    return f"something is wrong: see above; {'; '.join(found)}"


def _ids(count: int) -> str:
    return "1 id is" if count == 1 else f"{count:,} ids are"


def _closed(found: dict[str, Any]) -> str:
    """How a date stands."""
    return f"{found['date']} is {found['state']}"


def _rebuilt(_: dict[str, Any]) -> Iterator[str]:
    """What is to be done after a rebuilding."""
    yield "now run `clickjoin verify --repair`: it finds what was under way when it was lost"


def _forgotten(found: dict[str, Any]) -> Iterator[str]:
    """Where records are that were forgotten, and what may bring them back."""
    if found["dry_run"]:
        yield "dry run: nothing was changed; run it again with --apply"
        return
    yield (
        f"older versions of the tables hold these records until `clickjoin gc` removes their files, "
        f"after {found['bytes_kept_until'][:16]} UTC; logs and backups hold them until you remove them"
    )
    for token in found["open"]:
        yield f"{token} is not settled, and may land such a record: then run `clickjoin verify --repair`"


_LOOK_SECONDS = 10.0


def _before_quality(config: Path, given: dict[str, Any]) -> Pipeline:
    """The date is one."""
    pipeline = load(config)
    if given["date"]:
        parse_date(given["date"])
    return pipeline


def _before_close(config: Path, given: dict[str, Any]) -> Pipeline:
    """The date has begun, and is complete, waited for, or closed for a reason. Errors: DateError; else exit code 1."""
    from clickjoin.dates.readiness import by_hand, readiness, require_ready
    from clickjoin.model.span import parse

    pipeline, day = writable(config), parse(given["date"])
    wait = given.pop("wait")
    while wait and not (found := readiness(pipeline, day))["ready"] and not found["late"]:
        with console.waiting(f"{day}: {found['why']}"):
            time.sleep(_LOOK_SECONDS)
    if day.low > datetime.now(UTC):
        raise DateError(f"{day} lies in the future", remedy="Wait until it has begun")
    if not given["forced"]:
        try:
            require_ready(pipeline, day)
        except DateError as error:
            console.report_line(f"clickjoin: {error}")
            raise typer.Exit(1) from error
    given["forced"] = by_hand(given["forced"]) if given["forced"] else ""
    return pipeline


def _before_backfill(config: Path, given: dict[str, Any]) -> Pipeline:
    """There are such dates, logs and such a run."""
    from clickjoin.dates import ledger
    from clickjoin.dates.backfill import RawLogs
    from clickjoin.model.span import days

    days(given["since"], given["until"] or given["since"], datetime.now(UTC))
    pipeline = load(config) if given["dry_run"] else writable(config)
    RawLogs(given["primary"] or "", given["foreign"] or "").require(pipeline)
    if given["run"]:
        ledger.require_run(small_tables(pipeline), given["run"])
    return pipeline


def _downstream(config: Path, given: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """A backfill's summary, with what a rebuilding changes for pipelines whose files lie beside this one's."""
    from clickjoin.chain.links import beside
    from clickjoin.model.span import Span, parse
    from clickjoin.report import chain

    if given["mode"] != "rebuild":
        return found
    span = Span(parse(given["since"]).low, parse(given["until"] or given["since"]).high)
    return found | {"downstream": chain.downstream(beside(config), span)}


def _before_forget(config: Path, given: dict[str, Any]) -> Pipeline:
    """What is meant can be read; with --list, what was ever forgotten is all that is asked for."""
    from clickjoin.erasure.wanted import parse
    from clickjoin.forgotten.known import forgotten

    if given.pop("list"):
        known = forgotten(small_tables(load(config)))
        for name in sorted({key for keys in known.keys.values() for key, _ in keys}):
            typer.echo(name)
        raise typer.Exit
    where = given["where"] or ()
    parse(where, given["ids"])
    if any("\n" in one for one in where):
        raise ConfigError("--where: a value with a line end", remedy="Name the events with --ids")
    return writable(config)


_WAIT = Argument("wait", bool, "Wait until it is complete, close.wait at most.", False)
_SUMS = Argument("check", bool, "Compare the sums at the end; exit code 1 unless they agree.", True)
_LEASE = Argument("lease", float, "Stop after this many seconds; default: never.", minimum=0)
_UNTIL_DONE = replace(
    _LEASE, help="Go on for so many seconds; 0: until every row of the output is processed.", default=0.0
)


def _writable(config: Path, _: dict[str, Any]) -> Pipeline:
    return writable(config)


def _rebuilds(what: str, how: str) -> Command:
    help_ = f"Rebuild {how}. Stop joins first, and verify after."
    return Command(f"{what} rebuild", JOBS["rebuild"], fixed={"what": what}, help=help_, replica=None, follow=_rebuilt)


COMMANDS = (
    Command("run", JOBS["run"], _writable, more=(_LEASE,), replica=joining_name),
    Command("drain", JOBS["drain"], _writable, replica=joining_name, follow=waiting, ends=_sums),
    Command("retry", JOBS["retry"], _writable),
    Command("redrive", JOBS["redrive"], _writable),
    Command("process", JOBS["process"], _writable, more=(_UNTIL_DONE, _SUMS)),
    Command("verify", JOBS["verify"]),
    Command("quality", JOBS["quality"], _before_quality),
    Command("close", JOBS["close_day"], _before_close, more=(_WAIT,), positional="date", as_rows=True, ends=_closed),
    Command("backfill", JOBS["backfill"], _before_backfill, complete=_downstream),
    Command("gc", JOBS["gc"]),
    Command("reshard", JOBS["reshard"]),
    _rebuilds("registry", "a lost or damaged registry from the outputs"),
    _rebuilds("journal", "a lost journal from outputs and landed tables"),
    Command("forget", JOBS["forget"], _before_forget, follow=_forgotten, fails=lambda found: bool(found["open"]),
            more=(Argument("list", bool, "Ids of all that was ever forgotten; starts no Spark.", False),)),
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
    (group, _, name), help_ = command.name.rpartition(" "), command.help or command.job.summary
    if name in GROUPS:
        GROUPS[name].callback(help=help_)(alone(act))
    else:
        (GROUPS[group] if group else app).command(name=name, help=help_)(act)


for one in COMMANDS:
    _register(one)
for title, members in GROUPS.items():
    app.add_typer(members, name=title)
