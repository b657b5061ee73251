"""Which folders the raw logs of a backfill may come from: anyone who starts one names a glob."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from clickjoin.config import Files
from clickjoin.kernel.file_bytes import AllowedFolders
from clickjoin.model.places import is_on_s3

if TYPE_CHECKING:
    from clickjoin.config import Pipeline

_LITERAL = re.compile(r"\[([*?[])\]")


def fence_of(pipeline: Pipeline) -> AllowedFolders:
    """The pipeline's fence: `backfill.roots` of its file, else the folders that its sources' globs start from."""
    given = pipeline.backfill.roots
    if given is None:
        files = [item.source for item in pipeline.inputs if isinstance(item.source, Files)]
        own = (base_of(source.path)[0] for source in files)
        given = tuple(folder for folder in own if os.path.realpath(folder) != "/")
    on_s3 = tuple(folder.rstrip("/") for folder in given if is_on_s3(folder))
    return AllowedFolders(_resolved(folder for folder in given if not is_on_s3(folder)), _resolved(_secret()), on_s3)


def own_fence(pattern: str) -> AllowedFolders:
    """The fence of a pipeline's own source: any place but those of keys, unless its glob starts from there."""
    return AllowedFolders(("/",), _resolved(_secret()), own=_resolved([base_of(pattern)[0]]))


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
    for name in ("CLICKJOIN_HOME", "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE", "CLICKJOIN_SPARK_CONNECT"):
        yield os.environ.get(name, "").partition("sc://")[0]


def _resolved(folders: Iterable[str]) -> tuple[str, ...]:
    found = (os.path.realpath(os.path.expanduser(folder)) for folder in folders if folder)  # noqa: PTH111
    return tuple(dict.fromkeys(found))
