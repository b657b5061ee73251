"""`make docs`: the documentation as a site that can be searched."""

from __future__ import annotations

import os
import subprocess

from . import ROOT, Problem
from .environment import DOCS_VENV

SITE = ROOT / ".run/site"


def build() -> None:
    """Build it strictly. Errors: Problem where a page is in no menu, or a link or anchor leads nowhere."""
    # Material for MkDocs advertises its successor on stderr unless it is asked not to.
    env = os.environ | {"NO_MKDOCS_2_WARNING": "1", "DISABLE_MKDOCS_2_WARNING": "true"}
    command = [str(DOCS_VENV / "bin/python"), "-m", "mkdocs", "build", "--strict"]
    if subprocess.run(command, cwd=ROOT, env=env).returncode:
        raise Problem("the documentation has mistakes: fix the pages, links or anchors that are named above")
    print(f"{SITE.relative_to(ROOT)}/index.html: to search it, python3 -m http.server -d {SITE.relative_to(ROOT)}")
