"""Files that the status page gives: its own, and those of quality reports, and no others."""

from __future__ import annotations

import hashlib
import re
import time
from pathlib import Path

import pytest
from fastapi import HTTPException

from clickjoin_airflow.status import files, report_files


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    root = tmp_path / "lake/p"
    folder = root / "_quality/2026-03-01/a"
    (folder / "validations/joined/x").mkdir(parents=True)
    (folder / "index.html").write_text("<html><head><title>all</title></head></html>")
    (folder / "validations/joined/x/1.html").write_text("<head></head><p>one</p>")
    (folder / "notes.parquet").write_text("PAR1")
    (root / "joined").mkdir()
    (root / "joined/secret.html").write_text("secret")
    (root / "_quality_of_others").mkdir()
    (root / "_quality_of_others/x.html").write_text("secret")
    (folder / "way-out.html").symlink_to(root / "joined/secret.html")
    return root


def test_a_report(tables: Path) -> None:
    answer = report_files.report_file(str(tables), "2026-03-01/a/validations/joined/x/1.html")
    assert bytes(answer.body).startswith(b'<head><link rel="stylesheet" href="../../../../../../../static/report.css">')
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("sandbox allow-same-origin;")
    assert "allow-scripts" not in policy
    assert "script-src" not in policy  # default-src 'none' holds


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("<p>a</p><script>x</script ><P>b</P>", "<p>a</p><P>b</P>"),
        ("a<SCRIPT src='https://x'>1</ScRiPt>b<script>2</script>c", "abc"),
        ("a<script>x", "a"),
        ("a<script>x</script", "a"),
        ('<link href="https://x"><img src="data:1"><img\nsrc="HTTP://x">b', '<img src="data:1">b'),
        ("<img", "<img"),
        ("<img <link http://x", "<img <link http://x"),
        ("<scripted><imgs http://x>", "<scripted><imgs http://x>"),
    ],
)
def test_scripts_are_left_out_of_a_report(text: str, left: str) -> None:
    assert report_files.without_scripts(text) == left


@pytest.mark.parametrize(
    "part", ["<script>", "<script></script", "</script", "<link ", "<img http://", "<img http:// <link ", "<img>"]
)
def test_no_page_takes_long(tables: Path, part: str) -> None:
    page = tables / "_quality/2026-03-01/a/long.html"
    page.write_text("<script>" * part.startswith("</") + part * (2_000_000 // len(part)))
    begun = time.process_time()
    report_files.report_file(str(tables), "2026-03-01/a/long.html")
    assert time.process_time() - begun < 3  # with an expression that tries every pair of tags: hours


def test_a_file_that_is_too_large_for_a_report(tables: Path) -> None:
    with (tables / "_quality/2026-03-01/a/large.json").open("wb") as file:
        file.truncate(32_000_001)
    with pytest.raises(HTTPException, match=r"404.*larger than a file of a report"):
        report_files.report_file(str(tables), "2026-03-01/a/large.json")


def test_pages_of_a_report(tables: Path) -> None:
    assert report_files.report_pages(str(tables), "2026-03-01/a") == [
        {"title": "joined", "path": "validations/joined/x/1.html"}
    ]
    (tables / "_quality/2026-03-01/a/validations/joined/x/1.html").unlink()
    assert report_files.report_pages(str(tables), "2026-03-01/a") == [{"title": "Report", "path": "index.html"}]


@pytest.mark.parametrize(
    "name",
    [
        "../joined/secret.html",
        "2026-03-01/../../joined/secret.html",
        "2026-03-01/a/way-out.html",
        "../_quality_of_others/x.html",
        "/etc/passwd",
        "2026-03-01/a/notes.parquet",
        "2026-03-01/a",
        "2026-03-01/a/nothing.html",
        "a\0b",
        "",
    ],
)
def test_nothing_else_is_given(tables: Path, name: str) -> None:
    with pytest.raises(HTTPException) as caught:
        report_files.report_file(str(tables), name)
    assert caught.value.status_code == 404


@pytest.mark.parametrize("folder", ["..", "../joined", "2026-03-01", "/etc", "a\0b", "../_quality_of_others"])
def test_no_other_folder_is_listed(tables: Path, folder: str) -> None:
    with pytest.raises(HTTPException) as caught:
        report_files.report_pages(str(tables), folder)
    assert caught.value.status_code == 404


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
