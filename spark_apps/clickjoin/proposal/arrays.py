"""JSON objects as columns, and the array in them that holds the records, where they are no records themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from clickjoin.kernel.parse.envelopes import arrays_of_records
from clickjoin.kernel.typed_columns.by_line import leaves, value_at
from clickjoin.model.errors import ConfigError
from clickjoin.model.field_path import path_text
from clickjoin.proposal.columns import as_time, distinct_share, is_named_id, texts
from clickjoin.sources.sample import ELEMENTS

MOST_COLUMNS = 200
_UNIQUE = 0.97


def columns_of(objects: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
    """Values by path, one an object; of an array the first few elements."""
    records = [{path_text(path): value for path, value in leaves(one, elements=ELEMENTS)} for one in objects]
    return columns_by_name(records)


def columns_by_name(records: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
    """Values by name, one a record; None where it has none."""
    names = list(dict.fromkeys(name for record in records for name in record))[:MOST_COLUMNS]
    return {name: [record.get(name) for record in records] for name in names}


def elements_of(record: dict[str, Any], array: tuple[str, ...]) -> list[dict[str, Any]]:
    """The records in an object's array; it is one itself where there is none."""
    found = value_at(record, array) if array else None
    elements = [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
    return elements or [record]


def array_of_records(objects: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    """The path of an array that holds the records, where most objects have one and none an id beside it.

    Where few have one, its elements are like the other objects. It is one of records if each has a time (below no other
    object, if nothing beside it has one), and nothing outside of it is called an id: else it is a list within an event,
    such as a cart's items.
    """
    paths = _arrays(objects)
    return next((path for path in sorted(paths, key=len) if _are_records(_holders(objects, path), path)), ())


def array_within(objects: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    """The path of an array whose elements have times and ids of their own, although there are ids beside it."""
    for path in sorted(_arrays(objects), key=len):
        columns = columns_of([one for record in objects for one in elements_of(record, path)])
        own = any(is_named_id(name) and _differ(values) for name, values in columns.items())
        if own and _have_times(_holders(objects, path), path):
            return path
    return ()


def _differ(values: Sequence[Any]) -> bool:
    """Whether a column's values tell records apart."""
    return distinct_share(texts(values)) >= _UNIQUE


def require_no_maps(place: str, objects: Sequence[dict[str, Any]]) -> None:
    """That most objects are no tables of records by number, as pandas writes one. Errors: ConfigError."""
    if objects and 2 * sum(any(map(_is_by_number, record.values())) for record in objects) > len(objects):
        raise ConfigError(
            f"{place}: holds objects whose keys are the numbers of records (pandas' to_json() writes so)",
            remedy="Write one record a line, such as by to_json(orient='records', lines=True); then run this again",
        )


def _is_by_number(value: Any) -> bool:
    return isinstance(value, dict) and len(value) > 1 and set(value) == set(map(str, range(len(value))))


def _arrays(objects: Sequence[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Arrays of objects in most of these, or which hold more elements than there are others, like those."""
    found = Counter(path for record in objects for path in arrays_of_records(record) if all(path))
    return [path for path, count in found.most_common() if 2 * count > len(objects) or _hold_most(objects, path)]


def _hold_most(objects: Sequence[dict[str, Any]], path: tuple[str, ...]) -> bool:
    holders = _holders(objects, path)
    elements = [one for record in holders for one in elements_of(record, path)]
    others = {key for record in objects if not _has(record, path) for key in record}
    keys = {key for one in elements for key in one}
    return len(elements) > len(objects) - len(holders) and 2 * len(keys & others) > len(keys | others)


def _has(record: dict[str, Any], path: tuple[str, ...]) -> bool:
    return elements_of(record, path)[0] is not record


def _holders(objects: Sequence[dict[str, Any]], path: tuple[str, ...]) -> list[dict[str, Any]]:
    return [record for record in objects if _has(record, path)]


def _are_records(objects: Sequence[dict[str, Any]], array: tuple[str, ...]) -> bool:
    names = {keys[-1] for record in objects for keys in _values_beside(record, array)}
    if any(map(is_named_id, names)):
        return False
    return _have_times(objects, array) or (len(array) == 1 and not _has_time_beside(objects, array))


def _has_time_beside(objects: Sequence[dict[str, Any]], array: tuple[str, ...]) -> bool:
    """Whether the objects themselves have a time: so they are events, and the array is a list within each."""
    columns = columns_of([{key: value for key, value in record.items() if key != array[0]} for record in objects])
    return any(as_time(name, values) for name, values in columns.items())


def _values_beside(record: dict[str, Any], array: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Paths of an object's values that lie in no array, those inside of other objects only if the array does too."""
    for path, value in leaves(record, elements=1):
        keys = tuple(step for step in path if isinstance(step, str))
        if keys == path and isinstance(value, str | int) and (len(path) == 1 or len(array) > 1):
            yield keys


def _have_times(objects: Sequence[dict[str, Any]], array: tuple[str, ...]) -> bool:
    columns = columns_of([one for record in objects for one in elements_of(record, array)])
    return any(as_time(name, values) for name, values in columns.items())
