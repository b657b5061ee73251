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


SHARED = """\
import pyarrow as pa
from clickjoin.kernel import handshake
from clickjoin.kernel.handshake import checked
loads, made = handshake.loads, []
handshake.loads = lambda code: made.append(1) or loads(code)
tasks = [checked(lambda rows, extra=extra: [*rows, extra]) for extra in range(5)]
assert [list(tasks[0]([7])) for _ in range(3)] == [[7, 0]] * 3
first = len(made)
assert [list(task([7])) for task in tasks] == [[7, extra] for extra in range(5)]
again = len(made)
assert list(tasks[0]([7])) == [7, 0]
print(first, again - first, len(made) - again, pa.default_memory_pool().backend_name)
"""


def test_tasks_of_a_job_have_their_code_read_once_and_the_latest_are_kept() -> None:
    done = subprocess.run([sys.executable, "-c", SHARED], check=True, capture_output=True, text=True)
    first, others, again, pool = done.stdout.split()
    assert (first, others, again) == ("1", "4", "1")  # of five the one that ran longest ago has gone
    assert pool == "system"  # freed memory stays with the process


GROWN = """\
from pathlib import Path
import pyarrow as pa
from clickjoin.kernel.handshake import prepare
def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) >> 8
prepare()
seen = []
for turn in range(12):
    held = [pa.repeat(number, (40 + 13 * turn % 7) << 10) for number in range(400)]
    held = [pa.concat_arrays(held[at : at + 20]) for at in range(0, 400, 20)]
    seen.append(resident())
print(max(seen[:6]), max(seen))
"""


def test_a_worker_does_not_grow_by_what_it_has_freed() -> None:
    done = subprocess.run([sys.executable, "-c", GROWN], check=True, capture_output=True, text=True)
    before, after = map(int, done.stdout.split())
    assert 100 < before <= after < 1.3 * before
