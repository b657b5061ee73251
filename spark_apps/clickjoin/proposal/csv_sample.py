"""Some lines of CSV files as records, and how they are written: separator, header, line ends in quotes, W3C's form."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

_SEPARATORS = ",;\t|"
_FIELDS, _COMMENT = "#Fields:", "#"
_DATE = re.compile(r"\d{4}-\d\d-\d\d|\d{1,2}[/.]\d{1,2}[/.]\d{2,4}|\d{4}/\d\d/\d\d|\d\d:\d\d")
_FIRST = 20  # lines of a file by which its separator is known
_TITLES = 6  # lines, at most, before one is to name the columns

Row = list[str]


class CsvSample(NamedTuple):
    """Records as (column, text) pairs; `written`: settings of the source; `bad`: lines that are no records."""

    records: list[tuple[tuple[str, str], ...]]
    written: dict[str, Any]
    bad: int


def read_csv(files: Sequence[Sequence[str]], each: int) -> CsvSample:
    """Up to `each` records of each file's first lines; each file is read by its own header."""
    fields = next((line for lines in files for line in lines if line.startswith(_FIELDS)), None)
    if fields:
        return _w3c(files, fields.removeprefix(_FIELDS).split(), each)
    separator = _separator([lines[:_FIRST] for lines in files])
    parsed = [list(_rows(lines, separator)) for lines in files]
    banners = _banners(parsed)
    parsed = [rows[above:] for rows, above in zip(parsed, banners, strict=True)]
    headers = [found for rows in parsed if (found := next(filter(None, rows), None))]
    if not headers:
        return CsvSample([], {}, sum(map(len, parsed)))
    headed = _are_headers(headers)
    names = headers[0] if headed else [f"column{at + 1}" for at in range(len(headers[0]))]
    named = not headed or any(banners)  # then a line that names them is one more line that is no record
    records, bad, misfits = list[tuple[tuple[str, str], ...]](), sum(banners) + headed * named * len(parsed), 0
    for rows in parsed:
        own = next(filter(None, rows), names) if headed else names
        for row in rows[1 : each + 1] if headed else rows[:each]:
            if row is not None and len(row) == len(own) and row != own:
                records.append(tuple(zip(own, row, strict=True)))
            else:
                bad += 1
                misfits += row is not None and len(row) != len(own)
    written: dict[str, Any] = {} if separator == "," else {"separator": separator}
    written |= {"columns": tuple(names)} if named else {}
    # Quotes that have no end on their lines mostly have one further down.
    odd = sum(line.count('"') % 2 for lines in files for line in lines)
    return CsvSample(records, written | ({"multiline": True} if odd > 2 * misfits else {}), bad)


def _banners(files: Sequence[Sequence[Row | None]]) -> list[int]:
    """How many lines (titles, comments) stand above the header in each file; none where headers differ."""
    found = [_above(rows) for rows in files]
    heads = {tuple(rows[above] or ()) for rows, above in zip(files, found, strict=True) if rows}
    return found if len(heads) == 1 else [0] * len(files)


def _above(rows: Sequence[Row | None]) -> int:
    widths = [len(row) for row in rows[:_FIRST] if row]
    usual = max(set(widths), key=widths.count, default=0)
    titled = (at for at, row in enumerate(rows[:_TITLES]) if row and len(row) == usual and _is_header(row))
    return next(titled, 0) if usual > 1 else 0


def _w3c(files: Sequence[Sequence[str]], names: Sequence[str], each: int) -> CsvSample:
    """Logs of CloudFront, IIS and others: comments, of which one names the columns, and fields by tabs or blanks."""
    bodies = [[line for line in lines if not line.startswith(_COMMENT)][:each] for lines in files]
    lines = [line for body in bodies for line in body]
    separator = "\t" if sum("\t" in line for line in lines) > len(lines) / 2 else " "
    rows = [row for row in _rows(lines, separator) if row and len(row) == len(names)]
    comments = sum(line.startswith(_COMMENT) for some in files for line in some)
    records = [tuple(zip(names, row, strict=True)) for row in rows]
    return CsvSample(records, {"separator": separator, "columns": tuple(names)}, comments + len(lines) - len(rows))


def _rows(lines: Sequence[str], separator: str) -> Iterator[Row | None]:
    """Fields of each record; None of one that no reader of CSV takes, such as one with a lone CR."""
    reader = csv.reader(lines, delimiter=separator)
    while True:
        try:
            yield next(reader)
        except StopIteration:
            return
        except csv.Error:
            yield None


def _separator(files: Sequence[Sequence[str]]) -> str:
    """The one that splits the most lines into as many fields as their file's first one, more than one.

    Not as many as in other files, whose headers may differ; nor as other lines, which may have a comma in each number.
    """

    def fit(separator: str) -> tuple[int, int, int]:
        like_first, usual, most = 0, 0, 0
        for lines in files:
            counts = [len(row) for row in _rows(lines, separator) if row]
            often = max(set(counts), key=counts.count, default=0)
            like_first += counts.count(counts[0]) if counts and counts[0] > 1 else 0
            usual += counts.count(often) if often > 1 else 0
            most = max(most, often)
        return like_first, usual, most

    return max(_SEPARATORS, key=fit)


def _are_headers(lines: Sequence[Row]) -> bool:
    """Whether the files' first lines name columns, mostly the same: a log's header may change from file to file."""
    first = set(lines[0])
    return all(_is_header(line) and 2 * len(first & set(line)) >= min(len(first), len(line)) for line in lines)


def _is_header(fields: Sequence[str]) -> bool:
    """Whether a line names columns: no numbers, no dates, none empty, none twice."""
    numbers = any(field.replace(".", "").replace("-", "").replace(":", "").isdigit() for field in fields)
    return all(fields) and len(set(fields)) == len(fields) and not numbers and not any(map(_DATE.search, fields))
