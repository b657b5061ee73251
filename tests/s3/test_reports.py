"""Quality reports of a lake on S3: written whole, given out by the status page under the same rules, and removed."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from fastapi import HTTPException

from clickjoin.model.errors import LakeError
from clickjoin.model.ids import MICROS
from clickjoin.quality.checks import Report
from clickjoin.quality.data_docs import Docs
from clickjoin.quality.evaluate import PARTS
from clickjoin.report.checks import report_of
from clickjoin_airflow.status.report_files import report_file, report_pages
from stack.gateway import Gateway
from tests.s3.proxy import Proxy

ROOT, DAY = "s3://reports/lake/p", date(2026, 3, 1)


@pytest.fixture(scope="module")
def folder(gateway: Gateway) -> Path:
    gateway.bucket("reports")
    return gateway.folder / "data/reports/lake/p"


@pytest.fixture(autouse=True)
def environment(gateway: Gateway, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in gateway.environment().items():
        monkeypatch.setenv(name, value)


def a_report(run: str, day: date = DAY) -> Report:
    return Report(run, datetime(2026, 3, 2, tzinfo=UTC), day, (), dict.fromkeys(PARTS, 0))


def test_written_published_and_given_out(folder: Path) -> None:
    docs, report = Docs(ROOT), a_report("main/7")
    assert docs.free("main", DAY, 7) == 7
    assert docs.write(report, {}) == f"{ROOT}/_quality/2026-03-01/main-7"
    docs.publish(report)
    assert docs.free("main", DAY, 7) == 8
    assert report_of(ROOT, {"date": DAY, "run": "main/7"}) == "2026-03-01/main-7"
    assert report_of(ROOT, {"date": DAY, "run": "main/8"}) is None
    assert report_pages(ROOT, "2026-03-01/main-7") == [{"title": "Report", "path": "index.html"}]
    page = report_file(ROOT, "2026-03-01/main-7/joined.html")
    assert b"main/7" in bytes(page.body)
    assert "sandbox" in page.headers["content-security-policy"]
    assert (folder / "_quality/2026-03-01/index.html").is_file()
    docs.discard(report)
    assert docs.free("main", DAY, 7) == 7


@pytest.mark.parametrize(
    "name",
    ["../joined/x.html", "2026-03-01/../../joined/x.html", "/joined/x.html", "2026-03-01//x.html", "x.html\0",
     "no.html", "2026-03-01/main-9/table.parquet", "./x.html"],
)  # fmt: skip
def test_nothing_else_is_given_out(folder: Path, name: str) -> None:
    (folder / "joined").mkdir(parents=True, exist_ok=True)
    (folder / "joined/x.html").write_text("secret")
    with pytest.raises(HTTPException, match="no report"):
        report_file(ROOT, name)
    with pytest.raises(HTTPException, match="no report"):
        report_pages(ROOT, name)


def test_a_run_that_was_cut_short_is_none(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first page is written last."""
    proxy = Proxy(gateway.port)
    for name, value in gateway.environment(proxy.port).items():
        monkeypatch.setenv(name, value)
    docs = Docs(ROOT)
    with (
        proxy.rule("deny", "PUT", "*main-5/index.html"),
        pytest.raises(LakeError, match=r"cannot be written there \(access is denied"),
    ):
        docs.write(a_report("main/5"), {})
    assert report_of(ROOT, {"date": DAY, "run": "main/5"}) is None
    with pytest.raises(HTTPException, match="no report"):
        report_pages(ROOT, "2026-03-01/main-5")
    proxy.stop()


def test_old_ones_go(folder: Path) -> None:
    docs = Docs(ROOT)
    runs = [
        (day, int(datetime(2026, 4, begun, tzinfo=UTC).timestamp() * MICROS)) for day, begun in ((8, 2), (9, 3), (9, 9))
    ]
    for day, micros in runs:
        docs.write(a_report(f"west/{micros}", date(2026, 3, day)), {})
        docs.publish(a_report(f"west/{micros}", date(2026, 3, day)))
    docs.drop_before(datetime(2026, 4, 5, tzinfo=UTC))
    left = {str(path.relative_to(folder / "_quality")) for path in (folder / "_quality").rglob("index.html")}
    assert {name for name in left if name.startswith(("2026-03-08", "2026-03-09"))} == {
        "2026-03-09/index.html",
        f"2026-03-09/west-{runs[2][1]}/index.html",
    }
