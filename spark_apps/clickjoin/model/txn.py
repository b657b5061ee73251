"""The pair that makes a commit idempotent: Delta's own application transaction."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Txn:
    """`txnAppId` and `txnVersion` of a commit: a table takes each version of an app once, and only growing ones."""

    app_id: str
    version: int
