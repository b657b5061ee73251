"""Where tables and logs lie."""

from __future__ import annotations

import re

S3 = "s3://"


def is_on_s3(place: str) -> bool:
    """Whether a place lies on S3."""
    return place.startswith(S3)


def above_globs(place: str) -> str:
    """The nearest folder that holds all that a glob can match."""
    literal, *rest = re.split(r"[*?\[]", place, maxsplit=1)
    return literal.rpartition("/")[0] if rest else place
