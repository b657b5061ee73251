"""Runs the test suites, two side by side: most of their time goes into waiting for one thread of Spark.

    .venv/bin/python -m tests.suites [pytest's options]

What the first prints is seen at once; what the second prints, when it has ended.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile

SERVERS = ("tests/airflow/site", "tests/airflow/real", "tests/faults")
FIRST = (("tests/unit", "tests/airflow", *(f"--ignore={folder}" for folder in SERVERS)), *((one,) for one in SERVERS))
SECOND = ("tests/spark",)


def main() -> int:
    """Run all; the exit code is that of the first suite that failed, or 0."""
    command = [sys.executable, "-m", "pytest", "--durations=15", *sys.argv[1:]]
    with tempfile.TemporaryFile() as output:
        second = subprocess.Popen([*command, "-p", "no:cacheprovider", *SECOND], stdout=output, stderr=output)
        try:
            # Each in a process of its own: what it started for all of its tests ends with it.
            codes = [*(subprocess.run([*command, *suite]).returncode for suite in FIRST), second.wait()]
        except BaseException:
            second.terminate()
            raise
        output.seek(0)
        print(f"\n===== {' '.join(SECOND)} =====", flush=True)
        sys.stdout.buffer.write(output.read())
        sys.stdout.flush()
    return next((code for code in codes if code), 0)


if __name__ == "__main__":
    sys.exit(main())
