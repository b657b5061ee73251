"""The pipelines that schedules run."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from clickjoin.config import Pipeline
from clickjoin.model.places import declare_output
from tests.simulator import heartbeats, local_times, logs, matches
from tests.simulator.bent import Bent
from tests.simulator.oracle import MOST_ATTEMPTS

_SIDE = {"source": {"kind": "files", "path": "/nowhere/*"}, "event_id": "event_id", "event_time": "embedded"}
_PLAIN = "clickjoin.joiner.adapter:BothRecords"
ADAPTERS = {
    _PLAIN: 0.6,
    "tests.simulator.dropping:Dropping": 0.4,
}


def pipeline_of(bent: Bent, adapter: str, most: int) -> Pipeline:
    """The pipeline of a kind of schedule; `most` events a batch."""
    if bent.alone:
        return alone(adapter, most, bent.restamped if bent.alone == "id" else 0.0)
    if bent.beats:
        return heartbeats.beating(json.dumps(_fields(adapter, most, bent.delay)), by_itself=most % 2 > 0)
    if bent.process:
        return processed(adapter, most, bent.delay)
    if bent.times:
        return local(bent.times, adapter, most)
    if bent.match:
        return matched(adapter, most, bent.delay)
    return (watermarked if bent.absent else by_id if bent.by_id else pipeline)(adapter, most, bent.delay)


@lru_cache
def pipeline(adapter: str, max_events: int, delay: int = 10) -> Pipeline:
    """The pipeline of a schedule: buckets of a minute, kept for one, so that all of its life goes by."""
    return Pipeline.model_validate(_fields(adapter, max_events, delay))


@lru_cache
def by_id(adapter: str, max_events: int, delay: int) -> Pipeline:
    """The same, with events known by their ids alone, whose copies have other times."""
    whole = _fields(adapter, max_events, delay)
    whole["registry"] |= _by_id(Bent().restamped)
    return Pipeline.model_validate(whole)


def _by_id(restamped: float) -> dict[str, Any]:
    return {"identity": "id", "repeats": f"{2 * restamped + 10:.0f}s"}


@lru_cache
def alone(adapter: str, max_events: int, restamped: float) -> Pipeline:
    """The same of one stream; `restamped`: see Bent, 0 where events are known by id and time."""
    whole = _fields(adapter, max_events, 10)
    del whole["primary"], whole["foreign"], whole["retry"], whole["retention"]
    whole |= {"pipeline": "one", "stream": _SIDE}
    if restamped:
        whole["registry"] |= _by_id(restamped)
    made = Pipeline.model_validate(whole)
    declare_output(made.root, "deduplicated")
    return made


def _fields(adapter: str, max_events: int, delay: int) -> dict[str, Any]:
    return {
        "pipeline": "sim",
        "engine": "arrow",
        "lake": "/sim",
        "primary": _SIDE,
        "foreign": _SIDE | {"primary_id": "query_id", "primary_time": "embedded"},
        "registry": {"retention": "1m", "bucket": "1m", "shards": 2},
        "verify": {"window": "1m"},
        "retention": {"pending": "1m"},
        "limits": {"max_skew": f"{2 * logs.SKEW:.0f}s"},
        "retry": {
            "first_delay": f"{delay}s",
            "backoff": 2,
            "max_delay": f"{2 * delay}s",
            "max_age": f"{3 * delay}s",
            "max_attempts": 2,
        },
        # Some batches are larger than that: Spark writes those, and the process itself the others.
        "batch": {"max_events": max_events, "driver_bytes": "400B"},
        "adapter": adapter,
    }


@lru_cache
def local(kind: str, adapter: str, max_events: int) -> Pipeline:
    """The same, with times as texts."""
    whole = _fields(adapter, max_events, 10)
    whole["foreign"] |= {"event_time": local_times.column(kind)}
    return Pipeline.model_validate(whole)


@lru_cache
def watermarked(adapter: str, max_events: int, delay: int) -> Pipeline:
    """The same, with events given up by the watermark. Logs are out of order by up to 30 s, and 5 s of a clock's."""
    whole = _fields(adapter, max_events, delay)
    whole["retry"] |= {"until": "watermark", "max_attempts": MOST_ATTEMPTS, "max_age": "10m"}
    return Pipeline.model_validate(whole | {"close": {"max_out_of_orderness": "40s"}})


@lru_cache
def matched(adapter: str, max_events: int, delay: int) -> Pipeline:
    """The same, of a join by a key and time."""
    whole = _fields(adapter, max_events, delay)
    whole["retry"] |= {"max_attempts": 1000, "max_age": "1d"}
    match = {"on": "key", "pick": "last", "within": f"{matches.WITHIN}s"}
    whole["foreign"] = _SIDE | {"match": match}
    return Pipeline.model_validate(whole | {"close": {"max_out_of_orderness": "40s", "idle_timeout": "1d"}})


@lru_cache
def processed(adapter: str, max_events: int, delay: int) -> Pipeline:
    """The same, with a watermark that is a minute behind at most."""
    return Pipeline.model_validate(_fields(adapter, max_events, delay) | {"close": {"max_out_of_orderness": "40s"}})


@lru_cache
def downstream(max_events: int, delay: int) -> Pipeline:
    """A pipeline whose primary stream is the output of the other; what its source is, `Cast` says."""
    return Pipeline.model_validate(_fields(_PLAIN, max_events, delay) | {"pipeline": "down"})
