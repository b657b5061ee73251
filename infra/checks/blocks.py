"""Refuses code blocks of the documentation that no test runs, unless they are output or say why they are not run.

README, the quick start and the recipes of docs/how-to are followed block by block (tests/unit/test_recipes.py). On
other pages `text` is output, and YAML goes through the product's model (test_docs_yaml.py). Of any other language a
test takes all blocks of a page with `code(page, language, how many)`. Commands go through their parsers everywhere
(test_docs_commands.py). A comment `<!-- not run: REASON -->` is above a block that cannot be run; MOST may have one.
Run it as `PYTHONPATH=infra python -m checks.blocks [FOLDER]`; it prints how many of each there are.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from checks.words import ROOT

MOST = 20
OUTPUT = {"text", "console"}
LANGUAGES = OUTPUT | {"csv", "json", "python", "sh", "sql", "yaml"}
_BLOCK = re.compile(
    r"^(?:<!-- not run: (?P<reason>[^\n]*) -->\n)?"
    r'```(?P<language>\w*)(?: title="(?P<title>[^"]*)")?\n(?P<text>.*?)^```$',
    re.MULTILINE | re.DOTALL,
)
_FENCE = re.compile(r"^ *(?:```|~~~)", re.MULTILINE)
_INDENTED = re.compile(r"^(?:#.*)?\n(?: {4,}|\t)(\S.*)", re.MULTILINE)
_TAKEN = re.compile(r'\bcode\("([\w./-]+)", "(\w+)"(?:, (\d+))?\)')


@dataclass(frozen=True)
class Block:
    """A code block of a page, which is named by its path below docs/, or README.md."""

    page: str
    line: int
    language: str
    text: str
    title: str | None = None
    reason: str | None = None

    @property
    def kind(self) -> str:
        """`run`, `output` or `not run`."""
        if self.reason is not None:
            return "not run"
        return "output" if self.language in OUTPUT else "run"


def pages(root: Path = ROOT) -> list[Path]:
    """README and every page of docs/."""
    return [root / "README.md", *sorted((root / "docs").rglob("*.md"))]


def recipes(root: Path = ROOT) -> list[Path]:
    """The pages of which a test follows every step."""
    return [root / "README.md", root / "docs/quick-start.md", *sorted((root / "docs/how-to").glob("*.md"))]


def blocks(page: Path, root: Path = ROOT) -> list[Block]:
    """A page's blocks, in order. Errors: ValueError for a fence that is not read, or code without one."""
    text = page.read_text(encoding="utf-8")
    name = page.relative_to(root).as_posix().removeprefix("docs/")
    found = [Block(name, text.count("\n", 0, at.start("text")), **at.groupdict()) for at in _BLOCK.finditer(text)]
    if 2 * len(found) != len(_FENCE.findall(text)):
        raise ValueError(f"{name}: a fence starts at a line's start with its language, and has a title or none")
    if at := _INDENTED.search(_BLOCK.sub("", text)):
        raise ValueError(f"{name}: {at[1]!r} begins a block that is indented: write a fence with its language")
    return found


def code(page: str, language: str, count: int = 1) -> list[str]:
    """Texts of a page's blocks in a language that are to be run. Errors: ValueError if they are more or fewer."""
    path = ROOT / ("" if page == "README.md" else "docs") / page
    found = [block.text for block in blocks(path) if (block.language, block.kind) == (language, "run")]
    if len(found) != count:
        raise ValueError(f"{page}: {len(found)} blocks of {language}, of which this test takes {count}")
    return found


def taken(root: Path) -> Counter[tuple[str, str]]:
    """How many blocks of a page and language tests take."""
    found: Counter[tuple[str, str]] = Counter()
    for path in (root / "tests").rglob("*.py"):
        for page, language, count in _TAKEN.findall(path.read_text(encoding="utf-8")):
            found[page, language] = int(count or 1)
    return found


def untagged(block: Block) -> Iterator[str]:
    """What is wrong with a block by itself."""
    if block.language not in LANGUAGES:
        yield f"{block.page}:{block.line}: language {block.language!r}: write one of {', '.join(sorted(LANGUAGES))}"
    if block.reason is not None and len(block.reason.split()) < 3:
        yield f"{block.page}:{block.line}: say why it is not run"


def refusals(root: Path) -> list[str]:
    """What the documentation has to change, a line each."""
    followed = {path.relative_to(root).as_posix().removeprefix("docs/") for path in recipes(root)}
    every = [block for page in pages(root) for block in blocks(page, root)]
    found = [wrong for block in every for wrong in untagged(block)]
    left = Counter(
        (block.page, block.language)
        for block in every
        if block.kind == "run" and block.language != "yaml" and block.page not in followed
    )
    tests = taken(root)
    for (page, language), count in left.items():
        if tests[page, language] != count:
            found.append(
                f"{page}: {count} blocks of {language}, and tests take {tests[page, language]}: run them in a test by "
                f'code("{page}", "{language}", {count}), or write above one <!-- not run: REASON -->'
            )
    if (count := sum(block.kind == "not run" for block in every)) > MOST:
        found.append(f"{count} blocks are not run; {MOST} may")
    return found


def main(root: Path = ROOT) -> int:
    """Print what is refused; the exit code is 1 if anything is."""
    try:
        refused = refusals(root)
    except ValueError as error:
        refused = [str(error)]
    if refused:
        print(*refused, sep="\n")
        return 1
    counts = Counter(block.kind for page in pages(root) for block in blocks(page, root))
    print("Code blocks of the documentation:", ", ".join(f"{count} {kind}" for kind, count in counts.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:2])))
