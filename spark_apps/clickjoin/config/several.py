"""Several pipelines' files, as one task joins them: one that is wrong does not keep the others from being read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from clickjoin.config.pipeline import Pipeline, load
from clickjoin.model.errors import ConfigError


@dataclass(frozen=True)
class Several:
    """Pipelines by their files. `broken`: why files cannot be read, by path."""

    good: tuple[Pipeline, ...]
    broken: Mapping[str, str]

    @property
    def pipeline(self) -> str:
        """What they are called together."""
        return f"of {len(self.good)} pipelines"

    @property
    def needs_s3(self) -> bool:
        """Whether Spark has to commit to S3."""
        return any(pipeline.needs_s3 for pipeline in self.good)


def load_several(files: str) -> Several:
    """Read and validate pipelines' files, with `:` between them as in PATH. Errors: ConfigError where none is named."""
    paths = [path for path in files.split(os.pathsep) if path]
    if not paths:
        raise ConfigError("no pipeline's file is named", remedy="Give their paths, with `:` between them")
    good, broken = list[Pipeline](), dict[str, str]()
    for path in paths:
        try:
            good.append(load(path))
        except ConfigError as error:
            broken[path] = str(error)
    return Several(tuple(good), broken)
