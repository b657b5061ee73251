"""Runs the test suites, two side by side: most of their time goes into waiting for one thread of Spark.

The second row gives way (`nice`): suites of servers wait for what Airflow does, for so many seconds and no longer.

    .venv/bin/python -m tests.suites [pytest's options]

One row begins with the suites that start servers, the other with those of Spark; whichever is free takes the next one,
until they meet. What the first row prints is seen at once; what the second prints, between suites of the first.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import IO, NamedTuple

from tests import class_archive

Suite = tuple[str, ...]  # arguments of one run of pytest
SERVERS: tuple[Suite, ...] = (
    ("tests/airflow/real",),
    ("tests/faults",),
    ("tests/s3",),
    ("tests/kafka",),
    ("tests/cluster",),
    ("tests/airflow/wheels",),
    ("tests/airflow/site",),
    ("tests/conformance",),
)
# What only targets of their own run; see the Makefile.
LEFT_OUT = ("tests/airflow/celery", "tests/compose", "tests/k8s")
# Half of the files of tests/spark, as it takes; a third part would cost more for one more Spark than it would balance.
SPARK = (
    "verify", "recover", "replay", "retry", "replicas", "lost", "accounts", "local", "side_outputs", "clocks", "gc",
    "agreement", "damage", "compaction", "lake", "rebuild", "backup", "dates", "group", "overlap",
)  # fmt: skip

SIMULATOR = "tests/unit/test_simulator.py"  # as long as the other half of tests/unit: the rows meet in the middle


class Ended(NamedTuple):
    """A suite that was run."""

    suite: Suite
    code: int
    seconds: float


def suites() -> list[Suite]:
    """All, in the order that the first row takes them in; the second begins at the end."""
    servers = [f"--ignore={folder}" for folder in (*(folder for (folder,) in SERVERS), *LEFT_OUT)]
    half = tuple(f"tests/spark/test_{name}.py" for name in SPARK)
    return [
        *SERVERS,
        ("tests/airflow", *servers),
        ("tests/unit", "--ignore-glob=tests/unit/test_[n-z]*"),
        ("tests/unit", "--ignore-glob=tests/unit/test_[!n-z]*", f"--ignore={SIMULATOR}"),
        (SIMULATOR,),
        ("tests/spark", *(f"--ignore={file}" for file in half)),
        half,
    ]


def main() -> int:
    """Run all; the exit code is that of a suite that failed, or 0."""
    os.environ["JDK_JAVA_OPTIONS"] = class_archive.options(os.environ.get("JDK_JAVA_OPTIONS", ""))
    waiting, printed = deque(suites()), SimpleQueue[IO[bytes]]()
    try:
        with ThreadPoolExecutor(1) as beside:
            second = beside.submit(row, waiting.pop, printed.put)
            ended = row(waiting.popleft, None, lambda: show(printed))
            ended += second.result()
    finally:
        waiting.clear()  # of a run that is interrupted the other row begins no more
        show(printed)
    for done in sorted(ended, key=lambda done: -done.seconds):
        print(f"{done.seconds:6.0f} s, exit code {done.code}: {' '.join(done.suite)[:90]}")
    return next((done.code for done in ended if done.code), 0)


def row(
    take: Callable[[], Suite],
    keep: Callable[[IO[bytes]], object] | None,
    after: Callable[[], object] = lambda: None,
) -> list[Ended]:
    """Run suites until none is left. What one started for all of its tests ends with it.

    `keep` is given what each printed; without it they print as they go. `after` is called after each.
    """
    ended = []
    while True:
        try:
            suite = take()
        except IndexError:
            return ended
        begun = time.monotonic()
        code = run(suite, keep)
        ended.append(Ended(suite, code, time.monotonic() - begun))
        after()


def run(suite: Suite, keep: Callable[[IO[bytes]], object] | None) -> int:
    """One run of pytest; its exit code."""
    if keep is None:
        return subprocess.run(command(suite)).returncode
    output = tempfile.TemporaryFile()  # noqa: SIM115  (who it is given to closes it)
    code = subprocess.run(["nice", "-n", "5", *command(suite)], stdout=output, stderr=output).returncode
    keep(output)
    return code


def command(suite: Suite) -> list[str]:
    """Without pytest's cache, which two that run at once would write over each other."""
    return [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--durations=15", *sys.argv[1:], *suite]


def show(printed: SimpleQueue[IO[bytes]]) -> None:
    """Print what the other row has printed so far."""
    while not printed.empty():
        with printed.get() as output:
            output.seek(0)
            sys.stdout.buffer.write(output.read())
            sys.stdout.flush()


def files(suite: Suite) -> list[Path]:
    """The test files of a suite, as pytest finds them."""
    left = [argument.partition("=")[2] for argument in suite if argument.startswith("--ignore")]
    given = [Path(argument) for argument in suite if not argument.startswith("-")]
    found = [file for path in given for file in (path.rglob("test_*.py") if path.is_dir() else [path])]
    return [file for file in found if not any(file.is_relative_to(one) or file.match(one) for one in left)]


if __name__ == "__main__":
    sys.exit(main())
