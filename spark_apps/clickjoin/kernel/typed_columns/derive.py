"""The type of a column that has none, by what some records hold there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from clickjoin.kernel.typed_columns.by_line import TooDeep, decoded, kind_of, value_at
from clickjoin.model.field_path import path_text

if TYPE_CHECKING:
    from clickjoin.model.field_path import FieldPath

_DEPTH = 8


def derived(texts: Sequence[str], path: FieldPath) -> str | None:
    """BIGINT, DOUBLE or BOOLEAN where all values are, else STRING, for text too; None where there is none.

    `texts`: records as JSON.
    """
    kinds: set[str] = set()
    for text in texts:
        kind, value = kind_of(value_at(_record(text), path))
        kinds.add(_type(value) if kind == "number" else {"bool": "BOOLEAN", "missing": ""}.get(kind, "STRING"))
    kinds.discard("")
    if kinds == {"BIGINT", "DOUBLE"}:
        return "DOUBLE"
    return kinds.pop() if len(kinds) == 1 else "STRING" if kinds else None


def _type(number: str) -> str:
    return "BIGINT" if number.lstrip("-").isdigit() and -(2**63) <= int(number) < 2**63 else "DOUBLE"


def has(texts: Sequence[str], path: FieldPath) -> bool:
    """Whether any of some records has a value there, be it null."""
    return any(_leads(_record(text), path) for text in texts)


def _leads(record: Any, path: FieldPath) -> bool:
    inner = value_at(record, path[:-1])
    return path[-1] in inner if isinstance(inner, dict) else value_at(record, path) is not None


def paths(texts: Sequence[str]) -> list[str]:
    """Paths of the values that some records have, in order; of an array those of its first element."""
    found: dict[str, None] = {}
    for text in texts:
        _walk(_record(text), (), found)
    return list(found)


def _walk(value: Any, path: FieldPath, found: dict[str, None]) -> None:
    if value and len(path) < _DEPTH and isinstance(value, dict | list):
        for step, inner in value.items() if isinstance(value, dict) else ((0, value[0]),):
            _walk(inner, (*path, step), found)
    elif path:
        found[path_text(path)] = None


def _record(text: str) -> Any:
    try:
        return decoded(text)
    except (ValueError, TooDeep):
        return None
