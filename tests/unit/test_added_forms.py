"""A form of a time that is added later: what could be read keeps its time, so a lake that is there goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from clickjoin.agreement.noted import noted
from clickjoin.config import Pipeline
from clickjoin.config.streams import TimeColumn
from clickjoin.engines.arrow.tables import ArrowTables
from clickjoin.kernel.chunk import Chunk
from clickjoin.kernel.file_bytes import Proof
from clickjoin.kernel.parse.lines import Block
from clickjoin.kernel.read_lines import LineReader
from clickjoin.lake.log_entries import read_log
from clickjoin.model.errors import ConfigError
from clickjoin.model.ids import EPOCH, TimeForm
from clickjoin.model.shards import Timeline
from clickjoin.registry.reshard import entries
from clickjoin.registry.shards import load_timeline, start_timeline
from clickjoin.schemas import BATCHES, TIMELINE
from tests.unit.sources_bench import spec

ISO_FIRST = ["iso", "%d.%m.%Y %H:%M"]
DIGITS = st.text("0123456789", min_size=1, max_size=20)
TIMES = st.one_of(
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    DIGITS,
    st.builds("{}.{}e{}".format, DIGITS, DIGITS, st.integers(-3, 9)),
    st.datetimes().map(str),
    st.datetimes().map(lambda moment: f"{moment:%d.%m.%Y %H:%M}"),
    st.builds("{}{}{}".format, st.datetimes().map(lambda at: at.isoformat()), st.sampled_from(["", "1", "999"]),
              st.sampled_from(["", "Z", "z", " UTC", "+01", "+01:00", "+0100", " ", "-00:30"])),
    st.dates().map(str),
    st.text(max_size=8),
    st.sampled_from([None, True, "2019-11-24T24:00", "2019-W47-1", "20191124T101112", "2019-11-24T10", [], {}]),
)  # fmt: skip


def pipeline(event_time: Any, source: str = "/logs/*.jsonl", shards: int = 4) -> Pipeline:
    """A pipeline whose foreign stream has such a time."""
    files = {"kind": "files", "path": source}
    primary = {"source": files, "event_id": "id", "event_time": "t"}
    foreign = {**primary, "event_time": event_time, "primary_id": "q", "primary_time": {"lookback": "1d"}}
    fields = {"lake": "/lake", "primary": primary, "foreign": foreign, "registry": {"shards": shards}}
    return Pipeline.model_validate({"pipeline": "p", "engine": "arrow", **fields})


def read(values: list[Any], form: TimeForm | None) -> dict[str, Any]:
    """Times by id, of those that are good."""
    chunk = Chunk("", "", "", 0, -1, 0, 0, Proof(0, "", 0, 0, ""), None)
    reader = LineReader(chunk, spec(event_time="t", event_form=form, earliest_micros=-(2**63), latest_micros=2**63 - 1))
    data = b"".join(json.dumps({"id": f"e{at}", "t": value}).encode() + b"\n" for at, value in enumerate(values))
    batches = list(reader.records(Block(0, data)))
    rows = [row for batch in batches for row in batch.to_pylist() if row["reason"] is None]
    return {row["event_id"]: row["event_time"] for row in rows}


@given(st.lists(TIMES, min_size=1, max_size=6))
@example(["2019-11-24 10:11:12", "24.11.2019 10:11", 1574562822, "1574562822.5", 1e300, "9999999999999999999"])
def test_what_could_be_read_keeps_its_time(values: list[Any]) -> None:
    before = read(values, None)
    after = read(values, TimeColumn(column=("t",), format=tuple(ISO_FIRST)).form)
    assert {name: after.get(name) for name in before} == before


@pytest.mark.parametrize(("begun", "now", "fits"), [
    ("t", {"column": "t", "format": ISO_FIRST}, True),
    ({"column": "t", "format": "%d.%m.%Y"}, {"column": "t", "format": ["%d.%m.%Y", "%m/%d/%Y", "iso"]}, True),
    ("t", {"column": "u", "format": ISO_FIRST}, False),
    ("t", {"column": "t", "format": ISO_FIRST, "zone": "Europe/Berlin"}, False),
    ("t", {"column": "t", "format": ["%d.%m.%Y", "iso"]}, False),
    ("embedded", {"column": "t", "format": ISO_FIRST}, False),
    ({"column": "t", "format": ISO_FIRST}, {"column": "t", "format": "iso"}, False),
    ({"column": "t", "format": "%d.%m.%Y"}, {"column": "t", "format": ["%m.%d.%Y", "%d.%m.%Y"]}, False),
])  # fmt: skip
def test_a_lake_goes_on_with_forms_that_come_last(tmp_path: Path, begun: Any, now: Any, fits: bool) -> None:
    delta = ArrowTables(str(tmp_path))
    for table in (TIMELINE, BATCHES):
        delta.create(table)
    start_timeline(delta, pipeline(begun), EPOCH)
    if fits:
        start_timeline(delta, pipeline(now), EPOCH)
        start_timeline(delta, pipeline(begun), EPOCH)  # a process with the former file goes on
        return
    with pytest.raises(ConfigError, match=r"foreign\.event_time is .* begun with"):
        start_timeline(delta, pipeline(now), EPOCH)


def test_times_of_parquet_are_not_taken_for_others(tmp_path: Path) -> None:
    delta = ArrowTables(str(tmp_path))
    for table in (TIMELINE, BATCHES):
        delta.create(table)
    berlin = {"column": "t", "zone": "Europe/Berlin"}
    start_timeline(delta, pipeline(berlin), EPOCH)
    with pytest.raises(ConfigError, match="of Parquet too"):
        start_timeline(delta, pipeline(berlin | {"format": ISO_FIRST}, "/logs/*.parquet"), EPOCH)


X, Y, Z = "%d.%m.%Y %H:%M", "%m.%d.%Y %H:%M", "%Y/%m/%d"


@pytest.mark.parametrize(("files", "last"), [
    ([["iso", X]], ["iso", Y]),  # another one in the place of one that was added
    ([["iso", X]], ["iso", Z, X]),
    ([["iso", X, Z]], ["iso", Z, X]),
    ([["iso", X], ["iso", X, Z]], ["iso", X, Y]),
    ([["iso", X, Z], ["iso", X]], ["iso", X, Y]),  # one that reads by fewer was there in between
])  # fmt: skip
def test_forms_that_were_added_stay(tmp_path: Path, files: list[list[str]], last: list[str]) -> None:
    """By others the same text would be another event."""
    delta = ArrowTables(str(tmp_path))
    for table in (TIMELINE, BATCHES):
        delta.create(table)
    start_timeline(delta, pipeline("t"), EPOCH)
    for formats in files:
        start_timeline(delta, pipeline({"column": "t", "format": formats}, shards=9), EPOCH)
    with pytest.raises(ConfigError, match=r"foreign\.event_time is .* begun with"):
        start_timeline(delta, pipeline({"column": "t", "format": last}), EPOCH)
    start_timeline(delta, pipeline("t"), EPOCH)
    assert load_timeline(delta) == Timeline(((EPOCH, 4),))
    assert [(entry.since, entry.void) for entry in entries(delta)] == [(EPOCH, False)]


def test_who_is_killed_before_the_note_leaves_it_to_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or the timeline could be put back to before the form, by which batches have read."""
    delta, more = ArrowTables(str(tmp_path)), pipeline({"column": "t", "format": ["iso", X]})
    for table in (TIMELINE, BATCHES):
        delta.create(table)
    start_timeline(delta, pipeline("t"), EPOCH)
    with monkeypatch.context() as patch:
        patch.setattr("clickjoin.registry.shards.note", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            start_timeline(delta, more, EPOCH)
    assert delta.version("shard_timeline") == 2
    start_timeline(ArrowTables(str(tmp_path)), more, EPOCH)
    assert noted(read_log(delta.path("journal")).txns)["shard_timeline"][1] == 2


def test_two_files_that_go_on_differently_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    delta, other = ArrowTables(str(tmp_path)), ArrowTables(str(tmp_path))
    for table in (TIMELINE, BATCHES):
        delta.create(table)
    start_timeline(delta, pipeline("t"), EPOCH)
    append = ArrowTables.append

    def first_the_other(self: ArrowTables, *given: Any) -> bool:
        if self is delta:
            start_timeline(other, pipeline({"column": "t", "format": ["iso", Y]}), EPOCH)
        return append(self, *given)

    monkeypatch.setattr(ArrowTables, "append", first_the_other)
    with pytest.raises(ConfigError, match=r"foreign\.event_time is .* begun with"):
        start_timeline(delta, pipeline({"column": "t", "format": ["iso", X]}), EPOCH)
