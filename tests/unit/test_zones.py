"""The rules of time zones: a digest by what clocks show, and a lake that keeps to those that it was read by."""

from __future__ import annotations

import shutil
import time
import zoneinfo
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from clickjoin.config import Pipeline
from clickjoin.config.streams import TimeColumn
from clickjoin.engines.arrow import ArrowTables
from clickjoin.kernel.handshake import VersionMismatch
from clickjoin.kernel.parse.times import micros_by
from clickjoin.lake_setup import initialise
from clickjoin.model.errors import LakeError
from clickjoin.model.ids import TimeForm
from clickjoin.model.zones import rules_of
from clickjoin.registry.zones import keep_zones
from clickjoin.schemas import BATCHES, TIMELINE

ZONE = "America/Mexico_City"  # which gave up summer time in 2022
FORM = "%Y-%m-%d %H:%M:%S"


def _folder() -> Path:
    found = (Path(place) for place in zoneinfo.TZPATH if (Path(place) / ZONE).exists())
    place = next(found, None)
    if place is None:
        tzdata = pytest.importorskip("tzdata")
        return Path(tzdata.__file__).parent / "zoneinfo"
    return place


@pytest.fixture
def older(tmp_path: Path) -> Iterator[None]:
    """A host whose tzdata is from before the change: with summer time."""
    (tmp_path / "tz/America").mkdir(parents=True)
    shutil.copy(_folder() / "America/Chicago", tmp_path / "tz" / ZONE)
    was = zoneinfo.TZPATH
    zoneinfo.reset_tzpath(to=[str(tmp_path / "tz")])
    zoneinfo.ZoneInfo.clear_cache()
    yield
    zoneinfo.reset_tzpath(to=list(was) or None)
    zoneinfo.ZoneInfo.clear_cache()


def test_zones_differ_and_names_of_one_do_not() -> None:
    assert len({rules_of(zone) for zone in ("UTC", "Europe/Berlin", "Europe/London", ZONE, "Africa/Casablanca")}) == 5
    assert rules_of("Asia/Kolkata") == rules_of("Asia/Calcutta")


def test_an_executor_with_other_rules_reads_nothing(older: None) -> None:
    assert micros_by(pa.array(["2025-07-01 12:00:00"]), TimeForm((FORM,), ZONE, rules_of(ZONE)))[1].all()
    with pytest.raises(VersionMismatch, match=rf"time zone {ZONE} has other rules there"):
        micros_by(pa.array(["2025-07-01 12:00:00"]), TimeForm((FORM,), ZONE, "those of another host"))


def _pipeline(lake: Path) -> Pipeline:
    source = {"kind": "files", "path": str(lake / "*.jsonl")}
    time = {"column": "at", "format": FORM, "zone": ZONE}
    primary = {"source": source, "event_id": "id", "event_time": "embedded"}
    foreign = {**primary, "event_time": time, "primary_id": "of", "primary_time": "embedded"}
    fields = {"pipeline": "zoned", "lake": str(lake), "engine": "arrow", "primary": primary, "foreign": foreign}
    return Pipeline.model_validate(fields)


@pytest.mark.parametrize("before", ["append", "set_zones"])
def test_of_two_hosts_that_begin_at_once_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    """Whenever the other one comes, as a property of a table is written over."""
    now, theirs = datetime.now(UTC), {ZONE: "those of another host"}
    delta, other = ArrowTables(str(tmp_path)), ArrowTables(str(tmp_path))
    for table in (BATCHES, TIMELINE):
        delta.create(table)
    commit, refused = getattr(ArrowTables, before), []

    def first_the_other(self: ArrowTables, *given: Any) -> Any:
        if self is delta:
            try:
                keep_zones(other, theirs, now)
            except LakeError as error:
                refused.append(error)
        return commit(self, *given)

    monkeypatch.setattr(ArrowTables, before, first_the_other)
    try:
        keep_zones(delta, {ZONE: rules_of(ZONE)}, now)
    except LakeError as error:
        refused.append(error)
    assert [f"time zone {ZONE} has other rules on this host" in str(error) for error in refused] == [True]
    assert delta.zones[ZONE] == (rules_of(ZONE) if before == "set_zones" else theirs[ZONE])
    with pytest.raises(LakeError):  # for good
        keep_zones(ArrowTables(str(tmp_path)), {ZONE: "those of a third"}, now)


def test_a_lake_whose_journal_was_lost_keeps_to_its_rules(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """They were kept in the journal alone: the next host to begin set its own, and read every event as another."""
    pipeline = _pipeline(tmp_path)
    initialise(pipeline, ArrowTables(pipeline.root))
    shutil.rmtree(f"{pipeline.root}/journal")
    ArrowTables(pipeline.root).create(BATCHES)  # as `journal rebuild` makes it
    request.getfixturevalue("older")
    with pytest.raises(LakeError, match=rf"time zone {ZONE} has other rules on this host"):
        initialise(pipeline)


def test_a_lake_keeps_to_the_rules_it_was_read_by(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    pipeline = _pipeline(tmp_path)
    delta = ArrowTables(pipeline.root)
    initialise(pipeline, delta)
    assert delta.zones == {ZONE: rules_of(ZONE)}
    initialise(pipeline)
    request.getfixturevalue("older")
    with pytest.raises(LakeError, match=rf"time zone {ZONE} has other rules on this host"):
        initialise(pipeline)


@pytest.mark.parametrize(
    ("text", "zone", "utc"),
    [
        ("25.10.2026 02:30:00 CEST", "Europe/Berlin", "2026-10-25T00:30:00"),
        ("25.10.2026 02:30:00 CET", "Europe/Berlin", "2026-10-25T01:30:00"),
        ("25.10.2026 02:30 cet", "Europe/Berlin", "2026-10-25T01:30:00"),
        ("01.07.2026 12:00:00CEST", "Europe/Berlin", "2026-07-01T10:00:00"),
        ("01.07.2026 12:00:00 GMT", "Europe/Berlin", "2026-07-01T12:00:00"),
        ("01.07.2026 12:00:00 UTC", "America/New_York", "2026-07-01T12:00:00"),
        ("01.07.2026 12:00:00 EDT", "America/New_York", "2026-07-01T16:00:00"),
        ("01.07.2026 12:00:00 EST", "America/New_York", None),
        ("01.07.2026 12:00:00 CET", "Europe/Berlin", None),  # no clock there said so
        ("01.07.2026 12:00:00 EDT", "Europe/Berlin", None),
        ("01.07.2026 12:00:00", "Europe/Berlin", None),
    ],
)
def test_a_zones_name_behind_a_time(text: str, zone: str, utc: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the host's own zone is, whose names strptime took, and passed over."""
    form = TimeColumn.model_validate({"column": "at", "format": "%d.%m.%Y %H:%M:%S %Z", "zone": zone}).form
    for host in ("UTC", "Europe/Berlin", "America/New_York"):
        monkeypatch.setenv("TZ", host)
        time.tzset()
        micros, known = micros_by(pa.array([text]), form)
        found = datetime.fromtimestamp(micros[0] / 1e6, UTC).replace(tzinfo=None).isoformat() if known[0] else None
        assert found == utc
    monkeypatch.undo()
    time.tzset()


def test_a_zones_name_stands_last() -> None:
    with pytest.raises(ValueError, match="read at the end alone"):
        TimeColumn.model_validate({"column": "at", "format": "%H:%M:%S %Z %d.%m.%Y"})
