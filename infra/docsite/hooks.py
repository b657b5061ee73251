"""What mkdocs calls as it builds the site: files from the top of the repository become pages, and links lead there.

mkdocs is not imported here but when it calls, so that a test can read the names of pages without it.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
# Files outside of docs/ that pages link to, and their names on the site.
TOP: Mapping[str, str] = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
    "docker-compose.yml": "docker-compose.yml",
    "LICENSE": "LICENSE.txt",
    "examples/notebook/clicks.ipynb": "clicks.ipynb",
}
ICON = "plugins/clickjoin_airflow/status/page/icon.svg"
_LINK = re.compile(r"(\]\()([^)#\s]+)")


def retarget(text: str, folder: str) -> str:
    """Markdown of a file in a folder of the repository (`""`, `docs`, `docs/how-to`), with its links as on the site."""
    here = folder.removeprefix("docs").lstrip("/")

    def link(match: re.Match[str]) -> str:
        target = match[2]
        if "://" in target:
            return match[0]
        path = posixpath.normpath(posixpath.join(folder, target))
        there = TOP.get(path, path.removeprefix("docs/") if path.startswith("docs/") else None)
        return match[1] + (target if there is None else posixpath.relpath(there, here or "."))

    return _LINK.sub(link, text)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Headings get the anchors that GitHub gives them: links have to work in both places."""
    from pymdownx.slugs import slugify

    config.mdx_configs["toc"] = {**config.mdx_configs.get("toc", {}), "slugify": slugify(case="lower")}
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what lies outside of docs/."""
    from mkdocs.structure.files import File

    for name, target in TOP.items():
        if target.endswith(".md"):
            text = retarget((ROOT / name).read_text(encoding="utf-8"), "")
            files.append(File.generated(config, target, content=text))
        else:
            files.append(File.generated(config, target, abs_src_path=str(ROOT / name)))
    files.append(File.generated(config, "clickjoin.svg", abs_src_path=str(ROOT / ICON)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Links of a page of docs/ to what lies outside of it."""
    folder = posixpath.join("docs", posixpath.dirname(page.file.src_uri)).rstrip("/")
    return markdown if page.file.generated_by else retarget(markdown, folder)
