"""Some records of the files that a glob names, column by column, and how the files are written."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from glob import iglob
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from clickjoin.config import Delta, Files, OfPipeline
from clickjoin.config.streams import PIPELINE
from clickjoin.config.types import keys_of
from clickjoin.kernel.content import LONGEST, other_than_text
from clickjoin.kernel.file_bytes import plain_blocks, read_at
from clickjoin.kernel.packed import BrokenFile, is_packed, unpack
from clickjoin.kernel.parse.lines import BOM
from clickjoin.kernel.remote_file import length_of
from clickjoin.model.errors import ConfigError, SourceError
from clickjoin.model.field_path import parse_path, path_text
from clickjoin.model.ids import RecordSpec
from clickjoin.model.split import Budget
from clickjoin.proposal.arrays import (
    array_of_records,
    array_within,
    columns_by_name,
    columns_of,
    elements_of,
    require_no_maps,
)
from clickjoin.proposal.csv_sample import read_csv
from clickjoin.proposal.texts import opened, within
from clickjoin.sources.open import open_source, opened_log

_BLOCK = 1 << 18
_LONGEST = 64 << 20  # bytes of a line that are looked at
_FIRST = 20  # lines of a file that show what it holds
_MOSTLY = 0.5  # of them are JSON objects, where it is JSON: the others are banners, or cut
_LOOK = Budget(10**9, 1 << 40)
_OTHER_BYTES = re.compile("[\udc80-\udcff]")  # as `_lines` gives what is not UTF-8
_FEW_ODD = 0.05
_FEW_REPEATS = 0.8  # of records that are different, or more
_SENT_AGAIN = 3  # copies of a record, at most, are one that was sent again
_ANY = RecordSpec(
    ("event_id",), "event_time", (), None, 0, 1 << 62, 1 << 30
)  # how no record is read: all are looked at
T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True)
class Log:
    """Records of a log: `columns` by path, each with one value a record (None where it has none).

    `source`: how they are read; `rows`: how many records; `bad`: lines that are none; `is_csv`: columns are the
    header's, and all values text; `within`: the elements of an array in its records, which may be the events.
    """

    source: Files | Delta | OfPipeline
    columns: dict[str, list[Any]]
    rows: int
    bad: int
    is_csv: bool = False
    within: Log | None = None

    @property
    def texts(self) -> dict[str, tuple[str, ...]]:
        """Fields whose text is JSON, as the source names them, and their keys."""
        if isinstance(self.source, Files):
            return {text: keys_of(text) for text in self.source.json_texts}
        return {name: (name,) for name in self.source.json_columns} if self.source.kind == "delta" else {}

    def with_texts(self, names: Sequence[str]) -> Log:
        """The same with these alone."""
        field = "json_texts" if isinstance(self.source, Files) else "json_columns"
        return replace(self, source=self.source.model_copy(update={field: tuple(names)}))

    def opens(self, name: str) -> bool:
        """Whether a column lies in a field whose text is JSON."""
        return bool(self.texts) and within(name, list(self.texts.values()))


def look(pattern: str, most: int, lake: str) -> Log:
    """Read up to `most` records, evenly from all files that a glob names; or of `table:PATH`, or `pipeline:NAME`.

    `lake`: where pipelines lie. Errors: ConfigError where there are none.
    """
    kind, _, name = pattern.rpartition(":")
    if kind == "pipeline":
        if not re.fullmatch(PIPELINE, name):
            raise ConfigError(
                f"{pattern}: {name!r} is no pipeline's name", remedy="Write pipeline:NAME, such as pipeline:clicks"
            )
        return _of_table(OfPipeline(kind="pipeline", name=name, lake=lake), most)
    if kind == "table":
        return _of_table(Delta(kind="delta", path=name), most)
    plan = open_source(Files(kind="files", path=pattern), keep=False).plan({}, _LOOK)
    paths = list(dict.fromkeys(split.path for split in plan.splits))
    if not paths:
        there = islice(iglob(pattern, recursive=True), _FIRST)  # noqa: PTH207 - Path.glob knows no absolute pattern
        files = [path for path in there if Path(path).is_file()]
        _require_line_ends(files)
        for path in files:
            _require_one_a_line(path, list(_lines(path, _FIRST)))
        missed = "; ".join(problem.detail for problem in plan.problems)
        raise ConfigError(
            f"{pattern}: no file with a whole record matches{f' ({missed})' if missed else ''}",
            remedy="Check folder and pattern, in quotes so that the shell leaves it alone",
        )
    each = max(most // len(paths), 20)
    lines = {path: list(_lines(path, each + 1)) for path in paths}
    for path, some in lines.items():
        _require_one_a_line(path, some[:_FIRST])
    lines, odd = _in_utf8(lines)
    sample = [line for some in lines.values() for line in some[:_FIRST]]
    objects = sum(line.lstrip().startswith("{") for line in sample)
    if objects >= _MOSTLY * len(sample):
        found = _of_json(pattern, [line for some in lines.values() for line in some[:each]])
    else:
        found = _of_csv(pattern, paths[0], [some for some in lines.values() if some], each)
    return replace(found, bad=found.bad + odd)


def _in_utf8(lines: dict[str, list[str]]) -> tuple[dict[str, list[str]], int]:
    """The lines of each file that are UTF-8, and how many are not. Errors: ConfigError where those are many."""
    fine = {path: [line for line in some if not _OTHER_BYTES.search(line)] for path, some in lines.items()}
    odd = {path: len(some) - len(fine[path]) for path, some in lines.items()}
    path = max(odd, key=lambda path: odd[path])
    if sum(odd.values()) > _FEW_ODD * sum(map(len, lines.values())):
        raise ConfigError(
            f"{path}: {odd[path]:,} of its first {len(lines[path]):,} lines are not UTF-8 (Latin-1, perhaps), and "
            "would go to quarantine",
            remedy="Let the producer write UTF-8, or convert the files, such as by iconv -f latin1 -t utf-8; then run "
            "this again",
        )
    return fine, sum(odd.values())


def _require_one_a_line(path: str, lines: Sequence[str]) -> None:
    """That a file is neither one JSON array nor JSON of many lines a record. Errors: ConfigError."""
    first = lines[0].strip() if lines else ""
    is_array = first[:1] == "[" and (first.strip("[{ ") == "" or _is_array(first))
    if is_array or first == "{":
        what = "one JSON array" if is_array else "pretty-printed JSON, a record over several lines"
        jq = "jq -c '.[]'" if is_array else "jq -c ."
        raise ConfigError(f"{path}: is {what}", remedy=f"Write one record a line, such as by {jq}; then run this again")


def _is_array(line: str) -> bool:
    try:
        found = json.loads(line.rstrip(","))
    except (ValueError, RecursionError):
        return line.startswith("[{")  # one that is longer than what was looked at, or cut
    return isinstance(found, list)


def _of_table(source: Delta | OfPipeline, most: int) -> Log:
    """Rows of a table as records; of a pipeline those of its output."""
    opened = open_source(source, keep=False)
    plan = opened.plan({}, Budget(most, 1 << 40))
    if not plan.splits:
        missed = "; ".join(problem.detail for problem in plan.problems)
        raise ConfigError(
            f"{source.path}: has no row yet{f' ({missed})' if missed else ''}",
            remedy="Fill it first, then run this again",
        )
    found = opened.read_here(plan.splits, _ANY)
    assert found is not None
    lines = [
        text or raw.decode()
        for text, raw in zip(*(found[name].to_pylist() for name in ("payload", "raw")), strict=True)
    ]
    log = _of_json(source.path, lines[:most], deep=False)
    texts = [keys[0] for keys in log.texts.values()]
    return replace(log, source=source).with_texts(texts) if source.kind == "delta" else replace(log, source=source)


def _lines(path: str, most: int) -> Iterator[str]:
    """The first lines of a file that are not blank; what is broken in a packed file ends it."""
    try:
        with opened_log(path) as fd:
            size = length_of(fd)
            packed = is_packed(fd, path)
            if not packed and (kind := other_than_text(read_at(fd, 0, LONGEST))):
                raise ConfigError(
                    f"{path}: is {kind}", remedy="Do so, or leave the file out of the glob; then run this again"
                )
            blocks = unpack(fd, _BLOCK) if packed else plain_blocks(fd, 0, size, path, _BLOCK)
            for line in islice(_filled(blocks), most):
                yield line.removeprefix(BOM).decode("utf-8", "surrogateescape").rstrip("\r")
    except (OSError, SourceError, BrokenFile):
        return


def _filled(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Lines that are not blank; the last needs no end."""
    held = b""
    for block in blocks:
        *whole, held = (held + block).split(b"\n")
        yield from (line for line in whole if line.strip())
        if len(held) > _LONGEST:
            break
    if held.strip():
        yield held


def _once(records: Sequence[T]) -> Sequence[T]:
    """Each record once, where few come again: what was sent twice says nothing of what tells events apart.

    What comes again and again, such as a sign of life, is a record of its own kind, and stays.
    """
    left = Counter(records)
    left = Counter({record: count if count > _SENT_AGAIN else 1 for record, count in left.items()})
    once = []
    for record in records:
        left[record] -= 1
        once += [record] if left[record] >= 0 else []
    return once if len(once) >= _FEW_REPEATS * len(records) else records


def _of_json(pattern: str, lines: Sequence[str], *, deep: bool = True) -> Log:
    """Objects as a log, with the texts in them that are JSON; unless `deep`, those of fields of their own alone."""
    parsed = [_object(line) for line in _once(lines)]
    objects = [record for record in parsed if record is not None]
    require_no_maps(pattern, objects)
    objects, around = opened(objects, **({} if deep else {"rounds": 1, "deepest": 1}))
    array = array_of_records(objects)
    inside = () if array else array_within(objects)

    def log_of(path: tuple[str, ...], inner: Log | None = None) -> Log:
        records, more = [element for record in objects for element in elements_of(record, path)], around
        if path:
            records, more = opened(records)
            more = (*(keys for keys in around if keys == path[: len(keys)]), *more)
        written = {"records": path_text(path)} if path else {}
        source = Files.model_validate(
            {"kind": "files", "path": pattern, "json": tuple(map(path_text, more)), **written}
        )
        columns = columns_of(records)
        first = [name for name in columns if within(name, more)]  # the records; what is around them, carries them
        columns = {name: columns[name] for name in (*first, *(name for name in columns if name not in set(first)))}
        return Log(source, columns, len(records), parsed.count(None), within=inner)

    return log_of(array, log_of(inside) if inside else None)


def _object(line: str) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _require_line_ends(paths: Sequence[str]) -> None:
    """That none of some files is one line, with a CR alone where its lines were to end. Errors: ConfigError."""
    for path in paths:
        lines = list(_lines(path, 2))
        if len(lines) == 1 and "\r" in lines[0].strip("\r"):
            raise ConfigError(
                f"{path}: its lines end in CR alone",
                remedy="End each line in LF or CR LF, such as by tr '\\r' '\\n'; then run this again",
            )


def _of_csv(pattern: str, path: str, files: Sequence[Sequence[str]], each: int) -> Log:
    found = read_csv(files, each)
    if not found.records:
        _require_line_ends([path])
        raise ConfigError(
            f"{path}: none of its {found.bad:,} first lines is a JSON object or a record of CSV",
            remedy="Let lines end in a newline, or CR and newline, and write one record a line; nothing may stand "
            "before the line that names the columns",
        )
    records = [dict(record) for record in _once(found.records)]
    named = {} if ".csv" in path.rsplit("/", 1)[-1] else {"format": "csv"}
    source = Files(kind="files", path=pattern, **found.written, **named)
    columns = {_as_path(name): values for name, values in columns_by_name(records).items()}
    return Log(source, columns, len(records), found.bad, is_csv=True)


def _as_path(header: str) -> str:
    """A header as a pipeline's file names it: in backticks where it is no path (`No.`)."""
    try:
        parse_path(header)
    except ConfigError:
        return path_text((header,))
    return header
