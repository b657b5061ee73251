"""Progress while the demo runs: a live table on a terminal, plain lines anywhere else."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.table import Table

LINE_EVERY = 5.0


class Screen:
    """Shows facts, each a name and a text. `tick` is for waits without facts: it tells seconds."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self.console = console
        self._clock = clock
        self._begun = clock()
        self._shown = 0.0
        self._live = Live(console=console, refresh_per_second=4, transient=True) if console.is_terminal else None

    def say(self, text: str) -> None:
        """One line that stays."""
        self.console.print(text, highlight=False, soft_wrap=True)

    def show(self, facts: dict[str, str]) -> None:
        """The newest facts in place of those shown before; off a terminal a line every few seconds."""
        facts = {"seconds": f"{self._clock() - self._begun:.0f}"} | facts
        if self._live:
            table = Table.grid(padding=(0, 2))
            for name, text in facts.items():
                table.add_row(f"[dim]{name}", text)
            self._live.update(table)
        elif self._clock() - self._shown >= LINE_EVERY:
            self._shown = self._clock()
            self.say(" | ".join(f"{name} {text}" for name, text in facts.items()))

    def waiting(self, what: str) -> Callable[[], None]:
        """A function to call now and then while something is waited for."""
        return lambda: self.show({what: "…"})

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._live.stop()
