"""What a shipped expectation is: a check of a table, its level, and limits of the pipeline's file or of what is usual.

A check with a limit of either level is two expectations, one of severity `critical` (level fail) and one of `warning`.
Where there is nothing to compare a figure with, it is measured all the same, for the dates that come after.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from clickjoin.model.reporter import figure

if TYPE_CHECKING:
    from clickjoin.config.quality import Expectation, Late, Level, Limit, Quality
    from clickjoin.quality.history import Usual

Bounds = Mapping["Level", Mapping[str, float | None]]  # by level: `min_value` and `max_value`

OWN = "an expectation of the pipeline's own file"
SEVERITY: Mapping[str, str] = {"fail": "critical", "warn": "warning"}
LEVELS: tuple[Literal["fail", "warn"], ...] = ("fail", "warn")
# Great Expectations measures what passes, where a rate of nulls or of repeats is what people ask for.
FLIPPED = (
    "ExpectColumnProportionOfNonNullValuesToBeBetween",
    "ExpectColumnProportionOfUniqueValuesToBeBetween",
)
_NO_LIMIT = "it has no limit"


@dataclass(frozen=True)
class Shipped:
    """An expectation: of which suite, its class in Great Expectations or here, its arguments, and what it means.

    `check`: `table.name`, as the pipeline's file and table `quality` name it. `undecided`: why it says nothing.
    """

    suite: str
    check: str
    kind: str
    args: Mapping[str, Any]
    level: Level
    asks: str
    look: str = ""
    undecided: str = ""
    column: str | None = None

    @property
    def key(self) -> str:
        """Its name in its suite."""
        return f"{self.check} {self.level}"


def levelled(quality: Quality, made: Iterable[Shipped]) -> Iterator[Shipped]:
    """Those that are not disabled, at the level that the pipeline's file gives: then their tightest limits count."""
    held = list(made)
    warned = {one.check for one in held if one.level == "warn"}
    for one in held:
        suite, _, name = one.check.partition(".")
        if quality.disabled(suite, name):
            continue
        if not quality.overridden(suite, name):
            yield one
        elif one.level == "warn" or one.check not in warned:
            yield replace(one, level=quality.level(suite, name, one.level))


def limits(
    suite: str, check: str, kind: str, args: Mapping[str, Any], bounds: Bounds, asks: str, look: str, *,
    loose: Mapping[str, Any], undecided: str = "", column: str | None = None,
) -> Iterator[Shipped]:  # fmt: skip
    """An expectation for each level that has bounds; without any, one that only measures (`loose`).

    Of kinds in FLIPPED, `bounds` are of what passes, where all that is said is of what does not.
    """
    say = _of_the_rest if kind in FLIPPED else words
    held: dict[Level, dict[str, float]] = {}
    for level in LEVELS:
        if found := {name: value for name, value in bounds.get(level, {}).items() if value is not None}:
            held[level] = found
    if undecided or not held:
        level = next(iter(held), "warn")
        said = f"{asks}: {say(held[level])}" if held else asks
        why = undecided or _NO_LIMIT
        yield Shipped(suite, check, kind, {**args, **loose}, level, said, look, undecided=why, column=column)
        return
    for level, found in held.items():
        yield Shipped(suite, check, kind, {**args, **found}, level, f"{asks}: {say(found)}", look, column=column)


def words(bounds: Mapping[str, float | None]) -> str:
    """Bounds, as `min_value` and `max_value`, in words."""
    low, high = bounds.get("min_value"), bounds.get("max_value")
    if low == high and low is not None:
        return figure(low)
    sides = ((low, "at least"), (high, "at most"))
    return " and ".join(f"{said} {figure(side)}" for side, said in sides if side is not None)


def _of_the_rest(bounds: Mapping[str, float | None]) -> str:
    low = bounds.get("min_value")
    return words({"max_value": None if low is None else 1 - low})


def at_most(limit: Limit | Late) -> Bounds:
    """Bounds of a limit of the pipeline's file."""
    return {"fail": {"max_value": limit.fail}, "warn": {"max_value": limit.warn}}


def usually(usual: Usual | None) -> str:
    """What is usual, as the end of what is asked."""
    return f" (usually {usual.text})" if usual else ""


def of_the_file(one: Expectation) -> Shipped:
    """An expectation of the pipeline's own file."""
    kind = "".join(part.capitalize() for part in one.expectation.split("_"))
    named: dict[str, Any] = {
        key: _column(one.table, one.args[key]) for key in ("column_A", "column_B") if key in one.args
    }
    if isinstance(listed := one.args.get("column_list"), list):
        named["column_list"] = [_column(one.table, name) for name in listed]
    column = {"column": _column(one.table, one.column)} if one.column else {}
    said = ", ".join(f"{name}: {value}" for name, value in one.args.items()) or one.expectation.replace("_", " ")
    return Shipped(
        one.table, f"{one.table}.{one.check}", kind, {**one.args, **named, **column}, one.level, said, OWN,
        column=one.column,
    )  # fmt: skip


def _column(table: str, name: Any) -> Any:
    """A column's name in the rows that are checked: `payload.item` is `item`, `foreign_record.item` `foreign.item`."""
    if not isinstance(name, str):
        return name
    if table == "joined":
        return re.sub(r"^(foreign|primary)_record\.", r"\1.", name)
    return name.removeprefix("payload.") if table in ("primary", "foreign") else name
