"""A job as data: its name, what it takes, reads and writes, and the function behind it. Standard library only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from clickjoin.model.errors import ConfigError

_WORDS = {"true": True, "false": False}


@dataclass(frozen=True)
class Argument:
    """One argument of a job, passed by keyword; `kind` is bool, int, float or str, a default of None means unset.

    An argument with a `title` is a field of Airflow's form. `option`: its name there and on the command line, where it
    differs. `format` (date, date-time), `choices`, `minimum` and `maximum` as in JSON Schema. `many`: the command
    line takes several, and the job a line of text for each. `by_scheduler`: the command line does not offer it.
    """

    name: str
    kind: type
    help: str
    default: Any = None
    required: bool = False
    option: str = ""
    title: str = ""
    format: str = ""
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    many: bool = False
    by_scheduler: bool = False

    @property
    def option_name(self) -> str:
        """Its name in a form and on the command line."""
        return self.option or self.name

    @property
    def shown_default(self) -> str:
        """The default, for people to read."""
        return "-" if self.default is None else str(self.default).lower() if self.kind is bool else f"{self.default}"

    def schema(self) -> dict[str, Any]:
        """Its JSON Schema."""
        name = {bool: "boolean", int: "integer", float: "number", str: "string"}[self.kind]
        optional = self.default is None and not self.required
        given = {"format": self.format, "minimum": self.minimum, "maximum": self.maximum, "enum": list(self.choices)}
        return {"type": ["null", name] if optional else name} | {
            key: value for key, value in given.items() if value not in (None, "", [])
        }

    def parse(self, value: Any) -> Any:
        """A value as the job takes it: a template makes text of everything. None: unset, so that the default holds.

        Errors: ConfigError for text that is not of this kind.
        """
        text = str(value).strip()
        if value is None or text in ("", "None"):
            return None
        try:
            if self.kind is bool:
                return value if isinstance(value, bool) else _WORDS[text.lower()]
            return self.kind(value if self.kind is str else text)
        except (KeyError, ValueError) as error:
            raise ConfigError(f"{self.option_name}: {text!r} is no {self.kind.__name__}", remedy=self.help) from error


@dataclass(frozen=True)
class Job:
    """One job. `summary`: what it does, and the help of its commands. `reads` and `writes` name tables of
    `clickjoin.schemas`; `commands` those of the CLI that run it.

    `leased`: it takes `lease`, the seconds after which it returns. `needs_spark`: else it is called without a session.
    `several`: it works on several pipelines, whose files it is given with `:` between them.
    """

    name: str
    module: str
    summary: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    arguments: tuple[Argument, ...] = ()
    needs_spark: bool = True
    leased: bool = False
    commands: tuple[str, ...] = ()
    several: bool = False

    @property
    def form(self) -> tuple[Argument, ...]:
        """The arguments that Airflow's form asks for."""
        return tuple(item for item in self.arguments if item.title)

    def argument(self, name: str) -> Argument:
        """One of its arguments. Errors: ConfigError that lists those there are."""
        for item in self.arguments:
            if item.name == name:
                return item
        known = ", ".join(item.name for item in self.arguments) or "none"
        raise ConfigError(f"job {self.name} takes no {name!r}", remedy=f"It takes: {known}")

    def takes(self, name: str) -> bool:
        """Whether it has an argument of this name."""
        return any(item.name == name for item in self.arguments)

    def parse(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments as the job takes them, those that are set. Errors: ConfigError for unknown or misspelt ones."""
        parsed = {name: self.argument(name).parse(value) for name, value in arguments.items()}
        return {name: value for name, value in parsed.items() if value is not None}

    def load(self, config: str) -> Any:
        """The pipeline of a file, or those of several files. Errors: ConfigError."""
        from clickjoin.config import load, load_several

        return load_several(config) if self.several else load(config)

    def function(self) -> Callable[..., dict[str, Any]]:
        """What it runs; its module is loaded now."""
        found: Callable[..., dict[str, Any]] = getattr(import_module(self.module), self.name)
        return found

    def run(
        self,
        spark: Any,
        pipeline: Any,
        replica: str,
        report: Callable[[str], None],
        lease: float | None = None,
        **arguments: Any,
    ) -> dict[str, Any]:
        """Run it to its end; returns its summary, as plain data. `spark`: None where it needs none."""
        if self.leased:
            arguments["lease"] = lease
        return self.function()(spark, pipeline, replica, report, **arguments)
