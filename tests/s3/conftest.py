"""The S3 server of these tests, and logs on it."""

from __future__ import annotations

from tests.s3.buckets import environment, feed, logs, name
from tests.s3.fixtures import gateway
from tests.s3.places import proxy

__all__ = ["environment", "feed", "gateway", "logs", "name", "proxy"]
