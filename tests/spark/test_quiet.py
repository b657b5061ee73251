"""What a session in the command's own process says on stderr, and leaves in the folder that it is started in."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import os, signal, sys, time
from clickjoin.spark.failures import lost_jvm
from clickjoin.spark.session import in_process

spark = in_process(cores="1", memory="1g")

def fail(batches):
    raise FileNotFoundError("deleted while it was read")
    yield

try:
    spark.range(1).mapInArrow(fail, "id BIGINT").collect()
except Exception as error:
    assert "deleted while it was read" in str(error)
spark.range(1).write.format("delta").save("table")
spark._jvm.org.apache.logging.log4j.LogManager.getLogger("somebody").error("a real error")
os.kill(int(open(f"/proc/self/task/{os.getpid()}/children").read().split()[0]), signal.SIGKILL)
time.sleep(1)
try:
    spark.range(1).collect()
except Exception as error:
    assert lost_jvm(error), repr(error)
    print("lost")
"""


def test_quiet(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    env = {**os.environ, "PYTHONPATH": str(root / "spark_apps")}
    env.pop("SPARK_LOCAL_IP", None)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=180
    )
    assert (done.returncode, done.stdout) == (0, "lost\n"), done.stderr
    said = [line for line in done.stderr.splitlines() if not line.startswith(("NOTE: ", "WARNING: Using incubator"))]
    assert [line.partition(" ")[2] for line in said] == ["Spark: ERROR somebody: a real error"], done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["table"]
