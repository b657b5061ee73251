"""CSV whose quoted fields hold line ends: where its records end, however the file grows and is cut."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clickjoin.kernel.parse import csv_lines
from clickjoin.model.split import Budget
from clickjoin.sources.files import line_end
from tests.unit.sources_bench import BASE, PLENTY, Feed, age, append, numbers

FEW = 24  # bytes of a record over several lines, in the tests that cut at random
HEADER = b"id,text\n"
_TEXT = st.text(st.sampled_from('a,;"\n\r\n\t é'), max_size=12).filter(
    lambda text: "\r" not in text.replace("\r\n", "")
)


def feed(folder: Path, pattern: str = "*.csv*", **fields: Any) -> Feed:
    """A source whose quoted fields may hold line ends."""
    return Feed(folder, pattern, **{"multiline": True} | fields)


def record(number: int, text: str = "a\nb", quoting: int = csv.QUOTE_MINIMAL) -> bytes:
    """One good record."""
    made = io.StringIO()
    csv.writer(made, lineterminator="\n", quoting=quoting).writerow([f"h:1:{BASE + number}", text])
    return made.getvalue().encode()


def records(low: int, high: int) -> bytes:
    """Good records, one for each number, each over two lines."""
    return b"".join(map(record, range(low, high)))


def ends_by_hand(data: bytes, separator: bytes, most: int) -> list[int]:
    """Ends of records, byte by byte. Shares nothing with the product."""
    found, begin = [], 0
    while begin < len(data):
        first = data.find(b"\n", begin) + 1 or len(data)
        end = _end(data, begin, separator)
        begin = end if end and (end == first or end - begin <= most) else first
        found.append(begin)
    return found


def _end(data: bytes, at: int, separator: bytes) -> int | None:
    """Where the record that begins here ends; None where it does not, or is none."""
    quoted, fresh = False, True
    while at < len(data):
        byte = data[at : at + 1]
        if quoted and data[at : at + 2] == b'""':
            at += 1
        elif quoted and byte == b'"':
            after = data[at + 1 : at + 3].removeprefix(b"\r")[:1]
            if after not in (b"", b"\n") and data[at + 1 : at + 2] != separator:
                return None
            quoted = False
        elif not quoted and byte == b"\n":
            return at + 1
        elif not quoted:
            quoted, fresh = fresh and byte == b'"', byte == separator
        at += 1
    return None if quoted else at


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_records_end_where_they_do_by_hand(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, data: st.DataObject
) -> None:
    monkeypatch.setattr(csv_lines, "MOST", FEW)
    monkeypatch.setattr(line_end, "MOST", FEW)
    folder, separator = tmp_path_factory.mktemp("grown"), data.draw(st.sampled_from([",", "|", "\t"]))
    part = st.text(st.sampled_from('"""\n\nab\r' + separator), min_size=1, max_size=40).map(str.encode)
    parts = data.draw(st.lists(part, min_size=1, max_size=6))
    path, rows = folder / "a.csv", list[dict[str, Any]]()
    source = feed(folder, separator=separator, columns=("id", "text"))
    sizes = {"size": data.draw(st.integers(1, 60)), "max_record": data.draw(st.sampled_from([5, 1000]))}
    tight = st.sampled_from([PLENTY, Budget(1, 1 << 20), Budget(1000, 30), Budget(3, 1000)])
    for piece in parts:
        append(path, piece)
        rows += source.read(source.plan(data.draw(tight)).splits, **sizes)
    age(path, 7200)
    for _ in range(len(b"".join(parts)) + 1):
        rows += source.read(source.plan(data.draw(tight)).splits, **sizes)
    whole = b"".join(parts)
    expected = [0, *ends_by_hand(whole, separator.encode(), FEW)]
    covered = sorted((row["offset"], row["length"]) for row in rows)
    # Parts of a long line are rows of their own; blank records are in none.
    assert {at for at, _ in covered if not _is_part(rows, at)} <= set(expected)
    assert _ends(rows) <= set(expected)
    missing = set(range(len(whole))) - {at for low, length in covered for at in range(low, low + length)}
    assert not bytes(whole[at] for at in missing).strip(b" \t\r\n")
    assert sum(length for _, length in covered) == len(whole) - len(missing)


def _is_part(rows: list[dict[str, Any]], at: int) -> bool:
    return any(row["offset"] == at and row["part"] for row in rows)


def _ends(rows: list[dict[str, Any]]) -> set[int]:
    follows = {row["offset"] for row in rows if row["part"]}
    return {row["offset"] + row["length"] for row in rows} - follows


@settings(max_examples=100, deadline=None)
@given(texts=st.lists(_TEXT, min_size=1, max_size=30), size=st.integers(1, 300), packed=st.booleans())
def test_what_a_writer_wrote(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], size: int, packed: bool
) -> None:
    folder = tmp_path_factory.mktemp("written")
    data = HEADER + b"".join(record(number, text) for number, text in enumerate(texts))
    (folder / "a.csv.gz").write_bytes(gzip.compress(data)) if packed else (folder / "a.csv").write_bytes(data)
    source = feed(folder)
    source.ahead = 20
    rows = source.read(source.plan().splits, size=size)
    assert [json.loads(row["payload"])["text"] for row in rows] == texts
    assert numbers(rows) == list(range(len(texts)))


def test_a_field_of_half_a_megabyte(tmp_path: Path) -> None:
    text = "line\n" * 100_000
    (tmp_path / "a.csv").write_bytes(HEADER + record(1, text) + records(2, 4))
    source = feed(tmp_path)
    rows = source.read(source.plan().splits)
    assert (numbers(rows), json.loads(rows[0]["payload"])["text"]) == ([1, 2, 3], text)


def test_it_grows_within_quotes(tmp_path: Path) -> None:
    path, source = tmp_path / "a.csv", feed(tmp_path)
    append(path, HEADER + records(0, 2) + b"h:1:%d," % (BASE + 2))
    assert source.step() == [0, 1]
    append(path, b'"half\n')
    assert source.step() == []
    age(path, 90)
    (problem,) = source.plan().problems
    assert (problem.kind, "inside quotes" in problem.detail) == ("unfinished-line", True)
    append(path, b'of it"\n' + records(3, 5))
    assert source.step() == [2, 3, 4]


def test_a_quote_too_many_costs_one_record(tmp_path: Path) -> None:
    path, source = tmp_path / "a.csv", feed(tmp_path)
    bad = b'h:1:%d,"never ends\n' % (BASE + 1)
    append(path, HEADER + record(0) + bad + b"".join(record(at, "plain") for at in range(2, 5)))
    assert source.step() == [0]  # more of it may come
    age(path, 2 * 3600)
    rows = source.read(source.plan().splits)
    assert numbers(rows) == [2, 3, 4]
    assert [(row["reason"], row["raw"]) for row in rows if row["reason"]] == [("bad-csv", bad)]


@pytest.mark.parametrize("quoted", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
@pytest.mark.parametrize("bad", ['{},"never ends', '{},"x""', '"{},x', '"{}","a "b" c', '{},"a"b', '"{}","a "b" c"'])
@pytest.mark.parametrize("text", ["plain", "two\nlines", 'a "b"\n"c"', ""])
def test_a_quote_too_many_costs_no_neighbour(tmp_path: Path, quoted: int, bad: str, text: str) -> None:
    path, source = tmp_path / "a.csv", feed(tmp_path)
    wrong = bad.format(f"h:1:{BASE}").encode() + b"\n"
    append(path, HEADER + record(1, text, quoted) + wrong + b"".join(record(at, text, quoted) for at in range(2, 9)))
    age(path, 2 * 3600)
    rows = source.read(source.plan().splits)
    assert numbers(rows) == list(range(1, 9))
    assert [(row["reason"], row["raw"]) for row in rows if row["reason"]] == [("bad-csv", wrong)]


def test_a_quote_too_many_far_from_the_end(tmp_path: Path) -> None:
    path, source = tmp_path / "a.csv", feed(tmp_path)
    plain = b"".join(record(at, "x" * 100) for at in range(2, 12_000))
    append(path, HEADER + b'h:1:%d,"never ends\n' % (BASE + 1) + plain)
    assert source.step() == list(range(2, 12_000))


@pytest.mark.parametrize("bad", [
    [b'h:1:1,"a\nb",c\n'], [b'h:1:1,"a\n', b'b"c\n'], [b'"h:1:1\n","a\rb"\n'],
])  # fmt: skip
def test_a_bad_record_over_lines_between_good_ones(tmp_path: Path, bad: list[bytes]) -> None:
    (tmp_path / "a.csv").write_bytes(HEADER + record(1) + b"".join(bad) + record(2))
    source = feed(tmp_path)
    rows = source.read(source.plan().splits)
    assert numbers(rows) == [1, 2]
    assert [(row["reason"], row["raw"]) for row in rows if row["reason"]] == [("bad-csv", raw) for raw in bad]


def test_it_is_read_by_one_task_and_counted_in_records(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(HEADER + records(0, 300_000))
    source = feed(tmp_path)
    plan = source.plan(Budget(1000, 1 << 30))
    assert [split.events for split in plan.splits] == [1000]
    rows = source.read(plan.splits, tasks=8)
    assert numbers(rows) == list(range(999))  # and the header, which the budget counts


def test_json_beside_it_is_cut_at_lines(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps({"id": f"h:1:{BASE}", "text": '"'}) + "\n")
    source = feed(tmp_path, "*")
    assert source.step() == [0]
