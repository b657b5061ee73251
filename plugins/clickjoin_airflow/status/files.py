"""Files that the page is made of, and files of quality reports: nothing outside of their folders is ever given."""

from __future__ import annotations

import mimetypes
from pathlib import Path

from fastapi import HTTPException, Request, Response
from fastapi.responses import FileResponse

PAGE = Path(__file__).with_name("page")
POLICY = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'"
)
# A report is made by other code from the pipeline's data: it may look as it likes, and run nothing.
REPORT_POLICY = (
    "sandbox allow-same-origin; default-src 'none'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "font-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
_REPORT_KINDS = {".html", ".css", ".js", ".json", ".png", ".svg", ".ico", ".gif", ".jpg", ".woff", ".woff2", ".ttf"}


def page_file(name: str, request: Request) -> Response:
    """A file of the page; 304 where the browser has it as it is."""
    path = inside(PAGE, name)
    if path is None:
        raise HTTPException(404, f"The page has no file {name!r}")
    stat = path.stat()
    tag = f'"{stat.st_mtime_ns:x}-{stat.st_size:x}"'
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return FileResponse(path, media_type=_kind(path), headers=headers)


def report_file(tables: str, name: str) -> Response:
    """A file of a quality report, below `_quality` of a pipeline's tables; of a folder, its index.html."""
    base = Path(tables.removeprefix("file://"), "_quality")
    path = inside(base, name) or inside(base, f"{name.rstrip('/')}/index.html")
    if path is None or path.suffix not in _REPORT_KINDS:
        raise HTTPException(
            404, f"There is no report {name!r}: it may have been removed since, or its run was cut short"
        )
    headers = {"Content-Security-Policy": REPORT_POLICY, "Cache-Control": "private, max-age=60"}
    return FileResponse(path, media_type=_kind(path), headers=headers)


def inside(folder: Path, name: str) -> Path | None:
    """The file below a folder, wherever links lead; None if there is none, or it lies elsewhere."""
    if not name or "\0" in name:
        return None
    try:
        base, path = folder.resolve(strict=True), (folder / name).resolve(strict=True)
    except (OSError, RuntimeError):
        return None
    return path if path.is_file() and path.is_relative_to(base) else None


def _kind(path: Path) -> str:
    if path.suffix == ".js":
        return "text/javascript"
    return mimetypes.guess_type(path.name)[0] or "application/octet-stream"
