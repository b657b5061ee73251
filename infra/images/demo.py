"""Feed the shipped pipeline and switch its DAGs on: `demo.py s3://BUCKET/PREFIX|FOLDER`, where its logs are to lie.

Run by docker-compose.yml; the same again changes nothing. Exit code 1 if Airflow does not show the DAGs in time.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

LOGS = Path(__file__).resolve().parents[1] / "data/zozo"
PIPELINES = Path(os.environ.get("CLICKJOIN_PIPELINES", "/pipelines"))
AIRFLOW = os.environ.get("CLICKJOIN_AIRFLOW_URL", "http://api-server:8080")
PASSWORDS = Path("/run/clickjoin/airflow-password.json")
DAGS = ("join", "retry", "gc", "verify")
PATIENCE = 600.0  # seconds: the DAG processor of a busy machine takes minutes for its first round


def feed(place: str, logs: Path = LOGS) -> int:
    """Copy the logs that are not there yet; the number of files. An object is never written again: see docs/logs.md."""
    files = [file for stream in ("impressions", "clicks") for file in sorted((logs / stream).iterdir())]
    if place.startswith("s3://"):
        return _to_bucket(place.removeprefix("s3://"), files, logs)
    wanted = [(file, Path(place) / file.relative_to(logs)) for file in files]
    new = [(file, target) for file, target in wanted if not target.exists()]
    for file, target in new:
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = target.with_name(f".{target.name}")
        shutil.copyfile(file, beside)
        beside.replace(target)
    return len(new)


def _to_bucket(place: str, files: list[Path], logs: Path) -> int:
    import boto3

    bucket, _, prefix = place.partition("/")
    client = boto3.client("s3")
    new = 0
    for file in files:
        key = f"{prefix}/{file.relative_to(logs)}"
        if client.list_objects_v2(Bucket=bucket, Prefix=key)["KeyCount"]:
            continue
        client.put_object(Bucket=bucket, Key=key, Body=file.read_bytes())
        new += 1
    return new


def switch_on(pipeline: str) -> None:
    """Unpause the DAGs, once the DAG processor has found them. Errors: TimeoutError."""
    until = time.monotonic() + PATIENCE
    for dag in DAGS:
        name = f"clickjoin_{dag}__{pipeline}"
        while not _unpaused(name):
            if time.monotonic() > until:
                raise TimeoutError(f"{name} is not among Airflow's DAGs; look at `docker compose logs dag-processor`")
            time.sleep(2)
        print(f"{name} is on", flush=True)


def _unpaused(name: str) -> bool:
    try:
        _ask("PATCH", f"/api/v2/dags/{name}?update_mask=is_paused", {"is_paused": False}, _token())
    except HTTPError as error:
        if error.code < 500 and error.code != 404:
            raise
        return False
    except (URLError, TimeoutError, ConnectionError):
        return False
    return True


def _token() -> str:
    ((user, password),) = json.loads(PASSWORDS.read_text()).items()
    return str(_ask("POST", "/auth/token", {"username": user, "password": password}, "")["access_token"])


def _ask(method: str, path: str, body: dict[str, Any], token: str) -> Any:
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    request = Request(AIRFLOW + path, json.dumps(body).encode(), headers, method=method)
    with urlopen(request, timeout=30) as answer:
        return json.load(answer)


def main(place: str) -> int:
    """Feed and switch on, where the shipped pipeline is among the pipelines."""
    if not (PIPELINES / "zozo.yaml").is_file():
        print("the shipped pipeline is not among CLICKJOIN_PIPELINES: nothing is fed")
        return 0
    print(f"{feed(place)} files put into {place}", flush=True)
    try:
        switch_on("zozo")
    except TimeoutError as error:
        print(f"clickjoin: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
