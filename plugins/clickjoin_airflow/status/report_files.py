"""Files of quality reports, on a local disk or an object store: nothing outside of their folder is ever given."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

from fastapi import HTTPException, Response
from fastapi.responses import HTMLResponse

from clickjoin.kernel.filesystem import local_folder
from clickjoin.lake.location import location
from clickjoin_airflow.status.files import inside, kind

# A report is made by other code from the pipeline's data: it may look as it likes, and run nothing.
REPORT_POLICY = (
    "sandbox allow-same-origin; default-src 'none'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "font-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
_LARGEST = 32_000_000  # bytes of a file of a report
_TAG = re.compile(r"<(?:(script)|link|img)\b", re.IGNORECASE)
_END = re.compile(r"</script\b", re.IGNORECASE)
_REPORT_KINDS = {
    ".html",
    ".css",
    ".js",
    ".json",
    ".png",
    ".svg",
    ".ico",
    ".gif",
    ".jpg",
    ".woff",
    ".woff2",
    ".ttf",
    ".otf",
}


def report_file(tables: str, name: str) -> Response:
    """A file of a quality report, below `_quality` of a pipeline's tables; pages get the looks that they would load."""
    path = PurePosixPath(name)
    # Read here, in the pipeline's own thread: a FileResponse is read by threads that all of Airflow's API shares.
    data = _reports(tables).read(name) if path.suffix in _REPORT_KINDS else None
    if data is None:
        raise HTTPException(
            404, f"There is no report {name!r}: it may have been removed since, or its run was cut short"
        )
    headers = {"Content-Security-Policy": REPORT_POLICY, "Cache-Control": "private, max-age=60"}
    if path.suffix != ".html":
        return Response(data, media_type=kind(path), headers=headers)
    up = "../" * (name.count("/") + 2)  # report/<pipeline>/<name>
    link = f'<link rel="stylesheet" href="{up}static/report.css"></head>'
    text = without_scripts(data.decode("utf-8", "replace"))
    if "Content-Security-Policy" in text:  # it has its own looks, and lets none in
        return HTMLResponse(text, headers=headers)
    return HTMLResponse(text.replace("</head>", link, 1), headers=headers)


def without_scripts(text: str) -> str:
    """A page without scripts and without what is loaded from elsewhere, in one pass over it.

    The policy above keeps them out; this only spares the browser asking. A script that does not end takes the rest.
    """
    kept, at, ends = [], 0, True
    while tag := _TAG.search(text, at):
        kept.append(text[at : tag.start()])
        if tag[1]:
            end = _END.search(text, tag.end())
            at = (text.find(">", end.end()) + 1 if end else 0) or len(text)
            continue
        close = text.find(">", tag.end()) + 1 if ends else 0
        ends = bool(close)  # where no > follows, none does later on
        at = close or tag.end()
        if not close or not re.search(r"https?://", text[tag.start() : at], re.IGNORECASE):
            kept.append(text[tag.start() : at])
    return "".join([*kept, text[at:]])


def report_pages(tables: str, folder: str) -> list[dict[str, str]]:
    """The pages of a report: a tab for each suite; `path` is from its folder."""
    found = _reports(tables).pages(folder)
    if "index.html" not in found:
        raise HTTPException(
            404, f"There is no report {folder!r}: it may have been removed since, or its run was cut short"
        )
    # Great Expectations' own index is filled by scripts, which do not run here.
    validations = [path for path in map(PurePosixPath, found) if path.parts[0] == "validations"]
    if not validations:
        return [{"title": "Report", "path": "index.html"}]
    return [{"title": path.parts[1] if len(path.parts) > 2 else path.stem, "path": str(path)} for path in validations]


def _reports(tables: str) -> LocalReports | StoredReports:
    """A pipeline's quality reports."""
    folder = local_folder(f"{tables}/_quality")
    return StoredReports(f"{tables}/_quality") if folder is None else LocalReports(folder)


class LocalReports:
    """Reports in a folder of a local disk."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, name: str) -> bytes | None:
        """A file; None where there is none in the folder."""
        path = inside(self._folder, name)
        if path is None:
            return None
        _require_small(name, path.stat().st_size)
        return path.read_bytes()

    def pages(self, folder: str) -> list[str]:
        """The pages of a report, sorted, relative to its folder; none where it has no first page."""
        index = inside(self._folder, f"{folder}/index.html")
        return sorted(str(path.relative_to(index.parent)) for path in index.parent.rglob("*.html")) if index else []


class StoredReports:
    """Reports below a prefix of an object store, which knows no links."""

    def __init__(self, root: str) -> None:
        self._place = location(root)

    def read(self, name: str) -> bytes | None:
        """A file; None where there is none below the prefix."""
        found = self._place.stored(name) if _is_plain(name) else None
        if found is None:
            return None
        _require_small(name, found.size)
        return self._place.read(name)

    def pages(self, folder: str) -> list[str]:
        """The pages of a report, sorted, relative to its folder."""
        names = [file.path for file in self._place.listed(folder)] if _is_plain(folder) else []
        return sorted(name.removeprefix(f"{folder}/") for name in names if name.endswith(".html"))


def _is_plain(name: str) -> bool:
    return "\0" not in name and all(part not in ("", ".", "..") for part in name.split("/"))


def _require_small(name: str, size: int) -> None:
    if size > _LARGEST:
        raise HTTPException(404, f"{name} is larger than a file of a report, {_LARGEST:,} bytes at most")
