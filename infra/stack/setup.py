"""What Airflow is made of: its database, its executor, how many schedulers and workers, and their broker."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Self
from urllib.parse import urlsplit

from bootstrap import Problem

from .home import Home, write_private

# Settings of `make up`, as variables: addresses of one's own hold passwords, which a command line would show to all.
NAMES = ("DATABASE", "EXECUTOR", "SCHEDULERS", "WORKERS", "BROKER")
_FILE = "setup.json"
_MOST = 16
_DRIVER = "postgresql+psycopg2"


@dataclass(frozen=True)
class Setup:
    """`database`: sqlite, postgres (the stack's own), or a URL. `broker`, for celery: redis (its own), or a URL."""

    database: str = "sqlite"
    executor: str = "local"
    schedulers: int = 1
    workers: int = 1
    broker: str = "redis"

    @classmethod
    def given(cls, said: Mapping[str, str], before: Setup | None = None) -> Self:
        """What the variables say; what they do not stays as before. Errors: Problem for what cannot work."""
        found = {name: said[name].strip() for name in NAMES if said.get(name, "").strip()}
        kept = before._variables() if before else {}
        if found.get("DATABASE") == "sqlite":
            kept = {}  # all else needs another database
        if found.get("EXECUTOR") == "local":
            kept = {name: value for name, value in kept.items() if name not in ("WORKERS", "BROKER")}
        all_of_it = kept | found
        database = all_of_it.get("DATABASE", "sqlite")
        if database.partition("://")[:2] == ("postgresql", "://"):
            database = database.replace("postgresql", _DRIVER, 1)
        made = cls(
            database,
            all_of_it.get("EXECUTOR", "local"),
            _count("SCHEDULERS", all_of_it),
            _count("WORKERS", all_of_it),
            all_of_it.get("BROKER", "redis"),
        )
        made._require_fit(all_of_it)
        return made

    def _variables(self) -> dict[str, str]:
        """The variables that say this; those that are as they are anyhow are left out."""
        usual = asdict(Setup())
        return {name.upper(): str(value) for name, value in asdict(self).items() if value != usual[name]}

    def _require_fit(self, said: Mapping[str, str]) -> None:
        if self.database not in ("sqlite", "postgres") and not self.database.startswith(f"{_DRIVER}://"):
            raise Problem(
                f"DATABASE is {shown(self.database)}: write sqlite, postgres, or {_DRIVER}://USER:PASSWORD@HOST/NAME"
            )
        if self.executor not in ("local", "celery"):
            raise Problem(f"EXECUTOR is {self.executor}: write local or celery")
        remedy = f"add DATABASE=postgres, or the URL of yours ({_DRIVER}://…)"
        if self.database == "sqlite" and self.executor == "celery":
            raise Problem(f"EXECUTOR=celery keeps results in Airflow's database, which cannot be SQLite: {remedy}")
        if self.database == "sqlite" and self.schedulers > 1:
            raise Problem(
                f"SCHEDULERS={self.schedulers} cannot work on SQLite, where schedulers cannot lock rows: {remedy}"
            )
        if self.executor == "local" and (extra := [name for name in ("WORKERS", "BROKER") if name in said]):
            raise Problem(f"{' and '.join(extra)}: schedulers run all tasks themselves; add EXECUTOR=celery")
        if self.broker != "redis" and "://" not in self.broker:
            raise Problem(f"BROKER is {self.broker}: write redis, or the URL of yours (redis://:PASSWORD@HOST:6379/0)")

    @classmethod
    def of(cls, home: Home) -> Self | None:
        """What was started last in a folder; None where nothing was."""
        try:
            return cls(**json.loads((home.folder / _FILE).read_text()))
        except FileNotFoundError:
            return cls() if (home.folder / "airflow/airflow.db").exists() else None

    def remember(self, home: Home) -> None:
        """For who stops it, looks at it or starts it again."""
        write_private(home.folder / _FILE, json.dumps(asdict(self)))

    def __str__(self) -> str:
        """As it is written behind `make up`, without passwords."""
        parts = [f"DATABASE={shown(self.database)}", f"EXECUTOR={self.executor}", f"SCHEDULERS={self.schedulers}"]
        if self.executor == "celery":
            parts += [f"WORKERS={self.workers}", f"BROKER={shown(self.broker)}"]
        return " ".join(parts)

    def rows(self, home: Home) -> str:
        """Where Airflow's database lies."""
        own = {"sqlite": home.folder / "airflow/airflow.db", "postgres": home.folder / "postgres"}
        return str(own.get(self.database) or shown(self.database))


def shown(url: str) -> str:
    """An address without its user and password."""
    if "://" not in url:
        return url
    return urlsplit(url)._replace(netloc=urlsplit(url).netloc.rpartition("@")[2], query="").geturl()


def _count(name: str, said: Mapping[str, str]) -> int:
    text = said.get(name, "1")
    if not text.isdecimal() or not 1 <= int(text) <= _MOST:
        raise Problem(f"{name} is {text}: write a number from 1 to {_MOST}")
    return int(text)
