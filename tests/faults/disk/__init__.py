"""A disk whose rename(2), link(2) and fsync(2) are slow, fail or lose their answers: a preloaded library, by rules."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

LOG = "*/_delta_log/*[0-9].json"  # a commit


class Disk:
    """Rules for processes that are started with its environment; `folder` holds the library, rules and marks."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rules = folder / "rules"
        self.rules.write_text("")
        self._library = folder / "disk.so"
        source = Path(__file__).with_name("disk.c")
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", self._library, source, "-ldl"], check=True)

    @property
    def environment(self) -> Mapping[str, str]:
        """What a process needs to be started with."""
        return {"LD_PRELOAD": str(self._library), "CLICKJOIN_DISK": str(self.rules)}

    def set(self, *rules: str) -> None:
        """Put these rules in force, each `CALL PATTERN WHAT ARGUMENT`, in place of those before."""
        beside = self.rules.with_suffix(".new")
        beside.write_text("".join(f"{rule}\n" for rule in rules))
        beside.replace(self.rules)

    def note(self, call: str, pattern: str = LOG) -> str:
        """A rule by which calls are noted, for `noted`."""
        return f"{call} {pattern} note {self.folder / 'notes'}"

    def noted(self, call: str) -> list[str]:
        """Paths of noted calls of a kind."""
        file = self.folder / "notes"
        lines = file.read_text().splitlines() if file.exists() else []
        return [line.split(" ", 1)[1] for line in lines if line.startswith(f"{call} ")]

    def hold(self, call: str, pattern: str, name: str = "held") -> str:
        """A rule by which a call waits until `release`."""
        (self.folder / name).touch()
        (self.folder / f"{name}.here").unlink(missing_ok=True)
        return f"{call} {pattern} wait {self.folder / name}"

    def once(self, call: str, pattern: str, what: str, error: int, name: str = "once") -> str:
        """A rule by which one call fails, or loses its answer: `what` is fail or lose."""
        (self.folder / name).touch()
        return f"{call} {pattern} once-{what} {self.folder / name}:{error}"

    def used(self, name: str = "once") -> bool:
        """Whether the rule of that name has been used."""
        return not (self.folder / name).exists()

    def await_held(self, name: str = "held", seconds: float = 120) -> None:
        """Wait until a call is held. Errors: TimeoutError."""
        end = time.monotonic() + seconds
        while not (self.folder / f"{name}.here").exists():
            if time.monotonic() > end:
                raise TimeoutError(f"no call came to {name} in {seconds} s")
            time.sleep(0.01)

    def release(self, name: str = "held") -> None:
        """Let a held call go on."""
        (self.folder / name).unlink(missing_ok=True)


def preloaded(disk: Disk, **more: str) -> dict[str, str]:
    """This process's environment, with the disk in it."""
    return {**os.environ, **disk.environment, **more}
