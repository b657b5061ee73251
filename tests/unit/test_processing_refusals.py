"""What is refused or named in per-key processing: signals that could have no id, paths that no event has."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from clickjoin.model.errors import ConfigError
from clickjoin.processing.state_rows import committed
from clickjoin.processors import KeyedProcessor, Said, Seen
from tests.unit.processing_bench import MINUTE, NOON, Output


def test_a_path_that_no_event_has_is_named(tmp_path: Path, run: Callable[..., tuple[int, str, str]]) -> None:
    out = Output(tmp_path, {"key": "record.idd"})
    out.publish([("a", "shoes", NOON)], NOON + MINUTE)
    code, text, _ = run("process", "--config", out.file)
    text = " ".join(text.split())
    assert (code, "1 events have no record.idd, and are in `late` as no-key; check its spelling" in text) == (0, True)
    assert "watermark rests on: " in text
    code, text, _ = run("explain", "--config", out.file, "--key", "none", "--json")
    assert json.loads(text)["looked_at_again"] is None


class Unnamed(KeyedProcessor):
    """Signals without one of their names, or twice the same."""

    state = pa.schema([("seen", pa.int64())])

    def __init__(self, lacks: str) -> None:
        self.lacks = lacks

    def one(self, seen: Seen) -> Said:
        signal = {"kind": "odd", "window_start": seen.times[0]}
        signal.pop(self.lacks, None)
        return Said({"seen": 1}, signals=[signal, signal])


@pytest.mark.parametrize(
    ("lacks", "words"),
    [
        ("kind", "reports a signal of key shoes without kind"),
        ("window_start", "reports a signal of key shoes without window_start"),
        ("", r"reports Unnamed/odd/2024-10-04 12:00:00\.000000/shoes twice in a batch"),
    ],
)
def test_signals_that_could_have_no_id_are_refused_before_the_commit(tmp_path: Path, lacks: str, words: str) -> None:
    out = Output(tmp_path, {"processor": f"{__name__}:Unnamed", "args": {"lacks": lacks}})
    out.publish([("a", "shoes", NOON)], NOON + MINUTE)
    with pytest.raises(ConfigError, match=words):
        out.drain()
    assert out.rows("signals") == []
    assert committed(out.processing().tables, 1) is None


class Halves(KeyedProcessor):
    """Fails at a key."""

    state = pa.schema([("seen", pa.int64())])

    def one(self, seen: Seen) -> Said:
        return Said({"seen": 1 // (seen.key != "shoes")})


def test_a_processor_that_fails_is_named_with_key_and_line(
    tmp_path: Path, run: Callable[..., tuple[int, str, str]]
) -> None:
    out = Output(tmp_path, {"processor": f"{__name__}:Halves", "args": {}})
    out.publish([("a", "hats", NOON), ("b", "shoes", NOON)], NOON + MINUTE)
    code, _, errors = run("process", "--config", out.file)
    errors = " ".join(errors.split())
    assert code == 2
    assert "Halves, batch 1 of 2 keys: ZeroDivisionError" in errors
    assert "test_processing_refusals.py:" in errors
    assert "key 'shoes'. Fix it, and run this again: nothing of the batch was committed" in errors
    assert "Traceback" not in errors
    assert committed(out.processing().tables, 1) is None
