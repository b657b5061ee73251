"""Events as JSON lines, five ways to damage one, and the growing log files that they are appended to."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

import numpy as np

from clickjoin.generate.draw import CLICKS, EventDraw, Ints
from clickjoin.generate.traffic import Traffic
from clickjoin.model.errors import ConfigError

POOL = 1 << 16
LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz0123456789", dtype=np.uint8)


def prefix(server: int, file: int, process: int) -> str:
    """First part of an id, one for each file: `10.server.x.y:process:`."""
    return f"10.{server}.{file // 250 % 256}.{file % 250 + 1}:{process}:"


class Writer:
    """Makes lines. `query_micros` and `click_micros`: the time in each event's id, microseconds since 1970."""

    def __init__(self, traffic: Traffic, drawn: EventDraw, query_micros: Ints, click_micros: Ints) -> None:
        # The seed is the process number: traffic of two seeds can be mixed and ids stay unique.
        self._queries, self._clicks, self._nowhere = (
            [prefix(server, file, 1000 + traffic.seed) for file in range(traffic.files)] for server in (1, 2, 9)
        )
        self._drawn = drawn
        self.query_micros, self.click_micros = query_micros, click_micros
        letters = np.random.default_rng(traffic.seed).choice(LETTERS, POOL + traffic.payload)
        self._pool = letters.tobytes().decode()
        self._payload = traffic.payload

    def query_id(self, event: int) -> str:
        """Id of a query."""
        return f"{self._queries[self._drawn.query_file[event]]}{self.query_micros[event]}"

    def click_id(self, event: int) -> str:
        """Id of a click."""
        return f"{self._clicks[self._drawn.click_file[event]]}{self.click_micros[event]}"

    def wanted_id(self, event: int) -> str:
        """Id of a click's query; an orphan names a server that writes no log."""
        query = self._drawn.click_query[event]
        servers = self._nowhere if self._drawn.orphan[event] else self._queries
        return f"{servers[self._drawn.query_file[query]]}{self.query_micros[query]}"

    def line(self, stream: int, event: int, kind: int) -> str:
        """One line without its end. What is not UTF-8 stands as surrogates: encode with `surrogateescape`."""
        place = event * 7919 % POOL  # some other filling for each event, and the same one when it is written again
        filling = self._pool[place : place + self._payload]
        if stream == CLICKS:
            text = (f'{{"event_id":"{self.click_id(event)}","query_id":"{self.wanted_id(event)}",'
                    f'"position":{place % 10 + 1},"payload":"{filling}"}}')  # fmt: skip
        else:
            text = f'{{"event_id":"{self.query_id(event)}","results":{place % 1000},"payload":"{filling}"}}'
        return damaged(text, kind) if kind > 1 else text


def damaged(text: str, kind: int) -> str:
    """A line that nobody can understand: cut off, not UTF-8, without id, with an empty one, or one from 1970."""
    if kind == 2:
        return text[: len(text) * 2 // 3]
    if kind == 3:
        return f"{text[:20]}\udcff\udcfe{text[20:]}"
    if kind == 4:
        return text.replace('"event_id"', '"event"', 1)
    return text.replace(text.split('"', 4)[3], "" if kind == 5 else "10.1.0.1:1:0", 1)


STREAMS = ("queries", "clicks")
MAX_OPEN = 64


class LogFiles:
    """`<folder>/queries/part-0000.jsonl` and so on, `<folder>/clicks/…` the same way; lines are appended whole.

    Errors: ConfigError where the folder cannot be written to, or holds logs already: the truth beside them would no
    longer be true.
    """

    def __init__(self, folder: Path, files: int) -> None:
        self._open: dict[Path, BinaryIO] = {}
        self._keep = 2 * files <= MAX_OPEN
        self._paths = [[folder / stream / f"part-{number:04d}.jsonl" for number in range(files)] for stream in STREAMS]
        try:
            self._make(folder)
        except OSError as error:
            raise ConfigError(
                f"generate: {folder}: cannot be written ({error.strerror})", remedy="Give another folder"
            ) from error

    def _make(self, folder: Path) -> None:
        for stream in STREAMS:
            (folder / stream).mkdir(parents=True, exist_ok=True)
            if any((folder / stream).iterdir()):
                raise ConfigError(f"generate: {folder / stream} is not empty", remedy="Give a new folder, or empty it")
        for path in (path for paths in self._paths for path in paths):
            path.touch()

    def append(self, stream: int, file: int, lines: Iterable[str]) -> None:
        """Write lines to the end of one file, visible to readers at once."""
        path = self._paths[stream][file]
        data = "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")
        if not self._keep:
            with path.open("ab", buffering=0) as handle:
                handle.write(data)
            return
        if path not in self._open:
            self._open[path] = path.open("ab", buffering=0)
        self._open[path].write(data)

    def __enter__(self) -> Self:
        """Nothing is opened before it is written to."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close what was opened."""
        for handle in self._open.values():
            handle.close()
