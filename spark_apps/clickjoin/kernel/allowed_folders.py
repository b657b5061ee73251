"""Which folders raw logs may be read from, checked on the open file: a link may lead elsewhere by then."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable
from typing import NamedTuple

from clickjoin.model.errors import ConfigError

# The local stack's folder of state, wherever it lies: passwords, keys, addresses with their tokens.
STATE = ".run"
_WILD = re.compile(r"[*?[]")


class Outside(FileNotFoundError):
    """A file that a link has led out of the fence since it was listed: for its reader it is gone."""


class AllowedFolders(NamedTuple):
    """Folders that files may be read below, and folders inside of them that none is read below; links resolved.

    `prefixes`: s3://BUCKET/FOLDER that objects may be read below.
    """

    roots: tuple[str, ...]
    closed: tuple[str, ...]
    prefixes: tuple[str, ...] = ()

    def require_on_s3(self, pattern: str) -> None:
        """Check where a glob of objects begins. Errors: ConfigError."""
        base = _WILD.split(pattern, maxsplit=1)[0]
        if ".." in pattern.split("/") or not _below(base.rpartition("/")[0], self.prefixes):
            where = f"only below {', '.join(self.prefixes)}" if self.prefixes else "from no bucket at all"
            raise ConfigError(
                f"{pattern}: raw logs on S3 are taken {where}",
                remedy="Copy the logs there, or name their place in backfill.roots of the pipeline's file",
            )

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
