"""The S3 server of these tests."""

from __future__ import annotations

from tests.s3.fixtures import gateway

__all__ = ["gateway"]
