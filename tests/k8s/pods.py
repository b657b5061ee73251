"""As much of Kubernetes' API as Spark's driver calls for pods, on loopback: a container is a process of this machine.

There is no cluster in it: no network of pods, no permissions, no mounts. What Spark asks for is kept, to be looked at.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Condition, Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

from bootstrap import INFRA, ROOT

Pod = dict[str, Any]
DRIVER = "spark-0"
_PATH = re.compile(r"/api/v1/namespaces/(?P<namespace>[^/]+)/(?P<resource>[^/]+)(?:/(?P<name>[^/]+))?$")
_SITE = ROOT / ".venv/lib/python3.11/site-packages"


class Pods:
    """The pods of one name space. `asked`: verb and resource of each request, as a Role names them."""

    def __init__(self, folder: Path, secrets: Mapping[str, Mapping[str, str]]) -> None:
        self.folder, self.secrets = folder, secrets
        self.asked: set[tuple[str, str, str]] = set()
        self.pods: dict[str, Pod] = {DRIVER: _driver()}
        self.made: list[Pod] = []
        self.events: list[tuple[str, Pod]] = []
        self.changed = Condition()
        self._processes: list[subprocess.Popen[bytes]] = []

    def create(self, pod: Pod) -> Pod:
        """Start what a pod's container is to run."""
        self.made.append(json.loads(json.dumps(pod)))
        name = pod["metadata"]["name"]
        pod["metadata"] |= {"namespace": "clickjoin", "uid": f"uid-{name}", "creationTimestamp": "2026-01-01T00:00:00Z"}
        container = pod["spec"]["containers"][0]
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [INFRA / "images/spark-node.sh", *container["args"]], cwd=self.folder, stdout=log, stderr=log,
                env={"PATH": os.environ["PATH"]} | {item["name"]: self._value(item, name) for item in container["env"]}
                | {"SPARK_HOME": str(_SITE / "pyspark")},
            )  # fmt: skip
        self._processes.append(process)
        pod["status"] = _status("Running", {"running": {}})
        self._put("ADDED", pod)
        Thread(target=self._ended, args=(process, pod), daemon=True).start()
        return pod

    def _value(self, item: Mapping[str, Any], name: str) -> str:
        source = item.get("valueFrom", {})
        if "secretKeyRef" in source:
            return self.secrets[source["secretKeyRef"]["name"]][source["secretKeyRef"]["key"]]
        if "fieldRef" in source:
            return {"status.podIP": "127.0.0.1", "metadata.name": name}[source["fieldRef"]["fieldPath"]]
        return str(item.get("value", ""))

    def _ended(self, process: subprocess.Popen[bytes], pod: Pod) -> None:
        code = process.wait()
        pod["status"] = _status("Failed" if code else "Succeeded", {"terminated": {"exitCode": code}})
        self._put("MODIFIED", pod)

    def _put(self, kind: str, pod: Pod) -> None:
        with self.changed:
            self.pods[pod["metadata"]["name"]] = pod
            self.events.append((kind, json.loads(json.dumps(pod))))
            self.changed.notify_all()

    def end(self) -> None:
        """Kill what still runs."""
        for process in self._processes:
            process.kill()
            process.wait()


def _status(phase: str, state: dict[str, Any]) -> dict[str, Any]:
    return {"phase": phase, "containerStatuses": [{"name": "executor", "state": state}]}


def _driver() -> Pod:
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    metadata = {"name": DRIVER, "namespace": "clickjoin", "uid": "uid-driver", "labels": {}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": []}, "status": ready}


class Api(BaseHTTPRequestHandler):
    """Kubernetes' API of pods."""

    protocol_version = "HTTP/1.1"
    pods: Pods

    def _heard(self, verb: str) -> tuple[str, dict[str, list[str]]]:
        url = urlsplit(self.path)
        query = parse_qs(url.query)
        found = _PATH.match(url.path)
        resource, name = (found["resource"], found["name"] or "") if found else (url.path, "")
        if verb == "get" and not name:
            verb = "watch" if query.get("watch") == ["true"] else "list"
        if verb == "delete" and not name:
            verb = "deletecollection"
        self.pods.asked.add((verb, found["namespace"] if found else "", resource))
        return name, query

    def _answer(self, body: Any, code: int = 200) -> None:
        data = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _body(self) -> Any:
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        return json.loads(data) if data else {}

    def do_GET(self) -> None:
        name, query = self._heard("get")
        if name:
            pod = self.pods.pods.get(name)
            self._answer(pod or {"kind": "Status", "code": 404}, 200 if pod else 404)
        elif self.headers.get("Upgrade"):
            self._answer({"kind": "Status", "code": 503}, 503)  # no web sockets here: Spark's client then asks plainly
        elif query.get("watch") == ["true"]:
            self._watch(query)
        else:
            items = [pod for pod in list(self.pods.pods.values()) if _matches(pod, query)]
            self._answer({"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": items})

    def _watch(self, query: dict[str, list[str]]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        sent = 0
        with suppress(OSError):
            while True:
                with self.pods.changed:
                    self.pods.changed.wait_for(lambda seen=sent: len(self.pods.events) > seen, 1)
                    new = self.pods.events[sent:]
                sent += len(new)
                for kind, pod in new:
                    if _matches(pod, query):
                        self.wfile.write(json.dumps({"type": kind, "object": pod}).encode() + b"\n")
                        self.wfile.flush()

    def do_POST(self) -> None:
        self._heard("create")
        self._answer(self.pods.create(self._body()), 201)

    def do_PATCH(self) -> None:
        name, _ = self._heard("patch")
        self._body()
        self._answer(self.pods.pods[name])

    def do_DELETE(self) -> None:
        self._heard("delete")
        self._body()
        self._answer({"kind": "Status", "status": "Success"})

    def log_message(self, *_: Any) -> None:
        pass


def _matches(pod: Pod, query: Mapping[str, list[str]]) -> bool:
    if "fieldSelector" in query:
        true = {f"metadata.name={pod['metadata']['name']}", f"status.phase={pod['status']['phase']}"}
        return set(query["fieldSelector"][0].split(",")) <= true
    wanted = re.findall(r"([\w./-]+)=([\w./-]+)", query.get("labelSelector", [""])[0])
    return all(pod["metadata"]["labels"].get(key) == value for key, value in wanted)


@contextmanager
def serving(pods: Pods) -> Iterator[str]:
    """The address of the API, as Spark's master."""
    handler = type("Here", (Api,), {"pods": pods})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"k8s://http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            pods.end()
