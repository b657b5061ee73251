"""A proxy before an S3 server: requests can be held, refused, or answered by nothing although they were carried out."""

from __future__ import annotations

import fnmatch
import http.client
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

Does = Literal["hold", "lose", "refuse", "deny", "note"]
_HOP = {"connection", "keep-alive", "transfer-encoding", "expect"}


@dataclass
class Rule:
    """What is done to requests of one method whose path matches a pattern, `times` times at most.

    hold: they wait until `release`. lose: carried out, and the connection is cut in place of an answer. refuse: 503.
    deny: 403 with the rule's `code`. `before` is called with the path of each first.
    """

    does: Does
    method: str
    path: str
    times: int = 1_000_000
    code: str = "AccessDenied"
    longest: float = 120.0  # seconds that a request is held
    before: Callable[[str], None] = lambda path: None
    met: list[str] = field(default_factory=list)
    arrived: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)


def _calm(method: str, path: str) -> Rule | None:
    return None


class Proxy:
    """A proxy on a free port of loopback. Rules hold for all requests while they are in force."""

    def __init__(self, server: int) -> None:
        self.server, self.rules, self.lock = server, list[Rule](), threading.Lock()
        self.sent = 0  # bytes of all answers
        self.mood: Callable[[str, str], Rule | None] = _calm  # for what comes under no rule
        proxy = self

        class Handler(_Handler):
            to = proxy

        self._http = _Server(("127.0.0.1", 0), Handler)
        self.port = self._http.server_address[1]
        threading.Thread(target=self._http.serve_forever, daemon=True).start()

    @contextmanager
    def rule(self, does: Does, method: str, path: str, times: int = 1_000_000, **more: Any) -> Iterator[Rule]:
        """Have requests treated so in here."""
        made = Rule(does, method, path, times, **more)
        self.rules.append(made)
        try:
            yield made
        finally:
            made.released.set()
            self.rules.remove(made)

    def match(self, method: str, path: str) -> Rule | None:
        """The rule that a request comes under now."""
        with self.lock:
            for rule in self.rules:
                if rule.method == method and len(rule.met) < rule.times and fnmatch.fnmatch(path, rule.path):
                    rule.met.append(path)
                    return rule
        return self.mood(method, path)

    def calm(self) -> None:
        """Pass on whatever comes under no rule."""
        self.mood = _calm

    def stop(self) -> None:
        """End it."""
        self._http.shutdown()
        self._http.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Nothing: clients come and go."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else an answer in two parts takes 40 ms more
    to: Proxy

    def log_message(self, *_: object) -> None:
        """Nothing."""

    def _forward(self) -> None:
        body = self._body()
        rule = self.to.match(self.command, self.path.split("?")[0])
        if rule:
            rule.before(self.path.split("?")[0])
        if rule and rule.does == "hold":
            rule.arrived.set()
            rule.released.wait(rule.longest)
        if rule and rule.does == "refuse":
            self._answer(503, [], b"<Error><Code>SlowDown</Code><Message>Reduce your rate.</Message></Error>")
            return
        if rule and rule.does == "deny":
            self._answer(403, [], f"<Error><Code>{rule.code}</Code><Message>No.</Message></Error>".encode())
            return
        status, headers, content = self._ask(body)
        if rule and rule.does == "lose":
            self.close_connection = True
            self.connection.shutdown(2)
            return
        self._answer(status, headers, content)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return b"".join(parts)

    def _ask(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        upstream = http.client.HTTPConnection("127.0.0.1", self.to.server, timeout=120)
        try:
            upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():  # Host as well: it is signed
                if name.lower() not in _HOP:
                    upstream.putheader(name, value)
            if self.headers.get("Transfer-Encoding"):
                upstream.putheader("Content-Length", str(len(body)))
            upstream.endheaders(body or None)
            answer = upstream.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            upstream.close()

    def _answer(self, status: int, headers: list[tuple[str, str]], content: bytes) -> None:
        self.send_response_only(status)
        given = {name.lower() for name, _ in headers}
        for name, value in headers:
            if name.lower() not in _HOP:
                self.send_header(name, value)
        if "content-length" not in given:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        with self.to.lock:
            self.to.sent += len(content)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _forward
