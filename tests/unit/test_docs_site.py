"""The documentation's pages: each is in the site's menu once, and every link leads to a file and a heading."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import yaml

from docsite import hooks

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs").glob("**/*.md"))
OUTSIDE = [ROOT / name for name in hooks.TOP if name.endswith(".md")]
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_IMAGE = re.compile(r'<img src="([^"]+)"')


def menu(part: Any) -> Iterator[str]:
    """Every file that the site's menu names."""
    if isinstance(part, str):
        yield part
    for item in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from menu(item)


def prose(file: Path) -> str:
    """A page without its code."""
    return re.sub(r"```.*?```", "", file.read_text(encoding="utf-8"), flags=re.DOTALL)


def anchors(file: Path) -> set[str]:
    """Of a page's headings, as GitHub makes them."""
    heads = re.findall(r"^#{1,6} +(.+?) *$", prose(file), flags=re.MULTILINE)
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", head) for head in heads)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in plain}


def links(file: Path) -> list[str]:
    text = re.sub(r"`[^`\n]*`", "", prose(file))
    return [link for link in _LINK.findall(text) + _IMAGE.findall(text) if "://" not in link]


def test_the_menu_has_four_kinds_of_page() -> None:
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
    assert [next(iter(part)) for part in nav] == ["clickjoin", "Start", "How to", "Reference", "Explanation"]


def test_every_page_is_in_the_menu_once() -> None:
    named = list(menu(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]))
    assert sorted(named) == sorted([*(page.relative_to(ROOT / "docs").as_posix() for page in PAGES),
                                    *(target for target in hooks.TOP.values() if target.endswith(".md"))])  # fmt: skip


@pytest.mark.parametrize("file", [*PAGES, *OUTSIDE], ids=lambda file: file.name)
def test_links_lead_somewhere(file: Path) -> None:
    for link in links(file):
        path, _, anchor = unquote(link).partition("#")
        target = (file.parent / path) if path else file
        assert target.exists(), f"{file.name}: {link}: there is no such file"
        assert not anchor or anchor in anchors(target), f"{file.name}: {link}: there is no such heading"
        outside = target.is_relative_to(ROOT) and not target.resolve().is_relative_to(ROOT / "docs")
        known = not outside or target.resolve().relative_to(ROOT).as_posix() in hooks.TOP
        assert known, f"{file.name}: {link}: the site does not hold this file; name it in infra/docsite/hooks.py"


def test_links_are_found_at_all() -> None:
    assert sum(len(links(file)) for file in (*PAGES, *OUTSIDE)) > 100


@pytest.mark.parametrize(
    ("folder", "text", "there"),
    [
        ("", "[a](docs/design.md#the-promise)", "[a](design.md#the-promise)"),
        ("", "![p](docs/pictures/x.png) [c](CONTRIBUTING.md)", "![p](pictures/x.png) [c](contributing.md)"),
        ("docs", "[r](../README.md#two-commands) [s](../SECURITY.md)", "[r](index.md#two-commands) [s](security.md)"),
        ("docs", "[d](dates.md) ![p](pictures/x.png) [h](#here)", "[d](dates.md) ![p](pictures/x.png) [h](#here)"),
        (
            "docs/how-to",
            "[r](../../README.md) [d](../dates.md#closing) [o](x.md)",
            "[r](../index.md) [d](../dates.md#closing) [o](x.md)",
        ),
        ("", "[u](https://example.org/docs/a.md)", "[u](https://example.org/docs/a.md)"),
        ("docs", "[code](../spark_apps/run_job.py)", "[code](../spark_apps/run_job.py)"),
    ],
)
def test_links_on_the_site(folder: str, text: str, there: str) -> None:
    assert hooks.retarget(text, folder) == there


def test_nothing_is_loaded_from_elsewhere() -> None:
    site = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    assert site["theme"]["font"] is False
    assert not {"extra_css", "extra_javascript"} & site.keys()
    assert "://" not in (ROOT / "mkdocs.yml").read_text()


def test_what_runs_before_a_commit_is_a_target_of_make() -> None:
    hooks_ = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    make = (ROOT / "Makefile").read_text()
    assert hooks_
    for hook in hooks_:
        command, target = hook["entry"].split()
        assert command == "make"
        assert re.search(rf"^{target}:", make, flags=re.MULTILINE)


def test_every_target_of_make_that_a_release_needs_is_there() -> None:
    page = (ROOT / "docs/releasing.md").read_text()
    named = {word for text in re.findall(r"`make ([^`]+)`", page) for word in text.split() if "=" not in word}
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    assert {"test", "matrix", "wheels-test"} <= named <= targets
