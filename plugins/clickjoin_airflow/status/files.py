"""Files that the page is made of, and files of quality reports: nothing outside of their folders is ever given."""

from __future__ import annotations

import hashlib
import mimetypes
import re
from pathlib import Path

from fastapi import HTTPException, Response
from fastapi.responses import FileResponse, HTMLResponse

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


def page() -> Response:
    """The page, naming its files by a tag of what they are now, so that a browser need not ask for them again."""
    tag = page_tag()
    text = (PAGE / "index.html").read_text(encoding="utf-8").replace('"static/', f'"static/{tag}/')
    return HTMLResponse(text, headers={"Cache-Control": "private, no-cache"})


def page_tag() -> str:
    """Another word whenever a file of the page is another."""
    stats = ((path.name, path.stat()) for path in sorted(PAGE.rglob("*")))
    whole = ",".join(f"{name} {stat.st_mtime_ns} {stat.st_size}" for name, stat in stats)
    return hashlib.sha256(whole.encode()).hexdigest()[:16]


def page_file(name: str) -> Response:
    """A file of the page; for ever, if it was asked for by the tag that holds."""
    first, _, rest = name.partition("/")
    tagged = first == page_tag()
    path = inside(PAGE, rest if tagged else name)
    if path is None:
        raise HTTPException(404, f"The page has no file {name!r}")
    cached = "private, max-age=31536000, immutable" if tagged else "private, no-cache"
    return FileResponse(path, media_type=_kind(path), headers={"Cache-Control": cached})


def report_file(tables: str, name: str) -> Response:
    """A file of a quality report, below `_quality` of a pipeline's tables; pages get the looks that they would load."""
    path = inside(report_base(tables), name)
    if path is None or path.suffix not in _REPORT_KINDS:
        raise HTTPException(
            404, f"There is no report {name!r}: it may have been removed since, or its run was cut short"
        )
    headers = {"Content-Security-Policy": REPORT_POLICY, "Cache-Control": "private, max-age=60"}
    if path.suffix != ".html":
        # Read here, in the pipeline's own thread: a FileResponse is read by threads that all of Airflow's API shares.
        return Response(_content(path), media_type=_kind(path), headers=headers)
    up = "../" * (name.count("/") + 2)  # report/<pipeline>/<name>
    link = f'<link rel="stylesheet" href="{up}static/report.css"></head>'
    text = without_scripts(_content(path).decode("utf-8", "replace"))
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


def _content(path: Path) -> bytes:
    if path.stat().st_size > _LARGEST:
        raise HTTPException(404, f"{path.name} is larger than a file of a report, {_LARGEST:,} bytes at most")
    return path.read_bytes()


def report_pages(tables: str, folder: str) -> list[dict[str, str]]:
    """The pages of a report: a tab for each suite; `path` is from its folder."""
    base = report_base(tables)
    index = inside(base, f"{folder}/index.html")
    if index is None:
        raise HTTPException(
            404, f"There is no report {folder!r}: it may have been removed since, or its run was cut short"
        )
    found = sorted(path.relative_to(index.parent) for path in index.parent.rglob("*.html"))
    # Great Expectations' own index is filled by scripts, which do not run here.
    validations = [path for path in found if path.parts[0] == "validations"]
    if not validations:
        return [{"title": "Report", "path": "index.html"}]
    return [{"title": path.parts[1] if len(path.parts) > 2 else path.stem, "path": str(path)} for path in validations]


def report_base(tables: str) -> Path:
    """The folder of a pipeline's quality reports."""
    return Path(tables.removeprefix("file://"), "_quality")


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
