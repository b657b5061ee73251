"""The filter beside a file of claims: it misses no id, takes next to none for another, and is refused if not whole."""

from __future__ import annotations

import random
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from clickjoin.kernel import id_filter
from clickjoin.kernel.id_filter import hashes_of, ids_among, packed, place_of, unpacked
from clickjoin.kernel.parquet_rows import ids_near


def uuids(count: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    return [str(uuid.UUID(int=rng.getrandbits(128))) for _ in range(count)]


def texts(count: int, seed: int) -> list[str]:
    """Ids of all lengths, in bytes of all kinds."""
    rng = random.Random(seed)
    return ["".join(rng.choice("aé€😀:0\0") for _ in range(rng.randrange(0, 40))) + str(n) for n in range(count)]


@pytest.mark.parametrize("count", [0, 1, 2, 31, 32, 33, 1000, 50_000])
@pytest.mark.parametrize("kind", [uuids, texts])
def test_no_id_is_missed_and_none_is_made_up(count: int, kind: object) -> None:
    there, others = kind(count, 1), [f"x{name}" for name in kind(20_000, 2)]  # type: ignore[operator]
    held = unpacked(packed(hashes_of(pa.array(there, pa.string()))))
    assert held is not None
    assert held.may_hold(hashes_of(pa.array(there, pa.string()))).all()
    assert held.may_hold(hashes_of(pa.array(others, pa.string()))).sum() <= 1


def test_a_hash_is_one_for_ever() -> None:
    """Files hold them: another process, a slice, or chunks have the same; and a bit changes about half of it."""
    ids = ["", "a", "messageId", "0191b7c8-0000-7000-8000-000000000000", "é"]
    found = hashes_of(pa.array(ids, pa.string())).tolist()
    assert found == [
        int(line)
        for line in subprocess.run(
            [
                sys.executable,
                "-c",
                f"import pyarrow as pa, clickjoin.kernel.id_filter as it; print(*it.hashes_of(pa.array({ids!r})))",
            ],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONPATH": str(Path(id_filter.__file__).parents[2]), "PYTHONHASHSEED": "7"},
        ).stdout.split()
    ]
    whole = pa.array(["x", *ids, "y"], pa.string())
    assert hashes_of(whole.slice(1, len(ids))).tolist() == found
    assert hashes_of(pa.chunked_array([whole.slice(1, 2), whole.slice(3, 3)])).tolist() == found
    one, other = (hashes_of(pa.array(uuids(4_000, 3), pa.string())), hashes_of(pa.array(uuids(4_000, 4), pa.string())))
    bits = np.unpackbits((one ^ other).view(np.uint8)).mean()
    assert 0.49 < bits < 0.51


def test_one_that_is_not_whole_is_none() -> None:
    data = packed(hashes_of(pa.array(uuids(5_000, 1), pa.string())))
    assert unpacked(data) is not None
    for cut in (0, 3, 23, 24, 1000, len(data) - 1):
        assert unpacked(data[:cut]) is None
    bent = bytearray(data)
    bent[len(data) // 2] ^= 1
    assert unpacked(bytes(bent)) is None


def claims(folder: Path, ids: list[str], **how: Any) -> str:
    (folder / "bucket=b").mkdir(exist_ok=True)
    name = f"bucket=b/part-{uuid.uuid4()}.zstd.parquet"
    pq.write_table(pa.table({"event_id": ids}), folder / name, **how)
    return name


def test_a_file_with_a_filter_is_read_for_what_it_may_hold_alone(tmp_path: Path) -> None:
    there, fresh = uuids(3_000, 1), uuids(3_000, 2)
    big, small = claims(tmp_path, there), claims(tmp_path, ["s1", "s2"])
    first = ids_among(str(tmp_path), [big, small], pa.array([*fresh, there[7], "s2"]))
    assert (sorted(first.ids.to_pylist()), first.files_read, first.false_positives) == (sorted([there[7], "s2"]), 2, 0)
    assert sorted(path.name for path in (tmp_path / "_ids").iterdir()) == [place_of(big).removeprefix("_ids/")]
    assert (tmp_path / place_of(big)).stat().st_size <= 5 * len(there)
    assert ids_among(str(tmp_path), [big], pa.array(fresh)) == (pa.array([], pa.string()), 0, 0)
    again = ids_among(str(tmp_path), [big], pa.array([*fresh, *there[:9]]))
    assert (sorted(again.ids.to_pylist()), again.files_read) == (sorted(there[:9]), 1)


def test_what_a_filter_names_is_looked_up_and_counted(tmp_path: Path) -> None:
    """A filter that names ids that its file does not hold: they are fresh all the same."""
    there, fresh = uuids(2_000, 1), uuids(50, 2)
    file = claims(tmp_path, there)
    id_filter.store(str(tmp_path), file, hashes_of(pa.array([*there, *fresh])))
    found = ids_among(str(tmp_path), [file], pa.array([*fresh, there[3]]))
    assert (found.ids.to_pylist(), found.files_read, found.false_positives) == ([there[3]], 1, 50)


@pytest.mark.parametrize("kind", [uuids, texts])
@pytest.mark.parametrize("statistics", [True, False])
@pytest.mark.parametrize("is_sorted", [True, False])
def test_every_id_of_a_file_of_many_row_groups_is_found(
    tmp_path: Path, kind: Callable[[int, int], list[str]], statistics: bool, is_sorted: bool
) -> None:
    """By the groups' ends where they are known, and in all of them where not; sorted or not."""
    there, fresh = sorted(set(kind(3_000, 1))), [f"x{name}" for name in kind(200, 2)]
    there = there if is_sorted else there[1::2] + there[::2]
    file = claims(tmp_path, there, row_group_size=64, write_statistics=statistics)
    id_filter.store(str(tmp_path), file, hashes_of(pa.array([*there, *fresh])))
    found = ids_among(str(tmp_path), [file], pa.array([*fresh, *there]))
    assert (sorted(found.ids.to_pylist()), found.false_positives) == (sorted(there), len(fresh))
    for name in (there[0], there[63], there[64], there[-1], *fresh[:3]):
        assert ids_among(str(tmp_path), [file], pa.array([name])).ids.to_pylist() == [name] * (name in there)
    groups = len(ids_near(str(tmp_path), file, pa.array(there[500:501]))) // 64
    assert (groups == 1) is (is_sorted and statistics)


def test_one_that_is_damaged_is_made_again(tmp_path: Path) -> None:
    there = uuids(2_000, 1)
    file = claims(tmp_path, there)
    (tmp_path / "_ids").mkdir()
    for damage in (b"", b"cj-ids-1", packed(hashes_of(pa.array(there)))[:-4]):
        (tmp_path / place_of(file)).write_bytes(damage)
        found = ids_among(str(tmp_path), [file], pa.array([there[1]]))
        assert (found.ids.to_pylist(), found.files_read) == ([there[1]], 1)
        assert unpacked((tmp_path / place_of(file)).read_bytes(), file) is not None
        pafs.__dict__.pop("_clickjoin_id_filters", None)


def test_that_of_another_file_is_made_again(tmp_path: Path) -> None:
    """As where a folder was put together by hand: it names none of this file's ids, and each would be fresh."""
    there, others = uuids(2_000, 1), uuids(2_000, 2)
    file, other = claims(tmp_path, there), claims(tmp_path, others)
    for one in (file, other):
        ids_among(str(tmp_path), [one], pa.array(there[:1]))
    (tmp_path / place_of(file)).write_bytes((tmp_path / place_of(other)).read_bytes())
    pafs.__dict__.pop("_clickjoin_id_filters", None)
    assert ids_among(str(tmp_path), [file], pa.array([there[1]])).ids.to_pylist() == [there[1]]
    assert unpacked((tmp_path / place_of(file)).read_bytes(), file) is not None


def test_one_that_is_changed_in_its_place_is_made_again(tmp_path: Path) -> None:
    """As by a tool that copies over a live lake, while this process has it mapped."""
    there = uuids(2_000, 1)
    file = claims(tmp_path, there)
    ids_among(str(tmp_path), [file], pa.array(there[:1]))
    assert ids_among(str(tmp_path), [file], pa.array(uuids(5, 2))).files_read == 0
    size = (tmp_path / place_of(file)).stat().st_size
    with (tmp_path / place_of(file)).open("r+b") as opened:
        opened.seek(24)
        opened.write(bytes(size - 24))
    assert ids_among(str(tmp_path), [file], pa.array([there[1]])).ids.to_pylist() == [there[1]]


def test_where_none_can_be_written_the_file_is_read(tmp_path: Path) -> None:
    there = uuids(2_000, 1)
    file = claims(tmp_path, there)
    (tmp_path / "_ids").write_text("a file, and no folder")
    for _ in range(2):
        assert ids_among(str(tmp_path), [file], pa.array([there[1], "x"])).ids.to_pylist() == [there[1]]
