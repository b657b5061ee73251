"""Runs the test suites in two processes side by side: most of their time goes into waiting for one thread of Spark.

    .venv/bin/python -m tests.suites [pytest's options]

What the first prints is seen at once; what the second prints, when it has ended.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile

GROUPS = (("tests/unit", "tests/airflow", "tests/faults"), ("tests/spark",))


def main() -> int:
    """Run all; the exit code is that of the first group that failed, or 0."""
    command = [sys.executable, "-m", "pytest", "--durations=15", *sys.argv[1:]]
    with tempfile.TemporaryFile() as output:
        second = subprocess.Popen([*command, "-p", "no:cacheprovider", *GROUPS[1]], stdout=output, stderr=output)
        try:
            codes = [subprocess.run([*command, *GROUPS[0]]).returncode, second.wait()]
        except BaseException:
            second.terminate()
            raise
        output.seek(0)
        print(f"\n===== {' '.join(GROUPS[1])} =====", flush=True)
        sys.stdout.buffer.write(output.read())
        sys.stdout.flush()
    return next((code for code in codes if code), 0)


if __name__ == "__main__":
    sys.exit(main())
