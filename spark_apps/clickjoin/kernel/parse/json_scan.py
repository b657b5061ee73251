"""Where values lie in the text of a JSON object. Runs on executors."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any

_SPACE = " \t\n\r"
_Scan = Callable[[str, int], tuple[Any, int]]  # a value that begins there, and where it ends
_NO_JSON = (ValueError, StopIteration, IndexError, RecursionError)


def place_of(text: str, path: Sequence[str]) -> int:
    """Where the value at a path of keys begins in a JSON object; -1 where there is none, or it is no JSON."""
    scan = _scan()
    try:
        at = _skipped(text, 0)
        for key in path:
            at = _member(text, at, key, scan)
    except _NO_JSON:
        return -1
    return at


def elements(line: bytes, path: Sequence[str]) -> list[tuple[int, int]]:
    """Where the elements of the array at a path lie in a JSON object; empty where there is none, or it is no JSON."""
    text = line.decode("latin-1")  # a character a byte: what JSON is made of is ASCII
    at = place_of(text, [key.encode().decode("latin-1") for key in path])
    try:
        return _elements(text, at, _scan()) if at >= 0 else []
    except _NO_JSON:
        return []


def _scan() -> _Scan:
    return json.JSONDecoder(strict=False).raw_decode  # what is made here travels to no executor


def _member(text: str, at: int, key: str, scan: _Scan) -> int:
    """Where the value of a key begins in the object that begins here. Errors: ValueError, StopIteration, IndexError."""
    found = -1
    at = _after(text, at, "{")
    while text[at] != "}":
        name, at = scanstring(text, _after(text, at, '"', skip=False), False)
        at = _after(text, _skipped(text, at), ":")
        if name == key and found >= 0:
            raise ValueError(key)  # named twice
        found = at if name == key else found
        at = _next(text, scan(text, at)[1], "}")
    if found < 0:
        raise ValueError(key)
    return found


def _elements(text: str, at: int, scan: _Scan) -> list[tuple[int, int]]:
    found = []
    at = _after(text, at, "[")
    while text[at] != "]":
        end = scan(text, at)[1]
        found.append((at, end))
        at = _next(text, end, "]")
    return found


def _next(text: str, at: int, close: str) -> int:
    """Behind a comma, or at the closing bracket."""
    at = _skipped(text, at)
    return at if text[at] == close else _after(text, at, ",")


def _after(text: str, at: int, mark: str, *, skip: bool = True) -> int:
    if text[at] != mark:
        raise ValueError(mark)
    return _skipped(text, at + 1) if skip else at + 1


def _skipped(text: str, at: int) -> int:
    while text[at] in _SPACE:
        at += 1
    return at
