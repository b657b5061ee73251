"""Records that meet some conditions, by their JSON text: the same ones that `where` takes."""

from __future__ import annotations

import json
from contextlib import nullcontext
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError

from clickjoin.config import Pipeline
from clickjoin.kernel.parse.where import Sieve
from clickjoin.kernel.typed_columns.conditions import meets
from clickjoin.model.where import Condition, Where

VALUES = st.sampled_from(["direct", "", " ", "1", "true", 1, 1.0, 1e0, 2**60, 0.5, True, False, None, ["direct"], {}])
RECORDS = st.lists(st.fixed_dictionaries({}, optional={"a": VALUES, "b": VALUES}), max_size=90)
TEXTS = st.lists(st.sampled_from(["direct", "1", "true", "0.5", str(2**60)]), min_size=1, max_size=3, unique=True)
CONDITION = st.builds(
    Condition, st.sampled_from(["a", "b"]), st.one_of(TEXTS.map(tuple), st.just((None,))), st.booleans()
)


@given(RECORDS, st.lists(CONDITION, min_size=1, max_size=3))
@example([{"a": "direct"}] * 70 + [{"a": 1}], [Condition("a", ("direct",), inside=False)])
def test_the_rule_of_where(records: list[dict[str, Any]], conditions: list[Condition]) -> None:
    sieve = Sieve(Where(tuple(conditions)))
    texts = pa.array([json.dumps(record) for record in records], pa.string())
    lists = [{name: [] if value == {} else value for name, value in record.items()} for record in records]
    assert meets(texts, conditions).tolist() == [sieve.takes(record.get) for record in lists]


@pytest.mark.parametrize(("source", "fits"), [
    ({"path": "p/*.csv"}, False), ({"path": "p/*.csv.gz"}, False), ({"path": "p/*", "format": "csv"}, False),
    ({"path": "p/*.jsonl"}, True),
])  # fmt: skip
def test_csv_holds_no_objects(source: dict[str, str], *, fits: bool) -> None:
    """A column `utm.source` of CSV would be looked for in an object `utm`, and every event be preferred."""
    stream: dict[str, Any] = {"event_id": "id", "event_time": "at"}
    match = {"on": "user", "within": "7d", "prefer": {"utm.source": {"not": "direct"}}}
    foreign = stream | {"source": {"kind": "files", "path": "f/*"}, "match": match}
    primary = stream | {"source": {"kind": "files", **source}}
    whole = {"pipeline": "p", "lake": "lake", "primary": primary, "foreign": foreign}
    with nullcontext() if fits else pytest.raises(ValidationError, match=r"put the column's name in backticks"):
        Pipeline.model_validate(whole)
    match["prefer"] = {"`utm.source`": {"not": "direct"}}
    Pipeline.model_validate(whole)


@pytest.mark.parametrize(("text", "met"), [('{"a": {"b": "x"}}', True), ('{"a": "x"}', False), ('{"a.b": "x"}', False)])
def test_a_path_leads_into_objects(text: str, *, met: bool) -> None:
    assert meets(pa.array([text], pa.string()), [Condition("a.b", ("x",))]).tolist() == [met]
