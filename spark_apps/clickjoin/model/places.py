"""Where tables and logs lie."""

from __future__ import annotations

S3 = "s3://"


def is_on_s3(place: str) -> bool:
    """Whether a place lies on S3."""
    return place.startswith(S3)
