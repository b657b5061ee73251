"""The ports of a Spark in this process: on loopback, and closed to who does not know the secret of this start."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from tests.intruder import LOOPBACK, intruder, listening

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def secret(spark: SparkSession) -> str:
    return str(spark.sparkContext._jvm.org.apache.spark.SparkEnv.get().securityManager().getSecretKey())


def test_all_ports_are_on_loopback(spark: SparkSession) -> None:
    found = listening(spark.sparkContext._gateway.proc.pid)
    assert {address for address, _ in found} <= LOOPBACK
    assert int(spark.conf.get("spark.driver.port")) in {port for _, port in found}


def test_the_driver_answers_who_knows_the_secret_alone(spark: SparkSession, secret: str) -> None:
    port = int(spark.conf.get("spark.driver.port"))
    with intruder() as other:
        assert other.asks(port).startswith("refused: ")
        assert other.asks(port, "another-secret").startswith("refused: ")
        assert "BlockManagerId(driver" in other.asks(port, secret)


def test_the_secret_is_in_no_process_list(spark: SparkSession, secret: str) -> None:
    assert len(secret) >= 32
    java = psutil.Process(spark.sparkContext._gateway.proc.pid)
    shown = " ".join(java.cmdline()) + Path(f"/proc/{java.pid}/environ").read_text()
    assert "spark.authenticate=true" in shown
    assert secret not in shown
    assert secret not in str(spark.sparkContext.getConf().getAll())
