"""Files that the status page gives: its own, and no others."""

from __future__ import annotations

import hashlib
import re

import pytest
from fastapi import HTTPException

from clickjoin_airflow.status import files


def test_the_page_loads_nothing_from_outside() -> None:
    shipped = [path for path in files.PAGE.rglob("*") if path.suffix in {".html", ".js", ".css", ".svg"}]
    assert len(shipped) > 15
    for path in shipped:
        text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"""(src|href|url|import|fetch)\s*[=(]?\s*["'(]?\s*(https?:)?//[a-z]""", text), path
    index = (files.PAGE / "index.html").read_text(encoding="utf-8")
    named = set(re.findall(r'(?:src|href)="static/([^"]+)"', index))
    assert all((files.PAGE / name).is_file() for name in named)
    assert {path.name for path in files.PAGE.glob("*.js")} <= named


def test_files_are_kept_by_the_browser_until_they_change() -> None:
    tag = files.page_tag()
    assert f'src="static/{tag}/main.js"' in bytes(files.page().body).decode()
    assert "immutable" in files.page_file(f"{tag}/main.js").headers["cache-control"]
    assert "no-cache" in files.page_file("main.js").headers["cache-control"]
    with pytest.raises(HTTPException):
        files.page_file("0000000000000000/main.js")
    with pytest.raises(HTTPException):
        files.page_file(f"{tag}/../app.py")


def test_vendored_files_are_what_was_taken() -> None:
    sums = (files.PAGE / "vendor/README.md").read_text(encoding="utf-8")
    for path in (files.PAGE / "vendor").glob("uPlot*.*s*"):
        if path.suffix in {".js", ".css"}:
            assert hashlib.sha256(path.read_bytes()).hexdigest() in sums
