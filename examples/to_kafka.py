"""Feeds a Kafka topic from a pipeline's output, each row once, whatever crashes: for consumers that read committed.

    python examples/to_kafka.py lake/zozo/joined kafka-1:9092 joined [--set security.protocol=SSL] [--wait 1]

How far it has come in the table (version, row) is the offset of consumer group `TABLE-to-TOPIC`, committed in the
transaction that the rows are sent in. A second copy fences the first. A message's key is the event's id and time, its
value the row as JSON, its header the version. What a rebuild or a deletion has changed is sent as the row that is there
now, or as a tombstone, under the same key; compaction sends nothing.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Any

import pyarrow.parquet as pq
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from clickjoin.kernel.filesystem import filesystem
from clickjoin.kernel.table_rows import RowFile
from clickjoin.lake.table_changes import ChangeLog, Entry

TIMEOUT = 60  # seconds
FENCED = (KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH)
Message = tuple[str, str | None]  # key and value
Row = Mapping[str, Any]


class Stopped(Exception):
    """It cannot go on; the text says what to do."""


@dataclass(frozen=True)
class Position:
    """The next version and row to send. `whole`: all that the version holds; `last`, `mark`: the entry before it."""

    version: int
    row: int = 0
    whole: bool = False
    last: int = -1
    mark: str = ""


class Feed:
    """Sends the rows of the table in a folder to a topic. `rows`: of one transaction at most."""

    def __init__(self, table: str, servers: str, topic: str, options: Mapping[str, str], rows: int) -> None:
        self.log, self.table, self.topic, self.rows = ChangeLog(table), table, topic, rows
        self.files, self.folder = filesystem(table)
        name = f"{'-'.join(table.rstrip('/').split('/')[-2:])}-to-{topic}"
        common = {"bootstrap.servers": servers, **options}
        self.group = Consumer(
            {**common, "group.id": name, "isolation.level": "read_committed", "enable.auto.commit": False}
        )
        self.producer = Producer({**common, "transactional.id": name, "linger.ms": 20})
        self.producer.init_transactions(TIMEOUT)  # from here on the copy before commits nothing more

    def run(self, begin: int | None) -> int:
        """Send all that is there by now; returns how many. `begin`: the version to begin behind, if none is known."""
        sent, position = 0, self.position() or self.first(begin)
        self.commit((), position)  # again, though it has not moved: a group that is silent for a week is forgotten
        while (found := self.messages(position)) is not None:
            messages, following = found
            while some := list(islice(messages, self.rows)):
                position = replace(position, row=position.row + len(some))
                self.commit(some, position)
                sent += len(some)
            position = following
            self.commit((), position)
        return sent

    def position(self) -> Position | None:
        """How far the group has come; None where it knows nothing."""
        at = self.group.committed([TopicPartition(self.topic, 0)], TIMEOUT)[0]
        return Position(**json.loads(at.metadata or "{}")) if at.offset >= 0 else None

    def first(self, begin: int | None) -> Position:
        """Where to begin. Errors: Stopped for a topic that holds messages, of versions that nobody knows."""
        facts = self.log.facts()
        if facts is None:
            raise Stopped(f"{self.table}: no Delta table lies there")
        if begin is not None:
            return Position(begin + 1, last=begin, mark=self.log.mark(begin) or "")
        for partition in self.group.list_topics(self.topic, TIMEOUT).topics[self.topic].partitions:
            if self.group.get_watermark_offsets(TopicPartition(self.topic, partition), TIMEOUT)[1] > 0:
                raise Stopped(
                    f"{self.topic}: holds messages, and its group no version (a week without a run forgets it). "
                    "Give --from VERSION, the header of its newest message, or another topic"
                )
        return Position(facts.version, whole=True)

    def messages(self, position: Position) -> tuple[Iterator[Message], Position] | None:
        """What is to be sent from a position on, and the one behind it; None where the table ends."""
        self.require_same(position)
        entry = self.log.entry(position.version)
        if position.whole:
            files = self.log.files_at(position.version)
            if files is None or entry is None:
                raise Stopped(f"{self.table}: version {position.version} was cleaned away before all of it was sent")
            rows: Iterator[Message] = ((key(row), text(row)) for row in self.read(files))
        elif entry is None:
            if self.log.next_after(position.version) is None:
                return None
            raise Stopped(
                f"{self.table}: version {position.version} was cleaned out of its log before it was sent. "
                "Feed another topic from its beginning"
            )
        else:
            rows = self.changed(entry)
        following = Position(position.version + 1, last=position.version, mark=entry.mark)
        return islice(rows, position.row, None), following

    def require_same(self, position: Position) -> None:
        """Check that the table has the past that was sent. Errors: Stopped."""
        mark = self.log.mark(position.last) if position.mark else None
        if mark not in (None, position.mark):
            raise Stopped(f"{self.table}: another past than the one sent, since version {position.last} at the latest")

    def changed(self, entry: Entry) -> Iterator[Message]:
        """What a version brought; of rewritten files what differs from before."""
        if not entry.removed:
            return ((key(row), text(row)) for row in self.read(entry.added))
        before = {key(row): text(row) for row in self.read(entry.removed)}
        after = {key(row): text(row) for row in self.read(entry.added)}
        gone: list[Message] = [(name, None) for name in before if name not in after]
        return iter(gone + [(name, value) for name, value in after.items() if before.get(name) != value])

    def read(self, files: Sequence[RowFile]) -> Iterator[Row]:
        """Rows of files, in a fixed order. Errors: Stopped where one was cleaned away."""
        for file in files:
            try:
                with self.files.open_input_file(f"{self.folder}/{file.path}") as opened:
                    for batch in pq.ParquetFile(opened).iter_batches():
                        yield from ({**file.values, **row} for row in batch.to_pylist())
            except FileNotFoundError as error:
                raise Stopped(
                    f"{error}: cleaned away before it was sent; feed another topic from its beginning"
                ) from error

    def commit(self, messages: Sequence[Message], position: Position) -> None:
        """Send messages, and where they end, in one transaction."""
        at = TopicPartition(self.topic, 0, position.version, json.dumps(asdict(position)))
        headers = {"version": str(position.version)}
        self.producer.begin_transaction()
        for name, value in messages:
            self.produce(name, value, headers)
        self.producer.send_offsets_to_transaction([at], self.group.consumer_group_metadata(), TIMEOUT)
        self.producer.commit_transaction(TIMEOUT)

    def produce(self, name: str, value: str | None, headers: Mapping[str, str]) -> None:
        """Hand a message over, waiting where many are under way."""
        while True:
            try:
                return self.producer.produce(self.topic, value, key=name, headers=dict(headers))
            except BufferError:
                self.producer.poll(0.1)


def key(row: Row) -> str:
    """What names an event: its id and its time."""
    return f"{row['event_id']} {row['event_time'].isoformat()}"


def text(row: Row) -> str:
    """A row as JSON; times in ISO 8601."""
    return json.dumps(row, default=lambda value: value.isoformat() if hasattr(value, "isoformat") else str(value))


def main(arguments: list[str]) -> int:
    """Send what there is, and with --wait go on looking every so many seconds."""
    parser = argparse.ArgumentParser(description="Feed a Kafka topic from a pipeline's output, each row once")
    parser.add_argument("table", help="folder or s3:// address of `joined`")
    parser.add_argument("servers")
    parser.add_argument("topic", help="made beforehand")
    parser.add_argument("--set", action="append", default=[], metavar="OPTION=VALUE", help="of librdkafka")
    parser.add_argument("--rows", type=int, default=10_000, help="of one transaction")
    parser.add_argument(
        "--from", dest="begin", type=int, metavar="VERSION", help="begin behind it, if no group is known"
    )
    parser.add_argument("--wait", type=float, help="seconds from one look to the next; without it one look is all")
    given = parser.parse_args(arguments)
    options = dict(option.split("=", 1) for option in given.set)
    while True:
        try:
            feed = Feed(given.table, given.servers, given.topic, options, given.rows)
            while True:
                print(f"{feed.run(given.begin)} messages sent", flush=True)
                if given.wait is None:
                    return 0
                time.sleep(given.wait)
        except Stopped as error:
            print(f"to_kafka: {error}", file=sys.stderr)
            return 1
        except KafkaException as error:
            print(f"to_kafka: {error.args[0].str()}", file=sys.stderr)
            if given.wait is None or error.args[0].code() in FENCED:
                return 1
            time.sleep(given.wait)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
