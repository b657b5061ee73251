"""What a message has beside its value, as fields of its record: `_key`, `_headers` and `_timestamp`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NEVER = 253_402_300_800_000  # the year 10000, in milliseconds since 1970
_BLANKS = b" \t\r\n"


def with_metadata(line: bytes, message: Any, wanted: Sequence[str]) -> bytes:
    """A value with what is wanted (key | headers | timestamp) behind its own fields; what is no object as it is.

    A field of the same name in the value is then named twice, and refused as such where it is needed.
    """
    text = line.strip(_BLANKS)
    if not (text.startswith(b"{") and text.endswith(b"}")):
        return line
    fields = json.dumps({f"_{name}": _FIELDS[name](message) for name in wanted})[1:].encode()
    separator = b"" if text[1:-1].strip(_BLANKS) == b"" else b","
    return b"".join((text[:-1], separator, fields))


def _key(message: Any) -> str | None:
    return _text(message.key())


def _headers(message: Any) -> dict[str, str | None]:
    """Of several headers of one name the last, as Kafka's own `lastHeader`."""
    return {name: _text(value) for name, value in message.headers() or ()}


def _timestamp(message: Any) -> str | None:
    """ISO 8601 in UTC, in milliseconds; None where the message has none, or one beyond the year 9999."""
    _, millis = message.timestamp()
    if not 0 <= millis < _NEVER:
        return None
    return (_EPOCH + timedelta(milliseconds=millis)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _text(value: bytes | str | None) -> str | None:
    """Text of UTF-8; None for other bytes, which two spellings would make one."""
    if not isinstance(value, bytes):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


_FIELDS = {"key": _key, "headers": _headers, "timestamp": _timestamp}
