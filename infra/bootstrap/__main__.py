"""`python -m bootstrap setup|s3|doctor|lock|docs`."""

from __future__ import annotations

import sys

from . import Problem, doctor, environment, jars, locks, logstore, site
from .once import exclusive


def setup() -> None:
    """Make `.venv` and `.jars` what the lock files say."""
    doctor.check_machine()
    with exclusive():
        environment.ensure()
        jars.ensure()
        logstore.ensure()


def s3() -> None:
    """Make `.jars/s3` what its lock file says: JARs that Spark needs for a lake on S3."""
    setup()
    with exclusive():
        jars.ensure(jars.S3_JARS, jars.S3_LOCK, jars.S3_IVY)
    print("Spark can use a lake on S3: see docs/s3.md", flush=True)


def docs() -> None:
    """Build the documentation's site in `.run/site`; a link or an anchor that leads nowhere is an error."""
    with exclusive():
        environment.ensure_docs()
    site.build()


def main(arguments: list[str]) -> int:
    """Run one command; a known problem is one line, never a traceback."""
    commands = {"setup": setup, "s3": s3, "doctor": doctor.report, "lock": locks.write, "docs": docs}
    if len(arguments) != 1 or arguments[0] not in commands:
        print("usage: python -m bootstrap " + "|".join(commands), file=sys.stderr)
        return 2
    try:
        commands[arguments[0]]()
    except Problem as problem:
        print(f"clickjoin: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("clickjoin: interrupted; run it again to go on where it stopped", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
