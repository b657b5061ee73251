"""Loading a pipeline's adapter: what is wrong with it is said by name, with what to do."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from clickjoin.config.output import Output
from clickjoin.examples.adapters import TopPositions, TypedClick
from clickjoin.joiner.adapter import adapter_of, load_adapter
from clickjoin.kernel.adapter import Adapter, BothRecords, needs_spark
from clickjoin.model.errors import ConfigError

if TYPE_CHECKING:
    from clickjoin.config import Pipeline

MODULE = """\
from clickjoin.joiner.adapter import Adapter, BothRecords

class Mine(Adapter):
    columns = {"x": "STRING"}

class Renamed(BothRecords):
    pass

class Filtering(BothRecords):
    def prepare(self, foreign):
        return foreign.where("FALSE")

class Wider(BothRecords):
    columns = {**BothRecords.columns, "extra": "STRING"}

class Taken(BothRecords):
    columns = {"token": "STRING", "Event_Id": "STRING", "mine": "STRING"}

def function():
    pass

number = 3
class NotOne:
    pass
"""


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_adapters.py").write_text(MODULE)
    (tmp_path / "broken_adapters.py").write_text("import no_such_library\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("own_adapters", "broken_adapters"):
        monkeypatch.delitem(sys.modules, name, raising=False)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("clickjoin.joiner.adapter:BothRecords", BothRecords),
        ("clickjoin.examples.adapters:TypedClick", TypedClick),
        ("clickjoin.examples.adapters:TopPositions", TopPositions),
    ],
)
def test_shipped(name: str, kind: type[Adapter]) -> None:
    assert type(load_adapter(name)) is kind


def test_own() -> None:
    assert load_adapter("own_adapters:Mine").columns == {"x": "STRING"}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no_such:Mine", "cannot be imported .*no_such.* Check its spelling, and that its folder is on PYTHONPATH"),
        ("broken_adapters:Mine", "cannot be imported .*no_such_library"),
        ("own_adapters:Yours", r"own_adapters has no class Yours\. Check its spelling"),
        ("own_adapters:NotOne", r"is no Adapter\. Derive it from clickjoin\.joiner\.adapter\.Adapter"),
        ("own_adapters:function", "is no Adapter"),
        ("own_adapters:number", "is no Adapter"),
        ("own_adapters:Taken", r"columns Event_Id, token are taken\. Give them other names"),
    ],
)
def test_errors(name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=f"adapter {name}: {message}"):
        load_adapter(name)


def test_base_has_no_merge() -> None:
    with pytest.raises(NotImplementedError):
        Adapter().merge(None)  # type: ignore[arg-type]


class OwnTable(BothRecords):
    def merge_table(self, joined: Any) -> Any:
        """As it stands."""
        return joined


class OwnFrame(BothRecords):
    def merge(self, joined: Any) -> Any:
        """As it stands."""
        return joined


class FrameBelowTable(OwnTable):
    def merge(self, joined: Any) -> Any:
        """As it stands."""
        return joined


class TableBelowFrame(OwnFrame):
    def merge_table(self, joined: Any) -> Any:
        """As it stands."""
        return joined


class Prepares(OwnTable):
    def prepare(self, foreign: Any) -> Any:
        """As it stands."""
        return foreign


@pytest.mark.parametrize(
    ("adapter", "spark"),
    [(BothRecords, False), (OwnTable, False), (TableBelowFrame, False), (OwnFrame, True), (FrameBelowTable, True),
     (Prepares, True), (Adapter, True), (TypedClick, False)],
)  # fmt: skip
def test_the_last_word_is_the_most_special(adapter: type[Adapter], spark: bool) -> None:
    """A method of DataFrames that is overridden must not be passed over for the tables' of its base."""
    assert needs_spark(adapter()) is spark


def test_an_adapter_of_dataframes_is_refused_with_the_line_to_change() -> None:
    name = f"{Prepares.__module__}:Prepares"
    with pytest.raises(ConfigError, match=rf"adapter {name}: works on DataFrames .* class Prepares\(ArrowAdapter\)"):
        adapter_of(cast("Pipeline", SimpleNamespace(adapter=name, engine="arrow", output=Output(), match=None)))
