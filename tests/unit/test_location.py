"""A lake's folder on a local disk, by the port that other stores have too."""

from __future__ import annotations

from pathlib import Path

import pytest

from clickjoin.lake.committer import committer
from clickjoin.lake.location import location
from clickjoin.model.errors import LakeError


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    folder = location(str(tmp_path))
    assert folder.read("mark.json") is None
    for data in (b"long enough", b"short"):
        folder.replace("mark.json", data)
        assert folder.read("mark.json") == data
    assert [path.name for path in tmp_path.iterdir()] == ["mark.json"]


def test_what_lies_below_a_file_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert location(str(tmp_path)).read("file/below") is None


def test_a_store_that_none_is_known_for_is_refused() -> None:
    with pytest.raises(LakeError, match="only tables on a local disk or on S3"):
        committer("gs://bucket/p/registry")
