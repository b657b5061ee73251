"""Processor time of the server that a contender's lake or logs lie on: here it shares the contender's cores."""

from __future__ import annotations

from contextlib import suppress

import psutil

_SERVERS = ("versitygw", "kafka.Kafka")


def server_seconds() -> float:
    """Seconds of a processor that S3 servers and brokers have used so far; 0 where there are none."""
    spent = 0.0
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):  # it has just ended
            if any(name in argument for name in _SERVERS for argument in process.cmdline()):
                spent += sum(process.cpu_times()[:2])
    return spent
