"""Spark's own connector to Kafka, for Structured Streaming as a peer; the product does not need it."""

from __future__ import annotations

import os
from pathlib import Path

from bootstrap import ROOT, jars
from bootstrap.once import exclusive

HERE = Path(__file__).parent
PLACE = ROOT / ".run/spark-kafka"


def ensure() -> None:
    """Fetch it as locked, and have the next Spark of this process find it on its class path."""
    lock = HERE / "jars.lock"
    with exclusive():
        jars.ensure(PLACE, lock, HERE / "ivy.xml")
    path = ":".join(str(PLACE / jar.file) for jar in jars.read_lock(lock))
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"--driver-class-path {path} pyspark-shell"
