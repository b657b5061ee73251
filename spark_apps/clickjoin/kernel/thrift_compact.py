"""The little of Thrift's compact protocol that a Parquet footer and page index are written in. Runs on executors."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 12
_INTS = (4, 5, 6)
I32, I64, BINARY, LIST, STRUCT = 5, 6, _BINARY, _LIST, _STRUCT
Struct = dict[int, Any]


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A number without a sign, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def struct(data: bytes, at: int) -> tuple[Struct, int]:
    """Fields by their numbers, and where they end. Errors: IndexError, KeyError where it is none."""
    found: Struct = {}
    number = 0
    while head := data[at]:
        at += 1
        if head >> 4:
            number += head >> 4
        else:
            raw, at = varint(data, at)
            number = raw >> 1 ^ -(raw & 1)
        kind = head & 15
        if kind in _INTS:
            raw, at = varint(data, at)
            found[number] = raw >> 1 ^ -(raw & 1)
        elif kind in (_TRUE, _FALSE):
            found[number] = kind == _TRUE
        else:
            found[number], at = _READ[kind](data, at)
    return found, at + 1


def list_head(data: bytes, at: int) -> tuple[int, int, int]:
    """How many elements a list has, of which kind, and where the first begins."""
    head = data[at]
    count, at = (head >> 4, at + 1) if head < 0xF0 else varint(data, at + 1)
    return count, head & 15, at


def elements(data: bytes, at: int) -> tuple[list[Any], int]:
    """A list's elements, and where they end."""
    count, kind, at = list_head(data, at)
    found = []
    read = _READ[kind]
    for _ in range(count):
        value, at = read(data, at)
        found.append(value)
    return found, at


def _binary(data: bytes, at: int) -> tuple[bytes, int]:
    size, at = varint(data, at)
    return data[at : at + size], at + size


def _number(data: bytes, at: int) -> tuple[int, int]:
    raw, at = varint(data, at)
    return raw >> 1 ^ -(raw & 1), at


def _byte(data: bytes, at: int) -> tuple[int, int]:
    return data[at], at + 1


def _double(data: bytes, at: int) -> tuple[bytes, int]:
    return data[at : at + 8], at + 8


_READ: dict[int, Callable[[bytes, int], tuple[Any, int]]] = {
    _TRUE: _byte, _FALSE: _byte, _BYTE: _byte, _DOUBLE: _double, _BINARY: _binary, _LIST: elements, _SET: elements,
    _STRUCT: struct, **dict.fromkeys(_INTS, _number),
}  # fmt: skip


def varints(data: bytes) -> np.ndarray[Any, Any]:
    """All numbers without a sign that lie there one after the other."""
    raw = np.frombuffer(data, np.uint8)
    last = np.flatnonzero(raw < 128)
    first = np.r_[0, last[:-1] + 1]
    found = np.zeros(len(last), np.int64)
    for byte in range(int((last - first).max(initial=-1)) + 1):
        at = first + byte
        inside = at <= last
        found[inside] |= (raw[at[inside]] & 127).astype(np.int64) << (7 * byte)
    return found


def number(value: int) -> bytes:
    """A number as it is written, with its sign."""
    return unsigned(value << 1 ^ value >> 63)


def unsigned(value: int) -> bytes:
    """A number as it is written, without a sign."""
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    found.append(value)
    return bytes(found)


def written(fields: Iterable[tuple[int, int, bytes]]) -> bytes:
    """A struct of fields (number, kind, value as it is written), in the order of their numbers."""
    last, parts = 0, []
    for number_, kind, value in fields:
        parts += [bytes([(number_ - last) << 4 | kind]), value]
        last = number_
    return b"".join(parts) + b"\0"


def written_list(kind: int, values: list[bytes]) -> bytes:
    """A list of values as they are written."""
    count = len(values)
    head = bytes([count << 4 | kind]) if count < 15 else bytes([0xF0 | kind]) + unsigned(count)
    return head + b"".join(values)


def binary(value: bytes) -> bytes:
    """Bytes as they are written."""
    return unsigned(len(value)) + value
