"""A folder on S3, copied by the server itself wherever both ends lie in one store.

Each file is a PUT, which takes place whole or not at all and is durable when it is answered. Where the store keeps the
SHA-256 of what it was given or has copied, nothing is read to know it.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from tempfile import SpooledTemporaryFile
from typing import IO, TYPE_CHECKING, Any

from clickjoin.lake.asking import TRY_AGAIN, asking
from clickjoin.lake.local_tree import hashing
from clickjoin.lake.object_lock import Held, locked
from clickjoin.lake.objects import client
from clickjoin.lake.table_order import by_table, in_order_of_making, in_order_of_removing
from clickjoin.model.errors import LakeError
from clickjoin.model.places import S3, store_of

if TYPE_CHECKING:
    from clickjoin.lake.tree import Found, Tree

_WORKERS, _AT_ONCE = 16, 1_000  # requests side by side; objects that one request removes
_IN_MEMORY = 16 << 20


class StoredTree:
    """See Tree."""

    renames_at_once = False

    def __init__(self, root: str) -> None:
        self.root = root.rstrip("/")
        self._store = store_of(self.root)
        self.bucket, _, self._prefix = self.root.removeprefix(S3).partition("/")
        self._known: Any = None
        self._held: Held | None = None  # a lock without which nothing may be changed

    @property
    def client(self) -> Any:
        """What asks the store; made once, and shared by what lies below and beside."""
        if self._known is None:
            self._known = client(self._store)
        return self._known

    def _of(self, root: str) -> StoredTree:
        made = StoredTree(root)
        if made._store == self._store:
            made._known, made._held = self.client, self._held
        return made

    def key(self, path: str) -> str:
        """The key of a file."""
        return f"{self._prefix}/{path}".lstrip("/")

    @property
    def name(self) -> str:
        """See Tree."""
        return self.root.rpartition("/")[2]

    @property
    def parent(self) -> StoredTree:
        """See Tree."""
        return self._of(self.root.rpartition("/")[0])

    def at(self, path: str) -> StoredTree:
        """See Tree."""
        return self._of(f"{self.root}/{path}")

    def beside(self, ending: str) -> StoredTree:
        """See Tree."""
        return self._of(f"{self.root}{ending}")

    def resolved(self) -> StoredTree:
        """See Tree: there are no links."""
        return self

    def is_link(self) -> bool:
        """See Tree."""
        return False

    def exists(self) -> bool:
        """See Tree: whether anything lies below it."""
        with asking(self.root):
            found = self.client.list_objects_v2(Bucket=self.bucket, Prefix=self.key(""), MaxKeys=1)
        return bool(found.get("KeyCount"))

    def make(self, *, shared: bool = False) -> None:
        """See Tree: there is nothing to make."""

    def prepare(self, paths: Iterable[str]) -> None:
        """See Tree: there is nothing to make."""

    def settle(self, like: Tree) -> None:
        """See Tree: what was answered is durable, and who may read is the bucket's to say."""

    def children(self) -> list[str]:
        """See Tree."""
        found = self._pages(self.key(""), Delimiter="/")
        return sorted(one["Prefix"].rstrip("/").rpartition("/")[2] for page in found for one in page["CommonPrefixes"])

    def files(self, folder: str = "") -> dict[str, int]:
        """See Tree."""
        found = self._all(self.key(f"{folder}/" if folder else ""))
        return {path: size for path, size in found.items() if path and not path.endswith("/")}

    def _all(self, prefix: str) -> dict[str, int]:
        items = [item for page in self._pages(prefix) for item in page["Contents"]]
        return {item["Key"][len(self.key("")) :]: int(item["Size"]) for item in items}

    def _remove_markers(self) -> None:
        """Remove empty objects that stand for folders, as Arrow leaves them where it has removed files."""
        self.remove(path for path in self._all(self.key("")) if path.endswith("/") or not path)

    def _pages(self, prefix: str, **more: str) -> Iterator[dict[str, Any]]:
        with asking(self.root):
            pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=prefix, **more)
            for page in pages:
                yield {"Contents": [], "CommonPrefixes": [], **page}

    def size(self, path: str) -> int | None:
        """See Tree."""
        try:
            with asking(f"{self.root}/{path}"):
                return int(self.client.head_object(Bucket=self.bucket, Key=self.key(path))["ContentLength"])
        except FileNotFoundError:
            return None

    def digest(self, path: str) -> Found:
        """See Tree: as the store knows it, else by reading."""
        with asking(f"{self.root}/{path}"):
            head = self.client.head_object(Bucket=self.bucket, Key=self.key(path), ChecksumMode="ENABLED")
        known = head.get("ChecksumSHA256", "")
        if known and "-" not in known:  # else of parts, and not of the whole
            return int(head["ContentLength"]), base64.b64decode(known).hex()
        digest, size = hashlib.sha256(), 0
        with self.open(path) as opened:
            while block := opened.read(1 << 20):
                digest.update(block)
                size += len(block)
        return size, digest.hexdigest()

    def read(self, path: str) -> bytes | None:
        """See Tree."""
        try:
            with self.open(path) as opened:
                return opened.read()
        except FileNotFoundError:
            return None

    def open(self, path: str) -> IO[bytes]:
        """See Tree."""
        with asking(f"{self.root}/{path}"):
            found: IO[bytes] = self.client.get_object(Bucket=self.bucket, Key=self.key(path))["Body"]
            return found

    def write(self, path: str, data: bytes) -> None:
        """See Tree."""
        with self._changing(path):
            self.client.put_object(Bucket=self.bucket, Key=self.key(path), Body=data, ChecksumAlgorithm="SHA256")

    def copy(self, path: str, source: Tree) -> Found:
        """See Tree: by the store where both lie in it, else through this process."""
        if self.lend(path, source):
            return self.digest(path)
        with SpooledTemporaryFile(_IN_MEMORY) as held:
            with asking(f"{source.root}/{path}"), source.open(path) as opened:
                found = hashing(opened, held)
            held.seek(0)
            with self._changing(path):
                self.client.put_object(Bucket=self.bucket, Key=self.key(path), Body=held, ChecksumAlgorithm="SHA256")
        return found

    def lend(self, path: str, held: Tree) -> bool:
        """See Tree: as a copy that the store makes. Errors: FileNotFoundError."""
        if not isinstance(held, StoredTree) or held._store != self._store:
            return False
        with self._changing(path), asking(f"{held.root}/{path}"):
            self.client.copy_object(
                Bucket=self.bucket, Key=self.key(path), ChecksumAlgorithm="SHA256",
                CopySource={"Bucket": held.bucket, "Key": held.key(path)},
            )  # fmt: skip
        return True

    def remove(self, paths: Iterable[str]) -> None:
        """See Tree."""
        keys = [{"Key": self.key(path)} for path in paths]
        for at in range(0, len(keys), _AT_ONCE):
            self._remove_some(keys[at : at + _AT_ONCE])

    def _remove_some(self, keys: list[dict[str, str]]) -> None:
        with self._changing(at_once=True):
            done = self.client.delete_objects(Bucket=self.bucket, Delete={"Objects": keys, "Quiet": True})
        if wrong := done.get("Errors"):
            raise LakeError(f"{self.root}: {wrong[0]['Key']} cannot be removed ({wrong[0]['Code']})", remedy=TRY_AGAIN)

    def discard(self, first: str = "") -> None:
        """See Tree."""
        found = list(self.files())
        self.remove([first] if first in found else [])
        for group in by_table([path for path in found if path != first], in_order_of_removing):
            self.remove(group)
        self._remove_markers()

    def rename(self, to: Tree, *, last: str = "", but: str = "") -> None:
        """See Tree: each table so that it can be read whole or not at all, in both places."""
        found = [path for path in self.files() if path not in (last, but)]
        for group in by_table(found, in_order_of_making):
            with ThreadPoolExecutor(_WORKERS) as pool:
                list(pool.map(lambda path: to.copy(path, self), group))
        if last:
            to.copy(last, self)
        for group in by_table(found, in_order_of_removing):
            self.remove(group)
        self.remove([last] if last else [])
        self._remove_markers()

    @contextmanager
    def alone(self, name: str, what: str) -> Iterator[StoredTree]:
        """See Tree. A lock that a killed process has left is taken over after a while.

        Each change that is made through the folder it gives asks first whether the lock is held still.
        """
        own = self._of(self.root)
        with ExitStack() as held:
            with asking(self.root):
                own._held = held.enter_context(locked(self.client, self.bucket, self.key(name), what))
            yield own

    @contextmanager
    def _changing(self, path: str = "", *, at_once: bool = False) -> Iterator[None]:
        """Around a request that changes something: not made where the lock it needs was lost."""
        with asking(f"{self.root}/{path}".rstrip("/")):
            if self._held:
                self._held.require(at_once=at_once)
            yield
