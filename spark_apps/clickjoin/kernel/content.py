"""What bytes are that were taken for lines of text, by how they begin. Runs on executors."""

from __future__ import annotations

from clickjoin.kernel.packed import MAGIC, SUFFIX

LONGEST = 16  # bytes that are looked at
_NAMED = "{}, by its first bytes, but is not named *{}: rename it so, and it is read again"
_UNREAD = "{}, by its first bytes, which is not read: write it as JSON lines, CSV or Parquet"
_KINDS = (
    *((magic, _NAMED.format(kind, SUFFIX[kind])) for magic, kind in MAGIC.items()),
    (b"PARE", "Parquet with an encrypted footer, by its first bytes: its keys are not known; write it unencrypted"),
    (b"\xff\xfe\0\0", "text in UTF-32, by its first bytes: write UTF-8"),
    (b"\0\0\xfe\xff", "text in UTF-32, by its first bytes: write UTF-8"),
    (b"\xff\xfe", "text in UTF-16, by its first bytes: write UTF-8"),
    (b"\xfe\xff", "text in UTF-16, by its first bytes: write UTF-8"),
    (b"\xfd7zXZ\0", _UNREAD.format("xz")),
    (b"\x04\x22\x4d\x18", _UNREAD.format("LZ4")),
    (b"\xff\x06\0\0sNaPpY", _UNREAD.format("Snappy")),
    (b"PK\x03\x04", _UNREAD.format("a ZIP archive")),
    (b"Obj\x01", _UNREAD.format("Avro")),
    (b"ORC", _UNREAD.format("ORC")),
)


def other_than_text(head: bytes) -> str:
    """What a file is whose first bytes are no text, and the remedy; empty where they may be text."""
    known = next((what for magic, what in _KINDS if head.startswith(magic)), "")
    if known or len(head) < 4:
        return known
    wide = head[:4].count(0) == 2 and (head[0] == head[2] == 0 or head[1] == head[3] == 0)
    return "text in UTF-16 without a byte order mark, it seems: write UTF-8" if wide else ""


def framed(message: bytes) -> str:
    """What a message of Kafka is that begins as Confluent's serializers do; empty where it does not."""
    if len(message) > 5 and message[0] == 0:
        schema = int.from_bytes(message[1:5], "big")
        return (
            f"the message begins with Confluent's frame (a zero byte, schema {schema}): it is Avro, Protobuf or JSON "
            "of a schema registry; write plain JSON or CSV"
        )
    return ""
