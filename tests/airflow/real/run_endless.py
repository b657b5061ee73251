"""Stop a job that would hold all of the server's cores for ever, and see that they are free. Arguments: URL, CONFIG."""

from __future__ import annotations

import signal
import sys
import time
from typing import Any

from clickjoin.jobs import joining
from clickjoin.spark import session
from clickjoin_airflow.connect import Connect
from clickjoin_airflow.job import JobRun
from clickjoin_airflow.verdict import Stopped


def endless(spark: Any, *_: object, **__: object) -> dict[str, Any]:
    spark.range(0, 10**15, 1, 64).selectExpr("sum(id % 7)").collect()
    return {}


def stop(*_: object) -> None:
    raise Stopped("asked to stop")


def main(url: str, config: str) -> None:
    joining.join = endless
    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 8)
    try:
        Connect({"url": url}).run(JobRun("join", config, "main", None, "tag"), print)
        sys.exit("the job ended by itself")
    except Stopped:
        begun = time.monotonic()
    assert session.connect(url).range(0, 1000, 1, 4).count() == 1000
    print(f"free {time.monotonic() - begun:.1f} s after the job was stopped")


if __name__ == "__main__":
    main(*sys.argv[1:])
