"""Values of the interpreter beyond Python's own: structs and rows, and the order that Spark sorts by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Struct(tuple[Any, ...]):
    """A struct: its values in order, and the fields' names."""

    names: tuple[str, ...]

    @classmethod
    def of(cls, names: tuple[str, ...], values: Iterable[Any]) -> Struct:
        """A struct of these names and values."""
        made = cls(values)
        made.names = names
        return made

    def field(self, name: str) -> Any:
        """One field's value."""
        return self[self.names.index(name)]


def order_key(value: Any) -> Any:
    """What sorts as Spark sorts: nulls first, structs field by field."""
    if value is None:
        return (0,)
    if isinstance(value, Struct):
        return (1, tuple(order_key(item) for item in value))
    return (1, value)


def micros(moment: datetime) -> int:
    """Microseconds since 1970."""
    passed = moment - EPOCH
    return (passed.days * 86400 + passed.seconds) * 1_000_000 + passed.microseconds


class Row(tuple[Any, ...]):
    """A collected row: values by position, by name and as attributes; times as naive UTC, as Spark gives them."""

    fields: tuple[str, ...]

    @classmethod
    def of(cls, fields: tuple[str, ...], row: dict[str, Any]) -> Row:
        """The row of a dict."""
        made = cls([_naive(row[name]) for name in fields])
        made.fields = fields
        return made

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            return tuple.__getitem__(self, self.fields.index(key))
        return tuple.__getitem__(self, key)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except ValueError:
            raise AttributeError(name) from None

    def asDict(self, recursive: bool = False) -> dict[str, Any]:
        """The row as a dict."""
        return dict(zip(self.fields, self, strict=True))


def _naive(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.replace(tzinfo=None)
    if isinstance(value, Struct):
        return Row.of(value.names, dict(zip(value.names, value, strict=True)))
    return value


def names_of_ddl(ddl: str) -> list[str]:
    """Column names of a DDL string, in order."""
    depth, start, names = 0, 0, []
    for at, char in enumerate(f"{ddl},"):
        depth += (char in "(<") - (char in ")>")
        if char == "," and depth == 0:
            names.append(ddl[start:at].split()[0].strip("`"))
            start = at + 1
    return names


def distinct(values: Sequence[Any]) -> list[Any]:
    """Values without repeats and nulls, in the order they came: the same in every run of a seed."""
    return list(dict.fromkeys(value for value in values if value is not None))
