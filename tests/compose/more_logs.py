"""New events in the form of infra/data/zozo, of servers of their own: each round's ids are new."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from typing import Any

from bootstrap import ROOT

LOGS = ROOT / "infra/data/zozo"
Files = dict[str, bytes]


def records(stream: str) -> Iterator[dict[str, Any]]:
    """All records of a stream of the shipped logs."""
    for file in sorted((LOGS / stream).iterdir()):
        data = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
        yield from map(json.loads, data.splitlines())


def shipped() -> set[tuple[str, str]]:
    """The clicks of the shipped logs, each with the impression that it names."""
    return {(click["event_id"], click["query_id"]) for click in records("clicks")}


def moved(event_id: str, round_: int) -> str:
    """The same process and microsecond on another server."""
    server, process, microseconds = event_id.split(":")
    return f"{server}.{round_}:{process}:{microseconds}"


def more(round_: int) -> tuple[Files, set[tuple[str, str]]]:
    """Objects with every click again and its impression, as events of other servers; and the pairs to be joined."""
    clicks = [
        click | {"event_id": moved(click["event_id"], round_), "query_id": moved(click["query_id"], round_)}
        for click in records("clicks")
    ]
    named = {click["query_id"] for click in clicks}
    shown = [record | {"event_id": moved(record["event_id"], round_)} for record in records("impressions")]
    shown = [record for record in shown if record["event_id"] in named]
    files = {
        f"zozo/clicks/round-{round_:02}.jsonl": _lines(clicks),
        f"zozo/impressions/round-{round_:02}.jsonl.gz": gzip.compress(_lines(shown)),
    }
    return files, {(click["event_id"], click["query_id"]) for click in clicks}


def _lines(found: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in found).encode()


def put(store: dict[str, str], files: Files) -> None:
    """Write them into the bucket `logs`, clicks first: some wait for their impressions."""
    import boto3

    client = boto3.client(
        "s3", endpoint_url=store["AWS_ENDPOINT_URL"], region_name=store["AWS_REGION"],
        aws_access_key_id=store["AWS_ACCESS_KEY_ID"], aws_secret_access_key=store["AWS_SECRET_ACCESS_KEY"],
    )  # fmt: skip
    for key, data in files.items():
        client.put_object(Bucket="logs", Key=key, Body=data)
