"""Fields of JSON objects whose text is JSON, as the objects that they hold."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from clickjoin.model.field_path import parse_path

Keys = tuple[str, ...]
_MOSTLY = 0.5  # of a field's texts are JSON, where it is a field of JSON
_DEEPEST, _ROUNDS = 8, 3  # objects in objects, and texts in texts


def opened(
    objects: Sequence[dict[str, Any]], *, rounds: int = _ROUNDS, deepest: int = _DEEPEST
) -> tuple[list[dict[str, Any]], tuple[Keys, ...]]:
    """Objects with the texts that are JSON as what they hold, and the fields of such texts, outer ones first."""
    found, fields = list(objects), list[Keys]()
    for _ in range(rounds):
        texts, fine = Counter[Keys](), Counter[Keys]()
        for path, text in (item for record in found for item in _texts(record, deepest)):
            texts[path] += 1
            fine[path] += _held(text) is not None
        more = [path for path in texts if fine[path] >= _MOSTLY * texts[path] and all(path)]
        if not more:
            break
        for path in more:
            found = [_opened(record, path) for record in found]
        fields += more
    return found, tuple(fields)


def _texts(record: dict[str, Any], deepest: int, path: Keys = ()) -> Iterator[tuple[Keys, str]]:
    for key, value in record.items() if len(path) < deepest else ():
        if isinstance(value, str):
            yield (*path, key), value
        elif isinstance(value, dict):
            yield from _texts(value, deepest, (*path, key))


def _held(text: Any) -> Any:
    """The object, or the array of objects, that a text is; None where it is none."""
    if not isinstance(text, str) or text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    is_array = isinstance(found, list) and found and all(isinstance(one, dict) for one in found)
    return found if isinstance(found, dict) or is_array else None


def _opened(record: dict[str, Any], path: Keys) -> dict[str, Any]:
    key, *rest = path
    value = record.get(key)
    if rest:
        return record | {key: _opened(value, tuple(rest))} if isinstance(value, dict) else record
    found = _held(value)
    return record if found is None else record | {key: found}


def within(name: str, fields: Sequence[Keys]) -> bool:
    """Whether a column lies in one of some fields."""
    path = parse_path(name)
    return any(path[: len(field)] == field for field in fields)
