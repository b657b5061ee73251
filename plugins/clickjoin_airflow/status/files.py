"""Files that the page is made of: nothing outside of their folder is ever given."""

from __future__ import annotations

import hashlib
import mimetypes
from pathlib import Path, PurePath

from fastapi import HTTPException, Response
from fastapi.responses import FileResponse, HTMLResponse

PAGE = Path(__file__).with_name("page")
POLICY = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'"
)


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
    """A file of the page; kept indefinitely, if it was asked for by the tag that holds."""
    first, _, rest = name.partition("/")
    tagged = first == page_tag()
    path = inside(PAGE, rest if tagged else name)
    if path is None:
        raise HTTPException(404, f"The page has no file {name!r}")
    cached = "private, max-age=31536000, immutable" if tagged else "private, no-cache"
    return FileResponse(path, media_type=kind(path), headers={"Cache-Control": cached})


def inside(folder: Path, name: str) -> Path | None:
    """The file below a folder, wherever links lead; None if there is none, or it lies elsewhere."""
    if not name or "\0" in name:
        return None
    try:
        base, path = folder.resolve(strict=True), (folder / name).resolve(strict=True)
    except (OSError, RuntimeError):
        return None
    return path if path.is_file() and path.is_relative_to(base) else None


def kind(path: PurePath) -> str:
    if path.suffix == ".js":
        return "text/javascript"
    return mimetypes.guess_type(path.name)[0] or "application/octet-stream"
