"""A small collector on loopback: OpenTelemetry metrics (OTLP over HTTP), OpenLineage events, and alerts."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest


class Collector:
    """What has come in: `metrics` by name, as (tags, when its process began, value); `events`; `alerts`."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.metrics: dict[str, list[tuple[dict[str, str], int, float]]] = defaultdict(list)
        self.events: list[dict[str, Any]] = []
        self.alerts: list[dict[str, Any]] = []

    def take(self, path: str, body: bytes) -> None:
        """Take in a request."""
        if path == "/v1/metrics":
            self._metrics(body)
        elif path == "/api/v1/lineage":
            self.events.append(json.loads(body))
        elif path == "/alert":
            self.alerts.append(json.loads(body))

    def _metrics(self, body: bytes) -> None:
        request = ExportMetricsServiceRequest.FromString(body)
        for resource in request.resource_metrics:
            for metric in (metric for scope in resource.scope_metrics for metric in scope.metrics):
                for point in (*metric.sum.data_points, *metric.gauge.data_points):
                    tags = {pair.key: pair.value.string_value for pair in point.attributes}
                    value = point.as_double if point.HasField("as_double") else float(point.as_int)
                    self.metrics[metric.name].append((tags, point.start_time_unix_nano, value))

    def total(self, name: str, **tags: str) -> float:
        """A counter over all processes: of what each has sent, the last."""
        last: dict[tuple[Any, ...], float] = {}
        for own, begun, value in self.metrics[name]:
            if tags.items() <= own.items():
                key = (begun, *sorted(own.items()))
                last[key] = max(value, last.get(key, 0.0))
        return sum(last.values())


@contextmanager
def collecting() -> Iterator[Collector]:
    """Run one on a free port of loopback."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            packed = self.headers.get("Content-Encoding") == "gzip"
            collector.take(self.path, gzip.decompress(body) if packed else body)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector = Collector(server.server_port)
    serving = Thread(target=server.serve_forever, daemon=True)
    serving.start()
    try:
        yield collector
    finally:
        server.shutdown()
        server.server_close()
        serving.join()
