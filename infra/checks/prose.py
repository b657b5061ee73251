"""Refuses long sentences and words of prose_words.txt in the documentation, code and links' targets stripped.

A page's sentences have a median of at most 16 words, and 95 in 100 have fewer than 28; what has less than four words, a
cell of a table as a rule, is no sentence. All pages together have at most MOST words.
Run it as `PYTHONPATH=infra python -m checks.prose [FOLDER]`; with `--sentences PAGE` it prints the longest ones.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from checks.words import ROOT, findings, rules

WORDS = Path(__file__).with_name("prose_words.txt")
MEDIAN, LONG, SHARE, LEAST = 16, 28, 0.05, 4
MOST = 35_000
# Made from the code, or a record of its day.
NOT_PROSE = {"docs/tables.md", "docs/jobs.md", "docs/configuration-fields.md"}
_FENCE = re.compile(r"^ *```.*?^ *```$|<!--.*?-->", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"^(?: {4,}|\t).*$", re.MULTILINE)
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_ITEM = re.compile(r"^\s*(?:[-*]|\d+\.)\s+|^#+ +|^> +")
_END = re.compile(r"(?<=[.!?:])[)*\"]*\s+(?=[A-Z`*\"(0-9])")


def pages(root: Path) -> Iterator[Path]:
    """README and the pages of docs/, without what is made from code, and decisions."""
    for path in (root / "README.md", *sorted((root / "docs").rglob("*.md"))):
        inside = path.relative_to(root)
        if path.is_file() and inside.as_posix() not in NOT_PROSE and "decisions" not in inside.parts:
            yield path


def plain(text: str) -> str:
    """A page without its code, each stretch of code in a line as one word, and links as their text."""
    without = _FENCE.sub(lambda match: "\n" * match[0].count("\n"), text)
    bare = "\n".join("" if _is_code(line) else line for line in without.split("\n"))
    return _LINK.sub(r"\1", re.sub(r"``.+?``|`[^`\n]+(?:\n[^`\n]+)?`", "`code`", bare))


def _is_code(line: str) -> bool:
    return bool(_INDENTED.match(line)) and not re.match(r"\s*(?:[-*]|\d+\.) ", line)


def sentences(text: str) -> list[str]:
    """Of a page: of paragraphs, items, headings and cells of tables."""
    found: list[str] = []
    for block in _blocks(plain(text)):
        found += [each for each in _END.split(block) if re.search(r"\w", each)]
    return found


def _blocks(text: str) -> Iterator[str]:
    held: list[str] = []
    for line in [*text.split("\n"), ""]:
        if line.startswith("|") or not line.strip() or _ITEM.match(line):
            yield " ".join(held)
            held = []
        if line.startswith("|"):
            yield from (cell.strip() for cell in line.strip("| ").split(" | ") if not set(cell) <= set("-: "))
        elif line.startswith("#"):
            yield line.lstrip("# ")
        elif line.strip():
            held.append(_ITEM.sub("", line).strip())


def words_of(sentence: str) -> int:
    """How many words it has."""
    return len(re.findall(r"[\w`][\w`'’.,/%-]*", sentence))


def fault(text: str) -> str | None:
    """What is wrong with a page's sentences, in words, or None."""
    counts = [count for each in sentences(text) if (count := words_of(each)) >= LEAST]
    if not counts:
        return None
    middle, share = median(counts), sum(count >= LONG for count in counts) / len(counts)
    if middle > MEDIAN:
        return f"half of its sentences have more than {middle:g} words; write {MEDIAN} at most"
    if share > SHARE:
        return f"{share:.0%} of its sentences have {LONG} words or more; split them: {SHARE:.0%} may"
    return None


def refusals(name: Path, text: str) -> list[str]:
    """What a page has to change, a line each."""
    found = [str(each) for each in findings(name, plain(text), rules(WORDS.read_text()))]
    if wrong := fault(text):
        found.append(f"{name}: {wrong} (python -m checks.prose --sentences {name})")
    return found


def main(*arguments: str) -> int:
    """Print what is refused; the exit code is 1 if anything is."""
    if arguments[:1] == ("--sentences",):
        found = sentences(Path(arguments[1]).read_text(encoding="utf-8"))
        print(*sorted(found, key=words_of, reverse=True)[:20], sep="\n")
        return 0
    root = Path(arguments[0]) if arguments else ROOT
    refused, total = [], 0
    for path in pages(root):
        text = path.read_text(encoding="utf-8")
        total += sum(map(words_of, sentences(text)))
        refused += refusals(path.relative_to(root), text)
    if total > MOST:
        refused.append(
            f"docs: {total:,} words in all; {MOST:,} at most: say it once, in the page where it is looked for"
        )
    print(*refused, sep="\n", end="\n" if refused else "")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
