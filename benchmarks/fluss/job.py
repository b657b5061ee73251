"""Flink's side of a delta join over Fluss: runs in its own environment, and imports nothing of the benchmarks'.

Reads one order a line (JSON: see `run`) and answers each with a line; its Java stays warm in between.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

from pyflink.common import Configuration
from pyflink.table import EnvironmentSettings, TableEnvironment

QUIET = 4  # looks, a quarter of a second apart, that have to find the same counts
PATIENCE = 300.0


class Stuck(Exception):
    """The job failed, or took longer than PATIENCE."""


def run(order: dict[str, Any]) -> dict[str, Any]:
    """Fill two tables and join them in one streaming job without end; stop it when it has nothing left to do.

    `order`: SQL `before` and `inserts` (lists), `save` (what to do with the result, of as many rows as `count` says)
    and `after` all; `lines` that the join has to read; `settings` of Flink's; `ports` for its own API, one a job.
    Returns `seconds` from submission until all pairs are written and a checkpoint holds, bytes of `state` in that, and
    the `plan`.
    """
    tables = _tables(order, order["settings"])
    statements = tables.create_statement_set()
    for insert in order["inserts"]:
        statements.add_insert_sql(insert)
    plan = statements.explain()
    start = time.perf_counter()
    job = statements.execute().get_job_client()
    api = f"http://127.0.0.1:{order['ports'][0]}/jobs/{job.get_job_id()}"
    _await_idle(api, order["lines"])
    _checkpoint(api)
    seconds = time.perf_counter() - start
    state = _ask(f"{api}/checkpoints")["latest"]["completed"]["state_size"]
    job.cancel().result()
    _save(order)
    tables.execute_sql(order["after"])
    return {"seconds": seconds, "state": state, "plan": plan}


def _tables(order: dict[str, Any], settings: dict[str, str], batch: bool = False) -> TableEnvironment:
    configuration = Configuration()
    for key, value in settings.items():
        configuration.set_string(key, value)
    builder = EnvironmentSettings.new_instance()
    builder = builder.in_batch_mode() if batch else builder.in_streaming_mode()
    tables = TableEnvironment.create(builder.with_configuration(configuration).build())
    for statement in order["before"]:
        tables.execute_sql(statement)
    return tables


def _save(order: dict[str, Any]) -> None:
    """Read the result back. A table of Fluss's has no end, but tells how many rows it holds."""
    settings, (_, first, second) = order["settings"], order["ports"]  # the last job's port is not free at once
    bare = {key: value for key, value in settings.items() if key.startswith(("rest.", "jobmanager."))}
    bare["rest.bind-port"] = str(first)
    counted = _tables(order, bare, batch=True).execute_sql(order["count"]).collect().next()[0]
    job = _tables(order, settings | {"rest.bind-port": str(second)}).execute_sql(order["save"]).get_job_client()
    api = f"http://127.0.0.1:{second}/jobs/{job.get_job_id()}"
    end, read = time.monotonic() + PATIENCE, 0
    while read < counted:
        if time.monotonic() > end:
            raise Stuck(f"{read} of {counted} rows read back")
        time.sleep(0.25)
        read = sum(
            part["metrics"]["read-records"] for part in _ask(api)["vertices"] if part["name"].startswith("Source")
        )
    _checkpoint(api)  # what was written is on the disk then
    job.cancel().result()


def _await_idle(api: str, lines: int) -> None:
    """Until the join has read all lines and the sink all that the join wrote, and that stays so."""
    end, quiet, last = time.monotonic() + PATIENCE, 0, (0, 0, 0)
    while quiet < QUIET:
        time.sleep(0.25)
        seen = _ask(api)
        if time.monotonic() > end or seen["state"] not in ("CREATED", "RUNNING", "RESTARTING"):
            raise Stuck(f"{seen['state']}: {last}")
        counts = {part["name"].split("[")[0]: part["metrics"] for part in seen["vertices"]}
        joined, sink = counts["DeltaJoin"], counts["Sink(shop.joined): Writer"]
        now = (joined["read-records"], joined["write-records"], sink["read-records"])
        quiet = quiet + 1 if now == last and now[0] >= lines and now[1] == now[2] else 0
        last = now


def _checkpoint(api: str) -> None:
    """Have one made, which has the sink flush. Flink declines as long as the tasks that filled the tables end."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        made = _ask(f"{api}/checkpoints", {"checkpointType": "FULL"})["request-id"]
        while (answer := _ask(f"{api}/checkpoints/{made}"))["status"]["id"] != "COMPLETED":
            time.sleep(0.05)
        if "failureCause" not in answer["operation"]:
            return
        time.sleep(0.05)
    raise Stuck("no checkpoint")


def _ask(url: str, body: dict[str, str] | None = None) -> Any:
    data = json.dumps(body).encode() if body else None
    for _ in range(40):
        try:
            with urlopen(Request(url, data, {"Content-Type": "application/json"}), timeout=5) as answer:
                return json.load(answer)
        except URLError:  # the job is not known yet
            time.sleep(0.25)
    raise Stuck(f"no answer from {url}")


def main() -> None:
    """Answer orders until there are no more."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever Java prints must not come between the answers
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main()
