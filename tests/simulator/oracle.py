"""The oracle: looks into the model's tables by event id. Shares no code with the product."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from tests.simulator.logs import Logs
from tests.simulator.model import Commit, File, Lake, Table
from tests.simulator.world import Violation

_ONCE = ("joined", "registry", "filtered", "unjoinable")
MOST_ATTEMPTS = 30  # where events are given up by the watermark


class Oracle:
    """What must hold after every commit, and at the end."""

    def __init__(
        self,
        lake: Lake,
        root: str,
        logs: Logs,
        *,
        alone: bool = False,
        by_id: bool = False,
        of: Oracle | None = None,
        absent: bool = False,
    ) -> None:
        """`root`: where the pipeline's tables lie; `alone`: of one stream; `by_id`: an id is one event's, whatever its
        time; `of`: that of the pipeline whose output is the primary stream; `absent`: events are given up by the
        watermark."""
        self._alone, self._by_id = alone, by_id
        self._lake, self._root, self._of, self._absent = lake, f"{root}/", of, absent
        self._logs = logs
        self._counts: dict[str, Counter[Any]] = {name: Counter() for name in _ONCE}
        self.joined = 0
        self.forgives = lambda: False  # what is doubled now: it is looked for when all have ended
        self._before = lake.seen, lake.changed  # another pipeline's
        lake.seen, lake.changed = self.seen, self.changed

    def changed(self, table: Table) -> None:
        """A table's past is another now: count it again."""
        self._before[1](table)
        if not table.path.startswith(self._root):
            return
        counts = self._counts.get(_named(table))
        if counts is not None:
            counts.clear()
            for file in table.newest.files.values():
                self._count(_named(table), counts, file)

    def seen(self, table: Table, commit: Commit) -> None:
        """After every commit: its files are there; no id is twice in the output, nor claimed twice."""
        self._before[0](table, commit)
        if not table.path.startswith(self._root):
            return
        for file in commit.adds:
            if f"{table.path}/{file.path}" not in self._lake.files:
                raise Violation(f"lost: {table.name} has a file that is gone, {file.path}")
        counts = self._counts.get(_named(table))
        if counts is None:
            return
        before = table.snapshots[-2].files
        for path in commit.removes & before.keys():
            for row in before[path].rows:
                counts[self._key(row)] -= 1
        for file in commit.adds:
            self._count(_named(table), counts, file)

    def _key(self, row: dict[str, Any]) -> Any:
        return row["event_id"], None if self._by_id else row["event_time"]

    def _count(self, name: str, counts: Counter[Any], file: File) -> None:
        for row in file.rows:
            key = self._key(row)
            counts[key] += 1
            if counts[key] > 1 and name in ("joined", "registry") and not self.forgives():
                raise Violation(f"doubled: {key[0]} is {counts[key]} times in {name}, now by {row['token']}")

    def at_the_end(self) -> None:
        """Every accepted id is in exactly one place, and joined to the query that it names."""
        clicks: dict[str, list[dict[str, Any]]] = {}
        for row in self._logs.foreign:
            if "event_id" in row:
                clicks.setdefault(row["event_id"], []).append(row)
        queries = self._queries()
        joined = {row["event_id"]: row for row in self._rows("joined")}
        self.joined = len(joined)
        if len(joined) < len(self._rows("joined")):
            raise Violation(f"doubled: {len(self._rows('joined'))} rows of {len(joined)} ids in joined")
        places = self._places()
        for event, records in clicks.items():
            self._one_place(event, places.get(event, []))
            if event in joined and not self._alone:
                _joined_rightly(joined[event], records, queries)
        invented = [event for event in places if event not in clicks]
        if invented:
            raise Violation(f"invented: {invented} is in no log")
        self._claimed(joined)
        self._given_up(queries)

    def _given_up(self, queries: set[str]) -> None:
        """Of a pipeline that gives up by the watermark: none before its attempts are spent that has a query."""
        for row in self._rows("unjoinable") if self._absent else ():
            if row["primary_id"] in queries and row["attempt"] < MOST_ATTEMPTS:
                raise Violation(f"given up: {row['event_id']}, though {row['primary_id']} is in order in its log")

    def _queries(self) -> set[str]:
        """What may be joined to."""
        if self._of is None:
            return {row["event_id"] for row in self._logs.primary}
        joined, read = self._of._rows("joined"), {row["event_id"] for row in self._rows("primary")}
        lost = {row["event_id"] for row in joined} - read
        if lost and not any(row["reason"] == "source-lost" for row in self._rows("quarantine")):
            raise Violation(f"lost: {min(lost)} is in the output that this pipeline reads, and was never read")
        return read

    def _one_place(self, event: str, found: list[str]) -> None:
        settled = [name for name in found if name != "expired"]
        if not found:
            raise Violation(f"lost: {event} is in no table")
        # A repeat that comes after its claim was collected is refused as expired, beside what became of the first.
        if len(settled) > 1:
            raise Violation(f"two places: {event} is in {found}")

    def _places(self) -> dict[str, list[str]]:
        places: dict[str, list[str]] = {}
        for name in ("joined", "filtered", "unjoinable"):
            for row in self._rows(name):
                places.setdefault(row["event_id"], []).append(name)
        for event in {row["event_id"]: None for row in self._rows("expired")}:
            places.setdefault(event, []).append("expired")
        for event in self._waiting():
            places.setdefault(event, []).append("pending")
        for event in self._put_aside():
            places.setdefault(event, ["quarantine"])
        return places

    def _put_aside(self) -> list[str]:
        """Events that a replica whose clock is behind has taken for the future's; another may have joined them."""
        texts = [bytes(row["raw"]) for row in self._rows("quarantine")] if self._logs.clocks_are_wrong else []
        return [text["event_id"] for text in map(_record, texts) if text and "primary_id" in text]

    def _waiting(self) -> list[str]:
        newest: dict[Any, dict[str, Any]] = {}
        for row in self._rows("pending"):
            key = row["replica"], row["event_id"], row["event_time"]
            old = newest.get(key)
            if old is None or _rank(row) > _rank(old):
                newest[key] = row
        return list(dict.fromkeys(row["event_id"] for row in newest.values() if row["state"] == "waiting"))

    def _claimed(self, joined: dict[str, dict[str, Any]]) -> None:
        claims = {row["event_id"]: row for row in self._rows("registry")}
        for event, row in joined.items():
            claim = claims.get(event)
            if claim is None:
                moved = [at["boundary"] for at in self._rows("registry_boundary") if at["shard"] >= 0]
                if not any(row["event_time"] < boundary for boundary in moved):
                    raise Violation(f"output without claim: {event} of {row['token']}")
            elif (claim["token"], claim["outcome"]) != (row["token"], "joined"):
                raise Violation(f"wrong claim: {event} is output of {row['token']}, claimed by {claim['token']}")

    def _rows(self, name: str) -> list[dict[str, Any]]:
        mine = (table for table in self._lake.tables.values() if table.path.startswith(self._root))
        return next(table for table in mine if _named(table) == name).newest.rows()


def _named(table: Table) -> str:
    """A table's name, that of the output as if of two streams."""
    return "joined" if table.name == "deduplicated" else table.name


def _record(text: bytes) -> dict[str, Any] | None:
    try:
        return dict(json.loads(text))
    except ValueError:
        return None


def _rank(row: dict[str, Any]) -> tuple[int, int, bool]:
    return row["round"], row["attempt"], row["state"] == "resolved"


def _joined_rightly(row: dict[str, Any], records: list[dict[str, Any]], queries: set[str]) -> None:
    named = {record["primary_id"] for record in records}
    if row["primary_id"] not in named or row["primary_id"] not in queries:
        raise Violation(f"joined wrongly: {row['event_id']} to {row['primary_id']}, it names {sorted(named)}")
    if row["event_id"] not in row["foreign_record"] or row["primary_id"] not in row["primary_record"]:
        raise Violation(f"joined wrongly: {row['event_id']} has {row['foreign_record']} and {row['primary_record']}")
