"""Who reads whom: the pipelines whose files lie in one folder, and which of them make up a chain."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from clickjoin.config import OfPipeline, Pipeline, load
from clickjoin.config.pipeline import declare_places
from clickjoin.model.errors import ConfigError
from clickjoin.model.places import is_on_s3


class Link(NamedTuple):
    """A stream of `reader` is the output of `upstream`."""

    upstream: Pipeline
    reader: Pipeline
    stream: str


def beside(file: Path) -> list[Pipeline]:
    """The pipelines of a file and of those in its folder that can be read; the file's own first. Errors: ConfigError.

    Of two files of one lake the file's own counts, else the first by name. A file that is no pipeline's, or is broken,
    is left out: its own run says why.
    """
    found = [load(file)]
    folder = file.resolve().parent
    for other in sorted(path for path in folder.glob("*") if path.suffix in (".yaml", ".yml")):
        if other != file.resolve():
            try:
                found.append(load(other))
            except ConfigError:
                continue
    for pipeline in reversed(found):  # another file may say of the same places that they lie in another store
        declare_places(pipeline)
    roots = [_place(pipeline.root) for pipeline in found]
    return [pipeline for at, pipeline in enumerate(found) if roots.index(roots[at]) == at]


def links_of(pipelines: Iterable[Pipeline]) -> list[Link]:
    """Which of some pipelines reads which other one's output."""
    known = {_place(pipeline.root): pipeline for pipeline in pipelines}
    return [
        Link(known[_place(item.source.root)], reader, item.name)
        for reader in known.values()
        for item in reader.inputs
        if isinstance(item.source, OfPipeline) and _place(item.source.root) in known
    ]


def chain_of(pipeline: Pipeline, links: Sequence[Link]) -> list[Pipeline]:
    """A pipeline with all that it is linked to, upstreams before those that read them."""
    roots = {_place(pipeline.root)}
    while True:
        more = {root for link in links for root in _ends(link) if roots & set(_ends(link))}
        if more <= roots:
            break
        roots |= more
    known = {_place(pipeline.root): pipeline} | {
        _place(one.root): one for link in links for one in (link.upstream, link.reader)
    }
    depth = {root: _depth(root, links, ()) for root in roots}
    return [known[root] for root in sorted(roots, key=lambda root: (depth[root], root))]


def _ends(link: Link) -> tuple[str, str]:
    return _place(link.upstream.root), _place(link.reader.root)


def _depth(root: str, links: Sequence[Link], above: tuple[str, ...]) -> int:
    """How many pipelines its records have gone through, at most."""
    ups = {_ends(link)[0] for link in links if _ends(link)[1] == root} - set(above)
    return max((1 + _depth(up, links, (*above, root)) for up in ups), default=0)


def _place(root: str) -> str:
    return root if is_on_s3(root) else os.path.realpath(root)
