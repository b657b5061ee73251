"""Which folders the raw logs of a backfill may come from: whoever starts one names a glob, and must not read the rest.

Runs on workers too: imports no planning.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from clickjoin.errors import ConfigError

if TYPE_CHECKING:
    from clickjoin.config import Pipeline

# The local stack's folder of state, wherever it lies: passwords, keys, addresses with their tokens.
STATE = ".run"
_LITERAL = re.compile(r"\[([*?[])\]")


class Outside(FileNotFoundError):
    """A file that a link has led out of the fence since it was listed: for its reader it is gone."""


class Fence(NamedTuple):
    """Folders that files may be read below, and folders inside of them that none is read below; links resolved."""

    roots: tuple[str, ...]
    closed: tuple[str, ...]

    def require(self, path: str) -> None:
        """Check where a file or folder, or the folder that a glob starts from, really lies. Errors: ConfigError."""
        real = os.path.realpath(path)
        if closed := self._closed(real):
            raise ConfigError(
                f"{path}: lies below {closed}, where passwords and keys are kept: no raw logs are read from there",
                remedy="Move the logs out of it, or name files in the glob that lie elsewhere",
            )
        if not _below(real, self.roots):
            where = f"only below {', '.join(self.roots)}" if self.roots else "from no folder at all"
            raise ConfigError(
                f"{path}: raw logs are taken {where}, wherever links lead",
                remedy="Move the logs there, or name their folder in backfill.roots of the pipeline's file",
            )

    def check(self, fd: int, path: str) -> None:
        """Check where an open file really lies. Errors: Outside."""
        real = _real(fd, path)
        if self._closed(real) or not _below(real, self.roots):
            raise Outside(errno.ENOENT, "a link leads out of the folders that raw logs are taken from", path)

    def holds(self, path: str) -> bool:
        """Whether a path may be read as things are now."""
        real = os.path.realpath(path)
        return _below(real, self.roots) and not self._closed(real)

    def _closed(self, real: str) -> str:
        parts = real.split("/")
        if STATE in parts:
            return "/".join(parts[: parts.index(STATE) + 1])
        return next((folder for folder in self.closed if _below(real, (folder,))), "")


def fence_of(pipeline: Pipeline) -> Fence:
    """The pipeline's fence: `backfill.roots` of its file, else the folders that its sources' globs start from."""
    given = pipeline.backfill.roots
    if given is None:
        own = (base_of(side.source.path)[0] for side in (pipeline.primary, pipeline.foreign))
        given = tuple(folder for folder in own if os.path.realpath(folder) != "/")
    return Fence(_resolved(given), _resolved(_secret()))


def base_of(pattern: str) -> tuple[str, tuple[str, ...]]:
    """The folder that a glob starts from, which has no wildcard, and the parts of the pattern below it."""
    parts = pattern.split("/")
    wild = (at for at, part in enumerate(parts[:-1]) if re.search(r"[*?[]", _LITERAL.sub("", part)))
    fixed = next(wild, len(parts) - 1)
    below = parts[fixed:]
    base = "/".join(_LITERAL.sub(r"\1", part) for part in parts[:fixed])
    return base or "/", tuple([*below, "*"] if below[-1] == "**" else below)


def _secret() -> Iterable[str]:
    """Places of Airflow and of the local stack, as this process's environment names them."""
    yield os.environ.get("AIRFLOW_HOME") or "~/airflow"
    for name in ("CLICKJOIN_HOME", "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE", "CLICKJOIN_REMOTE"):
        yield os.environ.get(name, "").partition("sc://")[0]


def _resolved(folders: Iterable[str]) -> tuple[str, ...]:
    found = (os.path.realpath(os.path.expanduser(folder)) for folder in folders if folder)  # noqa: PTH111
    return tuple(dict.fromkeys(found))


def _below(real: str, folders: Iterable[str]) -> bool:
    return any(real == folder or real.startswith(folder.rstrip("/") + "/") for folder in folders)


def _real(fd: int, path: str) -> str:
    """Where an open file lies: by the kernel, or else by its name if that is still the same file."""
    try:
        return os.readlink(f"/proc/self/fd/{fd}")  # noqa: PTH115
    except OSError:
        real = os.path.realpath(path)
        try:
            same = os.path.samestat(os.stat(real, follow_symlinks=False), os.fstat(fd))  # noqa: PTH116
        except OSError:
            same = False
        return real if same else ""
