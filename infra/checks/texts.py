"""Refuses prose in docstrings and messages that the documentation may not hold, and all that proselint finds in both.

Docstrings of the code that is shipped, and texts of messages (literals of four words or more) have sentences as pages
have them (see checks.prose): a median of 16 words, 95 in 100 under 28, none over MOST. Code in them is stripped, and so
are tables of columns. Run it as `PYTHONPATH=infra python -m checks.texts [FOLDER]`; with `--sentences` it prints the
longest. Of the status page's own files words alone are checked.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from proselint.checks import __register__
from proselint.config import DEFAULT, Config
from proselint.registry import CheckRegistry
from proselint.tools import LintFile

from checks import prose
from checks.words import ROOT, Finding, findings, rules

FOLDERS = ("dags", "infra", "plugins/clickjoin_airflow", "spark_apps/clickjoin")
TABLES = "schemas"  # descriptions of columns, which docs/tables.md is made of
MOST = 60
# Not of ours: how quotation marks look, "very" as in "the very next version", words that two lines share, "But" where a
# paragraph begins (here each sentence does), and "From 2,000 files on" as a range of dates.
OFF = ("misc.but", "dates_times.dates", "typography", "weasel_words", "lexical_illusions")
HYPHENS = "exactly-once"  # a term of the field, though its first word ends in -ly
_SCOPES = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_SQL = re.compile(r"\b(?:SELECT|MERGE|INSERT|IS NOT NULL|CASE WHEN)\b")


@dataclass(frozen=True)
class Text:
    """A docstring or message, and where it begins."""

    file: Path
    line: int
    text: str


def docstrings(root: Path) -> Iterator[Text]:
    """All of the code that is shipped."""
    for file, tree in _modules(root):
        for node in ast.walk(tree):
            if isinstance(node, _SCOPES) and (text := ast.get_docstring(node)):
                yield Text(file, node.body[0].lineno, text)


def messages(root: Path) -> Iterator[Text]:
    """Texts of four words or more; a value in them is `code`."""
    for file, tree in _modules(root):
        inside = {id(part) for node in ast.walk(tree) for part in _not_messages(node)}
        for node in ast.walk(tree):
            if id(node) in inside or TABLES in file.parts:
                continue
            text = _text(node)
            if len(re.findall(r"[A-Za-z]{2,}", text)) >= prose.LEAST and " " in text.strip() and not _SQL.search(text):
                yield Text(file, getattr(node, "lineno", 1), text)


def _modules(root: Path) -> Iterator[tuple[Path, ast.Module]]:
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.py")):
            yield path.relative_to(root), ast.parse(path.read_text(encoding="utf-8"))


def _page(root: Path) -> Iterator[tuple[Path, str]]:
    """The status page's own files, of which words alone are checked."""
    for path in sorted((root / "plugins").rglob("*.[jh][st]*")):
        if "vendor" not in path.parts and path.suffix in {".js", ".html"}:
            yield path.relative_to(root), path.read_text(encoding="utf-8")


def _not_messages(node: ast.AST) -> list[ast.expr]:
    """Parts of a message, and docstrings."""
    if isinstance(node, ast.JoinedStr):
        return node.values
    if isinstance(node, _SCOPES) and node.body and isinstance(node.body[0], ast.Expr):
        return [node.body[0].value]
    return []


def _text(node: ast.AST) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "`code`" for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def fault(texts: list[Text]) -> Iterator[str]:
    """What is wrong with the sentences of texts of one kind, in words."""
    counts = []
    for text in texts:
        for sentence in prose.sentences(text.text):
            counts.append(prose.words_of(sentence))
            if counts[-1] > MOST:
                yield f"{text.file}:{text.line}: a sentence of {counts[-1]} words; split it: {MOST} at most"
    counts = [count for count in counts if count >= prose.LEAST]
    if counts and median(counts) > prose.MEDIAN:
        yield f"half of all sentences have more than {median(counts):g} words; write {prose.MEDIAN} at most"
    if counts and (share := sum(count >= prose.LONG for count in counts) / len(counts)) > prose.SHARE:
        yield f"{share:.1%} of all sentences have {prose.LONG} words or more; {prose.SHARE:.0%} may (--sentences)"


def linted(texts: list[Text]) -> Iterator[Finding]:
    """What proselint finds. It is slow to begin, so all is given to it at once: a sentence a line, and a blank one."""
    lines = [(text, sentence) for text in texts for sentence in prose.sentences(text.text) if "\n" not in sentence]
    if not lines:
        return
    checks = dict.fromkeys(OFF, False) | {name: on and name not in OFF for name, on in DEFAULT["checks"].items()}
    registry = CheckRegistry()
    if not registry.checks:
        registry.register_many(__register__)
    whole = "\n\n".join(sentence.replace(HYPHENS, "") for _, sentence in lines)
    for found in LintFile("texts", whole).lint(Config(max_errors=1000, checks=checks)):
        start, end = found.check_result.span
        text, _ = lines[whole.count("\n", 0, max(start - 1, 0)) // 2]
        word = f"\n{whole}\n"[start:end].strip()
        yield Finding(text.file, text.line, word, f"it otherwise ({found.check_result.message})")


def refusals(root: Path) -> list[str]:
    """What has to change, a line each."""
    checked = rules(prose.WORDS.read_text())
    pages = [Text(page.relative_to(root), 1, page.read_text(encoding="utf-8")) for page in prose.pages(root)]
    kinds = {"docstrings": [*docstrings(root)], "messages": [*messages(root)]}
    found = [f"{kind}: {wrong}" for kind, texts in kinds.items() for wrong in fault(texts)]
    texts = [text for kind in kinds.values() for text in kind]
    for text in texts:
        for each in findings(text.file, prose.plain(text.text), checked):
            found.append(str(Finding(each.file, text.line + each.line - 1, each.word, each.instead)))
    for file, content in _page(root):
        found += map(str, findings(file, content, checked))
    return found + [str(each) for each in linted(pages + texts)]


def main(*arguments: str) -> int:
    """Print what is refused; the exit code is 1 if anything is."""
    if arguments[:1] == ("--sentences",):
        every = [each for text in (*docstrings(ROOT), *messages(ROOT)) for each in prose.sentences(text.text)]
        print(*sorted(every, key=prose.words_of, reverse=True)[:20], sep="\n")
        return 0
    refused = refusals(Path(arguments[0]) if arguments else ROOT)
    print(*refused, sep="\n", end="\n" if refused else "")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
