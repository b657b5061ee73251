"""What a task does before its own work, in a process of its own: a worker of Spark is used for many."""

from __future__ import annotations

import subprocess
import sys

TASKS = """\
import gc
from clickjoin.kernel.handshake import checked
frozen = [gc.get_freeze_count()]
for _ in range(2):
    assert list(checked(iter)([1])) == [1]
    frozen.append(gc.get_freeze_count())
print(*frozen)
"""


def test_what_a_worker_has_loaded_is_left_out_of_its_collections_once() -> None:
    done = subprocess.run([sys.executable, "-c", TASKS], check=True, capture_output=True, text=True)
    before, first, second = map(int, done.stdout.split())
    assert before < 100 < first == second
