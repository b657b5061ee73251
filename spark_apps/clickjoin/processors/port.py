"""The port behind which every processor stands: keys with their state, events and passed timers in; state, outputs out.

MillWheel's computations (VLDB 2013, section 3), with Beam's words for state and timers. All of a batch's keys are given
at once, as columns: a million keys are not a million calls.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    import numpy.typing as npt

NEVER = (1 << 62) - 1  # microseconds: of a key that waits for no time
# What a processor says, a row a signal; `of` is the position of its key in the work. A retraction is the row as it was
# reported with `retracted`; what takes its place has the next `revision`.
SIGNALS = pa.schema([
    ("of", pa.int64()), ("kind", pa.string()), ("window_start", pa.int64()), ("window_end", pa.int64()),
    ("count", pa.int64()), ("expected", pa.float64()), ("low", pa.float64()), ("high", pa.float64()),
    ("score", pa.float64()), ("revision", pa.int64()), ("retracted", pa.bool_()),
])  # fmt: skip


@dataclass(frozen=True)
class Work:
    """Some keys, each with new events, or a timer that the watermark has passed. Times are microseconds since 1970.

    `keys`: texts, once each. `state`: a row for each key, columns as the processor's `state`; null where it has none,
    which `known` says. `at`, `times`: of each event the position of its key, ascending, and its time, ascending within
    a key. `watermark`: no event of an earlier time is to come. `began`: before all events that there were. `passed`:
    the watermark of the batch before. `lateness`: events from `passed - lateness` to `passed` are given as well, to
    correct what was reported; 0 where none is.
    """

    keys: pa.Array
    state: pa.Table
    known: npt.NDArray[np.bool_]
    at: npt.NDArray[np.int64]
    times: npt.NDArray[np.int64]
    watermark: int
    began: int
    passed: int = 0
    lateness: int = 0


@dataclass(frozen=True)
class Done:
    """What came of it, in the order of the work's keys.

    `state`: a row for each key. `timers`: when a key is to be given again though no event of it comes; NEVER if not.
    `gone`: keys whose state is dropped. `signals`: columns as SIGNALS, times in microseconds.
    """

    state: pa.Table
    timers: npt.NDArray[np.int64]
    gone: npt.NDArray[np.bool_]
    signals: pa.Table


@dataclass(frozen=True)
class Band:
    """What is expected of each window from `start` to before `end`: fewer than `low` are too few, more than `high` too
    many. Times in microseconds.
    """

    start: int
    end: int
    expected: float
    low: float
    high: float


@dataclass(frozen=True)
class Outlook:
    """How one key stands at a watermark: its open windows (start, end, count), and, of a processor that expects
    anything, the band of now. `notes`: by name what else it goes by; times in microseconds.
    """

    open: tuple[tuple[int, int, int], ...] = ()
    band: Band | None = None
    notes: Mapping[str, int] = field(default_factory=dict)


class Processor(Protocol):
    """Per-key processing. `state`: the columns of a key's state: BIGINT, DOUBLE, STRING and BINARY of Delta.

    `fixed`: names of the arguments that state depends on (None: all do); with others of them it begins again.
    `corrects`: late events can be given to it (`late: correct`).

    It may use no clock but the watermark and no chance, and what it says must not depend on where batches end: with the
    events of a key and the watermarks that passed between them it gives the same signals in any number of calls.
    """

    state: ClassVar[pa.Schema]
    fixed: ClassVar[tuple[str, ...] | None] = None
    corrects: ClassVar[bool] = False

    @abstractmethod
    def process(self, work: Work) -> Done:
        """Take in new events and passed timers of some keys."""
        ...

    def outlook(self, state: pa.Table, watermark: int, began: int) -> Outlook | None:
        """How a key stands, for people who ask. `state`: its row; `watermark`, `began`: as in Work.

        By default None: nobody but the processor can read its state.
        """
        return None


def signals(**columns: Any) -> pa.Table:
    """Signals of columns as arrays; those that are not given are null."""
    rows = len(columns["of"])
    given = {name: pa.array(values) for name, values in columns.items()}
    return pa.table(
        {field.name: given.get(field.name, pa.nulls(rows, field.type)) for field in SIGNALS}
    ).cast(SIGNALS)  # fmt: skip
