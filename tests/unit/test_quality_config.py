"""Section `quality` of a pipeline's file: what is refused when it is loaded, and what levels come of it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from pydantic import ValidationError

from clickjoin.config.file import explain
from clickjoin.config.quality import CHECKS, Quality

BETWEEN = {"table": "foreign", "expectation": "expect_column_values_to_be_between", "column": "position"}


def refused(**fields: Any) -> str:
    with pytest.raises(ValidationError) as raised:
        Quality.model_validate(fields)
    return explain(raised.value)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"volume_dorp": {"warn": 1}}, "volume_dorp: no such field"),
        ({"volume_drop": {"warn": 0.5, "fail": 0.4}}, "volume_drop: warn is past fail"),
        ({"freshness": {"warn": "3h", "fail": "2h"}}, "freshness: warn is past fail"),
        ({"freshness": {"warn": 3}}, "freshness.warn: 3 is not a duration"),
        ({"disable": ["foreign.volum"]}, "disable: there is no check 'foreign.volum'; did you mean foreign.volume?"),
        ({"levels": {"foreign.volume": "loud"}}, "levels.foreign.volume: 'loud' is unknown here; write warn or fail"),
        ({"levels": {"registry.volume": "warn"}}, "levels: there is no check 'registry.volume'"),
        (
            {"expectations": [BETWEEN | {"table": "pending"}]},
            "expectations.0.table: 'pending' is unknown here; write joined, primary, foreign, registry, unjoinable",
        ),
        ({"expectations": [BETWEEN | {"expectation": "between"}]}, "expectations.0.expectation: String should match"),
        ({"expectations": [BETWEEN | {"args": {"column": "x"}}]}, "expectations.0: args: column is no argument"),
        ({"expectations": [BETWEEN, BETWEEN]}, "two are named foreign.column_values_to_be_between.position"),
        ({"expectations": [BETWEEN | {"name": "volume"}]}, "foreign.volume is the name of a check that is there"),
        ({"expectations": [BETWEEN | {"name": "null_rate.x"}]}, "foreign.null_rate.x is the name of a check"),
    ],
)
def test_what_is_refused(fields: dict[str, Any], message: str) -> None:
    assert re.search(re.escape(message), refused(**fields))


def test_levels_and_what_is_left_out() -> None:
    own = BETWEEN | {"name": "positions"}
    levels = {"foreign.*": "warn", "foreign.volume": "fail", "joined.null_rate.price": "warn"}
    quality = Quality.model_validate(
        {"levels": levels, "disable": ["primary.*", "foreign.positions"], "expectations": [own]}
    )
    assert quality.level("foreign", "freshness", "fail") == "warn"
    assert quality.level("foreign", "volume", "warn") == "fail"
    assert quality.level("registry", "unique_ids", "fail") == "fail"
    assert quality.level("joined", "null_rate.price", "fail") == "warn"
    assert quality.disabled("primary", "null_rate.x")
    assert quality.disabled("foreign", "positions")
    assert not quality.disabled("foreign", "volume")
    assert quality.expectations[0].check == "positions"


def test_every_check_can_be_named() -> None:
    for suite, names in CHECKS.items():
        Quality.model_validate({"disable": [f"{suite}.{name}" for name in names]})
