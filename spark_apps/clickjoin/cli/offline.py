"""Great Expectations' Data Docs without what their pages load from other hosts: styles, fonts, scripts, a logo.

It has no setting for that: its own templates come before those of a folder of views.
"""

from __future__ import annotations

import re
from pathlib import Path

_HEAD = Path(__file__).with_name("data_docs.html")
_LOADED = re.compile(r'\s*<(?:script src|link)\b[^>]*"https?://[^>]*>(?:\s*</script>)?')
_ICON = re.compile(r"(?:\.\.?/)+static/images/favicon\.ico")  # theirs has too few steps up on some pages
_LOGO = re.compile(r"https://great-expectations-web-assets\.[\w.-]+/\w[\w-]*\.png[^\"')]*")


def make_offline(site: Path) -> None:
    """Rewrite the pages of Data Docs: what they need of others stands in each (`data_docs.html`)."""
    head = _HEAD.read_text(encoding="utf-8")
    for page in site.rglob("*.html"):
        root = "../" * len(page.relative_to(site).parent.parts)
        text = _LOADED.sub("", page.read_text(encoding="utf-8"))
        text = _LOGO.sub(f"{root}static/images/logo-long.png", _ICON.sub(f"{root}static/images/favicon.ico", text))
        page.write_text(text.replace('<meta charset="UTF-8">', f'<meta charset="UTF-8">\n{head}', 1), encoding="utf-8")
