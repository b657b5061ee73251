"""What some records hold: the paths of their values, and the type of a column that is given none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from clickjoin.kernel.typed_columns.by_line import Number, TooDeep, decoded, value_at
from clickjoin.model.field_path import path_text

if TYPE_CHECKING:
    from clickjoin.model.field_path import FieldPath

_DEEPEST = 8


def derived(texts: Sequence[str], path: FieldPath) -> str | None:
    """The type that fits what records (JSON text) hold at a path (see common_type); None where none has a value."""
    return common_type(value_at(_record(text), path) for text in texts)


def common_type(values: Iterable[Any]) -> str | None:
    """BIGINT, DOUBLE or BOOLEAN where all JSON values are, else STRING, for text too; None where all are null."""
    kinds = {_type(value) for value in values if value is not None}
    if kinds == {"BIGINT", "DOUBLE"}:
        return "DOUBLE"
    return kinds.pop() if len(kinds) == 1 else "STRING" if kinds else None


def _type(value: Any) -> str:
    if isinstance(value, bool):
        return "BOOLEAN"
    if not isinstance(value, int | float | Number):
        return "STRING"
    text = str(value)
    return "BIGINT" if text.lstrip("-").isdigit() and -(2**63) <= int(text) < 2**63 else "DOUBLE"


def has(texts: Sequence[str], path: FieldPath) -> bool:
    """Whether any of some records has a value there, be it null."""
    return any(_leads(_record(text), path) for text in texts)


def _leads(record: Any, path: FieldPath) -> bool:
    inner = value_at(record, path[:-1])
    return path[-1] in inner if isinstance(inner, dict) else value_at(record, path) is not None


def paths(texts: Sequence[str]) -> list[str]:
    """Paths of the values that some records have, in order; of an array those of its first element."""
    return list(dict.fromkeys(path_text(path) for text in texts for path, _ in leaves(_record(text), elements=1)))


def leaves(value: Any, *, elements: int, path: FieldPath = ()) -> Iterator[tuple[FieldPath, Any]]:
    """The values inside a JSON value that are no objects or arrays, with their paths; of an array some elements.

    Left out are those of a key that no path can name, an empty one.
    """
    if not value or len(path) >= _DEEPEST or not isinstance(value, dict | list):
        if path:
            yield path, value
        return
    for step, inner in value.items() if isinstance(value, dict) else enumerate(value[:elements]):
        if step != "":
            yield from leaves(inner, elements=elements, path=(*path, step))


def _record(text: str) -> Any:
    try:
        return decoded(text)
    except (ValueError, TooDeep):
        return None


def fields(text: str) -> list[str]:
    """Names of a record's fields (JSON text), in order, without an empty one, which no path can name."""
    record = _record(text)
    return [name for name in record if name] if isinstance(record, dict) else []
