"""What a shipped expectation is: a check of a table, its level, and limits of the pipeline's file or of what is usual.

A check with a limit of either level is two expectations, one of severity `critical` (level fail) and one of `warning`.
Where there is nothing to compare a figure with, it is measured anyway, for the dates that come after.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from clickjoin.model.reporter import figure

if TYPE_CHECKING:
    from clickjoin.config.quality import Expectation, Late, Level, Limit, Quality
    from clickjoin.quality.history import Usual

Bounds = Mapping["Level", Mapping[str, float]]  # by level: `min_value` and `max_value`

OWN = "an expectation of the pipeline's own file"
SEVERITY: Mapping[str, str] = {"fail": "critical", "warn": "warning"}
LEVELS: tuple[Literal["fail", "warn"], ...] = ("fail", "warn")
# Great Expectations measures what passes; limits of these, and what is said of them, are of what does not.
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
    """Those that are not disabled, at the level that the pipeline's file gives, to which its tightest limits belong."""
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
    undecided: str = "", unbounded: str = "", column: str | None = None,
) -> Iterator[Shipped]:  # fmt: skip
    """An expectation for each level that has bounds; without any (`unbounded`: why), one that only measures."""
    held = {level: found for level in LEVELS if (found := bounds.get(level))}
    why = undecided or ("" if held else unbounded or _NO_LIMIT)
    levels: list[Level] = list(held) if not why else [*held, "warn"][:1]
    for level in levels:
        said = f"{asks}: {words(held[level])}" if level in held else asks
        found = _loose(kind) if why else _of_what_passes(kind, held[level])
        yield Shipped(suite, check, kind, {**args, **found}, level, said, look, why, column)


def _loose(kind: str) -> Mapping[str, float]:
    """Arguments with which a kind passes whatever it measures."""
    if kind == "ExpectColumnMinToBeBetween":
        return {"max_value": 1e12}
    return {"min_value": 0} if kind.endswith("ToBeBetween") else {}


def _of_what_passes(kind: str, found: Mapping[str, float]) -> Mapping[str, float]:
    return {"min_value": 1 - found["max_value"]} if kind in FLIPPED else found


def at(side: str, limit: Limit | Late, value: Callable[[float], float] = float) -> Bounds:
    """Bounds of a limit of the pipeline's file, as `min_value` or `max_value`."""
    return {level: {side: value(most)} for level in LEVELS if (most := getattr(limit, level)) is not None}


def tightest(*several: Bounds) -> Bounds:
    """Of each level the highest `min_value` and the lowest `max_value`."""
    found: dict[Level, dict[str, float]] = {}
    for bounds in several:
        for level, sides in bounds.items():
            held = found.setdefault(level, {})
            for side, value in sides.items():
                held[side] = (max if side == "min_value" else min)(held.get(side, value), value)
    return found


def words(bounds: Mapping[str, float]) -> str:
    """Bounds in words."""
    low, high = bounds.get("min_value"), bounds.get("max_value")
    if low == high and low is not None:
        return figure(low)
    sides = ((low, "at least"), (high, "at most"))
    return " and ".join(f"{said} {figure(side)}" for side, said in sides if side is not None)


def usually(usual: Usual | None) -> str:
    """What is usual, as the end of what is asked."""
    return f" (usually {usual.text})" if usual else ""


def class_of(expectation: str) -> str:
    """The class of an expectation that is named as suites name it."""
    return "".join(part.capitalize() for part in expectation.split("_"))


def said_of(expectation: str, args: Mapping[str, Any]) -> str:
    """What an expectation that is none of ours asks."""
    return ", ".join(f"{name}: {value}" for name, value in args.items()) or expectation.removeprefix("expect_").replace(
        "_", " "
    )


def of_the_file(one: Expectation) -> Shipped:
    """An expectation of the pipeline's own file."""
    named: dict[str, Any] = {
        key: _column(one.table, one.args[key]) for key in ("column_A", "column_B") if key in one.args
    }
    if isinstance(listed := one.args.get("column_list"), list):
        named["column_list"] = [_column(one.table, name) for name in listed]
    column = {"column": _column(one.table, one.column)} if one.column else {}
    return Shipped(
        one.table, f"{one.table}.{one.check}", class_of(one.expectation), {**one.args, **named, **column}, one.level,
        said_of(one.expectation, one.args), OWN, column=one.column,
    )  # fmt: skip


def _column(table: str, name: Any) -> Any:
    """A column's name in the rows that are checked: `payload.item` is `item`, `foreign_record.item` `foreign.item`."""
    if not isinstance(name, str):
        return name
    if table == "joined":
        return re.sub(r"^(foreign|primary)_record\.", r"\1.", name)
    return name.removeprefix("payload.")
