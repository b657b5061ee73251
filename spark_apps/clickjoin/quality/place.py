"""Where a pipeline's project of Great Expectations lies: on a disk it is worked on there, else in a copy.

On an object store a run fetches what people can edit, works beside the lake, and puts back its results and those suites
that nobody else has changed meanwhile. Anyone who edits a project there does so by hand (`clickjoin quality gx`).
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from clickjoin.kernel.filesystem import local_folder
from clickjoin.lake.location import location
from clickjoin.lake.requirements import refusal
from clickjoin.model.errors import LakeError
from clickjoin.quality import project

if TYPE_CHECKING:
    from clickjoin.config import Pipeline

FOLDER = "_quality"
_EDITED = ("great_expectations.yml", "expectations/", "checkpoints/", "validation_definitions/")
_FETCHED = ".fetched.json"


def root_of(pipeline: Pipeline) -> str:
    """The folder of a pipeline's project."""
    return f"{pipeline.root}/{FOLDER}/gx"


def require_writable(pipeline: Pipeline) -> None:
    """Check that the project's folder can be made and written to. Errors: LakeError."""
    root = root_of(pipeline)
    # One on S3 lies where the lake does, which was tested when that was opened.
    if local_folder(root) and (why := refusal(root)):
        raise LakeError(
            f"{root}: quality results cannot be written there ({why})",
            remedy="Make it a folder that this process may write to, or move away what is in its place",
        )


@contextmanager
def opened(pipeline: Pipeline) -> Iterator[project.Project]:
    """A pipeline's project, to run its checkpoints. Errors: LakeError where it cannot be read or written."""
    root, folder = root_of(pipeline), local_folder(root_of(pipeline))
    if folder is not None:
        require_writable(pipeline)
        with project.opened(folder, pipeline) as found:
            yield found
        return
    with TemporaryDirectory(prefix="clickjoin-gx-") as work:
        copy = Path(work) / "gx"
        before = _fetch(root, copy, results=False)
        with project.opened(copy, pipeline) as found:
            found.results = location(f"{root}/{project.RESULTS}")
            yield found
        _put(root, copy, before)


def fetch(pipeline: Pipeline, to: Path) -> tuple[int, str]:
    """Copy a project with its results to a folder, and build its Data Docs there.

    Returns how many files can be edited, and where the docs are, or why there are none.

    Errors: LakeError where there is none, or where the folder holds something else.
    """
    root = root_of(pipeline)
    if to.exists() and any(to.iterdir()) and not (to / "gx" / _FETCHED).exists():
        raise LakeError(f"{to}: it holds something else", remedy="Give an empty folder, or one that does not exist")
    shutil.rmtree(to, ignore_errors=True)
    known = _fetch(root, to / "gx", results=True)
    if not known:
        raise LakeError(f"{root}: there is no project yet", remedy="Run `clickjoin quality` on a date: it makes one")
    (to / "gx" / _FETCHED).write_text(json.dumps(known), encoding="utf-8")
    with project.opened(to / "gx", pipeline) as found:
        try:
            found.context.build_data_docs()
        except Exception as error:  # a result that is damaged is no reason to keep the suites back
            return len(known), f"Great Expectations cannot build them ({project.line(error)})"
    return len(known), f"{found.docs}/index.html"


def put_back(pipeline: Pipeline, edited: Path) -> list[str]:
    """Put what was edited in a fetched project back; returns the files that were. One writer at a time.

    Errors: LakeError where someone else has edited one of them since it was fetched.
    """
    root, folder = root_of(pipeline), edited / "gx"
    try:
        known: dict[str, str] = json.loads((folder / _FETCHED).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise LakeError(
            f"{folder}: that is no project which `clickjoin quality gx --to` has fetched",
            remedy="Fetch it first, and edit what lies there",
        ) from error
    here = local_folder(root)
    with nullcontext() if here is None else project.locked(here):
        return _changed(root, folder, known)


def _changed(root: str, folder: Path, known: dict[str, str]) -> list[str]:
    mine, there = _digests(str(folder)), _digests(root)
    changed = sorted(name for name in {*known, *mine} if known.get(name) != mine.get(name))
    if others := [name for name in changed if there.get(name) != known.get(name)]:
        raise LakeError(
            f"{root}: {', '.join(others)}: someone else has edited it since it was fetched",
            remedy="Fetch the project into another folder, and make your edits there",
        )
    for name in changed:
        if name in mine:
            location(root).replace(name, (folder / name).read_bytes())
        else:
            location(root).remove([name])
    (folder / _FETCHED).write_text(json.dumps(known | mine), encoding="utf-8")
    return changed


def _fetch(root: str, to: Path, *, results: bool) -> dict[str, str]:
    """Copy a project; returns digests of what people can edit, by path."""
    kept = location(f"{root}/{project.RESULTS}")
    names = [f"{project.RESULTS}/{file.path}" for file in kept.listed()] if results else []
    files = chain(_edited(root).items(), ((name, location(root).read(name)) for name in names))
    for name, data in files:
        if data is not None:
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            (to / name).write_bytes(data)
    return _digests(str(to))


def _put(root: str, copy: Path, before: Mapping[str, str]) -> None:
    """Put a run's results and suites back; a file that someone else has edited meanwhile stays as they left it."""
    place, there = location(root), _digests(root)
    for path in sorted((copy / project.RESULTS).rglob("*.json")):
        place.write(str(path.relative_to(copy)), path.read_bytes())
    for name, data in _edited(str(copy)).items():
        if there.get(name) == before.get(name):
            place.replace(name, data)


def _edited(root: str) -> dict[str, bytes]:
    """What people can edit of a project, by path."""
    place = location(root)
    names = [file.path for file in place.listed() if file.path.startswith(_EDITED)]
    read = ((name, place.read(name)) for name in names if not Path(name).name.startswith("."))
    return {name: data for name, data in read if data is not None}


def _digests(root: str) -> dict[str, str]:
    """What people have put into each file, as a digest: a run's new limits in a suite are no edit of anybody's."""
    edited = _edited(root).items()
    theirs = {name: project.people_part(data) if name.startswith("expectations/") else data for name, data in edited}
    return {name: hashlib.sha256(data).hexdigest() for name, data in theirs.items()}
