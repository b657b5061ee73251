"""What a batch reads of a topic, and what is reported of offsets that are gone. Pure: no broker is asked here."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from clickjoin.kernel.chunk import KafkaChunk
from clickjoin.kernel.kafka.connection import Ends, Topic
from clickjoin.kernel.kafka.reading import taken
from clickjoin.kernel.parse.csv_lines import CsvForm
from clickjoin.model.split import Budget, Problem, SourcePlan, Split
from clickjoin.sources.kafka.state import Place, Position, Range, path_of

_LEAST = 4  # no partition gets less than so many parts of an equal share


@dataclass(frozen=True)
class Look:
    """A topic as it was found: its partitions' ends, where new ones begin, when (seconds since 1970).

    `begin`: where a partition begins that the journal does not know. `mean`: bytes of a message, about.
    `cut`: partitions whose logs have ended before what was planned for so long that it counts.
    """

    name: str
    topic: Topic
    ends: Mapping[int, Ends]
    begin: Mapping[int, int]
    now: float
    mean: float = 500.0
    cut: Collection[int] = ()


def make_plan(
    look: Look, positions: Mapping[str, Position], budget: Budget, back: Collection[Position] = ()
) -> SourcePlan:
    """Plan a batch: what every partition has, in shares by what is unread, so that they come forward together.

    `back`: positions that are to be read again from there.
    """
    draft = _Draft(look, changed={str(position.place): position for position in back})
    for position in positions.values():
        draft.retire(position)
    known = [draft.position(number, positions) for number in sorted(look.ends)]
    room = min(budget.max_events, max(int(budget.max_bytes / max(look.mean, 1)), 1))
    unread = [draft.unread(position) for position in known]
    for position, share, left in zip(known, shares(unread, room), unread, strict=True):
        draft.take(position, share, left)
    return draft.plan(positions)


def shares(unread: Sequence[int], room: int) -> list[int]:
    """How many records each partition gives: all if there is room, else in proportion, none so little that it starves.

    They add up to all that there is, or to `room`.
    """
    whole = sum(unread)
    if whole <= room:
        return list(unread)
    least = room // (_LEAST * max(len(unread), 1))
    taken = [min(one, max(one * room // whole, least)) for one in unread]
    over = sum(taken) - room
    for at in sorted(range(len(taken)), key=lambda at: -taken[at]):
        given = min(max(over, 0), max(taken[at] - least, 0))
        taken[at] -= given
        over -= given
    for at in sorted(range(len(taken)), key=lambda at: taken[at] - unread[at]):
        more = min(max(-over, 0), unread[at] - taken[at])
        taken[at] += more
        over += more
    return taken


@dataclass
class _Draft:
    """A plan in the making."""

    look: Look
    splits: list[Split] = field(default_factory=list)
    changed: dict[str, Position] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    backlog: int = 0
    lag: dict[str, int] = field(default_factory=dict)

    def retire(self, position: Position) -> None:
        """Put on record what was unread of a topic that is gone, where another has its name."""
        own = (self.look.topic.cluster, self.look.topic.id)
        place = position.place
        if position.topic != self.look.name or position.state == "gone" or (place.cluster, place.topic_id) == own:
            return
        unread = max(position.end - position.next, 0)
        if unread:
            self._split(position, position.end, 0)
        self.changed[str(place)] = replace(position, next=position.next + unread, state="gone", at=self.look.now)
        what = f"{unread} messages or more of it were never read" if unread else "it had been read as far as is known"
        detail = (
            f"{position.topic} is another topic now (id {place.topic_id}, now {self.look.topic.id}), and is read from "
            f"its beginning; of the old one, {what}"
        )
        path = path_of(position.topic, place.number)
        self.problems.append(Problem("source-lost" if unread else "rewritten", path, detail, position.next, unread))

    def position(self, number: int, positions: Mapping[str, Position]) -> Position:
        """How far a partition has been planned; a new one is noted at once, since it is new only now."""
        place = Place(self.look.topic.cluster, self.look.topic.id, number)
        ends = self.look.ends[number]
        known = self.changed.get(str(place)) or positions.get(str(place))
        if known is None:
            begin = min(max(self.look.begin.get(number, ends.low), ends.low), ends.high)
            known = Position(place, self.look.name, begin, ends.high, self.look.now)
            self.changed[str(place)] = known
        elif known.next > ends.high:
            known = self._cut(known, ends)
        return known

    def _cut(self, known: Position, ends: Ends) -> Position:
        """A log that ends before what was planned of it: brokers have lost it, unless a new leader only lags."""
        number, path = known.place.number, path_of(known.topic, known.place.number)
        detail = f"{path}: its log ends at offset {ends.high}, and was planned up to {known.next}: brokers have lost"
        detail += " messages (an unclean election?); what they take in from now on is read"
        self.problems.append(Problem("rewritten", path, detail, ends.high, known.next - ends.high))
        if number not in self.look.cut:
            return known
        marks = tuple(mark for mark in known.marks if mark.offset < ends.high)
        back = replace(known, next=ends.high, end=ends.high, at=self.look.now, marks=marks)
        self.changed[str(known.place)] = back
        return back

    def unread(self, position: Position) -> int:
        """How many offsets a partition has that can be read."""
        ends = self.look.ends[position.place.number]
        return max(ends.high - max(position.next, ends.low), 0)

    def take(self, position: Position, taken: int, unread: int) -> None:
        """Take so many records of a partition; what was deleted before goes with them, to be put on record as lost."""
        ends = self.look.ends[position.place.number]
        gone = min(ends.low, ends.high) - position.next
        end = position.next + max(gone, 0) + taken
        self.backlog += unread - taken
        self.lag[path_of(position.topic, position.place.number)] = unread - taken
        if end == position.next:
            return
        if gone > 0:
            path = path_of(position.topic, position.place.number)
            detail = (
                f"{path}: messages from offset {position.next} up to {ends.low} were deleted before they were read; "
                "keep them for longer (retention.ms) than a join may rest"
            )
            self.problems.append(Problem("source-lost", path, detail, position.next, gone))
        self._split(position, end, taken)
        self.changed[str(position.place)] = replace(position, next=end, end=ends.high, at=self.look.now)

    def _split(self, position: Position, end: int, events: int) -> None:
        part = Range(position.place, position.topic, position.next, end)
        self.splits.append(part.to_split(events, round(events * self.look.mean)))

    def plan(self, positions: Mapping[str, Position]) -> SourcePlan:
        """The finished plan."""
        changed = [position for name, position in self.changed.items() if positions.get(name) != position]
        return SourcePlan(
            splits=tuple(self.splits),
            offsets=tuple(position.to_offset() for position in changed),
            backlog_bytes=round(self.backlog * self.look.mean),
            backlog_events=self.backlog,
            problems=tuple(self.problems),
            lag=self.lag,
        )


def located(planned: Range, topic: Topic, ends: Mapping[int, Ends], csv: CsvForm | None) -> Iterator[KafkaChunk]:
    """A range as chunks to be read: what is lost, with the reason, and what is left."""
    place = planned.place
    whole = KafkaChunk(
        planned.path, str(place), planned.topic, place.topic_id, place.number, planned.start, planned.end, csv
    )
    if (topic.cluster, topic.id) != (place.cluster, place.topic_id):
        yield whole._replace(lost=_replaced(planned, topic))
        return
    low = min(max(ends[place.number].low, planned.start), planned.end)
    if low > planned.start:
        yield whole._replace(end=low, lost=taken(low))
    if low < planned.end:
        yield whole._replace(start=low)


def _replaced(planned: Range, topic: Topic) -> str:
    place = planned.place
    if topic.cluster != place.cluster:
        return f"{planned.topic} is of cluster {topic.cluster} now, and was planned in {place.cluster}"
    return f"topic {planned.topic} was made again: it was planned with id {place.topic_id}, and has {topic.id} now"
