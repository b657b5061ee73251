"""`python -m stack.watch PARENT HOME`: stop the stack in HOME when PARENT is gone.

Without it a test run that is killed would leave its servers behind.
"""

from __future__ import annotations

import os
import sys
import time

from . import processes
from .home import Home

NAME = "watch"


def start(home: Home, env: dict[str, str]) -> processes.Server:
    """Watch over this process."""
    command = [sys.executable, "-m", "stack.watch", str(os.getpid()), str(home.folder)]
    return processes.start(NAME, command, env, home.folder, home.logs / "watch.log")


def main(parent: int, folder: str) -> None:
    """Wait for the parent's end, then stop what it started."""
    from .stack import Stack

    while os.getppid() == parent:
        time.sleep(0.5)
    Stack(folder).stop()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
