"""SQL expressions as columns; each distinct text is parsed once."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache

from tests.simulator import functions as F
from tests.simulator.columns import Column, as_column, case, col, combine, lit

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?(?:[eE][-+]?\d+)?[DdLl]?)|(?P<text>'(?:[^'\\]|\\.|'')*'|\"[^\"]*\")"
    r"|(?P<name>`[^`]+`(?:\.`?\w+`?)*|[A-Za-z_]\w*(?:\.(?:\w+|`[^`]+`|\*))*)|(?P<op><=>|<=|>=|<>|!=|==|[-+*/%()=<>,&]))"
)
_FUNCTIONS = {
    **{name: getattr(F, name) for name in dir(F) if not name.startswith("_") and callable(getattr(F, name))},
    "if": F.if_,
}
_COMPARE = {"=": "__eq__", "==": "__eq__", "<>": "__ne__", "!=": "__ne__"}
_COMPARE |= {"<": "__lt__", "<=": "__le__", ">": "__gt__", ">=": "__ge__"}


def tokens(text: str) -> list[tuple[str, str]]:
    """Kind and text of each token."""
    found, at = [], 0
    text = text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if not match:
            raise ValueError(f"cannot read SQL at {text[at : at + 40]!r} of {text!r}")
        found.append((str(match.lastgroup), match.group(str(match.lastgroup))))
        at = match.end()
    return found


class Parser:
    """A parser by precedence over one text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.items = [*tokens(text), ("end", "")]
        self.words = [value.upper() for _, value in self.items]
        self.at = 0

    def peek(self, *words: str) -> bool:
        """Whether these words come next."""
        if self.words[self.at] != words[0]:
            return False
        return len(words) == 1 or self.words[self.at : self.at + len(words)] == list(words)

    def take(self, *words: str) -> bool:
        """Step over these words if they come next."""
        if self.peek(*words):
            self.at += len(words)
            return True
        return False

    def need(self, *words: str) -> None:
        """Step over these words, which must come next."""
        if not self.take(*words):
            raise ValueError(f"{' '.join(words)} expected at {self.items[self.at :][:6]} of {self.text!r}")

    def next(self) -> tuple[str, str]:
        """The next token."""
        self.at += 1
        return self.items[self.at - 1]

    def whole(self) -> Column:
        """The whole text as one expression, with its alias."""
        made = self.expression()
        if self.take("AS") or self.items[self.at][0] == "name":
            made = made.alias(self.next()[1].strip("`"))
        if self.items[self.at][0] != "end":
            raise ValueError(f"left over: {self.items[self.at :]} of {self.text!r}")
        return made

    def expression(self) -> Column:
        """OR."""
        made = self._and()
        while self.take("OR"):
            made = made | self._and()
        return made

    def _and(self) -> Column:
        made = self._not()
        while self.take("AND"):
            made = made & self._not()
        return made

    def _not(self) -> Column:
        return ~self._not() if self.take("NOT") else self._predicate()

    def _predicate(self) -> Column:
        made = self._sum()
        while (more := self._compared(made)) is not None:
            made = more
        return made

    def _compared(self, made: Column) -> Column | None:
        """The expression with the comparison that comes next, if one does."""
        kind, value = self.items[self.at]
        if kind == "op" and value in _COMPARE:
            self.at += 1
            right: Column = getattr(made, _COMPARE[value])(self._sum())
            return right
        if self.take("&"):
            return combine(lambda x, y: None if x is None or y is None else x & y, made, self._sum(), "&")
        if self.take("IS"):
            wanted = not self.take("NOT")
            self.need("NULL")
            return made.isNull() if wanted else made.isNotNull()
        return self._within(made)

    def _within(self, made: Column) -> Column | None:
        """IN and BETWEEN."""
        other = self.peek("NOT", "IN") or self.peek("NOT", "BETWEEN")
        self.at += other
        if self.take("IN"):
            found = made.isin(*self.items_in_brackets())
        elif self.take("BETWEEN"):
            low = self._sum()
            self.need("AND")
            found = made.between(low, self._sum())
        else:
            return None
        return ~found if other else found

    def items_in_brackets(self) -> list[Column]:
        """Expressions in brackets."""
        self.need("(")
        items: list[Column] = []
        while not self.take(")"):
            items.append(self.expression())
            self.take(",")
        return items

    def _sum(self) -> Column:
        made = self._product()
        while self.items[self.at][1] in ("+", "-") and self.items[self.at][0] == "op":
            sign = self.next()[1]
            made = made + self._product() if sign == "+" else made - self._product()
        return made

    def _product(self) -> Column:
        made = self._atom()
        while self.items[self.at][0] == "op" and self.items[self.at][1] in ("*", "/", "%"):
            sign, right = self.next()[1], self._atom()
            made = made * right if sign == "*" else made / right if sign == "/" else made % right
        return made

    def _atom(self) -> Column:
        kind, value = self.next()
        if kind == "number":
            return lit(float(value.rstrip("DdLl")) if re.search(r"[.eEdD]", value) else int(value.rstrip("lL")))
        if kind == "text":
            return lit(value[1:-1].replace("''", "'"))
        if value == "(":
            made = self.expression()
            self.need(")")
            return made
        if value == "-":
            return -self._atom()
        if kind != "name":
            raise ValueError(f"{value!r} not expected in {self.text!r}")
        return self._named(value)

    def _named(self, name: str) -> Column:
        upper = name.upper()
        if upper in ("TRUE", "FALSE", "NULL"):
            return lit({"TRUE": True, "FALSE": False, "NULL": None}[upper])
        if upper == "TIMESTAMP" and self.items[self.at][0] == "text":
            return lit(moment(self.next()[1][1:-1]))
        if upper == "DATE" and self.items[self.at][0] == "text":
            return lit(moment(self.next()[1][1:-1]).date())
        if upper == "CASE":
            return self._case()
        if upper == "CAST":
            return self._cast()
        if self.take("("):
            return self._call(name)
        return col(name)

    def _call(self, name: str) -> Column:
        if self.take("*", ")"):
            return F.count("*")
        items: list[Column] = []
        while not self.take(")"):
            items.append(self.expression())
            self.take(",")
        return _FUNCTIONS[name.lower()](*items)

    def _cast(self) -> Column:
        self.need("(")
        made = self.expression()
        self.need("AS")
        kind, depth = "", 0
        while depth or not self.peek(")"):
            part = self.next()[1]
            depth += (part == "(") - (part == ")")
            kind += part
        self.need(")")
        return made.cast(kind)

    def _case(self) -> Column:
        subject = None if self.peek("WHEN") else self.expression()
        branches: list[tuple[Column, Column]] = []
        while self.take("WHEN"):
            when = self.expression()
            self.need("THEN")
            branches.append((when if subject is None else subject == when, self.expression()))
        last = self.expression() if self.take("ELSE") else None
        self.need("END")
        return case(branches, as_column(None) if last is None else last)


def moment(text: str) -> datetime:
    """A timestamp literal; without a zone it is UTC."""
    made = datetime.fromisoformat(text)
    return made if made.tzinfo else made.replace(tzinfo=UTC)


@lru_cache(maxsize=4_000)
def expression(text: str) -> Column:
    """A column of an SQL text."""
    return Parser(text).whole()
