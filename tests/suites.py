"""Runs the test suites, in two rows side by side: most of their time goes into waiting for one thread of Spark.

    .venv/bin/python -m tests.suites [pytest's options]

What the first row prints is seen at once; what the second prints, when it has ended.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import IO

SERVERS = (
    "tests/airflow/site",
    "tests/airflow/real",
    "tests/airflow/wheels",
    "tests/airflow/celery",
    "tests/faults",
    "tests/s3",
    "tests/kafka",
    "tests/cluster",
)
FIRST = (
    ("tests/unit", "tests/airflow", *(f"--ignore={folder}" for folder in SERVERS)),
    ("tests/airflow/site",),
    ("tests/faults",),
    ("tests/s3",),
    ("tests/kafka",),
    ("tests/cluster",),
    ("tests/airflow/real",),
    ("tests/airflow/wheels",),
)
SECOND = (("-p", "no:cacheprovider", "tests/spark"),)  # as long as all of the others


def main() -> int:
    """Run all; the exit code is that of the first suite that failed, or 0."""
    with tempfile.TemporaryFile() as output, ThreadPoolExecutor(1) as beside:
        second = beside.submit(row, SECOND, output)
        codes = row(FIRST, None)
        codes += second.result()
        output.seek(0)
        sys.stdout.buffer.write(output.read())
        sys.stdout.flush()
    return next((code for code in codes if code), 0)


def row(suites: Sequence[Sequence[str]], output: IO[bytes] | None) -> list[int]:
    """Run some suites one after the other; their exit codes. What one started for all of its tests ends with it."""
    codes = []
    for suite in suites:
        command = [sys.executable, "-m", "pytest", "--durations=15", *sys.argv[1:], *suite]
        codes.append(subprocess.run(command, stdout=output, stderr=output).returncode)
    return codes


if __name__ == "__main__":
    sys.exit(main())
