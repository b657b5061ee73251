"""What of planned offsets is there still. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from clickjoin.kernel.chunk import KafkaChunk
from clickjoin.kernel.kafka.connection import Ends, Topic
from clickjoin.kernel.kafka.reading import taken
from clickjoin.kernel.parse.csv_lines import CsvForm
from clickjoin.sources.kafka.state import Range


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
