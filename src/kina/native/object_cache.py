"""Compiled objects on disk, so that a program is compiled once a machine and not once a process.

An entry is a file named by the hash of everything the object depends on. It holds a magic word, the
SHA-256 of the object, and the object: a damaged, truncated or foreign file fails the check and
counts as absent. Writes go to a temporary name and are renamed, so a reader never sees half an entry and writers
may race. The directory is bounded; the entries used longest ago go first. No failure of the file system
is an error: the cache then merely does not help.

`KINA_CACHE_DIR` names the directory (otherwise `$XDG_CACHE_HOME/kina`, `~/.cache/kina`);
`KINA_CACHE=0` turns the cache off.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

_MAGIC = b"KINAOBJ1"
_HEADER = len(_MAGIC) + hashlib.sha256().digest_size
_SUFFIX = ".kobj"
DEFAULT_LIMIT = 256 * 1024 * 1024


def cache_directory() -> Path | None:
    """Where objects are kept, or None if the cache is off or there is no home to keep it in."""
    if os.environ.get("KINA_CACHE", "1") == "0":
        return None
    if chosen := os.environ.get("KINA_CACHE_DIR"):
        return Path(chosen) / "objects"
    if xdg := os.environ.get("XDG_CACHE_HOME"):
        return Path(xdg) / "kina" / "objects"
    try:
        return Path.home() / ".cache" / "kina" / "objects"
    except RuntimeError:
        return None


def cache_key(*parts: str) -> str:
    """The name under which an object is kept: a hash of all it depends on."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode()
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class ObjectCache:
    """Objects in `directory` (None: no cache), `limit` bytes of them at most."""

    directory: Path | None
    limit: int = DEFAULT_LIMIT

    @staticmethod
    def default() -> ObjectCache:
        """The cache that the environment asks for; read at each call, so that a change of the environment counts."""
        return ObjectCache(cache_directory())

    def load(self, key: str) -> bytes | None:
        """The object kept under `key`, or None if there is none that is whole."""
        if self.directory is None:
            return None
        path = self.directory / (key + _SUFFIX)
        try:
            data = path.read_bytes()
        except OSError:
            return None
        payload = _unwrap(data)
        with contextlib.suppress(OSError):
            if payload is None:
                path.unlink()
            else:
                os.utime(path)  # used now: last to be evicted
        return payload

    def store(self, key: str, payload: bytes) -> None:
        """Keeps `payload` under `key`; does nothing where the directory cannot be written."""
        if self.directory is None:
            return
        with contextlib.suppress(OSError):
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            _write_atomically(self.directory, key + _SUFFIX, _wrap(payload))
            self._evict()

    def discard(self, key: str) -> None:
        """Forgets the object kept under `key`, if any."""
        if self.directory is not None:
            with contextlib.suppress(OSError):
                (self.directory / (key + _SUFFIX)).unlink()

    def _evict(self) -> None:
        """Removes what was used longest ago until the directory is within its limit (temporary leftovers count too)."""
        assert self.directory is not None
        found: list[tuple[float, int, str]] = []
        with os.scandir(self.directory) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):  # another process may have removed it
                    status = entry.stat()
                    found.append((status.st_mtime, status.st_size, entry.path))
        total = sum(size for _, size, _ in found)
        for _, size, path in sorted(found):
            if total <= self.limit:
                return
            with contextlib.suppress(OSError):
                os.unlink(path)
            total -= size


def _wrap(payload: bytes) -> bytes:
    return _MAGIC + hashlib.sha256(payload).digest() + payload


def _unwrap(data: bytes) -> bytes | None:
    """The payload of an entry, or None if the entry is damaged."""
    payload = data[_HEADER:]
    return payload if data[:_HEADER] == _MAGIC + hashlib.sha256(payload).digest() else None


def _write_atomically(directory: Path, name: str, data: bytes) -> None:
    descriptor, temporary = tempfile.mkstemp(dir=directory)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        os.replace(temporary, directory / name)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
