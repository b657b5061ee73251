"""Fields of a record that come from beside a message's value: key, headers, timestamp."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from clickjoin.kernel.kafka.metadata import with_metadata


@dataclass
class Message:
    """What librdkafka hands out."""

    named: bytes | None = b"k1"
    beside: tuple[tuple[str, bytes | None], ...] = ()
    at: int = 1_772_366_400_123

    def key(self) -> bytes | None:
        return self.named

    def headers(self) -> list[tuple[str, bytes | None]] | None:
        return list(self.beside) or None

    def timestamp(self) -> tuple[int, int]:
        return 1, self.at


def record(line: bytes, message: Any, *wanted: str) -> Any:
    return json.loads(with_metadata(line, message, wanted or ("key", "headers", "timestamp")))


def test_all_of_it() -> None:
    message = Message(beside=(("id", b"old"), ("id", "nü".encode()), ("none", None)))
    made = record(b'{"a": {"b": 1}}\n', message)
    assert made == {
        "a": {"b": 1},
        "_key": "k1",
        "_headers": {"id": "nü", "none": None},
        "_timestamp": "2026-03-01T12:00:00.123Z",
    }
    assert record(b" { } ", message, "key") == {"_key": "k1"}


def test_what_is_not_there_or_no_text_is_null() -> None:
    assert record(b"{}", Message(None, at=-1)) == {"_key": None, "_headers": {}, "_timestamp": None}
    for beyond in (253_402_300_800_000, (1 << 63) - 1):  # a producer may write any number
        assert record(b"{}", Message(at=beyond), "timestamp") == {"_timestamp": None}
    assert record(b"{}", Message(at=253_402_300_799_999), "timestamp") == {"_timestamp": "9999-12-31T23:59:59.999Z"}
    assert record(b"{}", Message(b"\xff", (("id", b"\xfe"),))) | {"_timestamp": 0} == {
        "_key": None, "_headers": {"id": None}, "_timestamp": 0,
    }  # fmt: skip


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(st.dictionaries(st.text().filter(lambda name: not name.startswith("_")), _VALUES), st.sampled_from([None, 2]))
def test_the_value_keeps_its_fields(value: dict[str, Any], indent: int | None) -> None:
    made = record(json.dumps(value, indent=indent).encode(), Message(), "key")
    assert made == value | {"_key": "k1"}


@given(_VALUES, st.text(), st.data())
def test_what_is_no_object_does_not_become_one(value: Any, key: str, data: st.DataObject) -> None:
    """Whatever is broken stays so: nothing that is put behind it ends a text or an object that was left open."""
    text = json.dumps({"a": value})
    at = data.draw(st.integers(0, len(text) - 1))
    broken = text[:at] + text[at + 1 :] if data.draw(st.booleans()) else text[:at] + data.draw(st.text(max_size=2))
    line = broken.replace("\n", "").encode("utf-8", "replace")
    message = Message(key.encode("utf-8", "replace"))
    try:
        whole = json.loads(line)
    except ValueError:
        whole = None
    try:
        made = json.loads(with_metadata(line, message, ("key",)))
    except ValueError:
        made = None
    assert isinstance(made, dict) == isinstance(whole, dict)
