"""A lost Spark is told from a failed job."""

from __future__ import annotations

import subprocess
import sys

import pytest
from pyspark.errors.exceptions.connect import SparkConnectGrpcException

from clickjoin.errors import ServerLost, SourceError
from clickjoin.lost import gist, is_lost

GRPC = '<_InactiveRpcError of RPC that terminated with:\n\tstatus = StatusCode.UNAVAILABLE\n\tdetails = "failed to connect"'


@pytest.mark.parametrize("error", [ServerLost("gone"), SparkConnectGrpcException(GRPC)])
def test_lost(error: Exception) -> None:
    assert is_lost(error)


@pytest.mark.parametrize(
    "error", [SourceError("x"), ConnectionRefusedError("some other server"), ValueError("UNAVAILABLE")]
)
def test_not_lost(error: Exception) -> None:
    assert not is_lost(error)


def test_gist() -> None:
    assert gist(SparkConnectGrpcException(GRPC)) == "failed to connect"
    assert gist(ValueError("a\nb")) == "a"


def test_one_line_and_exit_code_3() -> None:
    """The command line ends at once, whatever hangs behind it."""
    code = (
        "from clickjoin import cli\n"
        "from pyspark.errors.exceptions.connect import SparkConnectGrpcException\n"
        "def app(**_): raise SparkConnectGrpcException('UNAVAILABLE')\n"
        "cli.app = app\n"
        "cli.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 3, done.stderr
    assert done.stderr == "clickjoin: Spark is lost (UNAVAILABLE). Run it again: what was cut short goes first\n"
