"""The growing log files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from clickjoin.model.errors import ConfigError

STREAMS = ("queries", "clicks")
MAX_OPEN = 64


class LogFiles:
    """`<folder>/queries/part-0000.jsonl` and so on, `<folder>/clicks/…` likewise; lines are appended whole.

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
