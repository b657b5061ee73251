"""Fields whose text is JSON, as logs of containers and notifications have them: the text gives way to what it holds.

All else of a line stays as it was written. Text there that is no JSON makes the record a bad one, if the stream takes
it: where a condition looks into the text, nobody can tell. Runs on executors.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickjoin.kernel.arrays import bool_array
from clickjoin.kernel.parse.json_scan import place_of
from clickjoin.kernel.parse.lines import Lines, Segment
from clickjoin.model.field_path import parse_path, path_text

if TYPE_CHECKING:
    from clickjoin.kernel.parse.json_lines import JsonParser

Keys = tuple[str, ...]
Bad = dict[int, tuple[str, str]]
_UNREADABLE = b"?"  # stands for a line of which nobody can tell whose it is: no parser takes it
_ONE_LINE = str.maketrans("\r\n", "  ")


class NoJson(Exception):
    """A field's text is no JSON: the field, what is wrong with the text, and whether it begins like an object."""

    def __init__(self, keys: Keys, wrong: str, broken: bool = False) -> None:
        super().__init__(keys, wrong, broken)
        self.keys, self.wrong, self.broken = keys, wrong, broken

    @property
    def detail(self) -> str:
        """For people."""
        return (
            f"`{path_text(self.keys)}` holds text that is no JSON object: {self.wrong}; write JSON there, or leave "
            "such records to nobody by `where`"
        )


def unfolded(line: str, fields: Sequence[Keys]) -> str:
    """A JSON object with the texts of some fields replaced by the objects (or arrays) that they are.

    It is never longer in bytes. Fields that are missing, null or no text stay, and so does a line that is no JSON.
    Errors: NoJson.
    """
    for keys in fields:
        at = place_of(line, keys)
        if at < 0 or line[at] != '"':
            continue
        text, end = scanstring(line, at + 1, False)
        line = line[:at] + _object(text.strip(" \t\r\n"), keys) + line[end:]
    return line


def _object(text: str, keys: Keys) -> str:
    """A text that is JSON on one line. Errors: NoJson."""
    try:
        value = json.loads(text)
        text.encode()
    except RecursionError:
        raise NoJson(keys, "it is nested too deeply", broken=True) from None
    except UnicodeEncodeError:
        raise NoJson(keys, "it holds half of a surrogate pair", broken=True) from None
    except ValueError as error:
        what = error.msg.removesuffix(" at") if isinstance(error, json.JSONDecodeError) else str(error)
        where = f" at character {error.pos}" if isinstance(error, json.JSONDecodeError) else ""
        raise NoJson(keys, f"{what}{where}", broken=text.startswith(("{", "["))) from None
    if not isinstance(value, dict | list):
        raise NoJson(keys, "it is one value")
    return text.translate(_ONE_LINE)  # a line's end within a string is no JSON


class JsonTexts:
    """Parses lines with such fields, by their keys; what is inside of another field's text comes after that one."""

    def __init__(self, fields: Sequence[Keys]) -> None:
        self.fields = sorted(fields, key=len)

    def parse(self, lines: Lines, parser: JsonParser) -> tuple[list[Segment], Bad, Any]:
        """As `parser` does, and third the lines as texts, unfolded."""
        looked_at = [parse_path(path) for path in parser.sieve.paths]
        texts, odd = list[bytes](), dict[int, str]()
        for row, line in enumerate(lines.text.to_pylist()):
            try:
                texts.append(unfolded(line, self.fields).encode())
            except NoJson as error:
                odd[row] = error.detail
                hides = error.broken and any(path[: len(error.keys)] == error.keys for path in looked_at)
                texts.append(_UNREADABLE if hides else line.encode())
        read = _lines(lines.offset, texts)
        segments, bad = parser.parse(read)
        bad |= {row: ("broken-json", odd[row]) for row in odd.keys() & bad.keys()}
        return [_even(segment, odd, bad) for segment in segments] if odd else segments, bad, read.text


def _even(segment: Segment, odd: dict[int, str], bad: Bad) -> Segment:
    """The records of a segment whose fields are JSON; the others are bad."""
    wrong = np.isin(segment.rows, list(odd))
    if not wrong.any():
        return segment
    bad |= {row: ("broken-json", odd[row]) for row in segment.rows[wrong].tolist()}
    kept = bool_array(~wrong)
    return Segment(segment.rows[~wrong], {name: column.filter(kept) for name, column in segment.columns.items()})


def _lines(offset: int, texts: Sequence[bytes]) -> Lines:
    data = b"\n".join(texts) + b"\n"
    edges = np.cumsum([0, *(len(text) + 1 for text in texts)])
    whole = pa.StringArray.from_buffers(len(texts), pa.py_buffer(edges.astype(np.int32)), pa.py_buffer(data))
    return Lines(offset, data, edges[:-1], edges[1:], whole, pc.ascii_trim(whole, " \t\r\n"))
